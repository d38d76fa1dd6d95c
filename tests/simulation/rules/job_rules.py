"""Rules of single jobs: checked at each event, as it is committed, and at each paid order."""

from collections.abc import Mapping, Sequence
from typing import Final

from simulation.store import SharedStore
from simulation.vendors import PlacedOrder
from simulation.world import World

from penstock.domain.jobs import Job, Phase, State
from penstock.store.queries.jobs import event_rows

LATE_SECONDS: Final = 15.0
"""Seconds that a job may end after its deadline, in a world without faults."""
PROMPT_SECONDS: Final = 5.0
"""Seconds from the start of a job to its order, unless it was held back as a suspect."""


class JobRules:
    """Compares each event of a job with the one before."""

    def __init__(self, world: World, store: SharedStore, limits: Mapping[str, int]) -> None:
        self._world = world
        self._store = store
        self._limits = limits
        self._jobs: dict[str, Job] = {}
        self._prompt: set[str] = set()
        """Jobs whose order was accepted soon after their start."""

    def check_event(self, account_id: str, sequence: int, job: Job, orders: Sequence[PlacedOrder]) -> None:
        """Check one event."""
        before = self._jobs.get(job.id)
        self._jobs[job.id] = job
        self._check_form(account_id, sequence, job)
        if before is not None:
            self._check_step(before, job)
        if job.done:
            self._check_ending(job, orders)

    def _check_form(self, account_id: str, sequence: int, job: Job) -> None:
        if job.sequence != sequence:
            self._world.violate("an event shows its own change", f"{job.id}: {job.sequence} in {sequence}")
        if account_id != job.account_id:
            self._world.violate("an event belongs to its job's account", f"{job.id}: {account_id}")

    def _check_step(self, before: Job, job: Job) -> None:
        if before.done:
            self._world.violate("a finished job stays as it is", f"{job.id}: {before.state}")
        if before.state is State.CANCELING and before.attempt is None and job.attempt is not None:
            self._world.violate("nothing is ordered after a cancel", job.id)
        started_at = job.started_at or 0.0
        if job.phase is Phase.GENERATING and self._world.wall() - started_at < PROMPT_SECONDS:
            self._prompt.add(job.id)

    def _check_ending(self, job: Job, orders: Sequence[PlacedOrder]) -> None:
        if job.charged and job.state is not State.SUCCEEDED:
            self._world.violate("only results are charged", f"{job.id} is {job.state}")
        if job.state is State.SUCCEEDED and (not job.charged or job.final != job.estimated):
            self._world.violate("a result costs its price", f"{job.id}: {job.final} of {job.estimated}")
        if self._world.has_skew:
            return
        late = self._world.wall() - max(job.deadline, self._world.calm_since)
        is_late = late > LATE_SECONDS and self._world.is_healed
        if job.state is State.EXPIRED and is_late and job.id in self._prompt:
            self._world.violate("a deadline is kept", f"{job.id}: {late:.1f} s late")
        running = [order.id for order in orders if not order.canceled]
        if job.state is State.CANCELED and running and self._world.wall() < job.deadline:
            self._world.violate("a canceled job's order is stopped", f"{job.id}: {running}")

    def check_order(self, vendor: str) -> None:
        """Check that a vendor works on no more orders than the settings allow."""
        rows = self._store.ask("SELECT document FROM jobs WHERE done = 0 AND vendor = %s", vendor)
        open_jobs = [event_rows.decode_job(bytes(row[0])) for row in rows]
        ordered = sum(job.attempt is not None for job in open_jobs)
        if ordered > self._limits[vendor]:
            self._world.violate("a vendor's limit is respected", f"{vendor}: {ordered} orders")
