"""What the commands that speak to a server share: which server, what its refusals come to, and how they are told."""

import inspect
import json
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from penstock.cli.options import ConfigFile, DataFolder
from penstock.cli.printing import fail, print_json, shape_error
from penstock.cli.store_access import load_settings

if TYPE_CHECKING:  # loaded inside the commands: `--help` answers at once
    from urllib.request import OpenerDirector

    from penstock.client import PenstockClientError
    from penstock.client.config import Address

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="The server; default: PENSTOCK_BASE_URL, else http://127.0.0.1:8787."
    ),
]


class Code(IntEnum):
    """Exit codes, for scripts."""

    FAILED = 1
    """The job ended without a result."""
    USAGE = 2
    """Something that was given is wrong; nothing was sent."""
    REFUSED = 3
    """The server refused: 4xx."""
    AWAY = 4
    """The server cannot be reached, or cannot do it now."""
    LIMITED = 5
    """A budget or a limit does not allow it."""
    TIMED_OUT = 6
    """It was not done in time; it goes on."""
    UNSAVED = 7
    """It is done, and nothing takes the result."""
    INTERRUPTED = 130
    """Ctrl-C."""


def speaks_to_server(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a client as its first argument, and the options that say of which server.

    What goes wrong ends the command with its exit code and one readable block.
    """

    def run(*, base_url: BaseUrl = None, data: DataFolder = None, config: ConfigFile = None, **given: Any) -> None:
        from penstock.client import Client

        with _expected_errors(as_json=given["as_json"]), Client(base_url or _settled_address(data, config)) as client:
            _check_host(client.base_url)
            command(client, **given)

    _, *own = inspect.signature(command).parameters.values()
    *server, _ = inspect.signature(run).parameters.values()
    seen = inspect.Signature([*own, *server])
    update_wrapper(run, command)
    run.__signature__ = seen  # pyright: ignore[reportFunctionMemberAccess]  Typer reads it
    run.__annotations__ = {name: each.annotation for name, each in seen.parameters.items()}
    return run


@contextmanager
def _expected_errors(*, as_json: bool) -> Generator[None]:
    from penstock.client import PenstockClientError

    try:
        yield
    except PenstockClientError as error:
        tell_error(error, as_json=as_json)
        raise typer.Exit(code_of(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(Code.INTERRUPTED) from None
    except BrokenPipeError:
        raise
    except RecursionError:
        fail("What was given is nested too deep to be sent.")
    except OSError as error:
        fail(f"{error.filename or ''}: {error.strerror or error}.".lstrip(": "))


def _settled_address(data: Path | None, config: Path | None) -> str | None:
    """Where a server with these settings listens; None: nobody names any, or PENSTOCK_BASE_URL comes before them."""
    named = data or config or os.environ.get("PENSTOCK_DATA") or os.environ.get("PENSTOCK_CONFIG")
    if not named or os.environ.get("PENSTOCK_BASE_URL"):
        return None
    from penstock.cli.serve import address_of
    from penstock.client import BadInput
    from penstock.settings.tables import SettingsError

    try:
        server = load_settings(data, config).server
    except SettingsError as error:
        raise BadInput(str(error)) from None
    return server.public_url or address_of(server.host, server.port)


def _check_host(address: str) -> None:
    """Refuse a host that can be no name, which is found out only when it is looked up."""
    from httpx2 import URL, InvalidURL

    try:
        URL(address).raw_host.decode().encode("idna")
    except (InvalidURL, UnicodeError):
        fail(f"{plain(address)} is no address: there can be no such host.", "Correct PENSTOCK_BASE_URL or --base-url.")


# -- errors


def code_of(error: "PenstockClientError") -> Code:
    """The exit code that an error comes to."""
    from penstock.client import ApiError, BadInput, BudgetError, JobFailed, LimitError, ServerError, WaitTimeout

    kinds: Sequence[tuple[type[Exception], Code]] = (
        (JobFailed, Code.FAILED),
        (BadInput, Code.USAGE),
        (BudgetError, Code.LIMITED),
        (LimitError, Code.LIMITED),
        (ServerError, Code.AWAY),
        (ApiError, Code.REFUSED),
        (WaitTimeout, Code.TIMED_OUT),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.AWAY)


def tell_error(error: "PenstockClientError", *, as_json: bool) -> None:
    """The server's message, the fields at fault and what to do, as one block; for scripts also as JSON.

    Of a job that failed or goes on, the JSON is its record, as ever.
    """
    from penstock.client.errors import JobFailed, TellingError, WaitTimeout

    if as_json:
        fields: Mapping[str, Any] = error.fields if isinstance(error, TellingError) else {}
        of_job = isinstance(error, JobFailed | WaitTimeout)
        of_side = {**shape_error(error.message), "type": _type_of(error)}
        print_json(error.job.raw if of_job else {"error": {**of_side, **fields}})
    typer.secho(plain(error.message), err=True, fg=typer.colors.RED, bold=True)
    for name, value in _rest(error):
        typer.echo(f"  {typer.style(f'{name:<11}', dim=True)} {plain(value)}", err=True)


def _type_of(error: "PenstockClientError") -> str:
    """The group that an error belongs to, where no server of ours said so."""
    kinds = {Code.AWAY: "server_error", Code.LIMITED: "rate_limit_error"}
    return kinds.get(code_of(error), "invalid_request_error")


def _rest(error: "PenstockClientError") -> list[tuple[str, str]]:
    from penstock.client.errors import ConnectionFailed, TellingError

    if isinstance(error, ConnectionFailed) and not error.sent:
        return [("suggestion", "Is it running? `penstock serve` starts one; PENSTOCK_BASE_URL names another.")]
    if not isinstance(error, TellingError):
        return []
    rows = [("code", error.code), ("param", error.param)]
    several = len(error.details) > 1
    rows += [("", f"{detail.loc}: {detail.message}") for detail in error.details if several]
    rows += [("suggestion", error.suggestion), ("request", error.request_id)]
    return [(name, value) for name, value in rows if value]


def plain(text: str) -> str:
    """A text from elsewhere, without what a terminal would obey."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


# -- values


def read_params(words: Sequence[str]) -> dict[str, Any]:
    """`key=value` words as params: JSON where it is JSON, else text; `file.url=…` goes inside of `file`."""
    params: dict[str, Any] = {}
    for word in words:
        path, equals, text = word.partition("=")
        names = path.split(".")
        if not equals or not all(names):
            fail(f"{word!r} is no param: write key=value, such as prompt='A boat' or file.url=https://….")
        table = params
        for name in names[:-1]:
            inner = table.setdefault(name, {})
            if not isinstance(inner, dict):
                fail(f"{path}: `{name}` has a value already.")
            table = cast("dict[str, Any]", inner)
        table[names[-1]] = _read_value(text)
    return params


def _read_value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):  # the latter: brackets upon brackets
        return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def is_live() -> bool:
    """Whether somebody looks: only then may a line be drawn over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


# -- completion


def complete_models(incomplete: str) -> list[str]:
    """The ids of the server's models, if it answers at once."""
    return [name for name in _ask_quickly("/api/v1/models") if name.startswith(incomplete)]


