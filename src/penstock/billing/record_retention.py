"""Removal of old records: requests with their ledger entries, events, and the audit log."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from penstock.observability import metrics
from penstock.store.database import Database
from penstock.store.queries.retention import old_audit_rows, old_event_rows, roll_up_rows

BATCH: Final = 500
"""Requests or events that are removed in one transaction: some tens of milliseconds."""
AUDIT_BATCH: Final = 5_000
ACCOUNTS_AT_ONCE: Final = 200
OWNERS_AT_ONCE: Final = 100
PAUSE_SECONDS: Final = 0.05
"""The pause after each transaction, so that requests come first."""

DAY_SECONDS: Final = 86_400.0
WEST_SECONDS: Final = 12 * 3600.0
"""The offset of the time zone in which a month ends last."""
SLACK_SECONDS: Final = 3 * DAY_SECONDS
"""Added to a month: clocks differ, and what a killed server served may be charged later."""
EAST_SECONDS: Final = 14 * 3600.0
"""The offset of the time zone in which a month begins first."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordAges:
    """The ages in seconds at which records are removed; None keeps them forever."""

    requests: float | None = None
    events: float | None = None
    audit: float | None = None

    @property
    def are_endless(self) -> bool:
        """Return whether everything is kept."""
        return self.requests is None and self.events is None and self.audit is None


def cut(now: float, age: float) -> float:
    """Return the moment before which records of this age are removed: a midnight, UTC."""
    return (now - age) // DAY_SECONDS * DAY_SECONDS


def cut_money(now: float, age: float) -> float:
    """Like `cut`, but never within a month that still lasts anywhere: budgets of a month and a day need its entries."""
    lasting = datetime.fromtimestamp(now - WEST_SECONDS - SLACK_SECONDS, UTC).date().replace(day=1)
    began = datetime(lasting.year, lasting.month, 1, tzinfo=UTC).timestamp() - EAST_SECONDS
    return min(cut(now, age), cut(began, 0.0))


class RecordRetention:
    """Removes records past their age, in small transactions. It may stop at any point: the next run continues."""

    def __init__(self, database: Database, get_ages: Callable[[], RecordAges], clock: Callable[[], float]) -> None:
        self._database = database
        self._get_ages = get_ages
        self._clock = clock

    @property
    def is_wanted(self) -> bool:
        """Return whether the settings limit the age of any records."""
        return not self._get_ages().are_endless

    async def run(self) -> None:
        """Remove all records that are past their age now."""
        ages, now = self._get_ages(), self._clock()
        if ages.requests is not None:
            await self._roll_up(cut_money(now, ages.requests))
        if ages.events is not None:
            await self._remove_events(cut(now, ages.events))
        if ages.audit is not None:
            await self._trim_audit(cut(now, ages.audit))

    async def _roll_up(self, until: float) -> None:
        after = ""
        while due := await self._database.read(roll_up_rows.find_due, until, ACCOUNTS_AT_ONCE, after):
            for account_id in due:
                await self._roll_up_account(account_id, until)
            after = due[-1]

    async def _roll_up_account(self, account_id: str, until: float) -> None:
        total = 0
        while count := await self._database.write(roll_up_rows.roll_up, account_id, until, self._clock(), BATCH):
            total += count
            metrics.RECORDS_REMOVED.labels("requests").inc(count)
            await asyncio.sleep(PAUSE_SECONDS)
        owners = await self._database.read(roll_up_rows.owners_of, account_id)
        for start in range(0, len(owners), OWNERS_AT_ONCE):
            await self._database.write(roll_up_rows.remove_balances, owners[start : start + OWNERS_AT_ONCE], until)
        if total:
            log.info("rolled up old requests", extra={"fields": {"account_id": account_id, "requests": total}})

    async def _remove_events(self, until: float) -> None:
        portion = old_event_rows.Portion(0, 0, is_last=False)
        while not portion.is_last:
            portion = await self._database.write(old_event_rows.remove, until, portion.position, BATCH)
            metrics.RECORDS_REMOVED.labels("events").inc(portion.removed)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _trim_audit(self, until: float) -> None:
        while count := await self._database.write(old_audit_rows.remove, until, self._clock(), AUDIT_BATCH):
            metrics.RECORDS_REMOVED.labels("audit").inc(count)
            await asyncio.sleep(PAUSE_SECONDS)
