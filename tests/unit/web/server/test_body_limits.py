"""Limits on a request's body, over real sockets."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import Annotated

import pytest
from fastapi import Body, FastAPI
from still_loop import run_still, still_loop

from penstock.errors import BodyTooLarge, RequestTimeout
from penstock.web.server.body_limits import LINGER_SECONDS, MAX_STALLS, BodyLimits
from penstock.web.server.serving import serve

MAX = 1000
BODY_SECONDS = 0.4
CHUNKED = b"POST /%s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
DECLARED = b"POST /%s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class App:
    """Tells the body's length; says when it was called, when the body stalled and when the caller has left."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.left = asyncio.Event()
        self.stalled = asyncio.Event()
        self.length = 0

    async def __call__(self, scope, receive, send) -> None:
        self.called.set()
        path = scope["path"]
        if path == "/started":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        try:
            await self.read(receive)
        except RequestTimeout:
            self.stalled.set()
            raise
        except BodyTooLarge:
            if path != "/handles":
                raise
            await respond(send, 413, b"in the app's own words")
            return
        if path == "/watch" and (await receive())["type"] == "http.disconnect":
            self.left.set()
            return
        await respond(send, 200, b"%d bytes" % self.length)

    async def read(self, receive) -> None:
        self.length, more = 0, True
        while more:
            message = await receive()
            self.length, more = self.length + len(message["body"]), message["more_body"]


async def respond(send, status, body):
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def framework():
    """The same through a framework that turns any error while reading a body into a 400 of its own."""
    app = FastAPI()

    @app.post("/framework")
    async def take(body: Annotated[dict[str, str], Body()]) -> int:
        return len(body)

    return app


