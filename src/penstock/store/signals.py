"""Who waits for news of a job, an account or the queue is woken after the commit that made the news."""

import asyncio
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

QUEUE = "queue"
"""The topic of newly accepted jobs."""
DELIVERIES = "deliveries"
"""The topic of what is to be told to webhooks."""


def nudge(job_id: str) -> str:
    """The topic of what callers do to a job, for whoever works on it."""
    return f"nudge:{job_id}"


class Subscription:
    """One listener. A ring that comes before `wait` is not missed."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the listener."""
        self._rung.set()

    async def wait(self, seconds: float | None) -> bool:
        """Wait for a ring; False if none came in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        rung = self._rung.is_set()
        self._rung.clear()
        return rung


class Signals:
    """Topics and their listeners; used on the event loop only."""

    def __init__(self) -> None:
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)

    @contextmanager
    def listen(self, topic: str) -> Generator[Subscription]:
        """Listen as long as the block runs."""
        subscription = Subscription()
        self._subscriptions[topic].add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions[topic].discard(subscription)
            if not self._subscriptions[topic]:
                del self._subscriptions[topic]

    def ring(self, topics: Iterable[str]) -> None:
        """Wake everyone who listens to any of these."""
        for topic in topics:
            for subscription in self._subscriptions.get(topic, ()):
                subscription.ring()

    def ring_all(self) -> None:
        """Wake everyone: the gateway is shutting down."""
        self.ring(list(self._subscriptions))
