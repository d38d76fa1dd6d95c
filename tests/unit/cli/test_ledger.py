"""`penstock ledger check` beside servers that work."""

from sqlalchemy import Connection, func, insert, select
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.store.connect import make_engine, transact
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
