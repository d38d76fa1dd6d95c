"""Run one job from claimed to done, in a loop that reads the row and takes the next step. A crash resumes there.

Intent written → submit → upstream id written → poll → collect → check → done. Every write is fenced by the claim.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from penstock.catalog.file_input import file_at, given_file
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
from penstock.domain.jobs import Claim, Job, Outcome, Phase, State
from penstock.errors import StoreUnavailable
from penstock.jobs.collection import kept_result
from penstock.jobs.context import MAX_BACKOFF_SECONDS, HandedOver, JobContext, RunnerServices
from penstock.jobs.files.reuse import mark_result
from penstock.jobs.placement import OrderPlacement
from penstock.jobs.progress import ProgressFeed
from penstock.jobs.quarantine import MAX_DEATHS, Risk
from penstock.observability import logs, metrics, traces
from penstock.offers.offer import credential_id
from penstock.storage.backend import StorageUnavailable
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.jobs.job_rows import FenceLost
from penstock.store.signals import Subscription, nudge
from penstock.upstream.exchange import TROUBLE
from penstock.vendor_api.generation import Done, Failed, Running

MAX_CRASHES = 5
MAX_BAD_OUTPUTS = 2
"""Downloads of an output that cannot be opened: it was paid for, and a transfer can break too."""
MAX_ABSENT_POLLS = 7
"""Polls in a row that must not know an order before it counts as gone. Their pauses double, for 1 to 3 minutes."""
MAX_RESTARTS = 10
"""Restarts of an order that costs nothing after the machine that worked on it was lost."""
RESULT_TIMEOUT_SECONDS = 1800.0
"""Seconds for which the download of a finished order's result is retried."""
PROGRESS_INTERVAL_SECONDS = 0.5
DEADLY_JOB_MESSAGE = (
    "{} gateway processes died while they worked on this job ({}), all but the first while it ran as the only suspect. "
    "It is not retried. Send a new request, or ask the operator to check the logs."
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class JobRun:
    """One run of a job, from the state in its row to its end or to a failure of our own."""

    context: JobContext
    placement: OrderPlacement
    seat: asyncio.Event  # set once the vendor has room for the job
    cannot_cancel: bool = False
    cancel_failures: int = 0
    cancel_at: float = 0.0
    download_failed_at: float = 0.0
    progress_written_at: float = 0.0
    bad_outputs: int = 0
    absent_polls: int = 0
    feed: ProgressFeed | None = None
    news: Running | None = None  # heard from the feed and not yet written

    @property
    def job(self) -> Job:
        """The job as last read from the store."""
        return self.context.job

    @property
    def services(self) -> RunnerServices:
        """Parts of the gateway that a job run needs."""
        return self.context.services

    async def work(self) -> None:
        """Take the next step until the job is done."""
        try:
            while not self.job.done:
                await self._step_safely()
        finally:
            self._close_feed()
        self._count_finished()

    async def _step_safely(self) -> None:
        """Take one step. An error of the job ends it; while our own storage fails, the job waits."""
        try:
            await self.step()
        except JobError as error:
            await self._fail(error)
        except StorageUnavailable:
            is_paid = self.job.phase is Phase.STORING
            self.context.grace_seconds = RESULT_TIMEOUT_SECONDS if is_paid else 0.0
            await self.context.back_off()

    async def step(self) -> None:
        """Take the step that the row calls for."""
        job, now = self.job, self.services.steady()
        canceled_early = job.state is State.CANCELING and job.attempt is None
        if canceled_early or self.context.seconds_left() <= 0:
            await self._end_early(self.services.clock())
        elif (wait := self._find_obstacle()) is not None:
            await wait()
        elif (path := _find_unfetched(job)) is not None:
            await self._fetch_input(path)
        elif job.attempt is None:
            await self.placement.submit()
        elif job.attempt.operation is None:
            await self.placement.reconcile(job.attempt)
        elif job.state is State.CANCELING and not self.cannot_cancel and now >= self.cancel_at:
            await self._cancel_order(job.attempt.operation, now)
        else:
            await self._poll(job.attempt.operation)

    def _find_obstacle(self) -> Callable[[], Awaitable[None]] | None:
        """Return the wait that the job needs before its next step, if any."""
        job = self.job
        if job.vendor not in self.services.offers().vendors:
            return self._wait_for_vendor
        if job.attempt is None and not self.seat.is_set():
            return self._wait_for_seat
        if self.context.risk.lacks_turn and (job.attempt is None or job.phase is Phase.STORING):
            return self._wait_for_turn
        return None

    # -- before the vendor

    async def _wait_for_seat(self) -> None:
        """Wait for a seat at the vendor, a cancel or the deadline."""
        if self.job.state is State.RUNNING and self.job.phase is not Phase.THROTTLED:  # rerouted from another vendor
            await self.context.amend(_throttle)
            return
        await self._wait_for_grant(self.seat)

    async def _wait_for_grant(self, granted: asyncio.Event) -> None:
        """Wait until another job frees what this one needs, for a cancel, or for the deadline."""
        spread = random.uniform(1, 2)  # noqa: S311  thousands may wait, and should not all read their rows together
        # A cancel may have been signaled before we listened, so that the wait must end by itself.
        await self._wait_for_event(granted, min(MAX_BACKOFF_SECONDS * spread, self.context.seconds_left()))
        if not granted.is_set():
            await self.context.refresh()

    async def _wait_for_event(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for an event or a signal, whichever is first. Return whether a signal came."""
        waiting = asyncio.ensure_future(event.wait())
        signaled = asyncio.ensure_future(self.context.subscription.wait(max(0.0, seconds)))
        try:
            await asyncio.wait((waiting, signaled), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            signaled.cancel()
        return signaled.done() and signaled.result()

    async def _wait_for_turn(self) -> None:
        """Wait for this suspect's turn to take its risky step. Raise if too many died in it and nothing is paid."""
        if self.context.risk.deaths >= MAX_DEATHS and self.job.phase is not Phase.STORING:
            await self.context.amend(self.context.start)
            message = DEADLY_JOB_MESSAGE.format(self.context.risk.deaths, self.job.phase)
            raise JobCrashed(message, stage=self.job.phase.value)
        begun = self.services.steady()
        pause = self.services.quarantine.wait_left(self.context.risk)
        if pause > 0:
            await self.context.wait(max(0.0, min(pause, self.context.seconds_left())))
        else:
            turn = self.context.risk.ask(self.job.account_id, self.job.id)
            await self._wait_for_grant(turn.granted)
            if turn.granted.is_set():
                self.context.risk.begin(turn)
        self.context.quarantine_seconds += self.services.steady() - begun

    async def _wait_for_vendor(self) -> None:
        """Wait for the settings to name the job's vendor again: a paid job does not fail because they lost it."""
        fields = {"vendor": self.job.vendor}
        log.error("the job's vendor is not configured; the job waits for it", extra={"fields": fields})
        await self.context.mark_waiting()
        await self.context.wait(MAX_BACKOFF_SECONDS)

    async def _fetch_input(self, path: str) -> None:
        """Store a copy of the file behind the caller's URL before anything is paid."""
        await self.context.amend(lambda job: replace(self.context.start(job), phase=Phase.FETCHING))
        if self.job.state is not State.RUNNING:
            return
        await self.context.mark_risky()
        file, kinds = file_at(self.job.params, path), self.job.to_fetch.get(path, ("image",))
        inputs = self.services.inputs
        stored = await inputs.fetch(file["url"], file.get("type"), kinds, self.job.account_id, self.job.id)
        await self.context.amend(lambda job: jobs.take_file(job, path, stored))

    # -- the vendor works

    async def _poll(self, operation: Mapping[str, Any]) -> None:
        """Wait until the next poll is due or a signal comes, or poll the vendor and handle its answer."""
        now = self.services.steady()
        if now < self.context.poll_at:
            await self.context.mark_waiting()
            await self._wait_for_poll(self._follow(operation), now)
            return
        if self.context.poll_at:
            metrics.POLL_LATE.labels(self.job.vendor).observe(now - self.context.poll_at)
            self.context.poll_at = 0.0
        try:
            async with asyncio.timeout(self.context.seconds_left()):
                answer = kept_result(operation)
                if answer is None:
                    answer = await self.services.polling.poll(self.job.vendor, self.context.vendor, operation)
                await self._handle_status(answer)
            self.context.failures = 0
        except TROUBLE as error:
            self._check_result_timeout(now)
            await self.context.back_off(getattr(error, "retry_after", None))
        except TimeoutError:
            await self.context.refresh()

    async def _wait_for_poll(self, feed: ProgressFeed | None, now: float) -> None:
        """Write the latest news of the order, or wait for the next poll or cancel, for a signal, or for news."""
        write_at = self.progress_written_at + PROGRESS_INTERVAL_SECONDS
        if self.news is not None and now >= write_at:
            news, self.news = self.news, None
            await self._write_progress(news)
            return
        times = [self.context.poll_at, self.cancel_at, *([write_at] if self.news else [])]
        seconds = min([time - now for time in times if time > now] + [self.context.seconds_left()])
        if feed is None:
            signaled = await self.context.subscription.wait(seconds)
        else:
            signaled = await self._wait_for_event(feed.heard, seconds)
            self._take_news(feed)
        if signaled:
            self.context.poll_at = 0.0  # the caller canceled, or the vendor called back
            await self.context.refresh()

    def _follow(self, operation: Mapping[str, Any]) -> ProgressFeed | None:
        """Return the feed of the current order, opened if it has a channel and is still at work."""
        reference = self.job.attempts[-1].reference
        if self.feed is not None and self.feed.reference != reference:
            self._close_feed()
        if self.feed is None and self.job.phase is not Phase.STORING:
            self.feed = self.services.channels.open(self.job.vendor, self.context.vendor, operation, reference)
        return self.feed

    def _take_news(self, feed: ProgressFeed) -> None:
        """Keep the news of the order until they are written, and poll at once if they ask for it."""
        news, is_poll_due = feed.take()
        self.news = news or self.news
        if is_poll_due:
            self.context.poll_at = 0.0

    def _close_feed(self) -> None:
        """Stop listening to the order."""
        if self.feed is not None:
            self.feed.close()
        self.feed = self.news = None

    def _check_result_timeout(self, now: float) -> None:
        """Raise if the result could not be downloaded for too long: the seat is needed for other jobs."""
        if self.job.phase is Phase.STORING:
            self.download_failed_at = self.download_failed_at or now
            if now - self.download_failed_at > RESULT_TIMEOUT_SECONDS:
                minutes = RESULT_TIMEOUT_SECONDS / 60
                raise BadOutput(f"The vendor's result could not be downloaded for {minutes:g} minutes.")

    async def _handle_status(self, answer: Running | Done | Failed) -> None:
        """Handle the vendor's answer to a poll."""
        before, now = self.context.polled_at, self.services.steady()
        self.context.polled_at = now
        is_gone = isinstance(answer, Failed) and answer.gone
        self.absent_polls = self.absent_polls if is_gone else 0
        if isinstance(answer, Running):
            await self._record_progress(answer)
            return
        self._close_feed()
        if before and not is_gone and self.job.phase is not Phase.STORING:  # otherwise it was counted before
            self.services.cadence.learn(self.job.attempts[-1].route, self._order_age())
            finished_at = getattr(answer, "finished_at", None)
            reported = now - before if finished_at is None else max(0.0, self.services.clock() - finished_at)
            lag = min(now - before, reported)
            metrics.DETECTION_LAG.labels(self.job.vendor).observe(lag)
        if isinstance(answer, Failed):
            if answer.gone and self.context.vendor.repeats and await self._restart_order():
                return
            if answer.gone and await self._wait_for_missing_order():
                return
            raise answer.error
        try:
            await self._collect(answer)
        except BadOutput:
            self.bad_outputs += 1
            if self.bad_outputs >= MAX_BAD_OUTPUTS:
                raise
            await self.context.back_off()

    async def _wait_for_missing_order(self) -> bool:
        """Wait before the next poll of an order that the vendor does not know. Return False after enough of them."""
        if self.job.attempts[-1].credential != credential_id(self.context.vendor):
            fields = {"vendor": self.job.vendor}
            log.error("the credential of an order is not configured; the job waits for it", extra={"fields": fields})
            await self.context.back_off()
            return True
        self.absent_polls += 1
        if self.absent_polls >= MAX_ABSENT_POLLS:
            return False
        seconds = self.context.vendor.options.poll_seconds * 2**self.absent_polls
        await self.context.back_off(min(MAX_BACKOFF_SECONDS, seconds))
        return True

    async def _restart_order(self) -> bool:
        """Restart an order that cost nothing and whose machine was lost. Return False after too many restarts."""
        if sum(past.outcome is Outcome.ABANDONED for past in self.job.attempts) >= MAX_RESTARTS:
            return False
        await self.context.amend(lambda job: jobs.end_attempt(job, Outcome.ABANDONED, phase=Phase.DISPATCHING))
        return True

    async def _record_progress(self, answer: Running) -> None:
        """Schedule the next poll, and write progress."""
        least = self.context.vendor.options.poll_seconds
        wait = self.services.cadence.wait(self.job.attempts[-1].route, self._order_age(), answer.eta_seconds, least)
        wait = wait if answer.poll_after is None else max(least, answer.poll_after)
        self.context.poll_at = self.services.steady() + wait
        await self._write_progress(answer)

    async def _write_progress(self, answer: Running) -> None:
        """Write progress if there is any, though not too often."""
        now = self.services.steady()
        usual = self.services.history.usual_end(self.job.model, self.job.started_at)
        eta_at = usual if answer.eta_seconds is None else self.services.clock() + answer.eta_seconds
        progress = max(self.job.progress, min(0.99, answer.progress or 0.0))
        moved = progress - self.job.progress >= 0.01 or answer.queue_position != self.job.upstream_position
        if moved and now - self.progress_written_at >= PROGRESS_INTERVAL_SECONDS:
            self.progress_written_at = now
            changes = {"progress": progress, "eta_at": eta_at, "upstream_position": answer.queue_position}
            await self.context.amend(lambda job: replace(job, **changes))

    def _order_age(self) -> float:
        """Return the seconds since the order was placed."""
        return max(0.0, self.services.clock() - self.job.attempts[-1].started_at)

    async def _collect(self, answer: Done) -> None:
        """Download and store the outputs. A failed download is retried after a fresh poll: its URL may be old."""
        if self.job.phase is not Phase.STORING:
            await self.context.amend(lambda job: replace(job, phase=Phase.STORING, progress=0.99, eta_at=None))
        await self.context.mark_risky()
        model = self.services.offers().known.get(self.job.model)  # None: the settings no longer declare it
        expected = answer.expected or (Expectation() if model is None else model.expect(self.job.params))
        collected = await self.services.collection.collect(
            self.job, self.context.vendor, answer.outputs, expected, answer.seed
        )
        now = self.services.clock()
        warnings = [self.services.offers().redactor.text(warning) for warning in answer.warnings]

        def change(job: Job) -> Job:
            job = replace(job, seed=job.seed if answer.seed is None else answer.seed)
            job = jobs.name_result(job, answer.result_id)
            return jobs.succeed(job, now, collected.outputs, (*warnings, *collected.warnings))

        done, route = self.job, (self.job.vendor, self.job.upstream_model)
        mark = None if model is None else mark_result(model, route, done.params, done.inputs)
        await self.context.deliver(change, now, mark)
        await self.services.collection.drop_reply(answer.outputs)

    # -- the end

    async def _cancel_order(self, operation: Mapping[str, Any], now: float) -> None:
        """Ask the vendor to stop the order. If it cannot, the order goes on and its result is kept."""
        try:
            stopped = await self.context.drive("cancel", self.context.vendor.cancel(operation))
        except TROUBLE:
            self.cancel_failures += 1
            seconds = self.context.vendor.options.poll_seconds * 2 ** min(self.cancel_failures, 10)
            self.cancel_at = now + min(MAX_BACKOFF_SECONDS, seconds)
            return
        now = self.services.clock()
        if stopped:
            await self.context.amend(lambda job: jobs.stop(job, now))
        else:
            self.cannot_cancel = True
            warning = "The vendor cannot stop this job. It goes on, and its result will be kept."
            await self.context.amend(lambda job: jobs.warn(job, [warning]))

    async def _end_early(self, now: float) -> None:
        """End a job that was canceled early or has passed a deadline, and ask the vendor to stop its order."""
        error = StartTimeout() if self.job.started_at is None else RunTimeout(stage=self.job.phase.value)
        operation = self.job.attempt.operation if self.job.attempt else None
        if operation is not None:
            with suppress(*TROUBLE, KeyError):  # a job whose vendor is no longer configured expires too
                await self.context.drive("cancel", self.context.vendor.cancel(operation))
        body = error.body(self.job.request_id)

        def change(job: Job) -> Job:
            if job.state is State.CANCELING:
                return jobs.stop(job, now)
            return job if job.done else jobs.fail(job, now, body, Outcome.ABANDONED, State.EXPIRED)

        await self.context.amend(change)

    async def _fail(self, error: JobError) -> None:
        """End the job with this error."""
        error.upstream = self.services.exchange.redact(error.upstream, self.services.offers().redactor)
        now, body = self.services.clock(), error.body(self.job.request_id)
        unknown = isinstance(error, UpstreamOutcomeUnknown)
        await self.context.amend(lambda job: jobs.fail(job, now, body, Outcome.UNKNOWN if unknown else Outcome.FAILED))

    async def give_up(self) -> None:
        """End a job that has crashed too often."""
        if not self.job.done:
            await self.context.amend(self.context.start)
            await self._fail(JobCrashed(stage=self.job.phase.value))
        self._count_finished()

    def _count_finished(self) -> None:
        """Count the finished job in the metrics, and its duration in the history."""
        job = self.job
        code = str(job.error["code"]) if job.error else ""
        metrics.JOBS_FINISHED.labels(job.model, job.vendor, job.state.value, code).inc()
        metrics.JOB_SECONDS.labels(job.model).observe((job.finished_at or 0.0) - job.created_at)
        if job.state is State.SUCCEEDED:
            self.services.history.add(job.model, [(job.finished_at or 0.0) - (job.started_at or 0.0)])


def _find_unfetched(job: Job) -> str | None:
    """Return the path of the next file to fetch from its URL; None if all are stored."""
    paths = [*(["file"] if "url" in given_file(job.params) else []), *job.to_fetch]
    return next((path for path in paths if path not in job.inputs), None)


def _throttle(job: Job) -> Job:
    return replace(job, phase=Phase.THROTTLED) if job.state is State.RUNNING else job


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs claimed jobs. A dispatch gets its method `run`."""

    services: RunnerServices

    async def run(self, claim: Claim, job: Job, seat: asyncio.Event) -> None:
        """Work until the job is done or another process has it. After a failure of our own, start over from the row."""
        crashes = 0
        known: Job | None = job
        risk = self.services.quarantine.enter(claim.deaths)
        with (
            logs.bind(job_id=claim.job_id),
            self.services.database.signals.listen(nudge(claim.job_id)) as subscription,
            traces.job(job, claim.epoch) as span,
        ):
            del job  # only the context holds the job while it runs, in its newest version
            while True:
                try:
                    context = await self._open(claim, known, subscription, risk)
                    known = None
                    run = JobRun(context, OrderPlacement(context, lost_at=self.services.steady()), seat)
                    await (run.give_up() if crashes >= MAX_CRASHES else run.work())
                except (FenceLost, HandedOver):
                    return
                except StoreUnavailable:
                    log.warning("the store does not answer; the job waits for it")
                except Exception:
                    crashes += 1
                    fields = {"times": crashes}
                    log.exception("working on the job failed; it starts over from its row", extra={"fields": fields})
                else:
                    traces.tell_end(span, context.job)
                    return
                finally:
                    risk.end_turn()
                known = None
                await asyncio.sleep(1)

    async def _open(self, claim: Claim, known: Job | None, subscription: Subscription, risk: Risk) -> JobContext:
        job = known or await self.services.database.read(job_rows.get_claimed, claim)
        return JobContext(self.services, claim, job, subscription, risk)
