"""A reply over the chat wire: whole, cut, strange or hostile; and what the caller is told of it."""

import asyncio

import pytest
from raw_vendor import (
    OK,
    PONG,
    Line,
    PaperLoop,
    answer,
    each_loop,
    listen,
    ping,
    post,
    run_on,
    saying,
    vendor_of,
    wire_of,
)

from penstock.vendor_api.generation import ReplyLost

CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
SIZED = OK + b"content-length: 4\r\n"

# -- whole replies

WHOLE = {
    "a length": (PONG, 200, b"pong", True),
    "no bytes": (OK + b"content-length: 0\r\n\r\n", 200, b"", True),
    "chunks": (CHUNKED + b"2\r\npo\r\n2\r\nng\r\n0\r\n\r\n", 200, b"pong", True),
    "chunks with all that may be": (CHUNKED + b"04;a=b\r\npong\r\n0\r\nstatus: 500\r\n\r\n", 200, b"pong", True),
    "the connection's end": (OK + b"\r\npong", 200, b"pong", None),
    "the connection's end, HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\npong", 200, b"pong", None),
    "HTTP/1.0 with a length": (b"HTTP/1.0 200 OK\r\ncontent-length: 4\r\n\r\npong", 200, b"pong", False),
    "HTTP/1.0 to be kept": (
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 4\r\n\r\npong",
        200,
        b"pong",
        True,
    ),
    "not to be kept": (SIZED + b"connection: close\r\n\r\npong", 200, b"pong", False),
    "not to be kept, in chunks": (CHUNKED[:-2] + b"Connection: Close\r\n\r\n0\r\n\r\n", 200, b"", False),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "no content, with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", 304, b"", True),
    "after an interim reply": (b"HTTP/1.1 100 Continue\r\n\r\n" + PONG, 200, b"pong", True),
    "after two, with headers": (
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\ncontent-length: 0\r\n\r\n" + PONG,
        200,
        b"pong",
        True,
    ),
    "after one that has a body": (b"HTTP/1.1 199 X\r\ncontent-length: 4\r\n\r\nevil" + PONG, 200, b"pong", True),
    "after one that has a length, by its end": (
        b"HTTP/1.1 103 X\r\ncontent-length: 0\r\n\r\n" + OK + b"\r\npong",
        200,
        b"pong",
        None,
    ),
    "an empty line behind": (PONG + b"\r\n", 200, b"pong", True),
    "a failure": (b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\npong", 429, b"pong", True),
    "a status of its own": (b"HTTP/1.1 999 X\r\ncontent-length: 4\r\n\r\npong", 999, b"pong", True),
    "a redirect, which nobody follows": (
        b"HTTP/1.1 307 X\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",
        307,
        b"",
        True,
    ),
}


@pytest.mark.parametrize("step", [1 << 20, 1])
@pytest.mark.parametrize("kind", WHOLE)
@each_loop
async def test_a_whole_reply(kind, step):
    reply, status, body, is_kept = WHOLE[kind]

    async def handle(line: Line) -> None:
        while True:
            await line.hear()
            await line.say(*(reply[start : start + step] for start in range(0, len(reply), step)))
            if is_kept is None:
                return

    async with vendor_of(handle) as vendor, wire_of() as wire:
        for _ in range(2):
            incoming = await post(wire, vendor.url)
            assert (incoming.status, await incoming.read_all(100)) == (status, body)
            assert "link" not in incoming.headers
            assert incoming.is_whole
            assert [await incoming.read_some(), await incoming.read_some()] == [b"", b""]
            incoming.close()
        assert len(vendor.heads) == 2
        assert len(vendor.lines) == (1 if is_kept else 2)


@each_loop
async def test_bytes_are_passed_on_as_they_come():
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(CHUNKED)
        for piece in (b"4\r\npong\r\n", b"1\r\n!\r\n", b"0\r\n\r\n"):
            await told.acquire()
            await line.say(piece)

    told = asyncio.Semaphore(0)
    async with vendor_of(handle) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        got = []
        while not got or got[-1]:
            told.release()
            got.append(await incoming.read_some())
        assert got == [b"pong", b"!", b""]


@each_loop
async def test_headers():
    many = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 100) for number in range(150))
    reply = SIZED + b"X-Mixed:  Case \r\nset-cookie: a\r\nset-cookie: b\r\nx-latin: \xfc\r\n" + many + b"\r\npong"
    async with vendor_of(saying(reply)) as vendor, wire_of() as wire:
        headers = (await post(wire, vendor.url)).headers
        assert len(headers) == 154
        assert (headers["x-mixed"].strip(), headers["set-cookie"], headers["x-latin"]) == ("Case", "b", "ü")
        assert await ping(wire, vendor.url) == b"pong"
        assert b"cookie" not in vendor.heads[1].lower()


