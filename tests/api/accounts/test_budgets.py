"""Budgets are hard: what is held and spent never exceeds the cap, and a refusal says where the budget stands."""

import asyncio
from typing import Any

import httpx
import pytest
from chat_steps import HELLO, chatting
from conftest import MODEL, Server
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from steps import until

from penstock.domain.budgets import Budget, Payer, Period
from penstock.domain.money import format_usd
from penstock.store.queries.billing import balance_rows, budget_rows
from penstock.store.queries.billing.ledger_audit import check

CHAT = "/llm/chat/completions"
PRICE = 'price = {input_per_million = "1000", output_per_million = "1000"}'
TOKENS = PROMPT_TOKENS + len(pieces_of(GREETING))
COST = TOKENS * 1_000_000
"""Of one answer, in 10⁻⁹ USD: a thousandth of a dollar for each token."""
PRICED = f'[vendors.sim]\ntype = "sim"\n[[models]]\nid = "{MODEL}"\nvendor = "sim"\nprice = {{per_job = "0.30"}}\n'


async def payer_of(server: Server, client: httpx.AsyncClient) -> Payer:
    return (await server.gateway.keyring.check(client.headers["authorization"])).payer


async def standing(server: Server, payer: Payer) -> tuple[int, int]:
    found = await server.gateway.database.read(balance_rows.standings, payer, server.gateway.clock())
    return found[0].spent, found[0].held


async def ask(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post(CHAT, json={"model": "plain", "messages": HELLO, "max_tokens": 20, **fields})


@pytest.fixture
async def chat(start):
    async with chatting(start, scenarios=["plain", "slow:0.05", "status:500", "drop"], price=PRICE) as chat:
        yield chat


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_spends_what_the_vendor_counted_and_then_is_refused(chat, stream):
    client = await chat.server.sign_in(budgets={"total": format_usd(3 * COST + 30_000_000)})
    payer = await payer_of(chat.server, client)
    responses = [await ask(client, stream=stream) for _ in range(8)]
    statuses = [response.status_code for response in responses]
    assert statuses[0] == 200
    assert statuses[-1] == 402
    assert statuses == sorted(statuses)
    told = responses[-1].json()["error"]
    assert (told["code"], told["type"], told["retryable"]) == ("insufficient_budget", "insufficient_quota", False)
    assert told["cap"] == format_usd(3 * COST + 30_000_000)
    assert told["resets_at"] is None
    assert responses[-1].headers["x-should-retry"] == "false"
    await chat.server.gateway.usage_writer.flush()
    spent, held = await standing(chat.server, payer)
    assert spent == statuses.count(200) * COST
    await chat.server.gateway.admission.recall(payer.owners)
    assert (await standing(chat.server, payer))[1] == 0
    assert told["spent"] <= format_usd(spent + held)
    assert await chat.server.gateway.database.read(check) == []


async def test_many_at_once_never_pass_the_cap(chat):
    client = await chat.server.sign_in(budgets={"total": "0.5"})
    payer = await payer_of(chat.server, client)
    over = []

    async def watch() -> None:
        while True:
            over.append(sum(await standing(chat.server, payer)) > 500_000_000)
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    responses = await asyncio.gather(*(ask(client) for _ in range(60)))
    watching.cancel()
    assert {response.status_code for response in responses} == {200, 402}
    await chat.server.gateway.usage_writer.flush()
    spent, _ = await standing(chat.server, payer)
    assert spent == COST * sum(response.status_code == 200 for response in responses)
    assert not any(over)


async def test_who_needs_less_is_not_refused_with_who_needs_more(chat):
    client = await chat.server.sign_in(budgets={"total": "1"})
    key = await chat.server.gateway.keyring.check(client.headers["authorization"])
    database, now = chat.server.gateway.database, chat.server.gateway.clock()
    leased = 800_000_000  # by another server, which does not give it back
    await database.write(balance_rows.lease, "process_other", key.payer, key.budgets[0], leased, leased, now)
    big = asyncio.create_task(ask(client, max_tokens=500))
    while not await recalled(chat.server, "process_other"):  # noqa: ASYNC110  until the big one waits for it
        await asyncio.sleep(0.01)
    small = await ask(client, max_tokens=20)
    assert (small.status_code, (await big).status_code) == (200, 402)


async def recalled(server: Server, process: str) -> bool:
    return bool(await server.gateway.database.read(balance_rows.recalled, process))


async def test_jobs_hold_their_price_and_settle_once(start):
    server = await start(PRICED)
    client = await server.sign_in(budgets={"total": "0.70"})
    payer = await payer_of(server, client)
    body = {"model": MODEL, "input": [{"params": {"script": {"latency": 3600, "progress": False}}}]}
    first = await client.post("/model/v1/generation", json=body)
    assert first.status_code == 202, first.text
    assert await standing(server, payer) == (0, 300_000_000)
    failing = {
        "model": MODEL,
        "input": [{"params": {"script": {"latency": 3600, "progress": False, "ending": "failed"}}}],
    }
    second = await client.post("/model/v1/generation", json=failing)
    third = await client.post("/model/v1/generation", json=body)
    assert (second.status_code, third.status_code) == (202, 402)
    told = third.json()["error"]
    assert (told["spent"], told["held"], told["cap"], told["needed"]) == ("0.00", "0.60", "0.70", "0.30")
    for made in (first, second):
        await until(client, made.json()["id"], phase="generating")
    server.age_orders()
    done = [await server.finish(made.json()["id"]) for made in (first, second)]
    assert [job["charged"] for job in done] == [True, False]
    assert [job["cost"]["final"] for job in done] == ["0.30", "0.00"]
    assert await standing(server, payer) == (300_000_000, 0)
    dry = await client.post("/model/v1/generation", json=body | {"dry_run": True})
    assert dry.json()["budget_left"] == "0.40"
    assert await server.gateway.database.read(check) == []


async def test_a_batch_is_held_whole_or_not_at_all(start):
    server = await start(PRICED)
    client = await server.sign_in(budgets={"total": "1.00"})
    payer = await payer_of(server, client)
    inputs = [{"params": {"script": {"ending": "never"}}}] * 4
    refused = await client.post("/model/v1/generation", json={"model": MODEL, "input": inputs})
    told = refused.json()["error"]
    assert (refused.status_code, told["held"], told["needed"]) == (402, "0.00", "1.20")
    taken = await client.post("/model/v1/generation", json={"model": MODEL, "input": inputs[:3]})
    assert taken.status_code == 202
    assert await standing(server, payer) == (0, 900_000_000)


async def test_the_shares_of_a_raised_cap_are_told_anew(chat):
    server, client = chat.server, await chat.server.sign_in(budgets={"total": format_usd(2 * COST)})
    payer = await payer_of(server, client)
    for cap in (2 * COST, 8 * COST):
        budget = Budget(owner=payer.lineage, period=Period.TOTAL, cap=cap)
        await server.gateway.database.write(budget_rows.put, budget, payer.account_id, 0.0)
        server.gateway.admission.reconsider()
        while (await ask(client)).status_code == 200:
            await server.gateway.usage_writer.flush()
    feed = (await client.get("/api/v1/events")).json()["data"]
    shares = [(event["data"]["cap"], event["data"]["share"]) for event in feed if event["type"] == "budget.threshold"]
    assert sorted(set(shares)) == sorted(shares)
    assert {cap for cap, share in shares if share == 100} == {format_usd(2 * COST), format_usd(8 * COST)}
