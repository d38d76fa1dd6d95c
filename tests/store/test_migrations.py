"""A store gets this version's schema: from nothing, once, by one of many; and never from a newer version."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine

from penstock.gateway import open_database
from penstock.keys import NO_LIMITS
from penstock.settings import load
from penstock.store import key_rows, schema
from penstock.store.sqlite import open_file
from penstock.store.tables import SCHEMA_VERSION, metadata

MIGRATE = """
import sys
from pathlib import Path
from penstock.store import schema
from penstock.store.sqlite import open_file
import alembic.command, alembic.config
print("ready", flush=True)
for line in sys.stdin:
    engine = open_file(Path(line.strip()))
    schema.upgrade(engine)
    engine.dispose()
    print("done", flush=True)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_file(tmp_path / "penstock.db")
    yield engine
    engine.dispose()


def definitions(engine: Engine) -> dict[str, str]:
    """Every table and index as SQLite keeps it, whatever the spacing and quotes."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").all()
    ours = [(name, sql) for name, sql in rows if not name.startswith(("alembic", "sqlite"))]
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in ours}


def test_an_empty_store_gets_this_version(engine):
    assert schema.current_version(engine) is None
    schema.upgrade(engine)
    assert schema.current_version(engine) == SCHEMA_VERSION


def test_a_store_of_the_first_version_keeps_its_keys(engine):
    schema.upgrade(engine, "0001")
    with engine.connect() as connection:
        connection.exec_driver_sql("INSERT INTO accounts VALUES ('acct_1', 'default', 1.0)")
        connection.exec_driver_sql("INSERT INTO keys VALUES ('p', 'acct_1', 'n', x'01', 'a b', 'chat', 1.0, 2.0, NULL)")
    schema.upgrade(engine)
    with engine.connect() as connection:
        key = key_rows.get(connection, "p")
    assert (key.models, key.expires_at, key.limits, key.lineage) == ({"a", "b"}, 2.0, NO_LIMITS, "p")
    assert schema.current_version(engine) == SCHEMA_VERSION


def test_upgrading_twice_changes_nothing(engine):
    schema.upgrade(engine)
    before = definitions(engine)
    schema.upgrade(engine)
    assert definitions(engine) == before


def test_the_newest_migration_is_the_version_this_code_speaks():
    files = sorted(path.name for path in (schema.MIGRATIONS / "versions").glob("*.py"))
    assert files[-1].split("_")[0] == SCHEMA_VERSION
    assert [name.split("_")[0] for name in files] == [f"{number:04}" for number in range(1, len(files) + 1)]


def test_the_migrations_make_exactly_the_declared_tables(engine):
    schema.upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_the_migrations_make_the_same_words_as_the_declared_tables(engine):
    """Alembic does not compare a partial index's condition, nor AUTOINCREMENT: SQLite's own text does."""
    schema.upgrade(engine)
    declared = create_engine("sqlite://")
    metadata.create_all(declared)
    assert definitions(engine) == definitions(declared)
    declared.dispose()


@pytest.mark.parametrize("newer", [f"{int(SCHEMA_VERSION) + 1:04d}", "0999", "9999"])
def test_a_newer_store_is_refused_and_left_alone(engine, newer):
    schema.upgrade(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = ?", (newer,))
    with pytest.raises(schema.SchemaTooNew, match=newer) as refusal:
        schema.upgrade(engine)
    assert SCHEMA_VERSION in str(refusal.value)
    assert schema.current_version(engine) == newer


def test_processes_that_start_at_once_migrate_one_after_the_other(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([sys.executable, "-c", MIGRATE], **pipes) for _ in range(3)]  # noqa: S603  ourselves
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 3
    for number in range(15):
        path = tmp_path / f"{number}.db"
        for racer in racers:
            racer.stdin.write(f"{path}\n")
            racer.stdin.flush()
        told = [racer.stdout.readline() for racer in racers]
        assert told == ["done\n"] * 3, [racer.communicate()[1] for racer in racers]
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(SCHEMA_VERSION,)]
        connection.close()
    for racer in racers:
        racer.communicate(timeout=10)


def test_a_migration_that_fails_leaves_the_store_as_it_was(engine):
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE jobs (something TEXT)")  # in the way
    before = definitions(engine)
    with pytest.raises(Exception, match="already exists"):
        schema.upgrade(engine)
    assert definitions(engine) == before
    assert schema.current_version(engine) is None


@pytest.mark.parametrize("folder", ["100%", "who?", "a#b", "with space", "ünï"])
async def test_a_store_may_lie_in_any_folder(tmp_path, folder):
    database = open_database(load(None, {}, {"data": tmp_path / folder}))
    async with asyncio.timeout(10):
        secret = await database.write(key_rows.signing_secret)
        assert await database.read(key_rows.signing_secret) == secret
        await database.close()
    assert (tmp_path / folder / "penstock.db").exists()
