"""Measure how vendors that stream at wire speed delay everyone else on the event loop.

python -m bench.chat.wire_speed [--seconds 5] [--streams 1 8] [--kinds data comments] [--program PATH]

Some streams come as fast as the sockets take them: chunks of text (`data`) or comments (`comments`). Their callers
read at full speed. Beside them one caller asks `/healthz` again and again, and one reads an ordinary stream with a
chunk every 10 ms, which holds the moment of its sending. Vendor and callers share one core, the gateway has another.
`--program` measures another version's `penstock`. Without wire-speed streams the first row gives the floor.
"""

import argparse
import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.chat.chat import make_request, percentile
from bench.chat.peers import PENSTOCK_PROGRAM, Door, free_port, penstock_door, serving
from bench.chat.upstream import CHOICE, STREAM_HEAD, render
from bench.harness import tables
from bench.harness.processes import cpu_seconds, memory_mb

PACE_SECONDS = 0.01
PATIENCE_SECONDS = 20
"""A probe that waits longer is given up, and counted with this time."""
STAMP = re.compile(rb"<(\d+)>")
EVENT = render([{**CHOICE, "delta": {"content": " token of a text"}}])
QUIET = b": still thinking\n\n" * 4_000
BLOCKS = {"data": EVENT * 1_000, "comments": b"%x\r\n%b\r\n" % (len(QUIET), QUIET)}


# -- the vendor and the greedy callers, each in a process of its own with a thread for each connection


def serve_vendor(port: int) -> None:
    with socket.create_server(("127.0.0.1", port), backlog=64) as listener:
        while True:
            line, _ = listener.accept()
            threading.Thread(target=answer, args=(line,), daemon=True).start()


def answer(line: socket.socket) -> None:
    """Send what the request's `user` asks for, until the caller leaves."""
    with contextlib.suppress(OSError), line:
        asked = line.recv(1 << 16)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.sendall(STREAM_HEAD + EVENT)
        for kind, block in BLOCKS.items():
            while b'"user":"%b"' % kind.encode() in asked:
                line.sendall(block)
        while True:
            line.sendall(render([{**CHOICE, "delta": {"content": f"<{time.monotonic_ns()}>"}}]))
            time.sleep(PACE_SECONDS)


def read_greedily(port: int, key: str, kind: str, streams: int) -> None:
    """Read so many streams, and print every second how many bytes came."""
    taken = [0] * streams

    def read(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(make_request("/v1/chat/completions", key, kind))
            while data := line.recv(1 << 18):
                taken[number] += len(data)

    for number in range(streams):
        threading.Thread(target=read, args=(number,), daemon=True).start()
    while True:
        time.sleep(1)
        print(*taken, flush=True)


# -- the callers that must not feel them


async def ask_health(port: int, end: float, waits: list[float]) -> None:
    """Ask again and again, and note the milliseconds of every answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        begun = time.monotonic()
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: bench\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        await reader.readexactly(int(length[1]) if length else 0)
        waits.append((time.monotonic() - begun) * 1e3)
        await asyncio.sleep(PACE_SECONDS)
    writer.close()


async def read_ordinary(port: int, key: str, end: float, waits: list[float]) -> None:
    """Read an ordinary stream, and note how many milliseconds each chunk was on its way."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(make_request("/v1/chat/completions", key, "ordinary"))
    while time.monotonic() < end or not waits:
        data = await reader.read(1 << 16)
        waits += [(time.monotonic_ns() - int(sent)) / 1e6 for sent in STAMP.findall(data)]
    writer.close()


async def probe(door: Door, seconds: float) -> tuple[list[float], list[float]]:
    end = time.monotonic() + seconds
    health, ordinary = list[float](), list[float]()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds + PATIENCE_SECONDS):
            await asyncio.gather(ask_health(door.port, end, health), read_ordinary(door.port, door.key, end, ordinary))
    return health or [PATIENCE_SECONDS * 1e3], ordinary or [PATIENCE_SECONDS * 1e3]


# -- the measurement


@contextlib.contextmanager
def greedy(door: Door, kind: str, streams: int, log: Path) -> Iterator[None]:
    """Have so many streams read at full speed, from when the first bytes of one have come."""
    if not streams:
        yield
        return
    command = [sys.executable, "-m", "bench.chat.wire_speed", "--greedy", str(door.port), door.key, kind, str(streams)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output) as process:
        try:
            end = time.monotonic() + PATIENCE_SECONDS
            while not any(map(int, log.read_text().split())) and time.monotonic() < end:
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def measure(door: Door, kind: str, streams: int, seconds: float, folder: Path) -> dict[str, Any]:
    log = folder / f"{kind}-{streams}.log"
    with greedy(door, kind, streams, log):
        before = log.read_text().splitlines()[-1:] if streams else []
        cpu, begun = cpu_seconds(door.pid or 0), time.monotonic()
        health, ordinary = asyncio.run(probe(door, seconds))
        took = time.monotonic() - begun
        busy = (cpu_seconds(door.pid or 0) - cpu) / took
        after = log.read_text().splitlines()[-1:] if streams else []
        memory = memory_mb(door.pid or 0)
    counts = zip(*(" ".join(rows).split() for rows in (before, after)), strict=False)
    gains = [int(new) - int(old) for old, new in counts]
    row: dict[str, Any] = {"": f"{streams} x {kind}" if streams else "alone", "asked": len(health)}
    for name, waits in (("health", health), ("chunk", ordinary)):
        row |= {f"{name} p50": percentile(waits, 0.5), f"{name} p99": percentile(waits, 0.99)}
        row |= {f"{name} max": max(waits)}
    fairness = min(gains) / max(gains) if gains and max(gains) else None
    return row | {"MB/s": sum(gains) / took / 1e6, "least/most": fairness, "CPU %": busy * 100, "RSS MB": memory}


def main() -> None:
    if sys.argv[1:2] == ["--vendor"]:
        serve_vendor(int(sys.argv[2]))
    if sys.argv[1:2] == ["--greedy"]:
        read_greedily(int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--kinds", nargs="+", default=list(BLOCKS), choices=list(BLOCKS))
    parser.add_argument("--program", default=PENSTOCK_PROGRAM)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, port = Path(name), free_port()
        command = [sys.executable, "-m", "bench.chat.wire_speed", "--vendor", str(port)]
        stack.enter_context(serving(command, port, cores[-1], folder / "vendor.log"))
        for kind, streams in [("", 0), *((kind, streams) for kind in options.kinds for streams in options.streams)]:
            # A gateway of its own for each row: memory and backlog of one are not the next one's.
            place = folder / f"gateway-{kind}-{streams}"
            with penstock_door(place, port, cores[0], program=options.program, limits=()) as door:
                rows.append(measure(door, kind, streams, options.seconds, folder))
            print(rows[-1], file=sys.stderr, flush=True)
    tables.show("Milliseconds beside streams at wire speed", rows)
    tables.save("wire_speed", {"program": options.program, "rows": rows})


if __name__ == "__main__":
    main()
