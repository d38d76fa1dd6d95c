"""A vendor that speaks Responses, behind the Responses door and behind the chat door."""

import asyncio
import json
import time
from typing import Any

import openai
import pytest
from chat_steps import HELLO, Chat, settings_of
from chat_wire import connect
from openai.types.responses import ResponseStreamEvent
from openai_double import KEY
from openai_replies import GREETING, REFUSAL, pieces_of
from pydantic import TypeAdapter
from responses_double import ARGUMENTS, ENCRYPTED, THOUGHTS, ResponsesDouble, script

from penstock.domain.chat import Usage
from penstock.domain.usage import ChatOutcome
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import completion_rows

SCENARIOS = (
    *("plain", "tools", "parallel-tools", "refusal", "length", "filter", "reasoning", "thoughtful-tools", "custom"),
    *("late-arguments", "mixed-arguments", "no-index", "only-end", "no-usage", "fragments", "crlf", "comments"),
    *("cut", "clean-cut", "error-first", "error-mid", "error-event", "limit-mid", "not-json", "status:429", "context"),
)
EVENTS = TypeAdapter(ResponseStreamEvent)
WEATHER: Any = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}
CHAT_WEATHER: Any = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
THOUGHT = "\n\n".join(THOUGHTS)


@pytest.fixture
async def chat(start):
    async with ResponsesDouble() as double:
        server = await start(settings_of(double, SCENARIOS, vendor="responses = true"))
        chat = Chat(server, double, await server.new_key())
        async with chat.clients:
            chat.client = await chat.sign_in()
            yield chat


async def pour(chat: Chat, model: str, **fields: Any) -> bytes:
    """The bytes of a stream, as far as they came."""
    async with connect(chat) as wire:
        body = {"model": model, "input": "Hello", "stream": True, **fields}
        await wire.send("POST", "/v1/responses", json.dumps(body).encode())
        await wire.head()
        return await (wire.cut_body() if model in ("cut", "clean-cut") else wire.body({"transfer-encoding": "chunked"}))


def read_events(body: bytes) -> list[Any]:
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


# -- Responses to Responses: pass-through


async def test_a_body_passes_unchanged_but_for_the_model(chat):
    asked: Any = {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "tools": [{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": [WEATHER]}],
        "include": ["reasoning.encrypted_content"],
        "client_metadata": {"a": "b"},
        "truncation": "auto",
    }
    client = await chat.sign_in(_strict_response_validation=False)
    response = await client.responses.create(model="org/model-x", extra_body=asked)
    assert response.output_text == GREETING
    assert response.id == "resp_upstream"
    assert chat.double.requests[-1].body == {**asked, "model": "plain", "store": False}
    assert chat.double.requests[-1].path == "/v1/responses"


@pytest.mark.parametrize("model", ["plain", "tools", "reasoning", "fragments", "comments", "crlf", "no-usage"])
async def test_the_bytes_of_a_stream_pass_unchanged(chat, model):
    passed = await pour(chat, model)
    assert passed == b"".join(script(model, chat.double.requests[-1].body))
    for event in read_events(passed):
        EVENTS.validate_python(event)


async def test_usage_of_a_passed_response_is_counted(chat):
    await pour(chat, "plain")
    await chat.client.responses.create(model="plain", input="Hello")
    database = chat.server.gateway.database
    account = await database.write(key_rows.account_id, "default", time.time())
    async with asyncio.timeout(60):
        while len(rows := await database.read(completion_rows.of_account, account, 10)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # the store tells nobody
    assert [(row.usage, row.outcome) for row in rows] == [(Usage(19, 9, 3, 2), ChatOutcome.OK)] * 2


@pytest.mark.parametrize("model", ["error-mid", "limit-mid", "error-event"])
async def test_an_error_of_the_vendor_passes_verbatim(chat, model):
    events = read_events(await pour(chat, model))
    assert events[-1]["type"] == ("error" if model == "error-event" else "response.failed")
    if model != "error-event":
        assert events[-1]["response"]["id"] == "resp_upstream"
        assert "response" in events[-1]
    assert not any(event["type"] == "response.completed" for event in events)


@pytest.mark.parametrize("model", ["cut", "clean-cut"])
async def test_a_cut_stream_fails_with_the_id_of_the_response(chat, model):
    events = read_events(await pour(chat, model))
    failed = events[-1]
    assert failed["type"] == "response.failed"
    assert EVENTS.validate_python(failed)
    assert failed["response"]["id"] == "resp_upstream"
    assert failed["response"]["error"]["code"] == "server_error"
    assert failed["sequence_number"] == events[-2]["sequence_number"] + 1


@pytest.mark.parametrize(("model", "status"), [("error-first", 502), ("status:429", 429), ("context", 400)])
async def test_errors_before_the_first_byte(chat, model, status):
    for stream in (True, False):
        with pytest.raises(openai.APIStatusError) as caught:
            await chat.client.responses.create(model=model, input="Hello", stream=stream)
        assert caught.value.status_code == status
        assert KEY not in caught.value.response.text


async def test_seals_of_other_vendors_are_left_out(chat):
    items: Any = [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "penstock-anthropic-e30"},
        {"type": "function_call", "call_id": f"call_{'x' * 90}", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"call_{'x' * 90}", "output": "22"},
    ]
    response = await chat.client.responses.with_raw_response.create(model="plain", input=items, tools=[WEATHER])
    assert response.headers["x-penstock-left-out"] == "reasoning.encrypted_content"
    sent = chat.double.requests[-1].body["input"]
    assert [item.get("type", "message") for item in sent] == ["message", "function_call", "function_call_output"]


# -- chat to Responses: translated


async def test_chat_in_whole_and_streamed(chat):
    completion = await chat.create("plain", max_completion_tokens=50, temperature=0.5)
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason) == (GREETING, "stop")
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens) == (19, 9, 3)
    assert usage.completion_tokens_details.reasoning_tokens == 2
    assert chat.double.requests[-1].body == {
        "model": "plain",
        "input": HELLO,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 50,
        "temperature": 0.5,
    }
    chunks = await chat.collect("plain")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == GREETING
    assert len(chunks) == len(pieces_of(GREETING)) + 2


