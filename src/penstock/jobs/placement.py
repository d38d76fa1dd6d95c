"""The paid order: placed once, looked up when its answer is lost, and placed elsewhere only if it was not taken."""

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
from penstock.domain.order_lookup import Listing, Loss, proves_absence
from penstock.errors import StoreUnavailable
from penstock.jobs.context import HandedOver, JobContext, RunnerServices
from penstock.observability import metrics
from penstock.offers.offer import credential_id
from penstock.upstream.exchange import TROUBLE
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Failed,
    GenerationVendor,
    InDoubt,
    NotSent,
    Refused,
    ReplyLost,
    Similar,
    Unclear,
    Untold,
)

log = logging.getLogger(__name__)

MAX_NOT_SENT = 5
LOOK_SECONDS = 1.0
MAX_LOOK_SECONDS = 5.0
MIN_PROOFS = 3
"""Looks in a row that must prove that an order never arrived: a list may be wrong for a moment."""
MIN_EMPTY_PROOFS = 10
"""Looks that are needed of an empty list: it may be out of order."""
MAX_BLOCKED_SECONDS = 300.0
"""Seconds beyond the usual time for an order that is found, but may be about to be another job's."""
GRACE_SECONDS = 10.0
"""How long a process that is to stop waits for the answer to an order: without it the order may be lost."""
NOT_TAKEN = (UpstreamAuth, UpstreamRejected, UpstreamUnavailable)
"""What a vendor says to an order that it did not take, and that another may take."""


class CanceledFirst(Exception):
    """The caller canceled before anything was paid."""


