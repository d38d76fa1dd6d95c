"""A chat vendor made of raw bytes, and loops to call it from: asyncio's own, uvloop, and some for special trials."""

import asyncio
import inspect
import os
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from penstock.upstream.chat_connection import ChatConnections, Incoming
from penstock.vendor_api.generation import Call

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
OK = b"HTTP/1.1 200 OK\r\n"
PONG = OK + b"content-length: 4\r\n\r\npong"


def run_on(loop: Callable[[], asyncio.AbstractEventLoop], scenario: Coroutine[Any, Any, None]) -> None:
    """To the end; nothing may go wrong unseen."""
    wrong: list[dict[str, Any]] = []

    async def watch() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        async with asyncio.timeout(300):
            await scenario

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(watch())
    assert not wrong, wrong


def each_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Have an async test run on each kind of loop."""

    def run(loop: str, **given: Any) -> None:
        run_on(LOOPS[loop], test(**given))

    wanted = inspect.signature(test).parameters.values()
    parameter = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    vars(run).update(vars(test), __signature__=inspect.Signature([parameter, *wanted]))
    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return pytest.mark.parametrize("loop", LOOPS)(run)


class Recorder(asyncio.SelectorEventLoop):
    """Leads every connection to one port, and remembers where it should have gone."""

    port = 0
    asked: tuple[str, int, bool] | None = None

    async def create_connection(self, factory, host, port, *, ssl):
        self.asked = (host, port, ssl is not None)
        return await super().create_connection(factory, "127.0.0.1", self.port)


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Paper(asyncio.Transport):
    """A connection to nowhere."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.is_cut = False
        protocol.connection_made(self)

    def write(self, data) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_cut

    def abort(self) -> None:
        self.is_cut = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class PaperLoop(asyncio.SelectorEventLoop):
    """Connects to nowhere."""

    papers: tuple[Paper, ...] = ()

    async def create_connection(self, factory: Callable[[], asyncio.Protocol], *_given: Any, **_named: Any):
        paper = Paper(factory())
        self.papers += (paper,)
        return paper, paper.protocol


class Line:
    """One connection, seen from the vendor."""

    def __init__(self, vendor: "Vendor", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._vendor = vendor
        self._reader = reader
        self._writer = writer

    async def hear(self) -> bytes:
        """One request: its head, while its body is counted."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        self._vendor.bodies.append(await self._reader.readexactly(int(length[1]) if length else 0))
        self._vendor.heads.append(head)
        return head

    async def hear_some(self, size: int) -> None:
        await self._reader.readexactly(size)

    async def say(self, *pieces: bytes) -> None:
        """Each piece by itself, as far as the network lets one."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            for _ in range(2 if len(pieces) > 1 else 0):
                await asyncio.sleep(0)

    async def see_end(self) -> None:
        """Until the caller has hung up."""
        with suppress(ConnectionError):
            while await self._reader.read(1 << 16):
                pass

    def hang_up(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        with self.socket() as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def socket(self) -> socket.socket:
        """To do something now and not when the loop comes to it."""
        return socket.socket(fileno=os.dup(self._writer.get_extra_info("socket").fileno()))

    def cut_off(self) -> None:
        """Hang up without a word, which on TLS is a rude thing."""
        with self.socket() as own:
            own.shutdown(socket.SHUT_RDWR)


Handle = Callable[[Line], Awaitable[None]]


class Vendor:
    """Handles each connection with the next function of a list, and then with the last for ever."""

    def __init__(self, handles: tuple[Handle, ...]) -> None:
        self.handles = handles
        self.lines: list[Line] = []
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.ended = asyncio.Semaphore(0)  # released for every connection that is over
        self.tasks: set[asyncio.Task[None] | None] = set()
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.current_task())
        line = Line(self, reader, writer)
        self.lines.append(line)
        try:
            await self.handles[min(len(self.lines), len(self.handles)) - 1](line)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.ended.release()
            writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def ends(self, count: int = 1) -> None:
        """Until so many connections are over; that is to be before an idle one would end by itself."""
        async with asyncio.timeout(10):
            for _ in range(count):
                await self.ended.acquire()


@asynccontextmanager
async def vendor_of(*handles: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[Vendor]:
    vendor = Vendor(handles)
    server = await asyncio.start_server(vendor.handle, "127.0.0.1", 0, ssl=tls)
    vendor.port = server.sockets[0].getsockname()[1]
    try:
        yield vendor
    finally:
        server.close()
        for task in vendor.tasks:
            if task is not None:
                task.cancel()
        await asyncio.sleep(0)


@asynccontextmanager
async def wire_of() -> AsyncIterator[ChatConnections]:
    wire = ChatConnections()
    try:
        yield wire
    finally:
        wire.close()


async def post(
    wire: ChatConnections, url: str, body: bytes = b"{}", path: str = "/chat", seconds: float = 5
) -> Incoming:
    return await hear(wire, url, Call("POST", path, {"authorization": "Bearer secret"}, body=body), seconds)


async def hear(wire: ChatConnections, url: str, call: Call, seconds: float = 5) -> Incoming:
    """A call, and its reply from the head on."""
    incoming = await wire.open(url, call, seconds)
    try:
        await incoming.wait_head()
    except BaseException:
        incoming.close()
        raise
    return incoming


async def ping(wire: ChatConnections, url: str) -> bytes:
    return await (await post(wire, url)).read_all(1 << 20)


async def answer(line: Line) -> None:
    """Pong, as often as asked."""
    while True:
        await line.hear()
        await line.say(PONG)


def saying(*pieces: bytes) -> Handle:
    """Say this to every request, and stay."""

    async def handle(line: Line) -> None:
        while True:
            await line.hear()
            await line.say(*pieces)

    return handle


async def listen(line: Line) -> None:
    """Hear the request and say nothing until the caller leaves."""
    await line.hear()
    await line.see_end()
