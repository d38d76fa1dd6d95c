"""A store, keys with budgets and limits, and clocks that a test moves itself, for what a process holds of them."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from sqlalchemy import Connection, text

from penstock.billing.leases import Clocks
from penstock.domain.api_keys import ApiKey, Limits
from penstock.domain.budgets import Budget, Payer, Period
from penstock.domain.chat import Usage
from penstock.domain.usage import ChatOutcome, Completion
from penstock.errors import StoreUnavailable
from penstock.store.connect import is_file, path_of
from penstock.store.database import Database
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.billing import balance_rows, budget_rows, completion_rows
from penstock.store.sqlite.database import SqliteDatabase

ACCOUNT = "acct_one"
KEY = "key_one"
NOON = 1_700_049_600.0 - 6 * 3600  # 2023-11-15, UTC
PAYER = Payer(ACCOUNT, KEY, KEY)
_numbers = count()


def chances(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  nothing is secret here


class Time:
    """Stands still until it is moved."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now
        self.steady = 1000.0
        self.clocks = Clocks(lambda: self.now, lambda: self.steady)

    def move(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds


class Store(Database):
    """Counts what is asked of it, and fails when it is told to."""

    writes = 0
    broken = False
    fails: Callable[[], bool] = staticmethod(lambda: False)

    async def write(self, function: Any, *args: Any, **options: Any) -> Any:
        self.writes += 1
        if self.broken or self.fails():
            await asyncio.sleep(0)
            raise StoreUnavailable(retry_after=1)
        return await super().write(function, *args, **options)


class FileStore(Store, SqliteDatabase):
    """The same of a file."""


class ServerStore(Store, PostgresDatabase):
    """The same of PostgreSQL."""


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = FileStore(path_of(url)) if is_file(url) else ServerStore(url)
    store.patience = 60  # a busy machine is no outage
    try:
        yield store
    finally:
        store.broken, store.fails = False, lambda: False
        await store.close()


async def set_budget(
    store: Database, cap: int, period: Period = Period.TOTAL, owner: str = KEY, time_zone: str = "UTC", at: float = NOON
) -> Budget:
    budget = Budget(owner=owner, period=period, cap=cap, time_zone=time_zone)
    await store.write(budget_rows.put, budget, ACCOUNT, at)
    return budget


def make_key(*budgets: Budget, **limits: int) -> ApiKey:
    return ApiKey(
        public_id=KEY,
        account_id=ACCOUNT,
        account="one",
        name="",
        secret_hash=b"",
        lineage=KEY,
        budgets=budgets,
        limits=Limits(**limits),
    )


def make_record(cost: int, at: float = NOON) -> Completion:
    return Completion(
        id=f"chat_{next(_numbers):010}",
        request_id="req",
        account_id=ACCOUNT,
        key_id=KEY,
        lineage=KEY,
        model="writer",
        vendor="upstream",
        upstream_model="m",
        streamed=False,
        outcome=ChatOutcome.OK,
        code="",
        usage=Usage(1, 1),
        cost=cost,
        created_at=at,
        seconds=0.1,
        first_byte_seconds=None,
    )


async def charge(store: Database, process: str, *costs: int, at: float = NOON) -> None:
    """As the tally does: a batch of what requests of this process cost."""
    await store.write(completion_rows.add_all, process, [make_record(cost, at) for cost in costs], at)


async def standing(store: Database, at: float = NOON) -> tuple[int, int]:
    """Spent and held of the key's only budget."""
    [found] = await store.read(balance_rows.standings, PAYER, at)
    return found.spent, found.held


async def rows(store: Database, words: str) -> list[Any]:
    def look(connection: Connection) -> Sequence[Any]:
        return connection.execute(text(words)).all()

    return list(await store.read(look))


async def wait_for(check: Callable[[], Any], seconds: float = 300) -> None:
    """Until it is so."""
    async with asyncio.timeout(seconds):
        while not await check():  # noqa: ASYNC110  it is the store that knows
            await asyncio.sleep(0.01)
