"""Responses through OpenAI's SDK for Python, whatever dialect the vendor speaks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
import sdk_script
from conftest import Start
from doubles.scripted.turns import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS
from doubles.scripted.vendor import DIALECTS, sent_to
from plain import NO_TLS
from pydantic import BaseModel
from scripted_gateway import Scripted, scripted

TOOL: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "Tell the weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
SEALED: Any = {"include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}}


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@pytest.fixture(params=DIALECTS)
async def gateway(request: pytest.FixtureRequest, start: Start) -> AsyncGenerator[Scripted]:
    async with scripted(start, sdk_script.answer, request.param, sdk_script.MODEL) as found:
        yield found


@asynccontextmanager
async def signed_in(gateway: Scripted, **options: Any) -> AsyncGenerator[openai.AsyncOpenAI]:
    """A strict client that does not retry."""
    wanted = {"api_key": gateway.key, "max_retries": 0, "_strict_response_validation": True, **options}
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", http_client=http, **wanted) as client:
        yield client


@pytest.fixture
async def client(gateway: Scripted) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with signed_in(gateway) as found:
        yield found


def ask(given: Any = "Hello", **fields: Any) -> Any:
    return {"model": sdk_script.MODEL, "input": given, "store": False, **fields}


def check_usage(usage: Any) -> None:
    assert (usage.input_tokens, usage.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert usage.total_tokens == INPUT_TOKENS + OUTPUT_TOKENS
    assert usage.input_tokens_details.cached_tokens == CACHED_TOKENS


async def complete(client: openai.AsyncOpenAI, wanted: Any, streamed: bool) -> Any:
    if not streamed:
        return await client.responses.create(**wanted)
    async with client.responses.stream(**wanted) as stream:
        return await stream.get_final_response()


async def test_a_response(client: openai.AsyncOpenAI, gateway: Scripted) -> None:
    response = await client.responses.create(**ask(instructions="Be brief."))
    assert response.output_text == sdk_script.GREETING
    assert (response.object, response.status) == ("response", "completed")
    assert response.id.startswith("resp_")
    assert response._request_id
    check_usage(response.usage)
    (seen,) = gateway.vendor.seen
    assert seen.request is not None
    assert seen.request.system.strip() == "Be brief."
    assert gateway.key not in sent_to(gateway.vendor)


async def test_a_streamed_response(client: openai.AsyncOpenAI) -> None:
    async with client.responses.stream(**ask()) as stream:
        events = [event async for event in stream]
        response = await stream.get_final_response()
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == response.output_text == sdk_script.GREETING
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == list(range(len(events)))
    check_usage(response.usage)


@pytest.mark.parametrize("streamed", [False, True])
async def test_reasoning_is_an_item_of_its_own(client: openai.AsyncOpenAI, streamed: bool) -> None:
    response = await complete(client, ask(**SEALED), streamed)
    assert [item.type for item in response.output] == ["reasoning", "message"]
    thought = response.output[0]
    told = [part.text for part in (*thought.summary, *(thought.content or ()))]
    assert "".join(told) == sdk_script.REASONING


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_loop_of_parallel_tools(client: openai.AsyncOpenAI, gateway: Scripted, streamed: bool) -> None:
    asked: list[Any] = [{"role": "user", "content": "What is the weather?"}]
    first = await complete(client, ask(asked, tools=[TOOL], **SEALED), streamed)
    calls = [item for item in first.output if item.type == "function_call"]
    expected = [("get_weather", f'{{"city": "{city}"}}') for city in sdk_script.CITIES]
    assert [(call.name, call.arguments) for call in calls] == expected
    assert len({call.call_id for call in calls}) == len(calls)
    asked += [item.to_dict() for item in first.output]
    for call, city in zip(calls, sdk_script.CITIES, strict=True):
        told = sdk_script.tell_weather(city)
        asked.append({"type": "function_call_output", "call_id": call.call_id, "output": told})
    last = await complete(client, ask(asked, tools=[TOOL], **SEALED), streamed)
    sdk_script.check_heard(last.output_text)
    assert [seen.refusal for seen in gateway.vendor.seen] == [None, None]


async def test_reasoning_comes_back_to_its_vendor(client: openai.AsyncOpenAI, gateway: Scripted) -> None:
    if gateway.dialect == "chat":
        pytest.skip("chat completions have no seal of reasoning")
    await test_a_loop_of_parallel_tools(client, gateway, streamed=True)
    last = gateway.vendor.seen[-1].request
    assert last is not None
    assert [seal.partition("/")[0] for seal in last.seals] == ["SEAL+1"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_structured_output(client: openai.AsyncOpenAI, streamed: bool) -> None:
    wanted = ask("The weather?", text_format=Weather)
    if streamed:
        async with client.responses.stream(**wanted) as stream:
            response: Any = await stream.get_final_response()
    else:
        response = await client.responses.parse(**wanted)
    assert response.output_parsed == Weather(**sdk_script.WEATHER)


async def test_models_are_listed(client: openai.AsyncOpenAI) -> None:
    assert sdk_script.MODEL in [model.id async for model in client.models.list()]


# -- errors


async def test_errors_of_a_request(gateway: Scripted, client: openai.AsyncOpenAI) -> None:
    async with signed_in(gateway, api_key="psk_wrong") as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.responses.create(**ask())
    with pytest.raises(openai.NotFoundError) as missing:
        await client.responses.create(**ask(model="nobody"))
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as stateful:
        await client.responses.create(**ask(previous_response_id="resp_1"))
    assert "previous_response_id" in str(stateful.value)


async def test_a_vendor_that_is_overloaded(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.InternalServerError):
        await client.responses.create(**ask(sdk_script.OVERLOADED))


async def test_limits_of_the_key(gateway: Scripted) -> None:
    async with signed_in(gateway, api_key=await gateway.server.new_key(requests_per_minute=1)) as client:
        await client.responses.create(**ask())
        with pytest.raises(openai.RateLimitError) as caught:
            await client.responses.create(**ask())
    assert int(caught.value.response.headers["retry-after"]) >= 1


async def test_a_stream_that_breaks_is_an_error(client: openai.AsyncOpenAI) -> None:
    events = list[Any]()
    with pytest.raises((openai.APIError, RuntimeError)):
        await read_to_the_end(client, events)
    assert not any(event.type == "response.completed" for event in events)


async def read_to_the_end(client: openai.AsyncOpenAI, events: list[Any]) -> None:
    """Read a response; the SDK hands failures on as events, and raises RuntimeError if there is no end."""
    async with client.responses.stream(**ask(sdk_script.CUT)) as stream:
        async for event in stream:
            events.append(event)
            if event.type in {"response.failed", "error"}:
                raise RuntimeError(event)
        await stream.get_final_response()
