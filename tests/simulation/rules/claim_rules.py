"""Rules of claims on PostgreSQL, checked after every commit: who may take a job, and who may write to it."""

from collections.abc import Iterable
from typing import Any, Final

from simulation.store import SharedStore
from simulation.world import World

from penstock.dispatch.postgres import LEASE_SECONDS
from penstock.domain.jobs import Job, State

CLAIMS: Final = """
SELECT id, owner, epoch, 0 FROM jobs WHERE done = 0 UNION ALL SELECT id, NULL, -1, renewed_at FROM workers
"""
Claim = tuple[str | None, int]


class ClaimRules:
    """Compares the claims and leases after a commit with those before it."""

    def __init__(self, world: World, store: SharedStore) -> None:
        self._world = world
        self._store = store
        self._claims: dict[str, Claim] = {}
        """The owner and the epoch of each open job."""
        self._workers: dict[str, float] = {}
        """The moment of each worker's last renewal."""
        self._names: dict[Any, set[str]] = {}
        """The workers' names that each process has had."""

    def check_events(self, events: Iterable[tuple[Job, State | None]]) -> None:
        """Check that each event, given with its job's former state, was written by the owner of the job's claim.

        A job that waits for others of its pipeline is nobody's: whoever ends one of those writes to it.
        """
        own = self._names.get(self._store.writer, set())
        for job, before in events:
            is_by_caller = before is None or (job.state is State.CANCELING and before is not State.CANCELING)
            owner, _ = self._claims.get(job.id, (None, 0))
            is_by_pipeline = owner is None and job.pipeline_id is not None and job.started_at is None
            if not (is_by_caller or is_by_pipeline) and owner not in own:
                what = f"{job.id} of {owner} becomes {job.state}, {job.phase} by {sorted(own)}"
                self._world.violate("only the owner of a claim writes to its job", what)

    def check_commit(self) -> None:
        """Check what a commit has changed."""
        claims: dict[str, Claim] = {}
        workers: dict[str, float] = {}
        for name, owner, epoch, renewed_at in self._store.ask(CLAIMS):
            if epoch < 0:
                workers[name] = renewed_at
            else:
                claims[name] = owner, epoch
        own = self._names.setdefault(self._store.writer, set())
        own |= workers.keys() - self._workers.keys()
        self._check_leases(workers, own)
        for job_id, (owner, epoch) in claims.items():
            before = self._claims.get(job_id, (None, 0))
            if before != (owner, epoch):
                self._check_claim(job_id, before, (owner, epoch), workers.keys() - own)
        self._claims, self._workers = claims, workers

    def _check_leases(self, workers: dict[str, float], own: set[str]) -> None:
        for name, renewed_at in self._workers.items():
            silent = self._world.wall() - renewed_at
            if name not in workers and name not in own and silent < LEASE_SECONDS:
                self._world.violate("a lease that is renewed in time is kept", f"{name} after {silent:.2f} s")

    def _check_claim(self, job_id: str, before: Claim, after: Claim, others: set[str]) -> None:
        """Check a changed claim. `others` are living workers of other processes than the writer."""
        if after[0] != before[0] and before[0] in others:
            self._world.violate("no job is taken from a living worker", f"{job_id}: {before} to {after}")
        if after[0] is not None and after[0] != before[0] and after[1] <= before[1]:
            self._world.violate("each claim has a new epoch", f"{job_id}: {before} to {after}")