def test_a_head_that_comes_with_much_of_its_body_is_not_too_large():
    body = b"x" * (1 << 20)

    async def scenario() -> None:
        async with wire_of() as wire:
            calling = asyncio.create_task(ping(wire, "http://127.0.0.1:9"))
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, PaperLoop)
            for data in (OK, b"content-length: %d\r\n\r\n" % len(body) + body):
                loop.papers[0].protocol.data_received(data)
            assert await calling == body

    run_on(PaperLoop, scenario())


@each_loop
async def test_a_reply_is_read_no_further_than_wanted():
    async with vendor_of(saying(PONG)) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        with pytest.raises(ReplyLost, match="too large"):
            await incoming.read_all(3)


# -- replies that are cut

CUTS = {
    "before the head": (b"", b""),
    "in the first line": (b"HTTP/1.1 2", b""),
    "in the head": (SIZED, b""),
    "after an interim reply": (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    "after the head": (SIZED + b"\r\n", b""),
    "in the body": (SIZED + b"\r\npon", b"pon"),
    "before chunks": (CHUNKED, b""),
    "in a chunk's head": (CHUNKED + b"4\r\npong\r\n1", b"pong"),
    "in a chunk": (CHUNKED + b"4\r\npon", b"pon"),
    "behind a chunk": (CHUNKED + b"4\r\npong", b"pong"),
    "between chunks": (CHUNKED + b"4\r\npong\r\n", b"pong"),
    "in the last chunk": (CHUNKED + b"4\r\npong\r\n0\r\n", b"pong"),
    "before the last line's end": (CHUNKED + b"4\r\npong\r\n0\r\n\r", b"pong"),
    "in another encoding": (OK + b"transfer-encoding: gzip\r\n\r\npong", b"pong"),
}


@pytest.mark.parametrize(
    ("place", "how"),
    [(place, how) for place in CUTS for how in (Line.hang_up, Line.cut_off)]
    + [(place, Line.reset) for place in (*CUTS, "in a body of any length")],
)
@each_loop
async def test_a_cut_reply_is_lost_and_what_came_before_is_not(place, how):
    sent, expected = CUTS.get(place, (OK + b"\r\npong", b"pong"))
    heard = asyncio.Event()

    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(sent)
        if how is Line.reset:
            await heard.wait()
        how(line)

    async with vendor_of(handle, answer) as vendor, wire_of() as wire:
        got = b""
        if b"\r\n\r\n" not in sent.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"):
            heard.set()
            with pytest.raises(ReplyLost):
                await post(wire, vendor.url)
        else:
            incoming = await post(wire, vendor.url)
            while len(got) < len(expected):
                got += await incoming.read_some()
            heard.set()
            for _ in range(2):
                with pytest.raises(ReplyLost):
                    await incoming.read_some()
            assert not incoming.is_whole
            incoming.close()
        assert got == expected
        assert len(vendor.heads) == 1
        assert await ping(wire, vendor.url) == b"pong"


# -- what is no reply, or more than one

STRANGE = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x46",
    "HTTP/0.9": b"<html>hello</html>",
    "HTTP/2": b"HTTP/2 200 OK\r\ncontent-length: 4\r\n\r\npong",
    "no status": b"HTTP/1.1 OK\r\ncontent-length: 4\r\n\r\npong",
    "a request": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "two lengths": SIZED + b"content-length: 5\r\n\r\npong!",
    "a length that is none": OK + b"content-length: -4\r\n\r\npong",
    "a length beyond all": OK + b"content-length: %d\r\n\r\npong" % (1 << 80),
    "a length and chunks": SIZED + b"transfer-encoding: chunked\r\n\r\n4\r\npong\r\n0\r\n\r\n",
    "a folded header": SIZED + b"x: a\r\n b\r\n\x00: c\r\n\r\npong",
    "another protocol on request": b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x04pong",
}


@pytest.mark.parametrize("kind", STRANGE)
@each_loop
async def test_what_is_not_http_is_lost(kind):
    async with vendor_of(saying(STRANGE[kind]), answer) as vendor, wire_of() as wire:
        with pytest.raises(ReplyLost):
            await post(wire, vendor.url)
        await vendor.ends()
        assert await ping(wire, vendor.url) == b"pong"
        assert len(vendor.heads) == 2


@each_loop
async def test_a_body_that_goes_wrong_is_lost_where_it_does():
    async with vendor_of(saying(CHUNKED + b"4\r\npong\r\nsurprise\r\n")) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        assert await incoming.read_some() == b"pong"
        with pytest.raises(ReplyLost):
            await incoming.read_some()


