"""The Messages door before vendors of chat: what a client of Anthropic's sees, whole and streamed."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from chat_steps import settings_of
from conftest import Start
from message_steps import Client
from openai_double import OpenAIDouble
from openai_replies import GREETING, PROMPT_TOKENS

from penstock.vendor_api import seals

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "description": "Weather", "input_schema": CITY}]


@pytest.fixture
async def double() -> AsyncGenerator[OpenAIDouble]:
    async with OpenAIDouble() as double:
        yield double


@pytest.fixture
async def client(start: Start, double: OpenAIDouble) -> Client:
    server = await start(settings_of(double))
    return Client(server, await server.new_key())


async def ask(client: Client, model: str, *, stream: bool, **fields: Any) -> Any:
    return await (client.stream if stream else client.create)(model, **fields)


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@both
async def test_a_text(client, double, stream):
    message = await ask(client, "plain", stream=stream, system="Be brief.", temperature=0.5, stop_sequences=["x"])
    assert message["content"] == [{"type": "text", "text": GREETING}]
    assert (message["stop_reason"], message["model"]) == ("end_turn", "plain")
    assert message["usage"]["input_tokens"] == PROMPT_TOKENS - 3
    assert message["usage"]["cache_read_input_tokens"] == 3
    sent = double.requests[-1].body
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert (sent["max_tokens"], sent["temperature"], sent["stop"]) == (100, 0.5, ["x"])


@both
async def test_parallel_calls_get_separate_indices(client, stream):
    message = await ask(client, "parallel-tools", stream=stream, tools=TOOLS)
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    assert len(calls) > 1
    assert len({call["id"] for call in calls}) == len(calls)
    assert all(call["input"] for call in calls)
    assert message["stop_reason"] == "tool_use"


@both
async def test_reasoning_is_in_a_block_of_its_own_before_text(client, stream):
    message = await ask(client, "reasoning", stream=stream)
    assert [block["type"] for block in message["content"]] == ["thinking", "text"]
    assert seals.is_seal(message["content"][0]["signature"])


@both
@pytest.mark.parametrize(("model", "reason"), [("length", "max_tokens"), ("filter", "refusal"), ("refusal", "refusal")])
async def test_reasons_to_stop(client, stream, model, reason):
    assert (await ask(client, model, stream=stream))["stop_reason"] == reason
