"""Anthropic behind the gateway, as the official OpenAI SDK sees it, with every reply validated strictly."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from anthropic_double import CONTENTS, ERRORS, GREETING, KEY, REFUSALS, SPOKEN, STOPS, THOUGHT, AnthropicDouble
from anthropic_objections import NEW, OLD
from conftest import Server, Start
from openai.types.chat import ChatCompletionMessageParam
from plain import NO_TLS
from pydantic import BaseModel

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "get_time"}},
]
SCENARIOS = (
    *(*CONTENTS, *STOPS, *REFUSALS, *(f"error:{kind}" for kind in ERRORS)),
    *("text", "html", "odd", "error-first", "error-mid", "cut", "clean-cut", "garbage", "hang"),
)
PROMPT = 12 + 3 + 5
"""Tokens that were read anew, written to the cache and read from it."""


def settings_of(double: AnthropicDouble, vendor: str = "") -> str:
    table = f'[vendors.claude]\ntype = "anthropic"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n{vendor}\n'
    models = [
        f'[[models]]\nid = "{scenario}"\nkind = "chat"\nvendor = "claude"\nmodel = "{scenario}"\n'
        for scenario in dict.fromkeys(SCENARIOS)
    ]
    return "\n".join([table, *models])


@dataclass
class Chat:
    """A gateway, the double behind it, and an SDK client."""

    server: Server
    double: AnthropicDouble
    client: openai.AsyncOpenAI

    async def create(self, model: str = "text", **fields: Any) -> Any:
        """A completion, or with `stream=True` the SDK's stream."""
        return await self.client.chat.completions.create(**{"model": model, "messages": HELLO, **fields})

    async def collect(self, model: str = "text", **fields: Any) -> list[Any]:
        """All chunks of a stream."""
        return [chunk async for chunk in await self.create(model, stream=True, **fields)]


@pytest.fixture
async def begin(start: Start) -> AsyncGenerator[Any]:
    """Start a gateway before a double, with these lines in the vendor's table."""
    async with AsyncExitStack() as stack:

        async def chat_of(vendor: str = "") -> Chat:
            double = await stack.enter_async_context(AnthropicDouble())
            server = await start(settings_of(double, vendor))
            client = openai.AsyncOpenAI(
                base_url=f"{server.url}/llm",
                api_key=await server.new_key(),
                max_retries=0,
                _strict_response_validation=True,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
            )
            return Chat(server, double, await stack.enter_async_context(client))

        yield chat_of


@pytest.fixture
async def chat(begin: Any) -> Chat:
    return await begin()


def text_of(chunks: list[Any], name: str = "content") -> str:
    return "".join(getattr(choice.delta, name, None) or "" for chunk in chunks for choice in chunk.choices)


def ends_of(chunks: list[Any]) -> list[str]:
    return [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]


# -- answers


async def test_a_completion(chat):
    completion = await chat.create()
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.tool_calls) == (GREETING, "stop", None)
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (PROMPT, SPOKEN, PROMPT + SPOKEN)
    assert usage.prompt_tokens_details.cached_tokens == 5
    assert usage.prompt_tokens_details.cache_write_tokens == 3
    headers = {name.lower(): value for name, value in chat.double.requests[0].headers.items()}
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, OLD)
    assert "authorization" not in headers


