"""The chat wire's connections: used again, never for two at once, and what is sent on them is never sent twice."""

import asyncio
import gc
import tracemalloc

import pytest
from raw_vendor import OK, PONG, Clock, Line, PaperLoop, answer, each_loop, ping, post, run_on, vendor_of, wire_of
from work import count_lines

from penstock.upstream.chat_connection import MAX_IDLE, ChatConnections, Incoming
from penstock.vendor_api.generation import ReplyLost

# -- connections are shared, and nothing is sent twice


@each_loop
async def test_two_calls_at_once_use_two_connections_and_the_next_use_them_again():
    async def handle(line: Line) -> None:
        while True:
            await line.hear()
            arrived.release()
            await both.wait()
            await line.say(PONG)

    arrived, both = asyncio.Semaphore(0), asyncio.Event()
    async with vendor_of(handle) as vendor, wire_of() as wire:
        for _ in range(3):
            calls = [asyncio.create_task(ping(wire, vendor.url)) for _ in range(2)]
            await arrived.acquire()
            await arrived.acquire()
            both.set()
            assert await asyncio.gather(*calls) == [b"pong", b"pong"]
            both.clear()
        assert len(vendor.lines) == 2
        assert len(vendor.heads) == 6


@each_loop
async def test_addresses_do_not_share_connections():
    async with vendor_of(answer) as one, vendor_of(answer) as other, wire_of() as wire:
        for _ in range(2):
            await ping(wire, one.url)
            await ping(wire, other.url)
        assert (len(one.lines), len(other.lines)) == (1, 1)
        await ping(wire, one.url.replace("127.0.0.1", "localhost"))
        assert len(one.lines) == 2


@each_loop
async def test_a_connection_that_the_vendor_closed_is_not_used_again():
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(PONG)

    async with vendor_of(handle) as vendor, wire_of() as wire:
        for count in range(1, 4):
            assert await ping(wire, vendor.url) == b"pong"
            await vendor.ends()
            for _ in range(10):  # until that is known here
                await asyncio.sleep(0.005)
            assert len(vendor.heads) == len(vendor.lines) == count


@pytest.mark.parametrize("how", [Line.cut_off, Line.reset, Line.hang_up])
@pytest.mark.parametrize("when", ["before the call", "as it comes"])
@each_loop
async def test_a_connection_closed_under_a_call_loses_it_and_nothing_is_sent_again(how, when):
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(PONG)
        if when == "as it comes":
            await line.hear()
            how(line)
        else:
            await line.see_end()

    async with vendor_of(handle, answer) as vendor, wire_of() as wire:
        assert await ping(wire, vendor.url) == b"pong"
        if when == "before the call":
            how(vendor.lines[0])  # known here only after the call is made
        with pytest.raises(ReplyLost):
            await post(wire, vendor.url)
        assert len(vendor.heads) == (2 if when == "as it comes" else 1)
        assert len(vendor.lines) == 1
        assert await ping(wire, vendor.url) == b"pong"
        assert len(vendor.lines) == 2


@each_loop
async def test_closing_a_reply_that_has_ended_leaves_the_next_alone():
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(PONG)
        await line.hear()
        await line.say(OK + b"content-length: 8\r\n\r\npong")
        await closed.wait()
        await line.say(b"pong")

    closed = asyncio.Event()
    async with vendor_of(handle) as vendor, wire_of() as wire:
        first = await post(wire, vendor.url)
        await first.read_all(100)
        second = await post(wire, vendor.url)
        first.close()
        closed.set()
        assert await second.read_all(100) == b"pongpong"
        assert len(vendor.lines) == 1


async def test_a_call_cancelled_as_its_reply_ends_leaves_the_next_alone():
    """The reply has come, its connection serves another call, and only then the first caller learns that it left."""

    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(PONG)
        loop.call_soon(follow)  # before the reply is read; what follows runs after that, and before its caller
        await line.hear()
        await line.say(PONG)

    def follow() -> None:
        calls.append(loop.create_task(ping(wire, vendor.url)))
        loop.call_soon(calls[0].cancel)

    loop = asyncio.get_running_loop()
    calls: list[asyncio.Task[bytes]] = []
    async with vendor_of(handle) as vendor, wire_of() as wire:
        calls.append(loop.create_task(ping(wire, vendor.url)))
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        assert await calls[1] == b"pong"
        assert len(vendor.lines) == 1  # or it was not as this test wants it


# -- connections that nobody uses


@pytest.mark.parametrize("calls", [0, 1])
def test_after_fifteen_seconds_a_connection_is_not_kept(calls):
    async def scenario() -> None:
        async with vendor_of(answer) as vendor, wire_of() as wire:
            await ping(wire, vendor.url)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, Clock)
            loop.ahead = 14
            await ping(wire, vendor.url)
            assert len(vendor.lines) == 1
            loop.ahead += 16
            for _ in range(calls):
                await ping(wire, vendor.url)
            await vendor.ends()
            assert len(vendor.lines) == 1 + calls

    run_on(Clock, scenario())


@each_loop
async def test_a_closed_wire_keeps_nothing_and_lets_calls_end():
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(OK + b"content-length: 4\r\n\r\n")
        await closed.wait()
        await line.say(b"pong")
        await line.see_end()

    closed = asyncio.Event()
    async with vendor_of(answer) as idle, vendor_of(handle) as busy:
        wire = ChatConnections()
        await ping(wire, idle.url)
        incoming = await post(wire, busy.url)
        wire.close()
        await idle.ends()
        closed.set()
        assert await incoming.read_all(100) == b"pong"
        await busy.ends()


def test_thousands_of_calls_cost_little_and_not_all_their_connections_are_kept():
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PaperLoop)
        async with wire_of() as wire:
            await post_many(wire, 1)
            tracemalloc.start()
            await post_many(wire, 2_000)
            used, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert used / 2_000 < 8_000
            for paper in loop.papers:
                paper.protocol.data_received(b"4\r\npong\r\n0\r\n\r\n")
            kept = [paper for paper in loop.papers if not paper.is_cut]
            assert len(kept) == MAX_IDLE
            lines = [count_lines(lambda paper=paper: paper.protocol.connection_lost(None)) for paper in kept]
            assert max(lines) < 50, "to lose one costs no look at the others"

    async def post_many(wire: ChatConnections, count: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PaperLoop)
        before = len(loop.papers)
        calls = [asyncio.create_task(post(wire, "http://127.0.0.1:9")) for _ in range(count)]
        await asyncio.sleep(0)
        for paper in loop.papers[before:]:
            paper.protocol.data_received(OK + b"transfer-encoding: chunked\r\n\r\n")
        await asyncio.gather(*calls)

    run_on(PaperLoop, scenario())


@each_loop
async def test_a_call_leaves_nothing_for_the_garbage_collector():
    async with vendor_of(answer) as vendor, wire_of() as wire:
        await ping(wire, vendor.url)
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                await ping(wire, vendor.url)
            assert sum(isinstance(thing, Incoming) for thing in gc.get_objects()) == 0
        finally:
            gc.enable()
