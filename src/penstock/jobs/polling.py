"""Asks vendors how orders stand: each alone, or many in one call where the vendor offers that."""

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
"""How long the first poll of a batch waits for others."""
LONGEST_REST: Final = 300.0
"""How long at most a vendor whose batch call does not work is asked for each order alone."""

LONGEST: Final = 10.0
"""A caller likes to see progress, and an order may be done sooner than any before it."""
ENOUGH: Final = 5
"""From how many orders on something can be said of the next."""
REMEMBERED: Final = 100
MAX_WAYS: Final = 1000

Way: TypeAlias = tuple[str, str]
"""A vendor, and its name of the model."""

Standing: TypeAlias = Running | Done | Failed


@dataclass(slots=True)
class _Batch:
    """Polls of one vendor that wait to be asked together."""

    polls: list[tuple[Mapping[str, Any], asyncio.Future[Standing | None]]] = field(
        default_factory=list[tuple[Mapping[str, Any], "asyncio.Future[Standing | None]"]]
    )
    timer: asyncio.TimerHandle | None = None
    failures: int = 0
    rests_until: float = 0.0


class Polling:
    """One for all jobs of a process."""

    def __init__(self, exchange: Exchange, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._exchange = exchange
        self._now = monotonic
        self._batches: dict[tuple[str, str], _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def poll(self, name: str, vendor: GenerationVendor, operation: Mapping[str, Any]) -> Standing:
        """How the order stands."""
        if vendor.batch > 1:
            batch = self._batches.setdefault((name, vendor.options.credential), _Batch())
            if self._now() >= batch.rests_until:
                answer = await self._join(batch, name, vendor, operation)
                if answer is not None:
                    return answer
        return await self._exchange.drive(name, vendor, "poll", vendor.poll(operation))

    async def _join(
        self, batch: _Batch, name: str, vendor: GenerationVendor, operation: Mapping[str, Any]
    ) -> Standing | None:
        """Wait with others; None where the batch could not tell."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Standing | None] = loop.create_future()
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
        polls = [poll for poll in batch.polls if not poll[1].done()]  # whoever was canceled meanwhile is gone
        batch.polls = []
        task = asyncio.create_task(self._ask(batch, name, vendor, polls), name="batch")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(
        self,
        batch: _Batch,
        name: str,
        vendor: GenerationVendor,
        polls: list[tuple[Mapping[str, Any], "asyncio.Future[Standing | None]"]],
    ) -> None:
        answers: Sequence[Standing | None] = ()
        try:
            if len(polls) > 1:
                operations = [operation for operation, _ in polls]
                answers = list(await self._exchange.drive(name, vendor, "poll_many", vendor.poll_many(operations)))
                batch.failures = 0
        except TROUBLE:
            batch.failures += 1
            batch.rests_until = self._now() + min(LONGEST_REST, 2.0 ** min(batch.failures, 10))
        finally:
            for (_, future), answer in zip_longest(polls, answers[: len(polls)]):
                if not future.done():
                    future.set_result(answer)


class Cadence:
    """How long vendors took for the latest orders; bounded."""

    def __init__(self) -> None:
        self._seconds: dict[Way, deque[float]] = {}

    def learn(self, way: Way, seconds: float) -> None:
        """An order was found done so long after it was placed."""
        found = self._seconds.setdefault(way, deque(maxlen=REMEMBERED))
        found.append(seconds)
        if len(self._seconds) > MAX_WAYS:
            del self._seconds[next(iter(self._seconds))]

    def wait(self, way: Way, elapsed: float, eta: float | None, least: float) -> float:
        """How long to wait before the next poll of an order placed `elapsed` seconds ago."""
        return wait_before_poll(self._seconds.get(way, ()), elapsed, eta, least)


def wait_before_poll(known: Sequence[float], elapsed: float, eta: float | None, least: float) -> float:
    """The vendor's word first; else what earlier orders took; else a part of what this one took so far."""
    if eta is not None:
        wait = eta / 4
    elif len(known) < ENOUGH:
        wait = elapsed / 10
    elif elapsed < min(known):
        wait = max(elapsed / 20, 0.9 * min(known) - elapsed)
    else:
        wait = elapsed / 20
    return max(least, min(wait, LONGEST))
