"""Sends a range of a file with `sendfile`: the kernel copies it, without passing through this process."""

import asyncio
import os
from contextlib import suppress
from typing import Any, Final

MAX_PIECE_BYTES: Final = 4 << 20
"""Bytes sent by one call. Calls run in a thread, because the kernel may have to read from disk first."""


class FileSocket:
    """A duplicate of a connection's socket, because an event loop does not let others watch a transport's own.

    The transport's write buffer must be empty meanwhile.
    """

    def __init__(self, transport: Any, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = os.dup(transport.get_extra_info("socket").fileno())
        self._waiter: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self.left = count
        """Bytes not yet sent."""

    async def send(self, file: int, start: int, count: int) -> int:
        """Send bytes of an open file. Return the number sent until the client disconnected or the file ended."""
        end = start + count
        try:
            while start < end and not self._closed:
                try:
                    sent = await self._push(file, start, min(MAX_PIECE_BYTES, end - start))
                except BlockingIOError:
                    await self._wait()
                else:
                    if sent == 0:
                        break
                    start += sent
                    self.left = end - start
        finally:
            os.close(self._socket)
        return count - (end - start)

    def close(self) -> None:
        """Stop sending, because the client disconnected."""
        self._closed = True
        self._wake()

    async def _push(self, file: int, start: int, count: int) -> int:
        pushing = self._loop.run_in_executor(None, os.sendfile, self._socket, file, start, count)
        try:
            return await asyncio.shield(pushing)
        finally:
            if not pushing.done():  # cancelled: the descriptors could be reused once they are closed
                with suppress(OSError):
                    await pushing

    async def _wait(self) -> None:
        """Wait until the socket is writable or the client disconnected."""
        self._waiter = self._loop.create_future()
        self._loop.add_writer(self._socket, self._wake)
        try:
            if not self._closed:
                await self._waiter
        finally:
            self._loop.remove_writer(self._socket)

    def _wake(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)
