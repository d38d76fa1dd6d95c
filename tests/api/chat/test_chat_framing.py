"""Chat byte by byte: how streams are framed, what bodies are taken, and what happens when either side goes away."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from chat_steps import HELLO, chatting
from chat_wire import connect, events_of
from openai_replies import GREETING, pieces_of

CHAT = "/llm/chat/completions"
ASK = json.dumps({"model": "plain", "messages": HELLO}).encode()
DONE = b"[DONE]"


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


@pytest.fixture
async def wire(chat):
    async with connect(chat) as wire:
        yield wire


def deltas_of(events: list[Any]) -> list[dict[str, Any]]:
    return [event["choices"][0]["delta"] for event in events]


PLAIN = [
    {"role": "assistant", "content": "", "refusal": None},
    *({"content": piece} for piece in pieces_of(GREETING)),
    {},
]


def check_error(status: int, headers: dict[str, str], body: bytes, expected: int, code: str | None) -> dict[str, Any]:
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (expected, code)
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == error["request_id"].lower()
    assert error.keys() >= {"message", "type", "param", "code"}
    return error


# -- streams


async def test_a_stream_is_framed_exactly_and_the_connection_stays_usable(chat, wire):
    for _ in range(3):
        await wire.ask("plain", stream=True)
        status, _, body = await wire.reply()
        assert status == 200
        *events, done = events_of(body)
        assert done == DONE
        assert deltas_of(events) == PLAIN
        assert [event["choices"][0]["finish_reason"] for event in events] == [None] * (len(events) - 1) + ["stop"]
        assert "🙂".encode() in body  # passed as it came, not escaped
    assert len(chat.double.requests) == 3


async def test_the_headers_of_a_stream(wire):
    await wire.ask("plain", stream=True)
    _, headers, _ = await wire.reply()
    assert headers["content-type"].split(";")[0] == "text/event-stream"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"]
    assert headers["x-penstock-vendor"] == "upstream"
    assert float(headers["x-penstock-overhead-ms"]) >= 0
    assert not headers.keys() & {"content-length", "content-encoding", "openai-organization"}


async def test_the_headers_of_a_whole_answer(wire):
    await wire.ask("plain")
    _, headers, body = await wire.reply()
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(body))
    assert headers["x-penstock-vendor"] == "upstream"


async def test_each_event_comes_when_the_upstream_sends_it(chat):
    is_rest_unsent = False
    for _ in range(5):  # on a busy machine one may be read late; what is held back is late every time
        async with connect(chat) as wire:
            await wire.ask("slow:0.05", stream=True)
            await wire.head()
            pieces = [await wire.chunk() for _ in range(3)]
            assert all(events_of(piece) for piece in pieces)
            is_rest_unsent = is_rest_unsent or bool(chat.double.open)
        if is_rest_unsent:
            break
    assert is_rest_unsent


async def test_an_http_1_0_client_gets_no_chunks(chat):
    for fields in ({}, {"stream": True}):
        async with connect(chat) as wire:
            await wire.ask("plain", version="1.0", **fields)
            status, headers = await wire.head()
            rest = await wire.reader.read()
        assert status == 200
        assert "transfer-encoding" not in headers
        if fields:
            assert events_of(rest)[-1] == DONE
        else:
            assert json.loads(rest)["object"] == "chat.completion"


async def test_text_of_every_kind_stays_on_one_line(wire):
    said = "one\ntwo\r\nthree\u2028four\u2029five\x00\x1f 🙂 \u00e9 data: [DONE]\n\ndata: {}\n\n"
    await wire.ask("echo", stream=True, messages=[{"role": "user", "content": said}])
    *events, done = events_of((await wire.reply())[2])
    assert done == DONE
    assert "".join(delta.get("content", "") for delta in deltas_of(events)) == said


@pytest.mark.parametrize(
    "model", ["crlf", "no-space", "fragments", "comments", "fields", "bom", "no-done", "malformed"]
)
async def test_every_upstreams_framing_becomes_ours(wire, model):
    await wire.ask(model, stream=True, stream_options={"include_usage": True})
    *events, used, done = events_of((await wire.reply())[2])
    assert done == DONE
    assert deltas_of(events) == PLAIN
    assert used["choices"] == []
    assert used["usage"]["completion_tokens"] == len(pieces_of(GREETING))


async def test_an_upstream_that_does_not_hang_up_is_not_waited_for(chat, wire):
    now = asyncio.get_running_loop().time
    began = now()
    for _ in range(2):
        await wire.ask("linger:30", stream=True)
        assert events_of((await wire.reply())[2])[-1] == DONE
    assert now() - began < 25
    await chat.double.until(lambda double: not double.open)


# -- streams that break


def check_broken(headers: dict[str, str], body: bytes) -> None:
    *events, error = events_of(body)
    assert deltas_of(events) == PLAIN[:3]
    assert error["error"].keys() >= {"message", "type", "param", "code"}
    assert (error["error"]["type"], error["error"]["code"]) == ("server_error", "upstream_error")
    assert error["error"]["request_id"].lower() == headers["x-request-id"]
    assert b"stop" not in body
    assert DONE not in body


@pytest.mark.parametrize("model", ["cut", "clean-cut"])
async def test_a_stream_that_breaks_off_tells_it_and_has_no_clean_end(wire, model):
    await wire.ask(model, stream=True, stream_options={"include_usage": True})
    status, headers = await wire.head()
    assert status == 200
    check_broken(headers, await wire.cut_body())


async def test_an_error_that_the_upstream_tells_in_mid_stream_is_told(wire):
    await wire.ask("error-mid", stream=True)
    _, headers, body = await wire.reply()
    check_broken(headers, body)
    await wire.ask("plain")  # the connection is as good as before
    assert (await wire.reply())[0] == 200


async def test_an_error_before_the_first_byte_is_a_status(wire):
    for model in ("error-first", "empty", "drop"):
        await wire.ask(model, stream=True)
        status, headers, body = await wire.reply()
        assert status == 502
        check_error(status, headers, body, 502, "upstream_error")


async def test_silence_before_the_first_byte_is_a_timeout_and_no_heartbeat_hides_it(start):
    options = {"vendor": "first_byte_seconds = 0.4", "toml": "[chat]\nheartbeat_seconds = 0.1"}
    async with chatting(start, **options) as chat, connect(chat) as wire:
        now = asyncio.get_running_loop().time
        began = now()
        await wire.ask("silent:30", stream=True)
        check_error(*await wire.reply(), 504, "upstream_timeout")
        assert 0.3 < now() - began < 20


async def test_heartbeats_are_comments_between_events(start):
    options = {"scenarios": ["think:0.5"], "toml": "[chat]\nheartbeat_seconds = 0.02"}
    async with chatting(start, **options) as chat, connect(chat) as wire:
        await wire.ask("think:0.5", stream=True)
        _, headers = await wire.head()
        first = await wire.chunk()
        rest = await wire.body(headers)
        assert deltas_of(events_of(first)) == PLAIN[:1]
        assert rest.startswith(b": ")  # how many there are is up to how long it thinks
        *events, done = events_of(rest)
        assert (deltas_of(events), done) == (PLAIN[1:], DONE)


async def test_silence_in_mid_stream_is_a_timeout(start):
    async with chatting(start, vendor="idle_seconds = 0.3") as chat, connect(chat) as wire:
        await wire.ask("think:30", stream=True)
        await wire.head()
        first, error = events_of(await wire.cut_body())
        assert deltas_of([first]) == PLAIN[:1]
        assert error["error"]["code"] == "upstream_timeout"


# -- clients that leave, and clients that do not read


@pytest.mark.parametrize("size", [10, 200_000])
@pytest.mark.parametrize(("model", "stream"), [("hang", False), ("hang", True), ("silent:30", True)])
async def test_a_client_that_leaves_before_the_answer_is_told_to_the_upstream(chat, model, stream, size):
    async with connect(chat) as wire:
        await wire.ask(model, stream=stream, messages=[{"role": "user", "content": "x" * size}])
        await chat.double.until(lambda double: double.open)
    await chat.double.until(lambda double: double.gone and not double.open)
    assert len(chat.double.gone) == 1


async def test_a_client_that_leaves_in_mid_stream_is_told_to_the_upstream(chat):
    for model in ("think:30", "slow:0.05", "big:100000"):
        async with connect(chat) as wire:
            await wire.ask(model, stream=True)
            await wire.head()
            await wire.chunk()
        await chat.double.until(lambda double: not double.open)
    assert len(chat.double.gone) == 3


async def test_a_client_that_leaves_a_connection_used_before_is_told_to_the_upstream(chat):
    async with connect(chat) as wire:
        await wire.ask("linger:30", stream=True)
        assert events_of((await wire.reply())[2])[-1] == DONE
        await wire.ask("hang", stream=True)  # while the first upstream has not hung up yet
        await chat.double.until(lambda double: double.requests[-1].body["model"] == "hang")
        await chat.double.until(lambda double: len(double.gone) == 1)  # the first one is given up
    await chat.double.until(lambda double: not double.open)


async def test_requests_that_are_sent_before_the_answers_are_read(chat, wire):
    for number in range(3):
        await wire.ask("echo", stream=bool(number % 2), messages=[{"role": "user", "content": f"number{number}"}])
    for number in range(3):
        status, _, body = await wire.reply()
        assert (status, b"number%d" % number in body) == (200, True)


async def test_a_client_that_asks_before_it_sends_its_body(wire):
    await wire.send("POST", CHAT, content_type="application/json", content_length=str(len(ASK)), expect="100-continue")
    assert await wire.head() == (100, {})
    wire.writer.write(ASK)
    assert (await wire.reply())[0] == 200


@pytest.mark.long
async def test_the_upstream_is_held_back_for_a_client_that_reads_slowly(chat):
    async with connect(chat) as wire:
        wire.writer.transport.pause_reading()
        await wire.ask("big:100000", stream=True)
        await chat.double.until(lambda double: double.requests and double.requests[0].sent > 100)
        call, before = chat.double.requests[0], -1
        async with asyncio.timeout(60):
            while call.sent != before:  # until nothing has been sent for a while
                before = call.sent
                await asyncio.sleep(0.5)
        assert call.sent < 50_000
        assert chat.double.open == 1
        assert (await chat.create()).choices[0].message.content == GREETING  # nobody else waits
        wire.writer.transport.resume_reading()
        await wire.head()
        while DONE not in await wire.chunk():
            pass
        assert call.sent > 100_000


# -- what is not a chat request


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/llm/nothing", 404, "not_found"),
        ("POST", "/llm/nothing", 404, "not_found"),
        ("GET", CHAT, 405, "method_not_allowed"),
        ("PUT", CHAT, 405, "method_not_allowed"),
        ("POST", "/llm/models", 405, "method_not_allowed"),
        ("DELETE", "/llm/models/plain", 405, "method_not_allowed"),
    ],
)
async def test_paths_and_methods_that_are_not_there(wire, method, path, status, code):
    await wire.send(method, path, b"{}")
    got, headers, body = await wire.reply()
    check_error(got, headers, body, status, code)
    assert ("allow" in headers) is (status == 405)


async def test_head_of_models(wire):
    await wire.send("HEAD", "/llm/models")
    status, headers = await wire.head()
    assert status == 200
    assert headers["content-type"] == "application/json"
    await wire.send("GET", "/llm/models")
    status, again, body = await wire.reply()
    assert (status, len(body)) == (200, int(headers.get("content-length", len(body))))
    assert again["content-type"] == "application/json"


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
async def test_only_json_is_taken(chat, wire, kind):
    await wire.send("POST", CHAT, ASK, content_type=kind)
    error = check_error(*await wire.reply(), 415, "unsupported_media_type")
    assert "application/json" in error["message"]
    assert not chat.double.requests


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_by_its_other_names(wire, kind):
    await wire.send("POST", CHAT, ASK, content_type=kind)
    assert (await wire.reply())[0] == 200


@pytest.mark.parametrize(
    "body", [ASK[:-1], ASK[:20], b"{", b"[]", b"null", b'{"model":"\xff"}', b"{}{}", b"[" * 100_000]
)
async def test_what_is_no_json_object_is_told_so(wire, body):
    await wire.send("POST", CHAT, body)
    error = check_error(*await wire.reply(), 400, None)
    assert "could not parse the JSON body" in error["message"]


async def test_a_body_that_is_too_large(start):
    async with chatting(start, toml="[server]\nmax_body_mb = 1") as chat:
        fits = json.dumps({"model": "plain", "messages": HELLO}).encode().ljust(1 << 20)
        async with connect(chat) as wire:
            await wire.send("POST", CHAT, fits)
            assert (await wire.reply())[0] == 200
            await wire.send("POST", CHAT, fits + b" ")
            check_error(*await wire.reply(), 413, "body_too_large")
        async with connect(chat) as wire:  # without telling its length
            await wire.send("POST", CHAT, content_type="application/json", transfer_encoding="chunked")
            wire.writer.write((b"%x\r\n" % len(fits) + fits + b"\r\n") * 2)
            check_error(*await wire.reply(), 413, "body_too_large")
        assert len(chat.double.requests) == 1


async def test_packed_bodies(start):
    async with chatting(start, toml="[server]\nmax_body_mb = 1") as chat, connect(chat) as wire:
        await wire.send("POST", CHAT, gzip.compress(ASK), content_encoding="gzip")
        status, _, body = await wire.reply()
        assert status == 200, body
        assert chat.double.requests[0].body["messages"] == HELLO
        bomb = gzip.compress(ASK.ljust(50 << 20))
        await wire.send("POST", CHAT, bomb, content_encoding="gzip")
        check_error(*await wire.reply(), 413, "body_too_large")
    async with chatting(start) as chat:
        for encoding, body in [("gzip", ASK), ("gzip", gzip.compress(ASK)[:-9]), ("rot13", ASK)]:
            async with connect(chat) as wire:
                await wire.send("POST", CHAT, body, content_encoding=encoding)
                status, headers, answer = await wire.reply()
                assert status in (400, 415), answer
                check_error(status, headers, answer, status, json.loads(answer)["error"]["code"])
        assert not chat.double.requests


async def test_of_a_name_given_twice_the_one_that_was_checked_is_sent(chat, wire):
    twice = b'{"model":"nobody","n":500,"temperature":9,"messages":[],"stream":true,' + ASK[1:-1]
    await wire.send("POST", CHAT, twice + b',"n":1,"temperature":1,"stream":false}')
    status, _, body = await wire.reply()
    assert status == 200, body
    seen = chat.double.requests[0]
    assert seen.body == {"model": "plain", "messages": HELLO, "n": 1, "temperature": 1, "stream": False}
    assert all(seen.raw.count(name) == 1 for name in (b'"model"', b'"n"', b'"messages"', b'"temperature"', b'"stream"'))
    for written in (b'"n":500', rb'"\u006e":500'):
        await wire.send("POST", CHAT, ASK[:-1] + b',"n":1,' + written + b"}")
        check_error(*await wire.reply(), 400, "integer_above_max_value")
