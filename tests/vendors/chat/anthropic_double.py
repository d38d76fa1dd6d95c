"""A test double of Anthropic's Messages API: as strict as the real one, and the model's name says what it answers.

`text`, `tool`, `parallel`, `empty-tool`, `thinking`, `search`, `json`, `silent`:
    what it says; once a tool was answered, `tool`, `parallel` and `empty-tool` say what they heard
`long-cache`:
    writes to its cache for five minutes and for an hour
`refusal`, `max-tokens`, `window`, `stop-sequence`, `pause`:
    why it stops
`error:TYPE`, `too-long`, `over-limit`, `no-credit`, `spent`, `html`, `odd`:
    how it refuses
`error-first`, `error-mid`, `cut`, `clean-cut`, `garbage`, `hang`:
    how a stream goes wrong
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from anthropic_objections import NEW, OLD, Json, Objection, check

KEY = "sk-ant-upstream-0123456789"
GREETING = "Grüße, 世界! 👋 How can I help?"
ERRORS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
REFUSALS = {
    "too-long": "prompt is too long: 210000 tokens > 200000 maximum",
    "over-limit": "input length and `max_tokens` exceed context limit: 199000 + 16384 > 200000, decrease input length",
    "no-credit": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    "spent": "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
}
STOPS = {
    "refusal": "refusal",
    "max-tokens": "max_tokens",
    "window": "model_context_window_exceeded",
    "stop-sequence": "stop_sequence",
    "pause": "pause_turn",
}
USAGE = {"input_tokens": 12, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5}
LONG_CACHE = {
    "cache_creation_input_tokens": 9,
    "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 7},
}
SPOKEN = 42
"""Tokens of every answer."""


@dataclass(slots=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any


class AnthropicDouble:
    """Listens on 127.0.0.1 while its block runs."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.gone: list[Seen] = []
        """Calls whose client left before their end."""
        self.port = 0
        self._closing = False
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> Json:
        """The latest body."""
        return self.requests[-1].body

    async def __aenter__(self) -> Self:
        listener = web.Server(self._answer, handler_cancellation=True)  # so that a client who leaves is noticed
        self._runner = web.ServerRunner(listener, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, condition: Callable[["AnthropicDouble"], object], seconds: float = 20) -> None:
        """Wait for something to become true of this double."""
        async with asyncio.timeout(seconds):
            while not condition(self):  # noqa: ASYNC110  anything may be waited for
                await asyncio.sleep(0.005)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()  # not `request.read`, which has a limit
        seen = Seen(request.path_qs, dict(request.headers), _parse(raw))
        self.requests.append(seen)
        try:
            return await self._serve(request, seen.body)
        except (asyncio.CancelledError, ConnectionError):
            if not self._closing:
                self.gone.append(seen)
            raise

    async def _serve(self, request: web.BaseRequest, body: Any) -> web.StreamResponse:
        if request.headers.get("x-api-key") != KEY:
            return _refuse("authentication_error", "invalid x-api-key")
        if (request.method, request.path_qs) != ("POST", "/v1/messages"):
            return _refuse("not_found_error", "Not Found")
        version = request.headers.get("anthropic-version", "")
        if version not in (OLD, NEW):
            return _refuse("invalid_request_error", f"anthropic-version: {version!r} is not a valid version")
        try:
            check(body, version)
        except Objection as objection:
            return _refuse("invalid_request_error", str(objection))
        scenario = body["model"]
        if refusal := _refuse_as(scenario):
            return refusal
        message = answer(body)
        if body.get("stream"):
            return await self._stream(request, scenario, list(stream(message)))
        if scenario == "hang":
            await asyncio.sleep(float("inf"))
        return web.json_response(message, headers={"request-id": "req_double"})

    async def _stream(self, request: web.BaseRequest, scenario: str, events: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        whole = b"".join(_break(scenario, events))
        for start in range(0, len(whole), 13):  # small enough to cut letters of several bytes
            await response.write(whole[start : start + 13])
            await asyncio.sleep(0)
        if scenario == "hang":
            await asyncio.sleep(float("inf"))
        if scenario == "cut":
            assert request.transport is not None
            request.transport.close()
        return response


def _parse(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


# -- refusals


def error_body(kind: str, message: str) -> Json:
    """An error as the API words it."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_double"}


def _refuse(kind: str, message: str) -> web.Response:
    headers = {"request-id": "req_double"}
    if kind in ("rate_limit_error", "overloaded_error"):
        headers["retry-after"] = "7"
    return web.json_response(error_body(kind, message), status=ERRORS[kind], headers=headers)


def _refuse_as(scenario: str) -> web.Response | None:
    if scenario in REFUSALS:
        return _refuse("invalid_request_error", REFUSALS[scenario])
    if scenario == "html":
        return web.Response(status=502, text="<html>502 Bad Gateway</html>", content_type="text/html")
    if scenario == "odd":
        return web.json_response({"detail": "no such shape"}, status=503)
    kind = scenario.removeprefix("error:")
    return None if kind == scenario else _refuse(kind, f"As you wished: {kind}")


# -- what the API says


def call(number: int, name: str, taken: Json) -> Json:
    return {"type": "tool_use", "id": f"toolu_{number:02}", "name": name, "input": taken}


THOUGHT = {"type": "thinking", "thinking": "Zürich, so … 🤔", "signature": "EqoBCkgIARABGAIiQ=="}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "weather"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": [{"type": "web_search_result"}]}
CONTENTS: Mapping[str, list[Json]] = {
    "tool": [{"type": "text", "text": "Let me look."}, call(1, "get_weather", {"city": "Zürich", "days": 3})],
    "parallel": [call(1, "get_weather", {"city": "Zürich"}), call(2, "get_weather", {"city": "東京 🗼"})],
    "empty-tool": [call(1, "get_time", {}), call(2, "get_weather", {"city": "Bern"})],
    "thinking": [THOUGHT, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": GREETING}],
    "search": [SEARCH, FOUND, {"type": "text", "text": "It rains.", "citations": [{"type": "page_location"}]}],
    "json": [{"type": "text", "text": '{"city": "Zürich", "degrees": 21}'}],
    "silent": [],
    "refusal": [],
}


def answer(body: Json) -> Json:
    """The message that the request gets."""
    scenario = body["model"]
    content = CONTENTS.get(scenario, [{"type": "text", "text": GREETING}])
    results = [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]
    if results:
        heard = [piece["text"] for result in results for piece in result.get("content", ())]
        content = [{"type": "text", "text": f"I heard: {', '.join(heard)}"}]
    called = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "msg_01double",
        "type": "message",
        "role": "assistant",
        "model": f"claude-double-{scenario}",
        "content": content,
        "stop_reason": STOPS.get(scenario, "tool_use" if called else "end_turn"),
        "stop_sequence": "###" if scenario == "stop-sequence" else None,
        "usage": {
            **USAGE,
            **(LONG_CACHE if scenario == "long-cache" else {}),
            "output_tokens": SPOKEN,
            "service_tier": "standard",
        },
    }


def event(kind: str, **fields: Any) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def stream(message: Json) -> Iterator[bytes]:
    """The events in which the API sends this message."""
    opening = {"content": [], "stop_reason": None, "stop_sequence": None}
    yield event("message_start", message=message | opening | {"usage": message["usage"] | {"output_tokens": 1}})
    yield event("ping")
    for index, block in enumerate(message["content"]):
        empty, deltas = take_apart(block)
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("ping")
        yield event("content_block_stop", index=index)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield event("message_delta", delta=delta, usage={"output_tokens": message["usage"]["output_tokens"]})
    yield event("event_of_tomorrow", delta=7)
    yield event("message_stop")


def take_apart(block: Json) -> tuple[Json, list[Json]]:
    """A block as it begins, and what is added to it then."""
    match block["type"]:
        case "text":
            added = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            cited = [{"type": "citations_delta", "citation": citation} for citation in block.get("citations", ())]
            return {"type": "text", "text": ""}, [*added, *cited]
        case "thinking":
            added = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            signature = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*added, signature]
        case "tool_use" | "server_tool_use":
            text = json.dumps(block["input"], ensure_ascii=False)
            added = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text))]
            return block | {"input": {}}, added if block["input"] else []
        case _:
            return block, []


def pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def _break(scenario: str, events: list[bytes]) -> list[bytes]:
    overloaded = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    match scenario:
        case "error-first":
            return [*events[:2], overloaded]
        case "error-mid":
            return [*events[:5], overloaded]
        case "cut" | "clean-cut" | "hang":
            return events[:5]
        case "garbage":
            bad = (b"event: content_block_delta\ndata: {no json\n\n", b"data: 17\n\n", b'data: {"typ": 1}\n\n')
            return [*events[:4], *bad, *events[4:]]
        case _:
            return events
