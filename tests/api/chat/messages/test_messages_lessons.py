"""Lessons of other gateways, one test each: odd vendors never yield a stream that a client takes for whole."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from chat_canned import STREAM, WHOLE, Canned, canned, settings_of
from conftest import Start
from message_steps import HELLO, Client, StreamError, events_of, gather
from test_chat_usage import records

from penstock.domain.usage import ChatOutcome
from penstock.vendor_api import seals

HEAD = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DONE = b"data: [DONE]\n\n"
PRICE = 'price = {input_per_million = "1", output_per_million = "2"}'
TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


@pytest.fixture
async def upstream() -> AsyncGenerator[Canned]:
    async with canned() as upstream:
        yield upstream


@pytest.fixture
async def client(start: Start, upstream: Canned) -> Client:
    server = await start(settings_of(upstream, price=PRICE))
    return Client(server, await server.new_key())


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "choices": [choice], **more}).encode() + b"\n\n"


def call(arguments: Any, index: int = 0, **more: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function, **more}]}


def more_arguments(text: str, index: int = 0) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def sent(upstream: Canned) -> Any:
    return json.loads(upstream.requests[-1].partition(b"\r\n\r\n")[2])


async def stream(client: Client, upstream: Canned, *chunks: bytes, **fields: Any) -> dict[str, Any]:
    upstream.reply = STREAM + b"".join(chunks)
    return await client.stream("canned", tools=TOOLS, **fields)


# -- starts, blocks and indices


async def test_one_message_start_only(client, upstream):
    opening = chunk({"role": "assistant", "content": ""})
    upstream.reply = STREAM + opening * 2 + chunk({"content": "Hi"}) + opening + chunk({}, "stop") + DONE
    reply = await client.post("canned", stream=True)
    assert [event["type"] for event in events_of(reply.content)].count("message_start") == 1
    assert gather(reply.content)["content"] == [{"type": "text", "text": "Hi"}]


async def test_reasoning_is_never_inside_a_text_block(client, upstream):
    pieces = [{"reasoning_content": "Hm."}, {"content": "A"}, {"reasoning_content": "Oh."}, {"content": "B"}]
    message = await stream(client, upstream, *map(chunk, pieces), chunk({}, "stop"), DONE)
    assert [(block["type"], block.get("text", block.get("thinking"))) for block in message["content"]] == [
        ("thinking", "Hm."),
        ("text", "A"),
        ("thinking", "Oh."),
        ("text", "B"),
    ]


async def test_there_is_never_an_empty_text_block(client, upstream):
    message = await stream(client, upstream, chunk({"content": ""}), chunk(call("{}")), chunk({}, "tool_calls"), DONE)
    assert [block["type"] for block in message["content"]] == ["tool_use"]


async def test_tool_arguments_at_the_end_only(client, upstream):
    chunks = [chunk(call("")), chunk(call('{"a": "é"}'), "tool_calls"), DONE]
    message = await stream(client, upstream, *chunks)
    assert message["content"][0]["input"] == {"a": "é"}


async def test_mixed_pieces_of_parallel_calls_get_separate_indices(client, upstream):
    pieces = [call("", 0), call("", 1), more_arguments('{"a"', 1), more_arguments('{"b"', 0)]
    pieces += [more_arguments(":1}", 1), more_arguments(":2}", 0)]
    message = await stream(client, upstream, *map(chunk, pieces), chunk({}, "tool_calls"), DONE)
    assert [(block["id"], block["input"]) for block in message["content"]] == [
        ("call_0", {"b": 2}),
        ("call_1", {"a": 1}),
    ]


@pytest.mark.parametrize("arguments", ["", None, "{}", "null", {}])
async def test_a_call_without_arguments_has_an_empty_object(client, upstream, arguments):
    message = await stream(client, upstream, chunk(call(arguments)), chunk({}, "tool_calls"), DONE)
    assert message["content"][0]["input"] == {}


async def test_calls_without_ids_get_ids(client, upstream):
    pieces = [call("{}", 0, id=None), call("{}", 1, id="")]
    message = await stream(client, upstream, *map(chunk, pieces), chunk({}, "tool_calls"), DONE)
    first, second = (block["id"] for block in message["content"])
    assert first != second


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
async def test_the_reason_says_whether_a_tool_is_called(client, upstream, finish):
    called = await stream(client, upstream, chunk(call("{}")), chunk({}, finish), DONE)
    assert called["stop_reason"] == "tool_use"
    said = await stream(client, upstream, chunk({"content": "No"}), chunk({}, finish), DONE)
    assert said["stop_reason"] == "end_turn"


# -- arguments that are not JSON


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "seven", '{"a": 1} {"b": 2}'])
async def test_broken_arguments_of_a_complete_call_are_an_error(client, upstream, arguments):
    upstream.reply = STREAM + chunk(call(arguments)) + chunk({}, "tool_calls") + DONE
    with pytest.raises(StreamError, match="api_error"):
        gather(await client.read_cut("canned", tools=TOOLS))
    whole = {"role": "assistant", "content": None, **call(arguments)}
    upstream.reply = WHOLE + json.dumps(completion(whole, "tool_calls")).encode()
    reply = await client.post("canned", tools=TOOLS)
    assert (reply.status_code, reply.json()["error"]["type"]) == (502, "api_error")


async def test_arguments_that_the_token_limit_cuts(client, upstream):
    upstream.reply = STREAM + chunk(call('{"a": "b')) + chunk({}, "length") + DONE
    reply = await client.post("canned", stream=True, tools=TOOLS)
    stop = next(event for event in events_of(reply.content) if event["type"] == "message_delta")
    assert stop["delta"]["stop_reason"] == "max_tokens"
    upstream.reply = WHOLE + json.dumps(completion({"content": "So", **call('{"a": "b')}, "length")).encode()
    message = await client.create("canned", tools=TOOLS)
    assert (message["stop_reason"], message["content"]) == ("max_tokens", [{"type": "text", "text": "So"}])


def completion(message: Any, finish: str) -> Any:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {**HEAD, "object": "chat.completion", "choices": [choice]}


# -- ends


async def test_missing_usage_is_estimated_and_recorded(client, upstream):
    message = await stream(client, upstream, chunk({"content": "x" * 40}), chunk({}, "stop"), DONE)
    assert message["usage"]["output_tokens"] == 10
    [record] = await records(client.server, 1)
    assert (record.usage.completion, record.usage.estimated, record.outcome) == (10, True, ChatOutcome.OK)
    assert record.cost is not None


async def test_usage_is_a_running_total_without_cache_reads(client, upstream):
    usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
    usage["prompt_tokens_details"] = {"cached_tokens": 60}  # type: ignore[assignment]
    message = await stream(client, upstream, chunk({"content": "x"}), chunk({}, "stop", usage=usage), DONE)
    used = message["usage"]
    assert (used["input_tokens"], used["cache_read_input_tokens"], used["output_tokens"]) == (40, 60, 2)


async def test_a_cut_in_a_tool_call_is_an_error(client, upstream):
    upstream.reply = STREAM + chunk({"content": "Let me"}) + chunk(call('{"a":'))
    with pytest.raises(StreamError, match="broke off"):
        gather(await client.read_cut("canned", tools=TOOLS))
    [record] = await records(client.server, 1)
    assert record.outcome is ChatOutcome.CUT


# -- requests


async def test_what_a_vendor_has_no_place_for_is_dropped_and_named(client, upstream):
    upstream.reply = WHOLE + json.dumps(completion({"content": "x"}, "stop")).encode()
    cached = {"cache_control": {"type": "ephemeral"}}
    signed = {"type": "thinking", "thinking": "secret", "signature": "EqoB"}
    turns = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi", **cached}, {"type": "text", "text": "!", **cached}],
        },
        {"role": "assistant", "content": [signed, {"type": "text", "text": "Yes"}]},
        *HELLO,
    ]
    tools = [
        {**TOOLS[0], "defer_loading": True, **cached},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    reply = await client.post(
        "canned", messages=turns, tools=tools, system=[{"type": "text", "text": "S", **cached}], context_management={}
    )
    assert reply.status_code == 200
    names = reply.headers["x-penstock-left-out"].split(", ")
    assert sorted(names) == [
        *("cache_control", "context_management", "defer_loading", "thinking", "tools.web_search_20250305"),
    ]
    body = sent(upstream)
    assert b"ephemeral" not in upstream.requests[-1]
    assert b"secret" not in upstream.requests[-1]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look"]


async def test_system_in_mid_conversation_stays_in_place(client, upstream):
    upstream.reply = WHOLE + json.dumps(completion({"content": "x"}, "stop")).encode()
    await client.create("canned", system="A", messages=[*HELLO, {"role": "system", "content": "B"}, *HELLO])
    assert [turn["role"] for turn in sent(upstream)["messages"]] == ["system", "user", "system", "user"]


async def test_made_up_thinking_comes_back_as_reasoning_or_not_at_all(client, upstream):
    upstream.reply = WHOLE + json.dumps(completion({"content": "x", "reasoning_content": "Hm."}, "stop")).encode()
    message = await client.create("canned")
    assert seals.is_seal(message["content"][0]["signature"])
    reply = await client.post("canned", messages=[*HELLO, {"role": "assistant", "content": message["content"]}, *HELLO])
    assert reply.headers["x-penstock-left-out"] == "reasoning"
    assert sent(upstream)["messages"][1] == {"role": "assistant", "content": "x"}


async def test_reasoning_goes_back_to_a_vendor_that_wants_it(start, upstream):
    server = await start(settings_of(upstream, more="reasoning_content = true\n"))
    client = Client(server, await server.new_key())
    upstream.reply = WHOLE + json.dumps(completion({"content": "x", "reasoning_content": "Hm."}, "stop")).encode()
    message = await client.create("canned")
    await client.create("canned", messages=[*HELLO, {"role": "assistant", "content": message["content"]}, *HELLO])
    assert sent(upstream)["messages"][1] == {"role": "assistant", "content": "x", "reasoning_content": "Hm."}
