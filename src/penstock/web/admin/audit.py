"""`/admin/v1/audit`: the audit log."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.accounts.records import describe_entry
from penstock.domain.accounts import Action
from penstock.errors import AccountNotFound, InvalidRequest
from penstock.store.database import Connection
from penstock.store.queries.accounts import audit_rows
from penstock.web.admin.accounts import find_account_id
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page
from penstock.web.responses import success

router = APIRouter(tags=["Administration"])


@router.get(
    "/admin/v1/audit",
    responses={200: success("A page.", "AuditPage"), **administered(InvalidRequest, AccountNotFound)},
)
async def list_changes(
    request: Request,
    *,
    account: Annotated[str | None, Query(max_length=200, description="the id or name of an account")] = None,
    action: Annotated[Action | None, Query(description="only changes of this kind")] = None,
    limit: Limit = 20,
    cursor: Annotated[str | None, Query(pattern="^[0-9]{1,18}$", description=NEXT_CURSOR)] = None,
) -> Response:
    """List the changes of accounts, keys, budgets and the ledger, newest first."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> list[dict[str, Any]]:
        account_id = find_account_id(connection, account, admin.now)
        before = None if cursor is None else int(cursor)
        return [describe_entry(entry) for entry in audit_rows.page(connection, account_id, action, before, limit + 1)]

    return answer_page(await admin.look(read), limit, "id")
