"""Progress channels: lost ones are opened again, more and more seldom, and refused ones are left alone."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from still_loop import run_still, still_loop

from penstock.jobs.progress import MAX_LOSSES, ProgressChannels
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.generation import (
    Call,
    GenerationDefaults,
    GenerationVendor,
    ProgressChannel,
    ReplyLost,
    Running,
    Unclear,
)


class Talker(GenerationDefaults):
    """A vendor whose messages are numbers from 0 to 1."""

    def progress_channel(self, operation: Mapping[str, Any]) -> ProgressChannel:
        return ProgressChannel(Call("GET", f"/ws/{operation['id']}"), lambda text: Running(float(text)))


@dataclass
class Line:
    """Stands in for the exchange: each connection brings its messages and is lost, or fails."""

    plan: list[list[str] | Exception] = field(default_factory=list[list[str] | Exception])
    opened: int = 0

    @asynccontextmanager
    async def listen(self, _name: str, _vendor: Any, _call: Call) -> AsyncGenerator[AsyncIterator[str]]:
        self.opened += 1
        step = self.plan.pop(0) if self.plan else ReplyLost("lost")
        if isinstance(step, Exception):
            raise step
        yield _say(step)


async def _say(texts: list[str]) -> AsyncIterator[str]:
    for text in texts:
        yield text


def open_channels(line: Line) -> ProgressChannels:
    return ProgressChannels(cast("Exchange", line))


TALKER = cast("GenerationVendor", Talker())


def test_a_lost_channel_is_opened_again_after_pauses_that_grow():
    async def scenario() -> None:
        line = Line([["0.1"], ["0.2", "?", "{}"]])
        feed = open_channels(line).open("talker", TALKER, {"id": "1"}, "job_1-1")
        assert feed is not None
        await still_loop().put_forward(0)
        assert (line.opened, feed.take(), feed.heard.is_set()) == (1, (Running(0.1), True), False)
        for seconds, opened in ((1.9, 1), (0.2, 2), (1.9, 2), (0.2, 3), (3.9, 3), (0.2, 4)):
            await still_loop().put_forward(seconds)
            assert line.opened == opened
        assert feed.take() == (Running(0.2), True), "a poll follows each connection"
        await still_loop().put_forward(1000)
        await still_loop().put_forward(1000)
        assert line.opened == MAX_LOSSES + 1
        assert feed.task is not None
        assert feed.task.done()

    run_still(scenario())


def test_a_refused_channel_is_not_asked_for_again():
    async def scenario() -> None:
        line = Line([Unclear("HTTP 404")])
        channels = open_channels(line)
        feed = channels.open("talker", TALKER, {"id": "1"}, "job_1-1")
        assert feed is not None
        await still_loop().put_forward(1000)
        assert (line.opened, feed.heard.is_set()) == (1, False)

    run_still(scenario())


def test_an_operation_that_the_vendor_does_not_understand_has_no_channel():
    assert open_channels(Line()).open("talker", TALKER, {}, "job_1-1") is None
    assert open_channels(Line()).open("old", cast("GenerationVendor", GenerationDefaults()), {}, "job_1-1") is None


def test_a_closed_feed_ends_its_connection():
    async def scenario() -> None:
        line = Line()
        channels = open_channels(line)
        feeds = [channels.open("talker", TALKER, {"id": "1"}, "job_1-1") for _ in range(2)]
        await still_loop().put_forward(0)
        assert feeds[0] is not None
        feeds[0].close()
        await channels.close()
        await still_loop().put_forward(1000)
        assert line.opened == len(feeds)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_still(scenario())
