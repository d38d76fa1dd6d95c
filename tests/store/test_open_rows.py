"""Open jobs are taken up fairly between accounts, at a cost that no backlog raises, and counted as they are."""

from collections import Counter
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from sqlalchemy import Connection, update
from store.sample_jobs import NOW, make_job
from store.trials import undone

from penstock.domain import jobs
from penstock.domain.api_keys import NO_LIMITS, ApiKey, Limits
from penstock.domain.jobs import Headroom, Job, State
from penstock.errors import ConcurrencyLimited
from penstock.store.queries.jobs import job_rows, open_job_rows
from penstock.store.queries.jobs.open_job_rows import FEW
from penstock.store.tables import jobs as job_table


def accept(connection: Connection, account: str, number: int = 1, **fields: Any) -> list[Job]:
    return job_rows.insert_all(connection, [make_job(account_id=account, **fields) for _ in range(number)], NOW)


def set_state(connection: Connection, *changed: Job, state: State) -> None:
    ids = [job.id for job in changed]
    connection.execute(update(job_table).where(job_table.c.id.in_(ids)).values(state=state.value))


def claim(connection: Connection, limit: int, **options: Any) -> list[Job]:
    return [job for _, job in open_job_rows.claim(connection, "me", limit, **options)]


def accounts(claimed: list[Job]) -> list[str]:
    return [job.account_id for job in claimed]


# -- whose jobs are taken up


def test_a_single_job_is_taken_up_at_once_however_many_wait_before_it(connection):
    big = accept(connection, "big", 300)
    small = accept(connection, "small")
    assert claim(connection, 5) == [big[0], *small, *big[1:4]]


def test_accounts_with_the_fewest_held_jobs_come_first(connection):
    accept(connection, "big", 20)
    accept(connection, "small", 20)
    assert accounts(claim(connection, 4, held={"big": 3})) == ["small"] * 3 + ["big"]  # equals again: it is big's turn
    assert accounts(claim(connection, 4, held={"big": 7, "small": 3})) == ["small"] * 4


def test_what_others_leave_is_for_whoever_has_more(connection):
    big = accept(connection, "big", 30)
    accept(connection, "small", 2)
    claimed = claim(connection, 20)
    assert Counter(accounts(claimed)) == {"big": 18, "small": 2}
    assert [job for job in claimed if job.account_id == "big"] == big[:18]
    assert claim(connection, 20) == big[18:]
    assert claim(connection, 20) == []


def test_nobodys_backlog_takes_the_last_places(connection):
    accept(connection, "big", 30)
    accept(connection, "small", 30)
    assert claim(connection, 20, held={"big": FEW, "small": FEW}, spare=0) == []
    assert accounts(claim(connection, 20, held={"big": FEW, "small": FEW - 2}, spare=-7)) == ["small"] * 2
    assert Counter(accounts(claim(connection, 20, held={"big": 500, "small": FEW - 2}, spare=5))) == {"small": 5}
    assert Counter(accounts(claim(connection, 20, held={"big": 500, "small": 499}, spare=3))) == {"small": 2, "big": 1}


def test_what_was_begun_comes_first_and_counts_as_taken(connection):
    waiting, begun = accept(connection, "big", 4), accept(connection, "small", 3)
    set_state(connection, *begun, state=State.RUNNING)
    assert claim(connection, 5, spare=4, held={"big": FEW}) == [*begun, waiting[0]]


def test_many_cancels_hold_nobody_up(connection):
    canceled, waiting = accept(connection, "big", 20), accept(connection, "small", 20)
    set_state(connection, *canceled, state=State.CANCELING)
    assert accounts(claim(connection, 10)) == ["big"] * 5 + ["small"] * 5
    claim(connection, 10)
    assert accounts(claim(connection, 30)) == ["big"] * 10 + ["small"] * 10
    assert not {job.id for job in waiting} & {job.id for job in claim(connection, 9)}


def test_many_accounts_get_their_turns(connection):
    """More accounts than one claim looks at: none is passed over, and none is served twice before all others were."""
    names = [f"acct_{number:03}" for number in range(150)]
    for name in names:
        accept(connection, name, 2)
    served: list[str] = []
    limits = cycle([1, 70, 13, 2])
    while len(served) < len(names):
        limit = min(next(limits), len(names) - len(served))
        served += accounts(claim(connection, limit, after=served[-1] if served else "acct_100"))
    assert served == names[101:] + names[:101]


