"""Usage records of chat requests: written in batches, off the request path and durable within a second."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from penstock.billing.journal import Journal, find_remains
from penstock.billing.journal_files import JournalFiles
from penstock.domain.ids import new_id
from penstock.domain.usage import Begun, Completion, end_begun
from penstock.errors import StoreUnavailable
from penstock.observability import metrics
from penstock.store.database import Database
from penstock.store.queries.billing import completion_rows, process_lease_rows

WRITE_SECONDS: Final = 0.25
RETRY_SECONDS: Final = 1.0
PROGRESS_SECONDS: Final = 0.25
BATCH_RECORDS: Final = 2_000
MAX_QUEUED_RECORDS: Final = 100_000
"""The number of records that may wait for a store that is away. Beyond it, requests are refused."""

log = logging.getLogger(__name__)


class UnderWay(Protocol):
    """An answer in progress."""

    @property
    def characters(self) -> int:
        """The number of characters received so far."""
        ...


class UsageWriter:
    """Writes every record given to `add` once, also through a store outage or the death of the process."""

    def __init__(
        self,
        database: Database,
        process: str,
        journals: JournalFiles,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._process = process
        self._journals = journals
        self._journal = Journal(journals, process)
        self._clock = clock
        self._first = new_id("chat")
        self._count = 0
        self._under_way: dict[str, tuple[Begun, UnderWay]] = {}
        self._waiting: list[Completion] = []
        self._counted = 0
        self._again = False
        self._turn = asyncio.Lock()  # one batch at a time
        self._writing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raise if no further usage can be recorded."""
        if len(self._waiting) >= MAX_QUEUED_RECORDS:
            raise StoreUnavailable("Too many usage records wait for the store.", retry_after=RETRY_SECONDS)

    def new_id(self) -> str:
        """Return an id for a record. It is a counter, as a random id would cost more than the record."""
        self._count += 1
        return f"{self._first}{self._count:010d}"

    def begin(self, begun: Begun, answer: UnderWay) -> None:
        """Record in the journal that a vendor starts to work on this answer."""
        self._journal.begin(begun)
        self._under_way[begun.id] = begun, answer
        if begun.streamed and self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="progress")

    def add(self, record: Completion) -> None:
        """Queue a record. It is written shortly."""
        if self._under_way.pop(record.id, None) is not None:
            try:
                self._journal.end(record)
            except StoreUnavailable:
                log.exception("a usage record could not be written to the journal; it is still written to the store")
        self._waiting.append(record)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon(), name="usage writer")

    async def stop(self) -> None:
        """Write the remaining records. If the store is away, leave them in the journal."""
        tasks = [task for task in (self._writing, self._watching) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            while self._waiting:
                await self.flush()
        except StoreUnavailable:
            log.warning(
                "store unavailable; usage stays in the journal",
                extra={"fields": {"records": len(self._waiting)}},
            )
            self._journal.leave()
        else:
            self._journal.close()

    async def flush(self) -> None:
        """Write the records that wait now. Later ones are written shortly."""
        async with self._turn:
            left = len(self._waiting)
            while left > 0:
                left -= await self._write_batch()

    async def recover(self) -> None:
        """Write the usage that dead processes left in their journals, and end their leases."""
        for remains in find_remains(self._journals):
            now = self._clock()
            records = [*remains.ended, *(end_begun(begun, seen, now) for begun, seen in remains.under_way)]
            for start in range(0, len(records), BATCH_RECORDS):
                await self._write(remains.process, records[start : start + BATCH_RECORDS], again=True)
            await self._database.write(process_lease_rows.end, remains.process)
            fields = {"records": len(remains.ended), "under_way": len(remains.under_way)}
            log.warning("recovered the usage of a process that died", extra={"fields": fields})
            metrics.JOURNAL_RECOVERED.inc(len(records))

    async def _watch(self) -> None:
        """Record the progress of streams, so that one whose process dies is charged for about what was sent."""
        recorded: dict[str, int] = {}
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            streams = {name: answer.characters for name, (begun, answer) in self._under_way.items() if begun.streamed}
            moved = [(name, seen) for name, seen in streams.items() if seen != recorded.get(name, 0)]
            try:
                if moved:
                    self._journal.progress(moved)
                recorded = streams
            except StoreUnavailable:
                log.exception("the progress of streams could not be written to the journal; it is retried")
            if not streams:
                self._watching = None
                return

    async def _write_soon(self) -> None:
        pause = WRITE_SECONDS
        while self._waiting:
            await asyncio.sleep(pause)
            try:
                async with self._turn:
                    await self._write_batch()
                pause = 0 if len(self._waiting) >= BATCH_RECORDS else WRITE_SECONDS
                if pause:
                    self._compact_journal()
            except StoreUnavailable:
                pause = RETRY_SECONDS
                log.warning("store unavailable; usage records wait", extra={"fields": {"records": len(self._waiting)}})
            except Exception:
                pause = RETRY_SECONDS
                log.exception("writing usage records failed; it is retried")
        self._writing = None

    def _compact_journal(self) -> None:
        try:
            under_way = ((begun, answer.characters) for begun, answer in self._under_way.values())
            self._journal.compact(under_way, self._waiting)
        except StoreUnavailable:
            log.exception("the journal could not be compacted; it keeps its records")

    async def _write_batch(self) -> int:
        """Write one batch. Return the number of records written."""
        batch = self._waiting[:BATCH_RECORDS]
        if not batch:
            return 0
        metrics.count_completions(batch[self._counted :])
        self._counted = len(batch)
        again, self._again = self._again, True  # until the write is known to be committed
        await self._write(self._process, batch, again=again)  # taken off only when written
        del self._waiting[: len(batch)]
        self._counted = 0
        self._again = False
        return len(batch)

    async def _write(self, process: str, batch: Sequence[Completion], *, again: bool) -> None:
        try:
            doubtful = await self._database.write(completion_rows.add_all, process, batch, self._clock(), again=again)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("a batch of usage records was rejected; its records are written one by one")
            for record in batch:
                await self._write_alone(process, record)
        else:
            if doubtful:
                fields = {"records": len(doubtful), "oldest": min(record.created_at for record in doubtful)}
                log.error(
                    "usage records older than their account's checkpoint are not charged", extra={"fields": fields}
                )

    async def _write_alone(self, process: str, record: Completion) -> None:
        """Write one record by itself, so that a record that the store rejects does not block the others."""
        try:
            await self._database.write(completion_rows.add_all, process, [record], self._clock(), again=True)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("a usage record was rejected and is lost", extra={"fields": {"record": repr(record)}})