async def test_a_stream_without_usage(chat):
    chunks = await chat.collect()
    assert (text_of(chunks), ends_of(chunks)) == (GREETING, ["stop"])
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(len(chunk.choices) == 1 and chunk.usage is None for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1


async def test_a_stream_with_usage(chat):
    *chunks, last = await chat.collect(stream_options={"include_usage": True})
    assert text_of(chunks) == GREETING
    assert last.choices == []
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (PROMPT, SPOKEN)
    assert last.usage.prompt_tokens_details.cached_tokens == 5


async def test_streamed_or_not_an_answer_is_the_same(chat):
    for scenario in ("text", "silent", "thinking", "search", "garbage", *STOPS):
        whole = (await chat.create(scenario)).choices[0]
        chunks = await chat.collect(scenario)
        assert text_of(chunks) == (whole.message.content or "")
        assert text_of(chunks, "reasoning_content") == getattr(whole.message, "reasoning_content", "")
        assert ends_of(chunks) == [whole.finish_reason]


async def test_why_it_stopped(chat):
    reasons = {"max-tokens": "length", "window": "length", "refusal": "content_filter", "pause": "stop"}
    assert {scenario: (await chat.create(scenario)).choices[0].finish_reason for scenario in reasons} == reasons


async def test_thinking(chat):
    thinking = {"type": "enabled", "budget_tokens": 2048}
    message = (await chat.create("thinking", extra_body={"thinking": thinking})).choices[0].message
    assert (message.reasoning_content, message.content) == (THOUGHT["thinking"], GREETING)
    assert chat.double.last["thinking"] == thinking


async def test_stops_and_limits_and_users(chat):
    await chat.create(max_completion_tokens=9, stop=["END", "\n"], user="u1", temperature=2, seed=1)
    sent = chat.double.last
    assert (sent["max_tokens"], sent["stop_sequences"], sent["temperature"]) == (9, ["END"], 1)
    assert sent["metadata"] == {"user_id": "u1"}


async def test_the_newer_version(begin):
    chat = await begin(f'version = "{NEW}"\nmax_tokens = 77')
    assert (await chat.create(temperature=0.3, top_p=0.9)).choices[0].message.content == GREETING
    assert chat.double.last["max_tokens"] == 77
    assert chat.double.requests[0].headers["anthropic-version"] == NEW


async def test_an_image(chat):
    data = base64.b64encode(bytes(range(256)) * 2000).decode()
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.webp"}},
    ]
    await chat.create(messages=[{"role": "user", "content": parts}])
    _, inline, linked = chat.double.last["messages"][0]["content"]
    assert inline["source"] == {"type": "base64", "media_type": "image/png", "data": data}
    assert linked["source"] == {"type": "url", "url": "https://example.com/cat.webp"}


class Weather(BaseModel):
    """The shape of an answer."""

    city: str
    degrees: int


async def test_structured_output(chat):
    completion = await chat.client.chat.completions.parse(model="json", messages=HELLO, response_format=Weather)
    assert completion.choices[0].message.parsed == Weather(city="Zürich", degrees=21)
    told = chat.double.last["output_config"]["format"]
    assert (told["type"], told["schema"]["required"]) == ("json_schema", ["city", "degrees"])
    async with chat.client.chat.completions.stream(model="json", messages=HELLO, response_format=Weather) as stream:
        assert (await stream.get_final_completion()).choices[0].message.parsed == Weather(city="Zürich", degrees=21)


# -- tools


def expected(scenario: str) -> list[tuple[str, str, Any]]:
    return [(call["id"], call["name"], call["input"]) for call in CONTENTS[scenario] if call["type"] == "tool_use"]


def made(message: Any) -> list[tuple[str, str, Any]]:
    return [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]


