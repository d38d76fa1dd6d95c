"""Chat vendors of the simulation: servers on the simulated network that speak OpenAI's dialect."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import httptools
from simulation.world import Chance, World

FAULTS: Final = (
    ("chat: limit", 0.02),
    ("chat: failed", 0.02),
    ("chat: busy", 0.01),
    ("chat: refused content", 0.01),
    ("chat: reset before the head", 0.02),
    ("chat: closed before the head", 0.01),
    ("chat: reset after the head", 0.02),
    ("chat: cut", 0.03),
    ("chat: garbage", 0.015),
    ("chat: error in the stream", 0.015),
    ("chat: never answers", 0.01),
    ("chat: stops", 0.01),
    ("chat: slow", 0.04),
    ("chat: no usage", 0.06),
    ("chat: no end mark", 0.03),
    ("chat: ends with the connection", 0.03),
    ("chat: closes when idle", 0.15),
)
REFUSALS: Final = {
    "chat: limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "chat: failed": (500, "server_error", None),
    "chat: busy": (503, "server_error", None),
    "chat: refused content": (400, "invalid_request_error", "content_filter"),
}
"""Answers by which a vendor proves that it did no work: status, type and code."""
MARKER: Final = re.compile(r"ask-[a-z]+-\d+-\d+")
MAX_PIECES: Final = 24
PIECE_SECONDS: Final = 0.25
IDLE_SECONDS: Final = (0.0, 3.0)
ODDITIES: Final = ("", "", "", ' "quoted"', " \\ ", " über ", " 字", " 😀", "\n")
"""Texts that need escapes or several bytes."""


@dataclass
class Served:
    """A call that reached a vendor, and what the vendor did for it."""

    marker: str
    vendor: str
    at: float
    is_streamed: bool
    pieces: list[str]
    prompt_tokens: int
    completion_tokens: int
    fault: str | None
    has_worked: bool = True
    """False: it has refused, and charges nothing."""
    has_reported: bool = False
    """The usage was sent."""
    is_whole: bool = False
    """All of the answer was sent."""
    sent: int = 0
    """Characters of the answer that were sent."""
    ended_at: float | None = None

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(self.pieces)


@dataclass
class ChatBook:
    """All calls that vendors have seen, by the marker of their prompt."""

    calls: dict[str, list[Served]] = field(default_factory=dict[str, list[Served]])

    def add(self, served: Served) -> list[Served]:
        """Record a call. Return the earlier ones of its marker."""
        known = self.calls.setdefault(served.marker, [])
        known.append(served)
        return known[:-1]


class ChatDouble:
    """One vendor."""

    def __init__(self, world: World, name: str, book: ChatBook) -> None:
        self.world = world
        self.name = name
        self.book = book
        self.chance = world.chance(f"chat vendor {name}")

    def accept(self) -> "_VendorConnection":
        """Return the protocol of a new connection."""
        return _VendorConnection(self)

    def take(self, body: bytes) -> tuple[Served, bool]:
        """Decide what happens to a call. Return it, and whether its usage is wanted."""
        wish: dict[str, Any] = json.loads(body)
        options: dict[str, Any] = wish.get("stream_options") or {}
        prompt: str = wish["messages"][-1]["content"]
        found = MARKER.search(prompt)
        assert found is not None
        most = wish.get("max_tokens") or MAX_PIECES
        pieces = list(_compose(found[0], 1 + self.chance.randrange(min(most, MAX_PIECES)), self.chance))
        fault = self.chance.draw(FAULTS)
        served = Served(
            marker=found[0],
            vendor=self.name,
            at=self.world.now,
            is_streamed=bool(wish.get("stream")),
            pieces=pieces,
            prompt_tokens=len(prompt) // 5 + 3,
            completion_tokens=len(pieces),
            fault=fault,
            has_worked=fault not in REFUSALS,
        )
        self._check(served)
        self.world.counts["chat calls"] += 1
        return served, bool(options.get("include_usage"))

    def _check(self, served: Served) -> None:
        earlier = self.book.add(served)
        if any(call.has_worked for call in earlier):
            who = [(call.vendor, call.fault) for call in earlier]
            self.world.violate("a call that may have been served is never repeated", f"{served.marker}: {who}")
        if any(call.vendor == self.name for call in earlier):
            self.world.violate("each route is tried once", f"{served.marker} at {self.name}")


def _compose(marker: str, count: int, chance: Chance) -> Iterator[str]:
    for number in range(count):
        yield f"{marker}.{number}{chance.choice(ODDITIES)} "


class _VendorConnection(asyncio.Protocol):
    """One connection from a gateway, with one call at a time."""

    transport: Any

    def __init__(self, double: ChatDouble) -> None:
        self._double = double
        self._world = double.world
        self._chance = double.chance
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._task is not None:
            self._task.cancel()

    def on_message_begin(self) -> None:
        if self._task is not None and not self._task.done():
            self._world.violate("one call at a time on a connection", self._double.name)
        self._body = b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        served, wants_usage = self._double.take(self._body)
        self._task = self._world.spawn(self._serve(served, wants_usage=wants_usage))

    async def _serve(self, served: Served, *, wants_usage: bool) -> None:
        try:
            await asyncio.sleep(self._chance.uniform(0.005, 0.4))
            await self._answer(served, wants_usage=wants_usage)
        finally:
            served.ended_at = self._world.now
        if served.fault == "chat: closes when idle":
            self._world.later(self._chance.uniform(*IDLE_SECONDS), self._close_idle)

    def _close_idle(self) -> None:
        if self._task is None or self._task.done():
            self.transport.close()

    async def _answer(self, served: Served, *, wants_usage: bool) -> None:
        fault = served.fault
        if fault in REFUSALS:
            self._refuse(*REFUSALS[fault])
        elif fault == "chat: reset before the head":
            self.transport.abort()
        elif fault == "chat: closed before the head":
            self.transport.close()
        elif fault == "chat: never answers":
            await asyncio.sleep(3600)
        elif served.is_streamed:
            await self._stream(served, wants_usage=wants_usage)
        else:
            await self._send_whole(served)

    def _refuse(self, status: int, kind: str, code: str | None) -> None:
        body = json.dumps({"error": {"message": "no", "type": kind, "code": code, "param": None}}).encode()
        wait = b"retry-after: 2\r\n" if status == 429 else b""
        length = b"content-length: %d\r\n\r\n" % len(body)
        self.transport.write(b"HTTP/1.1 %d No\r\ncontent-type: application/json\r\n" % status + wait + length + body)

    # -- whole answers

    async def _send_whole(self, served: Served) -> None:
        await asyncio.sleep(self._pace(served) * len(served.pieces))
        usage = _usage(served)
        message = {"role": "assistant", "content": served.text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        reply = {"id": "r1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        body = json.dumps(reply if served.fault == "chat: no usage" else reply | {"usage": usage}).encode()
        if served.fault == "chat: garbage":
            body = b"<html>" + body[: len(body) // 2]
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        if served.fault == "chat: ends with the connection":
            head += b"connection: close\r\n\r\n"
        else:
            head += b"content-length: %d\r\n\r\n" % len(body)
        if served.fault in ("chat: cut", "chat: reset after the head", "chat: stops", "chat: error in the stream"):
            self.transport.write(head + body[: len(body) // 2])
            await self._break_off(served)
            return
        served.sent = len(served.text)
        served.is_whole = served.fault != "chat: garbage"
        served.has_reported = served.is_whole and served.fault != "chat: no usage"
        self.transport.write(head + body)
        if served.fault == "chat: ends with the connection":
            self.transport.close()

    # -- streams

    async def _stream(self, served: Served, *, wants_usage: bool) -> None:
        is_chunked = served.fault != "chat: ends with the connection"
        framing = b"transfer-encoding: chunked\r\n\r\n" if is_chunked else b"connection: close\r\n\r\n"
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + framing)
        if served.fault == "chat: reset after the head":
            await self._break_off(served)
            return
        end = self._chance.randrange(len(served.pieces)) if served.fault in _ENDINGS else len(served.pieces)
        self._write(_event({"role": "assistant", "content": ""}), is_chunked=is_chunked)
        for piece in served.pieces[:end]:
            await asyncio.sleep(self._pace(served))
            served.sent += len(piece)
            self._write(_event({"content": piece}), is_chunked=is_chunked)
        if served.fault in _ENDINGS:
            self._write(_ENDINGS[served.fault], is_chunked=is_chunked)
            await self._break_off(served)
            return
        rest = _event({}, finish="stop")
        served.is_whole = True
        if wants_usage and served.fault != "chat: no usage":
            served.has_reported = True
            rest += _event(None, usage=_usage(served))
        if served.fault != "chat: no end mark":
            rest += b"data: [DONE]\n\n"
        self._write(rest, is_chunked=is_chunked)
        if is_chunked:
            self.transport.write(b"0\r\n\r\n")
        else:
            self.transport.close()

    def _write(self, data: bytes, *, is_chunked: bool) -> None:
        if data:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)

    def _pace(self, served: Served) -> float:
        return self._chance.random() * PIECE_SECONDS * (6 if served.fault == "chat: slow" else 1)

    async def _break_off(self, served: Served) -> None:
        if served.fault == "chat: stops":
            await asyncio.sleep(3600)
        elif served.fault == "chat: cut":
            self.transport.close()
        else:
            self.transport.abort()


_ENDINGS: Final = {
    "chat: cut": b"",
    "chat: stops": b"",
    "chat: garbage": b'data: {"choices": [{"index": 0, "del\n\n',
    "chat: error in the stream": b'data: {"error": {"message": "no", "type": "server_error", "code": 500}}\n\n',
}
"""Last bytes of streams that break off after some pieces."""


def _usage(served: Served) -> dict[str, int]:
    prompt, completion = served.prompt_tokens, served.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _event(delta: dict[str, Any] | None, finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    head = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
    chunk = head | {"usage": usage}
    return b"data: " + json.dumps(chunk, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"
