"""Deliver events to webhooks: claim due deliveries, send them signed, and record the outcome."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from penstock.domain.ids import timestamp
from penstock.domain.job_errors import JobError
from penstock.domain.webhooks import PING, DeliveryAttempt, PendingDelivery, Status, host_of, lane_of, sign
from penstock.errors import StoreUnavailable
from penstock.fairness.webhook_slots import LINGER_SECONDS, WebhookSlot, WebhookSlots
from penstock.jobs.dialects import DIALECTS
from penstock.jobs.records import RecordBuilder
from penstock.observability import metrics
from penstock.store.database import Database
from penstock.store.queries.webhooks import delivery_rows
from penstock.store.signals import DELIVERIES, Subscription

if TYPE_CHECKING:
    from penstock.safe_fetch.fetcher import SafeFetcher

ATTEMPT_SECONDS: Final = 15.0
POLL_SECONDS: Final = 1.0
"""Seconds between polls without a signal: the writer of an event may die before it signals."""
RECORD_TIMEOUT_SECONDS: Final = 12.0
"""Seconds for which recording an outcome is retried. Soon after that the lease of the delivery ends."""
STOP_TIMEOUT_SECONDS: Final = 2.0
"""Seconds that attempts may take to finish when the process stops."""
MAX_RESPONSE_BYTES: Final = 1024
RETRY_AFTER_STATUSES: Final = (429, 503)
"""Statuses whose `Retry-After` is respected."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of an attempt, with the delay that the endpoint asked for."""

    attempt: DeliveryAttempt
    retry_after: float | None = None


