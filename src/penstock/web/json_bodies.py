"""Bodies of JSON: read from the request, held against their shape, every problem told at once."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from fastapi import Request

from penstock.catalog.params import Params, read, unique
from penstock.errors import Detail, UnsupportedMediaType
from penstock.generation import Decoded, decode, refuse

P = TypeVar("P", bound=Params)

BIG_BODY = 1 << 18  # beyond this, parsing is felt by everyone else on the event loop


async def read_json(request: Request) -> Decoded:
    """The body as a JSON object."""
    content_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise UnsupportedMediaType(f"Send `content-type: application/json`, not `{content_type[:80]}`.")
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedMediaType(
            f"Send the body as it is: `content-encoding` may be identity, not `{encoding[:40]}`."
        )
    raw = await request.body()
    return await asyncio.to_thread(decode, raw) if len(raw) > BIG_BODY else decode(raw)


async def read_params(
    request: Request, kind: type[P], more: Callable[[Mapping[str, Any]], Iterable[Detail]] | None = None
) -> tuple[P, dict[str, Any]]:
    """The body in this shape, and as it was sent: there, a null can be told from what is absent.

    `more` finds what else is wrong with it. A body that is not there is an empty object.
    """
    body = (await read_json(request)).body if await request.body() else {}
    found, details = read(kind, body, "")
    details = unique([*details, *(more(body) if more else ())])
    if found is None or details:
        raise refuse(details)
    return found, body


def describe_body(name: str, *, required: bool = True) -> dict[str, Any]:
    """The `openapi_extra` of a route whose body has the shape of this name."""
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
