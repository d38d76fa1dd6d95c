"""Common steps of tests of the Messages door: send requests, and put streams together as strictly as an SDK."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
from conftest import Server
from plain import NO_TLS

Json = dict[str, Any]

HELLO: list[Json] = [{"role": "user", "content": "Hello"}]
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
BLOCKS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class StreamError(Exception):
    """The stream holds an error, as the SDK raises it."""


@dataclass
class Client:
    """A client of one gateway's Messages."""

    server: Server
    key: str
    path: str = "/v1/messages"

    async def post(
        self, model: str = "plain", headers: Json | None = None, path: str = "", **fields: Any
    ) -> httpx.Response:
        """Send a request; a field of None is left out."""
        body = {"model": model, "max_tokens": 100, "messages": HELLO, **fields}
        body = {name: value for name, value in body.items() if value is not None}
        return await self.send(path or self.path, json.dumps(body).encode(), headers)

    async def send(self, path: str, body: bytes, headers: Json | None = None, method: str = "POST") -> httpx.Response:
        """Send these bytes."""
        given = {"x-api-key": self.key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
        sent = {name: value for name, value in (given | (headers or {})).items() if value is not None}
        async with httpx.AsyncClient(trust_env=False, verify=NO_TLS, timeout=60) as client:
            return await client.request(method, f"{self.server.url}{path}", content=body, headers=sent)

    async def read_cut(self, model: str, **fields: Any) -> bytes:
        """The bytes of a stream whose connection must break off before its end."""
        got = b""
        headers = {"x-api-key": self.key, "content-type": "application/json"}
        body = {"model": model, "max_tokens": 100, "messages": HELLO, "stream": True, **fields}
        async with (
            httpx.AsyncClient(trust_env=False, verify=NO_TLS, timeout=60) as client,
            client.stream("POST", f"{self.server.url}{self.path}", json=body, headers=headers) as reply,
        ):
            try:
                async for piece in reply.aiter_raw():
                    got += piece
            except httpx.RemoteProtocolError:
                return got
        raise AssertionError("the body ended as if it were whole")

    async def create(self, model: str = "plain", **fields: Any) -> Json:
        """A whole message, checked."""
        reply = await self.post(model, **fields)
        assert reply.status_code == 200, reply.text
        return check_message(reply.json())

    async def stream(self, model: str = "plain", **fields: Any) -> Json:
        """A message put together from its events."""
        reply = await self.post(model, stream=True, **fields)
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"].startswith("text/event-stream")
        return gather(reply.content)


def check_message(message: Json) -> Json:
    """Check what the SDK's types demand."""
    assert message["id"].startswith("msg_")
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert message["stop_reason"]
    assert message["usage"].keys() >= {"input_tokens", "output_tokens"}
    for block in message["content"]:
        match block["type"]:
            case "text":
                assert block["text"]
            case "tool_use":
                assert isinstance(block["input"], dict)
                assert block["id"]
            case "thinking":
                assert block["signature"]
            case kind:
                raise AssertionError(kind)
    return message


def events_of(body: bytes) -> list[Json]:
    """The events of a stream, each with its name; comments are left out."""
    *events, rest = body.replace(b"\r\n", b"\n").split(b"\n\n")
    assert rest == b"", rest
    found: list[Json] = []
    for event in events:
        if event.startswith(b":"):
            continue
        name, data = event.split(b"\n")
        record = json.loads(data.removeprefix(b"data: "))
        assert name == b"event: " + record["type"].encode()
        found.append(record)
    return found


class _Gatherer:
    """A message that grows by events, as the SDK puts it together."""

    def __init__(self) -> None:
        self.message: Json = {}
        self.partial: dict[int, str] = {}
        self.open_block: int | None = None
        self.is_over = False

    def take(self, event: Json) -> None:
        assert not self.is_over, event
        assert bool(self.message) is (event["type"] != "message_start") or event["type"] in ("error", "ping"), event
        getattr(self, event["type"])(event)

    def error(self, event: Json) -> None:
        raise StreamError(event["error"])

    def ping(self, event: Json) -> None:
        del event

    def message_start(self, event: Json) -> None:
        self.message = event["message"]
        assert self.message["content"] == []

    def content_block_start(self, event: Json) -> None:
        assert self.open_block is None
        assert event["index"] == len(self.message["content"])
        assert event["content_block"].get("input", {}) == {}
        self.message["content"].append(event["content_block"])
        self.open_block = event["index"]

    def content_block_delta(self, event: Json) -> None:
        index, delta = event["index"], event["delta"]
        assert index == self.open_block
        kind, block = delta["type"], self.message["content"][index]
        assert block["type"] == BLOCKS[kind]
        if kind == "input_json_delta":
            self.partial[index] = self.partial.get(index, "") + delta["partial_json"]
        else:
            block[DELTAS[kind]] += delta[DELTAS[kind]]

    def content_block_stop(self, event: Json) -> None:
        assert event["index"] == self.open_block
        self.open_block = None

    def message_delta(self, event: Json) -> None:
        assert self.open_block is None
        self.message |= event["delta"]
        self.message["usage"] |= event["usage"]

    def message_stop(self, event: Json) -> None:
        del event
        self.is_over = True


def gather(body: bytes) -> Json:
    """Put a message together as the SDK does; an error, a gap or a missing end raises."""
    gatherer = _Gatherer()
    for event in events_of(body):
        gatherer.take(event)
    if not gatherer.is_over:
        raise StreamError("the stream ended early")
    for index, text in gatherer.partial.items():
        gatherer.message["content"][index]["input"] = json.loads(text or "{}")
    return check_message(gatherer.message)
