"""A store gets this version's schema: from nothing or any earlier version, once, by one of many; never from a newer."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, Engine, MetaData, Table, insert, select, text
from store.sample_jobs import NOW, make_job

from penstock.domain import jobs as job_moves
from penstock.domain.api_keys import NO_LIMITS
from penstock.store import schema
from penstock.store.connect import make_engine, open_database, transact
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.jobs import event_rows, job_rows, open_job_rows
from penstock.store.tables import SCHEMA_VERSION, metadata

NEXT = f"{int(SCHEMA_VERSION) + 1:04}"
EARLIER = [f"{number:04}" for number in range(1, int(SCHEMA_VERSION))]
MIGRATE = """
import sys
from penstock.store import schema
from penstock.store.connect import make_engine
import alembic.command, alembic.config
print("ready", flush=True)
for line in sys.stdin:
    engine = make_engine(line.strip())
    schema.upgrade(engine)
    engine.dispose()
    print("done", flush=True)
"""


@pytest.fixture
def engine(empty_url: str) -> Iterator[Engine]:
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


def run(engine: Engine, words: str, **values: Any) -> None:
    with transact(engine) as connection:
        connection.execute(text(words), values)


def migrate(engine: Engine) -> None:
    """Every migration, one after the other: a store that is empty gets its tables at once."""
    schema.upgrade(engine, "0001")
    schema.upgrade(engine)


def told_support(engine: Engine) -> dict[str, str]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT version, oldest FROM schema_support"))
        return {row.version: row.oldest for row in rows}


def definitions(engine: Engine) -> dict[str, str]:
    """Every table and index as the database itself keeps it, whatever the spacing and quotes."""
    if engine.dialect.name == "postgresql":
        words = """
            SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
            UNION ALL
            SELECT table_name || '.' || column_name,
                   concat_ws(' ', data_type, is_nullable, collation_name, column_default)
            FROM information_schema.columns WHERE table_schema = 'public'
        """
    else:
        words = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    with engine.connect() as connection:
        rows = connection.execute(text(words)).all()
    ours = [(name, sql) for name, sql in rows if not name.startswith("sqlite")]
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in ours}


def test_an_empty_store_gets_this_version(engine):
    assert schema.current_version(engine) is None
    schema.upgrade(engine)
    assert schema.current_version(engine) == SCHEMA_VERSION


# -- from earlier versions, with data


def made_up(table: Table, column: Column[Any], number: int) -> Any:
    """A value that the column can hold."""
    if column.name == "document":
        return job_rows.encode(make_job(id=f"job_{number}", state=job_moves.State.RUNNING))
    known = {("jobs", "state"): "running", ("jobs", "done"): 0, ("jobs", "owner"): None}
    if column.type.python_type is bytes and (column.primary_key or column.name.endswith("_hash")):
        return f"{column.name} {number}".encode()
    known[table.name, "id"] = f"{table.name[:-1]}_{number}"
    if (table.name, column.name) in known:
        return known[table.name, column.name]
    return {str: f"{column.name} {number}", int: number, float: NOW + number, bytes: b"[]"}[column.type.python_type]


def fill(engine: Engine) -> dict[str, list[dict[str, Any]]]:
    """Some rows for every table; what was written, by table."""
    found, written = MetaData(), dict[str, list[dict[str, Any]]]()
    found.reflect(engine)
    with transact(engine) as connection:
        for table in found.sorted_tables:
            if table.name in ("alembic_version", "schema_support"):
                continue
            columns = [column for column in table.columns if column.name != "position" or not column.primary_key]
            rows = [{column.name: made_up(table, column, number) for column in columns} for number in (1, 2, 3)]
            connection.execute(insert(table), rows)
            written[table.name] = rows
    return written


@pytest.mark.parametrize("version", EARLIER)
def test_a_store_of_an_earlier_version_keeps_all_that_it_has(engine, version):
    schema.upgrade(engine, version)
    assert schema.current_version(engine) == version
    written = fill(engine)
    assert len(written) >= 8
    schema.upgrade(engine)
    assert schema.current_version(engine) == SCHEMA_VERSION
    with engine.connect() as connection:
        for name, rows in written.items():
            columns = {column.name: column for column in metadata.tables[name].columns}  # not by what code calls them
            kept = connection.execute(select(*(columns[column].label(column) for column in rows[0]))).mappings()
            kept = [dict(row) for row in kept]
            assert all(row in kept for row in rows), name
    with transact(engine) as connection:
        connection.info["rung"] = set()
        job_rows.insert_all(connection, [make_job(id="job_new")], NOW)
        claimed = {job.id for _, job in open_job_rows.claim(connection, "me", 10)}
        assert claimed == {"job_1", "job_2", "job_3", "job_new"}
        assert [told.sequence for told in event_rows.of_jobs(connection, [("job_new", 0)], 10)["job_new", 0]] == [1]


def test_a_store_of_the_first_version_keeps_its_keys(engine):
    schema.upgrade(engine, "0001")
    run(engine, "INSERT INTO accounts VALUES ('acct_1', 'default', 1.0)")
    run(
        engine,
        "INSERT INTO keys VALUES ('p', 'acct_1', 'n', :hash, 'a b', 'chat', 1.0, 2.0, NULL)",
        hash=b"1",
    )
    schema.upgrade(engine)
    with engine.connect() as connection:
        key = key_rows.get(connection, "p")
    assert (key.models, key.expires_at, key.limits, key.lineage) == ({"a", "b"}, 2.0, NO_LIMITS, "p")


def test_upgrading_twice_changes_nothing(engine):
    schema.upgrade(engine)
    before = definitions(engine)
    schema.upgrade(engine)
    assert definitions(engine) == before


def test_the_newest_migration_is_the_version_this_code_speaks():
    files = sorted(path.name for path in (schema.MIGRATIONS / "versions").glob("*.py"))
    assert files[-1].split("_")[0] == SCHEMA_VERSION
    assert [name.split("_")[0] for name in files] == [f"{number:04}" for number in range(1, len(files) + 1)]


def test_every_version_says_which_code_may_serve_it(engine):
    migrate(engine)
    told = told_support(engine)
    assert told == schema.SUPPORTED
    assert sorted(told) == [f"{number:04}" for number in range(int(schema.FIRST_RECORDED), int(SCHEMA_VERSION) + 1)]
    assert all(oldest <= version for version, oldest in told.items())


def test_the_migrations_make_exactly_the_declared_tables(engine):
    migrate(engine)

    def is_here(thing: Any, _name: str, kind: str, *_: Any) -> bool:
        """Some indexes are PostgreSQL's alone."""
        condition = getattr(thing, "_ddl_if", None)
        return kind != "index" or condition is None or condition.dialect == engine.dialect.name

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": is_here})
        assert compare_metadata(context, metadata) == []


