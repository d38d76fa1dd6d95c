"""Kept conversations through OpenAI's client: continued, streamed, run in the background, and ended."""

import asyncio
from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest
from chat_steps import chatting
from openai_replies import GREETING, PROMPT_TOKENS

from penstock.chat.kept import responses as kept_responses

KEEP = '[chat]\nresponse_retention = "30d"\n'


@pytest.fixture
async def chat(start):
    async with chatting(start, KEEP) as chat:
        yield chat


async def create(chat, model: str = "plain", **fields: Any) -> Any:
    return await chat.client.responses.create(**{"model": model, "input": "Hello", **fields})


async def stream(chat, model: str = "plain", **fields: Any) -> list[Any]:
    fields = {"model": model, "input": "Hello", **fields}
    return [event async for event in await chat.client.responses.create(**fields, stream=True)]


async def until_it_ends(chat, response_id: str) -> Any:
    async with asyncio.timeout(60):
        while True:
            found = await chat.client.responses.retrieve(response_id)
            if found.status not in ("queued", "in_progress"):
                return found
            await asyncio.sleep(0.01)


def sent(chat) -> list[tuple[str, Any]]:
    """The conversation that the vendor got last."""
    return [(message["role"], message["content"]) for message in chat.double.requests[-1].body["messages"]]


async def is_kept(chat, response_id: str) -> bool:
    try:
        await chat.client.responses.retrieve(response_id)
    except openai.NotFoundError:
        return False
    return True


async def test_a_conversation_goes_on_by_the_id_of_its_last_response(chat):
    first = await create(chat, instructions="Be brief.")
    second = await create(chat, input="And then?", previous_response_id=first.id)
    assert (second.previous_response_id, second.store) == (first.id, True)
    assert sent(chat) == [("user", "Hello"), ("assistant", GREETING), ("user", "And then?")]
    await create(chat, input="Last.", previous_response_id=second.id, instructions="Be long.")
    assert [role for role, _ in sent(chat)] == ["system", "user", "assistant", "user", "assistant", "user"]
    branch = await create(chat, input="Else?", previous_response_id=first.id)
    assert branch.id not in (first.id, second.id)
    assert [text for _, text in sent(chat)] == ["Hello", GREETING, "Else?"]


async def test_a_response_is_retrieved_with_its_items_and_deleted(chat):
    first = await create(chat, metadata={"team": "a"})
    second = await create(chat, input=[{"role": "user", "content": "And?"}], previous_response_id=first.id)
    found = await chat.client.responses.retrieve(second.id)
    assert found.to_dict() == second.to_dict()
    items = await chat.client.responses.input_items.list(second.id)
    assert [item.content[0].text for item in items.data] == ["And?"]
    await chat.client.responses.delete(first.id)
    assert not await is_kept(chat, first.id)
    with pytest.raises(openai.BadRequestError) as error:
        await create(chat, previous_response_id=second.id)
    assert (error.value.code, error.value.param) == ("previous_response_not_found", "previous_response_id")
    assert len(chat.double.requests) == 2


async def test_a_streamed_response_is_kept_before_its_last_event(chat):
    events = await stream(chat)
    last = events[-1]
    assert (last.type, last.response.store) == ("response.completed", True)
    assert len({event.response.id for event in events if hasattr(event, "response")}) == 1
    assert [event.sequence_number for event in events] == list(range(len(events)))
    found = await chat.client.responses.retrieve(last.response.id)
    assert found.to_dict() == last.response.to_dict()
    await create(chat, input="More", previous_response_id=last.response.id)
    assert [text for _, text in sent(chat)] == ["Hello", GREETING, "More"]


