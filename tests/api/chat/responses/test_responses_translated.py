"""Responses to vendors with dialects of their own, with a request like that of Codex; limits and costs of this door."""

import json
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anthropic_double
import gemini_double
import openai
import pytest
from anthropic_double import AnthropicDouble
from chat_steps import chatting
from conftest import Server
from gemini_double import GeminiDouble
from openai.types.responses import ResponseStreamEvent
from plain import NO_TLS
from pydantic import TypeAdapter

EVENTS = TypeAdapter(ResponseStreamEvent)
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CODEX: dict[str, Any] = {
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "parallel_tool_calls": True,
    "reasoning": {"summary": "auto"},
    "prompt_cache_key": "0198",
    "tool_choice": "auto",
    "extra_body": {"client_metadata": {"x-codex-installation-id": "1"}},
    "tools": [
        {
            "type": "namespace",
            "name": "get",  # the doubles call `get_weather` and `weather`
            "description": "Facts.",
            "tools": [{"type": "function", "name": "_weather", "strict": False, "parameters": SCHEMA}],
        },
        {"type": "function", "name": "weather", "strict": False, "parameters": SCHEMA},
        {"type": "web_search"},
    ],
}
"""What Codex sends besides the model and the input."""
SCENARIOS = {
    "claude": ("text", "tool", "parallel", "thinking", "max-tokens", "too-long", "error-mid", "cut", "clean-cut"),
    "gemini": ("text", "tool", "parallel", "thoughts", "length", "context", "error-mid", "cut", "clean-cut"),
}
CELLS = pytest.mark.parametrize("vendor", ["claude", "gemini"])


@dataclass
class Stage:
    """A gateway before both vendors."""

    server: Server
    client: openai.AsyncOpenAI
    claude: AnthropicDouble
    gemini: GeminiDouble

    def sent(self, vendor: str) -> Any:
        return self.claude.last if vendor == "claude" else self.gemini.asked

    async def stream(self, model: str, **fields: Any) -> list[Any]:
        """All events, each valid, up to a cut."""
        events: list[Any] = []
        try:
            async for event in await self.client.responses.create(
                **{"model": model, "input": "Hello", "stream": True, **fields}
            ):
                events.append(event)  # noqa: PERF401  those before the cut count
        except openai.APIConnectionError:
            assert events[-1].type == "response.failed"
        for number, event in enumerate(events):
            assert event.sequence_number == number
            EVENTS.validate_python(event.to_dict())
        return events

    async def create(self, model: str, **fields: Any) -> Any:
        return await self.client.responses.create(**{"model": model, "input": "Hello", **fields})


@pytest.fixture
async def stage(start):
    async with AsyncExitStack() as stack:
        claude = await stack.enter_async_context(AnthropicDouble())
        gemini = await stack.enter_async_context(GeminiDouble())
        tables = [
            f'[vendors.claude]\ntype = "anthropic"\napi_key = "{anthropic_double.KEY}"\nbase_url = "{claude.url}"\n',
            f'[vendors.gemini]\ntype = "gemini"\napi_key = "{gemini_double.KEY}"\nbase_url = "{gemini.url}"\n',
        ]
        models = [
            f'[[models]]\nid = "{vendor}-{scenario}"\nkind = "chat"\nvendor = "{vendor}"\nmodel = "{scenario}"\n'
            for vendor, scenarios in SCENARIOS.items()
            for scenario in scenarios
        ]
        server = await start("\n".join([*tables, *models]))
        client = await stack.enter_async_context(
            openai.AsyncOpenAI(
                base_url=f"{server.url}/v1",
                api_key=await server.new_key(),
                max_retries=0,
                _strict_response_validation=True,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
            )
        )
        yield Stage(server, client, claude, gemini)


@CELLS
async def test_text(stage, vendor):
    whole = await stage.create(f"{vendor}-text", instructions="Be brief.")
    events = await stage.stream(f"{vendor}-text")
    assert whole.output_text == events[-1].response.output_text != ""
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage.output_tokens == whole.usage.output_tokens > 0


