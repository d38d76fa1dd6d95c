"""Usage records of chat: exactly one for every request, whatever became of it, and none lost."""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import chat_canned
import httpx
import pytest
from chat_steps import HELLO, Chat
from chat_wire import connect
from conftest import Server, running
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of

from penstock.chat.token_bounds import UNSEEN_TOKENS
from penstock.domain.chat import Usage
from penstock.domain.money import format_usd
from penstock.domain.usage import ChatOutcome, Completion
from penstock.settings.tables import load
from penstock.store.connect import open_database
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import completion_rows

WORDS = len(pieces_of(GREETING))
TOLD = Usage(PROMPT_TOKENS, WORDS, 3, 0)
PRICE = 'price = {input_per_million = "0.15", cached_input_per_million = "0.075", output_per_million = "0.60"}'
COST = (PROMPT_TOKENS - 3) * 150 + 3 * 75 + WORDS * 600
GUESSED = len(json.dumps(HELLO)) // 4 + 1
JSON = {"content-type": "application/json"}
SCENARIOS = (
    *("plain", "no-usage", "reasoning", "vllm", "ollama", "llamacpp", "hang", "slow:0.05", "linger:30", "cut"),
    *("clean-cut", "error-mid", "status:500", "status:503", "status:400", "401", "retry-after:1", "drop", "not-json"),
    *("error-first", "context", "think:30"),
)


def settings_of(double: OpenAIDouble, more: str = "", vendor: str = "") -> str:
    table = f'[vendors.upstream]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n{vendor}\n'
    models = [f'[[models]]\nid = "{scenario}"\nkind = "chat"\nvendor = "upstream"\n{PRICE}\n' for scenario in SCENARIOS]
    return "\n".join([more, table, *models])


@asynccontextmanager
async def counting(start: Any, **options: Any) -> AsyncGenerator[Chat]:
    async with OpenAIDouble() as double:
        server = await start(settings_of(double, **options))
        yield Chat(server, double, await server.new_key())


@pytest.fixture
async def chat(start):
    async with counting(start, vendor="total_seconds = 60") as chat:
        yield chat


async def ask(server: Server, model: str = "plain", **fields: Any) -> httpx.Response:
    body = json.dumps({"model": model, "messages": HELLO, **fields})  # not as httpx writes it: length matters
    try:
        return await server.client.post("/llm/chat/completions", content=body, headers=JSON)
    except httpx.RemoteProtocolError:  # a stream that was cut
        return httpx.Response(200)


async def read(server: Server) -> list[Completion]:
    database = server.gateway.database
    account_id = await database.write(key_rows.account_id, "default", time.time())
    return await database.read(completion_rows.of_account, account_id, 1000)


async def records(server: Server, count: int, seconds: float = 60) -> list[Completion]:
    """All records, oldest first; they must be so many, also after one more has been written."""
    async with asyncio.timeout(seconds):
        await _wait_for(server, count)
        await ask(server, next(iter(server.gateway.offers.chat)))
        found = await _wait_for(server, count + 1)
    assert len(found) == count + 1
    return found[:0:-1]


async def _wait_for(server: Server, count: int) -> list[Completion]:
    while len(found := await read(server)) < count:  # noqa: ASYNC110 - the store tells nobody
        await asyncio.sleep(0.02)
    return found


async def record_of(chat: Chat, model: str, **fields: Any) -> Completion:
    """The one record of one request."""
    response = await ask(chat.server, model, **fields)
    (record,) = await records(chat.server, 1)
    assert record.model == model
    assert record.streamed is bool(fields.get("stream"))
    assert response.headers.get("x-request-id", record.request_id) == record.request_id
    return record


