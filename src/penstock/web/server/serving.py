"""The server process: sockets, signals and the drain at shutdown."""

import asyncio
import contextlib
import errno
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import uvicorn

from penstock.web.server.asgi import Application
from penstock.web.server.connection import GuardedConnection
from penstock.web.server.connection_limits import ConnectionBounds, Doorman

T = TypeVar("T")

CHECK_SECONDS = 5.0
"""Seconds between two checks for clients that do not read, at most."""
CLEANUP_SECONDS = 5
"""Seconds for requests to clean up after they were cancelled at the drain deadline."""

logger = logging.getLogger(__name__)


class PortInUse(Exception):
    """The configured port is in use."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"Port {port} on {host} is in use. "
            "Stop the process that listens there, or choose another port with --port (0 finds a free one)."
        )
        self.host = host
        self.port = port


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's main coroutine on uvloop where it is installed, else on asyncio's own loop."""
    try:
        import uvloop  # noqa: PLC0415  not available on every platform
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def serve(
    app: Application,
    *,
    host: str,
    port: int,
    drain_seconds: float,
    on_ready: Callable[[int], None],
    on_drain: Callable[[], None] | None = None,
    on_reload: Callable[[], None] | None = None,
    stop: asyncio.Event | None = None,
    protocol: type[GuardedConnection] = GuardedConnection,
    bounds: ConnectionBounds = ConnectionBounds(),  # noqa: B008  frozen
    max_connections: int | None = None,
    metrics_port: int | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `stop`, then drain. A second signal ends the process at once.

    `on_ready` gets the actual port. `on_drain` must end streams that would not end by themselves. `on_reload` is
    called at SIGHUP.
    """
    if max_connections is not None:
        bounds = replace(bounds, max_connections=max_connections)
    listeners = await _bind_all(host, [port] if metrics_port is None else [port, metrics_port])
    config = uvicorn.Config(
        app,
        http=type("Served", (protocol,), {"doorman": Doorman(bounds)}),
        ws="none",
        loop="none",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # read in web/auth.py where links are made, since few requests need them
        backlog=4096,
        limit_concurrency=bounds.max_connections,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=math.ceil(drain_seconds) + CLEANUP_SECONDS,
    )
    server = _Server(config, drain_seconds, on_drain, bounds.write_seconds)
    stopping = asyncio.ensure_future(_stop_on(stop, server)) if stop else None
    with contextlib.ExitStack() as stack, _signals(server, on_reload):
        for listener in listeners:
            stack.enter_context(contextlib.closing(listener))
        server.on_started = lambda: on_ready(listeners[0].getsockname()[1])
        try:
            await server.serve(listeners)
        finally:
            if stopping:
                stopping.cancel()


class _Server(uvicorn.Server):
    """uvicorn's server with our signal handling, a start callback, and a drain that waits for cancelled requests."""

    on_started: Callable[[], None]

    def __init__(
        self, config: uvicorn.Config, drain_seconds: float, on_drain: Callable[[], None] | None, write_seconds: float
    ) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds
        self._on_drain = on_drain
        self._write_seconds = write_seconds
        self._checking: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin to drain."""
        self.should_exit = True
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        # uvicorn would raise the signal again after the drain, so that the process would not exit with 0.
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._checking = asyncio.create_task(self._check_readers(), name="readers")
        self.on_started()

    async def main_loop(self) -> None:
        # uvicorn wakes up ten times a second to see whether it should stop. Only its Date header needs a second's tick.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logger.info("draining for at most %g s", self._drain_seconds)
        loop = asyncio.get_running_loop()
        if self._on_drain:
            loop.call_soon(self._on_drain)  # an exception in it is logged and does not stop the drain
        # uvicorn cancels at its own timeout as well, but ends the lifespan while requests still clean up.
        cancel = loop.call_later(self._drain_seconds, self._cancel_requests)
        await super().shutdown(sockets)
        cancel.cancel()
        if self._checking is not None:
            self._checking.cancel()

    async def _check_readers(self) -> None:
        """Check all connections at intervals, because a timer for each would slow down every request."""
        loop, pause = asyncio.get_running_loop(), min(CHECK_SECONDS, self._write_seconds / 4)
        while True:
            await asyncio.sleep(pause)
            for connection in cast("list[GuardedConnection]", list(self.server_state.connections)):
                connection.check_progress(loop.time())

    def _cancel_requests(self) -> None:
        if self.server_state.tasks:
            logger.warning("cancelling %d requests at the drain deadline", len(self.server_state.tasks))
        for task in self.server_state.tasks:
            task.cancel()


async def _bind_all(host: str, ports: Sequence[int]) -> list[socket.socket]:
    """Bind all ports or none."""
    bound: list[socket.socket] = []
    try:
        for port in ports:
            bound.append(await _bind(host, port))  # noqa: PERF401  earlier ones are closed if one fails
    except BaseException:
        for listener in bound:
            listener.close()
        raise
    return bound


async def _bind(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    [(family, kind, protocol, _, address), *_] = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # on other platforms two servers could share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(host, port) from error
        raise
    return listener


async def _stop_on(stop: asyncio.Event, server: _Server) -> None:
    await stop.wait()
    server.stop()


@contextlib.contextmanager
def _signals(server: _Server, on_reload: Callable[[], None] | None) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        if server.should_exit:
            logger.warning("ended at once by a second signal")
            os._exit(128 + number)
        server.stop()

    handlers: dict[int, Callable[[int], None]] = {signal.SIGINT: end, signal.SIGTERM: end}
    if on_reload and hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = lambda _: on_reload()
    if threading.current_thread() is not threading.main_thread():
        handlers = {}  # Python delivers signals to the main thread only
    before = {
        number: signal.signal(number, lambda number, _: loop.call_soon_threadsafe(handlers[number], number))
        for number in handlers
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
