"""Opens the store that a URL names; each kind of store is loaded only where it is used."""

from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from penstock.store.database import Database

FILE: Final = "sqlite:///"


def is_file(url: str) -> bool:
    """Whether the store is a file of this machine; else it is a PostgreSQL server."""
    return url.startswith(FILE)


def path_of(url: str) -> Path:
    """The file of a store that is one."""
    return Path(url.removeprefix(FILE))


def make_engine(url: str) -> Engine:
    """Connections to the store, for a command that asks a few questions."""
    if is_file(url):
        from penstock.store.sqlite import open_file  # noqa: PLC0415  see above

        return open_file(path_of(url))
    from penstock.store.postgres import make_pool  # noqa: PLC0415

    return make_pool(url)


def open_database(url: str) -> Database:
    """The store, for a server or a worker."""
    if is_file(url):
        from penstock.store.sqlite import SqliteDatabase  # noqa: PLC0415

        path_of(url).parent.mkdir(parents=True, exist_ok=True)
        return SqliteDatabase(path_of(url))
    from penstock.store.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(url)
