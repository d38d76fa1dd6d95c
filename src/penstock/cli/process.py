"""Process of a server or worker, from loading the settings to draining. It waits for an unavailable store."""

import asyncio
import gc
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.printing import expected_errors, fail
from penstock.cli.store_access import describe_store, open_store, private_places

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need them
    from penstock.dispatch.leadership import Appointment, Leadership
    from penstock.gateway import Gateway
    from penstock.settings.tables import Settings

SCHEMA_SECONDS: Final = 3.0
"""Seconds to wait until a server started just before has created or upgraded the schema."""
STORE_RETRY_SECONDS: Final = 1.0
"""Seconds between attempts to connect to an unavailable store."""

log = logging.getLogger(__name__)


def has_engines() -> bool:
    """Return whether the built-in engines are part of this installation."""
    return find_spec("penstock_engines") is not None


def run_forever(
    read: "Callable[[], Settings]", welcome: "Callable[[Gateway, int], Awaitable[None]]", *, is_worker: bool = False
) -> None:
    """Run until SIGTERM or Ctrl-C. SIGHUP reloads the settings."""
    gc.disable()  # during startup there is little to collect, and collecting takes a good part of it
    from penstock.observability import logs
    from penstock.store.connect import StoreRefused
    from penstock.web.server.serving import PortInUse, run

    with expected_errors():
        settings = read()
        as_json = {"auto": None, "json": True, "text": False}[settings.server.log_format]
        logs.configure(settings.server.log_level, json=as_json)
        _allow_many_files()
        leadership = _appoint(settings, is_worker=is_worker)
        try:
            run(_Process(settings, read, leadership, welcome, is_worker=is_worker).serve())
        except (PortInUse, StoreRefused) as error:
            fail(str(error))
        except OSError as error:
            if error.filename is not None:
                raise
            where = f"{settings.server.host}:{settings.server.port}"
            fail(f"Cannot listen on {where}: {error.strerror or error}.", "Choose another with --host or --port.")


def _appoint(settings: "Settings", *, is_worker: bool) -> "Leadership | Appointment":
    """Return whether this process runs jobs. Problems with a store in a file are reported before anything starts."""
    from penstock.dispatch.leadership import Appointment, Leadership
    from penstock.store.connect import is_file

    _close_to_others(settings)
    if not is_file(settings.database_url):
        return Appointment(is_held=is_worker or settings.jobs.run == "here")
    if is_worker:
        fail(
            f"A worker shares its store with other machines, but {describe_store(settings)} is a file on this machine.",
            "Set PENSTOCK_DATABASE_URL=postgresql://…, or start `penstock serve`, which runs jobs too.",
        )
    leadership = Leadership(settings.data)
    _await_schema(settings, leadership)
    with open_store(settings):
        pass
    return leadership


def _close_to_others(settings: "Settings") -> None:
    """Make new files private to this user, and remove other users' access to existing ones."""
    from penstock.storage.permissions import mask_of, tighten, warn_of

    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.umask(mask_of(settings.data))
    warn_of(tighten(*private_places(settings)))


def _await_schema(settings: "Settings", leadership: "Leadership") -> None:
    """Wait until the server that runs jobs has upgraded the schema. Only that one may change it."""
    if leadership.take():
        return
    from penstock.store.connect import StoreUnusable, database_errors, make_engine
    from penstock.store.schema import current_version
    from penstock.store.tables import SCHEMA_VERSION

    engine, give_up_at = make_engine(settings.database_url), time.monotonic() + SCHEMA_SECONDS
    try:
        with suppress(StoreUnusable), database_errors():  # reported when the store is opened to be used
            while not leadership.take() and (current_version(engine) or "") < SCHEMA_VERSION:
                if time.monotonic() > give_up_at:
                    who = f"Another server (process {leadership.tell_holder()}) uses {settings.data}"
                    fail(
                        f"{who} with an earlier schema: this version would have to change it.",
                        "Stop all servers of the earlier version first.",
                    )
                time.sleep(0.05)
    finally:
        engine.dispose()


