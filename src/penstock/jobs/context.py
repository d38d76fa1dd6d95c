"""A claimed job and the few ways to touch it: every write is fenced by the claim, every wait ends with a ring."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penstock.domain import jobs
from penstock.domain.jobs import Attempt, Job, State
from penstock.jobs.collection import Collection
from penstock.jobs.durations import History
from penstock.jobs.inputs import Inputs
from penstock.jobs.polling import Cadence, Polling
from penstock.jobs.quarantine import Quarantine, Risk, RiskLevel
from penstock.offers.offer import Offers
from penstock.store.database import Database
from penstock.store.queries.files import asset_rows
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.jobs.job_rows import Claim
from penstock.store.signals import Subscription
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.generation import MAX_RETRY_AFTER_SECONDS, Flow, GenerationVendor, Order

MAX_PAUSE = 30.0

T = TypeVar("T")


class HandedOver(Exception):
    """The job goes on at another vendor: it is free to be claimed anew, in that vendor's queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerServices:
    """What working on jobs needs."""

    database: Database
    offers: Callable[[], Offers]
    exchange: Exchange
    polling: Polling
    quarantine: Quarantine
    collection: Collection
    inputs: Inputs
    history: History
    cadence: Cadence
    clock: Callable[[], float]
    is_sure: Callable[[Claim], bool]  # whether a job claimed here is ours beyond doubt
    webhook: Callable[[str, GenerationVendor, str], str | None]  # where a vendor calls back about an order, if it may
    steady: Callable[[], float] = time.monotonic  # what is waited for here is counted by a clock that never jumps


@dataclass(slots=True)
class JobContext:
    """One job under a claim, as far as this process knows it."""

    services: RunnerServices
    claim: Claim
    job: Job
    subscription: Subscription
    risk: Risk
    troubles: int = 0
    due_at: float = 0.0
    grace: float = 0.0  # how much longer than its caller said it may take, for what is our own fault
    held_back: float = 0.0  # how long it has waited as a suspect: that is not its caller's time
    due: tuple[float | None, float] | None = None
    poll_at: float = 0.0
    polled_at: float = 0.0

    @property
    def vendor(self) -> GenerationVendor:
        """The vendor that was written on the job; never another."""
        offers, attempt = self.services.offers(), self.job.attempt
        return offers.vendors[self.job.vendor] if attempt is None else offers.vendor_of(attempt)

    def left(self) -> float:
        """Seconds until the deadline: from the first look on they pass steadily, whatever the time of day does."""
        job, now = self.job, self.services.steady()
        if self.due is None or self.due[0] != job.started_at:
            self.due_at = now + job.deadline - self.services.clock()
        else:
            self.due_at += job.deadline - self.due[1]
        self.due = job.started_at, job.deadline
        return self.due_at + self.grace + self.held_back - now

    def order(self, attempt: Attempt) -> Order:
        """What to ask of the vendor."""
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
        )

    def started(self, job: Job) -> Job:
        """The job as running, if it was still queued."""
        return jobs.start(job, self.services.clock()) if job.state is State.QUEUED else job

    async def drive(self, verb: str, flow: Flow[T]) -> T:
        """One verb of the job's vendor."""
        return await self.services.exchange.drive(self.job.vendor, self.vendor, verb, flow)

    async def amend(self, change: Callable[[Job], Job]) -> None:
        """Write a change under the fence; what comes back is the truth, a caller's cancel included."""
        self.learn(await self.services.database.write(job_rows.amend, self.claim, change, self.services.clock()))
        self.left()  # if this began the work, its time runs from now

    async def hand_on(self, change: Callable[[Job], Job]) -> None:
        """Write that the job goes on at another vendor, under the fence."""
        self.learn(await self.services.database.write(job_rows.hand_on, self.claim, change, self.services.clock()))

    async def adopt(
        self, names: Sequence[str], change: Callable[[Job, str], Job], now: float, seen_at: Mapping[str, float]
    ) -> None:
        """Take up one of the vendor's orders that no other job holds, under the fence."""
        database = self.services.database
        self.learn(await database.write(job_rows.adopt, self.claim, names, change, now, seen_at))

    async def has_free(self, names: Sequence[str]) -> bool:
        """Return whether one of these orders is held by no other job."""
        return await self.services.database.read(job_rows.has_free, self.claim, names)

    async def deliver(self, change: Callable[[Job], Job], now: float) -> None:
        """Write the finished job with its outputs, under the fence."""
        self.job = await self.services.database.write(asset_rows.deliver, self.claim, change, now)

    def learn(self, job: Job) -> None:
        """Take over what the row says now; by its phase the store knows whether a risky step is under way."""
        if job.phase is not self.job.phase:
            self.risk.level = RiskLevel.SHARED if job.phase in jobs.RISKY else RiskLevel.NONE
            if jobs.has_advanced(self.job.phase, job.phase):
                self.risk.advance()
        self.job = job

    async def dare(self) -> None:
        """Have it written that a risky step begins: if the process dies in it, the job is a suspect."""
        risk = self.risk
        if risk.level is not risk.wanted:
            await self.services.database.write(job_rows.mark_risk, self.claim, risk.wanted, risk.beside)
            risk.level = risk.wanted

    async def step_back(self) -> None:
        """Have it written that the job only waits: a death meanwhile is not its doing."""
        self.risk.end_turn()
        if self.risk.level is not RiskLevel.NONE:
            await self.services.database.write(job_rows.mark_risk, self.claim, RiskLevel.NONE)
            self.risk.level = RiskLevel.NONE

    async def look_again(self) -> None:
        """Read the row: a caller may have canceled."""
        self.learn(await self.services.database.read(job_rows.get_claimed, self.claim))

    async def pause(self, seconds: float | None = None) -> None:
        """Wait longer with every trouble in a row, or as long as the vendor asks; a cancel ends the wait."""
        self.troubles += 1
        await self.step_back()
        least = self.vendor.options.poll_seconds
        wait = (
            min(MAX_PAUSE, least * 2 ** min(self.troubles, 10))
            if seconds is None
            else max(least, min(seconds, MAX_RETRY_AFTER_SECONDS))
        )
        await self.subscription.wait(max(0.05, min(wait, self.left())))
        await self.look_again()

    def begin_polling(self) -> None:
        """The order is under way: ask after a while."""
        self.troubles = 0
        self.polled_at = self.services.steady()
        self.poll_at = self.polled_at + self.vendor.options.poll_seconds
