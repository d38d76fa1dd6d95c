"""`penstock usage`: usage and cost from the store, also while a server runs."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import draw, expected_errors, fail, make_console, print_json
from penstock.cli.store_access import load_settings, open_store
from penstock.domain.money import NANOS

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need them
    from penstock.billing.usage_report import Question
    from penstock.store.database import Connection
    from penstock.store.queries.billing.attribution_report import UsageReport
    from penstock.store.queries.billing.usage_rows import Totals

BAR = 16
EIGHTHS = " ▏▎▍▌▋▊▉█"
COLUMNS = ("requests", "jobs", "failed", "prompt_tokens", "completion_tokens")


def usage(
    *,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this account, by its name or id; default: all.")
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="The first day, UTC; default: 30 days in all.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DATE", help="The last day, UTC; default: today.")] = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="GROUPS",
            help="One or more of day,month,model,key,vendor,kind,account, and one of tag,end_user,session.",
        ),
    ] = "day",
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only requests with this tag.")] = None,
    end_user: Annotated[str | None, typer.Option(metavar="USER", help="Only requests for this end user.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only requests of this session.")] = None,
    top: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Tags, end users or sessions with lines of their own; 20.")
    ] = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")] = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show usage and cost."""
    from penstock.billing import usage_report

    if as_json and as_csv:
        fail("--json and --csv exclude each other.")
    with expected_errors():
        given = {"account": account, "from": first, "to": last, "by": by, "tag": tag, "end_user": end_user}
        question = _read({**given, "session": session, "top": None if top is None else str(top)})
        with open_store(load_settings(data, config)) as engine, engine.connect() as connection:
            report = _look_up(connection, question)
    if as_json:
        described = usage_report.as_json(question, report, [])
        del described["budgets"]  # see `penstock account show`
        print_json(described)
    elif as_csv:
        typer.echo(usage_report.as_csv(question, report.lines), nl=False)
    elif not report.lines:
        typer.echo(f"Nothing was used from {question.first} to {question.last}.")
    else:
        _print(question, report)


def _read(given: dict[str, str | None]) -> "Question":
    from penstock.billing import usage_report
    from penstock.errors import InvalidRequest

    today = datetime.fromtimestamp(time.time(), UTC).date()
    try:
        query = [(name, value) for name, value in given.items() if value is not None]
        return usage_report.read_question(query, today, everyone=True)
    except InvalidRequest as error:
        fail(f"--{error.message}")


def _look_up(connection: "Connection", question: "Question") -> "UsageReport":
    from penstock.billing.usage_report import MOST_LINES, check_length
    from penstock.errors import AccountNotFound, InvalidRequest
    from penstock.store.queries.accounts import account_rows
    from penstock.store.queries.billing import attribution_report

    account_id = None
    if question.account is not None:
        account = account_rows.find(connection, question.account, time.time())
        if account is None:
            raise AccountNotFound(f"There is no account `{question.account}`.")
        account_id = account.id
    report = attribution_report.report(connection, question.of(account_id), MOST_LINES + 1)
    try:
        check_length(report.lines)
    except InvalidRequest as error:
        fail(f"--{error.message}", "Ask for fewer days, fewer groups or one account.")
    return report


def _print(question: "Question", report: "UsageReport") -> None:
    """Print a table of the groups with a bar for each cost, and the sum."""
    from rich.table import Table
    from rich.text import Text

    from penstock.store.queries.billing.usage_rows import names_of

    console, lines, sums = make_console(), report.lines, report.total
    about = [name for group in question.by for name in names_of(group) if name != "account_id"]
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True, footer_style="bold")
    for number, name in enumerate(about):
        table.add_column(name.replace("_", " "), "" if number else "total", no_wrap=number == 0, overflow="fold")
    for name, footer in zip((*COLUMNS, "cost (USD)"), _cells(sums), strict=True):
        table.add_column(name.replace("_", " "), footer, justify="right", no_wrap=True)
    table.add_column("", min_width=BAR, no_wrap=True)
    most = max(line.totals.cost for line in lines)
    for line in lines:
        cells = (*(line.about[name] for name in about), *_cells(line.totals))
        bar = _bar(line.totals.cost, most, ascii_only=console.options.ascii_only)
        table.add_row(*(Text(cell) for cell in cells), Text(bar, "cyan"))  # as it is: a name may look like markup
    draw(console, table)
    if sums.unpriced:
        typer.echo(f"Not included in the cost, because their price is unknown: {sums.unpriced:,}.", err=True)


def _cells(totals: "Totals") -> tuple[str, ...]:
    counts = totals._asdict()
    return (*(f"{counts[name]:,}" for name in COLUMNS), f"{totals.cost / NANOS:,.4f}")


def _bar(cost: int, most: int, *, ascii_only: bool) -> str:
    """Return a bar as long as the cost's share of the highest. Any cost above 0 is visible."""
    if cost <= 0:
        return ""
    eighths = max(1, cost * BAR * 8 // most)
    if ascii_only:
        return "#" * -(-eighths // 8)
    return EIGHTHS[-1] * (eighths // 8) + EIGHTHS[eighths % 8].strip()
