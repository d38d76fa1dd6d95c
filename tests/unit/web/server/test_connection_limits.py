"""Callers that ask and never read: on real sockets, on either event loop."""

import asyncio
import socket
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.web.server.connection import GuardedConnection
from penstock.web.server.connection_limits import ConnectionBounds, Doorman, is_among
from penstock.web.server.request_cycle import FILE
from penstock.web.server.serving import serve

MUCH = 32 << 20
"""More than any system holds in its own buffers."""
START = {"type": "http.response.start", "status": 200, "headers": []}


class Listed(GuardedConnection):
    """Knows every connection that was ever made."""

    made: list["Listed"] = []

    def connection_made(self, transport) -> None:
        self.made.append(self)
        super().connection_made(transport)


class App:
    """Answers `/page` with one large body, `/stream` with a stream that never ends, `/file` with a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.open = 0
        self.slow = asyncio.Event()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            for moment in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{moment}.complete"})
            return
        self.open += 1
        try:
            await self.answer(scope["path"], send, scope["extensions"]["penstock.cycle"])
        finally:
            self.open -= 1

    async def answer(self, path, send, cycle) -> None:
        if path == "/page":
            await send(START | {"headers": [(b"content-length", b"%d" % MUCH)]})
            await send({"type": "http.response.body", "body": b"x" * MUCH})
        elif path == "/file":
            with self.file.open("rb") as file:
                await send(START | {"headers": [(b"content-length", b"%d" % MUCH)]})
                await send({"type": FILE, "file": file.fileno(), "offset": 0, "count": MUCH})
        else:
            await send(START)
            while not cycle.disconnected:
                await send({"type": "http.response.body", "body": b"x" * 70_000, "more_body": True})
                await asyncio.sleep(0)


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(MUCH)
    return App(path)


@asynccontextmanager
async def serving(app, **bounds: Any):
    ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    kept = ConnectionBounds(**bounds)
    options = {"on_ready": ready.set_result, "stop": stop, "protocol": Listed, "bounds": kept}
    running = asyncio.ensure_future(serve(app, host="127.0.0.1", port=0, drain_seconds=0, **options))
    Listed.made.clear()
    try:
        yield await ready
    finally:
        stop.set()
        await running


def connect(port: int) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    return client


async def read_all(client: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(client, 1 << 16):
        pass


async def until(condition) -> None:
    async with asyncio.timeout(300):
        while not condition():  # noqa: ASYNC110  sockets have no event for it
            await asyncio.sleep(0.01)


def is_gone(connection: GuardedConnection) -> bool:
    return connection not in connection.connections and not connection.tasks


@pytest.mark.parametrize("path", ["page", "stream", "file"])
async def test_a_reader_that_never_reads_is_cut_off(app, path):
    async with serving(app, write_seconds=0.4) as port:
        with connect(port) as client:
            client.send(b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % path.encode())
            await until(lambda: (Listed.made and app.open == 1) or path == "page")
            await until(lambda: Listed.made and is_gone(Listed.made[0]))
            assert Listed.made[0].transport.get_write_buffer_size() == 0
            assert (app.open, Listed.made[0].doorman.count) == (0, 0)
            with pytest.raises(ConnectionError):  # it was reset: the system keeps nothing either
                await read_all(client)


@pytest.mark.parametrize("path", ["page", "stream", "file"])
async def test_a_slow_reader_is_not_cut_off(app, path):
    loop = asyncio.get_running_loop()
    async with serving(app, write_seconds=60) as port:
        with connect(port) as client:
            client.send(b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % path.encode())
            await until(lambda: Listed.made and (Listed.made[0].transport.get_write_buffer_size() or app.open))
            begun = loop.time()
            for moment in range(40):  # its clock runs twice as long as nothing may be taken
                assert await asyncio.wait_for(loop.sock_recv(client, 1 << 16), 300)
                await asyncio.sleep(0.02)
                Listed.made[0].check_progress(begun + moment * 60 / 20)
            assert Listed.made[0] in Listed.made[0].connections


async def test_who_reads_it_all_in_the_end_goes_on_with_the_connection(app):
    loop = asyncio.get_running_loop()
    async with serving(app, write_seconds=60) as port:
        with connect(port) as client:
            for path in (b"page", b"file", b"page"):
                client.send(b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n" % path)
                await until(lambda: (Listed.made and Listed.made[0].transport.get_write_buffer_size()) or app.open)
                Listed.made[0].check_progress(loop.time())
                left, head = MUCH, True
                while left:
                    piece = await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 300)
                    left -= len(piece.partition(b"\r\n\r\n")[2] if head else piece)
                    head = False
                await until(lambda: not app.open)
                Listed.made[0].check_progress(loop.time())
                assert Listed.made[0]._unread is None


async def test_one_address_has_so_many_connections_and_a_proxy_any_number(app):
    async with serving(app, max_per_address=3) as port:
        kept = [connect(port) for _ in range(3)]
        await until(lambda: len(Listed.made) == 3)
        with connect(port) as refused:
            told = b""
            while piece := await asyncio.wait_for(asyncio.get_running_loop().sock_recv(refused, 4096), 300):
                told += piece
        assert told.startswith(b"HTTP/1.1 429 ")
        assert b'"code":"rate_limited"' in told
        assert b"retry-after: 5" in told
        kept.pop().close()
        await until(lambda: Listed.made[0].doorman.count == 2)
        kept.append(connect(port))
        await until(lambda: Listed.made[0].doorman.count == 3)
        for each in kept:
            each.close()
    async with serving(app, max_per_address=1, proxies=[ip_network("127.0.0.0/8")]) as port:
        several = [connect(port) for _ in range(5)]
        await until(lambda: len(Listed.made) == 5)
        assert not any(each._refused for each in Listed.made)
        for each in several:
            each.close()


@given(some.lists(some.tuples(some.sampled_from(["192.0.2.1", "2001:db8::1", "2001:db8::2", ""]), some.booleans())))
def test_whoever_comes_and_goes_the_numbers_are_right(steps):
    doorman = Doorman(ConnectionBounds(max_per_address=2))
    inside: list[str] = []
    for host, leaves in steps:
        if leaves and inside:
            doorman.leave(inside.pop(0))
        else:
            network = host[:6] if host.startswith("2001") else host
            before = sum((each[:6] if each.startswith("2001") else each) == network for each in inside)
            assert (doorman.enter(host) is None) == (before < 2)
            inside.append(host)
        assert doorman.count == len(inside)
    for host in inside:
        doorman.leave(host)
    assert (doorman.count, doorman._addresses) == (0, {})


def test_addresses_in_networks():
    loopback = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
    assert all(is_among(host, loopback) for host in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"))
    assert not any(is_among(host, loopback) for host in ("10.0.0.1", "::2", "", "unix"))