@dataclass(slots=True)
class OrderPlacement:
    """How a job comes to have an order under way."""

    context: JobContext
    lost_at: float = 0.0  # the latest that an order of unknown fate can have left us
    looks: int = 0
    look_began: float = 0.0  # when the latest of them did
    proofs: int = 0  # how many looks in a row have proven that it never arrived
    vain: int = 0  # how many looks at a time when it could no longer be on its way have neither found nor disproved it
    seen_at: dict[str, float] = field(default_factory=dict[str, float])  # when orders that may be it were first seen
    unsent: int = 0
    paying: bool = False

    @property
    def job(self) -> Job:
        """The job as the row said last."""
        return self.context.job

    @property
    def services(self) -> RunnerServices:
        """Parts of the gateway that work on jobs needs."""
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
        await self.context.amend(lambda job: replace(self.context.started(job), phase=Phase.DISPATCHING))
        await self.context.dare()
        self.paying = False
        placing = asyncio.ensure_future(self.place(vendor, attempt))
        try:
            answer = await asyncio.shield(placing)
        except asyncio.CancelledError:
            if self.paying:  # its answer is worth waiting for
                await asyncio.wait((placing,), timeout=GRACE_SECONDS)
            placing.cancel()
            await asyncio.gather(placing, return_exceptions=True)
            raise
        except CanceledFirst:
            return
        except InDoubt:
            await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.NOT_SENT, phase=Phase.DISPATCHING))
            await self.context.pause()
        except NotSent:
            await self.not_sent(attempt)
        except (ReplyLost, Unclear):
            self.lost_at, self.looks, self.proofs = self.services.steady(), 0, 0
            await self.context.amend(lambda job: replace(job, phase=Phase.RECONCILING))
        else:
            await self.answered(attempt, answer)

    async def place(self, vendor: GenerationVendor, attempt: Attempt) -> Accepted | Refused | Failed:
        """Make the vendor's calls, and write down at once that it took the order."""
        flow = vendor.submit(self.context.order(attempt))
        answer = await self.services.exchange.drive(
            self.job.vendor, vendor, "submit", flow, before_paying=lambda: self.intend(attempt), be_sure=self.be_sure
        )
        if isinstance(answer, Accepted):
            await self.accepted(answer)
        return answer

    async def intend(self, attempt: Attempt) -> None:
        """The next call costs money: from here on a crash has it looked up."""
        self.paying = True
        await self.context.amend(lambda job: jobs.order(job, attempt))
        if self.job.attempt is None:
            raise CanceledFirst
        self.be_sure()
        metrics.UPSTREAM_SUBMITS.labels(self.job.vendor).inc()

    def be_sure(self) -> None:
        """Looked at anew when the call goes out: a process may be frozen at any moment, and wake up much later."""
        if not self.services.is_sure(self.context.claim):
            raise InDoubt

    async def answered(self, attempt: Attempt, answer: Accepted | Refused | Failed) -> None:
        """Write down what the vendor said to the order."""
        match answer:
            case Accepted():
                pass  # written down already
            case Refused(retry_after):
                await self.go_elsewhere(attempt, Outcome.REFUSED)
                await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.REFUSED, phase=Phase.THROTTLED))
                await self.context.pause(retry_after)
            case Failed(error):
                if isinstance(error, UpstreamAuth | UpstreamUnavailable):
                    fields = {"vendor": self.job.vendor, "code": error.code, "error": error.message}
                    log.error("the vendor does not work for us", extra={"fields": fields})
                if isinstance(error, NOT_TAKEN):
                    await self.go_elsewhere(attempt, Outcome.FAILED, error)
                raise error

    async def accepted(self, answer: Accepted) -> None:
        """From now on the vendor works, and a crash only polls."""
        while True:
            try:
                await self.context.amend(lambda job: self.under_way(job, answer))
                break
            except StoreUnavailable:  # the one answer that must not be lost: it is held until it can be written
                await asyncio.sleep(1)
        self.context.begin_polling()

    def under_way(self, job: Job, answer: Accepted) -> Job:
        """The job with the vendor's word for its order."""
        if job.attempt is None:
            return job
        attempt = replace(job.attempt, upstream_id=answer.upstream_id, operation=answer.operation)
        phase = Phase.CANCELING if job.state is State.CANCELING else Phase.GENERATING
        usual = self.services.history.usual_end(job.model, job.started_at)
        job = replace(job, attempts=(*job.attempts[:-1], attempt), phase=phase, eta_at=usual)
        return jobs.warn(job, list(map(self.services.offers().redactor.text, answer.warnings)))

    async def not_sent(self, attempt: Attempt) -> None:
        """Nothing reached the vendor: ask another, or try again for a while, then say so."""
        await self.go_elsewhere(attempt, Outcome.NOT_SENT)
        await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.NOT_SENT, phase=Phase.DISPATCHING))
        self.unsent += 1
        if self.unsent >= MAX_NOT_SENT:
            raise UpstreamUnavailable
        await self.context.pause()

    async def go_elsewhere(self, attempt: Attempt, outcome: Outcome, error: JobError | None = None) -> None:
        """Hand the job to the next of its model's routes, if there is one that it has not tried."""
        offer = self.services.offers().by_model.get(self.job.model)
        tried = {past.route for past in (*self.job.attempts, attempt)}
        route = None if offer is None else offer.choose_other(tried)
        if route is None:
            return
        metrics.JOBS_REROUTED.labels(self.job.vendor, error.code if error else outcome.value).inc()
        tried_in_vain = replace(attempt, outcome=outcome)
        await self.context.hand_on(lambda job: jobs.reroute(job, tried_in_vain, route.vendor, route.model))
        if self.job.state is State.RUNNING:
            raise HandedOver

    # -- an order whose answer was lost

    async def reconcile(self, attempt: Attempt) -> None:
        """Look it up; never place it again unless it provably never arrived."""
        if self.job.phase is not Phase.RECONCILING:
            await self.context.amend(lambda job: replace(job, phase=Phase.RECONCILING))
        self.look_began = self.services.steady()
        try:
            answer = await self.context.drive("find", self.context.vendor.find(self.context.order(attempt)))
        except TROUBLE as error:
            await self.context.pause(getattr(error, "retry_after", None))
            return
        match answer:
            case Accepted():
                await self.accepted(answer)
            case Similar():
                await self.recognize(attempt, answer)
            case Untold():
                raise UpstreamOutcomeUnknown
            case Absent():
                if not await self.may_still_arrive():
                    await self.never_arrived(attempt)

    async def never_arrived(self, attempt: Attempt) -> None:
        """It may be placed again, but not for ever: what never arrives so often will not."""
        past = [each for each in self.job.attempts if each.outcome is Outcome.NEVER_ARRIVED]
        if sum(each.route == attempt.route for each in past) + 1 >= MAX_NOT_SENT:
            await self.go_elsewhere(attempt, Outcome.NEVER_ARRIVED)
            raise UpstreamUnavailable
        await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.NEVER_ARRIVED, phase=Phase.DISPATCHING))
        await self.context.pause()

    async def recognize(self, attempt: Attempt, answer: Similar) -> None:
        """Take up the order that no other job holds, or place it again if the list proves that it never arrived."""
        self.looks += 1
        names = [*(order.upstream_id for order in answer.orders), *answer.doubtful]
        if await self.adopt(answer):
            self.context.begin_polling()
            return
        has_free = bool(names) and await self.context.has_free(names)
        is_proven = not has_free and self.is_proven(attempt, answer.listing)
        self.proofs = self.proofs + 1 if is_proven else 0
        if self.proofs >= (MIN_PROOFS if answer.listing and answer.listing.entries else MIN_EMPTY_PROOFS):
            await self.never_arrived(attempt)
        elif not await self.may_still_arrive(
            MAX_BLOCKED_SECONDS if self.proofs or (has_free and answer.orders) else 0.0
        ):
            await self.look_in_vain()

    async def look_in_vain(self) -> None:
        """Give up after several looks: the list may have changed while one of them read it."""
        self.vain += 1
        if self.vain >= MIN_PROOFS:
            raise UpstreamOutcomeUnknown
        await self.wait_for_look()

    async def adopt(self, answer: Similar) -> bool:
        """Take up one of the orders, if one is free; one that another job is about to hold may be so later."""
        found = {order.upstream_id: order for order in answer.orders}
        now = self.services.clock()
        self.seen_at = {name: self.seen_at.get(name, now) for name in found}
        if found:
            await self.context.adopt(
                list(found), lambda job, upstream_id: self.under_way(job, found[upstream_id]), now, self.seen_at
            )
        return self.job.attempt is not None and self.job.attempt.operation is not None

    def is_proven(self, attempt: Attempt, listing: Listing | None) -> bool:
        """Tell whether a list without the order proves that the vendor never took it."""
        if listing is None:
            return False
        now = self.services.clock()
        lost_at = now - (self.services.steady() - self.lost_at)
        return proves_absence(listing, Loss(attempt.started_at, lost_at, now, self.context.vendor.lookup_seconds))

    async def may_still_arrive(self, more_seconds: float = 0.0) -> bool:
        """Wait for the next look, unless the order could no longer be on its way when this one began.

        What was asked before that time says nothing, however late it is answered.
        """
        waits = self.look_began < self.lost_at + self.context.vendor.lookup_seconds + more_seconds
        if waits:
            await self.wait_for_look()
        return waits

    async def wait_for_look(self) -> None:
        """Wait until the vendor may be asked for its list again, longer after many looks."""
        seconds = min(LOOK_SECONDS * (1 + self.looks // 5), MAX_LOOK_SECONDS)
        await self.context.subscription.wait(min(seconds, self.context.vendor.lookup_seconds or seconds))
        await self.context.look_again()