@CELLS
@pytest.mark.parametrize("scenario", ["tool", "parallel"])
async def test_a_tool_loop_like_that_of_codex(stage, vendor, scenario):
    items: list[Any] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are Codex."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
    ]
    events = await stage.stream(f"{vendor}-{scenario}", input=items, **CODEX)
    done = [event.item.to_dict() for event in events if event.type == "response.output_item.done"]
    calls = [item for item in done if item["type"] == "function_call"]
    assert len(calls) == (2 if scenario == "parallel" else 1)
    name = ("_weather", "get") if vendor == "claude" else ("weather", None)
    assert all((call["name"], call.get("namespace")) == name for call in calls)
    assert all(isinstance(json.loads(call["arguments"]), dict) for call in calls)
    assert len({call["call_id"] for call in calls}) == len(calls)
    answers = [{"type": "function_call_output", "call_id": call["call_id"], "output": "22 °C"} for call in calls]
    events = await stage.stream(f"{vendor}-{scenario}", input=[*items, *done, *answers], **CODEX)
    assert events[-1].type == "response.completed"
    assert "22 °C" in json.dumps(stage.sent(vendor), ensure_ascii=False)


async def test_what_is_left_out_is_named(stage):
    fields = {name: value for name, value in CODEX.items() if name != "stream"}
    response = await stage.client.responses.with_raw_response.create(model="claude-text", input="Hello", **fields)
    assert response.headers["x-penstock-left-out"] == "tools.web_search, prompt_cache_key"


@CELLS
async def test_reasoning(stage, vendor):
    model = "claude-thinking" if vendor == "claude" else "gemini-thoughts"
    events = await stage.stream(model)
    kinds = [item.type for item in events[-1].response.output]
    assert kinds[0] == "reasoning"
    assert kinds[-1] == "message"
    assert events[-1].response.output[0].summary[0].text


@CELLS
async def test_a_picture(stage, vendor):
    content = [{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    await stage.create(f"{vendor}-text", input=[{"role": "user", "content": content}])
    assert "iVBORw0KGgo=" in json.dumps(stage.sent(vendor))


@CELLS
async def test_incomplete(stage, vendor):
    model = "claude-max-tokens" if vendor == "claude" else "gemini-length"
    assert (await stage.stream(model))[-1].response.incomplete_details.reason == "max_output_tokens"


@CELLS
@pytest.mark.parametrize("scenario", ["error-mid", "cut", "clean-cut"])
async def test_a_reply_that_breaks_off(stage, vendor, scenario):
    events = await stage.stream(f"{vendor}-{scenario}")
    assert events[0].type == "response.created"
    assert events[-1].type == "response.failed"
    assert {event.response.id for event in events if hasattr(event, "response")} == {events[0].response.id}


@CELLS
async def test_a_conversation_that_is_too_long(stage, vendor):
    model = "claude-too-long" if vendor == "claude" else "gemini-context"
    with pytest.raises(openai.BadRequestError) as caught:
        await stage.create(model)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")


# -- limits and costs


async def test_costs_and_limits_are_those_of_chat(start):
    price = 'price = {input_per_million = "1", output_per_million = "2"}'
    async with chatting(start, price=price) as chat:
        response = await chat.client.responses.with_raw_response.create(model="plain", input="Hello")
        assert float(response.headers["x-penstock-cost"]) > 0
        limited = await chat.sign_in(api_key=await chat.server.new_key(requests_per_minute=1))
        await limited.responses.create(model="plain", input="Hello")
        with pytest.raises(openai.RateLimitError) as caught:
            await limited.responses.create(model="plain", input="Hello")
        assert caught.value.code == "rate_limit_exceeded"
        assert int(caught.value.response.headers["retry-after"]) >= 1
        with pytest.raises(openai.AuthenticationError):
            await (await chat.sign_in(api_key="psk_wrong")).responses.create(model="plain", input="Hello")
