"""Connections to an empty store of either kind, on which tests try things out and undo them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, StaticPool, create_engine

from penstock.store.connect import make_engine
from penstock.store.database import RUNG
from penstock.store.schema import metadata


@contextmanager
def connected(url: str | None = None) -> Generator[Connection]:
    """A connection to the store of this URL, else to a new one in memory; transactions are the tests' own to begin."""
    engine = make_engine(url) if url else create_engine("sqlite://", poolclass=StaticPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if url is None:
            driver: Any = connection.connection.driver_connection
            driver.isolation_level = None
            metadata.create_all(connection)
        connection.info[RUNG] = set()
        yield connection
    engine.dispose()


SHADOW = """
CREATE SCHEMA IF NOT EXISTS shadow;
CREATE OR REPLACE FUNCTION shadow.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT to_timestamp(current_setting('shadow.now')::double precision) $$;
SET LOCAL search_path = shadow, pg_catalog, public;
"""
"""A function that shadows PostgreSQL's own, until the transaction is undone."""


def set_store_clock(connection: Connection, now: float) -> None:
    """Let PostgreSQL's clock show this time in this transaction. SQLite has no clock of its own."""
    if connection.dialect.name == "postgresql":
        driver: Any = connection.connection.driver_connection
        if "shadow" not in driver.execute("SHOW search_path").fetchone()[0]:
            driver.execute(SHADOW)
        driver.execute(f"SET LOCAL shadow.now = '{now!r}'")


@contextmanager
def undone(connection: Connection) -> Generator[Connection]:
    """A transaction of which nothing stays."""
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        yield connection
    finally:
        if is_sqlite:
            connection.exec_driver_sql("ROLLBACK")
        else:
            connection.rollback()


@contextmanager
def tried(connection: Connection) -> Generator[None]:
    """Within such a transaction: what fails undoes itself alone."""
    connection.exec_driver_sql("SAVEPOINT step")
    try:
        yield
    except BaseException:
        connection.exec_driver_sql("ROLLBACK TO step")
        raise
    finally:
        connection.exec_driver_sql("RELEASE step")
