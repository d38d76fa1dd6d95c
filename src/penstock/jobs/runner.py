"""One job from claimed to done: a loop that looks at the row and does the next thing, so any crash resumes there.

Intent written → submit → upstream id written → poll → collect → check → done. Every write is fenced by the claim.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from penstock.catalog.file_input import given_file
from penstock.catalog.model import Expectation
from penstock.domain import jobs
from penstock.domain.job_errors import (
    BadOutput,
    JobCrashed,
    JobError,
    RunTimeout,
    StartTimeout,
    UpstreamOutcomeUnknown,
)
from penstock.domain.jobs import Job, Outcome, Phase, State
from penstock.errors import StoreUnavailable
from penstock.jobs.context import MAX_PAUSE, HandedOver, JobContext, RunnerServices
from penstock.jobs.placement import OrderPlacement
from penstock.jobs.quarantine import MAX_DEATHS
from penstock.observability import logs, metrics, traces
from penstock.offers.offer import credential_id
from penstock.storage.backend import StorageUnavailable
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.jobs.job_rows import Claim, FenceLost
from penstock.store.signals import nudge
from penstock.upstream.exchange import TROUBLE
from penstock.vendor_api.generation import Done, Failed, Running

MAX_CRASHES = 5
MAX_BAD_OUTPUTS = 2
"""How often an output that cannot be opened is fetched: it was paid for, and bytes break on their way too."""
MAX_ABSENCES = 7
"""Polls in a row that must not know an order before it is gone: their pauses double, for one to three minutes."""
MAX_ANEW = 10
"""How often an order that costs nothing is begun again after the machine that made it was gone."""
RESULT_SECONDS = 1800.0
"""How long a finished order's result is tried for."""
PROGRESS_SECONDS = 0.5
DEADLY = (
    "{} processes of the gateway died while they worked on this job ({}), all but the first on no other suspect. "
    "It is not tried again. Send a new request, or ask the operator to look into the logs."
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class JobRun:
    """One stretch of work on one job, from what the row says to its end."""

    context: JobContext
    placement: OrderPlacement
    seat: asyncio.Event  # set once the vendor has room for the job
    cannot_cancel: bool = False
    cancels: int = 0
    cancel_at: float = 0.0
    stuck_since: float = 0.0
    told_at: float = 0.0
    bad_outputs: int = 0
    absences: int = 0

    @property
    def job(self) -> Job:
        """The job as the row said last."""
        return self.context.job

    @property
    def services(self) -> RunnerServices:
        """Parts of the gateway that work on jobs needs."""
        return self.context.services

    async def work(self) -> None:
        """Do the next thing until nothing is left to do."""
        while not self.job.done:
            try:
                await self.step()
            except JobError as error:
                await self.fail(error)
            except StorageUnavailable:  # our own place of bytes: the job waits for it
                is_made = self.job.phase is Phase.STORING  # and paid for
                self.context.grace = RESULT_SECONDS if is_made else 0.0
                await self.context.pause()
        self.count()

    async def step(self) -> None:
        """The next thing, as the row tells it."""
        job, now = self.job, self.services.steady()
        canceled_early = job.state is State.CANCELING and job.attempt is None
        if canceled_early or self.context.left() <= 0:
            await self.close(self.services.clock())
        elif (wait := self.find_obstacle()) is not None:
            await wait()
        elif job.file is None and "url" in given_file(job.params):
            await self.fetch()
        elif job.attempt is None:
            await self.placement.submit()
        elif job.attempt.operation is None:
            await self.placement.reconcile(job.attempt)
        elif job.state is State.CANCELING and not self.cannot_cancel and now >= self.cancel_at:
            await self.cancel(job.attempt.operation, now)
        else:
            await self.poll(job.attempt.operation)

    def find_obstacle(self) -> Callable[[], Awaitable[None]] | None:
        """Return how to wait for what keeps the job from its next step, if anything does."""
        job = self.job
        if job.vendor not in self.services.offers().vendors:
            return self.wait_for_vendor
        if job.attempt is None and not self.seat.is_set():
            return self.wait_for_seat
        if self.context.risk.lacks_turn and (job.attempt is None or job.phase is Phase.STORING):
            return self.wait_for_turn
        return None

    # -- before the vendor

    async def wait_for_seat(self) -> None:
        """Wait for the vendor to have room, for a cancel, or for the deadline."""
        if self.job.state is State.RUNNING and self.job.phase is not Phase.THROTTLED:  # it comes from another vendor
            await self.context.amend(_throttle)
            return
        await self.wait_for_grant(self.seat)

    async def wait_for_grant(self, granted: asyncio.Event) -> None:
        """Wait for what others let go of, for a cancel, or for the deadline."""
        waiting = asyncio.ensure_future(granted.wait())
        spread = random.uniform(1, 2)  # noqa: S311  thousands may wait, and should not all look at once
        patience = min(MAX_PAUSE * spread, self.context.left())  # a cancel may have rung before anyone listened
        rung = asyncio.ensure_future(self.context.subscription.wait(max(0.0, patience)))
        try:
            await asyncio.wait((waiting, rung), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            rung.cancel()
        if not granted.is_set():
            await self.context.look_again()

    async def wait_for_turn(self) -> None:
        """Wait until this suspect may take its step, as the only one here; after too many deaths end the job."""
        if self.context.risk.deaths >= MAX_DEATHS:
            await self.context.amend(self.context.started)
            raise JobCrashed(DEADLY.format(self.context.risk.deaths, self.job.phase), stage=self.job.phase.value)
        begun = self.services.steady()
        pause = self.services.quarantine.wait_left(self.context.risk)
        if pause > 0:
            await self.context.subscription.wait(max(0.0, min(pause, self.context.left())))
            await self.context.look_again()
        else:
            turn = self.context.risk.ask(self.job.account_id, self.job.id)
            await self.wait_for_grant(turn.granted)
            if turn.granted.is_set():
                self.context.risk.begin(turn)
        self.context.held_back += self.services.steady() - begun

    async def wait_for_vendor(self) -> None:
        """The settings have lost the job's vendor: a paid job is not failed for that, it waits to be found again."""
        log.error("the job's vendor is not configured", extra={"fields": {"vendor": self.job.vendor}})
        await self.context.step_back()
        await self.context.subscription.wait(MAX_PAUSE)
        await self.context.look_again()

    async def fetch(self) -> None:
        """Snapshot the caller's URL before anything is paid."""
        await self.context.amend(lambda job: replace(self.context.started(job), phase=Phase.FETCHING))
        if self.job.state is not State.RUNNING:
            return
        await self.context.dare()
        file = self.job.params["file"]
        inputs = self.services.inputs
        stored = await inputs.fetch(file["url"], file.get("type"), self.job.account_id, self.job.id)
        await self.context.amend(lambda job: replace(job, file=stored))

    # -- the vendor works

    async def poll(self, operation: Mapping[str, Any]) -> None:
        """Wait for the next poll, a ring or the deadline; then ask, and bring home what is done by then."""
        now = self.services.steady()
        if now < self.context.poll_at:
            await self.context.step_back()
            poll_at, cancel_at = self.context.poll_at, self.cancel_at
            wake_at = min(poll_at, cancel_at) if cancel_at > now else poll_at  # the vendor is asked to stop again
            if await self.context.subscription.wait(min(wake_at - now, self.context.left())):
                self.context.poll_at = 0.0  # the caller cancels, or the vendor calls back: no need to wait
                await self.context.look_again()
            return
        if self.context.poll_at:
            metrics.POLL_LATE.labels(self.job.vendor).observe(now - self.context.poll_at)
            self.context.poll_at = 0.0
        try:
            async with asyncio.timeout(self.context.left()):
                await self.heard(await self.services.polling.poll(self.job.vendor, self.context.vendor, operation))
            self.context.troubles = 0
        except TROUBLE as error:
            self.give_up_result(now)
            await self.context.pause(getattr(error, "retry_after", None))
        except TimeoutError:
            await self.context.look_again()

    def give_up_result(self, now: float) -> None:
        """A result that cannot be fetched for a long time never will be, and its seat is needed."""
        if self.job.phase is Phase.STORING:
            self.stuck_since = self.stuck_since or now
            if now - self.stuck_since > RESULT_SECONDS:
                raise BadOutput(f"The vendor's result could not be fetched for {RESULT_SECONDS / 60:g} minutes.")

    async def heard(self, answer: Running | Done | Failed) -> None:
        """What the vendor said of the order."""
        before, now = self.context.polled_at, self.services.steady()
        self.context.polled_at = now
        is_gone = isinstance(answer, Failed) and answer.gone
        self.absences = self.absences if is_gone else 0
        if isinstance(answer, Running):
            await self.running(answer)
            return
        if before and not is_gone and self.job.phase is not Phase.STORING:  # else it was noticed before
            self.services.cadence.learn(self.job.attempts[-1].route, self.age())
            finished_at = getattr(answer, "finished_at", None)
            told = now - before if finished_at is None else max(0.0, self.services.clock() - finished_at)
            lag = min(now - before, told)
            metrics.DETECTION_LAG.labels(self.job.vendor).observe(lag)
        if isinstance(answer, Failed):
            if answer.gone and self.context.vendor.repeats and await self.place_anew():
                return
            if answer.gone and await self.doubts_absence():
                return
            raise answer.error
        try:
            await self.collect(answer)
        except BadOutput:
            self.bad_outputs += 1
            if self.bad_outputs >= MAX_BAD_OUTPUTS:
                raise
            await self.context.pause()

    async def doubts_absence(self) -> bool:
        """Wait for the next look at an order that the vendor does not know; False if it was looked for often enough."""
        if self.job.attempts[-1].credential != credential_id(self.context.vendor):
            log.error("the credential that placed an order is needed", extra={"fields": {"vendor": self.job.vendor}})
            await self.context.pause()
            return True
        self.absences += 1
        if self.absences >= MAX_ABSENCES:
            return False
        await self.context.pause(min(MAX_PAUSE, self.context.vendor.options.poll_seconds * 2**self.absences))
        return True

    async def place_anew(self) -> bool:
        """The machine that made it is gone, and it cost nothing: begin again, but not for ever."""
        if sum(past.outcome is Outcome.ABANDONED for past in self.job.attempts) >= MAX_ANEW:
            return False
        await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.ABANDONED, phase=Phase.DISPATCHING))
        return True

    async def running(self, answer: Running) -> None:
        """Write progress when there is any, and not too often; then decide when to ask again."""
        now = self.services.steady()
        least = self.context.vendor.options.poll_seconds
        usual = self.services.history.usual_end(self.job.model, self.job.started_at)
        eta_at = usual if answer.eta_seconds is None else self.services.clock() + answer.eta_seconds
        wait = self.services.cadence.wait(self.job.attempts[-1].route, self.age(), answer.eta_seconds, least)
        self.context.poll_at = now + (wait if answer.poll_after is None else max(least, answer.poll_after))
        progress = max(self.job.progress, min(0.99, answer.progress or 0.0))
        moved = progress - self.job.progress >= 0.01 or answer.queue_position != self.job.upstream_position
        if moved and now - self.told_at >= PROGRESS_SECONDS:
            self.told_at = now
            told = {"progress": progress, "eta_at": eta_at, "upstream_position": answer.queue_position}
            await self.context.amend(lambda job: replace(job, **told))

    def age(self) -> float:
        """How long the vendor has been at work."""
        return max(0.0, self.services.clock() - self.job.attempts[-1].started_at)

    async def collect(self, answer: Done) -> None:
        """Bring the outputs home. A download that fails is tried again from a fresh poll: its address may be old."""
        if self.job.phase is not Phase.STORING:
            await self.context.amend(lambda job: replace(job, phase=Phase.STORING, progress=0.99, eta_at=None))
        await self.context.dare()
        model = self.services.offers().known.get(self.job.model)  # None: the settings no longer declare it
        expected = answer.expected or (Expectation() if model is None else model.expect(self.job.params))
        collected = await self.services.collection.collect(self.job, self.context.vendor, answer.outputs, expected)
        now = self.services.clock()
        warnings = [self.services.offers().redactor.text(warning) for warning in answer.warnings]

        def change(job: Job) -> Job:
            job = replace(job, seed=job.seed if answer.seed is None else answer.seed)
            return jobs.succeed(job, now, collected.outputs, (*warnings, *collected.warnings))

        await self.context.deliver(change, now)

    # -- the end

    async def cancel(self, operation: Mapping[str, Any], now: float) -> None:
        """Ask the vendor to stop; one that cannot goes on, and what it delivers is kept, as it is while it is asked."""
        try:
            stopped = await self.context.drive("cancel", self.context.vendor.cancel(operation))
        except TROUBLE:
            self.cancels += 1
            self.cancel_at = now + min(MAX_PAUSE, self.context.vendor.options.poll_seconds * 2 ** min(self.cancels, 10))
            return
        now = self.services.clock()
        if stopped:
            await self.context.amend(lambda job: jobs.stop(job, now))
        else:
            self.cannot_cancel = True
            warning = "The vendor cannot stop this job: it goes on, and its result will be kept."
            await self.context.amend(lambda job: jobs.warn(job, [warning]))

    async def close(self, now: float) -> None:
        """Nothing is left to wait for: the caller canceled, or a deadline has passed. The vendor is told to stop."""
        error = StartTimeout() if self.job.started_at is None else RunTimeout(stage=self.job.phase.value)
        operation = self.job.attempt.operation if self.job.attempt else None
        if operation is not None:
            with suppress(*TROUBLE, KeyError):  # whose vendor is gone from the settings expires all the same
                await self.context.drive("cancel", self.context.vendor.cancel(operation))
        body = error.body(self.job.request_id)

        def change(job: Job) -> Job:
            if job.state is State.CANCELING:
                return jobs.stop(job, now)
            return job if job.done else jobs.fail(job, now, body, Outcome.ABANDONED, State.EXPIRED)

        await self.context.amend(change)

    async def fail(self, error: JobError) -> None:
        """The job cannot be done."""
        error.upstream = self.services.exchange.redact(error.upstream, self.services.offers().redactor)
        now, body = self.services.clock(), error.body(self.job.request_id)
        unknown = isinstance(error, UpstreamOutcomeUnknown)
        await self.context.amend(lambda job: jobs.fail(job, now, body, Outcome.UNKNOWN if unknown else Outcome.FAILED))

    async def give_up(self) -> None:
        """Working on the job keeps failing: end it rather than try for ever."""
        if not self.job.done:
            await self.context.amend(self.context.started)
            await self.fail(JobCrashed(stage=self.job.phase.value))
        self.count()

    def count(self) -> None:
        """Learn from a finished job."""
        job = self.job
        code = str(job.error["code"]) if job.error else ""
        metrics.JOBS_FINISHED.labels(job.model, job.vendor, job.state.value, code).inc()
        metrics.JOB_SECONDS.labels(job.model).observe((job.finished_at or 0.0) - job.created_at)
        if job.state is State.SUCCEEDED:
            self.services.history.add(job.model, [(job.finished_at or 0.0) - (job.started_at or 0.0)])


