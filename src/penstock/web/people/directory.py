"""`/admin/v1/people`: all people, their roles in all accounts, and operators."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.accounts import administration, people
from penstock.accounts.records import describe_person
from penstock.domain.people.roles import PERSON_PREFIX
from penstock.errors import (
    AccountClosed,
    AccountNotFound,
    InvalidRequest,
    PersonExists,
    PersonNotFound,
    RoleNotAllowed,
)
from penstock.store.database import Connection
from penstock.store.queries.accounts import people_rows
from penstock.web.admin.accounts import BODY, find_account_id
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import Limit, answer_page, refuse_cursor
from penstock.web.people.bodies import PersonBody, PersonPatch, RoleBody
from penstock.web.people.members import Cursor, PersonId
from penstock.web.responses import Json, success

router = APIRouter(tags=["Administration: people"])

AccountId = Annotated[str, Path(max_length=300, description="the account's id or name")]
RECORD = success("The person.", "PersonRecord")


@router.post(
    "/admin/v1/people",
    status_code=201,
    responses={201: RECORD, **administered(*BODY, PersonExists)},
    openapi_extra=describe_body("PersonBody"),
)
async def add_person(request: Request) -> Response:
    """Add a person. Roles can follow."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, PersonBody)

    def add(connection: Connection, actor: str) -> dict[str, Any]:
        made = people.add_person(connection, actor, body.email, body.name or "", admin.now, is_operator=body.operator)
        return describe_person(made, ())

    return Json(await admin.do(add), 201)


@router.get(
    "/admin/v1/people",
    responses={200: success("A page.", "PersonPage"), **administered(InvalidRequest, AccountNotFound)},
)
async def list_people(
    request: Request,
    *,
    account: Annotated[str | None, Query(max_length=200, description="the id or name of an account")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """List people with their roles, newest first."""
    admin = await admit_administrator(request)
    if cursor is not None and not cursor.startswith(PERSON_PREFIX):
        raise refuse_cursor()

    def read(connection: Connection) -> list[dict[str, Any]]:
        account_id = find_account_id(connection, account, admin.now)
        found = people_rows.page(connection, account_id, cursor, limit + 1)
        every = people_rows.memberships_of_all(connection, [person.id for person in found])
        return [describe_person(person, every[person.id]) for person in found]

    return answer_page(await admin.look(read), limit, "id")


@router.get("/admin/v1/people/{person}", responses={200: RECORD, **administered(InvalidRequest, PersonNotFound)})
async def get_person(person: PersonId, request: Request) -> Response:
    """Get one person."""
    admin = await admit_administrator(request)
    return Json(await admin.look(_read, person))


@router.patch(
    "/admin/v1/people/{person}",
    responses={200: RECORD, **administered(*BODY, PersonNotFound)},
    openapi_extra=describe_body("PersonPatch"),
)
async def change_person(person: PersonId, request: Request) -> Response:
    """Make a person an operator, or deactivate a person: roles and keys end on all servers within a second."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, PersonPatch)

    def change(connection: Connection, actor: str) -> dict[str, Any]:
        if body.active is not None:
            (people.activate if body.active else people.deactivate)(connection, actor, person, admin.now)
        if body.operator is not None:
            people.set_operator(connection, actor, person, admin.now, is_operator=body.operator)
        return _read(connection, person)

    return Json(await admin.do(change))


@router.put(
    "/admin/v1/people/{person}/accounts/{account}",
    responses={200: RECORD, **administered(*BODY, PersonNotFound, AccountNotFound, AccountClosed, RoleNotAllowed)},
    openapi_extra=describe_body("RoleBody"),
)
async def set_role(person: PersonId, account: AccountId, request: Request) -> Response:
    """Give a person a role in an account. All servers follow within a second."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, RoleBody)

    def put(connection: Connection, actor: str) -> dict[str, Any]:
        found = people.get_person(connection, person)
        place = administration.get_account(connection, account, admin.now)
        people.set_role(connection, actor, found, place, body.role, admin.now)
        return _read(connection, found.id)

    return Json(await admin.do(put))


@router.delete(
    "/admin/v1/people/{person}/accounts/{account}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Removed."}, **administered(InvalidRequest, PersonNotFound, AccountNotFound)},
)
async def remove_role(person: PersonId, account: AccountId, request: Request) -> Response:
    """End a person's role in an account, and revoke the person's keys there."""
    admin = await admit_administrator(request)

    def remove(connection: Connection, actor: str) -> None:
        found = people.get_person(connection, person)
        place = administration.get_account(connection, account, admin.now)
        people.remove_member(connection, actor, found, place.id, admin.now)

    await admin.do(remove)
    return Response(status_code=204)


def _read(connection: Connection, text: str) -> dict[str, Any]:
    person = people.get_person(connection, text)
    return describe_person(person, people_rows.memberships_of(connection, person.id))
