"""Loops of tools by frameworks that speak Messages or Responses, whatever dialect the vendor speaks."""

from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any

import anthropic
import openai
import pytest
import sdk_script
from conftest import Start
from doubles.scripted.vendor import DIALECTS
from plain import NO_TLS
from pydantic import SecretStr
from scripted_gateway import Scripted, scripted


@pytest.fixture(scope="module")
def kit() -> Any:
    """The frameworks, imported by the process that runs these tests and by no other."""
    return import_module("agent_frameworks")


@pytest.fixture(params=DIALECTS)
async def gateway(request: pytest.FixtureRequest, start: Start) -> AsyncGenerator[Scripted]:
    async with scripted(start, sdk_script.answer, request.param, sdk_script.MODEL) as found:
        yield found


@pytest.fixture
async def client(gateway: Scripted) -> AsyncGenerator[openai.AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0, http_client=http
    ) as found:
        yield found


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_agents_sdk(kit: Any, gateway: Scripted, client: openai.AsyncOpenAI, streamed: bool) -> None:
    @kit.function_tool
    def get_weather(city: str) -> str:
        """Tell the weather of a city."""
        return sdk_script.tell_weather(city)

    model = kit.OpenAIResponsesModel(model=sdk_script.MODEL, openai_client=client)
    agent = kit.OpenAIAgent(name="Weatherman", instructions="Be brief.", model=model, tools=[get_weather])
    options = {"input": "What is the weather?", "run_config": kit.RunConfig(tracing_disabled=True)}
    if streamed:
        result = kit.Runner.run_streamed(agent, **options)
        kinds = [event.type async for event in result.stream_events()]
        assert "raw_response_event" in kinds
    else:
        result = await kit.Runner.run(agent, **options)
    sdk_script.check_heard(result.final_output)
    check_requests(gateway)


@pytest.fixture
async def langchain_client(kit: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
    """Close LangChain's client of Anthropic, which would be kept for ever."""
    async with anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS) as http:
        monkeypatch.setattr(kit.langchain_anthropic, "_get_default_async_httpx_client", lambda **_: http)
        yield


@pytest.mark.parametrize("streamed", [False, True])
async def test_langchain_anthropic(kit: Any, gateway: Scripted, langchain_client: None, streamed: bool) -> None:
    await run_langchain(kit, kit.ChatAnthropic(base_url=gateway.url, **langchain_options(gateway, streamed)))
    check_requests(gateway)


@pytest.mark.parametrize("streamed", [False, True])
async def test_langchain_openai(kit: Any, gateway: Scripted, client: openai.AsyncOpenAI, streamed: bool) -> None:
    options = langchain_options(gateway, streamed)
    http = client._client  # closed in the end; its own would be kept for ever
    responses = {"use_responses_api": True, "store": False, "http_async_client": http}
    await run_langchain(kit, kit.ChatOpenAI(base_url=f"{gateway.url}/v1", **responses, **options))
    check_requests(gateway)


def langchain_options(gateway: Scripted, streamed: bool) -> dict[str, Any]:
    return {"model": sdk_script.MODEL, "api_key": SecretStr(gateway.key), "max_retries": 0, "streaming": streamed}


async def run_langchain(kit: Any, model: Any) -> None:
    """Ask, call the tools, and ask again."""
    model = model.bind_tools([kit.get_weather])
    messages: list[Any] = [kit.HumanMessage("What is the weather?")]
    for _ in range(2):
        answer = await model.ainvoke(messages)
        messages.append(answer)
        for call in answer.tool_calls:
            told = sdk_script.tell_weather(call["args"]["city"])
            messages.append(kit.ToolMessage(told, tool_call_id=call["id"]))
    sdk_script.check_heard(messages[-1].text)


def check_requests(gateway: Scripted) -> None:
    assert [seen.refusal for seen in gateway.vendor.seen] == [None, None]
