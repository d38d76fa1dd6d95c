"""`penstock ledger`: check the books, show entries and refund charges."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_table
from penstock.cli.store_access import change_store, load_settings, open_store
from penstock.domain.ids import timestamp
from penstock.domain.money import format_usd

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need it
    from penstock.domain.ledger import LedgerEntry
    from penstock.store.queries.retention.roll_up_rows import Checkpoint

app = typer.Typer(help="Check the books, show entries and refund charges.", no_args_is_help=True)
Subject = Annotated[str, typer.Argument(help="The id of a job (job_…) or of a chat request (chat_…).")]


@app.command()
def check(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Check all balances against the entries, and all entries against jobs and requests. Exit code 1 on an error."""
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
        checked = ", ".join(f"{number} {name}" for name, number in counts.items())
        typer.echo(f"{'The books are right' if not problems else 'The books are wrong'}: {checked}.")
    if problems:
        raise typer.Exit(1)


@app.command()
def show(subject: Subject, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Show all ledger entries of a job or chat request."""
    from penstock.store.queries.billing import ledger_rows

    with expected_errors(), open_store(load_settings(data, config)) as engine, engine.connect() as connection:
        entries = [_describe(entry) for entry in ledger_rows.of_subject(connection, subject).values()]
    if as_json:
        print_json(entries)
    elif not entries:
        fail(f"The ledger has no entry for {subject}.", "It was free, is in a checkpoint, or the id is wrong.", code=1)
    else:
        print_table(
            ("entry", "amount", "overrun", "when", "key", "note"),
            [
                (each["kind"], each["amount"], each["overrun"], each["created_at"], each["key"], each["note"])
                for each in entries
            ],
        )


@app.command()
def checkpoints(
    *,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Only those of this account.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="The highest number.")] = 100,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """List the sums of ledger entries that were removed because of their age."""
    from penstock.accounts import administration
    from penstock.store.queries.retention import roll_up_rows

    with expected_errors(), open_store(load_settings(data, config)) as engine, engine.connect() as connection:
        owner = None if account is None else administration.get_account(connection, account, time.time()).id
        found = [_describe_checkpoint(each) for each in roll_up_rows.checkpoints(connection, owner, limit)]
    if as_json:
        print_json(found)
    else:
        names = ("until", "account_id", "entries", "requests", "spent", "overrun")
        print_table(names, [tuple(str(each[name]) for name in names) for each in found])


@app.command()
def refund(
    subject: Subject,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, kept in the ledger and the audit log.")],
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Refund the charge of a job or chat request. Each can be refunded once."""
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


def _describe_checkpoint(checkpoint: "Checkpoint") -> dict[str, Any]:
    return {
        "until": timestamp(checkpoint.until),
        "account_id": checkpoint.account_id,
        "entries": checkpoint.entries,
        "requests": checkpoint.requests,
        "spent": format_usd(checkpoint.spent),
        "overrun": format_usd(checkpoint.overrun),
        "updated_at": timestamp(checkpoint.created_at),
    }


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
        "tags": list(entry.payer.tags),
    }