@pytest.mark.parametrize("model", ["refusal", "reasoning", "no-usage", "only-end", "no-index", "length", "filter"])
async def test_other_answers(chat, model):
    finish = {"length": "length", "filter": "content_filter"}.get(model, "stop")
    whole = (await chat.create(model)).choices[0]
    assert whole.finish_reason == finish
    deltas = [chunk.choices[0] for chunk in await chat.collect(model)]
    assert deltas[-1].finish_reason == finish
    if model == "refusal":
        assert whole.message.refusal == REFUSAL
        return
    assert whole.message.content == "".join(choice.delta.content or "" for choice in deltas) == GREETING
    if model == "reasoning":
        assert whole.message.reasoning_content == THOUGHT
        pieces = [choice.delta.to_dict().get("reasoning_content", "") for choice in deltas]
        assert "".join(str(piece) for piece in pieces) == THOUGHT


@pytest.mark.parametrize("model", ["tools", "parallel-tools", "late-arguments", "mixed-arguments"])
async def test_calls(chat, model):
    count = 2 if model in ("parallel-tools", "mixed-arguments") else 1
    whole = (await chat.create(model, tools=[CHAT_WEATHER], tool_choice="required")).choices[0]
    assert whole.finish_reason == "tool_calls"
    assert [call.function.arguments for call in whole.message.tool_calls] == [ARGUMENTS] * count
    sent = chat.double.requests[-1].body
    assert sent["tools"] == [WEATHER]
    assert sent["tool_choice"] == "required"
    stream = chat.client.chat.completions.stream(model=model, messages=HELLO, tools=[CHAT_WEATHER])
    async with stream as helper:
        calls = (await helper.get_final_completion()).choices[0].message.tool_calls
    assert [(call.id, call.function.arguments) for call in calls] == [
        (f"call_{number + 1}", ARGUMENTS) for number in range(count)
    ]


async def test_reasoning_survives_a_tool_loop_of_chat(chat):
    """The encrypted reasoning travels in the call's id, and comes back to the vendor before the call."""
    message = (await chat.create("thoughtful-tools", tools=[CHAT_WEATHER])).choices[0].message
    call = message.tool_calls[0]
    answer = {"role": "tool", "tool_call_id": call.id, "content": "22 °C"}
    await chat.create("plain", messages=[*HELLO, message.to_dict(), answer], tools=[CHAT_WEATHER])
    sent = chat.double.requests[-1].body["input"]
    assert [item.get("type") for item in sent] == [None, "reasoning", "function_call", "function_call_output"]
    assert sent[1]["encrypted_content"] == ENCRYPTED
    assert sent[2]["call_id"] == sent[3]["call_id"] == "call_1"


async def test_a_custom_tool_of_chat(chat):
    tool: Any = {"type": "custom", "custom": {"name": "python", "format": {"type": "text"}}}
    client = await chat.sign_in(_strict_response_validation=False)
    completion = await client.chat.completions.create(model="custom", messages=HELLO, tools=[tool])
    message = completion.choices[0].message
    assert json.loads(message.tool_calls[0].function.arguments) == {"input": 'print("é")\n'}
    answer: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "é"}
    await chat.create("plain", messages=[*HELLO, message.to_dict(), answer], tools=[tool])
    sent = chat.double.requests[-1].body["input"]
    assert [item.get("type") for item in sent] == [None, "custom_tool_call", "custom_tool_call_output"]
    assert sent[1]["input"] == 'print("é")\n'


@pytest.mark.parametrize(("field", "value"), [("n", 2), ("stop", ["x"]), ("logprobs", True), ("presence_penalty", 1)])
async def test_what_responses_cannot_do_is_refused(chat, field, value):
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.create("plain", **{field: value})
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", field)


async def test_what_has_no_place_is_named(chat):
    response = await chat.client.chat.completions.with_raw_response.create(model="plain", messages=HELLO, seed=7)
    assert response.headers["x-penstock-left-out"] == "seed"


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid", "error-event", "limit-mid"])
async def test_a_broken_reply_is_never_complete_in_chat(chat, model):
    with pytest.raises(openai.APIError):
        await chat.collect(model)


@pytest.mark.parametrize(("model", "status"), [("error-first", 502), ("status:429", 429), ("not-json", 502)])
async def test_errors_in_chat(chat, model, status):
    with pytest.raises(openai.APIStatusError) as caught:
        await chat.create(model)
    assert caught.value.status_code == status
