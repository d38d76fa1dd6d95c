"""Large reads share the event loop: slices come round robin, and everyone else has a turn in between."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from raw_vendor import OK, Handle, Line, answer, each_loop, ping, post, vendor_of, wire_of

from penstock.fairness.time_slices import SLICE_BYTES, TURN_SECONDS, TimeSlices
from penstock.vendor_api.generation import ReplyLost

CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def use_up_turn() -> None:
    """Work for longer than a turn's budget."""
    end = time.perf_counter() + 2 * TURN_SECONDS
    while time.perf_counter() < end:
        pass


class Work:
    """So many slices, each of which uses up a turn's budget."""

    def __init__(self, name: str, slices: int, log: list[str]) -> None:
        self.name, self.left, self.log = name, slices, log

    def take_slice(self) -> bool:
        use_up_turn()
        self.log.append(self.name)
        self.left -= 1
        return self.left > 0


def note_turns(log: list[str]) -> Callable[[], None]:
    """Note every turn of the loop from now on; return what ends that."""
    loop, handles = asyncio.get_running_loop(), list[asyncio.Handle]()

    def turn() -> None:
        log.append("turn")
        handles[:] = [loop.call_soon(turn)]

    def end() -> None:
        handles[0].cancel()

    turn()
    return end


@each_loop
async def test_slices_come_in_turn_with_the_rest_of_the_loop_between_them():
    log: list[str] = []
    slices = TimeSlices(asyncio.get_running_loop())
    works = [Work(name, 4, log) for name in "abc"]
    for work in works:
        slices.add(work)
    end = note_turns(log)
    while any(work.left for work in works):  # noqa: ASYNC110  turns are counted
        await asyncio.sleep(0)
    end()
    assert [name for name in log if name != "turn"] == [*"abc"] * 4
    assert all("turn" in (first, second) for first, second in pairwise(log))


class Faulty:
    """Work with a mistake in it."""

    def take_slice(self) -> bool:
        raise RuntimeError("a mistake")


async def test_work_that_fails_holds_up_no_other():
    log: list[str] = []
    loop = asyncio.get_running_loop()
    noticed: list[str] = []
    loop.set_exception_handler(lambda _, context: noticed.append(str(context["exception"])))
    slices = TimeSlices(loop)
    work = Work("a", 2, log)
    for each in (Faulty(), work):
        slices.add(each)
    for _ in range(20):
        await asyncio.sleep(0)
    slices.add(later := Work("b", 1, log))
    while later.left:  # noqa: ASYNC110  turns are counted
        await asyncio.sleep(0)
    assert (log, noticed) == (["a", "a", "b"], ["a mistake"])


def saying_at_once(said: bytes, *, closes: bool = False) -> Handle:
    async def handle(line: Line) -> None:
        while True:
            await line.hear()
            await line.say(said)
            if closes:
                line.hang_up()

    return handle


@each_loop
async def test_a_vendor_at_wire_speed_leaves_turns_to_others():
    said = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (100, b"x" * 100) for _ in range(20_000)) + END
    async with vendor_of(saying_at_once(said)) as vendor, wire_of() as wire:
        incoming, log, sizes = await post(wire, vendor.url), list[str](), list[int]()

        def sink(data: bytes) -> bool:
            use_up_turn()
            log.append("slice")
            sizes.append(len(data))
            return True

        end = note_turns(log)
        while not incoming.is_over:
            await incoming.pour(sink)
        end()
        assert sum(sizes) == 2_000_000
        assert max(sizes) <= 2 * SLICE_BYTES
        # One slice may come with the bytes and the next from the queue, in one turn; a third waits for its turn.
        assert all("turn" in three for three in zip(log, log[1:], log[2:], strict=False))
        assert len(vendor.lines) == 1


@pytest.mark.parametrize("room", [1, 1000])
@pytest.mark.parametrize("framing", ["its end", "chunks", "a length", "tiny chunks"])
@each_loop
async def test_all_of_a_large_reply_comes_however_it_ends(framing, room):
    body = bytes(range(256)) * 2_000
    said = {
        "its end": OK + b"\r\n" + body,
        "chunks": CHUNKED + b"%x\r\n%b\r\n" % (len(body), body) + END,
        "a length": OK + b"content-length: %d\r\n\r\n" % len(body) + body,
        "tiny chunks": CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in body[:100_000]) + END,
    }[framing]
    body = body[:100_000] if framing == "tiny chunks" else body
    async with vendor_of(saying_at_once(said, closes=framing == "its end")) as vendor, wire_of() as wire:
        for _ in range(2):
            assert await (await post(wire, vendor.url)).read_all(1 << 20) == body
            incoming, taken, left = await post(wire, vendor.url), bytearray(), room

            def sink(data: bytes, taken: bytearray = taken) -> bool:
                nonlocal left
                taken.extend(data)
                left -= 1
                return left > 0

            while not incoming.is_over:
                left = room
                await incoming.pour(sink)
            assert bytes(taken) == body


@each_loop
async def test_a_large_read_that_is_cut_is_heard_before_the_cut():
    async def cut(line: Line) -> None:
        await line.hear()
        await line.say(CHUNKED + b"%x\r\n%b\r\n" % (200_000, b"x" * 200_000))
        line.hang_up()

    async with vendor_of(cut) as vendor, wire_of() as wire:
        incoming, taken = await post(wire, vendor.url), bytearray()
        with pytest.raises(ReplyLost):
            await incoming.pour(lambda data: taken.extend(data) is None)
        assert len(taken) == 200_000


@each_loop
async def test_a_reader_may_leave_in_the_middle_of_a_large_read():
    said = CHUNKED + b"%x\r\n%b\r\n" % (200_000, b"x" * 200_000)
    async with vendor_of(saying_at_once(said), answer) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)
        await incoming.pour(lambda _: False)
        incoming.close()
        with pytest.raises(ReplyLost):
            await incoming.pour(lambda _: True)
        assert await ping(wire, vendor.url) == b"pong"


@each_loop
async def test_more_than_was_asked_for_is_never_the_next_reply():
    body = b"x" * 50_000
    said = OK + b"content-length: %d\r\n\r\n" % len(body) + body + OK + b"content-length: 4\r\n\r\nevil" + b"y" * 50_000
    async with vendor_of(saying_at_once(said)) as vendor, wire_of() as wire:
        for _ in range(3):
            assert await ping(wire, vendor.url) == body
