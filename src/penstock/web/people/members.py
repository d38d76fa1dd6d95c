"""`/api/v1/people` and `/api/v1/person`: the people of the caller's account, and the caller's own role."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.accounts import administration, people
from penstock.accounts.records import describe_membership
from penstock.domain.ids import timestamp
from penstock.domain.people.roles import PERSON_PREFIX, Membership, Person
from penstock.errors import AccountClosed, InvalidRequest, PersonNotFound, RoleNotAllowed
from penstock.store.database import Connection
from penstock.store.queries.accounts import people_rows
from penstock.web.admin.accounts import BODY
from penstock.web.auth import admit_person, signed_in
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page, refuse_cursor
from penstock.web.people.bodies import InviteBody, RoleBody
from penstock.web.permissions import endpoints_of
from penstock.web.responses import Json, success

router = APIRouter(tags=["People"])

PersonId = Annotated[str, Path(max_length=300, description="the person's id or e-mail address")]
Cursor = Annotated[str | None, Query(pattern="^[A-Za-z0-9_-]{1,64}$", description=NEXT_CURSOR)]
RECORD = success("The person with the role.", "MemberRecord")


@router.get("/api/v1/person", responses={200: success("You.", "OwnPerson"), **signed_in(RoleNotAllowed)})
async def get_own_person(request: Request) -> Response:
    """Get who you are, your role in the account of this request, and your other accounts."""
    me = await admit_person(request)

    def read(connection: Connection) -> dict[str, Any]:
        person = people.get_person(connection, me.person_id)
        roles = [describe_membership(each) for each in people_rows.memberships_of(connection, person.id)]
        return {
            "object": "person",
            "id": person.id,
            "email": person.email,
            "name": person.name,
            "operator": person.is_operator,
            "account_id": me.account_id,
            "role": me.role,
            "accounts": roles,
            "endpoints": endpoints_of(me.role),
        }

    return Json(await me.look(read))


@router.get(
    "/api/v1/people", responses={200: success("A page.", "MemberPage"), **signed_in(InvalidRequest, RoleNotAllowed)}
)
async def list_people(request: Request, *, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """List the people of your account, newest first."""
    me = await admit_person(request)
    if cursor is not None and not cursor.startswith(PERSON_PREFIX):
        raise refuse_cursor()

    def read(connection: Connection) -> list[dict[str, Any]]:
        found = people_rows.page(connection, me.account_id, cursor, limit + 1)
        every = people_rows.memberships_of_all(connection, [person.id for person in found])
        return [
            _describe(person, each) for person in found for each in every[person.id] if each.account_id == me.account_id
        ]

    return answer_page(await me.look(read), limit, "id")


@router.post(
    "/api/v1/people",
    status_code=201,
    responses={201: RECORD, **signed_in(*BODY, RoleNotAllowed, AccountClosed)},
    openapi_extra=describe_body("InviteBody"),
)
async def add_person(request: Request) -> Response:
    """Give a person a role in your account. People are known by their addresses."""
    me = await admit_person(request)
    body, _ = await read_params(request, InviteBody)

    def add(connection: Connection) -> dict[str, Any]:
        account = administration.get_account(connection, me.account_id, me.now)
        person = people.ensure_person(connection, me.person_id, body.email, body.name or "", me.now)
        made = people.set_role(connection, me.person_id, person, account, body.role, me.now, by=me.role)
        return _describe(person, made)

    return Json(await me.do(add), 201)


@router.patch(
    "/api/v1/people/{person}",
    responses={200: RECORD, **signed_in(*BODY, RoleNotAllowed, PersonNotFound)},
    openapi_extra=describe_body("RoleBody"),
)
async def change_role(person: PersonId, request: Request) -> Response:
    """Change a person's role in your account. All servers follow within a second."""
    me = await admit_person(request)
    body, _ = await read_params(request, RoleBody)

    def change(connection: Connection) -> dict[str, Any]:
        found, _ = people.get_member(connection, me.account_id, person)
        account = administration.get_account(connection, me.account_id, me.now)
        made = people.set_role(connection, me.person_id, found, account, body.role, me.now, by=me.role)
        return _describe(found, made)

    return Json(await me.do(change))


@router.delete(
    "/api/v1/people/{person}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Removed."}, **signed_in(InvalidRequest, RoleNotAllowed, PersonNotFound)},
)
async def remove_person(person: PersonId, request: Request) -> Response:
    """Remove a person from your account, and revoke the person's keys there. All servers follow within a second."""
    me = await admit_person(request)

    def remove(connection: Connection) -> None:
        found, _ = people.get_member(connection, me.account_id, person)
        people.remove_member(connection, me.person_id, found, me.account_id, me.now, by=me.role)

    await me.do(remove)
    return Response(status_code=204)


def _describe(person: Person, membership: Membership) -> dict[str, Any]:
    """Return a person as their account sees them, without their other accounts."""
    return {
        "object": "member",
        "id": person.id,
        "email": person.email,
        "name": person.name,
        "role": membership.role,
        "source": membership.source,
        "since": timestamp(membership.created_at),
    }
