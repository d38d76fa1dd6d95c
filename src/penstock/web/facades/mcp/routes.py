"""`/mcp`: the tools of this gateway for agents, by the Model Context Protocol over streamable HTTP."""

import asyncio
import functools
import importlib
from ipaddress import ip_address
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from penstock.errors import (
    BodyTooLarge,
    InvalidRequest,
    MethodNotAllowed,
    OriginNotAllowed,
    RequestTimeout,
    UnsupportedMediaType,
)
from penstock.web.api.events import STREAM_HEADERS
from penstock.web.auth import gateway_of, identify, signed_in
from penstock.web.facades.mcp.record import RefusedMessage
from penstock.web.facades.mcp.waiting import WaitingResponse, write_event
from penstock.web.json_bodies import read_json
from penstock.web.responses import EVENTS, REQUEST_ID, Json

router = APIRouter(tags=["MCP"])

ID: Final = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}
MESSAGE: Final = {
    "type": "object",
    "required": ["jsonrpc"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": ID,
        "method": {"type": "string"},
        "params": {"type": "object"},
    },
    "example": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "list_models", "arguments": {"kind": "image"}},
    },
}
ANSWER: Final = {
    "type": "object",
    "required": ["jsonrpc", "id"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": ID,
        "result": {"type": "object"},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        },
    },
}
HEADERS: Final = [
    {
        "name": "MCP-Protocol-Version",
        "in": "header",
        "schema": {"type": "string"},
        "description": "2026-07-28, or one of the versions with a handshake, of which 2025-11-25 is the newest",
    }
]


def _describe() -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses: errors are JSON-RPC errors with our own in `data`."""
    errors = (InvalidRequest, OriginNotAllowed, RequestTimeout, BodyTooLarge, UnsupportedMediaType)
    as_json = {"application/json": {"schema": ANSWER}}
    found = {status: {**each, "content": as_json} for status, each in signed_in(*errors).items()}
    found[200] = {"description": "The answer, or a stream that ends with it.", "content": as_json | EVENTS}
    found[202] = {"description": "A notification, which has no answer."}
    found[404] = {"description": "The method is not known.", "content": as_json}
    return {status: {**each, "headers": each.get("headers", REQUEST_ID)} for status, each in found.items()}


@router.post(
    "/mcp",
    responses=_describe(),
    openapi_extra={
        "parameters": HEADERS,
        "requestBody": {"required": True, "content": {"application/json": {"schema": MESSAGE}}},
    },
)
async def serve(request: Request) -> Response:
    """Answer one message. There are no sessions: every server of a fleet answers every message."""
    caller = await identify(request)
    check_origin(request)
    body = (await read_json(request)).body
    if "method" not in body or "id" not in body:
        if body.get("jsonrpc") == "2.0" and ("method" in body or "id" in body):
            return Response(status_code=202)  # a notification, or an answer to a question that was never asked
        raise InvalidRequest("The body is no JSON-RPC 2.0 message: it has neither `method` nor `id`.", param="method")
    library = _load() if _is_loaded() else await asyncio.to_thread(_load)
    exchange = library.open_exchange(caller, body)
    if isinstance(exchange, RefusedMessage):
        return Json(exchange.body, exchange.status)
    status, answer = await exchange.answer()
    call = exchange.call
    takes_events = "text/event-stream" in request.headers.get("accept", "")
    if call.job is None or not call.wait_seconds or call.takes_tasks or not takes_events:
        return Json(answer, status)
    return WaitingResponse(exchange, call.job, Json(answer, status))


@router.get(
    "/mcp",
    responses={
        200: {
            "description": "The rest of the stream.",
            "content": EVENTS,
        },
        **{status: each for status, each in _describe().items() if status in (401, 403, 405, 500, 503)},
        405: {
            "description": "No stream is named by `Last-Event-ID`.",
            "content": {"application/json": {"schema": ANSWER}},
        },
    },
)
async def resume(
    request: Request, last_event_id: Annotated[str | None, Header(description="resume after this event")] = None
) -> Response:
    """Take up the stream of a call that waits, after it broke. There is no other stream."""
    caller = await identify(request)
    check_origin(request)
    library = _load() if _is_loaded() else await asyncio.to_thread(_load)
    exchange = None if last_event_id is None else library.resume_exchange(caller, last_event_id)
    if exchange is None:
        raise MethodNotAllowed('"/mcp" takes POST, and GET only to resume a stream.', headers={"allow": "POST"})
    _, answer = await exchange.answer()
    whole = Response(write_event(answer), media_type="text/event-stream", headers=STREAM_HEADERS)
    return whole if exchange.call.job is None else WaitingResponse(exchange, exchange.call.job, whole)


@functools.cache
def _load() -> Any:
    return importlib.import_module("penstock.web.facades.mcp.exchange")


def _is_loaded() -> bool:
    return bool(_load.cache_info().currsize)


def check_origin(request: Request) -> None:
    """Raise for a page of another site: by a name that leads to this machine it could reach a local server."""
    origin = request.headers.get("origin")
    if origin is None or origin == gateway_of(request).settings.server.public_url:
        return
    if not _is_local(origin):
        raise OriginNotAllowed


def _is_local(origin: str) -> bool:
    try:
        host = urlsplit(origin).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
