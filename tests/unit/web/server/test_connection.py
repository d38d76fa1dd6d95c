"""The HTTP connection and the server around it, over real sockets."""

import asyncio
import json
import signal
import socket
import sys
import time
import tracemalloc
from contextlib import asynccontextmanager, suppress

import pytest
from still_loop import run_still, still_loop

from penstock.web.server.connection import GuardedConnection
from penstock.web.server.serving import PortInUse, serve

HEAD_SECONDS = 0.4
GET = b"GET /echo HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /%s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


class Quick(GuardedConnection):
    head_seconds = HEAD_SECONDS


class App:
    """Echoes bodies; `/early` answers unread, `/hold` waits for `release`, `/started` begins first, `/crash` fails."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        path = scope["path"]
        if path == "/crash":
            raise RuntimeError("a mistake")
        start = {"type": "http.response.start", "status": 200, "headers": []}
        if path == "/started":
            await send(start)
            await send({"type": "http.response.body", "body": b"begun;", "more_body": True})
        if path in {"/hold", "/started"}:
            await self.release.wait()
        body = b"" if path == "/early" else await self.read(receive)
        if path != "/started":
            await send(start | {"headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    async def read(self, receive):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if message["type"] == "http.disconnect":
            self.left.set()
        return body


class Wire:
    """One raw connection."""

    def __init__(self, reader, writer, opened: float) -> None:
        self.reader, self.writer, self.opened = reader, writer, opened

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def get(self, path: str) -> None:
        await self.send(b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n" % path.encode())

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, body

    async def refusal(self) -> tuple[int, str, str]:
        """Status, code and message of an error in our shape, after which the server closes."""
        status, headers, body = await self.response()
        error = json.loads(body)["error"]
        assert " ".join(error) == "message type code param details retryable charged suggestion request_id"
        assert (headers["x-request-id"], headers["connection"]) == (error["request_id"], "close")
        assert await self.ends()
        return status, error["code"], error["message"]

    async def ends(self) -> bool:
        with suppress(ConnectionError):
            return await self.reader.read(1) == b""
        return True

    async def flood(self, data: bytes) -> None:
        while True:
            await self.send(data)

    async def is_quiet(self, seconds: float) -> bool:
        """Whether the server neither speaks nor closes for so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.reader.read(1), seconds)
            return False
        return True

    async def drip(self, data: bytes) -> None:
        """Send a byte at a time until the server closes."""
        for byte in data:
            await self.send(bytes([byte]))
            if not await self.is_quiet(0.05):
                return
        pytest.fail("the server goes on listening")


@asynccontextmanager
async def connect(port):
    opened = asyncio.get_running_loop().time()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer, opened)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def serving(app, max_connections=100, protocol=Quick):
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    options = {"on_ready": ready.set_result, "stop": stop, "protocol": protocol, "max_connections": max_connections}
    server = asyncio.ensure_future(serve(app, host="127.0.0.1", port=0, drain_seconds=0, **options))
    try:
        yield await ready
    finally:
        stop.set()
        await server


@pytest.fixture
def app():
    return App()


@pytest.fixture
async def wire(app):
    async with serving(app) as port, connect(port) as wire:
        yield wire


# -- time


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET / HTTP/1.1\r\nhost: x\r\nx-long: "])
async def test_a_head_that_does_not_arrive_is_closed_at_the_deadline(wire, sent):
    await wire.send(sent)
    assert await wire.ends()
    assert HEAD_SECONDS * 0.8 < asyncio.get_running_loop().time() - wire.opened < GuardedConnection.head_seconds


@pytest.mark.parametrize("before", [b"", GET, POST % (b"early", 999)], ids=["new", "kept alive", "answered early"])
@pytest.mark.parametrize("dripped", [b"GET / HTTP/1.1\r\nx: " + b"y" * 150, b"\r\n" * 80], ids=["head", "blank lines"])
async def test_a_dripped_head_is_closed_at_the_deadline(wire, before, dripped):
    start = wire.opened
    if before:
        await wire.send(before)
        assert (await wire.response())[0] == 200
        start = asyncio.get_running_loop().time()
    await wire.drip(dripped)
    assert HEAD_SECONDS * 0.8 < asyncio.get_running_loop().time() - start < GuardedConnection.head_seconds


def test_what_is_slow_within_its_rights_is_not_cut():
    async def scenario() -> None:
        app = App()
        async with serving(app, protocol=GuardedConnection) as port, connect(port) as wire:
            for _ in range(2):
                await wire.send(GET[:9])
                await still_loop().put_forward(GuardedConnection.head_seconds * 0.8)
                await wire.send(GET[9:])
                assert (await wire.response())[0] == 200
                await still_loop().put_forward(GuardedConnection.head_seconds * 2)  # an idle connection
            await wire.get("/hold")
            await still_loop().put_forward(GuardedConnection.head_seconds * 2)  # a slow answer
            app.release.set()
            assert (await wire.response())[0] == 200

    run_still(scenario())


