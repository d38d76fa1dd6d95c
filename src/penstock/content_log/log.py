"""The writer of the content log: off the loop it redacts, compresses and seals, and it writes in batches.

It never delays or fails a request. A record for which there is no room, no key or no store is dropped and counted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from penstock.clocks import Clocks
from penstock.content_log.queue import ContentQueue
from penstock.domain.content.records import (
    PURPOSE,
    ContentEntry,
    ContentFacts,
    ContentPolicy,
    SealedContent,
    pack,
    place_of,
    redact,
)
from penstock.errors import PenstockError, StoreUnavailable
from penstock.observability import contents, metrics
from penstock.sealing.sealer import Sealer
from penstock.sealing.vault import Vault
from penstock.store.database import Database
from penstock.store.queries.chat import content_rows

T = TypeVar("T")

WRITE_SECONDS: Final = 0.25
RETRY_SECONDS: Final = 1.0
REST_FACTOR: Final = 3.0
"""The writer rests so many times as long as its work took: a flood of records never takes the processor."""
MAX_REST_SECONDS: Final = 5.0
STOP_SECONDS: Final = 5.0
"""Time that a stop leaves for the records that wait."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A record ready for the store, with its document for the export."""

    entry: ContentEntry
    record: SealedContent
    document: dict[str, Any] | None


class ContentLog:
    """The way into the content log; one per process."""

    def __init__(self, database: Database, vault: Vault, policy: Callable[[], ContentPolicy], clocks: Clocks) -> None:
        self._database = database
        self._vault = vault
        self._policy = policy
        self._clock, self._steady = clocks
        self._queue = ContentQueue()
        self._writing: asyncio.Task[None] | None = None
        self._is_failing = False
        metrics.CONTENT_HELD.set_function(lambda: self._queue.held)

    @property
    def is_on(self) -> bool:
        """Return whether the settings allow the log at all."""
        return self._policy().retention_seconds > 0

    @property
    def max_answer_bytes(self) -> int:
        """Return the most bytes of a stream that are kept: its events are much longer than its text."""
        return self._policy().max_characters * 32

    def try_hold(self, account_id: str, size: int) -> bool:
        """Take memory for a request or a part of its answer. Return False if there is none."""
        return self._queue.try_hold(account_id, size)

    def give_back(self, account_id: str, size: int) -> None:
        """Return memory of something that is not logged after all."""
        self._queue.give_back(account_id, size)

    def drop(self, reason: str, number: int = 1) -> None:
        """Count records that are not written."""
        metrics.CONTENT_DROPPED.count(reason, number=number)

    def add(self, entry: ContentEntry) -> None:
        """Queue a record whose memory is held. It is written shortly."""
        self._queue.add(entry)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon(), name="content log")

    async def flush(self) -> None:
        """Wait until the records that wait now are written or dropped."""
        if self._writing is not None:
            await asyncio.shield(self._writing)

    async def stop(self) -> None:
        """Write the records that wait, as far as that is quick. Drop the rest."""
        if self._writing is not None:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await asyncio.shield(self._writing)
            except TimeoutError:
                self._writing.cancel()
                await asyncio.gather(self._writing, return_exceptions=True)
        if self._queue.length:
            self.drop("stopped", self._queue.length)

    async def _write_soon(self) -> None:
        pause = WRITE_SECONDS
        try:
            while self._queue.length:
                await asyncio.sleep(pause)
                batch = self._queue.take_batch()
                began = self._steady()
                try:
                    await self._write_batch(batch)
                except asyncio.CancelledError:
                    self.drop("stopped", len(batch))
                    raise
                finally:
                    for entry in batch:
                        self._queue.give_back(entry.facts.account_id, entry.held)
                took = self._steady() - began
                pause = min(max(WRITE_SECONDS, took * REST_FACTOR), MAX_REST_SECONDS)
        finally:
            self._writing = None

    async def _write_batch(self, batch: Sequence[ContentEntry]) -> None:
        """Write one batch, or drop it. A store that is away is waited for."""
        policy = self._policy()
        try:
            sealer = await self._until_store(self._vault.sealer)
            prepare = partial(_prepare_all, batch, policy, sealer, self._clock())
            prepared = await asyncio.to_thread(prepare)
            self.drop("redaction", len(batch) - len(prepared))
            records = [each.record for each in prepared]
            add = lambda: self._database.write(content_rows.add_all, records, policy.quota_bytes)  # noqa: E731
            self.drop("removed", await self._until_store(add))
        except PenstockError as error:
            self._fail("sealing", error.message, len(batch))
        except Exception as error:  # noqa: BLE001  such as a full disk; a traceback could quote content
            self._fail("store", type(error).__name__, len(batch))
        else:
            metrics.CONTENT_WRITTEN.inc(len(records))
            self._recover()
            if policy.is_exported:
                for each in prepared:
                    contents.emit(each.entry.facts, each.document or {}, each.entry.trace)

    async def _until_store(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer of the store. Wait while it is away: the queue is bounded meanwhile."""
        while True:
            try:
                return await ask()
            except StoreUnavailable as error:
                self._warn("store unavailable; content records wait", error.message)
                await asyncio.sleep(RETRY_SECONDS)

    def _fail(self, reason: str, problem: str, number: int) -> None:
        self.drop(reason, number)
        self._warn("content records were dropped; requests go on", problem)

    def _warn(self, message: str, problem: str) -> None:
        """Log a problem once, until the log works again."""
        if not self._is_failing:
            self._is_failing = True
            log.warning(message, extra={"fields": {"reason": problem}})

    def _recover(self) -> None:
        if self._is_failing:
            self._is_failing = False
            log.info("content records are written again")


def _prepare_all(batch: Sequence[ContentEntry], policy: ContentPolicy, sealer: Sealer, now: float) -> list[Prepared]:
    """Return the records that could be redacted and sealed. What cannot be redacted is never stored."""
    prepared: list[Prepared] = []
    for entry in batch:
        try:
            prepared.append(_prepare(entry, policy, sealer, now))
        except Exception as error:  # noqa: BLE001  the content may be anything, and may not be in the log
            fields = {"request_id": entry.facts.request_id, "problem": type(error).__name__}
            log.warning("a content record could not be redacted and was dropped", extra={"fields": fields})
    return prepared


def _prepare(entry: ContentEntry, policy: ContentPolicy, sealer: Sealer, now: float) -> Prepared:
    facts: ContentFacts = entry.facts
    document = redact(entry.read(), policy.redactor(), policy.max_characters)
    sealed = sealer.seal(PURPOSE, place_of(facts.account_id, facts.id), pack(document))
    record = SealedContent(facts, now + policy.retention_seconds, sealed)
    return Prepared(entry, record, document if policy.is_exported else None)
