"""The simulator behind real HTTP, with a network between it and the gateway that can fail in every way."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from penstock.simulator.upstream import Simulator

Act = Callable[["HttpDouble", web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Fault:
    """What goes wrong with the next `times` requests of this method whose path begins so."""

    act: Act
    method: str = "GET"
    path: str = "/"
    times: int = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class HttpDouble:
    """A vendor on 127.0.0.1: `faults` are used up first, then `play` answers."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.leaving = asyncio.Event()
        self.weather: Callable[[web.BaseRequest], Act | None] | None = None  # what may go wrong with any request
        self.port = 0
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fault(self, act: Act, method: str = "GET", path: str = "/", times: int = 1) -> None:
        """Let something go wrong."""
        self.faults.append(Fault(act, method, path, times))

    def count(self, method: str, path: str = "/") -> int:
        """How many such requests have arrived."""
        return sum(seen.method == method and seen.path.startswith(path) for seen in self.seen)

    async def listen(self) -> None:
        """Answer from now on, on the same port as before if there was one."""
        self.leaving.clear()
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def hide(self) -> None:
        """Refuse connections from now on."""
        self.leaving.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        request._client_max_size = 1 << 26  # pictures come here
        body = await request.read()
        self.seen.append(Seen(request.method, request.path_qs, dict(request.headers), body))
        for fault in self.faults:
            if fault.times and fault.method == request.method and request.path_qs.startswith(fault.path):
                fault.times -= 1
                return await fault.act(self, request)
        act = None if self.weather is None else self.weather(request)
        return await (self.play(request) if act is None else act(self, request))

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        """What the vendor answers when nothing goes wrong."""
        raise NotImplementedError


class Double(HttpDouble):
    """The simulator behind HTTP."""

    def __init__(self, simulator: Simulator) -> None:
        super().__init__()
        self.simulator = simulator

    def counts(self) -> dict[str, int]:
        """What the vendor's books say: orders, jobs and duplicates."""
        return self.simulator.counts()

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        """The simulator's own answer."""
        body = await request.read()
        try:
            answer = await asyncio.to_thread(self.simulator.answer, request.method, request.path_qs, body)
        except ConnectionError:
            return _cut(request)
        status, headers, data = answer
        return web.Response(status=status, headers=dict(headers), body=data)


@asynccontextmanager
async def double_of(folder: Path) -> AsyncGenerator[Double]:
    """A double that listens until the block ends."""
    double = Double(Simulator(folder))
    await double.listen()
    try:
        yield double
    finally:
        await double.hide()
        double.simulator.close()


# -- what can go wrong


def _cut(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()  # goes nowhere


async def drop(_double: HttpDouble, request: web.Request) -> web.StreamResponse:
    """The connection ends before the vendor has done anything."""
    return _cut(request)


async def drop_after(double: HttpDouble, request: web.Request) -> web.StreamResponse:
    """The vendor does what was asked, and its answer is lost."""
    await double.play(request)
    return _cut(request)


async def reset(_double: HttpDouble, request: web.Request) -> web.StreamResponse:
    """The connection is reset (RST) instead of closed."""
    assert request.transport is not None
    opened = request.transport.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()
    return web.Response()


async def hang(double: HttpDouble, request: web.Request) -> web.StreamResponse:
    """No answer ever comes."""
    await double.leaving.wait()
    return _cut(request)


def reply(status: int, body: bytes = b"", **headers: str) -> Act:
    """Answer this instead; `retry_after="1"` is the header Retry-After."""

    async def act(_double: HttpDouble, _request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=body, headers=named)

    return act


def raw(data: bytes) -> Act:
    """Write these bytes as they are, then close."""

    async def act(_double: HttpDouble, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(data)
        return _cut(request)

    return act


def drip(seconds: float, piece: bytes = b" ") -> Act:
    """An answer that comes in small pieces and never ends."""

    async def act(double: HttpDouble, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not double.leaving.is_set() and request.transport is not None:
            try:
                await response.write(piece)
            except ConnectionError:
                break
            await asyncio.sleep(seconds)
        return response

    return act
