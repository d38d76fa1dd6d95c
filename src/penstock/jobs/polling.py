"""Asks vendors how orders stand: each alone, or many in one call where the vendor offers that."""

import asyncio
import time
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
