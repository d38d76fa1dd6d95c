"""Several processes on one PostgreSQL, each played by a database of its own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from sqlalchemy import Connection, text

from penstock.store.postgresql import PostgresDatabase

Fleet = list[PostgresDatabase]


@asynccontextmanager
async def processes(url: str, number: int) -> AsyncGenerator[list[PostgresDatabase]]:
    """So many, until the block ends."""
    async with AsyncExitStack() as stack:
        begun = [PostgresDatabase(url) for _ in range(number)]
        for database in begun:
            stack.push_async_callback(database.close)
        yield begun


async def at_once(*doing: Awaitable[Any]) -> list[Any]:
    """What each came to: its result or its error."""
    return await asyncio.gather(*doing, return_exceptions=True)


async def spread(databases: Sequence[PostgresDatabase], number: int, do: Callable[..., Any]) -> list[Any]:
    """Do it so many times at once, by each process in turn: `do` is given the process and the number."""
    return await at_once(*(do(databases[each % len(databases)], each) for each in range(number)))


async def until(check: Callable[[], Any], seconds: float = 20) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not await check():  # noqa: ASYNC110  it is the server that knows
            await asyncio.sleep(0.005)


def rows(connection: Connection, words: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(text(words))]


async def count(database: PostgresDatabase, table: str) -> int:
    ((number,),) = await database.read(rows, f"SELECT count(*) FROM {table}")  # noqa: S608  names of our own
    return number
