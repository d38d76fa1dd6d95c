"""`penstock ledger`: prove the books, look an entry up, and give a charge back."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_table
from penstock.cli.store_access import change_store, load_settings, open_store
from penstock.domain.ids import timestamp
from penstock.domain.money import format_usd

if TYPE_CHECKING:  # takes long to load, and `penstock --help` does not need it
    from penstock.domain.ledger import LedgerEntry

app = typer.Typer(help="Prove the books, look an entry up, give a charge back.", no_args_is_help=True)
Subject = Annotated[str, typer.Argument(help="The id of a job (job_…) or of a chat request (chat_…).")]


@app.command()
def check(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Prove every balance from the entries, and every entry from what happened; exit code 1 if something is wrong."""
    from penstock.store.connect import snapshot
    from penstock.store.queries.billing import ledger_audit

    with expected_errors(), open_store(load_settings(data, config)) as engine, snapshot(engine) as connection:
        problems = ledger_audit.check(connection)
        counts = ledger_audit.count(connection)
    if as_json:
        print_json({"ok": not problems, "problems": problems, "checked": counts})
    else:
        for problem in problems:
            typer.echo(problem, err=True)
        told = ", ".join(f"{number} {name}" for name, number in counts.items())
        typer.echo(f"{'The books are right' if not problems else 'The books are wrong'}: {told}.")
    if problems:
        raise typer.Exit(1)


@app.command()
def show(subject: Subject, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Every entry of a job or a chat request."""
    from penstock.store.queries.billing import ledger_rows

    with expected_errors(), open_store(load_settings(data, config)) as engine, engine.connect() as connection:
        entries = [_describe(entry) for entry in ledger_rows.of_subject(connection, subject).values()]
    if as_json:
        print_json(entries)
    elif not entries:
        fail(f"The ledger has nothing of {subject}.", "It was free, or there is no such job.", code=1)
    else:
        print_table(
            ("entry", "amount", "overrun", "when", "key", "note"),
            [
                (each["kind"], each["amount"], each["overrun"], each["created_at"], each["key"], each["note"])
                for each in entries
            ],
        )


@app.command()
def refund(
    subject: Subject,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the ledger and the audit log.")],
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Give back what was charged for a job or a chat request, once."""
    from penstock.accounts import ledger_corrections
    from penstock.domain.accounts import Actor
    from penstock.store.queries.billing.ledger_rows import LedgerRefused

    with expected_errors(), change_store(load_settings(data, config)) as connection:
        try:
            amount = ledger_corrections.refund(connection, Actor.CLI, subject, reason, time.time())
        except LedgerRefused as error:
            fail(str(error), code=1)
    if as_json:
        print_json({"subject": subject, "refunded": format_usd(amount)})
    else:
        typer.echo(f"{format_usd(amount)} USD given back for {subject}.")


def _describe(entry: "LedgerEntry") -> dict[str, Any]:
    return {
        "kind": entry.kind.value,
        "amount": format_usd(entry.amount),
        "overrun": format_usd(entry.overrun),
        "account_id": entry.payer.account_id,
        "key": entry.payer.key_id,
        "accepted_at": timestamp(entry.at),
        "created_at": timestamp(entry.created_at),
        "note": entry.note,
    }
