"""Thousands of slow chat streams through one gateway: memory, delay and loss of chunks, and callers who leave.

python -m bench.chat.streams [--streams 2000] [--seconds 20]

Every stream gets a chunk a second, each with the moment at which the vendor sent it; the callers compare it with the
moment at which they have it. Vendor and callers are processes of their own on one core, the gateway has the other; the
same callers listen to the vendor directly first, so what is more than that is the gateway's delay. While all streams
are open, delays are taken. Then half of the callers leave abruptly: how long it takes until the vendor sees that.
The others count every chunk to the end.

Memory is by how much the gateway's resident memory grows for each stream. Callers and vendor are other processes, and
the kernel's buffers of sockets are nobody's resident memory: neither is in it.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import resource
import socket
import struct
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from bench.chat.chat import make_request
from bench.chat.peers import free_port, penstock
from bench.chat.upstream import CHOICE, STREAM_HEAD, render
from bench.harness import tables
from bench.harness.processes import cpu_seconds, memory_mb

STAMP = re.compile(rb"<(\d+)@(\d+)>")
CALLER = re.compile(rb'"user":"caller-(\d+)"')
LAST = b"data: [DONE]"


# -- the vendor, in a process of its own


class Vendor:
    """Answers every call with a stamped chunk a second, and knows who is still there."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._open = 0
        self._left: dict[int, int] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call, until it is told to its end or its caller is gone; or what is known, for whoever asks that."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if head.startswith(b"get "):
                writer.write(self._books())
                await writer.drain()
            else:
                body = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
                found = CALLER.search(body)
                await self._serve(reader, writer, int(found[1]) if found else -1)
        writer.close()

    def _books(self) -> bytes:
        said = json.dumps({"open": self._open, "left": self._left}).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        return head % len(said) + said

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, caller: int) -> None:
        self._open += 1
        telling, leaving = asyncio.create_task(self._tell(writer)), asyncio.create_task(reader.read())
        await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        self._open -= 1
        if not telling.done():
            self._left[caller] = time.perf_counter_ns()
        telling.cancel()
        leaving.cancel()
        await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        """The first chunk at once, the others each second from some moment on, as streams of strangers do."""
        writer.write(STREAM_HEAD)
        loop = asyncio.get_running_loop()
        due = loop.time() + random.random()  # noqa: S311  spread
        for number in range(self._seconds):
            text = f"<{number}@{time.perf_counter_ns()}>"
            writer.write(render([{**CHOICE, "delta": {"content": text}}]))
            await asyncio.sleep(due + number - loop.time())
        writer.write(render([{**CHOICE, "delta": {}, "finish_reason": "stop"}]))
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()


async def serve_vendor(port: int, seconds: int) -> None:
    vendor = Vendor(seconds)
    server = await asyncio.start_server(vendor.answer, "127.0.0.1", port, backlog=4096)
    print("{}", flush=True)
    await server.serve_forever()


# -- the callers, in a process of their own


