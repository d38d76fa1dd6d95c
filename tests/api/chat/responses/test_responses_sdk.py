"""Responses as the official Python SDK sees them, from vendors of the chat dialect, with every event validated."""

import json
from contextlib import suppress
from typing import Any

import openai
import pytest
from chat_steps import chatting
from openai.types.responses import Response, ResponseStreamEvent
from openai_double import KEY
from openai_replies import GREETING, PROMPT_TOKENS, REFUSAL, pieces_of
from pydantic import BaseModel, TypeAdapter

WORDS = len(pieces_of(GREETING))
EVENTS = TypeAdapter(ResponseStreamEvent)
WEATHER: Any = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


async def stream(chat, model: str = "plain", **fields: Any) -> list[Any]:
    """All events of a stream, each checked against the SDK's types, numbered without a gap."""
    fields = {"model": model, "input": "Hello", **fields}
    events = [event async for event in await chat.client.responses.create(**fields, stream=True)]
    for number, event in enumerate(events):
        EVENTS.validate_python(event.to_dict())
        assert event.sequence_number == number
    return events


async def create(chat, model: str = "plain", **fields: Any) -> Any:
    return await chat.client.responses.create(**{"model": model, "input": "Hello", **fields})


async def test_a_whole_response(chat):
    response = await create(chat, instructions="Be brief.", metadata={"team": "a"}, max_output_tokens=99)
    assert (response.status, response.output_text, response.error) == ("completed", GREETING, None)
    assert [item.type for item in response.output] == ["message"]
    assert response.id.startswith("resp_")
    assert (response.instructions, response.metadata, response.max_output_tokens) == ("Be brief.", {"team": "a"}, 99)
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (
        PROMPT_TOKENS,
        WORDS,
        PROMPT_TOKENS + WORDS,
    )
    assert usage.input_tokens_details.cached_tokens == 3
    sent = chat.double.requests[-1].body
    assert sent == {
        "model": "plain",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "max_completion_tokens": 99,
    }


async def test_the_events_of_a_stream(chat):
    events = await stream(chat)
    kinds = [event.type.removeprefix("response.") for event in events]
    before = ["created", "in_progress", "output_item.added", "content_part.added"]
    after = ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert kinds == [*before, *["output_text.delta"] * WORDS, *after]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == GREETING
    states = [event.response for event in events if hasattr(event, "response")]
    assert len({state.id for state in states}) == 1
    assert [state.status for state in states] == ["in_progress", "in_progress", "completed"]
    assert states[-1].output_text == GREETING
    assert states[-1].usage.output_tokens == WORDS


async def test_the_helpers_of_the_sdk(chat):
    async with chat.client.responses.stream(model="plain", input="Hello") as helper:
        assert (await helper.get_final_response()).output_text == GREETING

    class Answer(BaseModel):
        answer: int

    parsed = await chat.client.responses.parse(model="json", input="Hello", text_format=Answer)
    assert isinstance(json.loads(parsed.output_text), dict)
    shape = chat.double.requests[-1].body["response_format"]
    assert (shape["type"], shape["json_schema"]["name"], shape["json_schema"]["strict"]) == (
        "json_schema",
        "Answer",
        True,
    )


@pytest.mark.parametrize("model", ["tools", "parallel-tools"])
async def test_calls_of_functions(chat, model):
    response = await create(chat, model, tools=[WEATHER])
    calls = [item for item in response.output if item.type == "function_call"]
    assert len(calls) == (2 if model == "parallel-tools" else 1)
    streamed = (await stream(chat, model, tools=[WEATHER]))[-1].response
    again = [item for item in streamed.output if item.type == "function_call"]
    assert [(call.name, call.arguments) for call in again] == [(call.name, call.arguments) for call in calls]
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls)
    answers = [{"type": "function_call_output", "call_id": call.call_id, "output": "22 °C"} for call in calls]
    asked: Any = [{"role": "user", "content": "Weather?"}, *[item.to_dict() for item in response.output], *answers]
    await create(chat, input=asked, tools=[WEATHER])
    roles = [message["role"] for message in chat.double.requests[-1].body["messages"]]
    assert roles == ["user", "assistant", *["tool"] * len(calls)]


@pytest.mark.parametrize(("model", "reason"), [("length", "max_output_tokens"), ("filter", "content_filter")])
async def test_an_incomplete_response(chat, model, reason):
    response = await create(chat, model)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)
    last = (await stream(chat, model))[-1]
    assert (last.type, last.response.incomplete_details.reason) == ("response.incomplete", reason)


async def test_a_refusal(chat):
    response = await create(chat, "refusal")
    assert response.output[0].content[0].refusal == REFUSAL
    assert (await stream(chat, "refusal"))[-1].response.output[0].content[0].refusal == REFUSAL


async def test_reasoning_comes_first(chat):
    for response in (await create(chat, "reasoning"), (await stream(chat, "reasoning"))[-1].response):
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert response.output[0].summary[0].text == "The user greets me. I greet back."


@pytest.mark.parametrize("model", ["vllm", "ollama", "llamacpp", "no-usage", "crlf", "fragments", "comments", "bom"])
async def test_dialects_of_vendors(chat, model):
    assert (await create(chat, model)).output_text == GREETING
    last = (await stream(chat, model))[-1]
    assert (last.type, last.response.output_text) == ("response.completed", GREETING)
    assert last.response.usage.output_tokens > 0


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid"])
async def test_a_reply_that_breaks_off_is_never_complete(chat, model):
    fields: Any = {"model": model, "input": "Hello", "stream": True}
    events = []
    with suppress(openai.APIConnectionError):  # the connection is cut
        async for event in await chat.client.responses.create(**fields):
            events.append(event)  # noqa: PERF401  those before the cut count
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert "response.completed" not in kinds
    failed = events[-1]
    assert (failed.type, failed.response.status) == ("response.failed", "failed")
    assert failed.response.id == events[0].response.id
    assert failed.response.error.code == "server_error"


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [("context", 400, "context_length_exceeded"), ("status:429", 429, "rate_limit_exceeded"), ("nobody", 404, None)],
)
async def test_errors_before_the_first_byte(chat, model, status, code):
    with pytest.raises(openai.APIStatusError) as caught:
        await stream(chat, model)
    assert caught.value.status_code == status
    assert caught.value.code == code or code is None
    assert KEY not in caught.value.response.text


@pytest.mark.parametrize("path", ["/v1", "/llm", "/llm/v1"])
async def test_every_path(chat, path):
    client = await chat.sign_in(base_url=f"{chat.server.url}{path}")
    assert isinstance(await client.responses.create(model="plain", input="Hello"), Response)
