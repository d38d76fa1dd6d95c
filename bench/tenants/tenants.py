"""One account does its worst at the HTTP edge while another one is served: memory, latency and streams.

python -m bench.tenants.tenants [--bodies 10] [--size-mb 31] [--streams 1200] [--program PENSTOCK]

Bodies: one account sends so many large chat requests at once, plain and then as gzip. The vendor keeps every large one
waiting until all were sent, so that they are in flight together. Meanwhile another account asks small questions, one
after the other. Told are the highest resident memory of the gateway beyond what it had before, what the large ones
were answered, and how long the small ones took.

Streams: one account opens as many event streams as it can, then another one opens one.

Readers: without a key, connections ask for a page of documentation and never read it; told is how many are still open
after `--patience` seconds.

`--program` measures another version's `penstock`.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.chat.peers import PENSTOCK_CONFIG, PENSTOCK_PROGRAM, free_port, run, serving
from bench.harness import tables
from bench.harness.processes import memory_mb

LARGE = 1 << 20
HOLD_SECONDS = 8.0
"""How long the vendor keeps a large request waiting."""
PAUSE = 0.05
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "bench",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Place(NamedTuple):
    """The gateway under test, and a key for each of two accounts."""

    pid: int
    port: int
    greedy: str
    modest: str


# -- the vendor


async def answer_chat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request, the large ones late."""
    body = json.dumps(ANSWER).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            asked = (await reader.readuntil(b"\r\n\r\n")).lower()
            left = size = int(asked.partition(b"content-length:")[2].partition(b"\r\n")[0])
            while left:
                left -= len(await reader.read(min(left, 1 << 20)))
            if size > LARGE:
                await asyncio.sleep(HOLD_SECONDS)
            writer.write(head + body)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def vending() -> AsyncGenerator[int]:
    server = await asyncio.start_server(answer_chat, "127.0.0.1", 0, limit=1 << 20)
    async with server:
        yield server.sockets[0].getsockname()[1]


# -- the gateway


@contextlib.contextmanager
def gateway(folder: Path, upstream: int, program: str) -> Iterator[Place]:
    port, config = free_port(), folder / "penstock.toml"
    config.write_text(PENSTOCK_CONFIG.format(upstream=upstream))
    places = ["--data", str(folder / "data"), "--config", str(config)]
    keys = [
        json.loads(run([program, "key", "create", "--json", "--account", account, *places]))["key"]
        for account in ("greedy", "modest")
    ]
    core = min(os.sched_getaffinity(0))
    with serving([program, "serve", "--port", str(port), *places], port, core, folder / "penstock.log") as door:
        assert door.pid  # noqa: S101  for the reader of types
        yield Place(door.pid, port, *keys)


# -- callers