def _throttle(job: Job) -> Job:
    return replace(job, phase=Phase.THROTTLED) if job.state is State.RUNNING else job


@dataclass(frozen=True, slots=True)
class Runner:
    """`run` is what a dispatch is handed."""

    services: RunnerServices

    async def run(self, claim: Claim, job: Job, seat: asyncio.Event) -> None:
        """Work until the job is done or someone else has it. Our own trouble is met by starting over from the row."""
        crashes = 0
        known: Job | None = job
        risk = self.services.quarantine.enter(claim.deaths)
        with (
            logs.bind(job_id=claim.job_id),
            self.services.database.signals.listen(nudge(claim.job_id)) as subscription,
            traces.job(job, claim.epoch) as span,
        ):
            while True:
                try:
                    current = known or await self.services.database.read(job_rows.get_claimed, claim)
                    context = JobContext(self.services, claim, current, subscription, risk)
                    run = JobRun(context, OrderPlacement(context, lost_at=self.services.steady()), seat)
                    await (run.give_up() if crashes >= MAX_CRASHES else run.work())
                except (FenceLost, HandedOver):
                    return
                except StoreUnavailable:
                    log.warning("the store does not answer; the job waits")
                except Exception:
                    crashes += 1
                    log.exception("working on the job failed", extra={"fields": {"times": crashes}})
                else:
                    traces.tell_end(span, context.job)
                    return
                finally:
                    risk.end_turn()
                known = None
                await asyncio.sleep(1)
