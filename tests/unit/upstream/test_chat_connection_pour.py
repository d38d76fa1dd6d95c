"""Replies that are poured: everything comes once and in order, however slow the sink, and no trouble is hidden."""

import asyncio
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from raw_vendor import OK, Line, each_loop, ping, post, vendor_of, wire_of

from penstock.upstream.chat_response import Incoming
from penstock.vendor_api.generation import ReplyLost

CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(text), text)


async def talk(line: Line) -> None:
    """A hundred chunks each time, of many sizes and in odd pieces."""
    while True:
        await line.hear()
        said = CHUNKED + b"".join(chunk(b"<%d>" % number * (1 + number % 7)) for number in range(100)) + END
        await line.say(*(said[start : start + 97] for start in range(0, len(said), 97)))


WHOLE = b"".join(b"<%d>" % number * (1 + number % 7) for number in range(100))


@pytest.mark.parametrize("room", [1, 3, 1000])
@each_loop
async def test_a_sink_gets_everything_however_often_it_has_enough(room):
    async with vendor_of(talk) as vendor, wire_of() as wire:
        for _ in range(3):
            incoming, taken, left = await post(wire, vendor.url), bytearray(), room

            def sink(data: bytes, taken: bytearray = taken) -> bool:
                nonlocal left
                taken.extend(data)
                left -= 1
                return left > 0

            while not incoming.is_over:
                left = room
                await incoming.pour(sink)
            assert bytes(taken) == WHOLE
        assert len(vendor.lines) == 1, "the connection is used again"


class Dummy:
    """A connection that nothing is asked of but that the reply has ended."""

    ended = False

    def finish(self, *, is_reusable: bool) -> None:
        self.ended = is_reusable


@settings(max_examples=300, deadline=None)
@given(
    texts=some.lists(some.text("a1\r\n", min_size=1, max_size=20).map(str.encode), min_size=1, max_size=6),
    forms=some.lists(some.sampled_from([b"%x\r\n", b"%X\r\n", b"00%x\r\n", b"%x;a=b\r\n"]), min_size=6, max_size=6),
    cuts=some.sets(some.integers(0, 150), max_size=12),
)
def test_chunks_may_be_cut_anywhere(texts, forms, cuts):
    """Also where what follows looks like the beginning of a chunk."""
    body = [form % len(text) + text + b"\r\n" for text, form in zip(texts, forms, strict=False)]
    ends = set(accumulate(map(len, body)))
    whole = b"".join(body) + END
    places = sorted({0, len(whole), *ends, *(cut for cut in cuts if cut < len(whole))})
    for chosen in ([0, *sorted(ends), len(whole)], places):
        taken, line = bytearray(), Dummy()
        incoming = Incoming(line)
        incoming.parse(CHUNKED)
        for start, end in pairwise(chosen):
            incoming.sink = sink = lambda data, taken=taken: taken.extend(data) is None
            incoming.deliver(sink, whole[start:end])
        assert bytes(taken) == b"".join(texts[: len(body)])
        assert line.ended


@each_loop
async def test_what_the_sink_raises_reaches_its_reader():
    async def begin(line: Line) -> None:
        await line.hear()
        await line.say(CHUNKED + chunk(b"some"))
        await line.see_end()

    async with vendor_of(begin, talk) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url)

        def fail(_: bytes) -> bool:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await incoming.pour(fail)
        incoming.close()
        assert await ping(wire, vendor.url) == WHOLE


@each_loop
async def test_what_came_before_a_cut_is_poured():
    async def cut(line: Line) -> None:
        await line.hear()
        await line.say(CHUNKED + chunk(b"some"), chunk(b"more"))
        line.hang_up()

    async with vendor_of(cut) as vendor, wire_of() as wire:
        incoming, taken = await post(wire, vendor.url), bytearray()
        with pytest.raises(ReplyLost):
            await incoming.pour(lambda data: taken.extend(data) is None)
        assert bytes(taken) == b"somemore"


@each_loop
async def test_a_vendor_waits_for_a_sink_that_is_full():
    sent = 0

    async def pour_out(line: Line) -> None:
        nonlocal sent
        await line.hear()
        await line.say(CHUNKED)
        for _ in range(500):
            await line.say(chunk(bytes(100_000)))
            sent += 1
        await line.say(END)

    async with vendor_of(pour_out) as vendor, wire_of() as wire:
        incoming, size = await post(wire, vendor.url), 0

        def sink(data: bytes) -> bool:
            nonlocal size
            size += len(data)
            return False

        await incoming.pour(sink)
        before = -1
        while sent > before:  # until the network holds all that it can
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 400
        while not incoming.is_over:
            await incoming.pour(sink)
        assert size == 50_000_000
