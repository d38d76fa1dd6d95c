"""JSON and error responses, and their OpenAPI descriptions."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.errors import PenstockError
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
