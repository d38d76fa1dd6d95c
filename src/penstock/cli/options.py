"""What the commands share: their options, the settings and the store behind them, and how they speak."""

import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from urllib.parse import unquote, urlsplit

import typer

if TYPE_CHECKING:  # these take long to load, and not every command needs them
    from rich.console import Console
    from rich.table import Table

    from penstock.settings.tables import Settings
    from penstock.store.database import Connection, Engine

# -- options of several commands

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="The folder of everything that is kept; default: the platform's data folder."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The settings file; default: config.toml in the data folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


LISTS = {
    "account_not_found": "`penstock account list` lists them.",
    "key_not_found": "`penstock key list` lists them.",
}
"""What to do about something that is not there."""

# -- the settings and the store


def load_settings(data: Path | None, config: Path | None, **server: Any) -> "Settings":
    """The settings with this command's options above them; raises SettingsError."""
    from penstock.settings.tables import load

    overrides = {"data": data} | {f"server.{name}": value for name, value in server.items()}
    return load(config, os.environ, overrides)


@contextmanager
def expected_errors() -> Generator[None]:
    """End the command with one message: exit code 1 for what is not there or cannot be done, 2 for wrong settings."""
    from penstock.errors import PenstockError
    from penstock.settings.tables import SettingsError

    try:
        yield
    except SettingsError as error:
        fail(str(error))
    except PenstockError as error:
        fail(error.message, error.suggestion or LISTS.get(error.code, ""), code=1, fields=error.body())
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        fail(
            f"{error.filename}: {reason}." if error.filename else f"{reason}.",
            "`penstock doctor` tells what is wrong with the folders and the port.",
        )


def private_places(settings: "Settings") -> tuple[Path, Path | None, Path | None]:
    """Return what must be closed to other users of this machine: the data folder, the store's file, the assets."""
    from penstock.store.connect import is_file, path_of

    assets = urlsplit(settings.assets_url)
    return (
        settings.data,
        path_of(settings.database_url) if is_file(settings.database_url) else None,
        Path(unquote(assets.path)) if assets.scheme == "file" else None,
    )


@contextmanager
def open_store(settings: "Settings") -> "Generator[Engine]":
    """The store at this version's schema, also beside a running server; made if there is none."""
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
        what, fields = f"The store {tell_store(settings)} cannot be used: {error}.", {"type": "server_error"}
        fail(what, "`penstock doctor` looks closer.", fields=fields)
    finally:
        engine.dispose()


@contextmanager
def change_store(settings: "Settings") -> "Generator[Connection]":
    """A transaction on the store, kept only if the block ends well."""
    from penstock.store.connect import transact
    from penstock.store.database import RUNG

    with open_store(settings) as engine, transact(engine) as connection:
        connection.info[RUNG] = set[str]()  # nobody listens here; servers look for themselves
        yield connection


@contextmanager
def read_store(settings: "Settings") -> "Generator[Connection]":
    """The store, to look at."""
    with open_store(settings) as engine, engine.connect() as connection:
        yield connection


def tell_store(settings: "Settings") -> str:
    """Where the store is, for people: its password is not for their eyes."""
    from penstock.store.connect import is_file, path_of, without_password

    url = settings.database_url
    return str(path_of(url)) if is_file(url) else without_password(url)


# -- speaking


class CommandFailed(typer.Exit):
    """People were told what is wrong; `error` tells scripts, who may have asked for JSON."""

    def __init__(self, code: int, error: Mapping[str, Any]) -> None:
        super().__init__(code)
        self.error = error


def fail(what: str, remedy: str = "", *, code: int = 2, fields: Mapping[str, Any] | None = None) -> NoReturn:
    """Say on stderr what is wrong and what to do, and end the command; `fields` are of the error shape."""
    typer.echo(f"{what} {remedy}".rstrip(), err=True)
    raise CommandFailed(code, {**shape_error(what), **(fields or {}), "suggestion": remedy or None})


def has_engines() -> bool:
    """Return whether the built-in engines are part of this installation."""
    return find_spec("penstock_engines") is not None


def shape_error(message: str) -> dict[str, Any]:
    """What was found wrong on this side, in the API's shape."""
    return {"message": message, "type": "invalid_request_error", "code": None, "param": None}


def release_stdout() -> None:
    """Let stdout, which takes no more, lead nowhere: else Python tries again at its end, and complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a value for scripts."""
    typer.echo(json.dumps(value, indent=2))


def tell(record: Any, text: str, *, as_json: bool, err: bool = False) -> None:
    """Print a record for scripts, or a line for people."""
    if as_json:
        print_json(record)
    else:
        typer.echo(text, err=err)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table for people; all but the first column may wrap."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as it is: a name may look like Rich's markup
    draw(make_console(), table)


def make_console() -> "Console":
    """What tables are drawn with."""
    from rich.console import Console

    # What is piped on must not be cut to the width of a terminal that is not there.
    return Console(width=None if sys.stdout.isatty() else 240)


def draw(console: "Console", table: "Table") -> None:
    """Print a table; a pipe that is broken is told like any other, where Rich would end the process."""
    with console.capture() as drawn:
        console.print(table)
    typer.echo(drawn.get(), nl=False, color=True)