# -- size


@pytest.mark.parametrize(
    ("opening", "piece"),
    [
        (b"GET / HTTP/1.1\r\n", b"x-more: %s\r\n" % (b"y" * 1000) * 16),
        (b"GET / HTTP/1.1\r\nx-long: ", b"y" * 16_384),
        (CHUNKED + b"1\r\na\r\n0\r\nx-trailer: ", b"y" * 16_384),
    ],
    ids=["many headers", "one long header", "a trailer"],
)
async def test_endless_headers_are_refused_in_little_memory(wire, opening, piece):
    await wire.send(opening)
    refusal = asyncio.ensure_future(wire.refusal())
    tracemalloc.start()
    with pytest.raises(ConnectionError):
        await wire.flood(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (await refusal)[:2] == (431, "headers_too_large")
    assert peak < 2_000_000


@pytest.mark.parametrize(("size", "status"), [(60_000, 200), (70_000, 431), (200_000, 431)])
async def test_the_head_may_have_64_kilobytes(wire, size, status):
    await wire.send(GET[:-2] + b"cookie: " + b"y" * size + b"\r\n\r\n")
    assert (await wire.response())[0] == status


async def test_a_caller_that_writes_before_it_reads_still_gets_the_refusal(app):
    def talk(port):
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"GET / HTTP/1.1\r\ncookie: " + b"y" * 5_000_000)
            return caller.recv(100)

    async with serving(app) as port:
        assert (await asyncio.to_thread(talk, port)).startswith(b"HTTP/1.1 431")


# -- form


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "method"),
        (b"hello there\r\n\r\n", "method"),
        (b"GET / HTTP/1.1\r\nno colon here\r\n\r\n", "header"),
        (b"CONNECT example.com:443 HTTP/1.1\r\n\r\n", "target"),
        (b"POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (b"POST / HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd", "Content-Length"),
    ],
)
async def test_what_is_not_http_is_told_so_in_json(wire, sent, told):
    await wire.send(sent)
    status, code, message = await wire.refusal()
    assert (status, code) == (400, "invalid_http")
    assert told in message


async def test_a_broken_body_is_refused_once_and_the_app_is_told(wire, app):
    await wire.send(CHUNKED + b"2\r\nab\r\n")
    assert await wire.is_quiet(0.05)
    await wire.send(b"not a size\r\n")
    assert (await wire.refusal())[:2] == (400, "invalid_http")
    for _ in range(20):
        await asyncio.sleep(0)
    assert app.left.is_set()  # not only when the connection is closed at last


async def test_garbage_behind_a_running_response_is_answered_after_it(wire, app):
    await wire.get("/started")
    await wire.reader.readuntil(b"begun;\r\n")
    await wire.send(b"garbage\r\n\r\n")
    assert await wire.is_quiet(0.05)
    app.release.set()
    await wire.reader.readuntil(b"0\r\n\r\n")
    assert (await wire.refusal())[:2] == (400, "invalid_http")


