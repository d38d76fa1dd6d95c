"""Pagination: the `limit` parameter and the body of a page, for public and admin lists."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from penstock.errors import InvalidRequest
from penstock.web.responses import Json

Limit = Annotated[int, Query(ge=1, le=100)]
NEXT_CURSOR = "`next_cursor` of the page before"
"""Description of every `cursor` parameter."""


def answer_page(found: Sequence[dict[str, Any]], limit: int, cursor: str) -> Response:
    """Answer with at most `limit` records. One more in `found` means that there is another page.

    The field named by `cursor` of the last record becomes the page's `next_cursor`.
    """
    page = found[:limit]
    has_more = len(found) > limit
    return write_page(page, next_cursor=page[-1][cursor] if has_more else None)


def write_page(page: Sequence[Mapping[str, Any]], *, next_cursor: str | None) -> Response:
    """Answer with a page of a list. Without `next_cursor` it is the last one."""
    return Json({"object": "list", "data": page, "has_more": next_cursor is not None, "next_cursor": next_cursor})


def refuse_cursor() -> InvalidRequest:
    """Return the error for a cursor that no page has given."""
    return InvalidRequest("`cursor` is the `next_cursor` of an earlier page.", param="cursor")
