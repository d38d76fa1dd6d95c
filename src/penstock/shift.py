"""One job from claimed to done: a loop that looks at the row and does the next thing, so any crash resumes there.

Intent written → submit → upstream id written → poll → collect → check → done. Every write is fenced by the claim.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from penstock import jobs, metrics
from penstock.collection import Collection
from penstock.contract import (
    Absent,
    Accepted,
    Done,
    Failed,
    Flow,
    GenerationVendor,
    Order,
    Refused,
    Running,
    Unclear,
    Untold,
)
from penstock.errors import StoreUnavailable
from penstock.estimates import History
from penstock.exchange import TROUBLE, Exchange, NotSent, ReplyLost, redact
from penstock.inputs import Inputs
from penstock.job_errors import (
    JobCrashed,
    JobError,
    RunTimeout,
    StartTimeout,
    UpstreamOutcomeUnknown,
    UpstreamUnavailable,
)
from penstock.jobs import Attempt, Job, Outcome, Phase, State
from penstock.offers import Offers, credential_id
from penstock.store import asset_rows, job_rows
from penstock.store.bell import Ear
from penstock.store.database import Database
from penstock.store.job_rows import Claim

MAX_NOT_SENT = 5
MAX_PAUSE = 30.0
PROGRESS_SECONDS = 0.5

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What working on jobs needs."""

    database: Database
    offers: Callable[[], Offers]
    exchange: Exchange
    collection: Collection
    inputs: Inputs
    history: History
    clock: Callable[[], float]


