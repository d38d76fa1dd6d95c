"""Schema upgrades, and the refusal of a store that this version does not support."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, insert, inspect, text

from penstock.store import locks
from penstock.store.queries.chat.content_tables import metadata
from penstock.store.tables import SCHEMA_VERSION, schema_support

MIGRATIONS = Path(__file__).with_name("migrations")
FIRST_RECORDED: Final = "0004"
"""Stores of this schema and later record which code may use them."""
SUPPORTED: Final = {"0004": "0004"} | {f"{number:04}": "0005" for number in range(5, int(SCHEMA_VERSION) + 1)}
"""The oldest schema version whose code may use a store, by the store's version."""
VERSIONS: Final = text(
    "CREATE TABLE alembic_version "
    "( version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)
SUPPORT: Final = text("SELECT oldest FROM schema_support WHERE version = :version")


class SchemaTooNew(Exception):
    """A newer version has changed the store beyond what this one supports."""


def current_version(engine: Engine) -> str | None:
    """Return the store's schema version, or None for an empty store."""
    with engine.connect() as connection:
        return version_of(connection)


def version_of(connection: Connection) -> str | None:
    """Return the schema version, given a connection."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def check(connection: Connection, known: str = SCHEMA_VERSION) -> None:
    """Raise if code of this schema cannot use the store. A newer store may record that it can."""
    version = version_of(connection)
    if version is None or version <= known:
        return
    oldest = connection.execute(SUPPORT, {"version": version}).scalar() if known >= FIRST_RECORDED else None
    if oldest is None or oldest > known:
        raise SchemaTooNew(
            f"The store has schema {version}, this version of Penstock knows {known}: "
            "start the newer version, or use another store."
        )


def upgrade(engine: Engine, wanted: str = SCHEMA_VERSION) -> None:
    """Create the tables of an empty store, or run the missing migrations."""
    with engine.connect() as connection:
        version = version_of(connection)
        check(connection)
    if version is not None and version >= SCHEMA_VERSION:
        return
    with _locked_transaction(engine) as connection:
        version = version_of(connection)
        if version is None and wanted == SCHEMA_VERSION:
            _create(connection)
        elif (version or "") < wanted:  # otherwise another process was faster
            _migrate(connection, wanted)


def _create(connection: Connection) -> None:
    """Create the final tables directly: running all migrations would slow the first start."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(schema_support), [{"version": v, "oldest": o} for v, o in SUPPORTED.items()])
    connection.execute(VERSIONS)
    connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": SCHEMA_VERSION})


def _migrate(connection: Connection, wanted: str) -> None:
    """Run the migrations. Alembic is loaded only here, as it would slow every start."""
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, wanted)


@contextmanager
def _locked_transaction(engine: Engine) -> Generator[Connection]:
    """Open a transaction with the schema lock: starting processes migrate one after the other."""
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
            yield connection
            connection.exec_driver_sql("COMMIT")
            return
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        locks.hold(connection, "schema")
        yield connection
        connection.commit()
