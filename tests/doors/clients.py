"""Official SDKs as clients of the doors: each returns the answer as it understands it."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import anthropic
import openai
from doors.door_requests import WRITERS
from doors.neutral import Call, Conversation, Heard, Json, read_arguments
from openai.lib.streaming._deltas import accumulate_delta
from plain import NO_TLS

FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
ERRORS = (openai.OpenAIError, anthropic.AnthropicError)
"""All that the SDKs raise."""


class Unfinished(Exception):
    """The stream ended without an exception, and the client knows that the answer is not whole."""


class DoorClient(Protocol):
    """A client of one door."""

    headers: Any
    """Those of the latest answer."""

    async def ask(self, model: str, conversation: Conversation, *, stream: bool) -> Heard:
        """Return the answer; raise whatever the SDK raises, or `Unfinished`."""
        ...


# -- chat completions


class ChatClient:
    """Chat completions by OpenAI's SDK."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client
        self.headers: Any = None

    async def ask(self, model: str, conversation: Conversation, *, stream: bool) -> Heard:
        wanted = {"model": model, **WRITERS["chat"](conversation)}
        create = self._client.chat.completions.with_raw_response.create
        if not stream:
            reply = await create(**wanted)
            self.headers = reply.headers
            completion = reply.parse()
            (choice,) = completion.choices
            message = choice.message.to_dict()
            return _understand_chat(message, choice.finish_reason, completion.usage)
        reply = await create(**wanted, stream=True, stream_options={"include_usage": True})
        self.headers = reply.headers
        message, finish, usage, pieces = {}, None, None, 0
        async for chunk in reply.parse():
            usage = chunk.usage or usage
            for choice in chunk.choices:
                delta = choice.delta.model_dump(exclude_unset=True)
                pieces += bool(delta.get("content"))
                message = accumulate_delta(message, delta)
                finish = choice.finish_reason or finish
        if finish is None:
            raise Unfinished
        for call in message.get("tool_calls") or ():
            del call["index"]
        return _understand_chat(message, finish, usage, pieces)


def _understand_chat(message: Json, finish: str, usage: Any, pieces: int = 0) -> Heard:
    calls = [
        Call(call["id"], call["function"]["name"], read_arguments(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return Heard(
        text=message.get("content") or "",
        reasoning=message.get("reasoning_content") or "",
        calls=tuple(calls),
        finish=finish,
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        raw=[message],
        pieces=pieces,
    )


# -- Messages


class MessagesClient:
    """Messages by Anthropic's SDK."""

    def __init__(self, client: anthropic.AsyncAnthropic) -> None:
        self._client = client
        self.headers: Any = None

    async def ask(self, model: str, conversation: Conversation, *, stream: bool) -> Heard:
        wanted = {"model": model, **WRITERS["messages"](conversation)}
        if not stream:
            reply = await self._client.messages.with_raw_response.create(**_old(wanted))
            self.headers = reply.headers
            return _understand_message(await reply.parse())
        pieces, kinds = 0, list[str]()
        async with self._client.messages.stream(**_old(wanted)) as events:
            self.headers = events.response.headers
            async for event in events:
                kinds.append(event.type)
                pieces += event.type == "text"
            if "message_stop" not in kinds:
                raise Unfinished
            assert kinds.count("message_start") == 1
            return _understand_message(await events.get_final_message(), pieces)


def _old(wanted: Json) -> Json:
    """Move the fields that the newest SDK has no names for any more to where it sends them unchecked."""
    more = {name: wanted.pop(name) for name in ("temperature", "top_p", "top_k") if name in wanted}
    return {**wanted, "extra_body": more}


def _understand_message(message: Any, pieces: int = 0) -> Heard:
    blocks = message.content
    if message.stop_reason is None:
        raise Unfinished
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return Heard(
        text="".join(block.text for block in blocks if block.type == "text"),
        reasoning="".join(block.thinking for block in blocks if block.type == "thinking"),
        calls=tuple(Call(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"),
        finish=FINISHES.get(message.stop_reason, message.stop_reason),
        input_tokens=usage.input_tokens + cached,
        output_tokens=usage.output_tokens,
        raw=[block.to_dict() for block in blocks],
        pieces=pieces,
    )


# -- Responses


class ResponsesClient:
    """Responses by OpenAI's SDK."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client
        self.headers: Any = None

    async def ask(self, model: str, conversation: Conversation, *, stream: bool) -> Heard:
        wanted = {"model": model, **WRITERS["responses"](conversation)}
        create = self._client.responses.with_raw_response.create
        if not stream:
            reply = await create(**wanted)
            self.headers = reply.headers
            return _understand_response(reply.parse())
        reply = await create(**wanted, stream=True)
        self.headers = reply.headers
        last, pieces, done = None, 0, list[Json]()
        async for event in reply.parse():
            pieces += event.type == "response.output_text.delta"
            if event.type == "response.output_item.done":
                done.append(event.item.to_dict())
            if event.type in ("response.completed", "response.incomplete"):
                last = event.response
        if last is None:
            raise Unfinished
        assert done == [item.to_dict() for item in last.output]  # Codex reads the items one by one
        return _understand_response(last, pieces)


def _understand_response(response: Any, pieces: int = 0) -> Heard:
    if response.status not in ("completed", "incomplete"):
        raise Unfinished
    items = [item.to_dict() for item in response.output]
    calls = [
        Call(item["call_id"], item["name"], read_arguments(item["arguments"]))
        for item in items
        if item["type"] == "function_call"
    ]
    thoughts = [item for item in items if item["type"] == "reasoning"]
    reasons = {"max_output_tokens": "length", "content_filter": "content_filter"}
    cut = response.incomplete_details
    return Heard(
        text=response.output_text,
        reasoning="".join(
            part["text"] for item in thoughts for part in [*item["summary"], *(item.get("content") or ())]
        ),
        calls=tuple(calls),
        finish=reasons[cut.reason] if cut else "tool_calls" if calls else "stop",
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        raw=items,
        pieces=pieces,
    )


# -- all


@asynccontextmanager
async def sign_in(url: str, key: str) -> AsyncGenerator[dict[str, DoorClient]]:
    """Return a strict client for each door; none retries."""
    options: Any = {"api_key": key, "max_retries": 0, "_strict_response_validation": True}
    async with AsyncExitStack() as stack:
        llm, v1 = (
            openai.AsyncOpenAI(
                base_url=f"{url}/{path}",
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
                **options,
            )
            for path in ("llm", "v1")
        )
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
        messages = anthropic.AsyncAnthropic(base_url=url, http_client=http, **options)
        for client in (llm, v1, messages):
            await stack.enter_async_context(client)
        yield {"chat": ChatClient(llm), "messages": MessagesClient(messages), "responses": ResponsesClient(v1)}
