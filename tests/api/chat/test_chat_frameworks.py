"""Chat through what people build agents with: langchain-openai and pydantic-ai."""

import warnings
from typing import Any

import openai
import pytest
import tiktoken.load
from chat_steps import chatting
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from pydantic import BaseModel, SecretStr

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the frameworks do at import is not ours to mend
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from pydantic_ai import Agent, ModelHTTPError
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.output import NativeOutput
    from pydantic_ai.providers.openai import OpenAIProvider


@pytest.fixture
async def chat(start, monkeypatch):
    def refuse(path: str) -> bytes:
        raise AssertionError(f"tiktoken would download {path}")

    monkeypatch.setattr(tiktoken.load, "read_file", refuse)
    async with chatting(start) as chat:
        yield chat


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sun in {city}"


# -- langchain-openai


def langchain(chat, model: str, **options: Any) -> Any:
    return ChatOpenAI(
        model=model, base_url=f"{chat.server.url}/llm", api_key=SecretStr(chat.key), max_retries=0, **options
    )


async def test_langchain_answers_and_streams(chat):
    model = langchain(chat, "plain")
    answer = await model.ainvoke("Hello")
    assert answer.content == GREETING
    assert answer.usage_metadata["input_tokens"] == PROMPT_TOKENS
    pieces = [piece async for piece in langchain(chat, "plain", stream_usage=True).astream("Hello")]
    assert "".join(piece.content for piece in pieces) == GREETING
    used = [piece.usage_metadata for piece in pieces if piece.usage_metadata]
    assert [found["output_tokens"] for found in used] == [len(pieces_of(GREETING))]


@pytest.mark.parametrize("name", ["tools", "parallel-tools"])
@pytest.mark.parametrize("stream", [False, True])
async def test_langchain_runs_a_tool_loop(chat, name, stream):
    model = langchain(chat, name, streaming=stream).bind_tools([get_weather])
    messages: list[Any] = [HumanMessage("What is the weather?")]
    for _ in range(3):
        answer = await model.ainvoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            break
        messages += [await get_weather.ainvoke(call) for call in answer.tool_calls]
    told = [message.content for message in messages if isinstance(message, ToolMessage)]
    assert told == ["sun in Paris"] * (1 if name == "tools" else 2)
    assert messages[-1].content == "The tools said: " + "; ".join(told)
    assert len(chat.double.requests) == 2


@pytest.mark.parametrize(("name", "method"), [("json", "json_schema"), ("tools", "function_calling")])
async def test_langchain_structured_output(chat, name, method):
    model = langchain(chat, name).with_structured_output(Weather, method=method)
    assert await model.ainvoke("What is the weather?") == Weather(city="Paris", degrees=7)


async def test_langchain_tells_errors(chat):
    with pytest.raises(openai.NotFoundError) as caught:
        await langchain(chat, "nobody").ainvoke("Hello")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.APIError):
        [piece async for piece in langchain(chat, "cut").astream("Hello")]


# -- pydantic-ai


def pydantic_ai(chat, model: str) -> OpenAIChatModel:
    return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=chat.client))


async def test_pydantic_ai_runs_a_tool_loop(chat):
    for name in ("tools", "parallel-tools"):
        agent = Agent(pydantic_ai(chat, name), tools=[get_weather.func])
        result = await agent.run("What is the weather?")
        count = 1 if name == "tools" else 2
        assert result.output == "The tools said: " + "; ".join(["sun in Paris"] * count)
        assert result.usage.requests == 2
        assert result.usage.input_tokens == 2 * PROMPT_TOKENS


async def test_pydantic_ai_structured_output(chat):
    expected = Weather(city="Paris", degrees=7)
    by_tool = Agent(pydantic_ai(chat, "tools"), tools=[get_weather.func], output_type=Weather)
    assert (await by_tool.run("What is the weather?")).output == expected
    native = Agent(pydantic_ai(chat, "json"), output_type=NativeOutput(Weather))
    assert (await native.run("What is the weather?")).output == expected


async def test_pydantic_ai_streams(chat):
    agent = Agent(pydantic_ai(chat, "plain"))
    async with agent.run_stream("Hello") as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == GREETING
    assert len(pieces) > 3
    assert result.usage.output_tokens == len(pieces_of(GREETING))
    by_tool = Agent(pydantic_ai(chat, "tools"), tools=[get_weather.func], output_type=Weather)
    async with by_tool.run_stream("What is the weather?") as streamed:
        assert await streamed.get_output() == Weather(city="Paris", degrees=7)


async def test_pydantic_ai_tells_errors(chat):
    with pytest.raises(ModelHTTPError) as caught:
        await Agent(pydantic_ai(chat, "status:503")).run("Hello")
    assert caught.value.status_code == 503
    assert caught.value.body["code"] == "overloaded"