async def test_tools_are_called_over_two_responses(chat):
    tool: Any = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}
    first = await create(chat, "tools", tools=[tool])
    (call,) = [item for item in first.output if item.type == "function_call"]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    await create(chat, input=[output], previous_response_id=first.id, tools=[tool])
    roles = [message["role"] for message in chat.double.requests[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool"]
    assert chat.double.requests[-1].body["messages"][1]["tool_calls"][0]["id"] == call.call_id


async def test_items_can_be_referred_to_by_their_ids(chat):
    first = await create(chat)
    reference: Any = {"type": "item_reference", "id": first.output[0].id}
    await create(chat, input=[{"role": "user", "content": "Hello"}, reference, {"role": "user", "content": "More"}])
    assert [text for _, text in sent(chat)] == ["Hello", GREETING, "More"]


async def test_only_what_may_be_kept_is(chat):
    kept, dropped = await create(chat, store=True), await create(chat, store=False)
    assert (kept.store, dropped.store) == (True, False)
    assert await is_kept(chat, kept.id)
    assert not await is_kept(chat, dropped.id)
    events = await stream(chat, store=False)
    assert not await is_kept(chat, events[-1].response.id)


async def test_a_response_cut_by_its_limit_is_kept_as_incomplete(chat):
    for response in (await create(chat, "length"), (await stream(chat, "length"))[-1].response):
        assert (await chat.client.responses.retrieve(response.id)).status == "incomplete"


async def test_a_stream_that_breaks_off_is_kept_as_failed(chat):
    events: list[Any] = []
    with suppress(openai.APIError, httpx.RemoteProtocolError):  # the connection is cut, too
        async for event in await chat.client.responses.create(model="cut", input="Hello", stream=True):
            events.append(event)  # noqa: PERF401  those before the cut count
    assert events[-1].type == "response.failed"
    assert (await chat.client.responses.retrieve(events[-1].response.id)).status == "failed"


async def test_other_accounts_cannot_continue_it(chat):
    first = await create(chat)
    other = await chat.sign_in(api_key=await chat.server.new_key("other"))
    with pytest.raises(openai.BadRequestError, match="not found"):
        await other.responses.create(model="plain", input="Hello", previous_response_id=first.id)
    reference: Any = {"type": "item_reference", "id": first.output[0].id}
    with pytest.raises(openai.BadRequestError, match="not found"):
        await other.responses.create(model="plain", input=[reference])
    assert len(chat.double.requests) == 1


async def test_a_request_id_of_the_callers_choice_is_not_the_id_of_a_response(chat):
    headers = {"x-request-id": "always-the-same"}
    first = await create(chat, extra_headers=headers)
    second = await create(chat, previous_response_id=first.id, extra_headers=headers)
    assert first.id != second.id
    await create(chat, previous_response_id=second.id)
    assert len(sent(chat)) == 5


async def test_a_cached_answer_is_kept_and_continued(start):
    async with chatting(start, f"{KEEP}cache_mb = 64\n") as chat:
        first, again = await create(chat), await create(chat)
        assert len(chat.double.requests) == 1
        assert first.id == again.id
        streamed = [(await stream(chat))[-1].response for _ in range(2)]
        assert len(chat.double.requests) == 2
        assert all([await is_kept(chat, response.id) for response in (first, *streamed)])
        await create(chat, input="More", previous_response_id=again.id)
        assert [text for _, text in sent(chat)] == ["Hello", GREETING, "More"]


# -- in the background


async def test_a_response_runs_in_the_background_and_is_settled(chat):
    queued = await create(chat, background=True, metadata={"a": "b"})
    assert (queued.status, queued.background, queued.output, queued.metadata) == ("queued", True, [], {"a": "b"})
    found = await until_it_ends(chat, queued.id)
    assert (found.id, found.status, found.output_text, found.background) == (queued.id, "completed", GREETING, True)
    assert found.usage.input_tokens == PROMPT_TOKENS
    await create(chat, input="More", previous_response_id=queued.id)
    assert [text for _, text in sent(chat)] == ["Hello", GREETING, "More"]
    await chat.server.gateway.settle_up()
    usage = (await chat.server.client.get("/api/v1/usage")).json()
    assert usage["total"]["requests"] == 2


async def test_a_background_response_of_a_failing_vendor_fails(chat):
    found = await until_it_ends(chat, (await create(chat, "status:500", background=True)).id)
    assert (found.status, found.error.code) == ("failed", "server_error")


async def test_a_background_response_is_canceled_at_its_vendor(chat):
    queued = await create(chat, "hang", background=True)
    async with asyncio.timeout(60):
        while not chat.double.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await chat.client.responses.retrieve(queued.id)).status == "in_progress"
    assert (await chat.client.responses.cancel(queued.id)).status == "cancelled"
    assert (await chat.client.responses.retrieve(queued.id)).status == "cancelled"
    with pytest.raises(openai.BadRequestError, match="synchronous"):
        await chat.client.responses.cancel((await create(chat)).id)


@pytest.mark.parametrize(
    ("fields", "param"), [({"stream": True}, "stream"), ({"store": False}, "store"), ({"model": "nope"}, "model")]
)
async def test_a_background_response_that_cannot_be_is_refused_at_once(chat, fields, param):
    with pytest.raises(openai.APIStatusError) as error:
        await create(chat, background=True, **fields)
    assert error.value.param == param
    assert chat.double.requests == []


async def test_a_server_that_stops_ends_its_background_responses(chat):
    queued = await create(chat, "hang", background=True)
    await chat.server.gateway.kept.stop()
    found = await chat.client.responses.retrieve(queued.id)
    assert (found.status, found.error.code) == ("failed", "server_error")


async def test_a_background_response_deleted_elsewhere_is_left(chat, monkeypatch):
    monkeypatch.setattr(kept_responses, "HEARTBEAT_SECONDS", 0.01)
    queued = await create(chat, "hang", background=True)
    await chat.client.responses.delete(queued.id)
    assert not await is_kept(chat, queued.id)


# -- where nothing is kept


@pytest.mark.parametrize("fields", [{"store": True}, {"background": True}, {"previous_response_id": "resp_a"}])
async def test_where_nothing_is_kept_the_fields_are_refused_by_name(start, fields):
    async with chatting(start) as chat:
        with pytest.raises(openai.BadRequestError) as error:
            await create(chat, **fields)
        assert error.value.param == next(iter(fields))
        assert "chat.response_retention" in error.value.message
        assert chat.double.requests == []
        response = await create(chat)
        assert response.store is False
        assert not await is_kept(chat, response.id)