@pytest.mark.parametrize("empty_url", ["sqlite"], indirect=True)
def test_the_migrations_make_what_an_empty_store_gets_at_once(engine, tmp_path):
    """Alembic does not compare a partial index's condition, nor AUTOINCREMENT: SQLite's own text does."""
    migrate(engine)
    assert_same(engine, f"sqlite:///{tmp_path / 'at_once.db'}")


def test_the_migrations_make_what_an_empty_postgresql_gets_at_once(postgres_url, postgres_server):
    migrated = make_engine(postgres_url)
    migrate(migrated)
    with postgres_server.database() as url:
        assert_same(migrated, url)
    migrated.dispose()


def assert_same(migrated: Engine, empty_url: str) -> None:
    made = make_engine(empty_url)
    schema.upgrade(made)
    assert definitions(made) == definitions(migrated)
    assert told_support(made) == told_support(migrated)
    assert schema.current_version(made) == schema.current_version(migrated)
    made.dispose()


# -- newer ones


@pytest.mark.parametrize("newer", [NEXT, "0999", "9999"])
def test_a_newer_store_is_refused_and_left_alone(engine, newer):
    schema.upgrade(engine)
    run(engine, "UPDATE alembic_version SET version_num = :newer", newer=newer)
    with pytest.raises(schema.SchemaTooNew, match=newer) as refusal:
        schema.upgrade(engine)
    assert SCHEMA_VERSION in str(refusal.value)
    assert schema.current_version(engine) == newer


