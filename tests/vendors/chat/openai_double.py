"""A test double of an OpenAI-compatible upstream: the name of the model says how it behaves.

`echo`, `plain`, `tools`, `parallel-tools`, `refusal`, `length`, `filter`, `json`, `image`, `reasoning`, `logprobs`:
    what it answers
`slow:S`, `silent:S`, `think:S`, `heartbeat:S`, `linger:S`, `hang`, `big:N`:
    when: seconds per chunk, before the first byte, after the first chunk, of comments first, after [DONE]; N chunks
`cut`, `clean-cut`, `no-done`, `malformed`, `error-first`, `error-mid`, `drop`, `not-json`, `empty`:
    how it breaks
`status:N`, `retry-after:S`, `401`, `quota`, `context`, `html-502`, `vllm-error`, `vllm-old-error`, `llamacpp-loading`:
    how it refuses
`vllm`, `ollama`, `llamacpp`, `no-usage`, `crlf`, `no-space`, `fragments`, `comments`, `fields`, `bom`, `strict`:
    dialects
"""

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, cycle, repeat
from types import TracebackType
from typing import Any, Self

import openai_replies as replies
from aiohttp import web
from openai_replies import Json, Reply

KEY = "sk-upstream-0123456789abcdef"
DONE = b"data: [DONE]\n\n"
CUT = None
Step = bytes | float | None  # bytes to send, seconds of silence, or the end of the connection
HEADERS = {
    "openai-organization": "org-upstream",
    "openai-processing-ms": "12",
    "openai-version": "2020-10-01",
    "x-ratelimit-limit-requests": "5000",
    "x-ratelimit-remaining-requests": "4999",
    "x-ratelimit-reset-requests": "12ms",
}


