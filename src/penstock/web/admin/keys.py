"""`/admin/v1/keys`: issue, list, change, rotate and revoke keys, and set their budgets."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.accounts import administration
from penstock.accounts.records import describe_key
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import Period
from penstock.errors import AccountClosed, AccountNotFound, BudgetNotFound, InvalidRequest, KeyNotFound, KeyNotRotatable
from penstock.store.database import Connection
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import budget_rows
from penstock.web.admin.accounts import BODY, Cursor, describe_budget, find_account_id
from penstock.web.admin.auth import Administrator, administered, admit_administrator
from penstock.web.admin.bodies import BudgetBody, KeyBody, KeyPatch, RotateBody, allowance_of, unknown_models
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import Limit, answer_page, refuse_cursor
from penstock.web.responses import Json, success

router = APIRouter(tags=["Administration: keys"])

PublicId = Annotated[str, Path(description="the part of the key between its underscores")]
RECORD = success("The key.", "KeyRecord")
NO_STORE = {"cache-control": "no-store"}
ISSUED = success("The key with its text, which is shown only once.", "IssuedKey")


@router.post(
    "/admin/v1/keys",
    status_code=201,
    responses={201: ISSUED, **administered(*BODY, AccountNotFound, AccountClosed)},
    openapi_extra=describe_body("KeyBody"),
)
async def issue_key(request: Request) -> Response:
    """Issue a key for an account. Its text is only in this answer."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, KeyBody, partial(unknown_models, admin.gateway.offers))

    def issue(connection: Connection, actor: str) -> dict[str, Any]:
        text, key = administration.issue_key(connection, actor, body.account, body.wish(admin.now), admin.now)
        return {**_describe_keys(connection, [key], admin.now)[0], "key": text}

    return Json(await admin.do(issue), 201, NO_STORE)


@router.get(
    "/admin/v1/keys",
    responses={200: success("A page.", "KeyPage"), **administered(InvalidRequest, AccountNotFound)},
)
async def list_keys(
    request: Request,
    *,
    account: Annotated[str | None, Query(max_length=200, description="the id or name of an account")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """List keys, newest first."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> list[dict[str, Any]]:
        account_id = find_account_id(connection, account, admin.now)
        found = key_rows.page(connection, account_id, cursor, limit + 1)
        if found is None:
            raise refuse_cursor()
        return _describe_keys(connection, found, admin.now)

    return answer_page(await admin.look(read), limit, "public_id")


@router.get("/admin/v1/keys/{public_id}", responses={200: RECORD, **administered(InvalidRequest, KeyNotFound)})
async def get_key(public_id: PublicId, request: Request) -> Response:
    """Get one key."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> dict[str, Any]:
        return _describe_keys(connection, [administration.get_key(connection, public_id)], admin.now)[0]

    return Json(await admin.look(read))


@router.patch(
    "/admin/v1/keys/{public_id}",
    responses={200: RECORD, **administered(*BODY, KeyNotFound)},
    openapi_extra=describe_body("KeyPatch"),
)
async def change_key(public_id: PublicId, request: Request) -> Response:
    """Change a key. All servers follow within a second."""
    admin = await admit_administrator(request)
    wanted, given = await read_params(request, KeyPatch, partial(unknown_models, admin.gateway.offers))

    def change(connection: Connection, actor: str) -> dict[str, Any]:
        def amend(key: ApiKey) -> ApiKey:
            return wanted.apply(key, given, admin.now)

        key = administration.change_key(connection, actor, public_id, amend, admin.now)
        return _describe_keys(connection, [key], admin.now)[0]

    return Json(await admin.do(change))


@router.delete(
    "/admin/v1/keys/{public_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Revoked."}, **administered(InvalidRequest, KeyNotFound)},
)
async def delete_key(public_id: PublicId, request: Request) -> Response:
    """Revoke a key, as POST …/revoke does. Its record is kept."""
    await _revoke(await admit_administrator(request), public_id)
    return Response(status_code=204)


@router.post("/admin/v1/keys/{public_id}/revoke", responses={200: RECORD, **administered(InvalidRequest, KeyNotFound)})
async def revoke_key(public_id: PublicId, request: Request) -> Response:
    """Revoke a key. All servers refuse it within a second. Revoking it again changes nothing."""
    return Json(await _revoke(await admit_administrator(request), public_id))


@router.post(
    "/admin/v1/keys/{public_id}/rotate",
    status_code=201,
    responses={201: ISSUED, **administered(*BODY, KeyNotFound, KeyNotRotatable, AccountClosed)},
    openapi_extra=describe_body("RotateBody", required=False),
)
async def rotate_key(public_id: PublicId, request: Request) -> Response:
    """Replace a key. The new key takes over its limits and budgets. The old key works for a while longer."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, RotateBody)

    def rotate(connection: Connection, actor: str) -> dict[str, Any]:
        text, key, _ = administration.rotate_key(connection, actor, public_id, body.overlap_seconds, admin.now)
        return {**_describe_keys(connection, [key], admin.now)[0], "key": text}

    return Json(await admin.do(rotate), 201, NO_STORE)


@router.put(
    "/admin/v1/keys/{public_id}/budgets/{period}",
    responses={200: success("The budget.", "BudgetShape"), **administered(*BODY, KeyNotFound)},
    openapi_extra=describe_body("BudgetBody"),
)
async def set_budget(public_id: PublicId, period: Period, request: Request) -> Response:
    """Set the key's budget for a period. What was spent and held in the period still counts."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, BudgetBody)

    def put(connection: Connection, actor: str) -> dict[str, Any]:
        key = administration.get_key(connection, public_id)
        administration.set_budget(connection, actor, key, allowance_of(body, period), admin.now)
        return describe_budget(connection, key.lineage, period, admin.now)

    return Json(await admin.do(put))


@router.delete(
    "/admin/v1/keys/{public_id}/budgets/{period}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Removed."}, **administered(InvalidRequest, KeyNotFound, BudgetNotFound)},
)
async def remove_budget(public_id: PublicId, period: Period, request: Request) -> Response:
    """Remove the key's budget for a period."""
    admin = await admit_administrator(request)

    def remove(connection: Connection, actor: str) -> None:
        key = administration.get_key(connection, public_id)
        administration.remove_budget(connection, actor, key, period, admin.now)

    await admin.do(remove)
    return Response(status_code=204)


async def _revoke(admin: Administrator, public_id: str) -> dict[str, Any]:
    def revoke(connection: Connection, actor: str) -> dict[str, Any]:
        key = administration.revoke_key(connection, actor, public_id, admin.now)
        return _describe_keys(connection, [key], admin.now)[0]

    return await admin.do(revoke)


def _describe_keys(connection: Connection, keys: Sequence[ApiKey], now: float) -> list[dict[str, Any]]:
    standings = budget_rows.standings(connection, [key.lineage for key in keys], now)
    return [describe_key(key, standings[key.lineage], now) for key in keys]
