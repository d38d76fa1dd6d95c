"""What must be true after every step: checked at each commit, at each paid order, and at the end."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from simulation.callers import Caller, Promise
from simulation.machine import ObjectStore
from simulation.receivers import Receiver
from simulation.rules.claim_rules import ClaimRules
from simulation.rules.delivery_rules import DeliveryRules
from simulation.rules.job_rules import JobRules
from simulation.rules.money import MoneyRules
from simulation.rules.pace import PaceRules
from simulation.rules.storage_rules import StorageRules
from simulation.store import SharedStore
from simulation.vendors import PlacedOrder, VendorDouble
from simulation.world import World

from penstock.domain.jobs import TRANSITIONS, Job, State
from penstock.jobs.runner import MAX_BAD_OUTPUTS
from penstock.storage.assets import asset_key
from penstock.store.queries.billing import ledger_audit
from penstock.store.queries.jobs import event_rows

AUDIT_EVERY: Final = 200
"""Commits between two audits of the whole ledger."""
INNOCENT_ERRORS: Final = frozenset({"internal_error"})
"""Errors that say that the gateway itself failed. No fault of a process may cause one."""
NEW_EVENTS: Final = (
    "SELECT position, account_id, job_id, sequence, type, document FROM events WHERE position > %s ORDER BY position"
)
BAD_ENDINGS: Final = ("failed", "filtered", "no_output", "corrupt", "never")
"""Endings of an order without a usable result."""


class Invariants:
    """Watches the store and the vendors of one world."""

    def __init__(
        self,
        world: World,
        store: SharedStore,
        objects: ObjectStore,
        receivers: Mapping[str, Receiver],
        limits: Mapping[str, int],
        retention_seconds: float,
    ) -> None:
        self._world = world
        self._store = store
        self._objects = objects
        self._position = 0
        self._states: dict[str, State] = {}
        self._open: set[str] = set()
        """The ids of jobs that are not done."""
        self._sequences: dict[str, int] = {}
        self._events: dict[tuple[str, int], bytes] = {}
        self._orders: dict[str, list[PlacedOrder]] = {}
        self._made: Counter[str] = Counter()
        """The number of jobs by their prompt, which names the request."""
        self.money = MoneyRules(world, store)
        self.pace = PaceRules(world)
        self.doubles: Sequence[VendorDouble] = ()
        self.job_rules = JobRules(world, store, limits)
        self.delivery_rules = DeliveryRules(world, store, receivers)
        self.storage_rules = StorageRules(world, store, objects, retention_seconds)
        self.claim_rules = ClaimRules(world, store)
        self.commit_checks: list[Callable[[], None]] = []
        self.more_audits: list[Callable[[], None]] = []
        store.on_commit = self.check_commit

    # -- at each commit

    def check_commit(self) -> None:
        """Check the events that a commit has written, and now and then the ledger."""
        written = self._store.take_written()
        rows = self._store.ask(NEW_EVENTS, self._position) if "events" in written else ()
        events: list[tuple[Job, State | None]] = []
        for position, account_id, subject, sequence, kind, document in rows:
            self._position = position
            self._world.recorder.add(f"{position} {subject} {sequence} {bytes(document)!r}")
            if subject.startswith("job_"):  # others announce budgets
                before = self._states.get(subject)
                job = self._check_event(subject, sequence, bytes(document))
                events.append((job, before))
                self.job_rules.check_event(account_id, sequence, job, self._orders.get(subject, ()))
                self.delivery_rules.check_event(kind, sequence, job)
        if self._store.has_doubt:  # workers share it
            self.claim_rules.check_events(events)
            self.claim_rules.check_commit()
        for job in {job.id: job for job, _ in events}.values():  # as the last event of each has it
            self.money.check_job(job)
        self.money.check(written, [job for job, _ in events])
        for check in self.commit_checks:
            check()
        if self._store.commits % AUDIT_EVERY == 0:
            self.audit()

    def _check_event(self, job_id: str, sequence: int, document: bytes) -> Job:
        if sequence != self._sequences.get(job_id, 0) + 1:
            before = self._sequences.get(job_id, 0)
            self._world.violate("events are gapless", f"{job_id}: {sequence} after {before}")
        self._sequences[job_id] = sequence
        self._events[job_id, sequence] = hashlib.sha256(document).digest()
        job = event_rows.decode_job(document)
        if sequence == 1:
            self._made[job.params.get("prompt", "")] += 1
        self.pace.observe(job)
        before = self._states.get(job_id)
        if before is not None and job.state is not before and not _is_legal(before, job.state):
            self._world.violate("only legal transitions", f"{job_id}: {before} to {job.state}")
        self._states[job_id] = job.state
        if job.state.done:
            self._open.discard(job_id)
        else:
            self._open.add(job_id)
        if job.state is State.FAILED and (job.error or {}).get("code") in INNOCENT_ERRORS:
            self._world.violate("no job fails by the gateway's own fault", f"{job_id}: {job.error}")
        return job

    def audit(self) -> None:
        """Check that the ledger, the holds and the balances agree."""
        self.money.check()
        problems, _ = self._store.transact(ledger_audit.check, commit=False)
        for problem in problems:
            self._world.violate("the ledger is right", problem)
        self.storage_rules.audit()
        for audit in self.more_audits:
            audit()

    # -- at each paid order

    def check_order(self, order: PlacedOrder) -> None:
        """Check that an order was intended, and that it is the only one of its job."""
        self._world.counts["orders paid"] += 1
        earlier = self._orders.setdefault(order.job_id, [])
        if earlier:
            references = [each.reference for each in (*earlier, order)]
            self._world.violate("a job is paid once", f"{order.job_id}: {references}")
        earlier.append(order)
        job = self._read(order.job_id)
        if job is None or order.reference not in [attempt.reference for attempt in job.attempts]:
            self._world.violate("no order without an intent", order.reference)
        self.job_rules.check_order(order.id.partition("-")[0])

    def _read(self, job_id: str) -> Job | None:
        found = self._store.ask("SELECT document FROM jobs WHERE id = %s", job_id)
        return event_rows.decode_job(bytes(found[0][0])) if found else None

    # -- at the end

    @property
    def has_open_jobs(self) -> bool:
        """Return whether a job is not done."""
        return bool(self._open)

    def check_end(self, callers: Iterable[Caller], *, is_strict: bool = False) -> None:
        """Check that every promise was kept. A clock that jumps by days may expire jobs and outputs early."""
        self.audit()
        self._check_events()
        self.delivery_rules.check_end()
        self.storage_rules.check_end()
        for caller in callers:
            for promise in caller.promises.values():
                self._check_made(promise, is_strict=is_strict)
                for job_id in promise.job_ids:
                    self._check_promise(job_id, is_canceled=promise.asked_to_cancel, is_gone=promise.asked_to_delete)

    def _check_made(self, promise: Promise, *, is_strict: bool) -> None:
        """Check that a request made its jobs once. Without a key, a first try that comes late is a new request."""
        made = self._made[promise.key]
        is_forgotten = promise.asked_to_delete or self._world.had_jump
        if made > len(promise.job_ids) and not is_forgotten and (promise.has_key or is_strict):
            self._world.violate("one request makes one job", f"{promise.key}: {made} for {promise.job_ids}")

    def _check_promise(self, job_id: str, *, is_canceled: bool, is_gone: bool) -> None:
        state = self._states.get(job_id)
        if state is None:
            self._world.violate("an accepted job is never lost", job_id)
            return
        if not state.done:
            self._world.violate("every job ends", f"{job_id} is {state}")
        job = self._read(job_id)
        if job is None:
            self._world.violate("an accepted job is never lost", job_id)
            return
        if state is State.SUCCEEDED and not is_gone and not self._is_removed(job_id):
            self._check_outputs(job)
        self._check_result(job_id, state)
        for order in self._orders.get(job_id, ()):
            is_good = order.script.get("ending", "succeeded") == "succeeded" and order.script.get("findable", True)
            if is_good and state is not State.SUCCEEDED and not is_canceled and not order.canceled:
                code = (job.error or {}).get("code")
                is_excused = code is None or (code == "bad_output" and self._objects.wronged >= MAX_BAD_OUTPUTS)
                if not is_excused and not (self._world.had_jump and state is State.EXPIRED):
                    self._world.violate("a paid job is never lost", f"{job_id} is {state} ({code})")

    def _check_result(self, job_id: str, state: State) -> None:
        for order in self._orders.get(job_id, ()):
            if state is State.SUCCEEDED and order.script.get("ending") in BAD_ENDINGS:
                self._world.violate("only a checked result is a success", f"{job_id}: {order.script}")

    def _is_removed(self, job_id: str) -> bool:
        return bool(self._store.ask("SELECT removed FROM jobs WHERE id = %s AND removed IS NOT NULL", job_id))

    def _check_outputs(self, job: Job) -> None:
        for asset in job.outputs:
            if asset_key(job.id, asset.filename, asset.sha256) not in self._objects.objects:
                self._world.violate("every asset exists", f"{job.id}: {asset.filename}")

    def _check_events(self) -> None:
        """Check that the events, read again, are those that were seen before."""
        for job_id, sequence, document in self._store.ask("SELECT job_id, sequence, document FROM events"):
            known = self._events.get((job_id, sequence))
            if known is not None and known != hashlib.sha256(bytes(document)).digest():
                self._world.violate("events are identical on replay", f"{job_id}: {sequence}")


def _is_legal(before: State, after: State) -> bool:
    return after in TRANSITIONS[before]
