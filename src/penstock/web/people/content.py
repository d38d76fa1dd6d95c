"""`/api/v1/content`: the logged prompts and answers of the account, for its owners and admins."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.content_log import library
from penstock.domain.content.records import ID_PREFIX
from penstock.domain.ids import new_id
from penstock.errors import ContentNotFound, InvalidRequest, RoleNotAllowed, SecretsUnavailable
from penstock.store.database import Connection
from penstock.store.queries.chat import content_rows
from penstock.store.queries.chat.content_rows import ContentFilter
from penstock.web.auth import Somebody, admit_person, signed_in
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page
from penstock.web.responses import Json, success

router = APIRouter(tags=["Content log"])

Moment = Annotated[datetime | None, Query(description="RFC 3339 with a zone")]
ContentId = Annotated[str, Path(max_length=100, description="the record's id")]
Cursor = Annotated[str | None, Query(pattern="^content_[A-Za-z0-9]{1,64}$", description=NEXT_CURSOR)]
KeyId = Annotated[str | None, Query(alias="key", max_length=100, description="the id of a key")]
Model = Annotated[str | None, Query(max_length=300, description="a model's id")]
NO_STORE = {"cache-control": "no-store"}


@router.get(
    "/api/v1/content", responses={200: success("A page.", "ContentPage"), **signed_in(InvalidRequest, RoleNotAllowed)}
)
async def list_content(
    request: Request,
    *,
    key_id: KeyId = None,
    model: Model = None,
    job_id: Annotated[str | None, Query(alias="job", max_length=100, description="a job's id")] = None,
    created_after: Moment = None,
    created_before: Moment = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """List the logged requests of your account, newest first, without their content."""
    me = await admit_person(request)
    wanted = ContentFilter(key_id, model, job_id, _read_moment(created_after), _read_moment(created_before))
    found = await me.look(library.list_records, me.account_id, wanted, cursor, limit + 1, me.now)
    return answer_page(found, limit, "id")


@router.get(
    "/api/v1/content/{content_id}",
    responses={
        200: success("The record with its content.", "ContentRecord"),
        **signed_in(InvalidRequest, RoleNotAllowed, ContentNotFound, SecretsUnavailable),
    },
)
async def get_content(content_id: ContentId, request: Request) -> Response:
    """Get a logged request with its messages. The audit log notes that you have read it."""
    me = await admit_person(request)
    if await me.look(content_rows.get, me.account_id, content_id, me.now) is None:
        raise ContentNotFound  # before a data key is made in a store that has none
    sealer = await me.gateway.vault.sealer()
    read = me.gateway.database.write(library.read_record, sealer, me.person_id, me.account_id, content_id, me.now)
    return Json(await read, headers=NO_STORE)


@router.delete(
    "/api/v1/content/{content_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **signed_in(InvalidRequest, RoleNotAllowed, ContentNotFound)},
)
async def delete_content(content_id: ContentId, request: Request) -> Response:
    """Delete a logged request. The audit log notes it."""
    me = await admit_person(request)
    await me.gateway.database.write(library.delete_record, me.person_id, me.account_id, content_id, me.now)
    return Response(status_code=204)


@router.delete(
    "/api/v1/content",
    responses={200: success("The number of deleted records.", "ContentDeletion"), **signed_in(RoleNotAllowed)},
)
async def delete_all_content(request: Request, *, key_id: KeyId = None) -> Response:
    """Delete all logged requests of your account, or those of one key. The audit log notes it."""
    me = await admit_person(request)
    return Json({"object": "content_deletion", "deleted": await _delete_all(me, ContentFilter(key_id))})


async def _delete_all(me: Somebody, wanted: ContentFilter) -> int:
    """Delete in small steps what is there now. Return the number of records."""
    await me.gateway.content_log.flush()
    until_id, total = new_id(ID_PREFIX), 0

    def remove(connection: Connection) -> int:
        return library.delete_some(connection, me.person_id, me.account_id, wanted, until_id, me.now)

    while count := await me.gateway.database.write(remove):
        total += count
    return total


def _read_moment(moment: datetime | None) -> Any:
    return None if moment is None else moment.timestamp()
