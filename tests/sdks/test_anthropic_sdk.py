"""Messages through Anthropic's SDK for Python, whatever dialect the vendor speaks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
import sdk_script
from conftest import Start
from doubles.scripted.turns import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS
from doubles.scripted.vendor import DIALECTS, sent_to
from plain import NO_TLS
from pydantic import BaseModel
from scripted_gateway import Scripted, scripted

TOOL: Any = {
    "name": "get_weather",
    "description": "Tell the weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
THINKING: Any = {"type": "enabled", "budget_tokens": 1024}


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@pytest.fixture(params=DIALECTS)
async def gateway(request: pytest.FixtureRequest, start: Start) -> AsyncGenerator[Scripted]:
    async with scripted(start, sdk_script.answer, request.param, sdk_script.MODEL) as found:
        yield found


@asynccontextmanager
async def signed_in(gateway: Scripted, **options: Any) -> AsyncGenerator[anthropic.AsyncAnthropic]:
    """A strict client that does not retry."""
    wanted = {"api_key": gateway.key, "max_retries": 0, "_strict_response_validation": True, **options}
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    async with anthropic.AsyncAnthropic(base_url=gateway.url, http_client=http, **wanted) as client:
        yield client


@pytest.fixture
async def client(gateway: Scripted) -> AsyncGenerator[anthropic.AsyncAnthropic]:
    async with signed_in(gateway) as found:
        yield found


def ask(said: Any = "Hello", **fields: Any) -> Any:
    messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
    return {"model": sdk_script.MODEL, "max_tokens": 4096, "messages": messages, **fields}


def texts_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def check_usage(usage: Any) -> None:
    read = usage.cache_read_input_tokens or 0
    assert usage.input_tokens + read + (usage.cache_creation_input_tokens or 0) == INPUT_TOKENS
    assert read == CACHED_TOKENS
    assert usage.output_tokens == OUTPUT_TOKENS


async def test_a_message(client: anthropic.AsyncAnthropic, gateway: Scripted) -> None:
    message = await client.messages.create(**ask(system="Be brief."))
    assert texts_of(message) == sdk_script.GREETING
    assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
    assert message.id
    assert message._request_id
    check_usage(message.usage)
    (seen,) = gateway.vendor.seen
    assert seen.request is not None
    assert seen.request.system.strip() == "Be brief."
    assert gateway.key not in sent_to(gateway.vendor)


async def test_a_streamed_message(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(**ask()) as stream:
        pieces = [piece async for piece in stream.text_stream]
        message = await stream.get_final_message()
    assert len(pieces) > 1
    assert "".join(pieces) == texts_of(message) == sdk_script.GREETING
    assert message.stop_reason == "end_turn"
    check_usage(message.usage)


@pytest.mark.parametrize("streamed", [False, True])
async def test_thinking_is_a_block_of_its_own(client: anthropic.AsyncAnthropic, streamed: bool) -> None:
    message = await complete(client, ask(thinking=THINKING), streamed)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].thinking == sdk_script.REASONING


async def complete(client: anthropic.AsyncAnthropic, wanted: Any, streamed: bool) -> Any:
    if not streamed:
        return await client.messages.create(**wanted)
    async with client.messages.stream(**wanted) as stream:
        return await stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_loop_of_parallel_tools(client: anthropic.AsyncAnthropic, gateway: Scripted, streamed: bool) -> None:
    asked: list[Any] = [{"role": "user", "content": "What is the weather?"}]
    first = await complete(client, ask(asked, tools=[TOOL], thinking=THINKING), streamed)
    assert first.stop_reason == "tool_use"
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [(call.name, call.input) for call in calls] == [
        ("get_weather", {"city": city}) for city in sdk_script.CITIES
    ]
    assert len({call.id for call in calls}) == len(calls)
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": sdk_script.tell_weather(call.input["city"])}
        for call in calls
    ]
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    last = await complete(client, ask(asked, tools=[TOOL], thinking=THINKING), streamed)
    sdk_script.check_heard(texts_of(last))
    assert last.stop_reason == "end_turn"
    assert [seen.refusal for seen in gateway.vendor.seen] == [None, None]


async def test_reasoning_comes_back_to_its_vendor(client: anthropic.AsyncAnthropic, gateway: Scripted) -> None:
    if gateway.dialect == "chat":
        pytest.skip("chat completions have no seal of reasoning")
    await test_a_loop_of_parallel_tools(client, gateway, streamed=True)
    last = gateway.vendor.seen[-1].request
    assert last is not None
    assert [seal.partition("/")[0] for seal in last.seals] == ["SEAL+1"]


async def test_structured_output(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.parse(**ask("The weather?"), output_format=Weather)
    assert message.parsed_output == Weather(**sdk_script.WEATHER)


async def test_tokens_are_counted_before_sending(client: anthropic.AsyncAnthropic) -> None:
    wanted = ask()
    del wanted["max_tokens"]
    assert (await client.messages.count_tokens(**wanted)).input_tokens > 0


async def test_models_are_listed(client: anthropic.AsyncAnthropic) -> None:
    assert sdk_script.MODEL in [model.id async for model in client.models.list()]
    assert (await client.models.retrieve(sdk_script.MODEL)).id == sdk_script.MODEL


@pytest.mark.parametrize("option", ["api_key", "auth_token"])
async def test_the_key_is_taken_from_either_header(gateway: Scripted, option: str) -> None:
    given = {"api_key": None, "auth_token": None, option: gateway.key}
    async with signed_in(gateway, **given) as client:
        assert texts_of(await client.messages.create(**ask())) == sdk_script.GREETING
    async with signed_in(gateway, **given, default_headers={"authorization": "", "x-api-key": gateway.key}) as client:
        assert texts_of(await client.messages.create(**ask())) == sdk_script.GREETING


# -- errors


async def test_a_wrong_key(gateway: Scripted) -> None:
    async with signed_in(gateway, api_key="psk_wrong") as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await client.messages.create(**ask())
    assert kind_of(caught.value) == "authentication_error"


def kind_of(error: anthropic.APIStatusError) -> str:
    """The error's type, in the shape of the dialect."""
    assert isinstance(error.body, dict)
    assert error.body["type"] == "error"
    assert error.body["error"]["message"]
    assert error.request_id
    return error.body["error"]["type"]


async def test_errors_of_a_request(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        await client.messages.create(**ask(model="nobody"))
    assert kind_of(missing.value) == "not_found_error"
    with pytest.raises(anthropic.BadRequestError) as bad:
        await client.messages.create(**ask(messages=[]))
    assert kind_of(bad.value) == "invalid_request_error"


async def test_a_vendor_that_is_overloaded(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.InternalServerError) as caught:
        await client.messages.create(**ask(sdk_script.OVERLOADED))
    assert kind_of(caught.value) in {"overloaded_error", "api_error"}


async def test_limits_of_the_key(gateway: Scripted) -> None:
    async with signed_in(gateway, api_key=await gateway.server.new_key(requests_per_minute=1)) as client:
        await client.messages.create(**ask())
        with pytest.raises(anthropic.RateLimitError) as caught:
            await client.messages.create(**ask())
    assert kind_of(caught.value) == "rate_limit_error"
    assert int(caught.value.response.headers["retry-after"]) >= 1


async def test_a_stream_that_breaks_is_an_error(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.APIError):
        async with client.messages.stream(**ask(sdk_script.CUT)) as stream:
            await stream.get_final_message()