ENDLESS = {
    "a header": (OK + b"x: ", b"y" * 65536),
    "headers": (OK, b"x: y\r\n" * 10_000),
    "interim replies": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 3_000),
    "a trailer": (CHUNKED + b"0\r\nx: ", b"y" * 65536),
    "trailers": (CHUNKED + b"0\r\n", b"x: y\r\n" * 10_000),
}


@pytest.mark.parametrize("kind", ENDLESS)
@each_loop
async def test_a_head_without_end_is_lost(kind):
    begin, more = ENDLESS[kind]

    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(begin)
        for _ in range(1_000):
            await line.say(more)
        unstopped.set()

    unstopped = asyncio.Event()
    async with vendor_of(handle) as vendor, wire_of() as wire:
        with pytest.raises(ReplyLost, match="too large"):
            await (await post(wire, vendor.url)).read_all(100)
        await vendor.ends()
        assert not unstopped.is_set()


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"H", b"evil", b"\r\n\r\nHTTP"])
@pytest.mark.parametrize("reply", [PONG, CHUNKED + b"4\r\npong\r\n0\r\n\r\n", b"HTTP/1.1 304 X\r\n\r\n"])
@each_loop
async def test_what_follows_a_reply_is_never_taken_for_the_next(reply, more):
    async with vendor_of(saying(reply + more), answer) as vendor, wire_of() as wire:
        assert await ping(wire, vendor.url) in {b"pong", b""}
        assert await ping(wire, vendor.url) == b"pong"
        assert len(vendor.lines) == 2


@pytest.mark.parametrize("more", [b"HTTP/1.1 408 Idle\r\ncontent-length: 4\r\nconnection: close\r\n\r\nevil", b"\r\n"])
@each_loop
async def test_what_comes_unasked_ends_the_connection(more):
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(PONG)
        await finished.wait()
        await line.say(more)
        await line.see_end()

    finished = asyncio.Event()
    async with vendor_of(handle, answer) as vendor, wire_of() as wire:
        assert await ping(wire, vendor.url) == b"pong"
        finished.set()
        await vendor.ends()
        assert await ping(wire, vendor.url) == b"pong"
        assert len(vendor.lines) == 2


# -- a reader who leaves, or is slow


@each_loop
async def test_cancelled_before_the_head_the_vendor_sees_it_at_once():
    async with vendor_of(listen, answer) as vendor, wire_of() as wire:
        calling = asyncio.create_task(post(wire, vendor.url))
        while not vendor.heads:  # noqa: ASYNC110  the vendor tells nobody
            await asyncio.sleep(0.001)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await vendor.ends()
        assert await ping(wire, vendor.url) == b"pong"
        assert len(vendor.heads) == 2


@pytest.mark.parametrize("by", ["cancel", "close"])
@each_loop
async def test_left_in_the_body_the_vendor_sees_it_at_once(by):
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(CHUNKED + b"4\r\npong\r\n")
        await line.see_end()

    async with vendor_of(handle, answer) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        assert await incoming.read_some() == b"pong"
        reading = asyncio.create_task(incoming.read_some())
        await asyncio.sleep(0)
        if by == "cancel":
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        incoming.close()
        incoming.close()
        await vendor.ends()
        with pytest.raises(ReplyLost):
            await (incoming.read_some() if by == "cancel" else reading)
        assert await ping(wire, vendor.url) == b"pong"


@each_loop
async def test_a_read_that_was_cancelled_has_taken_nothing():
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(SIZED + b"\r\n")
        await told.wait()
        await line.say(b"pong")

    told = asyncio.Event()
    async with vendor_of(handle) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await incoming.read_some()
        told.set()
        assert await incoming.read_all(100) == b"pong"


@each_loop
async def test_while_the_reader_is_slow_the_vendor_cannot_send_without_end():
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(OK + b"content-length: %d\r\n\r\n" % (64 << 20))
        for _ in range(64):
            await line.say(bytes(1 << 20))
            sent.append(1 << 20)

    sent: list[int] = []
    async with vendor_of(handle) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        before = -1
        while len(sent) != before:
            before = len(sent)
            await asyncio.sleep(0.1)
        assert sum(sent) <= 16 << 20
        size = 0
        while data := await incoming.read_some():
            assert len(data) <= 1 << 20
            size += len(data)
        assert size == 64 << 20


@pytest.mark.parametrize("size", [(256 << 10) - 1, 256 << 10, 300 << 10, 700 << 10])
@each_loop
async def test_a_reply_that_ends_while_too_much_of_it_waits_leaves_the_connection_in_order(size):
    reply = OK + b"content-length: %d\r\n\r\n" % size + bytes(size)
    async with vendor_of(saying(reply)) as vendor, wire_of() as wire:
        for _ in range(3):
            assert len(await (await post(wire, vendor.url)).read_all(1 << 20)) == size
        assert len(vendor.lines) == 1
