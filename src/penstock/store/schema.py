"""Brings a store to this version's schema, and refuses one that this version's code cannot serve."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, insert, inspect, text

from penstock.store import locks
from penstock.store.tables import SCHEMA_VERSION, metadata, schema_support

MIGRATIONS = Path(__file__).with_name("migrations")
FIRST_TOLD: Final = "0004"
"""Since this version a store says which code may serve it."""
SUPPORTED: Final = {"0004": "0004", "0005": "0005", "0006": "0005", "0007": "0005", "0008": "0005"}
"""Of each version since, the oldest whose code may."""
VERSIONS: Final = text(
    "CREATE TABLE alembic_version "
    "( version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)
SUPPORT: Final = text("SELECT oldest FROM schema_support WHERE version = :version")


class SchemaTooNew(Exception):
    """The store was made by a newer version, and is no longer what this one knows."""


def current_version(engine: Engine) -> str | None:
    """The store's schema version; None for an empty store."""
    with engine.connect() as connection:
        return version_of(connection)


def version_of(connection: Connection) -> str | None:
    """The same, on a connection."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def check(connection: Connection, known: str = SCHEMA_VERSION) -> None:
    """Refuse a store that code of this schema cannot serve; a newer one may say that it can."""
    version = version_of(connection)
    if version is None or version <= known:
        return
    oldest = connection.execute(SUPPORT, {"version": version}).scalar() if known >= FIRST_TOLD else None
    if oldest is None or oldest > known:
        raise SchemaTooNew(
            f"The store has schema {version}, this version of Penstock knows {known}: "
            "start the newer version, or use another store."
        )


def upgrade(engine: Engine, wanted: str = SCHEMA_VERSION) -> None:
    """Make the tables of an empty store, or run the migrations that are missing."""
    with engine.connect() as connection:
        version = version_of(connection)
        check(connection)
    if version is not None and version >= SCHEMA_VERSION:
        return
    with _alone(engine) as connection:
        version = version_of(connection)
        if version is None and wanted == SCHEMA_VERSION:
            _create(connection)
        elif (version or "") < wanted:  # else another process was faster
            _migrate(connection, wanted)


def _create(connection: Connection) -> None:
    """What all migrations would make, at once: a good part of a first start would go by with them."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(schema_support), [{"version": v, "oldest": o} for v, o in SUPPORTED.items()])
    connection.execute(VERSIONS)
    connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": SCHEMA_VERSION})


def _migrate(connection: Connection, wanted: str) -> None:
    """Alembic is loaded only here: it would slow every start."""
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, wanted)


@contextmanager
def _alone(engine: Engine) -> Generator[Connection]:
    """Two starting processes migrate one after the other; what fails leaves the store as it was."""
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
