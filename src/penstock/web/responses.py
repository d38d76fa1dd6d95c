"""JSON responses, the handlers that turn exceptions into error responses, and their OpenAPI descriptions."""

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from penstock.catalog.params import shorten
from penstock.errors import (
    Detail,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    PenstockError,
    UnsupportedMediaType,
)
from penstock.web.server.error_response import render_error
from penstock.web.server.error_shapes import find_shape


class Json(Response):
    """A JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode the content with msgspec."""
        return msgspec.json.encode(content)


def request_id_of(request: Request) -> str:
    """Return the id of this request in logs and responses."""
    return request.scope["state"]["request_id"]


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer with one of Penstock's errors."""
    assert isinstance(error, PenstockError)  # noqa: S101  registered for these only
    rendered = render_error(error, request_id_of(request), shape=find_shape(request.url.path))
    response = Response(rendered.body, rendered.status)
    response.raw_headers = rendered.headers
    return response


async def answer_http_exception(request: Request, error: Exception) -> Response:
    """Answer an error of the framework, such as an unknown path, in the error shape."""
    assert isinstance(error, HTTPException)  # noqa: S101
    path = shorten(request.url.path)
    match error.status_code:
        case 404:
            ours: PenstockError = NotFound(f"There is nothing at {path}.", suggestion="GET /docs lists every path.")
        case 405:
            allowed = ", ".join(sorted(_methods_at(request)))
            ours = MethodNotAllowed(f"{path} takes {allowed}, not {request.method}.", headers={"allow": allowed})
        case 415:
            ours = UnsupportedMediaType()
        case _:
            ours = InvalidRequest(str(error.detail))
    return await answer_error(request, ours)


def _methods_at(request: Request) -> set[str]:
    """Return the methods of all routes at this path. Starlette would name those of the first route only."""
    routes: list[Route] = request.app.state.routes
    matching = [route for route in routes if route.path_regex.match(request.url.path)]
    return {method for route in matching for method in route.methods or ()}


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Answer invalid query, path and header parameters, all of them together."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    details = [
        Detail(".".join(str(part) for part in item["loc"][1:]), f"{item['msg']}, got {shorten(item.get('input'))}.")
        for item in error.errors()
    ]
    first = details[0]
    return await answer_error(
        request, InvalidRequest(f"{first.loc}: {first.message}", param=first.loc, details=details)
    )


async def answer_crash(request: Request, error: Exception) -> Response:
    """Answer an unexpected exception without any detail. It is logged by the caller."""
    del error
    return await answer_error(request, InternalError())


HANDLERS: Mapping[Any, Any] = {
    Exception: answer_crash,
    PenstockError: answer_error,
    HTTPException: answer_http_exception,
    RequestValidationError: answer_invalid,
}

REQUEST_ID = {
    "x-request-id": {"description": "the id of this request in the server's logs", "schema": {"type": "string"}}
}
RETRY_AFTER = {"retry-after": {"description": "seconds to wait before the next attempt", "schema": {"type": "integer"}}}
EVENTS: dict[str, Any] = {"text/event-stream": {"schema": {"description": "server-sent events"}}}
"""Content of a stream. It has no type: readers of the document differ in what they take the value of a stream for."""
SHOULD_RETRY = {"x-should-retry": {"description": "whether a retry can succeed", "schema": {"type": "string"}}}


def success(description: str, *shapes: str, headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an OpenAPI response with a JSON body of one of these schemas."""
    references = [{"$ref": f"#/components/schemas/{name}"} for name in shapes]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {
        "description": description,
        "headers": REQUEST_ID | dict(headers or {}),
        "content": {"application/json": {"schema": schema}},
    }


def problems(*errors: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of a route for the errors it may answer, by status."""
    by_status: dict[int | str, list[str]] = {}
    for error in errors:
        by_status.setdefault(error.status, []).append(f"`{error.code}`: {error.__doc__}")
    return {
        status: success(
            "\n\n".join(texts),
            "Error",
            headers=SHOULD_RETRY | (RETRY_AFTER if status in (409, 429, 503) else {}),
        )
        for status, texts in by_status.items()
    }
