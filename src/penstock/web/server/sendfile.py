"""Sends a stretch of a file over a connection: the system copies it, and none of it comes into this process."""

import asyncio
import os
from contextlib import suppress
from typing import Any, Final

PIECE: Final = 4 << 20
"""The most that is sent by one call, in a thread: what is not in memory has to come from the disk first."""


class FileSocket:
    """A connection's socket, by a descriptor of its own: an event loop lets nobody watch that of a transport.

    Nothing of the transport's may wait to be written meanwhile.
    """

    def __init__(self, transport: Any, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = os.dup(transport.get_extra_info("socket").fileno())
        self._waiter: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self.left = count
        """Bytes that are still to be sent."""

    async def send(self, file: int, start: int, count: int) -> int:
        """Send bytes of an open file; how many were sent until the caller left or the file ended."""
        end = start + count
        try:
            while start < end and not self._closed:
                try:
                    sent = await self._push(file, start, min(PIECE, end - start))
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
        """The caller has left: send no more."""
        self._closed = True
        self._wake()

    async def _push(self, file: int, start: int, count: int) -> int:
        pushing = self._loop.run_in_executor(None, os.sendfile, self._socket, file, start, count)
        try:
            return await asyncio.shield(pushing)
        finally:
            if not pushing.done():  # cancelled: the descriptors may mean something else once they are closed
                with suppress(OSError):
                    await pushing

    async def _wait(self) -> None:
        """Until the caller has read some, or has left."""
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