# -- answers


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}])
@pytest.mark.parametrize("model", ["plain", "reasoning", "vllm", "ollama", "llamacpp"])
async def test_what_the_vendor_counted_is_recorded(chat, model, fields):
    record = await record_of(chat, model, **fields)
    thought = 0 if model == "plain" else len(pieces_of("The user greets me. I greet back."))
    assert record.usage == Usage(PROMPT_TOKENS, WORDS + thought, 3, thought)
    assert (record.outcome, record.code) == (ChatOutcome.OK, "")
    assert (record.vendor, record.upstream_model) == ("upstream", model)
    assert record.cost == COST + thought * 600
    assert 0 < (record.first_byte_seconds or 0) <= record.seconds < 30
    assert abs(record.created_at - time.time()) < 60


async def test_the_cost_that_the_caller_is_told_is_the_cost_recorded(chat):
    response = await ask(chat.server)
    assert response.headers["x-penstock-cost"] == format_usd(COST)
    assert (await records(chat.server, 1))[0].cost == COST


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("stream", [False, True])
async def test_what_nobody_counted_is_estimated_and_marked(chat, stream, n):
    record = await record_of(chat, "no-usage", stream=stream, n=n)
    assert record.outcome is ChatOutcome.OK
    assert record.usage == Usage(GUESSED, -(-len(GREETING) * n // 4), estimated=True)
    assert record.cost == record.usage.prompt * 150 + record.usage.completion * 600


async def test_requests_that_are_no_chat_leave_no_record(chat):
    for body in (b"{", b"{}", b'{"model":"nobody","messages":[{"role":"user"}]}', b'{"model":"plain","messages":[]}'):
        response = await chat.server.client.post("/llm/chat/completions", content=body, headers=JSON)
        assert response.status_code in (400, 404)
    await records(chat.server, 0)


# -- requests that end otherwise


@pytest.mark.parametrize("stream", [False, True])
async def test_who_leaves_before_the_answer_is_recorded(chat, stream):
    async with connect(chat) as wire:
        await wire.ask("hang", stream=stream)
        await chat.double.until(lambda double: double.open)
    (record,) = await records(chat.server, 1)
    assert (record.outcome, record.code, record.streamed) == (ChatOutcome.CANCELED, "", stream)
    assert record.usage == Usage(GUESSED, 0, estimated=True)
    assert record.first_byte_seconds is None


async def test_who_leaves_in_mid_stream_pays_for_what_was_said(chat):
    async with connect(chat) as wire:
        await wire.ask("slow:0.05", stream=True)
        await wire.head()
        for _ in range(4):
            await wire.chunk()
    (record,) = await records(chat.server, 1)
    assert record.outcome is ChatOutcome.CANCELED
    assert record.usage.estimated
    assert 0 < record.usage.completion < WORDS
    assert record.first_byte_seconds is not None


async def test_who_leaves_after_the_end_has_the_whole_answer(chat):
    async with connect(chat) as wire:
        await wire.ask("linger:30", stream=True)
        await wire.reply()
    (record,) = await records(chat.server, 1)
    assert (record.outcome, record.usage) == (ChatOutcome.OK, TOLD)


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid"])
async def test_streams_that_break_off(chat, model):
    record = await record_of(chat, model, stream=True)
    said = len("".join(pieces_of(GREETING)[:2]))
    assert (record.outcome, record.code) == (ChatOutcome.CUT, "upstream_error")
    assert record.usage == Usage(GUESSED, -(-said // 4), estimated=True)
    assert record.cost == record.usage.prompt * 150 + record.usage.completion * 600


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("status:500", "upstream_error"),
        ("error-first", "upstream_error"),
        ("status:503", "overloaded"),
        ("status:400", "invalid_value"),
        ("context", "context_length_exceeded"),
        ("401", "upstream_auth"),
        ("retry-after:1", "rate_limit_exceeded"),
    ],
)
async def test_refusals_cost_nothing(chat, model, code, stream):
    record = await record_of(chat, model, stream=stream)
    assert (record.outcome, record.code, record.usage, record.cost) == (ChatOutcome.FAILED, code, Usage(), 0)
    assert record.vendor == "upstream"


async def test_a_vendor_that_cannot_be_reached_costs_nothing(chat):
    await chat.double.close()
    record = await record_of(chat, "plain")
    assert (record.outcome, record.code, record.usage) == (ChatOutcome.FAILED, "upstream_error", Usage())


@pytest.mark.parametrize(("model", "code"), [("drop", "upstream_error"), ("not-json", "upstream_error")])
async def test_work_that_may_have_been_done_is_counted(chat, model, code):
    record = await record_of(chat, model)
    assert (record.outcome, record.code) == (ChatOutcome.FAILED, code)
    assert record.usage == Usage(GUESSED, 0, estimated=True)


@pytest.mark.parametrize(
    ("model", "stream", "outcome"),
    [("hang", False, ChatOutcome.FAILED), ("hang", True, ChatOutcome.FAILED), ("think:30", True, ChatOutcome.CUT)],
)
async def test_timeouts(start, model, stream, outcome):
    async with counting(start, vendor="first_byte_seconds = 0.3\nidle_seconds = 0.3\ntotal_seconds = 0.6") as chat:
        record = await record_of(chat, model, stream=stream)
        assert (record.outcome, record.code) == (outcome, "upstream_timeout")
        assert record.usage == Usage(GUESSED, 0, estimated=True)


async def test_an_answer_from_the_cache_is_recorded_and_free(start):
    async with counting(start, more="[chat]\ncache_mb = 1") as chat:
        for stream in (False, False, True, True):
            await ask(chat.server, stream=stream)
        assert len(chat.double.requests) == 2
        found = await records(chat.server, 4)
        assert [record.outcome for record in found] == [ChatOutcome.OK, ChatOutcome.CACHED] * 2
        assert [record.usage for record in found] == [TOLD, Usage()] * 2
        assert [record.cost for record in found] == [COST, 0] * 2
        assert {record.vendor for record in found} == {"upstream"}


async def test_a_request_over_the_keys_limit_is_recorded(chat):
    limited = await chat.server.sign_in(requests_per_minute=1)
    for _ in range(3):
        await limited.post("/llm/chat/completions", json={"model": "plain", "messages": HELLO})
    assert len(chat.double.requests) == 1
    found = await records(chat.server, 3)
    assert [record.code for record in found] == ["", "rate_limit_exceeded", "rate_limit_exceeded"]
    assert [record.usage for record in found[1:]] == [Usage(), Usage()]


# -- counts beyond belief


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("count", [10**30, 2**63, -5])
async def test_no_count_that_a_vendor_tells_stops_the_records(start, count, stream):
    usage = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": "stop"}
    choice |= {"delta": {"content": "Hi"}} if stream else {"message": {"role": "assistant", "content": "Hi"}}
    reply = {"id": "c-1", "object": "x", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    body = json.dumps(reply).encode()
    async with chat_canned.canned() as upstream:
        upstream.reply = chat_canned.STREAM + b"data: " + body if stream else chat_canned.WHOLE + body
        server = await start(chat_canned.settings_of(upstream, price=PRICE))
        for _ in range(2):
            assert (await ask(server, "canned", stream=stream)).status_code == 200
            await server.gateway.usage_writer.flush()  # the first is in the store before the second comes
        found = [record.usage for record in await records(server, 2)]
        assert [usage.estimated for usage in found] == [count > 0] * 2  # cut to what can be true
        for usage in found:
            assert (0 if count < 0 else 1) <= usage.prompt <= max(0, min(count, 1500))
            assert (0 if count < 0 else 1) <= usage.completion <= max(0, min(count, UNSEEN_TOKENS + 1000))


FALSE = {"prompt_tokens": 10**9, "completion_tokens": 10**9, "total_tokens": 2 * 10**9}
DEAR = 'price = {input_per_million = "100", output_per_million = "100"}'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("limits", [{}, {"max_tokens": 10}, {"max_tokens": 10, "n": 3}, {"max_completion_tokens": 10}])
async def test_a_false_claim_never_costs_more_than_what_was_held(start, limits, stream, caplog):
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": "stop"}
    choice |= {"delta": {"content": "Hi"}} if stream else {"message": {"role": "assistant", "content": "Hi"}}
    body = json.dumps({"id": "c-1", "object": "x", "created": 1, "model": "m", "choices": [choice], "usage": FALSE})
    async with chat_canned.canned() as upstream:
        upstream.reply = (chat_canned.STREAM + b"data: " if stream else chat_canned.WHOLE) + body.encode()
        server = await start(chat_canned.settings_of(upstream, price=DEAR))
        client = await server.sign_in("spender", budgets={"total": "1"}, tokens_per_minute=1_000_000)
        question = {"model": "canned", "messages": HELLO, "stream": stream, **limits}
        response = await client.post("/llm/chat/completions", json=question)
        assert response.status_code == 200
        await server.gateway.usage_writer.flush()
        usage = (await client.get("/api/v1/usage")).json()
        (budget,) = usage["budgets"]
        sent, seen = len(response.request.content), 8 if stream else len(body)
        held = (len(json.dumps(HELLO)) // 4 + 1) * 4 // 3 + 16 + limits.get("n", 1) * (10 if limits else 1000)
        assert 0 < float(budget["spent"]) <= max(held, sent + seen) * 0.0001
        if limits:
            assert float(budget["spent"]) <= (sent + 10 * limits.get("n", 1)) * 0.0001
        assert "the claim was cut" in caplog.text
        assert 'penstock_chat_claims_cut_total{vendor="canned"}' in (await server.client.get("/metrics")).text
        again = await client.post("/llm/chat/completions", json=question | {"max_tokens": 1})
        assert again.status_code == 200, "the rate limit was not charged for what cannot be true"


async def test_an_end_without_its_blank_line_is_told_once(start):
    chunk = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk |= {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    async with chat_canned.canned() as upstream:
        upstream.reply = chat_canned.STREAM + b"data: " + json.dumps(chunk).encode()
        server = await start(chat_canned.settings_of(upstream))
        response = await ask(server, "canned", stream=True, stream_options={"include_usage": True})
        assert response.text.count("data: ") == 3  # the text, what it used, and the end
        assert response.text.count("[DONE]") == 1
        assert (await records(server, 1))[0].outcome is ChatOutcome.OK


# -- nothing is lost


def stored(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "penstock.db")) as connection:
        return connection.execute("SELECT request_id, outcome FROM completions ORDER BY id").fetchall()


async def test_nothing_is_lost_when_the_gateway_is_closed_right_after(tmp_path):
    async with OpenAIDouble() as double:
        config = tmp_path / "penstock.toml"
        config.write_text(settings_of(double))
        settings = load(config, {}, {"data": tmp_path / "data"})
        await open_database(settings.database_url).close()
        async with running(settings) as server:
            responses = await asyncio.gather(*(ask(server, stream=bool(number % 2)) for number in range(40)))
            streaming = asyncio.create_task(ask(server, "think:30", stream=True))
            waiting = asyncio.create_task(ask(server, "hang"))
            await double.until(lambda double: double.open == 2)
        await asyncio.gather(streaming, waiting, return_exceptions=True)
        found = stored(tmp_path / "data")
        assert sorted(request_id for request_id, outcome in found if outcome == "ok") == sorted(
            response.headers["x-request-id"] for response in responses
        )
        assert [outcome for _, outcome in found if outcome != "ok"] == ["canceled", "canceled"]


@pytest.mark.parametrize("seconds", [1.0, 6.0])  # the store waits five for a lock by itself
async def test_records_survive_an_outage_of_the_store(chat, seconds):
    await records(chat.server, 0)
    path = chat.server.gateway.settings.data / "penstock.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        until = time.monotonic() + seconds
        ids: list[str] = []
        while time.monotonic() < until:
            ids.append((await ask(chat.server)).headers["x-request-id"])
            await asyncio.sleep(0.05)
    finally:
        other.execute("ROLLBACK")
        other.close()
    found = await records(chat.server, 1 + len(ids))
    assert [record.request_id for record in found[1:]] == ids
    assert all(record.usage == TOLD for record in found)
