"""`/admin/v1/accounts/{account_id}/tag-budgets`: budgets of an account's tags."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.accounts import administration
from penstock.accounts.administration import AccountTag
from penstock.domain.attribution.labels import MAX_TAG_CHARACTERS, read_tag
from penstock.domain.budgets import Period, own_tag
from penstock.errors import AccountNotFound, BudgetNotFound, InvalidRequest
from penstock.store.database import Connection
from penstock.store.queries.billing import budget_rows
from penstock.web.admin.accounts import BODY, AccountId, describe_budget
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.admin.bodies import TagBudgetBody, allowance_of
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.responses import Json, success

router = APIRouter(tags=["Administration: accounts"])

PATH = "/admin/v1/accounts/{account_id}/tag-budgets"
Tag = Annotated[str | None, Query(max_length=4 * MAX_TAG_CHARACTERS, description="the tag; required")]
OfPeriod = Annotated[Period | None, Query(description="the period of the budget; required")]


@router.get(PATH, responses={200: success("All of them.", "TagBudgetList"), **administered(AccountNotFound)})
async def list_tag_budgets(account_id: AccountId, request: Request) -> Response:
    """List the budgets of the account's tags with their balances."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> list[dict[str, Any]]:
        account = administration.get_account(connection, account_id, admin.now)
        return [each.describe() for each in budget_rows.tag_standings(connection, account.id, admin.now)]

    return Json({"object": "list", "data": await admin.look(read)})


@router.put(
    PATH,
    responses={200: success("The budget.", "BudgetShape"), **administered(*BODY, AccountNotFound)},
    openapi_extra=describe_body("TagBudgetBody"),
)
async def set_tag_budget(account_id: AccountId, request: Request) -> Response:
    """Set a tag's budget for a period. What was spent and held with the tag in the period still counts."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, TagBudgetBody)

    def put(connection: Connection, actor: str) -> dict[str, Any]:
        account = administration.get_account(connection, account_id, admin.now)
        of = AccountTag(account.id, account.name, body.tag)
        administration.set_budget(connection, actor, of, allowance_of(body, body.period), admin.now)
        return describe_budget(connection, own_tag(account.id, body.tag), body.period, admin.now)

    return Json(await admin.do(put))


@router.delete(
    PATH,
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Removed."}, **administered(InvalidRequest, AccountNotFound, BudgetNotFound)},
)
async def remove_tag_budget(
    account_id: AccountId, request: Request, *, tag: Tag = None, period: OfPeriod = None
) -> Response:
    """Remove a tag's budget for a period."""
    admin = await admit_administrator(request)
    if tag is None or period is None:  # asked for only here, as the key is checked first
        raise InvalidRequest("Send `tag` and `period`.", param="tag" if tag is None else "period")
    try:
        name = read_tag(tag)
    except ValueError as error:
        raise InvalidRequest(f"tag: {str(error).capitalize()}.", param="tag") from None

    def remove(connection: Connection, actor: str) -> None:
        account = administration.get_account(connection, account_id, admin.now)
        of = AccountTag(account.id, account.name, name)
        administration.remove_budget(connection, actor, of, period, admin.now)

    await admin.do(remove)
    return Response(status_code=204)