@dataclass(slots=True)
class Shift:
    """One stretch of work on one job, from what the row says to its end."""

    tools: Tools
    claim: Claim
    job: Job
    seat: asyncio.Event
    ear: Ear
    lost_at: float  # the latest that an order of unknown fate can have left us
    troubles: int = 0
    unsent: int = 0
    cannot_cancel: bool = False
    poll_at: float = 0.0
    told_at: float = 0.0

    async def work(self) -> None:
        """Do the next thing until nothing is left to do."""
        while not self.job.done:
            try:
                await self.step()
            except JobError as error:
                await self.fail(error)
        self.count()

    async def step(self) -> None:
        """The next thing, as the row tells it."""
        job, now = self.job, self.tools.clock()
        canceled_early = job.state is State.CANCELING and job.attempt is None
        if canceled_early or now >= job.deadline:
            await self.close(now)
        elif job.vendor not in self.tools.offers().vendors:
            await self.wait_for_vendor()
        elif job.attempt is None and not self.seat.is_set():
            await self.wait_for_seat(now)
        elif job.file is None and "url" in job.params.get("file", {}):
            await self.fetch()
        elif job.attempt is None:
            await self.submit()
        elif job.attempt.operation is None:
            await self.reconcile(job.attempt)
        elif job.state is State.CANCELING and not self.cannot_cancel:
            await self.cancel(job.attempt.operation)
        else:
            await self.poll(job.attempt.operation)

    # -- before the vendor

    async def wait_for_seat(self, now: float) -> None:
        """Wait for the vendor to have room, for a cancel, or for the deadline."""
        granted = asyncio.ensure_future(self.seat.wait())
        spread = random.uniform(1, 2)  # noqa: S311  thousands may wait, and should not all look at once
        patience = min(MAX_PAUSE * spread, self.job.deadline - now)  # a cancel may have rung before anyone listened
        rung = asyncio.ensure_future(self.ear.wait(max(0.0, patience)))
        try:
            await asyncio.wait((granted, rung), return_when=asyncio.FIRST_COMPLETED)
        finally:
            granted.cancel()
            rung.cancel()
        if not self.seat.is_set():
            await self.look_again()

    async def wait_for_vendor(self) -> None:
        """The settings have lost the job's vendor: a paid job is not failed for that, it waits to be found again."""
        log.error("the job's vendor is not configured", extra={"fields": {"vendor": self.job.vendor}})
        await self.ear.wait(MAX_PAUSE)
        await self.look_again()

    async def fetch(self) -> None:
        """Snapshot the caller's URL before anything is paid."""
        await self.amend(lambda job: replace(self.started(job), phase=Phase.FETCHING))
        if self.job.state is not State.RUNNING:
            return
        file = self.job.params["file"]
        inputs = self.tools.inputs
        stored = await inputs.fetch(file["url"], file.get("type"), self.job.account_id, self.job.id)
        await self.amend(lambda job: replace(job, file=stored))

    # -- the paid order

    async def submit(self) -> None:
        """Write the intent, then place the order: the only call that costs money."""
        vendor, now = self.vendor, self.tools.clock()
        number = self.job.attempts[-1].number + 1 if self.job.attempts else 1
        attempt = Attempt(
            number=number,
            vendor=self.job.vendor,
            model=self.job.upstream_model,
            credential=credential_id(vendor),
            reference=f"{self.job.id}-{number}",
            started_at=now,
        )
        await self.amend(lambda job: jobs.order(self.started(job), attempt))
        if self.job.attempt is None:  # canceled in between
            return
        metrics.UPSTREAM_SUBMITS.labels(self.job.vendor).inc()
        try:
            answer = await self.drive("submit", vendor.submit(self.order(attempt)))
        except NotSent:
            await self.not_sent()
        except (ReplyLost, Unclear):
            self.lost_at = self.tools.clock()
            await self.amend(lambda job: replace(job, phase=Phase.RECONCILING))
        else:
            await self.answered(answer)

    async def answered(self, answer: Accepted | Refused | Failed) -> None:
        """Write down what the vendor said to the order."""
        match answer:
            case Accepted():
                await self.accepted(answer)
            case Refused():
                await self.amend(lambda job: jobs.end_attempt(job, Outcome.REFUSED, phase=Phase.THROTTLED))
                await self.pause(answer.retry_after)
            case Failed(error):
                raise error

    async def accepted(self, answer: Accepted) -> None:
        """From now on the vendor works, and a crash only polls."""

        def change(job: Job) -> Job:
            if job.attempt is None:
                return job
            attempt = replace(job.attempt, upstream_id=answer.upstream_id, operation=answer.operation)
            phase = Phase.CANCELING if job.state is State.CANCELING else Phase.GENERATING
            usual = self.tools.history.usual_end(job.model, job.started_at)
            return replace(job, attempts=(*job.attempts[:-1], attempt), phase=phase, eta_at=usual)

        while True:
            try:
                await self.amend(change)
                break
            except StoreUnavailable:  # the one answer that must not be lost: it is held until it can be written
                await asyncio.sleep(1)
        self.troubles = 0
        self.poll_at = self.tools.clock() + self.vendor.options.poll_seconds

    async def not_sent(self) -> None:
        """Nothing reached the vendor: try again for a while, then say so."""
        await self.amend(lambda job: jobs.end_attempt(job, Outcome.NOT_SENT, phase=Phase.DISPATCHING))
        self.unsent += 1
        if self.unsent >= MAX_NOT_SENT:
            raise UpstreamUnavailable
        await self.pause()

    async def reconcile(self, attempt: Attempt) -> None:
        """An order whose answer was lost: look it up; never place it again unless it provably never arrived."""
        if self.job.phase is not Phase.RECONCILING:
            await self.amend(lambda job: replace(job, phase=Phase.RECONCILING))
        try:
            answer = await self.drive("find", self.vendor.find(self.order(attempt)))
        except TROUBLE:
            await self.pause()
            return
        match answer:
            case Accepted():
                await self.accepted(answer)
            case Untold():
                raise UpstreamOutcomeUnknown
            case Absent():
                await self.absent()

    async def absent(self) -> None:
        """The vendor does not know the order: believe that only when it can no longer be on its way."""
        if self.tools.clock() < self.lost_at + self.vendor.lookup_seconds:
            await self.ear.wait(min(1.0, self.vendor.lookup_seconds))
            await self.look_again()
        else:
            await self.amend(lambda job: jobs.end_attempt(job, Outcome.NEVER_ARRIVED, phase=Phase.DISPATCHING))

    # -- the vendor works

    async def poll(self, operation: Mapping[str, Any]) -> None:
        """Wait for the next poll, a cancel or the deadline; then ask, and bring home what is done by then."""
        now = self.tools.clock()
        if now < self.poll_at:
            await self.ear.wait(min(self.poll_at, self.job.deadline) - now)
            await self.look_again()
            return
        try:
            async with asyncio.timeout(self.job.deadline - now):
                answer = await self.drive("poll", self.vendor.poll(operation))
                match answer:
                    case Running():
                        await self.running(answer)
                    case Done():
                        await self.collect(answer)
                    case Failed(error):
                        raise error
            self.troubles = 0
        except TROUBLE:
            await self.pause()
        except TimeoutError:
            await self.look_again()

    async def running(self, answer: Running) -> None:
        """Write progress when there is any, and not too often; then decide when to ask again."""
        now = self.tools.clock()
        least = self.vendor.options.poll_seconds
        usual_wait = jobs.poll_cadence(self.job, now, answer.eta_seconds, least)
        self.poll_at = now + (usual_wait if answer.poll_after is None else max(least, answer.poll_after))
        progress = max(self.job.progress, min(0.99, answer.progress or 0.0))
        moved = progress - self.job.progress >= 0.01 or answer.queue_position != self.job.upstream_position
        if moved and now - self.told_at >= PROGRESS_SECONDS:
            self.told_at = now
            usual = self.tools.history.usual_end(self.job.model, self.job.started_at)
            eta_at = usual if answer.eta_seconds is None else now + answer.eta_seconds
            told = {"progress": progress, "eta_at": eta_at, "upstream_position": answer.queue_position}
            await self.amend(lambda job: replace(job, **told))

    async def collect(self, answer: Done) -> None:
        """Bring the outputs home. A download that fails is tried again from a fresh poll: its address may be old."""
        if self.job.phase is not Phase.STORING:
            await self.amend(lambda job: replace(job, phase=Phase.STORING, progress=0.99, eta_at=None))
        expected = self.tools.offers().known[self.job.model].expect(self.job.params)
        collected = await self.tools.collection.collect(self.job, self.vendor, answer.outputs, expected)
        now = self.tools.clock()

        def change(job: Job) -> Job:
            job = replace(job, seed=job.seed if answer.seed is None else answer.seed)
            return jobs.succeed(job, now, collected.outputs, (*answer.warnings, *collected.warnings))

        self.job = await self.tools.database.write(asset_rows.deliver, self.claim, change, now)

    # -- the end

    async def cancel(self, operation: Mapping[str, Any]) -> None:
        """Ask the vendor to stop; one that cannot goes on, and what it delivers is kept."""
        try:
            stopped = await self.drive("cancel", self.vendor.cancel(operation))
        except TROUBLE:
            await self.pause()
            return
        now = self.tools.clock()
        if stopped:
            await self.amend(lambda job: jobs.stop(job, now))
        else:
            self.cannot_cancel = True
            warning = "The vendor cannot stop this job: it goes on, and its result will be kept."
            await self.amend(lambda job: replace(job, warnings=tuple(dict.fromkeys((*job.warnings, warning)))))

    async def close(self, now: float) -> None:
        """Nothing is left to wait for: the caller canceled, or a deadline has passed. The vendor is told to stop."""
        error = StartTimeout() if self.job.started_at is None else RunTimeout(stage=self.job.phase.value)
        operation = self.job.attempt.operation if self.job.attempt else None
        if operation is not None:
            with suppress(*TROUBLE, KeyError):  # whose vendor is gone from the settings expires all the same
                await self.drive("cancel", self.vendor.cancel(operation))
        body = error.body(self.job.request_id)

        def change(job: Job) -> Job:
            if job.state is State.CANCELING:
                return jobs.stop(job, now)
            return job if job.done else jobs.fail(job, now, body, Outcome.ABANDONED, State.EXPIRED)

        await self.amend(change)

    async def fail(self, error: JobError) -> None:
        """The job cannot be done."""
        error.upstream = redact(error.upstream, self.tools.offers().secrets)
        if error.code == "upstream_auth":
            log.error("the vendor refuses our credential", extra={"fields": {"vendor": self.job.vendor}})
        now, body = self.tools.clock(), error.body(self.job.request_id)
        unknown = isinstance(error, UpstreamOutcomeUnknown)
        await self.amend(lambda job: jobs.fail(job, now, body, Outcome.UNKNOWN if unknown else Outcome.FAILED))

    async def give_up(self) -> None:
        """Working on the job keeps failing: end it rather than try for ever."""
        if not self.job.done:
            await self.amend(self.started)
            await self.fail(JobCrashed(stage=self.job.phase.value))
        self.count()

    # -- small things

    @property
    def vendor(self) -> GenerationVendor:
        """The vendor that was written on the job; never another."""
        offers, attempt = self.tools.offers(), self.job.attempt
        return offers.vendors[self.job.vendor] if attempt is None else offers.vendor_of(attempt)

    def order(self, attempt: Attempt) -> Order:
        """What to ask of the vendor."""
        return Order(attempt.reference, attempt.model, self.job.params, self.job.file)

    def started(self, job: Job) -> Job:
        """The job as running, if it was still queued."""
        return jobs.start(job, self.tools.clock()) if job.state is State.QUEUED else job

    async def drive(self, verb: str, flow: Flow[T]) -> T:
        """One verb of the job's vendor."""
        return await self.tools.exchange.drive(self.job.vendor, self.vendor, verb, flow)

    async def amend(self, change: Callable[[Job], Job]) -> None:
        """Write a change under the fence; what comes back is the truth, a caller's cancel included."""
        self.job = await self.tools.database.write(job_rows.amend, self.claim, change, self.tools.clock())

    async def look_again(self) -> None:
        """Read the row: a caller may have canceled."""
        self.job = await self.tools.database.read(job_rows.get_claimed, self.claim)

    async def pause(self, seconds: float | None = None) -> None:
        """Wait longer with every trouble in a row; a cancel ends the wait."""
        self.troubles += 1
        least = self.vendor.options.poll_seconds
        wait = least * 2 ** min(self.troubles, 10) if seconds is None else max(least, seconds)
        await self.ear.wait(max(0.05, min(wait, MAX_PAUSE, self.job.deadline - self.tools.clock())))
        await self.look_again()

    def count(self) -> None:
        """Learn from a finished job."""
        job = self.job
        code = str(job.error["code"]) if job.error else ""
        metrics.JOBS_FINISHED.labels(job.model, job.vendor, job.state.value, code).inc()
        metrics.JOB_SECONDS.labels(job.model).observe((job.finished_at or 0.0) - job.created_at)
        if job.state is State.SUCCEEDED:
            self.tools.history.add(job.model, [(job.finished_at or 0.0) - (job.started_at or 0.0)])
