"""Brings a store to this version's schema, and refuses one that this version's code cannot serve."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text

from penstock.store import locks
from penstock.store.tables import SCHEMA_VERSION

MIGRATIONS = Path(__file__).with_name("migrations")
FIRST_TOLD: Final = "0004"
"""Since this version a store says which code may serve it."""
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
    """Run the migrations that are missing. Alembic is loaded only if there are any: it would slow every start."""
    with engine.connect() as connection:
        version = version_of(connection)
        check(connection)
    if version is not None and version >= SCHEMA_VERSION:
        return
    from alembic import command  # noqa: PLC0415  see the docstring
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with _alone(engine) as connection:
        if (version_of(connection) or "") >= wanted:
            return  # another process was faster
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
