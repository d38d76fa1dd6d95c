"""Reads and writes of a vendor's cache are charged at their own prices, and held for before they are known."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from anthropic_double import KEY, LONG_CACHE, SPOKEN, USAGE, AnthropicDouble
from chat_steps import HELLO
from conftest import Server, Start

from penstock.domain.chat import Usage
from penstock.domain.money import format_usd
from penstock.store.queries.billing import completion_rows

PRICE = {"input": "3", "cached_input": "0.30", "cache_write": "3.75", "cache_write_1h": "6", "output": "15"}
FRESH, READ = USAGE["input_tokens"], USAGE["cache_read_input_tokens"]
SHORT = USAGE["cache_creation_input_tokens"]
LONG = LONG_CACHE["cache_creation"]["ephemeral_1h_input_tokens"]
WRITTEN = LONG_CACHE["cache_creation_input_tokens"]
PLAIN_COST = FRESH * 3_000 + READ * 300 + SPOKEN * 15_000
CASES = [
    ("text", Usage(FRESH + READ + SHORT, SPOKEN, READ, cache_writes=SHORT), PLAIN_COST + SHORT * 3_750),
    (
        "long-cache",
        Usage(FRESH + READ + WRITTEN, SPOKEN, READ, cache_writes=WRITTEN, cache_writes_1h=LONG),
        PLAIN_COST + (WRITTEN - LONG) * 3_750 + LONG * 6_000,
    ),
]


def settings_of(double: AnthropicDouble) -> str:
    price = ", ".join(f'{name}_per_million = "{amount}"' for name, amount in PRICE.items())
    table = f'[vendors.claude]\ntype = "anthropic"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n'
    models = [
        f'[[models]]\nid = "{name}"\nkind = "chat"\nvendor = "claude"\nprice = {{{price}}}\n'
        for name in ("text", "long-cache")
    ]
    return "\n".join([table, *models])


@pytest.fixture
async def server(start: Start) -> AsyncGenerator[Server]:
    async with AnthropicDouble() as double:
        yield await start(settings_of(double))


async def ask(client: httpx.AsyncClient, model: str, **fields: Any) -> httpx.Response:
    return await client.post("/llm/chat/completions", json={"model": model, "messages": HELLO, **fields})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "usage", "cost"), CASES)
async def test_a_charge_is_the_sum_of_its_parts(server, model, usage, cost, stream):
    client = await server.sign_in()
    response = await ask(client, model, stream=stream)
    assert response.status_code == 200
    if not stream:
        assert response.headers["x-penstock-cost"] == format_usd(cost)
        assert response.json()["usage"] == usage.as_json()
    gateway = server.gateway
    await gateway.usage_writer.flush()
    account_id = (await gateway.keyring.check(client.headers["authorization"])).account_id
    (record,) = await gateway.database.read(completion_rows.of_account, account_id)
    assert (record.usage, record.cost) == (usage, cost)
    total = (await client.get("/api/v1/usage")).json()["total"]
    assert total["cost"] == format_usd(cost)
    assert (total["prompt_tokens"], total["cached_tokens"]) == (usage.prompt, usage.cached)
    assert total["cache_write_tokens"] == usage.cache_writes


async def test_the_price_shows_what_writes_cost(server):
    price = (await server.client.get("/api/v1/models/text")).json()["price"]
    assert (price["cache_write_per_million"], price["cache_write_1h_per_million"]) == ("3.75", "6.00")


async def test_the_hold_covers_a_prompt_that_is_all_written_for_an_hour(server):
    body = {"content": "x" * 40_000, "role": "user"}
    client = await server.sign_in(budgets={"total": "0.05"})
    refused = await ask(client, "text", messages=[body], max_tokens=1)
    assert refused.status_code == 402
    needed = float(refused.json()["error"]["needed"])
    assert 10_000 * 6e-6 < needed < 15_000 * 6e-6  # plain input would fit: about 13,300 tokens at 3e-6 USD
    allowed = await ask(await server.sign_in(budgets={"total": "0.10"}), "text", messages=[body], max_tokens=1)
    assert allowed.status_code == 200
