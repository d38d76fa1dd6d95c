"""Any interleaving of callers, runners and crashes leaves a store that tells one consistent story of each job."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule
from sqlalchemy import Connection, select
from store.sample_jobs import NOW, make_asset, make_attempt, make_job

from penstock.domain import jobs
from penstock.domain.events import ENDINGS, Event, EventType
from penstock.domain.jobs import TRANSITIONS, Claim, IllegalMove, Job, Outcome, Phase, State
from penstock.errors import Gone, JobNotFinished
from penstock.store.database import Database
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import event_rows, job_rows, open_job_rows
from penstock.store.queries.jobs.job_rows import FenceLost
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.tables import jobs as job_table
from penstock.store.tables import metadata

ACCOUNT = "acct_one"
ERROR = {"code": "upstream_error", "message": "no"}
ASSET = make_asset()

Change = Callable[[Job], Job]


def _accepted(job: Job) -> Job:
    if job.attempt is None:
        return job
    attempt = replace(job.attempt, upstream_id="up", operation={"id": "up"})
    return replace(job, attempts=(*job.attempts[:-1], attempt), phase=Phase.GENERATING)


RUNNERS_DEEDS: dict[str, Change] = {
    "start": lambda job: jobs.start(job, NOW),
    "order": lambda job: jobs.order(job, make_attempt(job.id, len(job.attempts) + 1)),
    "accepted": _accepted,
    "refused": lambda job: jobs.end_attempt(job, Outcome.REFUSED, phase=Phase.THROTTLED),
    "progress": lambda job: replace(job, progress=min(0.99, job.progress + 0.1)),
    "succeed": lambda job: jobs.succeed(job, NOW, (ASSET,), ("made here",)),
    "fail": lambda job: jobs.fail(job, NOW, ERROR, Outcome.FAILED),
    "expire": lambda job: jobs.fail(job, NOW, ERROR, Outcome.ABANDONED, State.EXPIRED),
    "stop": lambda job: jobs.stop(job, NOW),
}


def cancel(job: Job) -> Job:
    return jobs.request_cancel(job, NOW)


@dataclass(frozen=True, slots=True)
class Told:
    """Everything the store says of one job."""

    document: Job
    columns: tuple[str, int, float | None, str | None]
    events: Sequence[Event]


def tell_all(connection: Connection) -> dict[str, Told]:
    told: dict[str, Told] = {}
    for row in connection.execute(select(job_table)):
        columns = (row.state, row.done, row.finished_at, row.removed)
        events = event_rows.of_jobs(connection, [(row.id, 0)], 10_000).get((row.id, 0), [])
        told[row.id] = Told(event_rows.decode_job(row.document), columns, events)
    return told


class StoreMachine(RuleBasedStateMachine):
    """Does to a real store what callers and runners do, and to `self.expected` what should come of it."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.database = self.open()
        self.expected: dict[str, Job] = {}
        self.holders: dict[str, Claim | None] = {}
        self.epochs: dict[str, int] = {}
        self.removed: set[str] = set()

    def open(self) -> Database:
        """An empty store."""
        raise NotImplementedError

    def teardown(self) -> None:
        self.loop.run(self.database.close())
        self.loop.close()

    def write(self, *call: Any) -> Any:
        """One write; its result or its error."""
        return self.write_together(call)[0]

    def write_together(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Several writes that reach the writer in this order, mostly in one commit."""

        async def gather() -> list[Any]:
            return await asyncio.gather(*(self.database.write(*call) for call in calls), return_exceptions=True)

        return self.loop.run(gather())

    def expect(self, job_id: str, change: Change) -> Job | type[Exception]:
        """What a change that is let through should come to."""
        before = self.expected[job_id]
        try:
            after = change(before)
        except IllegalMove:
            return IllegalMove
        if after == before:
            return before
        if before.done:
            return IllegalMove
        self.expected[job_id] = replace(after, sequence=before.sequence + 1)
        return self.expected[job_id]

    def expect_of_runner(self, claim: Claim, deed: str) -> Job | type[Exception]:
        if self.holders[claim.job_id] != claim:
            return FenceLost
        return self.expect(claim.job_id, RUNNERS_DEEDS[deed])

    def expect_of_caller(self, job_id: str) -> Job | type[Exception]:
        return Gone if job_id in self.removed else self.expect(job_id, cancel)

    def compare(self, outcome: Any, expected: Job | type[Exception]) -> None:
        if isinstance(expected, Job):
            assert outcome == expected
        else:
            assert isinstance(outcome, expected)

    # -- callers

    @initialize(count=some.integers(1, 3))
    def begin(self, count: int) -> None:
        self.accept(count)

    @rule(count=some.integers(1, 2))
    def accept(self, count: int) -> None:
        first = len(self.expected)  # ids that a failing run can be replayed with
        accepted = [make_job(id=f"job_{number:04}", account_id=ACCOUNT) for number in range(first, first + count)]
        written = self.write(job_rows.insert_all, accepted, NOW)
        assert written == [replace(job, sequence=1) for job in accepted]
        for job in written:
            self.expected[job.id], self.holders[job.id], self.epochs[job.id] = job, None, 0

    @rule(data=some.data())
    def cancel(self, data: some.DataObject) -> None:
        job_id = data.draw(some.sampled_from(sorted(self.expected)))
        expected = self.expect_of_caller(job_id)
        self.compare(self.write(job_rows.amend_own, ACCOUNT, job_id, cancel, NOW), expected)

    @rule(data=some.data())
    def delete(self, data: some.DataObject) -> None:
        job_id = data.draw(some.sampled_from(sorted(self.expected)))
        outcome = self.write(job_rows.remove, ACCOUNT, job_id, "deleted")
        if job_id in self.removed:
            assert isinstance(outcome, Gone)
        elif not self.expected[job_id].done:
            assert isinstance(outcome, JobNotFinished)
        else:
            assert outcome == self.expected[job_id]
            bare = {"params": {}, "outputs": (), "warnings": (), "error": None}
            self.expected[job_id] = replace(outcome, **bare)
            self.removed.add(job_id)

    # -- runners

    @rule(target=claims, owner=some.sampled_from(["one", "two", "three"]), limit=some.integers(1, 3))
    def claim(self, owner: str, limit: int) -> Any:
        free = [job for job in self.expected.values() if not job.done and self.holders[job.id] is None]
        begun, canceled, waiting = (
            sorted((job for job in free if job.state is state), key=lambda job: job.id)[:limit]
            for state in (State.RUNNING, State.CANCELING, State.QUEUED)
        )
        room = limit - len(begun)
        ending = canceled[: max(room - len(waiting), (room + 1) // 2)]
        claimed = self.write(open_job_rows.claim, owner, limit)
        assert [job for _, job in claimed] == [*begun, *ending, *waiting][:limit]
        for claim, job in claimed:
            self.epochs[job.id] += 1
            assert claim == Claim(job.id, owner, self.epochs[job.id])
            self.holders[job.id] = claim
        return multiple(*(claim for claim, _ in claimed))

    @rule(claim=claims, deed=some.sampled_from(sorted(RUNNERS_DEEDS)))
    def work(self, claim: Claim, deed: str) -> None:
        expected = self.expect_of_runner(claim, deed)
        self.compare(self.write(job_rows.amend, claim, RUNNERS_DEEDS[deed], NOW), expected)

    @rule(
        deeds=some.lists(some.tuples(claims, some.sampled_from(["cancel", *sorted(RUNNERS_DEEDS)])), max_size=6),
    )
    def work_together(self, deeds: list[tuple[Claim, str]]) -> None:
        calls: list[tuple[Any, ...]] = []
        expected: list[Job | type[Exception]] = []
        for claim, deed in deeds:
            if deed == "cancel":
                calls.append((job_rows.amend_own, ACCOUNT, claim.job_id, cancel, NOW))
                expected.append(self.expect_of_caller(claim.job_id))
            else:
                calls.append((job_rows.amend, claim, RUNNERS_DEEDS[deed], NOW))
                expected.append(self.expect_of_runner(claim, deed))
        for outcome, wanted in zip(self.write_together(*calls), expected, strict=True):
            self.compare(outcome, wanted)

    @precondition(lambda self: any(self.holders.values()))
    @rule()
    def crash(self) -> None:
        assert self.write(open_job_rows.release_all) is None
        for job_id, job in self.expected.items():
            if not job.done:
                self.holders[job_id] = None

    # -- what always holds

    @invariant()
    def the_store_tells_one_story(self) -> None:
        all_told = self.loop.run(self.database.read(tell_all))
        assert all_told.keys() == self.expected.keys()
        for job_id, job in self.expected.items():
            told = all_told[job_id]
            assert told.document == job
            removed = "deleted" if job_id in self.removed else None
            assert told.columns == (job.state.value, int(job.done), job.finished_at, removed)
            if removed:
                assert told.events == []
            else:
                check_story(told.events, job)


def check_story(told: Sequence[Event], job: Job) -> None:
    assert [event.sequence for event in told] == list(range(1, job.sequence + 1))
    assert [event.position for event in told] == sorted(event.position for event in told)
    assert told[0].type == EventType.QUEUED
    assert told[-1].job == job
    endings = [event.type for event in told if event.type in ENDINGS.values()]
    assert endings == ([ENDINGS[job.state]] if job.done else [])
    for before, after in pairwise(told):
        moved = before.job.state is not after.job.state
        assert not moved or after.job.state in TRANSITIONS[before.job.state]
        assert not before.job.done


class OnSqlite(StoreMachine):
    """A file of its own for every run."""

    empty: ClassVar[Path]

    def open(self) -> Database:
        self.folder = tempfile.TemporaryDirectory()
        return SqliteDatabase(Path(shutil.copy(self.empty, self.folder.name)))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class OnPostgres(StoreMachine):
    """One database for all runs, emptied before each."""

    url: ClassVar[str]

    def open(self) -> Database:
        tables = ", ".join(table.name for table in metadata.sorted_tables)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {tables} RESTART IDENTITY".encode())
        return PostgresDatabase(self.url)

    def write_together(self, *calls: tuple[Any, ...]) -> list[Any]:
        """One after the other: those that run at the same time have no order."""
        return [outcome for call in calls for outcome in super(OnPostgres, self).write_together(call)]


@pytest.fixture
def file_of_runs(empty_store: Path) -> None:
    OnSqlite.empty = empty_store


@pytest.fixture
def server_of_runs(postgres_store_url: str) -> None:
    OnPostgres.url = postgres_store_url


OnSqlite.TestCase.settings = settings(max_examples=12, stateful_step_count=30)
OnPostgres.TestCase.settings = settings(max_examples=6, stateful_step_count=25)
TestStore = pytest.mark.usefixtures("file_of_runs")(OnSqlite.TestCase)
TestStoreOnPostgres = pytest.mark.usefixtures("server_of_runs")(OnPostgres.TestCase)