def make_body(size: int) -> bytes:
    text = "penstocks feed turbines; " * (size // 25)
    return json.dumps({"model": "bench", "messages": [{"role": "user", "content": text}]}).encode()


async def post(port: int, key: str, body: bytes, *more: str) -> tuple[int, float]:
    """Send one chat request; return its status, 0 for a lost connection, and its seconds."""
    begun = time.perf_counter()
    lines = [
        "POST /llm/chat/completions HTTP/1.1",
        "host: bench",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        "connection: close",
        *more,
        f"content-length: {len(body)}",
    ]
    status = 0
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError, ValueError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        sending = asyncio.ensure_future(_send(writer, "\r\n".join([*lines, "", ""]).encode() + body))
        status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        await reader.read()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()
    return status, time.perf_counter() - begun


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    for start in range(0, len(data), 1 << 18):
        writer.write(data[start : start + (1 << 18)])
        await writer.drain()


# -- measurements


async def measure_bodies(place: Place, bodies: int, size: int, *, packed: bool) -> dict[str, Any]:
    body = make_body(size)
    sent, more = (gzip.compress(body, 1), ("content-encoding: gzip",)) if packed else (body, ())
    small = make_body(100)
    for _ in range(20):
        await post(place.port, place.modest, small)
    before = memory_mb(place.pid)
    crowd = asyncio.gather(*(post(place.port, place.greedy, sent, *more) for _ in range(bodies)))
    times: list[float] = []
    statuses: Counter[int] = Counter()
    most = before
    while not crowd.done():
        status, seconds = await post(place.port, place.modest, small)
        statuses[status] += 1
        times.append(seconds * 1000)
        most = max(most, memory_mb(place.pid))
        await asyncio.sleep(PAUSE)
    large = Counter(status for status, _ in await crowd)
    return {
        "bodies": f"{bodies} x {size >> 20} MiB {'gzip' if packed else 'plain'}",
        "more memory MiB": most - before,
        "large answers": _tell(large),
        "small answers": _tell(statuses),
        "small p50 ms": tables.quantile(times, 0.5),
        "small p99 ms": tables.quantile(times, 0.99),
        "small max ms": max(times),
    }


def _tell(counts: Counter[int]) -> str:
    return " ".join(f"{number}x{status}" for status, number in sorted(counts.items()))


async def open_stream(port: int, key: str) -> tuple[int, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ["GET /api/v1/events HTTP/1.1", "host: bench", f"authorization: Bearer {key}", "accept: text/event-stream"]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    return int((await reader.readuntil(b"\r\n\r\n")).split()[1]), writer


async def measure_streams(place: Place, streams: int) -> dict[str, Any]:
    opened = [await open_stream(place.port, place.greedy) for _ in range(streams)]
    mine = Counter(status for status, _ in opened)
    other, writer = await open_stream(place.port, place.modest)
    for each in (writer, *(each for _, each in opened)):
        each.close()
    return {"streams asked for": streams, "one account got": _tell(mine), "then another one got": other}


async def measure_readers(place: Place, readers: int, patience: float) -> dict[str, Any]:
    """Connections that ask again and again, and never read."""
    before = memory_mb(place.pid)
    sockets: list[socket.socket] = []
    ask = b"GET /openapi.json HTTP/1.1\r\nhost: bench\r\n\r\n"
    for _ in range(readers):
        each = socket.socket()
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        each.connect(("127.0.0.1", place.port))
        each.setblocking(False)  # noqa: FBT003  the standard library's
        each.send(ask * 40)
        sockets.append(each)
    await asyncio.sleep(5)
    most = memory_mb(place.pid)
    await asyncio.sleep(patience)
    still = sum(_is_open(place.port, each) for each in sockets)
    after = memory_mb(place.pid)
    for each in sockets:
        each.close()
    return {
        "readers that never read": readers,
        "more memory MiB": most - before,
        f"open after {patience:g} s": still,
        "memory then MiB": after - before,
    }


def _is_open(port: int, client: socket.socket) -> bool:
    """Ask the kernel for the server's end: the client has unread bytes, and does not hear that it was closed."""
    here = f":{client.getsockname()[1]:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(
        fields[1].endswith(f":{port:04X}") and fields[2].endswith(here) and fields[3] in ("01", "04", "08")
        for fields in map(str.split, lines)
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bodies", type=int, default=10)
    parser.add_argument("--size-mb", type=int, default=31)
    parser.add_argument("--streams", type=int, default=1200)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--patience", type=float, default=80)
    parser.add_argument("--program", default=PENSTOCK_PROGRAM)
    parser.add_argument("--name", default="tenants")
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with vending() as upstream:
            for packed in (False, True):  # each in a process of its own: memory is not always given back
                part = Path(folder) / str(packed)
                part.mkdir()
                with gateway(part, upstream, given.program) as place:
                    row = await measure_bodies(place, given.bodies, given.size_mb << 20, packed=packed)
                    figures.setdefault("bodies", []).append(row)
            part = Path(folder) / "streams"
            part.mkdir()
            with gateway(part, upstream, given.program) as place:
                figures["streams"] = [await measure_streams(place, given.streams)]
                figures["readers"] = [await measure_readers(place, given.readers, given.patience)]
    for title, rows in figures.items():
        tables.show(title, rows)
    tables.save(given.name, figures)


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("This reads /proc, which only Linux has.")
    asyncio.run(main())