class Caller(asyncio.Protocol):
    """One stream: its chunks and how late each was."""

    def __init__(self, number: int, key: str) -> None:
        self.number = number
        self._request = make_request("/v1/chat/completions", key, f"caller-{number}")
        self._rest = b""
        self._transport: Any = None
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.chunks = 0
        self.delays: list[int] = []
        self.left_at = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._transport = transport
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Every chunk must be there, in order."""
        now, data = time.perf_counter_ns(), self._rest + data
        if not self.answered.done():
            self._check_head(data)
        whole = data.rfind(b"\n\n") + 1
        self._rest = data[whole:]
        for number, sent in STAMP.findall(data, 0, whole):
            if int(number) != self.chunks:
                self._fail(f"chunk {int(number)} came where {self.chunks} was due")
            self.chunks += 1
            self.delays.append(now - int(sent))
        if LAST in data and not self.ended.done():
            self.ended.set_result(None)

    def _check_head(self, data: bytes) -> None:
        if not data.startswith(b"HTTP/1.1 200"):
            self._fail(data.decode())
        else:
            self.answered.set_result(None)

    def _fail(self, why: str) -> None:
        for future in (self.answered, self.ended):
            if not future.done():
                future.set_exception(RuntimeError(why))

    def connection_lost(self, exc: Exception | None) -> None:
        """Too soon, unless all was told or it was left."""
        if not self.left_at:
            self._fail(f"the connection was lost after {self.chunks} chunks: {exc}")

    def leave(self) -> None:
        """As a crashed program does: with a reset."""
        connection: socket.socket = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.left_at = time.perf_counter_ns()
        self._transport.abort()


async def call_all(port: int, key: str, streams: int, at_once: int = 32) -> list[Caller]:
    """All streams, each of which has begun."""
    callers: list[Caller] = []
    numbers = iter(range(streams))

    async def call_some() -> None:
        for number in numbers:
            _, caller = await asyncio.get_running_loop().create_connection(
                partial(Caller, number, key), "127.0.0.1", port
            )
            callers.append(caller)
            await caller.answered

    await asyncio.gather(*(call_some() for _ in range(at_once)))
    return callers


async def serve_callers(port: int, key: str, streams: int, steady: float) -> None:
    """Call all; then, at each word, take delays for a while; let half of the callers leave, and await the others."""
    begun = time.perf_counter()
    callers = await call_all(port, key, streams)
    print(json.dumps({"seconds": time.perf_counter() - begun}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    marks = [len(caller.delays) for caller in callers]
    await asyncio.sleep(steady)
    delays = [ns / 1e6 for caller, mark in zip(callers, marks, strict=True) for ns in caller.delays[mark:]]
    found = {f"p{part}": tables.quantile(delays, part / 100) for part in (50, 99)}
    print(json.dumps({"chunks": len(delays), **found, "most": max(delays)}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    leaving, staying = callers[::2], callers[1::2]
    for caller in leaving:
        caller.leave()
    await asyncio.gather(*(caller.ended for caller in staying))
    left = {caller.number: caller.left_at for caller in leaving}
    print(json.dumps({"left": left, "counts": [caller.chunks for caller in staying]}), flush=True)


# -- the measurement


class Partner:
    """A process of callers, or the vendor's, that is spoken to by lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def hear(self) -> Any:
        """What it says next."""
        said: Any = self._process.stdout
        line = await said.readline()
        if not line:
            raise SystemExit("a process of the measurement ended too early")
        return json.loads(line)

    def tell(self) -> None:
        """Go on."""
        given: Any = self._process.stdin
        given.write(b"\n")


