"""Output of the commands: text or JSON, tables, and the message and exit code of a failure."""

import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:  # slow to load, and not every command needs them
    from rich.console import Console
    from rich.table import Table

LISTS = {
    "account_not_found": "`penstock account list` lists them.",
    "key_not_found": "`penstock key list` lists them.",
    "person_not_found": "`penstock people list` lists them.",
}
"""Suggestions for errors about something that does not exist."""


class CommandFailed(typer.Exit):
    """Exit after a message on stderr. `error` is the object that `--json` prints."""

    def __init__(self, code: int, error: Mapping[str, Any]) -> None:
        super().__init__(code)
        self.error = error


def fail(what: str, remedy: str = "", *, code: int = 2, fields: Mapping[str, Any] | None = None) -> NoReturn:
    """Print the problem and its remedy to stderr and exit with `code`. `fields` extend the JSON error."""
    typer.echo(f"{what} {remedy}".rstrip(), err=True)
    raise CommandFailed(code, {**shape_error(what), **(fields or {}), "suggestion": remedy or None})


@contextmanager
def expected_errors() -> Generator[None]:
    """Turn expected errors into one message: exit code 1 for missing or impossible things, 2 for wrong settings."""
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
            "Run `penstock doctor` to check the folders and the port.",
        )


def shape_error(message: str) -> dict[str, Any]:
    """Return an error found by the command itself, in the API's error shape."""
    return {"message": message, "type": "invalid_request_error", "code": None, "param": None}


def release_stdout() -> None:
    """Redirect a broken stdout to the null device, so that Python does not fail when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json.dumps(value, indent=2))


def print_result(record: Any, text: str, *, as_json: bool, err: bool = False) -> None:
    """Print a record as JSON, or a line of text."""
    if as_json:
        print_json(record)
    else:
        typer.echo(text, err=err)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. All columns but the first may wrap."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # literally, because a name may look like Rich's markup
    draw(make_console(), table)


def make_console() -> "Console":
    """Return the console for tables. Piped output is not cut to a terminal's width."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 240)


def draw(console: "Console", table: "Table") -> None:
    """Print a table. A broken pipe raises BrokenPipeError, where Rich would end the process."""
    with console.capture() as drawn:
        console.print(table)
    typer.echo(drawn.get(), nl=False, color=True)
