"""A gateway on PostgreSQL before vendors that count, and what everyone must see while something of it is away."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from aiohttp import web
from chat_steps import HELLO, settings_of
from conftest import MODEL, Server, Start
from crew import loop_time
from openai_double import OpenAIDouble
from postgres import PostgresServer
from steps import refused
from vendors.double import Act, Double, HttpDouble, double_of, hang

from penstock.store.queries.billing.ledger_audit import check

CHAT: Final = "/llm/chat/completions"
OUTPUT: Final = "/outputs/"
GENERATION: Final = "/model/v1/generation"
PRICE: Final = 'price = {input_per_million = "1000", output_per_million = "1000"}'
SCENARIOS: Final = ("plain", "slow:0.05", "slow:0.4")
PATIENCE_SECONDS: Final = 5.0
"""How long a store that is away is waited for before anyone is told."""
QUEUE_SECONDS: Final = 40.0
"""What a busy machine may add to that."""


def far_vendor(double: Double, more: str = "") -> str:
    """Settings: a vendor over HTTP that makes models at 0.30 USD each."""
    return f"""
        [vendors.far]
        type = "sim"
        base_url = "{double.url}"
        poll_seconds = 0.05
        lookup_seconds = 1
        {more}
        [[models]]
        id = "{MODEL}"
        vendor = "far"
        price = {{per_job = "0.30"}}
    """


@dataclass
class Site:
    """A gateway, its vendors and its store."""

    server: Server
    double: Double
    upstream: OpenAIDouble
    store: PostgresServer

    @property
    def client(self) -> httpx.AsyncClient:
        return self.server.client

    async def order(self, latency: float, client: httpx.AsyncClient | None = None, **headers: str) -> httpx.Response:
        """Submit a job that takes the vendor so long."""
        body = {"model": MODEL, "input": [{"params": {"script": {"latency": latency}}}]}
        return await (client or self.client).post(GENERATION, json=body, headers=headers)

    async def ask(self, client: httpx.AsyncClient, model: str = "plain", **fields: Any) -> httpx.Response:
        """A chat request."""
        return await client.post(CHAT, json={"model": model, "messages": HELLO, "max_tokens": 20, **fields})

    async def until_ordered(self, jobs: int) -> None:
        """Wait until the vendor has so many orders."""
        await until(lambda: self.double.counts()["orders"] >= jobs)

    async def check_books(self, jobs: int) -> None:
        """The vendor was asked once for each job, and the ledger is right."""
        assert self.double.counts() == {"orders": jobs, "jobs": jobs, "duplicates": 0}
        await self.server.gateway.usage_writer.flush()
        assert await self.server.gateway.database.read(check) == []

    async def back(self, client: httpx.AsyncClient | None = None) -> float:
        """How long it takes until requests are served again."""
        begun = loop_time()
        await until_answered(client or self.client, "/api/v1/jobs", 200)
        return loop_time() - begun


@asynccontextmanager
async def site_of(start: Start, folder: Path, store: PostgresServer, url: str, more: str = "") -> AsyncGenerator[Site]:
    """A site on this database."""
    async with double_of(folder / "double") as double, OpenAIDouble() as upstream:
        toml = settings_of(upstream, SCENARIOS, more=more + far_vendor(double), price=PRICE)
        server = await start(toml, {"database_url": url})
        yield Site(server, double, upstream, store)


async def until(condition: Callable[[], Any], seconds: float = 300.0) -> None:
    """Wait until something is so."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it did not come to be"
        await asyncio.sleep(0.01)


async def until_answered(client: httpx.AsyncClient, path: str, status: int, seconds: float = 300.0) -> httpx.Response:
    """Ask until the answer has this status."""
    async with asyncio.timeout(seconds):
        while True:
            response = await client.get(path)
            if response.status_code == status:
                return response
            await asyncio.sleep(0.05)


async def timed(answer: Awaitable[httpx.Response]) -> tuple[httpx.Response, float]:
    """The answer, and how long it took."""
    begun = loop_time()
    response = await answer
    return response, loop_time() - begun


def check_away(response: httpx.Response, seconds: float, most: float = PATIENCE_SECONDS) -> None:
    """What everyone is told while the store is away: to come again; never that a key is wrong or a thing not there."""
    error = refused(response, 503, "store_unavailable")
    assert error["retryable"]
    assert int(response.headers["retry-after"]) >= 1
    assert seconds < most + QUEUE_SECONDS, seconds


def withhold(*order_ids: str) -> Act:
    """Never answer who asks for a result; of these orders, if any are named."""

    async def act(double: HttpDouble, request: web.Request) -> web.StreamResponse:
        is_theirs = not order_ids or any(order_id in request.path for order_id in order_ids)
        return await (hang(double, request) if OUTPUT in request.path and is_theirs else double.play(request))

    return act
