"""`penstock serve`: the gateway. It also runs the jobs, unless another process on its store does."""

import asyncio
import base64
import json
import logging
import math
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import __version__
from penstock.cli.options import ConfigFile, DataFolder
from penstock.cli.process import has_engines, run_forever
from penstock.cli.store_access import load_settings

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need them
    from penstock.gateway import Gateway
    from penstock.offers.offer import Offers
    from penstock.store.database import Connection

VIDEO, MODEL = "vendorb_video_31", "vendora_image_to_model"
FIRST_QUESTION = "What is the capital of Japan?"
"""One that the built-in demonstration model answers well."""
FIRST_KEY, FIRST_ADMIN_KEY = "first-key", "first-admin-key"

log = logging.getLogger(__name__)


def serve(
    *,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; default: 8787; 0 takes any free port.")] = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C. SIGHUP reloads the settings."""
    run_forever(partial(load_settings, data, config, host=host, port=port), _welcome)


def _missing_weights(folder: Path) -> list[str]:
    """Return the names of the weight files that the installed engines lack."""
    if not has_engines():
        return []
    from penstock_engines.weights import missing

    return [weight.name for weight in missing(folder)]


async def _welcome(gateway: "Gateway", port: int) -> None:
    """Print the server's address and examples. Create the first key if the store has none."""
    from penstock.store.connect import is_file

    has_admin_key = gateway.settings.server.admin_key is not None
    key, admin_key = await gateway.database.write(_issue_first, with_admin_key=not has_admin_key)
    address = address_of(gateway.settings.server.host, port)
    typer.secho(f"Penstock {__version__} serves on {address}", bold=True)
    typer.echo(f"  data   {gateway.settings.data}")
    typer.echo(f"  docs   {address}/docs")
    typer.echo(f"  web    {address}/console")
    if not is_file(gateway.settings.database_url):
        typer.echo(f"  jobs   are run {'here' if gateway.leadership.is_held else 'by the workers'}")
    elif not gateway.leadership.is_held:
        holder = gateway.leadership.tell_holder()
        typer.echo(f"  jobs   are run by another server (process {holder}); this one takes over if that ends")
    if not gateway.settings.vendors:
        typer.echo(
            f"  models no vendor is configured: the {'built-in engines serve' if has_engines() else 'simulator serves'}"
        )
    for name in _missing_weights(gateway.settings.weights):
        typer.secho(f"  !      {name} is missing: run `penstock models pull`", fg="yellow")
    await _show_keys(gateway.settings.data, key, admin_key)
    typer.echo("\nTry it:")
    for line in _examples(address, gateway.offers):
        typer.echo(f"\n{line}")


async def _show_keys(folder: Path, key: str | None, admin_key: str | None) -> None:
    """Print new keys on a terminal. Otherwise write them to private files, because logs may keep stdout for ever."""
    if key is not None and sys.stdout.isatty():
        typer.echo("\nYour API key, shown once: keep it. The lines below take it from this variable.")
        typer.secho(f"\nexport PENSTOCK_API_KEY={key}", bold=True)
        if admin_key is not None:
            typer.echo("\nThe administrator's key, shown once, for the admin pages of the console and `/admin/v1`:")
            typer.secho(f"\nexport PENSTOCK_ADMIN_KEY={admin_key}", bold=True)
        return
    if key is not None and (place := await asyncio.to_thread(_put_away, folder / FIRST_KEY, key)):
        typer.echo(f"\nYour first API key is in {place}, for your eyes only. Read it, then remove the file.")
    if admin_key is not None and (place := await asyncio.to_thread(_put_away, folder / FIRST_ADMIN_KEY, admin_key)):
        typer.echo(f"The administrator's key is in {place}.")
    typer.echo("\nThe lines below take your key from $PENSTOCK_API_KEY; `penstock key create` makes another.")


def _put_away(place: Path, key: str) -> Path | None:
    """Write a key to a private file. Return its path, or None if that failed."""
    try:
        place.unlink(missing_ok=True)  # left by a deleted store
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(f"{key}\n")
    except OSError as error:
        log.warning(
            "first key could not be written to its file", extra={"fields": {"path": str(place), "reason": str(error)}}
        )
        return None
    return place


def _issue_first(connection: "Connection", *, with_admin_key: bool) -> tuple[str | None, str | None]:
    """Return the first key and the administrator's, or None for what is not made here and now."""
    from penstock.accounts.administration import ensure_account, issue_key
    from penstock.domain.accounts import Actor, KeyWish
    from penstock.domain.api_keys import make_admin_key
    from penstock.store import locks
    from penstock.store.queries.accounts import key_rows

    locks.hold(connection, "first key")  # one of several servers that start together creates it
    if not key_rows.is_empty(connection):
        return None, None
    account = ensure_account(connection, Actor.SERVER, "default", time.time())
    admin_key = make_admin_key() if with_admin_key else None
    if admin_key is not None:
        key_rows.keep_admin_key(connection, admin_key)
    return issue_key(connection, Actor.SERVER, account.id, KeyWish(name="first key"), time.time())[0], admin_key


def address_of(host: str, port: int) -> str:
    """Return the URL of a server on this machine that listens on `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  read, not bound
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _examples(address: str, offers: "Offers") -> Iterator[str]:
    """Yield example commands for a shell. None holds the key: shells write what is typed to a file."""
    bearer, content = '-H "Authorization: Bearer $PENSTOCK_API_KEY"', "-H 'Content-Type: application/json'"
    for model in islice((name for name, offer in offers.chat.items() if offer.kind == "chat"), 1):
        if description := offers.chat[model].description:
            yield f"# {model}: {description}"
        question = {"role": "user", "content": FIRST_QUESTION}
        body = json.dumps({"model": model, "messages": [question], "max_tokens": 60})
        yield f"curl {address}/llm/chat/completions {bearer} {content} -d '{body}'"
    orders = (
        ("/model/v1/generation", VIDEO, {"prompt": "A paper boat drifts down a rainy street", "durationSeconds": 4}),
        (f"/api/v1/{MODEL}/generate", MODEL, {"file": {"url": f"data:image/png;base64,{_draw_disc()}"}}),
    )
    for path, model, params in orders:
        if model in offers.by_model:
            body = json.dumps({"model": model, "input": [{"params": params}]}, separators=(",", ":"))
            yield f"curl {address}{path} {bearer} {content} -H 'Prefer: wait=30' -d '{body}'"
    yield f"curl '{address}/api/v1/jobs?limit=2' {bearer}"


def _draw_disc(side: int = 32) -> str:
    """Return a PNG of a white disc on black, one bit per pixel, as base64."""
    rows = b""
    for y in range(side):
        bits = ["1" if math.hypot(x - side / 2 + 0.5, y - side / 2 + 0.5) < side / 3 else "0" for x in range(side)]
        rows += b"\0" + int("".join(bits), 2).to_bytes(side // 8, "big")
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    picture = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return base64.b64encode(picture).decode()