@pytest.mark.parametrize("rest", [b"}", b"GET / HTTP/9.9\r\n\r\n", b"x: " + b"y" * 70_000, CHUNKED + b"no size\r\n"])
async def test_whoever_asked_well_is_answered_whatever_comes_next(wire, app, rest):
    await wire.send(POST % (b"hold", 4) + b"kept")
    assert await wire.is_quiet(0.05)
    await wire.send(POST % (b"echo", 4) + b"next" + rest)
    assert await wire.is_quiet(0.05)
    app.release.set()
    assert [(await wire.response())[::2] for _ in range(2)] == [(200, b"kept"), (200, b"next")]
    assert (await wire.refusal())[0] in (400, 431)


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize(
    "form", [b"content-length: 4\r\n\r\nbody", b"transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"]
)
async def test_a_wish_for_another_protocol_is_passed_over(wire, form, is_split):
    head = b"POST /echo HTTP/1.1\r\nhost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    for _ in range(2):
        sent = head + form + GET[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n" + GET
        pieces = [sent[place : place + 7] for place in range(0, len(sent), 7)] if is_split else [sent]
        for piece in pieces:
            await wire.send(piece)
            await asyncio.sleep(0)
        assert [(await wire.response())[::2] for _ in range(3)] == [(200, b"body"), (200, b""), (200, b"")]


async def test_such_a_wish_may_end_the_connection(wire):
    await wire.send(
        b"POST /echo HTTP/1.1\r\nconnection: upgrade, close\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nabc"
    )
    assert (await wire.response())[::2] == (200, b"ab")
    assert await wire.ends()


async def test_a_body_behind_such_a_wish_is_never_a_request(wire):
    await wire.send(
        b"POST /echo HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: %d\r\n\r\n" % len(GET)
    )
    await wire.send(GET)
    assert (await wire.response())[2] == GET
    assert await wire.is_quiet(0.05)


async def test_pipelined_requests_are_answered_in_order(wire):
    bodies = [b"first", b"s" * 200_000, b"third"]
    wish = GET[:-2] + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n"  # passed over
    await wire.send(b"".join(POST % (b"echo", len(body)) + body for body in bodies) + wish)
    assert [(await wire.response())[2] for _ in range(4)] == [*bodies, b""]
    assert await wire.is_quiet(HEAD_SECONDS * 2)


async def test_a_crash_is_told_in_the_error_shape(wire):
    await wire.get("/crash")
    assert (await wire.refusal())[:2] == (500, "internal_error")


async def test_too_many_connections_are_told_in_the_error_shape(app):
    async with serving(app, max_connections=2) as port, connect(port) as first, connect(port) as second:
        await second.send(GET)
        assert (await second.refusal())[:2] == (503, "overloaded")
        await first.send(GET)
        assert (await first.response())[0] == 200


# -- the process

CHILD = """
import asyncio, sys
from penstock.web.server.serving import run, serve
drain = asyncio.Event()
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("closed", flush=True)
        return await send({"type": "lifespan.shutdown.complete"})
    path = scope["path"]
    try:
        if path == "/silent":
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while path == "/endless" or (path == "/events" and not drain.is_set()):
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.02)
        await asyncio.sleep(path == "/slow")
        await send({"type": "http.response.body", "body": b"done"})
    finally:
        await asyncio.sleep(0.2)
        print("cleaned", flush=True)
async def main():
    print(type(asyncio.get_running_loop()).__module__, flush=True)
    await serve(app, host="127.0.0.1", port=0, drain_seconds=float(sys.argv[1]),
        on_ready=lambda port: print(port, flush=True), on_reload=lambda: print("reloaded", flush=True),
        on_drain=lambda: (drain.set(), print("draining", flush=True)))
run(main())
print("returned", flush=True)
"""


async def line(process) -> str:
    return (await process.stdout.readline()).decode().strip()


async def rest(process) -> tuple[list[str], int]:
    """What it still printed, and its exit code."""
    return (await process.stdout.read()).decode().split(), await process.wait()


@asynccontextmanager
async def child(drain_seconds, path):
    """A serving process, its port, and a connection with a request under way."""
    command = (sys.executable, "-c", CHILD, str(drain_seconds))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert await line(process) == "uvloop"
        port = int(await line(process))
        async with connect(port) as wire:
            await wire.get(path)
            yield process, port, wire
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_drain_finishes_what_runs_and_takes_nothing_new(number):
    async with child(20, "/slow") as (process, port, wire), connect(port) as idle:
        await idle.get("/quick")
        await idle.reader.readuntil(b"done\r\n0\r\n\r\n")
        assert await line(process) == "cleaned"
        process.send_signal(number)
        assert await line(process) == "draining"
        assert await idle.ends()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)
        assert (await wire.reader.read()).endswith(b"done\r\n0\r\n\r\n")
        assert await rest(process) == (["cleaned", "closed", "returned"], 0)


async def test_streams_that_listen_end_well_at_the_start_of_the_drain():
    async with child(60, "/events") as (process, _, wire):
        await wire.reader.readuntil(b"x\r\n")
        process.send_signal(signal.SIGTERM)
        assert (await wire.reader.read()).endswith(b"done\r\n0\r\n\r\n")
        assert await rest(process) == (["draining", "cleaned", "closed", "returned"], 0)


async def test_at_the_deadline_the_rest_is_cut_and_cleans_up_before_the_end():
    async with child(0.5, "/silent") as (process, port, silent), connect(port) as endless:
        await endless.get("/endless")
        await endless.reader.readuntil(b"x\r\n")
        start = time.monotonic()  # both processes have this clock
        process.send_signal(signal.SIGTERM)
        assert (await silent.refusal())[:2] == (503, "overloaded")
        assert time.monotonic() - start > 0.4
        assert not (await endless.reader.read()).endswith(b"0\r\n\r\n")
        assert await rest(process) == (["draining", "cleaned", "cleaned", "closed", "returned"], 0)


async def test_a_hangup_reloads_and_a_second_signal_ends_at_once():
    async with child(60, "/endless") as (process, _, wire):
        process.send_signal(signal.SIGHUP)
        assert await line(process) == "reloaded"
        await wire.reader.readuntil(b"x\r\n")
        process.send_signal(signal.SIGTERM)
        assert await line(process) == "draining"
        process.send_signal(signal.SIGINT)
        assert await rest(process) == ([], 128 + signal.SIGINT)


async def test_a_port_in_use_is_said_with_its_remedy(app):
    async with serving(app) as port:
        with pytest.raises(PortInUse, match=rf"Port {port} on 127.0.0.1 is in use.*--port"):
            await serve(app, host="127.0.0.1", port=port, drain_seconds=0, on_ready=print)


async def test_signals_are_given_back(app):
    before = signal.getsignal(signal.SIGTERM)
    async with serving(app):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
