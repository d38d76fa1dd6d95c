"""`penstock audit`: changes to accounts, keys, budgets and the ledger, and who made them."""

import json
import time
from typing import Annotated

import typer

from penstock.accounts.records import describe_entry
from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, print_json, print_table
from penstock.cli.store_access import load_settings, read_store
from penstock.domain.accounts import Action


def audit(
    *,
    account: Annotated[str | None, typer.Option(metavar="NAME", help="Only this account, by its name or id.")] = None,
    action: Annotated[Action | None, typer.Option(help="Only changes of this kind.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of entries.")] = 100,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show who changed what, newest first."""
    from penstock.accounts import administration
    from penstock.store.queries.accounts import audit_rows

    with expected_errors(), read_store(load_settings(data, config)) as connection:
        account_id = None if account is None else administration.get_account(connection, account, time.time()).id
        found = [describe_entry(entry) for entry in audit_rows.page(connection, account_id, action, None, limit)]
    if as_json:
        print_json(found)
        return
    columns = ("when", "actor", "action", "subject", "detail")
    print_table(
        columns,
        [
            (
                entry["created_at"][:19],
                entry["actor"],
                entry["action"],
                entry["subject"],
                json.dumps(entry["detail"], ensure_ascii=False)[1:-1],
            )
            for entry in found
        ],
    )
