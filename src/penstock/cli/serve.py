"""`penstock serve`: the gateway, and the jobs' runner in one of the processes that share a data folder."""

import asyncio
import base64
import gc
import json
import logging
import math
import struct
import sys
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import __version__
from penstock.cli.options import (
    ConfigFile,
    DataFolder,
    expected_errors,
    fail,
    load_settings,
    open_store,
)

if TYPE_CHECKING:  # take long to load, and `penstock --help` does not need them
    from sqlalchemy import Connection

    from penstock.gateway import Gateway
    from penstock.leadership import Leadership
    from penstock.offers import Offers
    from penstock.settings import Settings

SCHEMA_SECONDS = 3.0
"""How long a server that was started just before may take to make or change the schema."""
VIDEO, MODEL = "vendorb_video_31", "vendora_image_to_model"

log = logging.getLogger(__name__)


def serve(
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; default: 8787; 0 takes any free one.")
    ] = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; SIGHUP reads the settings again."""
    gc.disable()  # until all is loaded: there is nothing to collect, and a good part of the start would go by
    from penstock import logs
    from penstock.leadership import Leadership
    from penstock.web.server import PortInUse, run

    read = partial(load_settings, data, config, host=host, port=port)
    with expected_errors():
        settings = read()
        as_json = {"auto": None, "json": True, "text": False}[settings.server.log_format]
        logs.configure(settings.server.log_level, json=as_json)
        _allow_many_files()
        leadership = Leadership(settings.data)
        _await_schema(settings, leadership)
        with open_store(settings):
            pass  # whatever is wrong with it is told here, before anything else starts
        try:
            run(_serve(settings, read, leadership))
        except PortInUse as error:
            fail(str(error))
        except OSError as error:
            if error.filename is not None:
                raise
            where = f"{settings.server.host}:{settings.server.port}"
            fail(f"Cannot listen on {where}: {error.strerror or error}.", "Choose another with --host or --port.")


def _await_schema(settings: "Settings", leadership: "Leadership") -> None:
    """Only the server that runs the jobs changes the schema: of the others one may be of an earlier version."""
    if leadership.take():
        return
    from sqlalchemy.exc import SQLAlchemyError

    from penstock.store.opening import make_engine
    from penstock.store.schema import current_version
    from penstock.store.tables import SCHEMA_VERSION

    engine, give_up_at = make_engine(settings.database_url), time.monotonic() + SCHEMA_SECONDS
    with suppress(SQLAlchemyError):  # what is wrong is told when it is opened to be used
        while not leadership.take() and (current_version(engine) or "") < SCHEMA_VERSION:
            if time.monotonic() > give_up_at:
                who = f"Another server (process {leadership.tell_holder()}) uses {settings.data} with an earlier schema"
                fail(f"{who}: this version would have to change it.", "Stop all servers of the earlier version first.")
            time.sleep(0.05)
    engine.dispose()


def _allow_many_files() -> None:
    """Every stream needs two sockets; what a shell allows by default would be 500 of them."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(settings: "Settings", read: "Callable[[], Settings]", leadership: "Leadership") -> None:
    from penstock.gateway import Gateway
    from penstock.web import server
    from penstock.web.app import create_app

    gateway = await Gateway.open(settings, leadership)
    gc.freeze()  # what is loaded by now stays: looking through it again and again is waste
    gc.set_threshold(50_000, 20, 100)
    gc.enable()
    turn = asyncio.Lock()
    errands: set[asyncio.Task[None]] = set()

    def start(errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(errand)
        errands.add(task)  # the event loop alone would not keep it alive
        task.add_done_callback(errands.discard)

    try:
        await server.serve(
            create_app(gateway),
            host=settings.server.host,
            port=settings.server.port,
            drain_seconds=settings.server.drain_seconds,
            on_ready=lambda port: start(_welcome(gateway, port)),
            on_drain=gateway.drain,
            on_reload=lambda: start(_reload(gateway, read, turn)),
        )
    finally:
        await gateway.close()


async def _reload(gateway: "Gateway", read: "Callable[[], Settings]", turn: asyncio.Lock) -> None:
    """Use what the settings say now, or keep the old and say why."""
    from penstock import metrics
    from penstock.settings import SettingsError

    async with turn:  # else the older of two readings could win
        try:
            await gateway.reload(await asyncio.to_thread(read))
        except SettingsError as error:
            metrics.SETTINGS_RELOADS.labels("refused").inc()
            log.error("settings reload refused, the old settings stay", extra={"fields": {"reason": str(error)}})  # noqa: TRY400  the text says it all
        else:
            metrics.SETTINGS_RELOADS.labels("ok").inc()
            log.info("settings reloaded", extra={"fields": {"settings": gateway.settings.fingerprint}})


# -- the welcome


async def _welcome(gateway: "Gateway", port: int) -> None:
    """Say where the server is and how to try it; a store without keys gets its first, shown here and never again."""
    from rich.console import Console

    from penstock.engines.weights import missing

    key = await gateway.database.write(_issue_first)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    address = address_of(gateway.settings.server.host, port)
    console.print(f"Penstock {__version__} serves on {address}", style="bold")
    console.print(f"  data   {gateway.settings.data}")
    console.print(f"  docs   {address}/docs")
    if not gateway.leadership.is_held:
        holder = gateway.leadership.tell_holder()
        console.print(f"  jobs   are run by another server (process {holder}); this one takes over if that ends")
    if not gateway.settings.vendors:
        console.print("  models no vendor is configured: the built-in engines serve")
    for weight in missing(gateway.settings.weights):
        console.print(f"  !      {weight.name} is missing: run `penstock models pull`", style="yellow")
    if key:
        console.print(f"\nYour API key, shown once: keep it.\n  {key}", style="bold")
    else:
        console.print("\nThe lines below take your key from $PENSTOCK_API_KEY; `penstock key create` makes another.")
    console.print("\nTry it:")
    for line in _examples(address, key or "$PENSTOCK_API_KEY", gateway.offers):
        console.print(f"\n{line}")
    sys.stdout.flush()


def _issue_first(connection: "Connection") -> str | None:
    from penstock.accounts import Actor, KeyWish
    from penstock.administration import ensure_account, issue_key
    from penstock.store import key_rows

    if not key_rows.is_empty(connection):
        return None
    account = ensure_account(connection, Actor.SERVER, "default", time.time())
    return issue_key(connection, Actor.SERVER, account.id, KeyWish(name="first key"), time.time())[0]


def address_of(host: str, port: int) -> str:
    """Where to reach a server on this machine that listens on this host."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  read, not bound
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _examples(address: str, key: str, offers: "Offers") -> Iterator[str]:
    """Lines to copy and paste into a shell."""
    bearer, content = f'-H "Authorization: Bearer {key}"', "-H 'Content-Type: application/json'"
    for model in islice(offers.chat, 1):
        question = {"role": "user", "content": "What is a waterfall?"}
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
    """A PNG of a white disc on black, one bit per pixel, as base64."""
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
