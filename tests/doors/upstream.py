"""A scripted vendor whose streams can be spoiled: an error in the middle, odd events, an end at any byte."""

import asyncio
import json
from collections.abc import Callable
from types import ModuleType

from aiohttp import web
from doubles.scripted.turns import Json, Reply, Script
from doubles.scripted.vendor import PIECE_BYTES, ScriptedVendor, Seen

Spoil = Callable[[list[bytes]], list[bytes]]
"""Changes the events of a stream."""
ERRORS: dict[str, bytes] = {
    "chat": b'data: {"error":{"message":"No more.","type":"server_error","param":null,"code":"overloaded"}}\n\n',
    "responses": b'event: error\ndata: {"type":"error","sequence_number":99,"code":"server_error",'
    b'"message":"No more.","param":null}\n\n',
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"No more."}}\n\n',
    "gemini": b'data: {"error":{"code":503,"message":"No more.","status":"UNAVAILABLE"}}\r\n\r\n',
}
"""An error in the middle of a stream, by the vendor's dialect."""


class Upstream(ScriptedVendor):
    """Plays a script, as its base does, and spoils streams as told."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.spoil: Spoil | None = None

    def begin(self, script: Script, spoil: Spoil | None = None) -> None:
        """Begin with another script, and forget all requests."""
        self.script, self.spoil = script, spoil
        self.seen.clear()

    @property
    def last(self) -> Seen:
        """The latest request."""
        return self.seen[-1]

    async def _play(self, request: web.BaseRequest, seen: Seen, speaker: ModuleType) -> web.StreamResponse:
        if self.spoil is None:
            return await super()._play(request, seen, speaker)
        known = seen.request = speaker.read(seen.body)
        events = list(speaker.stream(Reply(known, self.script(known), len(self.seen))))
        return await _send(request, b"".join(self.spoil(events)))


async def _send(request: web.BaseRequest, whole: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    for start in range(0, len(whole), PIECE_BYTES):
        await response.write(whole[start : start + PIECE_BYTES])
        await asyncio.sleep(0)
    return response


def break_off(dialect: str) -> Spoil:
    """Return a change that ends a stream with an error after most of its text."""
    return lambda events: [*events[: len(events) // 2], ERRORS[dialect]]


def read_event(event: bytes) -> Json:
    """Return the data of one event."""
    (line,) = (line for line in event.splitlines() if line.startswith(b"data: "))
    return json.loads(line.removeprefix(b"data: "))
