"""Listen to vendors' progress channels. Polls stay the truth: nothing that happens here can fail a job."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import GenerationVendor, ProgressChannel, Running, Unclear

MAX_CHANNELS: Final = 64
"""Channels that a process holds at once; other jobs are only polled."""
MAX_LOSSES: Final = 5
"""Losses in a row, without a message in between, after which a channel is given up."""
MAX_PAUSE_SECONDS: Final = 30.0
POLL: Final = Running(poll_after=0.0)
"""News that ask for a poll. One follows each connection: what happened before it was not heard."""

T = TypeVar("T")
log = logging.getLogger(__name__)


class ProgressFeed:
    """The latest news of one order. Older news are dropped: a reader needs the last only."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        self.heard = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._news: Running | None = None
        self._is_poll_due = False

    def put(self, news: Running) -> None:
        """Keep news, or the wish for a poll."""
        if news.poll_after == 0:
            self._is_poll_due = True
        else:
            self._news = news
        self.heard.set()

    def take(self) -> tuple[Running | None, bool]:
        """Return the news since the last call, if there are any, and whether a poll is due."""
        taken = self._news, self._is_poll_due
        self._news, self._is_poll_due = None, False
        self.heard.clear()
        return taken

    def close(self) -> None:
        """Stop listening."""
        if self.task is not None:
            self.task.cancel()


class ProgressChannels:
    """All progress channels of a process."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._tasks: set[asyncio.Task[None]] = set()

    def open(
        self, name: str, vendor: GenerationVendor, operation: Mapping[str, Any], reference: str
    ) -> ProgressFeed | None:
        """Listen to an order until the feed is closed. Return None if it has no channel, or too many are open."""
        if vendor.upstream is not None or len(self._tasks) >= MAX_CHANNELS:
            return None
        channel = _try(lambda: vendor.progress_channel(operation))
        if channel is None:
            return None
        feed = ProgressFeed(reference)
        feed.task = asyncio.create_task(self._listen(name, vendor, channel, feed), name="progress channel")
        self._tasks.add(feed.task)
        feed.task.add_done_callback(self._tasks.discard)
        return feed

    async def close(self) -> None:
        """Close every channel."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, name: str, vendor: GenerationVendor, channel: ProgressChannel, feed: ProgressFeed) -> None:
        """Connect, again after each loss, and pass on what the messages say."""
        losses = 0
        while True:
            try:
                async with self._exchange.listen(name, vendor, channel.call) as messages:
                    feed.put(POLL)
                    async for message in messages:
                        losses = 0
                        if news := _try(partial(channel.read, message)):
                            feed.put(news)
            except Unclear:
                fields = {"vendor": name}
                log.info("vendor refuses the progress channel; the job is only polled", extra={"fields": fields})
                return
            except TROUBLE:
                pass
            losses += 1
            if losses >= MAX_LOSSES:
                return
            await asyncio.sleep(min(MAX_PAUSE_SECONDS, 2.0**losses))


def _try(ask: Callable[[], T]) -> T | None:
    """Return a vendor's answer; None if it does not understand a message or an operation."""
    try:
        return ask()
    except (Unclear, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        return None
