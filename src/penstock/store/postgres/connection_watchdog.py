"""Connections in use, and since when: a server that hangs would block their threads for ever."""

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

MADE_AT: Final = "made at"


class ConnectionWatchdog:
    """Shuts down connections that take too long, which frees their threads.

    Idle connections of that time may be dead as well, and are replaced.
    """

    def __init__(self, *engines: Engine) -> None:
        self._used: dict[int, tuple[float, int]] = {}
        self._cut_at = 0.0
        for engine in engines:
            event.listen(engine, "connect", _note_time)
            event.listen(engine, "checkout", self._check)

    @contextmanager
    def connect(self, engine: Engine) -> Generator[Connection]:
        """Open a connection for the block. It is watched until it is back in the pool."""
        connection = engine.connect()
        self._used[id(connection)] = time.monotonic(), connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
        try:
            with connection:
                yield connection
        finally:
            del self._used[id(connection)]

    def cut(self, seconds: float) -> None:
        """Shut down connections that have waited for so many seconds. Any thread may call it."""
        self._cut_at = now = time.monotonic()
        for since, file in list(self._used.values()):
            if now - since >= seconds:
                shut_down(file)

    def _check(self, _connection: Any, entry: ConnectionPoolEntry, _user: Any) -> None:
        if entry.info[MADE_AT] <= self._cut_at:
            raise DisconnectionError  # the pool makes another


def _note_time(_connection: Any, entry: ConnectionPoolEntry) -> None:
    entry.info[MADE_AT] = time.monotonic()


def shut_down(file: int) -> None:
    """Shut down a connection from another thread than the one that waits for it. Closing would not wake that one."""
    with suppress(OSError), socket.socket(fileno=os.dup(file)) as connection:
        connection.shutdown(socket.SHUT_RDWR)