class DeliveryWorker:
    """Sends deliveries from this process, beside any number of other processes."""

    def __init__(
        self,
        database: Database,
        fetcher: "Callable[[], Awaitable[SafeFetcher]]",
        make_records: Callable[[str], RecordBuilder],
        clock: Callable[[], float],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._fetcher = fetcher
        self._make_records = make_records
        self._clock = clock
        self._steady = steady
        self._clock_offset = 0.0
        self._subscription = Subscription()
        self._slots = WebhookSlots()
        self._in_flight: dict[asyncio.Task[None], PendingDelivery] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self, *, alone: bool = False) -> None:
        """Send due deliveries until `stop`.

        With `alone`, no other process sends from this store: deliveries that the last one left unfinished are sent now.
        """
        if alone:
            await self._database.write(delivery_rows.release_all, self._clock())
        self._task = asyncio.create_task(self._work(), name="delivery")

    async def stop(self) -> None:
        """Stop claiming, let attempts in flight finish for a moment, and release the others."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=STOP_TIMEOUT_SECONDS)
        left = dict(self._in_flight)
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        leases = [(pending.delivery.position, pending.delivery.lease) for pending in left.values()]
        with suppress(StoreUnavailable):  # then other processes wait until the leases end
            await self._database.write(delivery_rows.release, leases, self._now())

    async def _work(self) -> None:
        with self._database.signals.listen(DELIVERIES) as self._subscription:
            while True:
                try:
                    wait = await self._begin_due()
                except StoreUnavailable:
                    wait = POLL_SECONDS
                except Exception:
                    log.exception("due webhook deliveries could not be claimed; it is retried")
                    wait = POLL_SECONDS
                if wait > 0:
                    await self._subscription.wait(wait)

    async def _begin_due(self) -> float:
        """Begin the due deliveries. Return the seconds to wait for more, unless a signal comes."""
        if self._slots.is_full:
            return POLL_SECONDS
        asked_at = self._clock()
        due_at, now = await self._database.read(delivery_rows.next_due, asked_at)
        if now != asked_at:  # the store has its own clock
            self._clock_offset = now - self._clock()
        if due_at is None or due_at > now:
            return POLL_SECONDS if due_at is None else min(POLL_SECONDS, due_at - now)
        claimed = await self._claim(now)
        for pending in claimed:
            metrics.WEBHOOK_LAG.observe(max(0.0, now - pending.due_at))
            self._begin(pending)
        return 0.0 if claimed else POLL_SECONDS

    def _begin(self, pending: PendingDelivery) -> None:
        slot = self._slots.take(pending.delivery.account_id, pending.delivery.lane)
        task = asyncio.create_task(self._deliver(pending), name=pending.delivery.id)
        timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._linger, slot)
        self._in_flight[task] = pending
        task.add_done_callback(partial(self._end, slot, timer))

    def _linger(self, slot: WebhookSlot) -> None:
        if self._slots.linger(slot):
            self._subscription.ring()  # its fast slot is free for others

    def _now(self) -> float:
        """Return the time of the store's clock. With clocks of their own, two machines could send one delivery."""
        return self._clock() + self._clock_offset

    async def _claim(self, now: float) -> list[PendingDelivery]:
        """Claim due deliveries. If canceled meanwhile, release them, as nothing else knows of the claim."""
        claiming = asyncio.ensure_future(self._database.write(delivery_rows.claim, now, self._slots.plan()))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):
                leases = [(pending.delivery.position, pending.delivery.lease) for pending in await claiming]
                await self._database.write(delivery_rows.release, leases, self._now())
            raise

    def _end(self, slot: WebhookSlot, timer: asyncio.TimerHandle, task: asyncio.Task[None]) -> None:
        timer.cancel()
        del self._in_flight[task]
        self._slots.give_back(slot)
        self._subscription.ring()  # the next of its endpoint, or one that had no slot, may begin now
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a webhook delivery failed in the gateway; it is retried", exc_info=error)

    # -- one delivery

    async def _deliver(self, pending: PendingDelivery) -> None:
        outcome = await self._attempt(pending)
        self._learn(pending, outcome.attempt)
        status = await self._record(pending, outcome)
        if status is None:
            return
        metrics.WEBHOOK_DELIVERIES.labels("retried" if status is Status.PENDING else status.value).inc()
        if status is Status.FAILED:
            delivery = pending.delivery
            fields = {"delivery": delivery.id, "host": host_of(delivery.url), "status": outcome.attempt.status_code}
            log.warning("a webhook delivery failed for the last time; it is not retried", extra={"fields": fields})

    def _learn(self, pending: PendingDelivery, attempt: DeliveryAttempt) -> None:
        """Remember how the endpoint behaved. A successful ping also proves the webhook that it was sent to."""
        self._slots.learn(pending.delivery.lane, succeeded=attempt.succeeded, seconds=attempt.seconds)
        if pending.delivery.type == PING and attempt.succeeded:
            lane = lane_of(pending.delivery.webhook_id, None)
            self._slots.learn(lane, succeeded=True, seconds=attempt.seconds)

    def compose(self, pending: PendingDelivery, at: float) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of an attempt at this time."""
        body = msgspec.json.encode(self._message(pending))
        return self._headers(pending, body, at), body

    async def _attempt(self, pending: PendingDelivery) -> _Outcome:
        """Send it once. The recorded error names no address."""
        at, begun = self._now(), self._steady()
        headers, body = self.compose(pending, at)
        try:
            fetcher = await self._fetcher()
            posted = await fetcher.post(
                pending.delivery.url, body, headers, seconds=ATTEMPT_SECONDS, max_bytes=MAX_RESPONSE_BYTES
            )
        except JobError as error:
            return _Outcome(DeliveryAttempt(at=at, seconds=self._steady() - begun, error=error.message))
        error = None if 200 <= posted.status < 300 else f"The URL answered {posted.status}; only 2xx counts as success."
        attempt = DeliveryAttempt(
            at=at,
            seconds=self._steady() - begun,
            status_code=posted.status,
            error=error,
            response=posted.beginning.decode("utf-8", "replace").replace("\x00", "�"),
        )
        retry_after = posted.retry_after if posted.status in RETRY_AFTER_STATUSES else None
        return _Outcome(attempt, None if retry_after is None else read_retry_after(retry_after, at))

    async def _record(self, pending: PendingDelivery, outcome: _Outcome) -> Status | None:
        give_up_at = self._steady() + RECORD_TIMEOUT_SECONDS
        while True:
            try:
                return await self._database.write(
                    delivery_rows.record, pending, outcome.attempt, outcome.retry_after, self._now()
                )
            except StoreUnavailable:
                if self._steady() > give_up_at:
                    raise
                await asyncio.sleep(POLL_SECONDS)

    def _message(self, pending: PendingDelivery) -> Mapping[str, Any]:
        """Return the body: the event as all other ways of following a job show it, or as its dialect has it."""
        event, delivery = pending.event, pending.delivery
        if event is None:
            return {
                "type": PING,
                "id": delivery.event_id,
                "created_at": timestamp(delivery.created_at),
                "sequence": delivery.sequence,
                "data": {"webhook_id": delivery.webhook_id},
            }
        own = event.job.webhook if event.job is not None and pending.endpoint.url is None else None
        base_url = pending.endpoint.base_url if own is None else own.get("base_url", "")
        scribe = self._make_records(base_url)
        write = None if own is None else DIALECTS.get(own.get("dialect", ""))
        return scribe.event(event) if write is None or event.job is None else write(event.job, scribe)

    def _headers(self, pending: PendingDelivery, body: bytes, at: float) -> dict[str, str]:
        message_id, moment = pending.delivery.event_id, int(at)
        return {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(moment),
            "webhook-signature": sign(pending.endpoint.secrets_at(at), message_id, moment, body),
        }


def read_retry_after(text: str, now: float) -> float | None:
    """Return the seconds from a number or an HTTP date, or None if the text is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