@dataclass(slots=True)
class Seen:
    """One request as it arrived, and how many pieces of the reply were sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    at: float = field(default_factory=time.monotonic)
    sent: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """A call whose client left before its end."""

    call: Seen
    at: float


class OpenAIDouble:
    """Listens on 127.0.0.1 while its block runs; `url` is the base address."""

    def __init__(self, key: str = KEY) -> None:
        self.key = key
        self.requests: list[Seen] = []
        self.gone: list[Gone] = []
        self.open = 0
        self.queue: list[str] = []
        """Scenarios for the next requests; when they are used up, the model's name counts again."""
        self.port = 0
        self._closing = False
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        listener = web.Server(self._answer, handler_cancellation=True)  # so that a client who leaves is noticed
        self._runner = web.ServerRunner(listener, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Refuse connections from now on."""
        self._closing = True
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, condition: Callable[["OpenAIDouble"], object], seconds: float = 20) -> None:
        """Wait for something to become true of this double."""
        async with asyncio.timeout(seconds):
            while not condition(self):  # noqa: ASYNC110 - anything may be waited for
                await asyncio.sleep(0.005)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()  # not `request.read`, which has a limit
        seen = Seen(request.method, request.path_qs, request.headers, _parse(raw), raw)
        self.requests.append(seen)
        self.open += 1
        try:
            return await self._serve(request, seen)
        except (asyncio.CancelledError, ConnectionError):
            if not self._closing:
                self.gone.append(Gone(seen, time.monotonic()))
            raise
        finally:
            self.open -= 1

    async def _serve(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return _json(401, self._wrong_key(request.headers.get("authorization", "")))
        if (request.method, request.path) == ("GET", "/v1/models"):
            listed = [{"id": "plain", "object": "model", "created": replies.CREATED, "owned_by": "upstream"}]
            return _json(200, {"object": "list", "data": listed})
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            return _json(404, replies.error(f"Invalid URL ({request.method} {request.path})"))
        if wrong := replies.objection(seen.body):
            return _json(400, wrong)
        name, _, argument = (self.queue.pop(0) if self.queue else seen.body["model"]).partition(":")
        return self._refuse(name, argument, seen.body) or await self._complete(request, seen, name, argument)

    async def _complete(self, request: web.BaseRequest, seen: Seen, name: str, argument: str) -> web.StreamResponse:
        if name in {"silent", "hang"}:
            await asyncio.sleep(float(argument or "inf"))
        if name == "drop":
            return _cut(request)
        reply = Reply(seen.body, replies.answer_for(name, seen.body))
        if seen.body.get("stream"):
            return await self._stream(request, seen, _script(name, argument, reply))
        return await self._send_whole(request, name, argument, reply)

    def _wrong_key(self, given: str) -> Json:
        # The real API masks the key; others show it whole, and it must not reach our callers.
        said = f"Incorrect API key provided: {given.removeprefix('Bearer ')}. You can find your API key at …"
        return replies.error(said, code="invalid_api_key")

    def _refuse(self, name: str, argument: str, asked: Json) -> web.Response | None:
        match name:
            case "status":
                status = int(argument)
                return _json(status, replies.STATUSES.get(status) or replies.error(f"Status {status}", "server_error"))
            case "retry-after":
                return _json(429, replies.STATUSES[429], {"retry-after": argument})
            case "html-502":
                page = "<html><body><h1>502 Bad Gateway</h1>nginx at 10.1.2.3</body></html>"
                return web.Response(status=502, text=page, content_type="text/html")
            case "strict":
                unknown = asked.keys() - {"model", "messages", "stream", "stream_options", "temperature", "n"}
                said = f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}"
                return _json(400, replies.error(said)) if unknown else None
        refusals: dict[str, tuple[int, Json]] = {
            "401": (401, self._wrong_key(self.key)),
            "quota": (429, replies.QUOTA),
            "context": (400, replies.TOO_LONG),
            "vllm-error": (400, replies.VLLM_ERROR),
            "vllm-old-error": (400, replies.VLLM_OLD_ERROR),
            "llamacpp-loading": (503, replies.LLAMACPP_LOADING),
        }
        return _json(*refusals[name]) if name in refusals else None

    async def _stream(self, request: web.BaseRequest, seen: Seen, script: Iterable[Step]) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_headers(), "content-type": "text/event-stream; charset=utf-8"})
        assert request.transport is not None
        request.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await response.prepare(request)
        for step in script:
            if step is CUT:
                request.transport.close()
                break
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                await response.write(step)
                seen.sent += 1
                await asyncio.sleep(0)  # small pieces travel one by one
        return response

    async def _send_whole(self, request: web.BaseRequest, name: str, argument: str, reply: Reply) -> web.StreamResponse:
        if name in {"slow", "think", "heartbeat"}:
            await asyncio.sleep(float(argument))
        body = _pretty(_whole_in_dialect(name, reply))
        match name:
            case "cut":
                response = web.StreamResponse(headers={"content-type": "application/json"})
                response.content_length = len(body)
                await response.prepare(request)
                await response.write(body[: len(body) // 2])
                assert request.transport is not None
                request.transport.close()
                return response
            case "clean-cut" | "malformed" | "not-json":
                body = body[: len(body) // 2]
            case "error-first" | "error-mid":
                body = _pretty(replies.STATUSES[500])
            case "empty":
                body = b""
        return web.Response(body=body, headers={**_headers(), "content-type": "application/json"})


def _parse(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _pretty(found: Json) -> bytes:
    # Whole replies of the live API are indented; its chunks are not.
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"


def _headers() -> dict[str, str]:
    return {**HEADERS, "x-request-id": f"req_upstream{time.monotonic_ns():x}"}


def _json(status: int, body: Json, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=_pretty(body), headers={**_headers(), "content-type": "application/json", **(headers or {})}
    )


def _cut(request: web.BaseRequest) -> web.Response:
    assert request.transport is not None
    request.transport.close()
    return web.Response()  # goes nowhere


# -- streams, step by step


def event(found: Json) -> bytes:
    """One server-sent event as the live API writes it."""
    return b"data: " + json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


def _script(name: str, argument: str, reply: Reply) -> Iterable[Step]:
    events = [event(chunk) for chunk in _chunks_in_dialect(name, reply)]
    if name in BREAKS:
        return BREAKS[name](events)
    if name in FRAMINGS:
        return FRAMINGS[name]([*events, DONE])
    if name == "big":
        filling = event(reply.chunk([_choice({"content": "x" * 1000})]))
        return chain(events[:1], repeat(filling, int(argument)), [event(reply.chunk([_choice({}, "stop")])), DONE])
    return _pace(name, float(argument or 0), events)


def _pace(name: str, seconds: float, events: list[bytes]) -> Iterator[Step]:
    match name:
        case "slow":
            for one in events:
                yield from (one, seconds)
            yield DONE
        case "think":
            yield from (events[0], seconds, *events[1:], DONE)
        case "heartbeat":
            for _ in range(int(seconds / 0.05)):
                yield from (b": PROCESSING\n\n", 0.05)
            yield from (*events, DONE)
        case "linger":
            yield from (*events, DONE, seconds)
        case _:
            yield from (*events, DONE)


BROKEN = event(replies.STATUSES[500])
BREAKS: Mapping[str, Callable[[list[bytes]], Iterable[Step]]] = {
    "cut": lambda events: (*events[:3], CUT),
    "clean-cut": lambda events: events[:3],
    "no-done": lambda events: events,
    "empty": lambda _: (),
    "error-first": lambda _: (BROKEN,),
    "error-mid": lambda events: (*events[:3], BROKEN),
}

BAD = (b"data: {not json\n\n", b"a line of nothing\n\n", b"data: 17\n\n", b"data:\n\n", b'data: ["\xff"]\n\n')
FRAMINGS: Mapping[str, Callable[[list[bytes]], Iterable[bytes]]] = {
    "malformed": lambda events: chain.from_iterable(zip(cycle(BAD), events, strict=False)),
    "crlf": lambda events: [one.replace(b"\n", b"\r\n") for one in events],
    "no-space": lambda events: [one.replace(b"data: ", b"data:", 1) for one in events],
    "bom": lambda events: [b"\xef\xbb\xbf", *events],
    "fields": lambda events: [b"id: 7\nretry: 3000\nevent: message\n" + one for one in events],
    "comments": lambda events: chain.from_iterable((b": OPENROUTER PROCESSING\n\n", one) for one in events),
    "fragments": lambda events: in_pieces(b"".join(events), 7),
}


def in_pieces(whole: bytes, size: int) -> Iterator[bytes]:
    """A text in pieces of this size."""
    return (whole[start : start + size] for start in range(0, len(whole), size))


# -- dialects


def _choice(delta: Json, finish: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _chunks_in_dialect(name: str, reply: Reply) -> list[Json]:
    chunks = reply.chunks()
    match name:
        case "vllm":
            return [_as_vllm(number, chunk, reply) for number, chunk in enumerate(chunks)]
        case "ollama":
            return [_as_ollama(chunk) for chunk in chunks]
        case "llamacpp":
            ends = [chunk for chunk in chunks if chunk["choices"]]
            timings = {"prompt_n": 19, "prompt_ms": 8.2, "predicted_n": 9, "predicted_ms": 91.5}
            return [*ends[:-1], {**ends[-1], "usage": reply.usage(), "timings": timings}]
        case "no-usage":
            return [{key: value for key, value in one.items() if key != "usage"} for one in chunks if one["choices"]]
        case _:
            return chunks


def _as_vllm(number: int, chunk: Json, reply: Reply) -> Json:
    """Reasoning under its newer name, finish reasons missing or empty, no fingerprint, usage on every chunk."""
    for choice in chunk["choices"]:
        if "reasoning_content" in choice["delta"]:
            choice["delta"]["reasoning"] = choice["delta"].pop("reasoning_content")
        if choice["finish_reason"] is None:
            choice["finish_reason"] = ""
            if number % 2:
                del choice["finish_reason"]
    del chunk["system_fingerprint"], chunk["service_tier"]
    return {**chunk, "usage": reply.usage()}


def _as_ollama(chunk: Json) -> Json:
    """The role on every chunk, and no logprobs."""
    del chunk["service_tier"]
    for choice in chunk["choices"]:
        delta = choice["delta"]
        reasoning = {"reasoning": delta["reasoning_content"]} if "reasoning_content" in delta else {}
        choice["delta"] = {"role": "assistant", "content": delta.get("content") or "", **reasoning}
        del choice["logprobs"]
    return {**chunk, "id": "chatcmpl-123", "system_fingerprint": "fp_ollama"}


def _whole_in_dialect(name: str, reply: Reply) -> Json:
    whole = reply.whole()
    if name == "no-usage":
        del whole["usage"]
    if name not in {"vllm", "ollama", "llamacpp"}:
        return whole
    del whole["service_tier"]
    for choice in whole["choices"]:
        message = choice["message"]
        del message["refusal"], message["annotations"], choice["logprobs"]
        if name != "llamacpp":
            message["reasoning"] = message.pop("reasoning_content")
        if name == "vllm":
            message["tool_calls"] = []
    return whole
