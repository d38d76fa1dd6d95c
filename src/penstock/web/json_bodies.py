"""JSON request bodies: read, decoded and validated, with all problems reported together."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from starlette.requests import Request

from penstock.catalog.params import Params, read, unique
from penstock.errors import Detail, UnsupportedMediaType
from penstock.jobs.request import Decoded, decode, refuse
from penstock.web.auth import gateway_of
from penstock.web.request_bodies import read_body
from penstock.web.server.asgi import CYCLE

P = TypeVar("P", bound=Params)

ADMINISTRATORS = "administrators"
"""Owner of the body memory that all administrators share."""
THREAD_DECODE_BYTES = 1 << 18  # longer bodies are decoded in a thread, as they would block the event loop


async def read_json(request: Request) -> Decoded:
    """Return the body as a JSON object."""
    _check_type(request)
    return await _decode(await receive_body(request))


def _check_type(request: Request) -> None:
    content_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise UnsupportedMediaType(f"Send `content-type: application/json`, not `{content_type[:80]}`.")
    refuse_encoding(request)


def refuse_encoding(request: Request) -> None:
    """Raise if the body is compressed."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedMediaType(
            f"Send the body uncompressed: `content-encoding` may be identity, not `{encoding[:40]}`."
        )


async def receive_body(request: Request, account: str | None = None) -> bytes:
    """Return the body. Its memory counts for `account`, by default for the caller or the administrators."""
    gateway, state = gateway_of(request), request.scope["state"]
    owner = account or state.get("account") or ADMINISTRATORS
    cycle, most = request.scope["extensions"][CYCLE], gateway.max_body_mb << 20
    return await read_body(cycle, request.receive, gateway.body_memory, owner, most)


async def _decode(raw: bytes) -> Decoded:
    return await asyncio.to_thread(decode, raw) if len(raw) > THREAD_DECODE_BYTES else decode(raw)


async def read_params(
    request: Request, kind: type[P], more: Callable[[Mapping[str, Any]], Iterable[Detail]] | None = None
) -> tuple[P, dict[str, Any]]:
    """Return the validated body and the object as sent, which distinguishes null from absent fields.

    `more` finds further problems. Validators find the time as `now` in their context. An empty body counts as an empty
    object.
    """
    raw = await receive_body(request)
    if raw:
        _check_type(request)
    body = (await _decode(raw)).body if raw else {}
    found, details = read(kind, body, "", {"now": gateway_of(request).clock()})
    details = unique([*details, *(more(body) if more else ())])
    if found is None or details:
        raise refuse(details)
    return found, body


def describe_body(name: str, *, required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a route whose body has the schema of this name."""
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
