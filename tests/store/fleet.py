"""Several processes on one PostgreSQL, each played by a database of its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from sqlalchemy import Connection, make_url, text

from penstock.store.postgres.database import PostgresDatabase

Fleet = list[PostgresDatabase]


@asynccontextmanager
async def processes(url: str, number: int) -> AsyncGenerator[list[PostgresDatabase]]:
    """So many, until the block ends."""
    async with AsyncExitStack() as stack:
        begun = [PostgresDatabase(url) for _ in range(number)]
        for database in begun:
            database.patience = 60  # a busy machine is no outage
            stack.push_async_callback(database.close)
        yield begun


class Line:
    """A way to the server on which connections can die without anyone being told, as behind a proxy."""

    def __init__(self, url: str) -> None:
        self._server = make_url(url)
        self._alive: set[object] = set()
        self._relays: set[asyncio.Task[None] | None] = set()
        self.url = ""

    async def open(self) -> asyncio.Server:
        line = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = self._server.set(port=line.sockets[0].getsockname()[1]).render_as_string()
        return line

    def die(self) -> None:
        """Those that there are say nothing any more; new ones do."""
        self._alive.clear()

    async def close(self) -> None:
        relays = [each for each in self._relays if each is not None]
        for relay in relays:
            relay.cancel()
        await asyncio.gather(*relays, return_exceptions=True)

    async def _relay(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        self._relays.add(asyncio.current_task())
        far, to_far = await asyncio.open_connection(self._server.host, self._server.port)
        self._alive.add(to_near)
        try:
            await asyncio.gather(self._pour(near, to_far, to_near), self._pour(far, to_near, to_near))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            to_near.close()
            to_far.close()

    async def _pour(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, name: object) -> None:
        while said := await source.read(1 << 16):
            if name in self._alive:
                target.write(said)
        target.close()


@asynccontextmanager
async def line_to(url: str) -> AsyncGenerator[Line]:
    """A line to this server, until the block ends."""
    line = Line(url)
    async with await line.open():
        yield line
        await line.close()


async def at_once(*doing: Awaitable[Any]) -> list[Any]:
    """What each came to: its result or its error."""
    return await asyncio.gather(*doing, return_exceptions=True)


async def spread(databases: Sequence[PostgresDatabase], number: int, do: Callable[..., Any]) -> list[Any]:
    """Do it so many times at once, by each process in turn: `do` is given the process and the number."""
    return await at_once(*(do(databases[each % len(databases)], each) for each in range(number)))


async def until(check: Callable[[], Any], seconds: float = 300) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not await check():  # noqa: ASYNC110  it is the server that knows
            await asyncio.sleep(0.005)


def rows(connection: Connection, words: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(text(words))]


async def count(database: PostgresDatabase, table: str) -> int:
    ((number,),) = await database.read(rows, f"SELECT count(*) FROM {table}")  # noqa: S608  names of our own
    return number
