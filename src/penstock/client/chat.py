"""Streamed chat answers, and the official OpenAI SDK for this server."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import ModuleType
from typing import Any, cast

from penstock.client.config import Address
from penstock.client.errors import MissingExtra, UnexpectedAnswer, refusal
from penstock.client.transport.retries import Policy, attempt
from penstock.client.transport.sse import EventLines
from penstock.client.transport.steps import Close, Emit, Flow, Open, Read, Reply, Request

ANSWER_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class ChatChunk:
    """One piece of a chat answer. The last one has `usage`. One piece has `cost` in USD if the server knows it."""

    text: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    cost: Decimal | None = None
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


def stream_chat(
    model: str, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], policy: Policy
) -> Flow[None]:
    """Emit the pieces of the first choice. A request that may have been billed is not retried."""
    body = {
        "model": model,
        "messages": list(messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **fields,
    }
    request = Request(method="POST", path="/llm/chat/completions", json=body, read_seconds=ANSWER_SECONDS)
    reply = yield from attempt(Open(request), policy)
    if "x-penstock-cost" in reply.headers:
        yield Emit(ChatChunk(cost=Decimal(reply.headers["x-penstock-cost"])))
    lines = EventLines()
    while chunk := (yield Read()):
        for message in lines.feed(chunk):
            if message.data == "[DONE]":
                yield Close()
                return
            yield Emit(_read(message.data))
    raise UnexpectedAnswer("The chat answer ended early. Send the request again.")


def _read(data: str) -> ChatChunk:
    try:
        chunk = json.loads(data)
    except ValueError:
        raise UnexpectedAnswer("A piece of the answer is not JSON: is this Penstock's address?") from None
    if "error" in chunk:
        raise refusal(Reply(502, {}, data.encode()))
    choices: list[Any] = chunk.get("choices") or [{}]
    choice = cast("Mapping[str, Any]", choices[0])
    delta = cast("Mapping[str, Any]", choice.get("delta") or {})
    return ChatChunk(delta.get("content") or "", choice.get("finish_reason"), chunk.get("usage"), None, chunk)


# -- the official SDK


def load_sdk() -> Any:
    """Import the SDK. Raise MissingExtra if it is not installed."""
    try:
        import openai  # noqa: PLC0415  an extra, and slow to load
    except ImportError:
        raise MissingExtra("The OpenAI SDK is not installed: pip install 'penstock[openai]'.") from None
    module: ModuleType = openai
    return module


def sdk_arguments(address: Address) -> dict[str, Any]:
    """Return the constructor arguments of the SDK's clients."""
    return {"base_url": f"{address.base_url}/llm", "api_key": address.api_key}