@asynccontextmanager
async def serving(app, seconds=BODY_SECONDS):
    """A server with the limits, and a request id given by what stands before them."""
    limited = BodyLimits(app, MAX, seconds)

    async def outer(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            scope["state"]["request_id"] = "req_1"
            await limited(scope, receive, send)

    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    where = {"host": "127.0.0.1", "port": 0, "on_ready": ready.set_result, "stop": stop}
    server = asyncio.ensure_future(serve(outer, drain_seconds=0, **where))
    reader, writer = await asyncio.open_connection("127.0.0.1", await ready)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        stop.set()
        await server


async def response(reader) -> tuple[int, bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return int(head.split()[1]), head, await reader.readexactly(length)


async def refusal(reader) -> tuple[int, str]:
    """Status and code of an error in our shape, after which the server closes."""
    status, head, body = await response(reader)
    error = json.loads(body)["error"]
    assert error["request_id"] == "req_1"
    assert b"x-request-id: req_1\r\n" in head
    assert b"connection: close\r\n" in head
    with suppress(ConnectionError):
        assert await reader.read() == b""
    return status, error["code"]


@pytest.mark.parametrize("app", [App, framework])
async def test_a_declared_length_is_refused_unread(app):
    app = app()
    async with serving(app) as (reader, writer):
        writer.write(DECLARED % (b"framework", MAX + 1))
        assert await refusal(reader) == (413, "body_too_large")
    assert not isinstance(app, App) or not app.called.is_set()


async def test_a_caller_in_the_middle_of_a_large_upload_still_reads_the_refusal():
    size = 20_000_000
    async with serving(App()) as (reader, writer):
        writer.write(DECLARED % (b"", size))
        with suppress(ConnectionError):
            for _ in range(size // 100_000):
                writer.write(b"x" * 100_000)
                await writer.drain()
        assert await refusal(reader) == (413, "body_too_large")


def test_a_refused_caller_is_listened_to_for_as_long_as_it_sends():
    async def scenario() -> None:
        async with serving(App()) as (reader, writer):
            writer.write(DECLARED % (b"", MAX + 8))
            for _ in range(8):
                await still_loop().put_forward(LINGER_SECONDS * 0.6)
                writer.write(b"x" * ((MAX + 8) // 8))
                await writer.drain()
            assert await refusal(reader) == (413, "body_too_large")

    run_still(scenario())


async def test_a_caller_that_waits_to_be_asked_is_refused_without_being_asked():
    async with serving(App()) as (reader, writer):
        writer.write((DECLARED % (b"", MAX + 1))[:-2] + b"expect: 100-continue\r\n\r\n")
        assert await refusal(reader) == (413, "body_too_large")


@pytest.mark.parametrize("app", [App, framework])
async def test_a_chunked_body_is_counted(app):
    async with serving(app()) as (reader, writer):
        writer.write(CHUNKED % b"framework" + b"190\r\n" + b"x" * 400 + b"\r\n")
        await writer.drain()
        writer.write(b"259\r\n" + b"x" * 601 + b"\r\n")
        assert await refusal(reader) == (413, "body_too_large")


@pytest.mark.parametrize("app", [App, framework])
@pytest.mark.parametrize("head", [CHUNKED % b"framework" + b"5\r\nab", DECLARED % (b"framework", 9) + b"ab"])
async def test_a_stalled_body_is_given_up(app, head):
    async with serving(app()) as (reader, writer):
        writer.write(head)
        assert await refusal(reader) == (408, "request_timeout")


def test_a_body_that_keeps_arriving_is_not_given_up():
    async def scenario() -> None:
        app = App()
        async with serving(app, seconds=100) as (reader, writer):
            writer.write(DECLARED % (b"", 8))
            await app.called.wait()
            for number in range(8):
                await still_loop().put_forward(80)
                writer.write(b"x")
                async with asyncio.timeout(300):
                    while app.length <= number:  # noqa: ASYNC110  until it has read it
                        await asyncio.sleep(0)
            assert (await response(reader))[2] == b"8 bytes"

    run_still(scenario())


def test_a_body_that_only_drips_is_given_up_in_the_end():
    async def scenario() -> None:
        app = App()
        async with serving(app, seconds=100) as (reader, writer):
            writer.write(DECLARED % (b"", 900))
            await app.called.wait()
            while not app.stalled.is_set():
                before = app.length
                writer.write(b"x")
                async with asyncio.timeout(300):
                    while app.length == before and not app.stalled.is_set():  # noqa: ASYNC110  until it has read it
                        await asyncio.sleep(0)
                await still_loop().put_forward(90)
            assert MAX_STALLS < app.length < MAX_STALLS + 3
            assert await refusal(reader) == (408, "request_timeout")

    run_still(scenario())


@pytest.mark.parametrize(
    "sent", [DECLARED % (b"", MAX) + b"x" * MAX, CHUNKED % b"" + b"3e8\r\n" + b"x" * MAX + b"\r\n0\r\n\r\n"]
)
async def test_a_body_of_the_largest_size_is_served_and_the_connection_kept(sent):
    async with serving(App()) as (reader, writer):
        for _ in range(2):
            writer.write(sent)
            assert (await response(reader))[2] == b"1000 bytes"


async def test_after_the_whole_body_one_can_wait_for_the_caller_to_leave():
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(DECLARED % (b"watch", 2) + b"ab")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), BODY_SECONDS * 2)
        assert not app.left.is_set()
        writer.close()
        await asyncio.wait_for(app.left.wait(), 300)


async def test_an_app_may_answer_for_itself():
    async with serving(App()) as (reader, writer):
        writer.write(CHUNKED % b"handles" + b"3e9\r\n" + b"x" * 1001 + b"\r\n")
        status, _, body = await response(reader)
        assert (status, body) == (413, b"in the app's own words")


async def test_a_response_that_has_begun_is_cut_not_mixed():
    async with serving(App()) as (reader, writer):
        writer.write(CHUNKED % b"started" + b"3e9\r\n" + b"x" * 1001 + b"\r\n")
        answer = await reader.read()
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.endswith(b"begun\r\n")


async def test_a_request_without_a_body_is_served():
    async with serving(App()) as (reader, writer):
        writer.write(b"GET /none HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\n0 bytes")
