"""Connection of commands to a server: its address, params and completion."""

import inspect
import json
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, cast

import typer

from penstock.cli.options import ConfigFile, DataFolder
from penstock.cli.printing import fail
from penstock.cli.remote.errors import Code, code_of, plain, print_error
from penstock.cli.store_access import load_settings

if TYPE_CHECKING:  # loaded inside the commands: `--help` answers at once
    from urllib.request import OpenerDirector

    from penstock.client import Client
    from penstock.client.config import Address

T = TypeVar("T")

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="Server URL; default: PENSTOCK_BASE_URL, else http://127.0.0.1:8787."
    ),
]


def speaks_to_server(command: Callable[..., None]) -> Callable[..., None]:
    """Pass a client to a command as its first argument, and add the options that choose the server.

    An error ends the command with its exit code and one readable message.
    """

    def run(*, base_url: BaseUrl = None, data: DataFolder = None, config: ConfigFile = None, **given: Any) -> None:
        run_with_client(lambda client: command(client, **given), base_url, data, config, as_json=given["as_json"])

    _, *own = inspect.signature(command).parameters.values()
    *server, _ = inspect.signature(run).parameters.values()
    seen = inspect.Signature([*own, *server])
    update_wrapper(run, command)
    run.__signature__ = seen  # pyright: ignore[reportFunctionMemberAccess]  Typer reads it
    run.__annotations__ = {name: each.annotation for name, each in seen.parameters.items()}
    return run


def run_with_client(
    ask: Callable[["Client"], T], base_url: str | None, data: Path | None, config: Path | None, *, as_json: bool
) -> T:
    """Return what the function gets from the server. An error ends the command as in `speaks_to_server`."""
    from penstock.client import Client

    with _expected_errors(as_json=as_json), Client(base_url or settled_address(data, config)) as client:
        _check_host(client.base_url)
        return ask(client)


@contextmanager
def _expected_errors(*, as_json: bool) -> Generator[None]:
    from penstock.client import PenstockClientError

    try:
        yield
    except PenstockClientError as error:
        print_error(error, as_json=as_json)
        raise typer.Exit(code_of(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(Code.INTERRUPTED) from None
    except BrokenPipeError:
        raise
    except RecursionError:
        fail("The params are nested too deeply to be sent.")
    except OSError as error:
        fail(f"{error.filename or ''}: {error.strerror or error}.".lstrip(": "))


def settled_address(data: Path | None, config: Path | None) -> str | None:
    """Return the address in the named settings, or None if none are named or PENSTOCK_BASE_URL is set."""
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
    """Fail on an impossible host name, before it is looked up."""
    from httpx2 import URL, InvalidURL

    try:
        URL(address).raw_host.decode().encode("idna")
    except (InvalidURL, UnicodeError):
        fail(
            f"{plain(address)} is not a valid address: no host can have this name.",
            "Correct PENSTOCK_BASE_URL or --base-url.",
        )


# -- values


def read_params(words: Sequence[str]) -> dict[str, Any]:
    """Parse `key=value` words as params. Values are JSON if possible, else text. `file.url=…` sets a nested field."""
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
    except (ValueError, RecursionError):  # RecursionError: too deeply nested
        return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def is_live() -> bool:
    """Return whether stderr is a terminal that can redraw lines."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


# -- completion

QUICK_SECONDS = 1.0
"""Time that completion waits for the server. A blocked shell is worse than no completion."""


def complete_models(incomplete: str) -> list[str]:
    """Return matching model ids, if the server answers quickly."""
    return [name for name in _ask_quickly("/api/v1/models") if name.startswith(incomplete)]


def complete_chat_models(incomplete: str) -> list[str]:
    """Return matching chat model ids, if the server answers quickly."""
    return [name for name in _ask_quickly("/llm/models") if name.startswith(incomplete)]


def complete_jobs(incomplete: str) -> list[str]:
    """Return matching ids of recent jobs, if the server answers quickly."""
    return [name for name in _ask_quickly("/api/v1/jobs?limit=50") if name.startswith(incomplete)]


def complete_pipelines(incomplete: str) -> list[str]:
    """Return matching ids of recent pipelines, if the server answers quickly."""
    return [name for name in _ask_quickly("/api/v1/pipelines?limit=50") if name.startswith(incomplete)]


def complete_templates(incomplete: str) -> list[str]:
    """Return matching names of templates, if the server answers quickly."""
    return [name for name in _ask_quickly("/api/v1/pipelines/templates", "name") if name.startswith(incomplete)]


def complete_shares(incomplete: str) -> list[str]:
    """Return matching ids of share links, if the server answers quickly."""
    return [name for name in _ask_quickly("/api/v1/shares?limit=50") if name.startswith(incomplete)]


def _ask_quickly(path: str, field: str = "id") -> list[str]:
    """Return the ids of a list, or another field, within `QUICK_SECONDS`, or none."""
    from http.client import HTTPException
    from urllib.request import Request

    from penstock.client.config import find_address
    from penstock.client.errors import BadInput

    try:
        address = find_address(settled_address(None, None), None, timeout=QUICK_SECONDS, connections=1)
        request = Request(address.base_url + path, headers=address.headers())  # noqa: S310  its scheme is checked
        with _opener(address).open(request, timeout=QUICK_SECONDS) as reply:
            page: Mapping[str, Any] = json.load(reply)
        return [str(each[field]) for each in page["data"]]
    except (BadInput, OSError, HTTPException, ValueError, KeyError, TypeError):
        return []


def _opener(address: "Address") -> "OpenerDirector":
    """Return an opener that, like the client, uses no proxy for this machine and follows no redirect."""
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Staying(HTTPRedirectHandler):
        def redirect_request(self, *_args: Any, **_named: Any) -> None:
            """Follow no redirect: the key is for this server only."""

    return build_opener(Staying, *([ProxyHandler({})] if address.is_local else []))