def move_on(engine: Engine, oldest: str) -> None:
    """As a later version's migration may: a column more, of which this code knows nothing."""
    schema.upgrade(engine)
    run(engine, "ALTER TABLE jobs ADD COLUMN colour TEXT")
    run(engine, "CREATE TABLE colours (name TEXT PRIMARY KEY)")
    run(engine, "INSERT INTO schema_support VALUES (:version, :oldest)", version=NEXT, oldest=oldest)
    run(engine, "UPDATE alembic_version SET version_num = :version", version=NEXT)


async def test_old_code_serves_a_newer_store_that_says_so(engine, empty_url):
    """A rolling upgrade: the new version has begun, the old one works on beside it."""
    move_on(engine, SCHEMA_VERSION)
    schema.upgrade(engine)
    assert schema.current_version(engine) == NEXT
    old = open_database(empty_url)
    theirs, ours = make_job(), make_job()
    try:
        await old.write(job_rows.insert_all, [theirs, ours], NOW)
        run(engine, "UPDATE jobs SET colour = 'blue' WHERE id = :id", id=theirs.id)  # the new version was here
        claims = {claim.job_id: claim for claim, _ in await old.write(open_job_rows.claim, "old", 2)}
        await old.write(job_rows.amend, claims[theirs.id], lambda job: job_moves.start(job, NOW), NOW)
        done = lambda job: job_moves.succeed(job, NOW + 1, (), ())  # noqa: E731
        finished = await old.write(job_rows.amend, claims[theirs.id], done, NOW)
        assert await old.read(job_rows.get, theirs.account_id, theirs.id) == finished
        listed = await old.read(job_rows.page, "acct_one", {}, None, 10)
        assert {job.id for job in listed} == {theirs.id, ours.id}
    finally:
        await old.close()
    with engine.connect() as connection:
        colours = {row.id: row.colour for row in connection.execute(text("SELECT id, colour FROM jobs"))}
    assert colours == {theirs.id: "blue", ours.id: None}


def test_old_code_refuses_a_newer_store_that_needs_new_code(engine):
    move_on(engine, NEXT)
    with pytest.raises(schema.SchemaTooNew):
        schema.upgrade(engine)


# -- many at once


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path) -> Iterator[list[str]]:
    """Several empty stores."""
    if request.param == "sqlite":
        yield [f"sqlite:///{tmp_path / f'{number}.db'}" for number in range(15)]
        return
    server = request.getfixturevalue("postgres_server")
    names = [server.create() for _ in range(4)]
    yield [server.url(name) for name in names]
    for name in names:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("stores", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.long
def test_processes_that_start_at_once_migrate_one_after_the_other(stores):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([sys.executable, "-c", MIGRATE], **pipes) for _ in range(3)]  # noqa: S603  ourselves
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 3
    for url in stores:
        for racer in racers:
            racer.stdin.write(f"{url}\n")
            racer.stdin.flush()
        told = [racer.stdout.readline() for racer in racers]
        assert told == ["done\n"] * 3, [racer.communicate()[1] for racer in racers]
        engine = make_engine(url)
        assert schema.current_version(engine) == SCHEMA_VERSION
        engine.dispose()
    for racer in racers:
        racer.communicate(timeout=300)


def test_a_migration_that_fails_leaves_the_store_as_it_was(engine):
    run(engine, "CREATE TABLE jobs (something TEXT)")  # in the way
    before = definitions(engine)
    with pytest.raises(Exception, match="already exists"):
        schema.upgrade(engine)
    assert definitions(engine) == before
    assert schema.current_version(engine) is None


@pytest.mark.parametrize("folder", ["100%", "who?", "a#b", "with space", "ünï"])
async def test_a_store_may_lie_in_any_folder(tmp_path, folder):
    url = f"sqlite:///{tmp_path / folder / 'penstock.db'}"
    database = open_database(url)
    schema.upgrade(database.engine)
    async with asyncio.timeout(300):
        secret = await database.write(key_rows.signing_secret)
        assert await database.read(key_rows.signing_secret) == secret
        await database.close()
    assert (tmp_path / folder / "penstock.db").exists()
