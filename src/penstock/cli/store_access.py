"""Settings and store for the commands that work without a server."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.cli.printing import fail

if TYPE_CHECKING:  # slow to load, and not every command needs them
    from penstock.sealing.master_keys import MasterKeys
    from penstock.settings.tables import Settings
    from penstock.store.database import Connection, Engine


def load_settings(data: Path | None, config: Path | None, **server: Any) -> "Settings":
    """Return the settings, overridden by this command's options. Raise SettingsError if they are invalid."""
    from penstock.settings.tables import load

    overrides = {"data": data} | {f"server.{name}": value for name, value in server.items()}
    return load(config, os.environ, overrides)


def read_master_keys(settings: "Settings") -> "MasterKeys":
    """Return the master keys of these settings and of the data folder."""
    from penstock.sealing.master_keys import MasterKeys

    table = settings.sealing
    given = (None if key is None else key.get_secret_value() for key in (table.master_key, table.previous_key))
    return MasterKeys.of(settings.data, *given)


def private_places(settings: "Settings") -> tuple[Path, Path | None, Path | None]:
    """Return the paths that other users must not read: the data folder, the store's file, the assets."""
    from penstock.store.connect import is_file, path_of

    assets = urlsplit(settings.assets_url)
    return (
        settings.data,
        path_of(settings.database_url) if is_file(settings.database_url) else None,
        Path(unquote(assets.path)) if assets.scheme == "file" else None,
    )


@contextmanager
def open_store(settings: "Settings") -> "Generator[Engine]":
    """Open the store and upgrade its schema, also beside a running server. It is created if missing."""
    from penstock.storage.permissions import private_umask, tighten

    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with private_umask(settings.data):
        tighten(*private_places(settings))
        with _open_store(settings) as engine:
            yield engine


@contextmanager
def _open_store(settings: "Settings") -> "Generator[Engine]":
    from penstock.store.connect import StoreUnusable, database_errors, is_file, make_engine, path_of
    from penstock.store.schema import SchemaTooNew, upgrade

    if is_file(settings.database_url):
        path_of(settings.database_url).parent.mkdir(parents=True, exist_ok=True)
    engine = make_engine(settings.database_url)
    try:
        with database_errors():
            upgrade(engine)
            yield engine
    except SchemaTooNew as error:
        fail(str(error))
    except StoreUnusable as error:
        what, fields = f"The store {describe_store(settings)} cannot be used: {error}.", {"type": "server_error"}
        fail(what, "Run `penstock doctor` for details.", fields=fields)
    finally:
        engine.dispose()


@contextmanager
def change_store(settings: "Settings") -> "Generator[Connection]":
    """Open a transaction on the store. It is committed unless the block raises."""
    from penstock.store.connect import transact
    from penstock.store.database import RUNG

    with open_store(settings) as engine, transact(engine) as connection:
        connection.info[RUNG] = set[str]()  # no listeners here: servers poll for changes
        yield connection


@contextmanager
def read_store(settings: "Settings") -> "Generator[Connection]":
    """Open a connection for reading."""
    with open_store(settings) as engine, engine.connect() as connection:
        yield connection


def describe_store(settings: "Settings") -> str:
    """Return the store's path or URL, with the password hidden."""
    from penstock.store.connect import is_file, path_of, without_password

    url = settings.database_url
    return str(path_of(url)) if is_file(url) else without_password(url)


def load_all_settings(data: Path | None, config: Path | None) -> "Settings":
    """Return the settings, with the vendors and models that were added while servers ran."""
    from penstock.configuration.offline import extend

    settings = load_settings(data, config)
    with read_store(settings) as connection:
        return extend(connection, settings, read_master_keys(settings))