def _allow_many_files() -> None:
    """Raise the limit of open files: each stream needs two sockets, and the default allows about 500 streams."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Process:
    """One server or worker. It listens at once and answers 503 until its store is available."""

    def __init__(
        self,
        settings: "Settings",
        read: "Callable[[], Settings]",
        leadership: "Leadership | Appointment",
        welcome: "Callable[[Gateway, int], Awaitable[None]]",
        *,
        is_worker: bool,
    ) -> None:
        from penstock.store.connect import is_file
        from penstock.web.server.startup_gate import StartupGate

        self._settings = settings
        self._read = read
        self._leadership = leadership
        self._welcome = welcome
        self._is_worker = is_worker
        self._front = StartupGate()
        self._patience = None if is_file(settings.database_url) else STORE_RETRY_SECONDS * 3
        self._gateway: Gateway | None = None
        self._turn = asyncio.Lock()
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve until the process is asked to stop."""
        from penstock.web.server import serving

        wanted = self._settings.server
        opening = asyncio.create_task(self._open())
        opening.add_done_callback(lambda done: self._stop.set() if not done.cancelled() and done.exception() else None)
        try:
            await asyncio.wait((opening,), timeout=self._patience)  # usually open by then
            if opening.done():
                await opening
            await serving.serve(
                self._front,
                host=self._settings.server.host,
                port=self._settings.server.port,
                drain_seconds=self._settings.server.drain_seconds,
                on_ready=lambda port: self._start(self._greet(opening, port)),
                on_drain=self._drain,
                on_reload=lambda: self._start(self._reload()),
                stop=self._stop,
                metrics_port=None if self._is_worker else wanted.metrics_port,
                bounds=serving.ConnectionBounds(
                    wanted.max_connections, wanted.max_connections_per_address, wanted.proxies, wanted.write_timeout
                ),
            )
            if opening.done():
                await opening
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            if self._gateway is not None:
                await self._gateway.close()

    def _start(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(errand)
        self._tasks.add(task)  # the event loop alone would not keep it alive
        task.add_done_callback(self._tasks.discard)

    async def _open(self) -> None:
        """Open the gateway, waiting for an unavailable store."""
        from penstock.errors import StoreUnavailable
        from penstock.gateway import Gateway
        from penstock.web.app import create_app, create_worker_app

        while self._gateway is None:
            try:
                self._gateway = await Gateway.open(self._settings, self._leadership)
            except StoreUnavailable as error:
                reason = str(error.__cause__ or error.message)
                log.warning("store unavailable; waiting for it", extra={"fields": {"reason": reason}})
                await asyncio.sleep(STORE_RETRY_SECONDS)
        self._front.app = (create_worker_app if self._is_worker else create_app)(self._gateway)
        gc.freeze()  # loaded modules stay, so that collections skip them
        gc.set_threshold(50_000, 20, 100)
        gc.enable()

    async def _greet(self, opening: asyncio.Task[None], port: int) -> None:
        await asyncio.wait((opening,))
        if self._gateway is not None:
            await self._welcome(self._gateway, port)

    def _drain(self) -> None:
        if self._gateway is not None:
            self._gateway.drain()

    async def _reload(self) -> None:
        """Reload the settings. Invalid ones are logged and the old ones stay in use."""
        from penstock.errors import StoreUnavailable
        from penstock.observability import metrics
        from penstock.settings.tables import SettingsError

        gateway = self._gateway
        if gateway is None:
            return
        async with self._turn:  # else the older of two reloads could win
            try:
                await gateway.reload(await asyncio.to_thread(self._read))
            except (SettingsError, StoreUnavailable) as error:
                metrics.SETTINGS_RELOADS.labels("refused").inc()
                log.error(  # noqa: TRY400  the reason is in the message
                    "settings reload refused; the old settings stay in use", extra={"fields": {"reason": str(error)}}
                )
            else:
                metrics.SETTINGS_RELOADS.labels("ok").inc()
                log.info("settings reloaded", extra={"fields": {"settings": gateway.settings.fingerprint}})
