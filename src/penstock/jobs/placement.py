"""The paid order: placed once, looked up if its answer is lost, and moved to another vendor only if not taken."""

import asyncio
import logging
from dataclasses import dataclass, field, replace

from penstock.domain import jobs
from penstock.domain.job_errors import (
    JobError,
    UpstreamAuth,
    UpstreamOutcomeUnknown,
    UpstreamRejected,
    UpstreamUnavailable,
)
from penstock.domain.jobs import Attempt, Job, Outcome, Phase, State
from penstock.errors import StoreUnavailable
from penstock.jobs.collection import keep_result
from penstock.jobs.context import HandedOver, JobContext, RunnerServices
from penstock.observability import metrics
from penstock.offers.offer import credential_id
from penstock.storage.backend import StorageUnavailable
from penstock.upstream.exchange import TROUBLE
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Failed,
    Finished,
    GenerationVendor,
    InDoubt,
    LookupUnsupported,
    NoPublicUrl,
    NotSent,
    Refused,
    ReplyLost,
    Similar,
    Unclear,
)
from penstock.vendor_api.order_lookup import Listing, LostOrder, proves_absence

log = logging.getLogger(__name__)

MAX_UNSENT_ORDERS = 5
LOOKUP_PAUSE_SECONDS = 1.0
MAX_LOOKUP_PAUSE_SECONDS = 5.0
MIN_PROOFS = 3
"""Lookups in a row that must prove that an order never arrived: a list may be wrong for a moment."""
MIN_EMPTY_PROOFS = 10
"""Lookups in a row that are needed if the list is empty: the vendor's list may be out of order."""
MAX_BLOCKED_SECONDS = 300.0
"""Extra seconds to look for an order that was found but may belong to another job."""
ANSWER_GRACE_SECONDS = 10.0
"""Seconds that a stopping process waits for the answer to a paid order, which may be lost otherwise."""
REROUTABLE_ERRORS = (UpstreamAuth, UpstreamRejected, UpstreamUnavailable)
"""Errors that say that the vendor did not take the order, so that another vendor may."""


class CanceledFirst(Exception):
    """The caller canceled before anything was paid."""


