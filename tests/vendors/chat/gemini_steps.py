"""What the tests of `gemini` share: requests written short."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from gemini_double import KEY

from penstock.chat import request
from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest
from penstock.vendor_api.generation import Call
from penstock.vendors.gemini import VENDOR, GeminiOptions

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "$defs": {}},
        "strict": True,
    },
}
TIME: Any = {"type": "function", "function": {"name": "time"}}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()


def gemini(**options: Any) -> Any:
    return VENDOR(GeminiOptions(type="gemini", api_key=KEY, **options), Path())


def ask(messages: list[Any] | None = None, **fields: Any) -> Ask:
    return request.read(json.dumps({"model": "fast", "messages": messages or HELLO, **fields}).encode())


def call(messages: list[Any] | None = None, *, model: str = "gemini-3-pro", **fields: Any) -> Call:
    return gemini().complete(ask(messages, **fields), model)


def body(messages: list[Any] | None = None, *, model: str = "gemini-3-pro", **fields: Any) -> dict[str, Any]:
    sent = call(messages, model=model, **fields).body
    assert sent is not None
    return json.loads(sent)


def contents(*messages: Any) -> list[Any]:
    return body(list(messages))["contents"]


def config(**fields: Any) -> dict[str, Any]:
    return body(**fields)["generationConfig"]


def refusal(messages: list[Any] | None = None, **fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        call(messages, **fields)
    return caught.value


def said(call_id: str | None, name: str = "weather", arguments: str = "{}") -> dict[str, Any]:
    called = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def result(call_id: str, content: Any = "sunny") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def whole(reply: Any, **fields: Any) -> list[Any]:
    return list(gemini().translator(ask(**fields)).whole(json.dumps(reply, indent=2).encode()))


def allowed(mode: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [TIME]}}