@contextlib.asynccontextmanager
async def partner(core: int, role: str, *words: Any) -> AsyncGenerator[Partner]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.chat.streams", "--role", role, *map(str, words)),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )  # fmt: skip
    try:
        yield Partner(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def ask_vendor(port: int) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as response:
        return await response.json()


class Measurement:
    """All that is asked, with one vendor after the other."""

    def __init__(self, options: argparse.Namespace) -> None:
        cores = sorted(os.sched_getaffinity(0))
        self.streams, self.seconds = options.streams, options.seconds
        self.near, self.far = cores[0], cores[-1]
        self.steady = options.seconds * 0.4

    async def listen_directly(self) -> dict[str, float]:
        """The delays without a gateway."""
        port = free_port()
        async with self._vendor(port), self._callers(port, "none") as (callers, _):
            await self._await_open(port)
            callers.tell()
            return await callers.hear()

    @contextlib.asynccontextmanager
    async def _vendor(self, port: int) -> AsyncGenerator[None]:
        async with partner(self.far, "vendor", port, self.seconds) as vendor:
            await vendor.hear()
            yield

    @contextlib.asynccontextmanager
    async def _callers(self, port: int, key: str) -> AsyncGenerator[tuple[Partner, float]]:
        """Callers whose streams are open, and how long that took."""
        async with partner(self.far, "callers", port, key, self.streams, self.steady) as callers:
            yield callers, (await callers.hear())["seconds"]

    async def _await_open(self, port: int) -> None:
        async with asyncio.timeout(30):
            while (await ask_vendor(port))["open"] != self.streams:  # noqa: ASYNC110  a bench may look
                await asyncio.sleep(0.1)

    async def listen_through(self, folder: Path) -> dict[str, Any]:
        """Everything, through a gateway."""
        upstream = free_port()
        async with self._vendor(upstream):
            with penstock(folder, upstream, self.near) as (pid, port, key):
                await self._warm_up(port, key)
                before = memory_mb(pid)
                async with self._callers(port, key) as (callers, opening):
                    await self._await_open(upstream)
                    found = await self._take(callers, pid, upstream)
        grown = (found["memory_full_mb"] - before) * 1024 / self.streams
        return {"kb_per_stream": grown, "memory_before_mb": before, **found, "opening_seconds": opening}

    async def _warm_up(self, port: int, key: str) -> None:
        """Whatever is loaded at first use is not the streams' memory."""
        async with partner(self.far, "callers", port, key, 16, 0.0) as callers:
            await callers.hear()

    async def _take(self, callers: Partner, pid: int, upstream: int) -> dict[str, Any]:
        cpu = cpu_seconds(pid)
        callers.tell()
        delays = await callers.hear()
        cpu, full = cpu_seconds(pid) - cpu, memory_mb(pid)
        still_open = (await ask_vendor(upstream))["open"]
        callers.tell()
        end = await callers.hear()
        seen: dict[str, int] = (await ask_vendor(upstream))["left"]
        gone = [(seen[number] - at) / 1e6 for number, at in end["left"].items() if number in seen]
        return {
            "delay": delays,
            "memory_full_mb": full,
            "open_meanwhile": still_open,
            "cpu_percent": 100 * cpu / self.steady,
            "cpu_us_per_chunk": cpu / delays["chunks"] * 1e6,
            "left": len(end["left"]),
            "never_noticed": len(end["left"]) - len(gone),
            "gone_p50_ms": tables.quantile(gone, 0.5),
            "gone_p99_ms": tables.quantile(gone, 0.99),
            "gone_most_ms": max(gone),
            "whole_streams": sum(count == self.seconds for count in end["counts"]),
            "lost_chunks": sum(self.seconds - count for count in end["counts"]),
        }


def tell(streams: int, direct: dict[str, float], found: dict[str, Any]) -> None:
    """The tables, the file and the plot."""
    ways = {"direct": direct, "gateway": found["delay"]}
    rows = [
        {"": name, "chunks": said["chunks"], "p50 ms": said["p50"], "p99 ms": said["p99"], "most ms": said["most"]}
        for name, said in ways.items()
    ]
    tables.show(f"from the vendor's sending to the caller's having, {streams} streams open", rows)
    figures = [{"": name.replace("_", " "), "gateway": found[name]} for name in found if name != "delay"]
    tables.show(f"{streams} streams", figures)
    tables.save("streams", {"streams": streams, "direct": {"delay": direct}, "gateway": found})
    tables.draw(
        "bars",
        "streams",
        {f"{part} of all chunks": {name: said[part] * 1e3 for name, said in ways.items()} for part in ("p50", "p99")},
        title=f"Delay of a chunk while {streams} chat streams are open",
        subtitle="µs from the vendor's sending to the caller's having it; a chunk a second in each stream. "
        f"The gateway's memory: {found['kb_per_stream']:.1f} KB a stream; its CPU: {found['cpu_us_per_chunk']:.0f} µs "
        f"a chunk; {found['lost_chunks']} chunks lost.",
        highlight="gateway",
        unit="µs",
        log=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=20, help="how many chunks each stream has")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    match options.role:
        case ["vendor", port, seconds]:
            return uvloop.run(serve_vendor(int(port), int(seconds)))
        case ["callers", port, key, streams, steady]:
            return uvloop.run(serve_callers(int(port), key, int(streams), float(steady)))
    measurement = Measurement(options)
    direct = asyncio.run(measurement.listen_directly())
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measurement.listen_through(Path(folder) / "gateway"))
    tell(options.streams, direct, found)
    sys.exit(found["lost_chunks"] != 0 or found["never_noticed"] != 0 or found["gone_most_ms"] > 1000)


if __name__ == "__main__":
    main()
