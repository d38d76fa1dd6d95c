"""Frameworks that people build agents with: imported by those who use them, as that takes seconds."""

import warnings

import tiktoken.load as tiktoken_load

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the frameworks do at import is not ours to mend
    from agents import Agent as OpenAIAgent
    from agents import OpenAIResponsesModel, RunConfig, Runner, function_tool
    from langchain_anthropic import ChatAnthropic
    from langchain_anthropic import chat_models as langchain_anthropic
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from pydantic_ai import Agent, ModelHTTPError
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.output import NativeOutput
    from pydantic_ai.providers.openai import OpenAIProvider

__all__ = [
    "Agent",
    "ChatAnthropic",
    "ChatOpenAI",
    "HumanMessage",
    "ModelHTTPError",
    "NativeOutput",
    "OpenAIAgent",
    "OpenAIChatModel",
    "OpenAIProvider",
    "OpenAIResponsesModel",
    "RunConfig",
    "Runner",
    "ToolMessage",
    "function_tool",
    "get_weather",
    "langchain_anthropic",
    "tiktoken_load",
]


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sun in {city}"
