"""Options for limits and budgets of accounts and keys, and the output of their records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from penstock.accounts.records import describe_account, describe_key
from penstock.cli.printing import fail, print_table
from penstock.domain.accounts import MAX_LIMIT, Account, Allowance, read_cap, read_label, read_size, read_time_zone
from penstock.domain.api_keys import ApiKey, Limits
from penstock.domain.attribution.labels import MAX_KEY_TAGS, read_tag, read_tags
from penstock.domain.budgets import Period

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need it
    from penstock.store.database import Connection

# -- options

RequestsPerMinute = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=MAX_LIMIT, help="Maximum requests per minute; 0: no limit."),
]
TokensPerMinute = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=MAX_LIMIT, help="Maximum chat tokens per minute; 0: no limit."),
]
ConcurrentJobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=MAX_LIMIT, help="Maximum jobs open at once; 0: no limit."),
]
ConcurrentStreams = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, max=MAX_LIMIT, help="Maximum streams open at once; 0: no limit."),
]
StorageQuota = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Maximum size of files and results, such as 500MB or 20GB; default: as in the settings.",
    ),
]
BudgetAmount = Annotated[
    str | None, typer.Option("--budget", metavar="USD", help="Maximum spending in a period, such as 10 or 0.50.")
]
BudgetPeriod = Annotated[
    Period, typer.Option("--budget-period", help="Period of the budget: in total, or for each day or month.")
]
BudgetZone = Annotated[
    str, typer.Option("--budget-time-zone", metavar="ZONE", help="Time zone of days and months, such as Europe/Berlin.")
]
Amount = Annotated[str | None, typer.Option("--amount", metavar="USD", help="Maximum spending, such as 10 or 0.50.")]
OfPeriod = Annotated[Period, typer.Option("--period", help="Period of the budget: in total, or for each day or month.")]
TimeZone = Annotated[
    str, typer.Option("--time-zone", metavar="ZONE", help="Time zone of days and months, such as Europe/Berlin.")
]
Remove = Annotated[bool, typer.Option("--remove", help="Remove the period's budget.")]


# -- reading options


def check_label(option: str, text: str) -> str:
    """Return a valid name for a key, or fail."""
    try:
        return read_label(text)
    except ValueError as error:
        fail(f"{option}: {error}.")


def check_tag(option: str, text: str) -> str:
    """Return a valid tag, or fail."""
    try:
        return read_tag(text)
    except ValueError as error:
        fail(f"{option}: {error}.")


def check_tags(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Return the fixed tags of a key, or fail."""
    try:
        return read_tags(texts or (), MAX_KEY_TAGS)
    except ValueError as error:
        fail(f"--tag: {error}.")


def make_limits(limits: Limits, **given: int | None) -> Limits:
    """Return the limits with the given ones replaced. 0 removes a limit."""
    known = {name: getattr(limits, name) for name in given}
    return Limits(**{name: known[name] if limit is None else limit or None for name, limit in given.items()})


def read_quota(text: str | None, before: int | None = None) -> int | None:
    """Return the quota in bytes. `default` removes it, None keeps the former one."""
    if text is None or text == "default":
        return before if text is None else None
    try:
        return read_size(text)
    except ValueError as error:
        fail(f"--storage-quota: {error}.")


def read_allowances(amount: str | None, period: Period, zone: str) -> tuple[Allowance, ...]:
    """Return the budget of a new account or key, if any."""
    return () if amount is None else (read_allowance("--budget", amount, period, "--budget-time-zone", zone),)


def read_allowance(option: str, amount: str, period: Period, zone_option: str, zone: str) -> Allowance:
    """Return a budget from its options, or fail with the option's name."""
    try:
        cap = read_cap(amount)
    except ValueError as error:
        fail(f"{option}: {error}.")
    try:
        return Allowance(period=period, cap=cap, time_zone=read_time_zone(zone))
    except ValueError as error:
        fail(f"{zone_option}: {error}.")


# -- printing


def describe_accounts(connection: "Connection", accounts: Sequence[Account], now: float) -> list[dict[str, Any]]:
    """Return the records of accounts, with their budgets."""
    from penstock.store.queries.billing import budget_rows

    standings = budget_rows.standings(connection, [account.id for account in accounts], now)
    described: list[dict[str, Any]] = []
    for account in accounts:
        of_tags = budget_rows.tag_standings(connection, account.id, now)
        described.append(describe_account(account, standings[account.id], of_tags))
    return described


def describe_keys(connection: "Connection", keys: Sequence[ApiKey], now: float) -> list[dict[str, Any]]:
    """Return the records of keys, with their budgets."""
    from penstock.store.queries.billing import budget_rows

    standings = budget_rows.standings(connection, [key.lineage for key in keys], now)
    return [describe_key(key, standings[key.lineage], now) for key in keys]


def word_budgets(budgets: Iterable[Mapping[str, Any]]) -> str:
    """Return budgets as text, such as `3.20 of 10.00 per month`."""
    return ", ".join(
        f"{budget['spent']} of {budget['cap']} {'in all' if budget['period'] == 'total' else 'per ' + budget['period']}"
        for budget in budgets
    )


def word_limits(limits: Mapping[str, int | None]) -> str:
    """Return limits as text, such as `concurrent jobs 3`."""
    return ", ".join(f"{name.replace('_', ' ')} {limit}" for name, limit in limits.items() if limit is not None)


def print_record(record: Mapping[str, Any]) -> None:
    """Print a record as a table with a line for each field and budget."""
    apart = ("object", "limits", "budgets", "tag_budgets", "storage", "tags")
    rows = [(name, _word(value)) for name, value in record.items() if name not in apart]
    if "storage" in record:
        kept, quota = record["storage"]["bytes"], record["storage"]["quota"]
        rows.append(("storage", f"{kept} bytes" + ("" if quota is None else f" of {quota}")))
    rows += [(name.replace("_", " "), str(limit)) for name, limit in record["limits"].items() if limit is not None]
    if "tags" in record:
        rows.append(("tags", ", ".join(record["tags"]) or "none"))
    for budget in (*record["budgets"], *record.get("tag_budgets", ())):
        state = f"{budget['spent']} spent and {budget['held']} held of {budget['cap']} USD"
        again = f"; resets at {budget['resets_at']}" if budget["resets_at"] else ""
        of = f" of tag {budget['tag']}" if "tag" in budget else ""
        rows.append((f"budget{of}, {budget['period']}", state + again))
    print_table(("field", "value"), rows)


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[Any]", value))) or "all"
    return "" if value is None else str(value)
