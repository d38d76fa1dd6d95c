"""Streams that vendors write in odd ways: the official SDK makes the same of them as from the vendor itself."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import openai
import pytest
from chat_canned import STREAM, WHOLE, Canned, canned, settings_of
from chat_steps import HELLO
from conftest import Server
from hypothesis import given
from hypothesis import strategies as some
from openai.lib.streaming._deltas import accumulate_delta
from plain import NO_TLS
from test_chat_usage import records

from penstock.domain.usage import ChatOutcome

HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DONE = b"data: [DONE]\n\n"
PRICE = 'price = {input_per_million = "1", output_per_million = "2"}'


def event(delta: Any, finish: str | None = None, *, ascii_only: bool = True) -> bytes:
    chunk = {**HEAD, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
    text = json.dumps(chunk, separators=(",", ":"), ensure_ascii=ascii_only)
    return b"data: " + text.encode() + b"\n\n"


@dataclass
class Stage:
    """A vendor, a gateway before it, and a strict client of each, for a thread."""

    upstream: Canned
    server: Server
    direct: openai.OpenAI
    through: openai.OpenAI

    def collect(self, client: openai.OpenAI) -> tuple[dict[Any, Any], list[str | None]]:
        """Put a stream's message together as the SDK does, and its reasons to end."""
        message: dict[Any, Any] = {}
        reasons: list[str | None] = []
        for chunk in client.chat.completions.create(model="canned", messages=HELLO, stream=True):
            for choice in chunk.choices:
                message = accumulate_delta(message, choice.delta.model_dump(exclude_unset=True))
                reasons.append(choice.finish_reason)
        return message, [reason for reason in reasons if reason]


def sign_in(base_url: str, key: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=0,
        _strict_response_validation=True,
        http_client=openai.DefaultHttpxClient(trust_env=False, verify=NO_TLS),
    )


@pytest.fixture
async def stage(start) -> AsyncGenerator[Stage]:
    async with canned() as upstream:
        server = await start(settings_of(upstream, price=PRICE))
        with sign_in(upstream.url, "sk-x") as direct, sign_in(f"{server.url}/llm", await server.new_key()) as through:
            yield Stage(upstream, server, direct, through)


def halve(text: str) -> Iterator[str]:
    """The UTF-16 units of a text, as clients in JavaScript would split it."""
    units = text.encode("utf-16-le", "surrogatepass")
    return (units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2))


texts = some.text(some.characters(), max_size=12) | some.sampled_from(
    ["😀", "a😀b", "\ud83d", "é\u2028\n", "data: x\n\n"]
)
contents = some.lists(texts, max_size=6) | texts.map(lambda text: list(halve(text)))
cuts = some.lists(some.integers(len(STREAM), len(STREAM) + 3_000), max_size=8)


async def test_the_sdk_makes_the_same_text_of_a_stream(stage):
    @given(contents, cuts, some.booleans())
    def check(deltas: list[str], places: list[int], ascii_only: bool) -> None:
        written = ascii_only or any(0xD800 <= ord(char) < 0xE000 for delta in deltas for char in delta)
        said = [event({"content": delta}, ascii_only=written) for delta in deltas]
        begin, end = event({"role": "assistant", "content": ""}), event({}, "stop")
        stage.upstream.reply = STREAM + begin + b"".join(said) + end + DONE
        stage.upstream.cuts = places
        direct = stage.collect(stage.direct)
        assert direct[0]["content"] == "".join(deltas)
        assert stage.collect(stage.through) == direct

    await asyncio.to_thread(check)


names = some.sampled_from(["get_weather", "look", "f"])
arguments = some.dictionaries(some.text(max_size=5), some.text(max_size=8) | some.integers(), max_size=3).map(
    json.dumps
)
calls = some.lists(some.tuples(names, arguments, some.lists(some.integers(0, 40), max_size=4)), min_size=1, max_size=3)


async def test_the_sdk_makes_the_same_calls_of_a_stream(stage):
    @given(calls, cuts)
    def check(called: list[tuple[str, str, list[int]]], places: list[int]) -> None:
        events = [event({"role": "assistant", "content": None})]
        for index, (name, text, ends) in enumerate(called):
            function = {"name": name, "arguments": ""}
            call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
            events.append(event({"tool_calls": [call]}))
            bounds = sorted({0, len(text), *(end for end in ends if end < len(text))})
            pieces = (text[begin:end] for begin, end in pairwise(bounds))
            events += (event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in pieces)
        stage.upstream.reply = STREAM + b"".join([*events, event({}, "tool_calls"), DONE])
        stage.upstream.cuts = places
        direct = stage.collect(stage.direct)
        assert [call["function"]["arguments"] for call in direct[0]["tool_calls"]] == [text for _, text, _ in called]
        assert stage.collect(stage.through) == direct

    await asyncio.to_thread(check)


