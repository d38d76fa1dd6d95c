"""Signals: listeners on a job, an account or the queue are woken after the commit that concerns them."""

import asyncio
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

QUEUE = "queue"
"""The topic of newly accepted jobs."""
DELIVERIES = "deliveries"
"""The topic of pending webhook deliveries."""


def nudge(job_id: str) -> str:
    """Return the topic of callers' actions on a job, for the process that runs it."""
    return f"nudge:{job_id}"


def background(process: str) -> str:
    """Return the topic of callers' actions on the background responses that a process runs."""
    return f"background:{process}"


class Subscription:
    """One listener. A signal that comes before `wait` is not missed."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the listener."""
        self._rung.set()

    async def wait(self, seconds: float | None) -> bool:
        """Wait for a signal. Return whether one came in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        rung = self._rung.is_set()
        self._rung.clear()
        return rung


class Signals:
    """Topics and their listeners; used on the event loop only."""

    def __init__(self) -> None:
        self._subscriptions: defaultdict[str, dict[Subscription, None]] = defaultdict(dict)
        """Listeners by topic, in the order in which they came: a set of them would have none."""

    @contextmanager
    def listen(self, topic: str) -> Generator[Subscription]:
        """Listen to a topic while the block runs."""
        subscription = Subscription()
        self._subscriptions[topic][subscription] = None
        try:
            yield subscription
        finally:
            self._subscriptions[topic].pop(subscription, None)
            if not self._subscriptions[topic]:
                del self._subscriptions[topic]

    def is_heard(self, topic: str) -> bool:
        """Return whether anyone listens to a topic in this process."""
        return topic in self._subscriptions

    def ring(self, topics: Iterable[str]) -> None:
        """Wake all listeners of these topics."""
        for topic in topics:
            for subscription in self._subscriptions.get(topic, ()):
                subscription.ring()

    def ring_all(self) -> None:
        """Wake all listeners: the gateway is shutting down."""
        self.ring(list(self._subscriptions))
