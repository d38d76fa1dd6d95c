"""`/admin/v1/ledger`: the ledger entries, and corrections by an administrator."""

import base64
import binascii
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.accounts import administration, ledger_corrections
from penstock.domain.ids import timestamp
from penstock.domain.ledger import LedgerEntry
from penstock.domain.money import format_usd
from penstock.errors import AccountNotFound, EntryConflict, EntryNotFound, InvalidRequest
from penstock.store.database import Connection
from penstock.store.queries.billing import ledger_rows
from penstock.store.queries.billing.ledger_rows import EntryPlace, LedgerRefused
from penstock.web.admin.accounts import BODY
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.admin.bodies import ReasonBody
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import NEXT_CURSOR, Limit, refuse_cursor, write_page
from penstock.web.responses import success

router = APIRouter(tags=["Administration: ledger"])

Subject = Annotated[str, Path(description="the id of a job or of a chat request")]
PAGE = success("The entries.", "LedgerPage")
CORRECTION: dict[int | str, dict[str, Any]] = {200: PAGE, **administered(*BODY, EntryNotFound, EntryConflict)}
REASON = describe_body("ReasonBody")


@router.get("/admin/v1/ledger", responses={200: PAGE, **administered(InvalidRequest, AccountNotFound)})
async def list_entries(
    request: Request,
    *,
    subject: Annotated[str | None, Query(max_length=200, description="a job's or a chat request's id")] = None,
    account: Annotated[str | None, Query(max_length=200, description="the id or name of an account")] = None,
    limit: Limit = 20,
    cursor: Annotated[str | None, Query(pattern="^[A-Za-z0-9_-]{1,300}$", description=NEXT_CURSOR)] = None,
) -> Response:
    """List the ledger entries of a subject or an account, the latest first."""
    admin = await admit_administrator(request)
    if (subject is None) == (account is None):
        raise InvalidRequest("Send either `subject` or `account`.", param="subject")
    before = None if cursor is None else _read_cursor(cursor)

    def read(connection: Connection) -> Sequence[LedgerEntry]:
        if account is None:
            return list(ledger_rows.of_subject(connection, subject or "").values())
        owner = administration.get_account(connection, account, admin.now)
        return ledger_rows.page(connection, owner.id, before, limit + 1)

    return _answer(await admin.look(read), limit)


@router.post("/admin/v1/ledger/{subject}/refund", responses=CORRECTION, openapi_extra=REASON)
async def refund(subject: Subject, request: Request) -> Response:
    """Refund what was charged. Refunding again changes nothing."""
    return await _correct(subject, request, ledger_corrections.refund)


@router.post("/admin/v1/ledger/{subject}/release", responses=CORRECTION, openapi_extra=REASON)
async def release(subject: Subject, request: Request) -> Response:
    """Release the amount held for a job of unknown outcome, so that it is not charged."""
    return await _correct(subject, request, ledger_corrections.release)


@router.post("/admin/v1/ledger/{subject}/settle", responses=CORRECTION, openapi_extra=REASON)
async def settle(subject: Subject, request: Request) -> Response:
    """Charge the amount held for a job of unknown outcome."""
    return await _correct(subject, request, ledger_corrections.settle)


async def _correct(subject: str, request: Request, verb: Callable[[Connection, str, str, str, float], int]) -> Response:
    admin = await admit_administrator(request)
    body, _ = await read_params(request, ReasonBody)

    def correct(connection: Connection, actor: str) -> Sequence[LedgerEntry]:
        if not ledger_rows.of_subject(connection, subject):
            raise EntryNotFound(
                f"The ledger has no entries for `{subject[:100]}`: it was free, is in a checkpoint, or does not exist."
            )
        try:
            verb(connection, actor, subject, body.reason, admin.now)
        except LedgerRefused as error:
            raise EntryConflict(str(error), param="subject") from None
        return list(ledger_rows.of_subject(connection, subject).values())

    return _answer(await admin.do(correct), 100)


# -- responses


def _answer(found: Sequence[LedgerEntry], limit: int) -> Response:
    page = found[:limit]
    next_cursor = _write_cursor(page[-1]) if len(found) > limit else None
    return write_page([_describe(entry) for entry in page], next_cursor=next_cursor)


def _describe(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "object": "ledger_entry",
        "subject": entry.subject,
        "kind": entry.kind.value,
        "amount": format_usd(entry.amount),
        "overrun": format_usd(entry.overrun),
        "currency": "USD",
        "account_id": entry.payer.account_id,
        "key": entry.payer.key_id,
        "accepted_at": timestamp(entry.at),
        "created_at": timestamp(entry.created_at),
        "note": entry.note,
        "tags": list(entry.payer.tags),
    }


def _write_cursor(entry: LedgerEntry) -> str:
    place = msgspec.json.encode(EntryPlace(entry.at, entry.subject, entry.kind.value))
    return base64.urlsafe_b64encode(place).decode().rstrip("=")


def _read_cursor(cursor: str) -> EntryPlace:
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place = msgspec.json.decode(raw, type=EntryPlace)
    except (binascii.Error, ValueError):
        place = EntryPlace(math.nan, "", "")
    if not math.isfinite(place.at):
        raise refuse_cursor()
    return place