def test_who_has_none_is_found_behind_any_number_of_others(connection):
    held = {f"acct_{number:02}": FEW + number for number in range(30)}
    for name in held:
        accept(connection, name, 2)
    accept(connection, "acct_25x", 2)
    assert accounts(claim(connection, 1, held=held, spare=0)) == ["acct_25x"]
    assert accounts(claim(connection, 1, held=held, spare=-1, after="acct_25x")) == ["acct_25x"]
    assert claim(connection, 1, held=held, spare=0, after="acct_03") == []
    assert accounts(claim(connection, 2, held=held, spare=1, after="acct_03")) == ["acct_00"]


def spread(limit: int, spare: int, free: dict[str, int], held: dict[str, int]) -> Counter[str]:
    """How many each account should get: place by place, to whoever has the fewest by then."""
    given: Counter[str] = Counter()
    for place in range(limit):
        wanting = [name for name in free if given[name] < free[name]]
        if place >= spare:
            wanting = [name for name in wanting if held[name] + given[name] < FEW]
        if wanting:
            given[min(wanting, key=lambda name: (held[name] + given[name], name))] += 1
    return given


NUMBERS = some.lists(some.tuples(some.integers(1, 9), some.integers(0, 14)), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(some.integers(1, 25), some.integers(-3, 30), NUMBERS)
def test_places_are_shared_out_one_by_one(trial: Connection, limit: int, spare: int, numbers: list[tuple[int, int]]):
    free = {f"acct_{name}": number for name, (number, _) in enumerate(numbers)}
    held = {f"acct_{name}": number for name, (_, number) in enumerate(numbers)}
    with undone(trial):
        accepted = {name: accept(trial, name, number) for name, number in free.items()}
        claimed = claim(trial, limit, held=held, spare=spare)
    assert Counter(accounts(claimed)) == spread(limit, spare, free, held)
    for name, theirs in accepted.items():
        mine = [job for job in claimed if job.account_id == name]
        assert mine == theirs[: len(mine)], "not the oldest"


def count_steps(connection: Connection, function: Any, *arguments: Any, **options: Any) -> int:
    """How many steps of its machine SQLite needed, in tens."""
    steps: Counter[str] = Counter()
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.set_progress_handler(lambda: steps.update(["ten"]), 10)
    connection.exec_driver_sql("SAVEPOINT counted")
    try:
        function(connection, *arguments, **options)
    finally:
        driver.set_progress_handler(None, 0)
        connection.exec_driver_sql("ROLLBACK TO counted")
    return steps["ten"]


@pytest.mark.parametrize("trial", ["sqlite"], indirect=True)
def test_a_claim_costs_the_same_whatever_waits(connection):
    accept(connection, "other", 3)
    accept(connection, "big", 20)
    asked = [
        (open_job_rows.claim, ("me", 6), {"held": {"big": 3}}),
        (open_job_rows.claim, ("me", 6), {"held": {"big": 30}, "spare": 0}),
        (open_job_rows.claim_ending, ("me", 6, NOW), {}),
    ]
    before = [count_steps(connection, function, *given, **options) for function, given, options in asked]
    accept(connection, "big", 800)
    after = [count_steps(connection, function, *given, **options) for function, given, options in asked]
    assert all(late <= early * 1.1 + 5 for early, late in zip(before, after, strict=True)), (before, after)


def test_only_what_has_to_be_ended_is_taken_up_without_room(connection):
    late, canceled, both, started, waiting = accept(connection, "big", 5)
    set_state(connection, canceled, both, state=State.CANCELING)
    set_state(connection, started, state=State.RUNNING)
    values = {job.id: NOW - 1 for job in (late, both, started)}
    for job_id, start_by in values.items():
        connection.execute(update(job_table).where(job_table.c.id == job_id).values(start_by=start_by))
    claimed = open_job_rows.claim_ending(connection, "me", 10, NOW)
    assert {taken.job_id for taken, _ in claimed} == {late.id, canceled.id, both.id}
    assert {taken.epoch for taken, _ in claimed} == {1}
    assert claim(connection, 10) == [started, waiting]


# -- how many there may be


def key_with(key: int | None = None, account: int | None = None, lineage: str = "key") -> ApiKey:
    return ApiKey(
        public_id="key",
        account_id="acct_one",
        account="one",
        name="",
        secret_hash=b"",
        lineage=lineage,
        limits=replace(NO_LIMITS, concurrent_jobs=key),
        account_limits=Limits(concurrent_jobs=account),
    )


def refusal(connection: Connection, key: ApiKey, more: int = 1) -> ConcurrencyLimited:
    with pytest.raises(ConcurrencyLimited) as refused:
        open_job_rows.admit(connection, key, more, NOW)
    return refused.value


@pytest.mark.parametrize("trial", ["sqlite"], indirect=True)
def test_a_key_without_limits_is_not_counted(connection):
    accept(connection, "acct_one", 5)
    assert open_job_rows.admit(connection, key_with(), 16, NOW) is None
    assert count_steps(connection, open_job_rows.admit, key_with(), 16, NOW) == 0


def test_open_jobs_count_for_the_key_and_for_the_account(connection):
    accept(connection, "acct_one", 2)
    accept(connection, "acct_one", 3, key_id="rotated", lineage="key")
    accept(connection, "acct_one", 4, key_id="other")
    accept(connection, "acct_two", 7)
    assert open_job_rows.admit(connection, key_with(14), 1, NOW) == Headroom(
        14, 14 - 12 - 1
    )  # a lineage has one account
    assert open_job_rows.admit(connection, key_with(lineage="other", key=6), 2, NOW) == Headroom(6, 0)
    assert open_job_rows.admit(connection, key_with(account=10), 1, NOW) == Headroom(10, 0)
    assert open_job_rows.admit(connection, key_with(100, 11), 1, NOW) == Headroom(11, 1)
    assert open_job_rows.admit(connection, key_with(13, 1000), 1, NOW) == Headroom(13, 0)
    assert refusal(connection, key_with(12, 1000)).message.startswith("This API key may have 12 jobs open at once: 12 ")
    assert refusal(connection, key_with(1000, 9)).message.startswith("Your account may have 9 jobs open at once: 9 ")


def test_a_job_that_has_ended_counts_no_more(connection):
    accept(connection, "acct_one", 2)
    refused = refusal(connection, key_with(2))
    assert refused.headers == {"x-ratelimit-limit-jobs": "2", "x-ratelimit-remaining-jobs": "0"}
    ((taken, _), _) = open_job_rows.claim(connection, "me", 2)
    job_rows.amend(connection, taken, lambda job: jobs.stop(jobs.request_cancel(job, NOW), NOW), NOW)
    assert open_job_rows.admit(connection, key_with(2), 1, NOW) == Headroom(2, 0)


def test_what_never_fits_is_not_worth_trying_again(connection):
    accept(connection, "acct_one", 1)
    some_other_time, never = refusal(connection, key_with(3), 3), refusal(connection, key_with(3), 4)
    assert (some_other_time.retryable, never.retryable) == (True, False)
    assert some_other_time.headers["x-ratelimit-remaining-jobs"] == "2"
    assert never.suggestion == "Send at most 3 elements of `input` in one request."


@pytest.mark.parametrize(
    ("ends", "seconds"), [([], 5), ([None, None], 5), ([40, 12, None, 90], 12), ([-30, 12], 1), ([0.2], 1)]
)
def test_when_to_try_again_is_when_the_first_will_have_ended(connection, ends, seconds):
    accept(connection, "acct_one", 1, eta_at=NOW + 2)  # it waits: nobody knows when it will end
    for end in ends:
        eta_at = None if end is None else NOW + end
        accept(connection, "acct_one", 1, eta_at=eta_at, state=State.RUNNING)
    assert refusal(connection, key_with(1)).retry_after == pytest.approx(seconds)


def test_a_count_is_by_account_and_state(connection):
    begun = accept(connection, "acct_one", 3)
    set_state(connection, *begun[:1], state=State.RUNNING)
    accept(connection, "acct_two", 2)
    assert open_job_rows.count(connection) == {
        ("acct_one", "queued"): 2,
        ("acct_one", "running"): 1,
        ("acct_two", "queued"): 2,
    }
