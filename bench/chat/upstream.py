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
from typing import Any

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


class Vendor(asyncio.Protocol):
    """One connection of a proxy: requests one after another, each answered as its body asks."""

    pause = PAUSE

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
        if streamed(body):
            self._tell(0, self.pause)
        else:
            self._transport.write(PLAIN_REPLY)

    def _tell(self, number: int, pause: float) -> None:
        self._transport.write(WRITES[number])
        number += 1
        self._timer = self._loop.call_later(pause, self._tell, number, pause) if number < len(WRITES) else None


def whole(head: bytes, body: bytes) -> bool:
    """Whether all of a request's body is there; some proxies send it chunked."""
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")


def streamed(body: bytes) -> bool:
    return b'"stream":true' in body or b'"stream": true' in body


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Vendor, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
