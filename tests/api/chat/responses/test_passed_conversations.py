"""Kept conversations before a vendor that speaks Responses itself: they are ours, and the vendor keeps nothing."""

import asyncio
from typing import Any

import openai
import pytest
from chat_steps import Chat, settings_of
from openai_replies import GREETING
from responses_double import ENCRYPTED, ResponsesDouble

SCENARIOS = ("plain", "tools", "thoughtful-tools", "reasoning", "crlf", "fragments", "cut", "error-mid", "length")
KEEP = '[chat]\nresponse_retention = "30d"\n'


@pytest.fixture
async def chat(start):
    async with ResponsesDouble() as double:
        server = await start(settings_of(double, SCENARIOS, vendor="responses = true", more=KEEP))
        chat = Chat(server, double, await server.new_key())
        async with chat.clients:
            chat.client = await chat.sign_in(_strict_response_validation=False)
            yield chat


async def create(chat, model: str = "plain", **fields: Any) -> Any:
    return await chat.client.responses.create(**{"model": model, "input": "Hello", **fields})


async def stream(chat, model: str = "plain", **fields: Any) -> list[Any]:
    fields = {"model": model, "input": "Hello", **fields}
    return [event async for event in await chat.client.responses.create(**fields, stream=True)]


async def test_the_vendor_gets_the_items_and_is_told_to_keep_nothing(chat):
    first = await create(chat, store=True)
    second = await create(chat, input="More", previous_response_id=first.id)
    assert first.id != second.id  # the vendor gives all of them one id
    assert (second.previous_response_id, second.store) == (first.id, True)
    sent = chat.double.requests[-1].body
    assert set(sent) == {"model", "input", "store"}
    assert sent["store"] is False
    hello, answered, more = sent["input"]
    assert (hello["content"], more["content"]) == ("Hello", "More")
    assert (answered["role"], answered["content"][0]["text"]) == ("assistant", GREETING)
    assert "id" not in answered
    await create(chat, input="Last", previous_response_id=second.id)
    assert len(chat.double.requests[-1].body["input"]) == 5


@pytest.mark.parametrize("model", ["plain", "tools", "reasoning", "crlf", "fragments", "length"])
async def test_a_passed_stream_has_one_id_which_is_ours(chat, model):
    events = await stream(chat, model)
    shown = [event.response for event in events if hasattr(event, "response")]
    (response_id,) = {response.id for response in shown}
    assert response_id != "resp_upstream"
    assert all(response.store for response in shown)
    found = await chat.client.responses.retrieve(response_id)
    assert found.to_dict() == shown[-1].to_dict()
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_reasoning_goes_back_to_the_vendor_sealed(chat):
    first = await create(chat, "thoughtful-tools", reasoning={"effort": "low"})
    assert chat.double.requests[-1].body["include"] == ["reasoning.encrypted_content"]
    (call,) = [item for item in first.output if item.type == "function_call"]
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    await create(chat, input=[output], previous_response_id=first.id)
    items = chat.double.requests[-1].body["input"]
    assert [item.get("type") for item in items] == ["message", "reasoning", "function_call", "function_call_output"]
    assert items[1]["encrypted_content"] == ENCRYPTED


async def test_a_failure_of_the_vendor_in_its_stream_is_kept(chat):
    failed = (await stream(chat, "error-mid"))[-1]
    assert failed.type == "response.failed"
    found = await chat.client.responses.retrieve(failed.response.id)
    assert (found.status, found.error.code) == ("failed", "server_error")


async def test_a_response_that_is_not_kept_passes_as_it_is(chat):
    response = await create(chat, store=False)
    assert response.id == "resp_upstream"
    assert set(chat.double.requests[-1].body) == {"model", "input", "store"}
    with pytest.raises(openai.NotFoundError):
        await chat.client.responses.retrieve(response.id)


async def test_it_runs_in_the_background_here(chat):
    queued = await create(chat, background=True)
    assert queued.status == "queued"
    async with asyncio.timeout(60):
        while (found := await chat.client.responses.retrieve(queued.id)).status in ("queued", "in_progress"):
            pass
    assert (found.id, found.status, found.output_text) == (queued.id, "completed", GREETING)
    assert "background" not in chat.double.requests[-1].body
