"""`penstock ledger` beside servers that work, and after old entries were removed."""

import json

from sqlalchemy import Connection, func, insert, select
from store.sample_completions import NOON, make_completion
from typer.testing import CliRunner

from penstock.accounts import administration
from penstock.cli.main import app
from penstock.domain.accounts import Actor
from penstock.store.connect import make_engine, transact
from penstock.store.queries.billing import completion_rows
from penstock.store.queries.retention import roll_up_rows
from penstock.store.tables import accounts


def test_the_books_are_looked_at_as_they_are_at_one_moment(store_url, tmp_path, monkeypatch):
    engine = make_engine(store_url)
    seen = list[int]()

    def look(connection: Connection) -> list[str]:
        for number in range(2):
            seen.append(connection.execute(select(func.count()).select_from(accounts)).scalar_one())
            with transact(engine) as other:
                other.execute(insert(accounts).values(id=f"acct_{number}", name=f"{number}", created_at=0.0))
        return []

    monkeypatch.setattr("penstock.store.queries.billing.ledger_audit.check", look)
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", store_url)
    result = CliRunner().invoke(app, ["ledger", "check", "--data", str(tmp_path)])
    with transact(engine) as connection:
        written = connection.execute(select(func.count()).select_from(accounts)).scalar_one()
    engine.dispose()
    assert result.exit_code == 0, result.output
    assert seen == [written - 2, written - 2]


def test_checkpoints_are_listed(store_url, tmp_path, monkeypatch):
    engine = make_engine(store_url)
    with transact(engine) as connection:
        account = administration.create_account(connection, Actor.CLI, "mill", NOON).id
        completion_rows.add_all(connection, "process_1", [make_completion(account_id=account)], NOON)
        roll_up_rows.roll_up(connection, account, NOON + 1, NOON + 2, 10)
    engine.dispose()
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", store_url)

    def ask(*options: str) -> str:
        result = CliRunner().invoke(app, ["ledger", "checkpoints", "--data", str(tmp_path), *options])
        assert result.exit_code == 0, result.output
        return result.output

    [checkpoint] = json.loads(ask("--json", "--account", "mill"))
    assert (checkpoint["account_id"], checkpoint["entries"], checkpoint["spent"]) == (account, 1, "0.0000007")
    assert account in ask()