# -- errors, and what cannot be read

ERRORS = {
    "flat": b'data: {"object":"error","message":"no","type":"BadRequestError","code":400}\n\n',
    "a text": b'data: {"error":"no"}\n\n',
    "a detail": b'data: {"detail":"no"}\n\n',
    "a code": b'data: {"code":500,"message":"no"}\n\n',
    "by its name": b"event: error\ndata: no\n\n",
    "a cut chunk": b'data: {"id":"c-1","choices":[{"index":0,"delta":{"content":"lo\n\n',
    "comments only": b": still here\n\n" * 400_000,
    "blank lines only": b"\n" * 5_000_000,
    "one line": b'data: {"choices":[{"delta":{"content":"' + b"x" * (17 << 20),
    "events without content": b"data: {}\n\n" * 20_000,
    "many lines": b": x\n" * 20_000,
}


@pytest.mark.parametrize("kind", ERRORS)
async def test_a_stream_that_goes_wrong_is_an_error_and_what_was_sent_is_charged(stage, kind):
    begin = event({"role": "assistant", "content": "x" * 40})
    stage.upstream.reply = STREAM + begin + ERRORS[kind] + event({"content": "never"}) + event({}, "stop") + DONE

    def read() -> tuple[str, str]:
        heard = ""
        try:
            for chunk in stage.through.chat.completions.create(model="canned", messages=HELLO, stream=True):
                heard += chunk.choices[0].delta.content or ""
        except openai.APIError as error:
            return heard, error.message
        return heard, ""

    heard, message = await asyncio.to_thread(read)
    assert heard == "x" * 40
    assert message
    [record] = await records(stage.server, 1)
    assert record.outcome is ChatOutcome.CUT
    assert record.usage.completion >= 10
    assert record.cost


STATUSES = [
    (b'data: {"object":"error","message":"too hot","type":"BadRequestError","code":400}\n\n', 400),
    (b'data: {"error":"no"}\n\n', 502),
    (b'data: {"detail":"no"}\n\n', 502),
    (b'data: {"code":429,"message":"slow down"}\n\n', 429),
    (b'data: {"message":"busy","status_code":503}\n\n', 503),
]


@pytest.mark.parametrize(
    ("told", "status", "streamed"),
    [
        *((*case, streamed) for case in STATUSES for streamed in (False, True)),
        (b"event: error\ndata: no\n\n", 502, True),
    ],
)
async def test_an_error_in_the_place_of_an_answer_is_a_status(stage, told, status, streamed):
    body = told.removeprefix(b"data: ")
    stage.upstream.reply = STREAM + told + DONE if streamed else WHOLE + body
    with pytest.raises(openai.APIStatusError) as caught:
        await asyncio.to_thread(stage.through.chat.completions.create, model="canned", messages=HELLO, stream=streamed)
    assert caught.value.status_code == status
    [record] = await records(stage.server, 1)
    assert (record.outcome, record.cost) == (ChatOutcome.FAILED, 0)


async def test_an_error_in_the_place_of_an_answer_is_tried_at_the_next_route(start):
    async with canned() as bad, canned() as good:
        bad.reply = STREAM + b'data: {"object":"error","message":"no","code":500}\n\n' + DONE
        good.reply = STREAM + event({"content": "Hi"}) + event({}, "stop") + DONE
        more = f'\n[vendors.good]\ntype = "openai_compatible"\nbase_url = "{good.url}"\n'
        routes = 'routes = [{vendor = "canned", model = "m"}, {vendor = "good", model = "m", order = 2}]'
        settings = settings_of(bad, more).replace('vendor = "canned"\n', f"{routes}\n")
        server = await start(settings)
        with sign_in(f"{server.url}/llm", await server.new_key()) as client:
            stage = Stage(bad, server, client, client)
            assert (await asyncio.to_thread(stage.collect, client))[0]["content"] == "Hi"
        assert len(bad.requests) == len(good.requests) == 1
