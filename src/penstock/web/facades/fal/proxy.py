"""fal's proxy protocol: its client for JavaScript sends every call here, with the address that it means.

The address is never fetched: it only says which of our own pages is meant.
"""

import re
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.errors import InvalidRequest, JobNotFound, MethodNotAllowed, NotFound, TooManyStreams
from penstock.web.api.generations import ORDER_ERRORS
from penstock.web.auth import admit
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.fal import queue
from penstock.web.facades.fal.files import begin_parts, begin_upload
from penstock.web.facades.fal.runs import LATE, answer_run
from penstock.web.facades.fal.shapes import HEADERS, INPUT, PROBLEM, RESULT, TAG, header

router = APIRouter(tags=[TAG])

TARGET: Final = "x-fal-target-url"
MAX_LENGTH: Final = 4096
HOSTS: Final = ("queue.fal.run", "fal.run", "rest.fal.ai", "rest.alpha.fal.ai")
UPLOADS: Final = {"/storage/upload/initiate": begin_upload, "/storage/upload/initiate-multipart": begin_parts}
_REQUEST: Final = re.compile(r"/[^?]+/requests/([^/]+)(/status/stream|/status|/cancel|)")
OPTIONS: dict[str, Any] = {
    "parameters": [{**header("x-fal-target-url", "the address at fal that is meant"), "required": True}, *HEADERS]
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: answer("As at the address that is meant.", RESULT),
    202: answer("As at the address that is meant.", RESULT),
    **errors(PROBLEM, *ORDER_ERRORS, NotFound, JobNotFound, MethodNotAllowed, TooManyStreams),
    **LATE,
}


@router.get("/fal/proxy", responses=RESPONSES, openapi_extra=OPTIONS)
async def proxy_get(request: Request) -> Response:
    """Get the status or the result of a request."""
    host, path, query = read_target(request)
    found = _REQUEST.fullmatch(path) if host == "queue.fal.run" else None
    if found is None or found[2] == "/cancel":
        raise _refuse(path)
    caller, has_logs = await admit(request, Scope.READ), queue.is_true(query.get("logs", ""))
    if found[2] == "/status":
        return await queue.answer_status(caller, found[1], has_logs=has_logs)
    if found[2]:
        return await queue.answer_stream(caller, found[1], has_logs=has_logs)
    return await queue.answer_result(caller, found[1])


@router.post("/fal/proxy", responses=RESPONSES, openapi_extra={**OPTIONS, **body(INPUT)})
async def proxy_post(request: Request) -> Response:
    """Submit a request, run a model, or begin an upload."""
    host, path, query = read_target(request)
    caller = await admit(request, Scope.GENERATE)
    if host == "queue.fal.run":
        return await queue.answer_submit(caller, path.strip("/"), query.get("fal_webhook"))
    if host == "fal.run":
        return await answer_run(caller, path.strip("/"))
    if (begin := UPLOADS.get(path)) is not None:
        return await begin(caller)
    raise _refuse(path)


@router.put("/fal/proxy", responses=RESPONSES, openapi_extra=OPTIONS)
async def proxy_put(request: Request) -> Response:
    """Cancel a request."""
    host, path, _ = read_target(request)
    found = _REQUEST.fullmatch(path) if host == "queue.fal.run" else None
    if found is None or found[2] != "/cancel":
        raise _refuse(path)
    return await queue.answer_cancel(await admit(request, Scope.GENERATE), found[1])


def read_target(request: Request) -> tuple[str, str, dict[str, str]]:
    """Return host, path and query of the address that is meant."""
    text = request.headers.get(TARGET)
    if text is None:
        raise InvalidRequest(f"The header `{TARGET}` is required.", code="missing_required_parameter", param=TARGET)
    allowed = ", ".join(HOSTS)
    try:
        url = urlsplit(text)
        host = url.netloc.lower()
    except ValueError:
        host, url = "", urlsplit("")
    if url.scheme != "https" or host not in HOSTS or len(text) > MAX_LENGTH:
        raise InvalidRequest(f"`{TARGET}` is an https address of {allowed}.", param=TARGET)
    return host, unquote(url.path), dict(parse_qsl(url.query))


def _refuse(path: str) -> NotFound:
    return NotFound(
        f"The proxy has no `{path[:200]}` for this method.", suggestion="It has the queue, runs and uploads."
    )
