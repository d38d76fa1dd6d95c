"""Chat completions through OpenAI's SDK for Python, whatever dialect the vendor speaks."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
import sdk_script
from conftest import Start
from doubles.scripted.turns import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS
from doubles.scripted.vendor import DIALECTS
from plain import NO_TLS
from scripted_gateway import Scripted, scripted

SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}}


@pytest.fixture(params=DIALECTS)
async def gateway(request: pytest.FixtureRequest, start: Start) -> AsyncGenerator[Scripted]:
    async with scripted(start, sdk_script.answer, request.param, sdk_script.MODEL) as found:
        yield found


@pytest.fixture
async def client(gateway: Scripted) -> AsyncGenerator[openai.AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    options: Any = {"api_key": gateway.key, "max_retries": 0, "_strict_response_validation": True, "http_client": http}
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/llm", **options) as found:
        yield found


async def complete(client: openai.AsyncOpenAI, streamed: bool, **wanted: Any) -> Any:
    """A completion, put together by the SDK if it is streamed."""
    if not streamed:
        return await client.chat.completions.create(model=sdk_script.MODEL, **wanted)
    options: Any = {"stream_options": {"include_usage": True}}
    async with client.chat.completions.stream(model=sdk_script.MODEL, **options, **wanted) as stream:
        return await stream.get_final_completion()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_completion(client: openai.AsyncOpenAI, streamed: bool) -> None:
    completion = await complete(client, streamed, messages=[{"role": "user", "content": "Hello"}])
    (choice,) = completion.choices
    assert (choice.message.content, choice.finish_reason) == (sdk_script.GREETING, "stop")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert completion.usage.prompt_tokens_details.cached_tokens == CACHED_TOKENS


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_loop_of_parallel_tools(client: openai.AsyncOpenAI, gateway: Scripted, streamed: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is the weather?"}]
    first = await complete(client, streamed, messages=messages, tools=[TOOL])
    (choice,) = first.choices
    assert (choice.message.content, choice.finish_reason) == (sdk_script.ASKING, "tool_calls")
    calls = choice.message.tool_calls
    assert [json.loads(call.function.arguments)["city"] for call in calls] == list(sdk_script.CITIES)
    messages.append(choice.message.to_dict())
    for call, city in zip(calls, sdk_script.CITIES, strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": sdk_script.tell_weather(city)})
    last = await complete(client, streamed, messages=messages, tools=[TOOL])
    sdk_script.check_heard(last.choices[0].message.content)
    assert [seen.refusal for seen in gateway.vendor.seen] == [None, None]


async def test_a_stream_that_breaks_is_an_error(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIError):
        await complete(client, streamed=True, messages=[{"role": "user", "content": sdk_script.CUT}])