@dataclass(slots=True)
class OrderPlacement:
    """The order of one job: placed, looked up after a lost answer, or moved to the next route."""

    context: JobContext
    lost_at: float = 0.0  # the latest moment at which an order of unknown outcome can have been sent
    lookups: int = 0
    lookup_began: float = 0.0
    proofs: int = 0  # lookups in a row that proved that the order never arrived
    fruitless_lookups: int = 0  # lookups after the order's last possible arrival that neither found nor disproved it
    first_seen: dict[str, float] = field(default_factory=dict[str, float])  # by upstream id of a similar order
    unsent_orders: int = 0
    is_paying: bool = False

    @property
    def job(self) -> Job:
        """The job as last read from the store."""
        return self.context.job

    @property
    def services(self) -> RunnerServices:
        """Parts of the gateway that a job run needs."""
        return self.context.services

    async def submit(self) -> None:
        """Write the intent, then place the order: the only call that costs money."""
        vendor, now = self.context.vendor, self.services.clock()
        number = self.job.attempts[-1].number + 1 if self.job.attempts else 1
        attempt = Attempt(
            number=number,
            vendor=self.job.vendor,
            model=self.job.upstream_model,
            credential=credential_id(vendor),
            reference=f"{self.job.id}-{number}",
            started_at=now,
        )
        await self.context.amend(lambda job: replace(self.context.start(job), phase=Phase.DISPATCHING))
        await self.context.mark_risky()
        self.is_paying = False
        placing = asyncio.ensure_future(self._place(vendor, attempt))
        try:
            answer = await asyncio.shield(placing)
        except asyncio.CancelledError:
            if self.is_paying:  # its answer is worth waiting for
                await asyncio.wait((placing,), timeout=ANSWER_GRACE_SECONDS)
            placing.cancel()
            await asyncio.gather(placing, return_exceptions=True)
            raise
        except CanceledFirst:
            return
        except InDoubt:
            await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.NOT_SENT, phase=Phase.DISPATCHING))
            await self.context.back_off()
        except NotSent:
            await self._retry_unsent(attempt)
        except (ReplyLost, Unclear):
            self.lost_at, self.lookups, self.proofs = self.services.steady(), 0, 0
            await self.context.amend(lambda job: replace(job, phase=Phase.RECONCILING))
        else:
            await self._handle_answer(attempt, answer)

    async def _place(self, vendor: GenerationVendor, attempt: Attempt) -> Accepted | Finished | Refused | Failed:
        """Make the vendor's calls, and write an accepted order down immediately."""
        flow = vendor.submit(self.context.make_order(attempt))
        try:
            answer = await self.services.exchange.drive(
                self.job.vendor,
                vendor,
                "submit",
                flow,
                before_paying=lambda: self._write_intent(attempt),
                be_sure=self._be_sure,
            )
        except NoPublicUrl as error:  # another route may need no link
            return Failed(UpstreamUnavailable(str(error)))
        if isinstance(answer, Accepted):
            await self._record_accepted(answer)
        elif isinstance(answer, Finished):
            await self._record_finished(vendor, attempt, answer)
        return answer

    async def _write_intent(self, attempt: Attempt) -> None:
        """Record that the next call costs money: after a crash from here on, the order is looked up."""
        self.is_paying = True
        await self.context.amend(lambda job: jobs.order(job, attempt))
        if self.job.attempt is None:
            raise CanceledFirst
        self._be_sure()
        metrics.UPSTREAM_SUBMITS.labels(self.job.vendor).inc()

    def _be_sure(self) -> None:
        """Raise InDoubt unless the claim is certainly still ours.

        This is checked again in the very moment of the call: a process may freeze at any point and wake up much later.
        """
        if not self.services.is_sure(self.context.claim):
            raise InDoubt

    async def _handle_answer(self, attempt: Attempt, answer: Accepted | Finished | Refused | Failed) -> None:
        """Retry an order that the vendor refused, on another route if there is one, or raise its error."""
        match answer:
            case Accepted() | Finished():
                pass  # written down already
            case Refused(retry_after):
                await self._try_next_route(attempt, Outcome.REFUSED)
                await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.REFUSED, phase=Phase.THROTTLED))
                await self.context.back_off(retry_after)
            case Failed(error):
                if isinstance(error, UpstreamAuth | UpstreamUnavailable):
                    fields = {"vendor": self.job.vendor, "code": error.code, "error": error.message}
                    log.error("the vendor cannot take our orders; another route is tried", extra={"fields": fields})
                if isinstance(error, REROUTABLE_ERRORS):
                    await self._try_next_route(attempt, Outcome.FAILED, error)
                raise error

    async def _record_accepted(self, answer: Accepted) -> None:
        """Write the vendor's id of the order: after a crash from here on, the order is only polled."""
        while True:
            try:
                await self.context.amend(lambda job: self._attach_order(job, answer))
                break
            except StoreUnavailable:  # the one answer that must not be lost is kept until it can be written
                await asyncio.sleep(1)
        self.context.schedule_first_poll()

    async def _record_finished(self, vendor: GenerationVendor, attempt: Attempt, answer: Finished) -> None:
        """Store a result that came with the reply, then write that the order was accepted: the vendor keeps nothing.

        A crash before both is a lost answer. The bytes come first, so that a row never names what is not there.
        """
        while True:
            try:
                outputs = answer.result.outputs
                kept = await self.services.collection.keep_reply(self.job, vendor, outputs, attempt.reference)
                break
            except StorageUnavailable:
                await asyncio.sleep(1)
        operation = keep_result(answer.result, kept)
        await self._record_accepted(Accepted(answer.upstream_id, operation, answer.warnings))
        self.context.poll_at = 0.0

    def _attach_order(self, job: Job, answer: Accepted) -> Job:
        """Return the job with the accepted order in its open attempt."""
        if job.attempt is None:
            return job
        attempt = replace(job.attempt, upstream_id=answer.upstream_id, operation=answer.operation)
        phase = Phase.CANCELING if job.state is State.CANCELING else Phase.GENERATING
        usual = self.services.history.usual_end(job.model, job.started_at)
        job = replace(job, attempts=(*job.attempts[:-1], attempt), phase=phase, eta_at=usual)
        return jobs.warn(job, list(map(self.services.offers().redactor.text, answer.warnings)))

    async def _retry_unsent(self, attempt: Attempt) -> None:
        """Try another route or retry, as nothing reached the vendor. Raise after too many retries."""
        await self._try_next_route(attempt, Outcome.NOT_SENT)
        await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.NOT_SENT, phase=Phase.DISPATCHING))
        self.unsent_orders += 1
        if self.unsent_orders >= MAX_UNSENT_ORDERS:
            raise UpstreamUnavailable
        await self.context.back_off()

    async def _try_next_route(self, attempt: Attempt, outcome: Outcome, error: JobError | None = None) -> None:
        """Hand the job to a route of its model that it has not tried, and raise HandedOver. Return if there is none."""
        offer = self.services.offers().by_model.get(self.job.model)
        tried = {past.route for past in (*self.job.attempts, attempt)}
        route = None if offer is None else offer.choose_other(tried)
        if route is None:
            return
        metrics.JOBS_REROUTED.labels(self.job.vendor, error.code if error else outcome.value).inc()
        ended = replace(attempt, outcome=outcome)
        await self.context.hand_on(lambda job: jobs.reroute(job, ended, route.vendor, route.model))
        if self.job.state is State.RUNNING:
            raise HandedOver

    # -- an order whose answer was lost

    async def reconcile(self, attempt: Attempt) -> None:
        """Look the order up. Never place it again unless it provably never arrived."""
        if self.job.phase is not Phase.RECONCILING:
            await self.context.amend(lambda job: replace(job, phase=Phase.RECONCILING))
        self.lookup_began = self.services.steady()
        try:
            answer = await self.context.drive("find", self.context.vendor.find(self.context.make_order(attempt)))
        except TROUBLE as error:
            await self.context.back_off(getattr(error, "retry_after", None))
            return
        match answer:
            case Accepted():
                await self._record_accepted(answer)
            case Similar():
                await self._match_similar(attempt, answer)
            case LookupUnsupported():
                raise UpstreamOutcomeUnknown
            case Absent():
                if not await self._may_still_arrive():
                    await self._place_again(attempt)

    async def _place_again(self, attempt: Attempt) -> None:
        """Allow another order for one that never arrived, up to a limit."""
        past = [each for each in self.job.attempts if each.outcome is Outcome.NEVER_ARRIVED]
        if sum(each.route == attempt.route for each in past) + 1 >= MAX_UNSENT_ORDERS:
            await self._try_next_route(attempt, Outcome.NEVER_ARRIVED)
            raise UpstreamUnavailable
        await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.NEVER_ARRIVED, phase=Phase.DISPATCHING))
        await self.context.back_off()

    async def _match_similar(self, attempt: Attempt, answer: Similar) -> None:
        """Adopt the order that no other job holds, or place it again if the list proves that it never arrived."""
        self.lookups += 1
        upstream_ids = [*(order.upstream_id for order in answer.orders), *answer.doubtful]
        if await self._adopt(answer):
            self.context.schedule_first_poll()
            return
        has_free = bool(upstream_ids) and await self.context.has_free(upstream_ids)
        is_proven = not has_free and self._is_absence_proven(attempt, answer.listing)
        self.proofs = self.proofs + 1 if is_proven else 0
        if self.proofs >= (MIN_PROOFS if answer.listing and answer.listing.entries else MIN_EMPTY_PROOFS):
            await self._place_again(attempt)
        elif not await self._may_still_arrive(
            MAX_BLOCKED_SECONDS if self.proofs or (has_free and answer.orders) else 0.0
        ):
            await self._count_fruitless_lookup()

    async def _count_fruitless_lookup(self) -> None:
        """Look again, or raise after several lookups: the list may have changed while one of them read it."""
        self.fruitless_lookups += 1
        if self.fruitless_lookups >= MIN_PROOFS:
            raise UpstreamOutcomeUnknown
        await self._wait_for_lookup()

    async def _adopt(self, answer: Similar) -> bool:
        """Attach a free order, if there is one. One that another job may be about to hold can become free later."""
        found = {order.upstream_id: order for order in answer.orders}
        now = self.services.clock()
        self.first_seen = {upstream_id: self.first_seen.get(upstream_id, now) for upstream_id in found}
        if found:
            await self.context.adopt(
                list(found), lambda job, upstream_id: self._attach_order(job, found[upstream_id]), now, self.first_seen
            )
        return self.job.attempt is not None and self.job.attempt.operation is not None

    def _is_absence_proven(self, attempt: Attempt, listing: Listing | None) -> bool:
        """Return whether a list without the order proves that the vendor never took it."""
        if listing is None:
            return False
        now = self.services.clock()
        lost_at = now - (self.services.steady() - self.lost_at)
        return proves_absence(listing, LostOrder(attempt.started_at, lost_at, now, self.context.vendor.lookup_seconds))

    async def _may_still_arrive(self, more_seconds: float = 0.0) -> bool:
        """Wait for the next lookup, unless the order could no longer be on its way when this lookup began.

        A lookup that began earlier proves nothing, however late its answer comes.
        """
        waits = self.lookup_began < self.lost_at + self.context.vendor.lookup_seconds + more_seconds
        if waits:
            await self._wait_for_lookup()
        return waits

    async def _wait_for_lookup(self) -> None:
        """Wait until the vendor may be asked for its list again, longer after many lookups."""
        seconds = min(LOOKUP_PAUSE_SECONDS * (1 + self.lookups // 5), MAX_LOOKUP_PAUSE_SECONDS)
        await self.context.wait(min(seconds, self.context.vendor.lookup_seconds or seconds))
