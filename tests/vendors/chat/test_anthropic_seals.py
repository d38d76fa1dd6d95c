"""Anthropic's signed thinking survives a tool loop of clients that know nothing of it."""

import json
from typing import Any

import pytest
from anthropic_double import THOUGHT, call, stream
from chat_samples import make_ask, make_vendor
from msgspec import structs

from penstock.chat.replies.chunks.writer import ChunkWriter
from penstock.domain.chat import Ask, Part, Seal, ToolCall
from penstock.vendor_api import seals
from penstock.vendors.anthropic import AnthropicTranslation

HIDDEN = {"type": "redacted_thinking", "data": "EmwKAh=="}
SAID = {"type": "text", "text": "Let me look."}
SHOWN = {"role": "assistant", "type": "message", "id": "msg_1", "model": "m", "stop_sequence": None}
MESSAGE = {**SHOWN, "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2}}
TURN = [THOUGHT, HIDDEN, SAID, call(1, "look", {"a": 1}), {**THOUGHT, "signature": "Two=="}, call(2, "look", {"a": 2})]
FIRST = {"role": "user", "content": "Hello"}


def parts_of(content: list[Any], *, streamed: bool) -> list[Part]:
    translation = AnthropicTranslation()
    if not streamed:
        return list(translation.whole(json.dumps({**MESSAGE, "content": content}).encode()))
    events = [event.split(b"\n")[1].removeprefix(b"data: ") for event in stream({**MESSAGE, "content": content})]
    return [part for event in events for part in translation.event("", event)]


def give_back(ask: Ask) -> list[Any]:
    body = make_vendor("anthropic").complete(ask, "claude").body
    assert body is not None
    return json.loads(body)["messages"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_seal_comes_before_the_call_that_was_reasoned_about(streamed):
    parts = [part for part in parts_of(TURN, streamed=streamed) if isinstance(part, Seal | ToolCall)]
    assert [type(part) for part in parts] == [Seal, ToolCall, Seal, ToolCall]
    found = [seals.unseal(part.text, "anthropic") for part in parts if isinstance(part, Seal)]
    assert found == [[THOUGHT, HIDDEN], [{**THOUGHT, "signature": "Two=="}]]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_client_gives_it_back_in_the_ids_of_its_calls(streamed):
    writer = ChunkWriter(make_ask(), "chatcmpl-1", 1)
    parts = parts_of(TURN, streamed=streamed)
    for part in parts:
        writer.take(part)
    usage = next(part.usage for part in parts if hasattr(part, "usage"))
    message = json.loads(writer.whole(usage))["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": made["id"], "content": "x"} for made in message["tool_calls"]]
    turns = give_back(make_ask(messages=[FIRST, message, *results]))
    assert turns[1]["content"] == TURN
    assert [block["tool_use_id"] for block in turns[2]["content"]] == ["toolu_01", "toolu_02"]


def test_sealed_reasoning_of_a_message_comes_first():
    sealed = [seals.seal("anthropic", [THOUGHT]), seals.seal("gemini", "x"), "penstock-anthropic-%%"]
    message = {"role": "assistant", "content": "Yes", "sealed_reasoning": sealed}
    assert give_back(make_ask(messages=[FIRST, message, FIRST]))[1]["content"] == [
        THOUGHT,
        {"type": "text", "text": "Yes"},
    ]


def test_thinking_without_a_signature_has_no_seal():
    unsigned = [{"type": "thinking", "thinking": "x", "signature": ""}, call(1, "look", {})]
    assert not any(isinstance(part, Seal) for part in parts_of(unsigned, streamed=True))


@pytest.mark.parametrize("vendor", ["openai_compatible", "local"])
def test_plain_chat_vendors_get_no_seals(vendor):
    call_id = seals.attach("call_1", seals.seal("anthropic", [THOUGHT]))
    made = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [made], "sealed_reasoning": ["penstock-x-"]}
    result = {"role": "tool", "tool_call_id": call_id, "content": "x"}
    options = {"tools": "native"} if vendor == "local" else {}
    ask = structs.replace(make_ask(messages=[FIRST, message, result]), is_translated=True)
    body = make_vendor(vendor, **options).complete(ask, "m").body
    assert body is not None
    assert b"penstock-" not in body
    assert b"sealed" not in body
    turns = [turn for turn in json.loads(body)["messages"] if turn["role"] != "system"]
    assert turns[1]["tool_calls"][0]["id"] == turns[2]["tool_call_id"] == "call_1"


def test_a_chat_clients_own_messages_pass_as_they_are():
    said = {"role": "assistant", "content": "x", "reasoning_content": "Hm."}
    ask = make_ask(messages=[FIRST, said, FIRST])
    body = make_vendor("openai_compatible").complete(ask, "m").body
    assert body is not None
    assert bytes(ask.fields["messages"]) in body
