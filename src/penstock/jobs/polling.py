"""Poll vendors for the status of orders, one by one or in batches, at intervals learned from earlier orders."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import Done, Failed, GenerationVendor, Running

GATHER_SECONDS: Final = 0.05
"""Seconds that the first poll of a batch waits for others."""
MAX_REST_SECONDS: Final = 300.0
"""The longest time for which a vendor whose batch call fails is polled for each order alone."""

MAX_INTERVAL_SECONDS: Final = 10.0
"""The longest pause between polls: callers want to see progress, and an order may take less time than any before."""
MIN_KNOWN_ORDERS: Final = 5
"""Finished orders of a route that are needed to predict the next one."""
MAX_KNOWN_ORDERS: Final = 100
MAX_ROUTES: Final = 1000

RouteName: TypeAlias = tuple[str, str]
"""A vendor, and its name of the model."""

OrderStatus: TypeAlias = Running | Done | Failed


@dataclass(slots=True)
class _Batch:
    """Polls of one vendor and credential that are sent together."""

    polls: list[tuple[Mapping[str, Any], asyncio.Future[OrderStatus | None]]] = field(
        default_factory=list[tuple[Mapping[str, Any], "asyncio.Future[OrderStatus | None]"]]
    )
    timer: asyncio.TimerHandle | None = None
    failures: int = 0
    rests_until: float = 0.0


class Polling:
    """Sends the polls of all jobs of a process, in batches where the vendor offers that."""

    def __init__(self, exchange: Exchange, steady: Callable[[], float] = time.monotonic) -> None:
        self._exchange = exchange
        self._steady = steady
        self._batches: dict[tuple[str, str], _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def poll(self, name: str, vendor: GenerationVendor, operation: Mapping[str, Any]) -> OrderStatus:
        """Return the status of an order."""
        if vendor.batch > 1:
            batch = self._batches.setdefault((name, vendor.options.credential), _Batch())
            if self._steady() >= batch.rests_until:
                answer = await self._join(batch, name, vendor, operation)
                if answer is not None:
                    return answer
        return await self._exchange.drive(name, vendor, "poll", vendor.poll(operation))

    async def _join(
        self, batch: _Batch, name: str, vendor: GenerationVendor, operation: Mapping[str, Any]
    ) -> OrderStatus | None:
        """Poll together with others. Return None if the batch gave no answer for this order."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[OrderStatus | None] = loop.create_future()
        batch.polls.append((operation, future))
        if len(batch.polls) >= vendor.batch:
            self._send(batch, name, vendor)
        elif batch.timer is None:
            batch.timer = loop.call_later(GATHER_SECONDS, self._send, batch, name, vendor)
        return await future

    def _send(self, batch: _Batch, name: str, vendor: GenerationVendor) -> None:
        if batch.timer is not None:
            batch.timer.cancel()
            batch.timer = None
        polls = [poll for poll in batch.polls if not poll[1].done()]  # without those whose job was canceled meanwhile
        batch.polls = []
        task = asyncio.create_task(self._ask(batch, name, vendor, polls), name="batch")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self,
        batch: _Batch,
        name: str,
        vendor: GenerationVendor,
        polls: list[tuple[Mapping[str, Any], "asyncio.Future[OrderStatus | None]"]],
    ) -> None:
        answers: Sequence[OrderStatus | None] = ()
        try:
            if len(polls) > 1:
                operations = [operation for operation, _ in polls]
                answers = list(await self._exchange.drive(name, vendor, "poll_many", vendor.poll_many(operations)))
                batch.failures = 0
        except TROUBLE:
            batch.failures += 1
            batch.rests_until = self._steady() + min(MAX_REST_SECONDS, 2.0 ** min(batch.failures, 10))
        finally:
            for (_, future), answer in zip_longest(polls, answers[: len(polls)]):
                if not future.done():
                    future.set_result(answer)


class Cadence:
    """Durations of the latest orders of each route, which decide when to poll next."""

    def __init__(self) -> None:
        self._seconds: dict[RouteName, deque[float]] = {}

    def learn(self, route: RouteName, seconds: float) -> None:
        """Record the seconds from placing an order to finding it done."""
        found = self._seconds.setdefault(route, deque(maxlen=MAX_KNOWN_ORDERS))
        found.append(seconds)
        if len(self._seconds) > MAX_ROUTES:
            del self._seconds[next(iter(self._seconds))]

    def wait(self, route: RouteName, elapsed: float, eta: float | None, least: float) -> float:
        """Return the seconds to wait before the next poll of an order placed `elapsed` seconds ago."""
        return wait_before_poll(self._seconds.get(route, ()), elapsed, eta, least)


def wait_before_poll(known: Sequence[float], elapsed: float, eta: float | None, least: float) -> float:
    """Return the seconds until the next poll.

    The vendor's own estimate counts first, then the durations of earlier orders, then the time passed so far.
    """
    if eta is not None:
        wait = eta / 4
    elif len(known) < MIN_KNOWN_ORDERS:
        wait = elapsed / 10
    elif elapsed < min(known):
        wait = max(elapsed / 20, 0.9 * min(known) - elapsed)
    else:
        wait = elapsed / 20
    return max(least, min(wait, MAX_INTERVAL_SECONDS))
