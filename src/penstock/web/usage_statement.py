"""Usage statements as JSON or CSV, for the public and the admin page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.billing import usage_report
from penstock.billing.usage_report import FORMATS, KINDS, MOST_LINES, MOST_TOP, USUAL_DAYS, USUAL_TOP, Question
from penstock.domain.budgets import Payer
from penstock.errors import Detail
from penstock.gateway import Gateway
from penstock.store.database import Connection
from penstock.store.queries.accounts import account_rows
from penstock.store.queries.billing import attribution_report, balance_rows, budget_rows
from penstock.store.queries.billing.attribution_report import UsageReport
from penstock.store.queries.billing.usage_rows import Group
from penstock.store.queries.files import storage_rows
from penstock.web.responses import Json, success


def describe_parameters(*, everyone: bool = False) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with the query parameters of a statement."""
    groups = [group.value for group in Group if everyone or group is not Group.ACCOUNT]
    day, text = {"type": "string", "format": "date"}, {"type": "string", "minLength": 1, "maxLength": 200}
    described: dict[str, tuple[str, Mapping[str, Any]]] = {
        "from": (f"the first day, UTC; default: {USUAL_DAYS} days up to `to`", day),
        "to": ("the last day, UTC; default: today", day),
        "by": (
            "group by these, separated by commas; default: day",
            {"type": "array", "items": {"enum": groups}, "minItems": 1, "uniqueItems": True},
        ),
        "model": ("only this model", text),
        "key": ("only this key, by its public id", text),
        "vendor": ("only this vendor", text),
        "kind": ("only chat or only jobs", {"enum": KINDS}),
        "tag": ("only requests with this tag", text),
        "end_user": ("only requests for this end user", text),
        "session": ("only requests of this session", text),
        "top": (
            "the number of tags, end users or sessions with lines of their own; the rest is one line `other`",
            {"type": "integer", "minimum": 1, "maximum": MOST_TOP, "default": USUAL_TOP},
        ),
        "format": ("`csv` works like `Accept: text/csv`", {"enum": FORMATS, "default": "json"}),
    }
    if everyone:
        described["account"] = ("only this account, by its name or id", text)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "description": description, "schema": dict(schema)}
        for name, (description, schema) in described.items()
    ]
    parameters[2] |= {"style": "form", "explode": False}
    return {"parameters": parameters}


def describe_answer() -> dict[str, Any]:
    """Return the OpenAPI response of a statement."""
    answer = success(f"The statement, at most {MOST_LINES} lines.", "UsageStatement")
    answer["content"]["text/csv"] = {"schema": {"type": "string"}}
    return answer


async def answer_usage(gateway: Gateway, request: Request, payer: Payer | None) -> Response:
    """Answer with the statement that the query asks for. Without a payer it covers all accounts or one by name."""
    now = gateway.clock()
    query = request.query_params.multi_items()
    question = usage_report.read_question(query, datetime.fromtimestamp(now, UTC).date(), everyone=payer is None)
    await gateway.settle_up(None if payer is None else payer.owners)
    if (question.format or _preferred(request)) == "csv":
        return await gateway.database.read(_write_csv, question, payer, now)
    return await gateway.database.read(_write_json, question, payer, now, gateway.settings.storage_quota)


def _preferred(request: Request) -> str:
    accepted = request.headers.get("accept", "").lower()
    return "csv" if "text/csv" in accepted and "application/json" not in accepted else "json"


# -- run in the store's thread, so that long statements do not block the event loop


def _write_csv(connection: Connection, question: Question, payer: Payer | None, now: float) -> Response:
    report = _look_up(connection, question, _account_of(connection, question, payer, now))
    headers = {"content-disposition": f'attachment; filename="{usage_report.filename(question)}"'}
    return Response(usage_report.as_csv(question, report.lines), headers=headers, media_type="text/csv")


def _write_json(
    connection: Connection, question: Question, payer: Payer | None, now: float, quota: int | None
) -> Response:
    account_id = _account_of(connection, question, payer, now)
    report = _look_up(connection, question, account_id)
    payer = payer or (Payer(account_id, "", "") if account_id else None)
    standings = balance_rows.standings(connection, payer._replace(tags=()), now) if payer else []
    standings += budget_rows.tag_standings(connection, account_id, now) if account_id else []
    statement = usage_report.as_json(question, report, [standing.describe() for standing in standings])
    return Json(statement | {"storage": _describe_storage(connection, account_id, quota)})


def _describe_storage(connection: Connection, account_id: str | None, quota: int | None) -> Any:
    if account_id is None:
        return None
    stored = storage_rows.get(connection, account_id)
    return {"bytes": stored.bytes, "quota": quota if stored.quota is None else stored.quota}


def _look_up(connection: Connection, question: Question, account_id: str | None) -> UsageReport:
    report = attribution_report.report(connection, question.of(account_id), MOST_LINES + 1)
    usage_report.check_length(report.lines)
    return report


def _account_of(connection: Connection, question: Question, payer: Payer | None, now: float) -> str | None:
    if payer is not None:
        return payer.account_id
    if question.account is None:
        return None
    account = account_rows.find(connection, question.account, now)
    if account is None:
        raise usage_report.refuse(
            Detail("account", "There is no such account. GET /admin/v1/accounts lists all accounts.")
        )
    return account.id
