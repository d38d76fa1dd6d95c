"""Chat within limits: of keys, of the response cache, of what pages may read, and of what one body may cost others."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
from chat_steps import HELLO, Chat, chatting
from chat_wire import connect, events_of
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from plain import NO_TLS

from penstock.settings.tables import load

CHAT = "/llm/chat/completions"
USED = PROMPT_TOKENS + len(pieces_of(GREETING))
GUESSED = len(json.dumps(HELLO, separators=(",", ":"))) // 4 + 1
FLOWN = 10
"""Tokens that may flow in while a busy machine answers."""


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


@asynccontextmanager
async def caching(start: Any, seconds: float = 60) -> AsyncGenerator[Chat]:
    async with chatting(start, toml=f"[chat]\ncache_mb = 1\ncache_seconds = {seconds}") as chat:
        yield chat


async def ask(client: httpx.AsyncClient, model: str = "plain", **fields: Any) -> httpx.Response:
    return await client.post(CHAT, json={"model": model, "messages": HELLO, **fields})


def remaining(response: httpx.Response, what: str) -> int:
    return int(response.headers[f"x-ratelimit-remaining-{what}"])


# -- limits of keys


@pytest.mark.parametrize("stream", [False, True])
async def test_requests_per_minute(chat, stream):
    client = await chat.server.sign_in(requests_per_minute=3)
    responses = [await ask(client, stream=stream) for _ in range(5)]
    assert [response.status_code for response in responses] == [200, 200, 200, 429, 429]
    assert [remaining(response, "requests") for response in responses] == [2, 1, 0, 0, 0]
    assert {response.headers["x-ratelimit-limit-requests"] for response in responses} == {"3"}
    assert all(response.headers["x-ratelimit-reset-requests"].endswith("s") for response in responses)
    assert "x-ratelimit-limit-tokens" not in responses[0].headers
    refused = responses[3]
    error = refused.json()["error"]
    assert (error["code"], error["type"], error["retryable"]) == ("rate_limit_exceeded", "rate_limit_error", True)
    assert "3 requests per minute" in error["message"]
    assert refused.headers["x-should-retry"] == "true"
    assert 5 <= int(refused.headers["retry-after"]) <= 20
    assert 0 <= int(refused.headers["retry-after"]) - int(refused.headers["retry-after-ms"]) / 1000 < 1
    assert len(chat.double.requests) == 3


async def test_the_wait_that_is_told_is_enough_and_no_more(chat):
    client = await chat.server.sign_in(requests_per_minute=60)
    responses = await asyncio.gather(*(ask(client) for _ in range(70)))
    assert {response.status_code for response in responses} == {200, 429}
    early = None
    while early is None or early.status_code == 200:
        while (last := await ask(client)).status_code == 200:
            pass
        came = time.monotonic()
        wait = int(last.headers["retry-after-ms"]) / 1000
        assert 0 < wait <= 1
        assert last.headers["retry-after"] == "1"
        await asyncio.sleep(wait / 2)
        early = await ask(client)
        assert early.status_code == 429 or time.monotonic() - came > wait  # a busy machine: then all over again
    await asyncio.sleep(came + wait - time.monotonic())
    assert (await ask(client)).status_code == 200


async def test_a_client_that_retries_gets_its_answer(chat):
    key = await chat.server.new_key(requests_per_minute=60)
    client = await chat.sign_in(api_key=key, max_retries=2)
    eager = await chat.sign_in(api_key=key)
    asks = [eager.chat.completions.create(model="plain", messages=HELLO) for _ in range(70)]
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert any(isinstance(answer, openai.RateLimitError) for answer in answers)
    completion = await client.chat.completions.create(model="plain", messages=HELLO)
    assert completion.choices[0].message.content == GREETING


@pytest.mark.parametrize("stream", [False, True])
async def test_tokens_per_minute(chat, stream):
    client = await chat.server.sign_in(tokens_per_minute=100)
    first = await ask(client, stream=stream)  # of a stream it is not known yet how many there will be
    expected = 100 - (GUESSED if stream else USED)
    assert expected <= remaining(first, "tokens") <= expected + FLOWN
    second = await ask(client, stream=stream)
    expected = 100 - USED - (GUESSED + len(pieces_of(GREETING)) if stream else USED)
    assert expected <= remaining(second, "tokens") <= expected + FLOWN
    responses = [await ask(client, stream=stream) for _ in range(5)]
    assert [response.status_code for response in responses][-1] == 429
    refused = responses[-1]
    assert "100 tokens per minute" in refused.json()["error"]["message"]
    assert refused.headers["x-ratelimit-limit-tokens"] == "100"
    assert 0 < int(refused.headers["retry-after-ms"]) < 60_000


@pytest.mark.parametrize("model", ["status:500", "status:400", "401"])
async def test_what_no_vendor_worked_for_costs_no_tokens(chat, model):
    client = await chat.server.sign_in(tokens_per_minute=50)
    for _ in range(20):
        assert (await ask(client, model)).status_code != 429
    assert 50 - USED <= remaining(await ask(client), "tokens") <= 50 - USED + FLOWN


async def test_a_prompt_that_never_fits_is_refused_for_good(chat):
    client = await chat.server.sign_in(tokens_per_minute=50)
    refused = await ask(client, messages=[{"role": "user", "content": "word " * 100}])
    assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
    assert "50 are allowed per minute" in refused.json()["error"]["message"]
    assert 50 - USED <= remaining(await ask(client), "tokens") <= 50 - USED + FLOWN


async def test_answers_under_way_count_by_what_they_may_say(chat):
    client = await chat.server.sign_in(tokens_per_minute=1000)
    asks = (ask(client, "slow:0.05", stream=True, max_tokens=700) for _ in range(5))
    statuses = [response.status_code for response in await asyncio.gather(*asks)]
    assert sorted(statuses) == [200, 429, 429, 429, 429]


async def test_who_leaves_pays_for_what_was_said(chat):
    key = await chat.server.new_key(tokens_per_minute=50)
    limited = Chat(chat.server, chat.double, key)
    async with connect(limited) as wire:
        await wire.ask("slow:0.05", stream=True)
        await wire.head()
        for _ in range(4):
            await wire.chunk()
    await chat.double.until(lambda double: not double.open)
    client = await chat.sign_in(api_key=key)
    raw = await client.chat.completions.with_raw_response.create(model="plain", messages=HELLO)
    left = int(raw.headers["x-ratelimit-remaining-tokens"])
    assert 50 - GUESSED - USED - 10 < left < 50 - USED - 5


async def test_a_key_without_limits_has_no_such_headers(chat):
    response = await ask(chat.server.client)
    assert not [name for name in response.headers if name.startswith("x-ratelimit")]


async def test_keys_do_not_share_limits_and_other_requests_do_not_count(chat):
    one, two = [await chat.server.sign_in(requests_per_minute=1) for _ in range(2)]
    assert (await ask(one)).status_code == 200
    assert (await ask(one)).status_code == 429
    assert (await ask(two, "nobody")).status_code == 404
    assert (await two.get("/llm/models")).status_code == 200
    assert (await ask(two, n=1000)).status_code == 400
    assert (await ask(two)).status_code == 200


# -- the response cache


async def test_the_same_question_has_the_same_answer_byte_for_byte(start):
    async with caching(start) as chat:
        for fields in ({}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}):
            first, second = [await ask(chat.server.client, **fields) for _ in range(2)]
            assert second.content == first.content
            assert second.status_code == 200
            assert [response.headers["x-penstock-cache"] for response in (first, second)] == ["miss", "hit"]
            assert second.headers["content-type"] == first.headers["content-type"]
            assert second.headers["x-penstock-vendor"] == "upstream"
            assert second.headers["x-request-id"] != first.headers["x-request-id"]
        assert len(chat.double.requests) == 3
        chunks = await chat.collect()  # another key of the same account, through the SDK
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == GREETING
        assert len(chat.double.requests) == 3


async def test_nobody_gets_another_accounts_answer(start):
    async with caching(start) as chat:
        other = await chat.server.sign_in("other")
        for client in (chat.server.client, other, chat.server.client, other):
            await ask(client)
        assert len(chat.double.requests) == 2


async def test_another_question_has_another_answer(start):
    async with caching(start) as chat:
        asks: list[dict[str, Any]] = [
            {},
            {"temperature": 0},
            {"n": 2},
            {"user": "me"},
            {"seed": 1},
            {"model": "org/model-x"},
        ]
        for fields in asks * 2:
            assert (await chat.server.client.post(CHAT, json={"model": "plain", "messages": HELLO} | fields)).is_success
        assert len(chat.double.requests) == len(asks)


async def test_no_cache_unless_it_is_wished_for(chat):
    responses = [await ask(chat.server.client) for _ in range(2)]
    assert len(chat.double.requests) == 2
    assert all("x-penstock-cache" not in response.headers for response in responses)


async def test_an_answer_is_good_for_its_time_only(start):
    async with caching(start, seconds=1.5) as chat:
        told = [(await ask(chat.server.client)).headers["x-penstock-cache"]]
        async with asyncio.timeout(60):
            while told[-2:] != ["hit", "miss"]:
                await asyncio.sleep(0.05)
                told.append((await ask(chat.server.client)).headers["x-penstock-cache"])
        assert len(chat.double.requests) == told.count("miss")


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid"])
async def test_a_broken_stream_is_never_kept(start, model):
    async with caching(start) as chat:
        for _ in range(2):
            with pytest.raises(openai.APIError):
                await chat.collect(model)
        assert len(chat.double.requests) == 2


@pytest.mark.parametrize("model", ["status:500", "status:400", "drop", "not-json", "empty"])
async def test_a_failure_is_never_kept(start, model):
    async with caching(start) as chat:
        for _ in range(2):
            assert not (await ask(chat.server.client, model)).is_success
        assert len(chat.double.requests) == 2


async def test_an_answer_whose_caller_left_is_never_kept(start):
    async with caching(start) as chat:
        async with connect(chat) as wire:
            await wire.ask("slow:0.05", stream=True)
            await wire.head()
            await wire.chunk()
        await chat.double.until(lambda double: not double.open)
        async with connect(chat) as wire:
            await wire.ask("slow:0.05", stream=True)
            status, headers, body = await wire.reply()
        assert (status, headers["x-penstock-cache"]) == (200, "miss")
        assert events_of(body)[-1] == b"[DONE]"


async def test_heartbeats_are_no_part_of_an_answer(start):
    toml = "[chat]\ncache_mb = 1\nheartbeat_seconds = 0.1"
    async with chatting(start, toml=toml, scenarios=["think:0.5", "heartbeat:0.3"]) as chat:
        for model in ("think:0.5", "heartbeat:0.3"):
            first, second = [await ask(chat.server.client, model, stream=True) for _ in range(2)]
            assert b"\n: " in b"\n" + first.content
            assert second.headers["x-penstock-cache"] == "hit"
            assert events_of(second.content) == events_of(first.content)
            assert b"\n: " not in b"\n" + second.content


async def test_an_answer_from_the_cache_counts_as_a_request_and_as_no_tokens(start):
    async with caching(start) as chat:
        client = await chat.server.sign_in(requests_per_minute=5, tokens_per_minute=100)
        responses = [await ask(client) for _ in range(4)]
        assert [remaining(response, "requests") for response in responses] == [4, 3, 2, 1]
        left = [remaining(response, "tokens") for response in responses[1:]]
        assert all(count >= 100 - USED - GUESSED for count in left)


async def test_the_cache_can_be_turned_off_while_running(start, tmp_path):
    async with caching(start) as chat:
        await ask(chat.server.client)
        gateway = chat.server.gateway
        await gateway.reload(load(tmp_path / "penstock.toml", {}, {"data": gateway.settings.data, "chat.cache_mb": 0}))
        assert "x-penstock-cache" not in (await ask(chat.server.client)).headers
        assert len(chat.double.requests) == 2


# -- pages

PAGE = {"origin": "https://page.example"}
READ = (
    "x-request-id",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-penstock-cost",
    "x-ratelimit-limit-tokens",
)


def check_readable(response: httpx.Response) -> None:
    assert response.headers["access-control-allow-origin"] == "*"
    exposed = {name.strip() for name in response.headers["access-control-expose-headers"].split(",")}
    assert exposed >= set(READ)
    assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("path", [CHAT, "/v1/chat/completions", "/llm/models", "/llm/models/org/model-x"])
async def test_a_page_may_ask_whether_it_may_ask(chat, path):
    wanted = "authorization,content-type,openai-organization,x-stainless-os,x-stainless-new-thing"
    headers = {**PAGE, "access-control-request-method": "POST", "access-control-request-headers": wanted}
    async with httpx.AsyncClient(
        base_url=chat.server.url, trust_env=False, verify=NO_TLS
    ) as nobody:  # preflights have no key
        response = await nobody.options(path, headers=headers)
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-origin"] == "*"
    allowed = {name.strip() for name in response.headers["access-control-allow-headers"].split(",")}
    assert allowed >= set(wanted.split(","))
    assert "POST" in response.headers["access-control-allow-methods"]
    assert int(response.headers["access-control-max-age"]) > 0


async def test_a_page_can_read_answers_and_errors(chat):
    client = await chat.server.sign_in(requests_per_minute=3, tokens_per_minute=10_000)
    client.headers.update(PAGE)
    ok, stream, failed, limited = [
        await ask(client),
        await ask(client, stream=True),
        await ask(client, "status:500"),
        await ask(client),
    ]
    unknown, wrong, nowhere = await ask(client, "nobody"), await ask(client, n=0), await client.get("/llm/nothing")
    client.headers["authorization"] = "Bearer psk_wrong"
    denied, models = await ask(client), await client.get("/llm/models")
    responses = [ok, stream, failed, limited, unknown, wrong, nowhere, denied, models]
    assert [response.status_code for response in responses] == [200, 200, 502, 429, 404, 400, 404, 401, 401]
    for response in responses:
        check_readable(response)
    assert limited.json()["error"]["code"] == "rate_limit_exceeded"


async def test_who_is_no_page_is_told_nothing_of_pages(chat):
    response = await ask(chat.server.client)
    assert not [name for name in response.headers if name.startswith("access-control")]
    plain = await chat.server.client.options(CHAT)
    assert plain.status_code == 405


# -- large bodies


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("megabytes", [1.5, 6])
async def test_large_bodies_pass_whole_both_ways(chat, megabytes, stream):
    said = "wörd-" * int(megabytes * 200_000)
    response = await ask(chat.server.client, "echo", messages=[{"role": "user", "content": said}], stream=stream)
    assert chat.double.requests[0].body["messages"][0]["content"] == said
    if stream:
        *chunks, done = events_of(response.content)
        assert done == b"[DONE]"
        assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == said
    else:
        assert response.json()["choices"][0]["message"]["content"] == said


async def test_the_largest_body_does_not_hold_up_everybody_else(chat):
    picture = "data:image/png;base64," + "A" * ((32 << 20) - 200)
    parts = [{"type": "image_url", "image_url": {"url": picture}}]
    body = json.dumps({"model": "image", "messages": [{"role": "user", "content": parts}]}).encode()
    assert (31 << 20) < len(body) <= (32 << 20)
    asked = 0
    async with httpx.AsyncClient(base_url=chat.server.url, trust_env=False, verify=NO_TLS, timeout=60) as other:
        sending = asyncio.create_task(
            chat.server.client.post(CHAT, content=body, headers={"content-type": "application/json"})
        )
        while not sending.done():
            assert (await other.get("/healthz")).status_code == 200
            asked += 1
            await asyncio.sleep(0)
    response = await sending
    assert response.status_code == 200, response.text
    assert f"I see 1 images of {len(picture)} characters." in response.text
    assert asked > 5, "others had their turns while it was read"