@pytest.mark.parametrize("scenario", ["tool", "parallel", "empty-tool"])
async def test_a_loop_of_tools(chat, scenario):
    choice = (await chat.create(scenario, tools=TOOLS)).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert made(choice.message) == expected(scenario)
    assert choice.message.content == ("Let me look." if scenario == "tool" else None)
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"result {number}"}
        for number, call in enumerate(choice.message.tool_calls)
    ]
    turns = [*HELLO, choice.message, *results]  # the SDK's own message goes back as it came
    final = (await chat.create(scenario, tools=TOOLS, messages=turns)).choices[0]
    heard = ", ".join(f"result {number}" for number in range(len(results)))
    assert (final.message.content, final.finish_reason) == (f"I heard: {heard}", "stop")
    assert [turn["role"] for turn in chat.double.last["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("scenario", ["tool", "parallel", "empty-tool"])
async def test_streamed_tools(chat, scenario):
    async with chat.client.chat.completions.stream(model=scenario, messages=HELLO, tools=TOOLS) as stream:
        choice = (await stream.get_final_completion()).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert made(choice.message) == expected(scenario)


async def test_one_tool_at_a_time(chat):
    await chat.create("tool", tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    assert chat.double.last["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}


# -- failures

CLASSES = {
    "invalid_request_error": (openai.BadRequestError, 400, "invalid_value"),
    "request_too_large": (openai.BadRequestError, 400, "request_too_large"),
    "authentication_error": (openai.InternalServerError, 502, "upstream_auth"),
    "billing_error": (openai.InternalServerError, 502, "upstream_auth"),
    "permission_error": (openai.InternalServerError, 502, "upstream_auth"),
    "not_found_error": (openai.InternalServerError, 502, "upstream_error"),
    "conflict_error": (openai.InternalServerError, 502, "upstream_error"),
    "rate_limit_error": (openai.RateLimitError, 429, "rate_limit_exceeded"),
    "api_error": (openai.InternalServerError, 502, "upstream_error"),
    "timeout_error": (openai.InternalServerError, 502, "upstream_error"),
    "overloaded_error": (openai.InternalServerError, 503, "overloaded"),
}


@pytest.mark.parametrize("stream", [False, True])
async def test_every_class_of_error(chat, stream):
    for kind, (error_class, status, code) in CLASSES.items():
        with pytest.raises(error_class) as caught:
            await chat.create(f"error:{kind}", stream=stream)
        assert (caught.value.status_code, caught.value.code) == (status, code)
        if kind in ("rate_limit_error", "overloaded_error"):
            assert caught.value.response.headers["retry-after"] == "7"
    assert [seen.body["model"] for seen in chat.double.requests] == [f"error:{kind}" for kind in CLASSES]
    assert CLASSES.keys() == ERRORS.keys()


async def test_a_prompt_that_is_too_long(chat):
    for scenario in ("too-long", "over-limit"):
        with pytest.raises(openai.BadRequestError, match="This model's maximum context length is") as caught:
            await chat.create(scenario)
        assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")


async def test_other_refusals(chat):
    for scenario, status in {"html": 502, "odd": 503, "no-credit": 502, "spent": 502, "error-first": 503}.items():
        with pytest.raises(openai.InternalServerError) as caught:
            await chat.create(scenario, stream=True)
        assert caught.value.status_code == status
        assert "balance" not in caught.value.message


async def test_what_cannot_be_had_is_not_asked_for(chat):
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.create(logprobs=True)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "logprobs")
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.create(response_format={"type": "json_object"})
    assert (caught.value.code, caught.value.param) == ("unsupported_value", "response_format.type")
    assert not chat.double.requests


async def test_a_stream_that_breaks_off_never_ends_well(chat):
    for scenario, code in {"error-mid": "overloaded", "clean-cut": "upstream_error", "cut": "upstream_error"}.items():
        stream = await chat.create(scenario, stream=True)
        chunks: list[Any] = []
        with pytest.raises(openai.APIError) as caught:
            await _gather(stream, chunks)
        assert caught.value.code == code
        assert text_of(chunks)
        assert GREETING.startswith(text_of(chunks))
        assert not ends_of(chunks)


async def _gather(stream: Any, chunks: list[Any]) -> None:
    async for chunk in stream:
        chunks.append(chunk)  # noqa: PERF401  what came before an error is kept


async def test_a_client_who_leaves_takes_the_vendors_call_along(chat):
    stream = await chat.create("hang", stream=True)
    async for _ in stream:
        break
    await stream.close()
    await chat.double.until(lambda double: double.gone)
    assert len(chat.double.gone) == 1
