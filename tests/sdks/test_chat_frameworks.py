"""Chat through what people build agents with: langchain-openai and pydantic-ai."""

from importlib import import_module
from typing import Any

import openai
import pytest
from chat_steps import chatting
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from pydantic import BaseModel, SecretStr


@pytest.fixture(scope="module")
def kit() -> Any:
    """The frameworks, imported by the process that runs these tests and by no other."""
    return import_module("agent_frameworks")


@pytest.fixture
async def chat(start, kit, monkeypatch):
    def refuse(path: str) -> bytes:
        raise AssertionError(f"tiktoken would download {path}")

    monkeypatch.setattr(kit.tiktoken_load, "read_file", refuse)
    async with chatting(start) as chat:
        yield chat


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


# -- langchain-openai


def langchain(kit, chat, model: str, **options: Any) -> Any:
    return kit.ChatOpenAI(
        model=model,
        base_url=f"{chat.server.url}/llm",
        api_key=SecretStr(chat.key),
        max_retries=0,
        http_async_client=chat.client._client,  # closed in the end; its own would be kept for ever
        **options,
    )


async def test_langchain_answers_and_streams(kit, chat):
    model = langchain(kit, chat, "plain")
    answer = await model.ainvoke("Hello")
    assert answer.content == GREETING
    assert answer.usage_metadata["input_tokens"] == PROMPT_TOKENS
    pieces = [piece async for piece in langchain(kit, chat, "plain", stream_usage=True).astream("Hello")]
    assert "".join(piece.content for piece in pieces) == GREETING
    used = [piece.usage_metadata for piece in pieces if piece.usage_metadata]
    assert [found["output_tokens"] for found in used] == [len(pieces_of(GREETING))]


@pytest.mark.parametrize("name", ["tools", "parallel-tools"])
@pytest.mark.parametrize("stream", [False, True])
async def test_langchain_runs_a_tool_loop(kit, chat, name, stream):
    model = langchain(kit, chat, name, streaming=stream).bind_tools([kit.get_weather])
    messages: list[Any] = [kit.HumanMessage("What is the weather?")]
    for _ in range(3):
        answer = await model.ainvoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            break
        messages += [await kit.get_weather.ainvoke(call) for call in answer.tool_calls]
    told = [message.content for message in messages if isinstance(message, kit.ToolMessage)]
    assert told == ["sun in Paris"] * (1 if name == "tools" else 2)
    assert messages[-1].content == "The tools said: " + "; ".join(told)
    assert len(chat.double.requests) == 2


@pytest.mark.parametrize(("name", "method"), [("json", "json_schema"), ("tools", "function_calling")])
async def test_langchain_structured_output(kit, chat, name, method):
    model = langchain(kit, chat, name).with_structured_output(Weather, method=method)
    assert await model.ainvoke("What is the weather?") == Weather(city="Paris", degrees=7)


async def test_langchain_tells_errors(kit, chat):
    with pytest.raises(openai.NotFoundError) as caught:
        await langchain(kit, chat, "nobody").ainvoke("Hello")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.APIError):
        [piece async for piece in langchain(kit, chat, "cut").astream("Hello")]


# -- pydantic-ai


def pydantic_ai(kit, chat, model: str) -> Any:
    return kit.OpenAIChatModel(model, provider=kit.OpenAIProvider(openai_client=chat.client))


async def test_pydantic_ai_runs_a_tool_loop(kit, chat):
    for name in ("tools", "parallel-tools"):
        agent = kit.Agent(pydantic_ai(kit, chat, name), tools=[kit.get_weather.func])
        result = await agent.run("What is the weather?")
        count = 1 if name == "tools" else 2
        assert result.output == "The tools said: " + "; ".join(["sun in Paris"] * count)
        assert result.usage.requests == 2
        assert result.usage.input_tokens == 2 * PROMPT_TOKENS


async def test_pydantic_ai_structured_output(kit, chat):
    expected = Weather(city="Paris", degrees=7)
    by_tool = kit.Agent(pydantic_ai(kit, chat, "tools"), tools=[kit.get_weather.func], output_type=Weather)
    assert (await by_tool.run("What is the weather?")).output == expected
    native = kit.Agent(pydantic_ai(kit, chat, "json"), output_type=kit.NativeOutput(Weather))
    assert (await native.run("What is the weather?")).output == expected


async def test_pydantic_ai_streams(kit, chat):
    agent = kit.Agent(pydantic_ai(kit, chat, "plain"))
    async with agent.run_stream("Hello") as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == GREETING
    assert len(pieces) > 3
    assert result.usage.output_tokens == len(pieces_of(GREETING))
    by_tool = kit.Agent(pydantic_ai(kit, chat, "tools"), tools=[kit.get_weather.func], output_type=Weather)
    async with by_tool.run_stream("What is the weather?") as streamed:
        assert await streamed.get_output() == Weather(city="Paris", degrees=7)


async def test_pydantic_ai_tells_errors(kit, chat):
    with pytest.raises(kit.ModelHTTPError) as caught:
        await kit.Agent(pydantic_ai(kit, chat, "status:503")).run("Hello")
    assert caught.value.status_code == 503
    assert caught.value.body["code"] == "overloaded"
