"""A claimed job and every operation on it: each write is fenced by the claim, and each wait ends early on a signal."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.domain import jobs
from penstock.domain.jobs import Attempt, Claim, Job, ResultMark, State
from penstock.jobs.collection import Collection
from penstock.jobs.durations import History
from penstock.jobs.files.inputs import Inputs
from penstock.jobs.polling import Cadence, Polling
from penstock.jobs.progress import ProgressChannels
from penstock.jobs.quarantine import Quarantine, Risk, RiskLevel
from penstock.offers.offer import Offers
from penstock.store.database import Database
from penstock.store.group_commit import GroupCommit
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.runs import amendment_rows
from penstock.store.queries.runs.amendment_rows import Amendment
from penstock.store.signals import Subscription
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.generation import MAX_RETRY_AFTER_SECONDS, Flow, GenerationVendor, Order

MAX_BACKOFF_SECONDS = 30.0

T = TypeVar("T")


class HandedOver(Exception):
    """The job goes on at another vendor and is free to be claimed again, in that vendor's queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerServices:
    """Parts of the gateway that a job run needs."""

    database: Database
    writes: GroupCommit[Amendment, Job]
    offers: Callable[[], Offers]
    exchange: Exchange
    polling: Polling
    channels: ProgressChannels
    quarantine: Quarantine
    collection: Collection
    inputs: Inputs
    history: History
    cadence: Cadence
    clock: Callable[[], float]
    is_sure: Callable[[Claim], bool]  # whether the claim is certainly still ours
    webhook: Callable[[str, GenerationVendor, str], str | None]  # the callback URL for an order, if the vendor has one
    steady: Callable[[], float] = time.monotonic  # measures all waits, as it never jumps


