"""Opens the store that a URL names. Each database driver is loaded only where it is used."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from penstock.errors import StoreUnavailable
from penstock.store import schema
from penstock.store.database import Database

FILE: Final = "sqlite:///"
FATAL: Final = ("does not exist", "authentication failed", "no pg_hba.conf entry", "invalid")
"""Words in PostgreSQL's permanent errors. Without them, the server is away and may come back."""


class StoreRefused(Exception):
    """The store can be reached but not used: wrong credentials or an unknown schema."""


class StoreUnusable(Exception):
    """The database raised an error. The message is in its own words."""


@contextmanager
def database_errors() -> Generator[None]:
    """Raise StoreUnusable for whatever the database raises within the block."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreUnusable(str(getattr(error, "orig", None) or error)) from error


def is_file(url: str) -> bool:
    """Return whether the store is a file of this machine. Otherwise it is a PostgreSQL server."""
    return url.startswith(FILE)


def path_of(url: str) -> Path:
    """Return the path of a store that is a file."""
    return Path(url.removeprefix(FILE))


def password_of(url: str) -> str | None:
    """Return the password that stands in the store's URL."""
    return make_url(url).password


def without_password(url: str) -> str:
    """Return the store's URL in a form that may be shown."""
    return make_url(url).render_as_string(hide_password=True)


def make_engine(url: str) -> Engine:
    """Return an engine for a command that runs a few queries."""
    if is_file(url):
        from penstock.store.sqlite.database import open_file  # noqa: PLC0415  see above

        return open_file(path_of(url))
    from penstock.store.postgres.database import make_pool  # noqa: PLC0415

    return make_pool(url, session="-c timezone=UTC")  # no timeouts for a user at a terminal


@contextmanager
def transact(engine: Engine) -> Generator[Connection]:
    """Open a transaction for a command. It is committed only if the block succeeds."""
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            yield connection
        return
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")


@contextmanager
def snapshot(engine: Engine) -> Generator[Connection]:
    """Open a connection on which every query sees the store at one moment, also while a server writes."""
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection
        connection.rollback()


def find_damage(connection: Connection) -> str | None:
    """Return what SQLite finds wrong with its file. A PostgreSQL server looks after its own."""
    if connection.dialect.name != "sqlite":
        return None
    found = str(connection.exec_driver_sql("PRAGMA quick_check").scalar())
    return None if found == "ok" else found


def prepare(engine: Engine) -> None:
    """Upgrade the store to this version's schema. Raise StoreUnavailable if it is away, StoreRefused if unusable."""
    try:
        schema.upgrade(engine)
    except schema.SchemaTooNew as error:
        raise StoreRefused(str(error)) from error
    except OperationalError as error:
        if any(word in str(error.orig) for word in FATAL):
            where = engine.url.set(drivername="postgresql").render_as_string(hide_password=True)
            raise StoreRefused(f"The store {where} cannot be used: {error.orig}") from error
        raise StoreUnavailable(retry_after=1) from error


def open_database(url: str) -> Database:
    """Return the database, for a server or a worker."""
    if is_file(url):
        from penstock.store.sqlite.database import SqliteDatabase  # noqa: PLC0415

        path_of(url).parent.mkdir(parents=True, exist_ok=True)
        return SqliteDatabase(path_of(url))
    from penstock.store.postgres.database import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(url)
