"""`/admin/v1/accounts`: create, list, change and close accounts, and set their budgets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.accounts import administration
from penstock.accounts.records import describe_account
from penstock.domain.accounts import Account, Allowance
from penstock.domain.budgets import ACCOUNT_PREFIX, Period
from penstock.errors import (
    AccountExists,
    AccountNotFound,
    BodyTooLarge,
    BudgetNotFound,
    InvalidRequest,
    RequestTimeout,
    UnsupportedMediaType,
)
from penstock.store.database import Connection
from penstock.store.queries.accounts import account_rows
from penstock.store.queries.billing import budget_rows
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.admin.bodies import AccountBody, AccountPatch, BudgetBody, allowance_of, change_limits, limits_of
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page, refuse_cursor
from penstock.web.responses import Json, success

router = APIRouter(tags=["Administration: accounts"])

AccountId = Annotated[str, Path(description="the account's id, or its name")]
NamePart = Annotated[str | None, Query(max_length=200, description="a part of the name, in upper or lower case")]
Cursor = Annotated[str | None, Query(pattern="^[A-Za-z0-9_-]{1,64}$", description=NEXT_CURSOR)]
BODY = (InvalidRequest, RequestTimeout, BodyTooLarge, UnsupportedMediaType)
RECORD = success("The account.", "AccountRecord")


@router.post(
    "/admin/v1/accounts",
    status_code=201,
    responses={201: RECORD, **administered(*BODY, AccountExists)},
    openapi_extra=describe_body("AccountBody"),
)
async def create_account(request: Request) -> Response:
    """Create an account. Keys can follow later."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, AccountBody)

    def create(connection: Connection, actor: str) -> dict[str, Any]:
        made = administration.create_account(
            connection,
            actor,
            body.name,
            admin.now,
            limits_of(body.limits),
            body.allowances,
            body.storage_quota,
            content_log=body.content_log,
        )
        return describe_accounts(connection, [made], admin.now)[0]

    return Json(await admin.do(create), 201)


@router.get("/admin/v1/accounts", responses={200: success("A page.", "AccountPage"), **administered(InvalidRequest)})
async def list_accounts(
    request: Request, *, limit: Limit = 20, cursor: Cursor = None, name: NamePart = None
) -> Response:
    """List accounts, newest first."""
    admin = await admit_administrator(request)
    if cursor is not None and not cursor.startswith(ACCOUNT_PREFIX):
        raise refuse_cursor()

    def read(connection: Connection) -> list[dict[str, Any]]:
        return describe_accounts(
            connection, account_rows.page(connection, cursor, limit + 1, admin.now, name), admin.now
        )

    return answer_page(await admin.look(read), limit, "id")


@router.get("/admin/v1/accounts/{account_id}", responses={200: RECORD, **administered(InvalidRequest, AccountNotFound)})
async def get_account(account_id: AccountId, request: Request) -> Response:
    """Get one account."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> dict[str, Any]:
        return describe_accounts(
            connection, [administration.get_account(connection, account_id, admin.now)], admin.now
        )[0]

    return Json(await admin.look(read))


@router.patch(
    "/admin/v1/accounts/{account_id}",
    responses={200: RECORD, **administered(*BODY, AccountNotFound, AccountExists)},
    openapi_extra=describe_body("AccountPatch"),
)
async def change_account(account_id: AccountId, request: Request) -> Response:
    """Rename, limit, close or reopen an account. Its keys follow within a second. Its jobs and results are kept."""
    admin = await admit_administrator(request)
    wanted, given = await read_params(request, AccountPatch)

    def amend(account: Account) -> Account:
        changed = replace(
            account, name=wanted.name or account.name, limits=change_limits(account.limits, given.get("limits", {}))
        )
        if "storage_quota" in given:
            changed = replace(changed, storage_quota=wanted.storage_quota)
        if wanted.content_log is not None:
            changed = replace(changed, content_log=wanted.content_log)
        if wanted.closed is None:
            return changed
        return administration.close(changed, admin.now) if wanted.closed else replace(changed, closed_at=None)

    def change(connection: Connection, actor: str) -> dict[str, Any]:
        changed = administration.change_account(connection, actor, account_id, amend, admin.now)
        return describe_accounts(connection, [changed], admin.now)[0]

    return Json(await admin.do(change))


@router.put(
    "/admin/v1/accounts/{account_id}/budgets/{period}",
    responses={200: success("The budget.", "BudgetShape"), **administered(*BODY, AccountNotFound)},
    openapi_extra=describe_body("BudgetBody"),
)
async def set_budget(account_id: AccountId, period: Period, request: Request) -> Response:
    """Set the account's budget for a period. What was spent and held in the period still counts."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, BudgetBody)

    def put(connection: Connection, actor: str, allowance: Allowance) -> dict[str, Any]:
        account = administration.get_account(connection, account_id, admin.now)
        administration.set_budget(connection, actor, account, allowance, admin.now)
        return describe_budget(connection, account.id, period, admin.now)

    return Json(await admin.do(put, allowance_of(body, period)))


@router.delete(
    "/admin/v1/accounts/{account_id}/budgets/{period}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Removed."}, **administered(InvalidRequest, AccountNotFound, BudgetNotFound)},
)
async def remove_budget(account_id: AccountId, period: Period, request: Request) -> Response:
    """Remove the account's budget for a period."""
    admin = await admit_administrator(request)

    def remove(connection: Connection, actor: str) -> None:
        account = administration.get_account(connection, account_id, admin.now)
        administration.remove_budget(connection, actor, account, period, admin.now)

    await admin.do(remove)
    return Response(status_code=204)


# -- records


def describe_accounts(connection: Connection, accounts: Sequence[Account], now: float) -> list[dict[str, Any]]:
    """Return the records of accounts, with their budgets."""
    standings = budget_rows.standings(connection, [account.id for account in accounts], now)
    of_tags = budget_rows.tag_standings_of(connection, [account.id for account in accounts], now)
    return [describe_account(account, standings[account.id], of_tags[account.id]) for account in accounts]


def describe_budget(connection: Connection, owner: str, period: Period, now: float) -> dict[str, Any]:
    """Return the state of an owner's budget for a period."""
    standings = budget_rows.standings(connection, [owner], now)[owner]
    return next(standing.describe() for standing in standings if standing.budget.period is period)


def find_account_id(connection: Connection, text: str | None, now: float) -> str | None:
    """Return the id of the account that a filter names, or None without a filter."""
    return None if text is None else administration.get_account(connection, text, now).id
