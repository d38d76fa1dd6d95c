"""A model's vendor for the benches: as fast as Python allows, so that what is measured is the proxy before it.

python -m bench.chat.upstream PORT

Chunks of a stream are written one by one with a pause between, and without Nagle's delay: each is a packet of its own.
A vendor that is short of CPU writes several at once, and every proxy looks cheaper than it is. So the pause is chosen
by whoever measures: `GET /pause/8` makes it 8 ms for the streams that begin from then on.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import uvloop

CHUNKS = 64
PAUSE = 0.004
HEAD = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench"}


def render(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
    body = json.dumps({**HEAD, "choices": choices, "usage": usage}, separators=(",", ":")).encode()
    event = b"data: " + body + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


USAGE = {"prompt_tokens": 80, "completion_tokens": CHUNKS, "total_tokens": 80 + CHUNKS}
CHOICE = {"index": 0, "logprobs": None, "finish_reason": None}
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WRITES = [
    STREAM_HEAD + render([{**CHOICE, "delta": {"role": "assistant", "content": "", "refusal": None}}]),
    *(render([{**CHOICE, "delta": {"content": f" token{number}"}}]) for number in range(CHUNKS)),
    render([{**CHOICE, "delta": {}, "finish_reason": "stop"}]),
    render([], USAGE),
    b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
]
MESSAGE = {"role": "assistant", "content": " token" * CHUNKS, "refusal": None}
PLAIN = json.dumps(
    {
        **HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": MESSAGE, "logprobs": None, "finish_reason": "stop"}],
        "usage": USAGE,
    }
).encode()


def reply(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


PLAIN_REPLY = reply(PLAIN)


class Replies(NamedTuple):
    """A stream, write by write, and a whole answer."""

    writes: list[bytes]
    whole: bytes


class Vendor(asyncio.Protocol):
    """One connection of a proxy: requests one after another, each answered as its body asks."""

    pause = PAUSE
    replies: ClassVar[Mapping[bytes, Replies]] = {b"": Replies(WRITES, PLAIN_REPLY)}
    """By the end of the path."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let every write leave at once."""
        self._transport: Any = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """A stream that nobody reads ends."""
        if self._timer:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer once the request is whole."""
        received = self._received = self._received + data
        head, blank, body = received.partition(b"\r\n\r\n")
        if not blank:
            return
        if head.startswith(b"GET /pause/"):
            Vendor.pause = int(head.split()[1].rpartition(b"/")[2]) / 1000
            self._received = b""
            self._transport.write(reply(b"{}"))
            return
        if not whole(head, body):
            return
        self._received = b""
        path = head.split(b" ", 2)[1].partition(b"?")[0]
        replies = next(each for end, each in self.replies.items() if path.endswith(end))
        if streamed(body):
            self._tell(replies.writes, 0, self.pause)
        else:
            self._transport.write(replies.whole)

    def _tell(self, writes: list[bytes], number: int, pause: float) -> None:
        self._transport.write(writes[number])
        number += 1
        self._timer = self._loop.call_later(pause, self._tell, writes, number, pause) if number < len(writes) else None


def whole(head: bytes, body: bytes) -> bool:
    """Whether all of a request's body is there; some proxies send it chunked."""
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")


def streamed(body: bytes) -> bool:
    return b'"stream":true' in body or b'"stream": true' in body


async def serve(port: int, vendor: type[Vendor] = Vendor) -> None:
    server = await asyncio.get_running_loop().create_server(vendor, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
