"""`/v1/responses/{response_id}`: get, delete and cancel kept responses, and list their input items."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.chat.kept.responses import Order
from penstock.domain.api_keys import Scope
from penstock.errors import InvalidRequest, ResponseNotFound
from penstock.web.auth import admit, signed_in
from penstock.web.pages import Limit
from penstock.web.responses import Json, success

router = APIRouter(tags=["Chat"])

PREFIXES = ("/v1", "/llm/v1", "/llm")
"""The base URLs that clients use. The first is in the OpenAPI document."""
PATH = "/responses/{response_id}"
FOUND = success("The response.", "ChatResponse")
ResponseId = Annotated[str, Path(description="`resp_…`")]


async def get_response(response_id: ResponseId, request: Request, *, stream: str | None = None) -> Response:
    """Get a kept response. One that runs in the background shows its status."""
    caller = await admit(request, Scope.CHAT)
    if stream not in (None, "false"):
        message = "A kept response cannot be streamed again. Get it without `stream` until its status is final."
        raise InvalidRequest(message, param="stream", code="unsupported_value")
    found = await caller.gateway.kept.find(caller.account_id, response_id)
    return _answer(found.body)


async def delete_response(response_id: ResponseId, request: Request) -> Response:
    """Delete a kept response. Responses that continue it cannot be continued any more."""
    caller = await admit(request, Scope.CHAT)
    await caller.gateway.kept.delete(caller.account_id, response_id)
    return Json({"id": response_id, "object": "response", "deleted": True})


async def cancel_response(response_id: ResponseId, request: Request) -> Response:
    """Cancel a response that runs in the background. One that has ended is answered as it is."""
    caller = await admit(request, Scope.CHAT)
    found = await caller.gateway.kept.cancel(caller.account_id, response_id)
    return _answer(found.body)


async def list_input_items(
    response_id: ResponseId,
    request: Request,
    *,
    limit: Limit = 20,
    order: Annotated[Order, Query(description="by place in the request")] = "desc",
    after: Annotated[str | None, Query(description="`last_id` of the page before")] = None,
) -> Response:
    """List the input items of a kept response, without those of responses that it continues."""
    caller = await admit(request, Scope.CHAT)
    page = await caller.gateway.kept.items(caller.account_id, response_id, after, limit, order)
    first, last = (page.items[0]["id"], page.items[-1]["id"]) if page.items else ("", "")
    record = {"object": "list", "data": page.items, "first_id": first, "last_id": last, "has_more": page.has_more}
    return Json(record)


def _answer(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _add_routes(prefix: str, *, is_documented: bool) -> None:
    options: Mapping[str, Any] = {"include_in_schema": is_documented}
    refused = signed_in(InvalidRequest, ResponseNotFound)
    deleted = {200: success("Deleted.", "DeletedResponse"), **signed_in(ResponseNotFound)}
    items = {200: success("A page.", "ResponseItemPage"), **refused}
    path = prefix + PATH
    router.get(path, responses={200: FOUND, **refused}, **options)(get_response)
    router.delete(path, responses=deleted, **options)(delete_response)
    router.post(f"{path}/cancel", responses={200: FOUND, **refused}, **options)(cancel_response)
    router.get(f"{path}/input_items", responses=items, **options)(list_input_items)


for _place, _prefix in enumerate(PREFIXES):
    _add_routes(_prefix, is_documented=_place == 0)
