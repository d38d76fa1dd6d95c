"""Usage reports: the parameters of a request for one, and the answer as JSON and CSV."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from penstock.catalog.params import shorten, unknown_name
from penstock.domain.money import format_usd
from penstock.errors import Detail, InvalidRequest
from penstock.store.queries.billing.attribution_report import DIMENSIONS, UsageQuery, UsageReport
from penstock.store.queries.billing.attribution_rows import MAX_DAILY_VALUES
from penstock.store.queries.billing.usage_rows import Group, Totals, UsageLine, names_of

USUAL_DAYS: Final = 30
MOST_LINES: Final = 10_000
FORMATS: Final = ("json", "csv")
KINDS: Final = ("chat", "job")
FILTERS: Final = (Group.MODEL, Group.KEY, Group.VENDOR, Group.KIND, *DIMENSIONS)
USUAL_TOP: Final = 20
MOST_TOP: Final = MAX_DAILY_VALUES
NAMES: Final = ("from", "to", "by", *(group.value for group in FILTERS), "top", "format")
"""Names of a report's parameters. Administrators also have `account`."""
SUMS: Final = (
    *("requests", "jobs", "failed", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("total_tokens", "cost", "estimated", "unpriced", "cache_write_tokens"),
)
"""New ones are last: spreadsheets refer to columns by their position."""
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that make a spreadsheet evaluate a text as a formula. The last four are full-width forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The parameters of a report, from the first to the last day."""

    first: date
    last: date
    by: tuple[Group, ...] = (Group.DAY,)
    filters: Mapping[Group, str] = field(default_factory=dict[Group, str])
    account: str | None = None
    """An account's name or id. Only administrators ask for one."""
    top: int = USUAL_TOP
    """The number of tags, end users or sessions with lines of their own."""
    format: str | None = None

    def of(self, account_id: str | None) -> UsageQuery:
        """Return the query for an account, or for all of them."""
        return UsageQuery(account_id, self.first, self.last, self.by, self.filters, self.top)


# -- the question


def read_question(query: Sequence[tuple[str, str]], today: date, *, everyone: bool = False) -> Question:
    """Parse the parameters of a report. `everyone` is for administrators, who may group by account."""
    given = {name: value.strip() for name, value in query}
    problems = list(_find_problems(query, given, everyone=everyone))
    if problems:
        raise refuse(*problems)
    last = date.fromisoformat(given["to"]) if "to" in given else today
    default = date.fromordinal(max(1, last.toordinal() - USUAL_DAYS + 1))
    first = date.fromisoformat(given["from"]) if "from" in given else default
    if first > last:
        raise refuse(Detail("from", f"Should not be after `to`, which is {last}, got {first}."))
    return Question(
        first=first,
        last=last,
        by=tuple(Group(name) for name in _split(given.get("by", "day"))),
        filters={group: given[group.value] for group in FILTERS if group.value in given},
        account=given.get("account"),
        top=int(given.get("top", USUAL_TOP)),
        format=given.get("format"),
    )


def refuse(*problems: Detail) -> InvalidRequest:
    """Return an error with all problems of the parameters, the first of them in the message."""
    first = problems[0]
    return InvalidRequest(f"{first.loc}: {first.message}", code=first.code, param=first.loc, details=problems)


def _find_problems(query: Sequence[tuple[str, str]], given: Mapping[str, str], *, everyone: bool) -> Iterator[Detail]:
    known = (*NAMES, "account") if everyone else NAMES
    times = Counter(name for name, _ in query)
    for name, value in given.items():
        if name not in known:
            yield Detail(name[:100], unknown_name("parameter", name, known), "unknown_param")
        elif times[name] > 1:
            yield Detail(name, "Should be given once; several groups are separated by commas.")
        elif problem := _find_problem(name, value, everyone=everyone):
            yield Detail(name, f"Should be {problem}, got {shorten(value)}.")
    wanted = {each.value for each in DIMENSIONS} & {*given, *_split(given.get("by", ""))}
    if len(wanted) > 1:
        yield Detail("by", f"Should name one of {', '.join(sorted(wanted))}: sums are kept for each alone.")


def _find_problem(name: str, value: str, *, everyone: bool) -> str | None:
    """Return what a value should be instead, or None if it is valid."""
    match name:
        case "from" | "to":
            return None if _is_day(value) else "a day such as 2026-01-31"
        case "by":
            allowed = [group.value for group in Group if everyone or group is not Group.ACCOUNT]
            groups = _split(value)
            good = set(groups) <= set(allowed) and len(set(groups)) == len(groups)
            return None if good else f"one or several of {','.join(allowed)}, each once and separated by commas"
        case "kind" | "format":
            choices = KINDS if name == "kind" else FORMATS
            return None if value in choices else f"one of {', '.join(choices)}"
        case "top":
            is_count = value.isascii() and value.isdigit() and len(value) < 6 and 0 < int(value) <= MOST_TOP
            return None if is_count else f"an integer from 1 to {MOST_TOP}"
        case _:
            return None if 0 < len(value) <= 200 and value.isprintable() else "1 to 200 printable characters"


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _is_day(text: str) -> bool:
    """Return whether it is a date as YYYY-MM-DD. Python alone would also accept weeks and other spellings."""
    try:
        return bool(DAY.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


# -- the answer


def check_length(lines: Sequence[UsageLine]) -> None:
    """Raise if a report has too many lines. The caller may have read one more than allowed."""
    if len(lines) > MOST_LINES:
        raise InvalidRequest(
            f"by: There are more than {MOST_LINES} lines.",
            param="by",
            suggestion="Ask for fewer days with `from` and `to`, for fewer groups in `by`, or for one "
            "`model`, `key`, `vendor` or `kind`.",
        )


def as_json(question: Question, report: UsageReport, budgets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the whole report."""
    return {
        "object": "usage",
        "from": question.first.isoformat(),
        "to": question.last.isoformat(),
        "by": [group.value for group in question.by],
        "currency": "USD",
        "data": [{**line.about, **dict(zip(SUMS, _values(line.totals), strict=True))} for line in report.lines],
        "total": dict(zip(SUMS, _values(report.total), strict=True)),
        "budgets": list(budgets),
    }


def as_csv(question: Question, lines: Sequence[UsageLine]) -> str:
    """Return the lines for a spreadsheet, without their sum."""
    text = io.StringIO()
    writer = csv.writer(text)
    about = [name for group in question.by for name in names_of(group)]
    writer.writerow((*about, *SUMS))
    for line in lines:
        writer.writerow((*map(_disarm, line.about.values()), *_values(line.totals)))
    return text.getvalue()


def filename(question: Question) -> str:
    """Return the name under which a CSV is saved."""
    return f"usage_{question.first}_{question.last}.csv"


def _disarm(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def _values(totals: Totals) -> tuple[int | str, ...]:
    """Return the values in the order of SUMS."""
    requests, jobs, failed, prompt, completion, cached, writes, reasoning, estimated, unpriced, cost = totals
    tokens = (prompt, completion, cached, reasoning, prompt + completion)
    return requests, jobs, failed, *tokens, amount(cost), estimated, unpriced, writes


def amount(nanos: int) -> str:
    """Return an amount in USD. It is negative where more was given back than was counted."""
    return format_usd(nanos) if nanos >= 0 else f"-{format_usd(-nanos)}"