def complete_chat_models(incomplete: str) -> list[str]:
    """The ids of the server's chat models, if it answers at once."""
    return [name for name in _ask_quickly("/llm/models") if name.startswith(incomplete)]


def complete_jobs(incomplete: str) -> list[str]:
    """The ids of the latest jobs, if the server answers at once."""
    return [name for name in _ask_quickly("/api/v1/jobs?limit=50") if name.startswith(incomplete)]


def _ask_quickly(path: str) -> list[str]:
    """The ids of a list; none where anything is in the way: a shell that waits is worse than no completion."""
    from http.client import HTTPException
    from urllib.request import Request

    from penstock.client.config import find_address
    from penstock.client.errors import BadInput

    try:
        address = find_address(_settled_address(None, None), None, timeout=1.0, connections=1)
        request = Request(address.base_url + path, headers=address.headers())  # noqa: S310  its scheme is checked
        with _opener(address).open(request, timeout=1.0) as reply:
            told: Mapping[str, Any] = json.load(reply)
        return [str(each["id"]) for each in told["data"]]
    except (BadInput, OSError, HTTPException, ValueError, KeyError, TypeError):
        return []


def _opener(address: "Address") -> "OpenerDirector":
    """As the client goes: past the proxy to this very machine, and to no place that an answer names."""
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Staying(HTTPRedirectHandler):
        def redirect_request(self, *_args: Any, **_named: Any) -> None:
            """The key is for this server alone."""

    return build_opener(Staying, *([ProxyHandler({})] if address.is_local else []))
