"""A thousand slow chat streams through one gateway: memory, lost chunks, and how fast leaving callers reach the vendor.

python bench/streams.py [--streams 1000] [--seconds 15]

Every stream gets a chunk a second. Half of the callers leave abruptly in the middle; the others count every chunk.
"""

import argparse
import asyncio
import contextlib
import json
import resource
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

from chat import STREAM_HEAD, free_port, make_request, penstock, render
from processes import memory_mb

NUMBERED = {"index": 0, "logprobs": None, "finish_reason": None}


class Vendor:
    """Answers every call with a numbered chunk a second, and knows who is still there."""

    def __init__(self, seconds: int) -> None:
        self.open = 0
        self._seconds = seconds

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call, until it is told to its end or its caller is gone."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
            self.open += 1
            telling, leaving = asyncio.create_task(self._tell(writer)), asyncio.create_task(reader.read())
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
            telling.cancel()
            leaving.cancel()
            await asyncio.gather(telling, leaving, return_exceptions=True)
            self.open -= 1
        writer.close()

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for number in range(self._seconds):
            writer.write(render([{**NUMBERED, "delta": {"content": f"<{number}>"}}]))
            await writer.drain()
            await asyncio.sleep(1)
        writer.write(render([{**NUMBERED, "delta": {}, "finish_reason": "stop"}]))
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()


async def listen(port: int, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head  # noqa: S101
    return reader, writer


async def count(reader: asyncio.StreamReader) -> int:
    """The chunks of a whole stream; each must be there, in order."""
    body = await reader.readuntil(b"\r\n0\r\n\r\n")
    numbers = [int(part.partition(b">")[0]) for part in body.split(b'"<')[1:]]
    assert numbers == list(range(len(numbers))), numbers  # noqa: S101
    assert body.count(b"data: [DONE]") == 1  # noqa: S101
    return len(numbers)


def leave(writer: asyncio.StreamWriter) -> None:
    """As a crashed program does: with a reset."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def run(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    vendor, upstream = Vendor(options.seconds), free_port()
    server = await asyncio.start_server(vendor.answer, "127.0.0.1", upstream, backlog=4096)
    with penstock(folder, upstream, 0) as (pid, port, key):
        request = make_request("/v1/chat/completions", key, "streams")
        reader, _ = await listen(port, request)  # whatever is loaded at first use is not the streams' memory
        await count(reader)
        before = memory_mb(pid)
        begun = time.perf_counter()
        streams = [await listen(port, request) for _ in range(options.streams)]
        opened = time.perf_counter() - begun
        while vendor.open < options.streams:  # noqa: ASYNC110  a bench may look
            await asyncio.sleep(0.01)
        full = memory_mb(pid)
        leaving, staying = streams[::2], streams[1::2]
        left_at = time.perf_counter()
        for _, writer in leaving:
            leave(writer)
        while vendor.open > len(staying):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        gone = time.perf_counter() - left_at
        counts = await asyncio.gather(*(count(reader) for reader, _ in staying))
        for _, writer in staying:
            writer.close()
        server.close()
        return {
            "streams": options.streams,
            "open_seconds": round(opened, 2),
            "memory_before_mb": round(before, 1),
            "memory_full_mb": round(full, 1),
            "kb_per_stream": round((full - before) * 1024 / options.streams, 1),
            "left": len(leaving),
            "gone_upstream_after_seconds": round(gone, 3),
            "whole_streams": sum(number == options.seconds for number in counts),
            "lost_chunks": sum(options.seconds - number for number in counts),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=15)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(run(options, Path(folder)))
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "streams.json").write_text(json.dumps(figures, indent=2))
    for name, figure in figures.items():
        print(f"{name:28} {figure}")
    sys.exit(figures["lost_chunks"] != 0 or figures["gone_upstream_after_seconds"] > 1)


if __name__ == "__main__":
    main()
