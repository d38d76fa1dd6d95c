"""Tells webhooks what happened: takes due deliveries on, sends them signed, and writes down how it went."""

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
from penstock.jobs.records import RecordBuilder
from penstock.observability import metrics
from penstock.store.database import Database
from penstock.store.queries.webhooks import delivery_rows
from penstock.store.signals import DELIVERIES, Subscription

if TYPE_CHECKING:
    from penstock.safe_fetch.fetcher import SafeFetcher

ATTEMPT_SECONDS: Final = 15.0
POLL_SECONDS: Final = 1.0
"""How often to look without being told: whoever wrote may have died before it could ring."""
RECORD_SECONDS: Final = 12.0
"""How long an outcome is kept for a store that is away; then the lease is over soon."""
GRACE_SECONDS: Final = 2.0
"""How long what is being sent may go on when the process stops."""
MAX_RESPONSE: Final = 1024
OBEYED: Final = (429, 503)
"""Whose `Retry-After` counts."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of an attempt."""

    attempt: DeliveryAttempt
    retry_after: float | None = None


class DeliveryWorker:
    """Sends from this process; any number of others may do the same."""

    def __init__(
        self,
        database: Database,
        fetcher: "Callable[[], Awaitable[SafeFetcher]]",
        scribe: Callable[[str], RecordBuilder],
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._fetcher = fetcher
        self._scribe = scribe
        self._clock = clock
        self._behind = 0.0
        self._subscription = Subscription()
        self._places = WebhookSlots()
        self._under_way: dict[asyncio.Task[None], PendingDelivery] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self, *, alone: bool = False) -> None:
        """Send what is due, until `stop`.

        Alone, nobody else sends from this store: what was being sent when the last one ended is sent anew at once.
        """
        if alone:
            await self._database.write(delivery_rows.release_all, self._clock())
        self._task = asyncio.create_task(self._work(), name="delivery")

    async def stop(self) -> None:
        """Take nothing on any more; what is being sent may end, and what does not is given back."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=GRACE_SECONDS)
        left = dict(self._under_way)
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        leases = [(parcel.delivery.position, parcel.delivery.lease) for parcel in left.values()]
        with suppress(StoreUnavailable):  # then others wait until the leases are over
            await self._database.write(delivery_rows.release, leases, self._now())

    async def _work(self) -> None:
        with self._database.signals.listen(DELIVERIES) as self._subscription:
            while True:
                try:
                    wait = await self._take_on()
                except StoreUnavailable:
                    wait = POLL_SECONDS
                except Exception:
                    log.exception("webhooks could not be looked for; tried again")
                    wait = POLL_SECONDS
                if wait > 0:
                    await self._subscription.wait(wait)

    async def _take_on(self) -> float:
        """Begin with what is due; how long there is nothing more to do, if nobody rings."""
        if self._places.is_full:
            return POLL_SECONDS
        asked_at = self._clock()
        due_at, now = await self._database.read(delivery_rows.next_due, asked_at)
        if now != asked_at:  # the store has a clock of its own
            self._behind = now - self._clock()
        if due_at is None or due_at > now:
            return POLL_SECONDS if due_at is None else min(POLL_SECONDS, due_at - now)
        parcels = await self._claim(now)
        for parcel in parcels:
            metrics.WEBHOOK_LAG.observe(max(0.0, now - parcel.due_at))
            self._begin(parcel)
        return 0.0 if parcels else POLL_SECONDS

    def _begin(self, parcel: PendingDelivery) -> None:
        seat = self._places.take(parcel.delivery.account_id, parcel.delivery.lane)
        task = asyncio.create_task(self._deliver(parcel), name=parcel.delivery.id)
        timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._linger, seat)
        self._under_way[task] = parcel
        task.add_done_callback(partial(self._end, seat, timer))

    def _linger(self, seat: WebhookSlot) -> None:
        if self._places.linger(seat):
            self._subscription.ring()  # others may have its fast place

    def _now(self) -> float:
        """By the clock that all machines share: theirs differ, and one that is ahead would send what others send."""
        return self._clock() + self._behind

    async def _claim(self, now: float) -> list[PendingDelivery]:
        """What is due; whoever is stopped meanwhile gives back what it has taken on: nobody would know of it."""
        claiming = asyncio.ensure_future(self._database.write(delivery_rows.claim, now, self._places.plan()))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):
                leases = [(parcel.delivery.position, parcel.delivery.lease) for parcel in await claiming]
                await self._database.write(delivery_rows.release, leases, self._now())
            raise

    def _end(self, seat: WebhookSlot, timer: asyncio.TimerHandle, task: asyncio.Task[None]) -> None:
        timer.cancel()
        del self._under_way[task]
        self._places.give_back(seat)
        self._subscription.ring()  # what comes after it, or had no room, may go now
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a webhook was not told; it is tried again", exc_info=error)

    # -- one delivery

    async def _deliver(self, parcel: PendingDelivery) -> None:
        outcome = await self._attempt(parcel)
        self._learn(parcel, outcome.attempt)
        status = await self._record(parcel, outcome)
        if status is None:
            return
        metrics.WEBHOOK_DELIVERIES.labels("retried" if status is Status.PENDING else status.value).inc()
        if status is Status.FAILED:
            delivery = parcel.delivery
            fields = {"delivery": delivery.id, "host": host_of(delivery.url), "status": outcome.attempt.status_code}
            log.warning("a webhook was not told and is not tried again", extra={"fields": fields})

    def _learn(self, parcel: PendingDelivery, attempt: DeliveryAttempt) -> None:
        """Remember how the endpoint behaved. A ping that is taken also proves the webhook that it was sent to."""
        self._places.learn(parcel.delivery.lane, succeeded=attempt.succeeded, seconds=attempt.seconds)
        if parcel.delivery.type == PING and attempt.succeeded:
            lane = lane_of(parcel.delivery.webhook_id, None)
            self._places.learn(lane, succeeded=True, seconds=attempt.seconds)

    async def _attempt(self, parcel: PendingDelivery) -> _Outcome:
        """Send it once. What went wrong is told in words that name no address."""
        at, begun = self._now(), time.monotonic()
        body = msgspec.json.encode(self._message(parcel))
        headers = self._headers(parcel, body, at)
        try:
            fetcher = await self._fetcher()
            posted = await fetcher.post(
                parcel.delivery.url, body, headers, seconds=ATTEMPT_SECONDS, max_bytes=MAX_RESPONSE
            )
        except JobError as error:
            return _Outcome(DeliveryAttempt(at=at, seconds=time.monotonic() - begun, error=error.message))
        error = None if 200 <= posted.status < 300 else f"The URL answered {posted.status}; only 2xx is success."
        attempt = DeliveryAttempt(
            at=at,
            seconds=time.monotonic() - begun,
            status_code=posted.status,
            error=error,
            response=posted.beginning.decode("utf-8", "replace").replace("\x00", "�"),
        )
        wish = posted.retry_after if posted.status in OBEYED else None
        return _Outcome(attempt, None if wish is None else read_retry_after(wish, at))

    async def _record(self, parcel: PendingDelivery, outcome: _Outcome) -> Status | None:
        give_up_at = time.monotonic() + RECORD_SECONDS
        while True:
            try:
                return await self._database.write(
                    delivery_rows.record, parcel, outcome.attempt, outcome.retry_after, self._now()
                )
            except StoreUnavailable:
                if time.monotonic() > give_up_at:
                    raise
                await asyncio.sleep(POLL_SECONDS)

    def _message(self, parcel: PendingDelivery) -> Mapping[str, Any]:
        """The event as every other way of following a job tells it."""
        event, delivery = parcel.event, parcel.delivery
        if event is None:
            return {
                "type": PING,
                "id": delivery.event_id,
                "created_at": timestamp(delivery.created_at),
                "sequence": delivery.sequence,
                "data": {"webhook_id": delivery.webhook_id},
            }
        own = event.job.webhook if event.job is not None and parcel.endpoint.url is None else None
        base_url = parcel.endpoint.base_url if own is None else own.get("base_url", "")
        return self._scribe(base_url).event(event)

    def _headers(self, parcel: PendingDelivery, body: bytes, at: float) -> dict[str, str]:
        message_id, moment = parcel.delivery.event_id, int(at)
        return {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(moment),
            "webhook-signature": sign(parcel.endpoint.secrets_at(at), message_id, moment, body),
        }


def read_retry_after(text: str, now: float) -> float | None:
    """Seconds, or a date, as HTTP has it; None if it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