@dataclass(slots=True)
class JobContext:
    """One job under a claim, as last read from the store, with its deadline and its retry and poll timers."""

    services: RunnerServices
    claim: Claim
    job: Job
    subscription: Subscription
    risk: Risk
    failures: int = 0  # in a row, for the backoff
    grace_seconds: float = 0.0  # added to the deadline while our own storage fails
    quarantine_seconds: float = 0.0  # spent waiting as a suspect, which does not count against the caller's deadline
    poll_at: float = 0.0
    polled_at: float = 0.0
    _deadline_at: float = field(default=0.0, init=False)
    _known_deadline: tuple[float | None, float] | None = field(default=None, init=False)

    @property
    def vendor(self) -> GenerationVendor:
        """The vendor written on the job, never another one."""
        offers, attempt = self.services.offers(), self.job.attempt
        return offers.vendors[self.job.vendor] if attempt is None else offers.vendor_of(attempt)

    def seconds_left(self) -> float:
        """Return the seconds until the deadline. Changes of the wall clock after the first call do not count."""
        job, now = self.job, self.services.steady()
        if self._known_deadline is None or self._known_deadline[0] != job.started_at:
            self._deadline_at = now + job.seconds_left(self.services.clock())
        else:
            self._deadline_at += job.deadline - self._known_deadline[1]
        self._known_deadline = job.started_at, job.deadline
        return self._deadline_at + self.grace_seconds + self.quarantine_seconds - now

    def make_order(self, attempt: Attempt) -> Order:
        """Return the order to place with the vendor, or to look up there."""
        model = self.services.offers().known.get(self.job.model)
        webhook = self.services.webhook(attempt.vendor, self.vendor, attempt.reference)
        recipe = None if model is None else model.recipe
        return Order(
            attempt.reference,
            attempt.model,
            self.job.params,
            self.job.file,
            recipe,
            webhook,
            attempt.started_at,
            self.services.clock(),
            self.job.files,
            attempt.vendor,
            attempt.credential,
            self.job.model,
        )

    async def drive(self, verb: str, flow: Flow[T]) -> T:
        """Make the calls of one verb of the job's vendor."""
        return await self.services.exchange.drive(self.job.vendor, self.vendor, verb, flow)

    # -- fenced writes

    def start(self, job: Job) -> Job:
        """Return the job as running, if it was still queued."""
        return jobs.start(job, self.services.clock()) if job.state is State.QUEUED else job

    async def amend(self, change: Callable[[Job], Job]) -> None:
        """Write a change, and take over the row as it was written: the caller may have canceled the job."""
        self._take_row(await self._write(Amendment(self.claim, change, self.services.clock())))
        self.seconds_left()  # if this write started the job, its run time counts from now

    async def hand_on(self, change: Callable[[Job], Job]) -> None:
        """Write that the job goes on at another vendor, and release the claim if it still runs."""
        self._take_row(await self.services.database.write(job_rows.hand_on, self.claim, change, self.services.clock()))

    async def adopt(
        self, upstream_ids: Sequence[str], change: Callable[[Job, str], Job], now: float, seen_at: Mapping[str, float]
    ) -> None:
        """Attach the first of the vendor's orders that no other job holds, if there is one."""
        database = self.services.database
        self._take_row(await database.write(job_rows.adopt, self.claim, upstream_ids, change, now, seen_at))

    async def deliver(self, change: Callable[[Job], Job], now: float, mark: ResultMark | None) -> None:
        """Write the finished job together with its assets and the mark of its result."""
        self.job = await self._write(Amendment(self.claim, change, now, delivers=True, mark=mark))

    async def _write(self, amendment: Amendment) -> Job:
        """Write a change together with those of other jobs, or alone if it must be."""
        written = await self.services.writes.write(amendment)
        return written or await self.services.database.write(amendment_rows.amend, amendment)

    async def mark_risky(self) -> None:
        """Record that a risky step begins: if the process dies during it, the job becomes a suspect."""
        risk = self.risk
        if risk.level is not risk.wanted:
            await self.services.database.write(job_rows.mark_risk, self.claim, risk.wanted, risk.beside)
            risk.level = risk.wanted

    async def mark_waiting(self) -> None:
        """Record that the job only waits: it is not blamed if the process dies meanwhile."""
        self.risk.end_turn()
        if self.risk.level is not RiskLevel.NONE:
            await self.services.database.write(job_rows.mark_risk, self.claim, RiskLevel.NONE)
            self.risk.level = RiskLevel.NONE

    # -- reads

    async def refresh(self) -> None:
        """Read the row again: the caller may have canceled the job."""
        self._take_row(await self.services.database.read(job_rows.get_claimed, self.claim))

    async def has_free(self, upstream_ids: Sequence[str]) -> bool:
        """Return whether one of these orders is held by no other job."""
        return await self.services.database.read(job_rows.has_free, self.claim, upstream_ids)

    def _take_row(self, job: Job) -> None:
        """Keep the job as the store has it now. The store derives the mark of a risky step from its phase."""
        if job.phase is not self.job.phase:
            self.risk.level = RiskLevel.SHARED if job.phase in jobs.RISKY else RiskLevel.NONE
            if jobs.has_advanced(self.job.phase, job.phase):
                self.risk.advance()
        self.job = job

    # -- waits

    async def wait(self, seconds: float) -> None:
        """Wait for a signal or this many seconds, then read the row again."""
        await self.subscription.wait(seconds)
        await self.refresh()

    async def back_off(self, seconds: float | None = None) -> None:
        """Wait before a retry: exponentially longer with each failure in a row, or as long as the vendor asks."""
        self.failures += 1
        await self.mark_waiting()
        least = self.vendor.options.poll_seconds
        pause = (
            min(MAX_BACKOFF_SECONDS, least * 2 ** min(self.failures, 10))
            if seconds is None
            else max(least, min(seconds, MAX_RETRY_AFTER_SECONDS))
        )
        await self.wait(max(0.05, min(pause, self.seconds_left())))

    def schedule_first_poll(self) -> None:
        """Poll the vendor after its usual interval: it has accepted the order."""
        self.failures = 0
        self.polled_at = self.services.steady()
        self.poll_at = self.polled_at + self.vendor.options.poll_seconds
