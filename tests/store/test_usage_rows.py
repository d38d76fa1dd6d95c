"""Sums of usage: what is added together is what the records say, whatever the order and however they are split."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select
from store.sample_completions import DAY, NOON, make_completion
from store.sample_jobs import make_job
from store.trials import undone

from penstock.domain.chat import Usage
from penstock.domain.jobs import Job, State
from penstock.domain.usage import ChatOutcome, Completion
from penstock.store import schema, sql
from penstock.store.connect import make_engine, transact
from penstock.store.queries.billing import completion_rows, ledger_audit, ledger_rows, usage_rows
from penstock.store.queries.billing.usage_rows import Group, Sums, Totals, UsageKey, UsageLine
from penstock.store.queries.jobs import job_rows
from penstock.store.tables import accounts, completions, keys, usage_days

LIMIT = 10_000


def stored(connection: Connection) -> dict[UsageKey, Sums]:
    rows = [tuple(row) for row in connection.execute(select(usage_days))]
    return {UsageKey(*row[:6]): Sums(*row[6:]) for row in rows}


# -- what records add


def test_what_chat_requests_add():
    records = [
        make_completion(),
        make_completion(outcome=ChatOutcome.FAILED, usage=Usage(), cost=0),
        make_completion(outcome=ChatOutcome.CUT, usage=Usage(5, 1, estimated=True), cost=None),
        make_completion(outcome=ChatOutcome.CANCELED, cost=1),
        make_completion(key_id="other", created_at=NOON + 43_200),
    ]
    assert usage_rows.of_completions(records) == {
        UsageKey("acct_one", DAY, "writer", "upstream", "key", "chat"): Sums(4, 2, 25, 41, 6, 10, 8, 1, 1, 701),
        UsageKey("acct_one", DAY + 1, "writer", "upstream", "other", "chat"): Sums(1, 0, 10, 20, 3, 5, 4, 0, 0, 700),
    }


def test_what_was_charged_counts_before_what_it_cost():
    first, second = make_completion(cost=700), make_completion(cost=700)
    (sums,) = usage_rows.of_completions([first, second], {first.id: 0}).values()
    assert sums.cost == 700


@pytest.mark.parametrize(
    ("state", "final", "charged", "expected"),
    [
        (State.SUCCEEDED, 400, None, Sums(requests=1, cost=400)),
        (State.SUCCEEDED, 400, 300, Sums(requests=1, cost=300)),
        (State.SUCCEEDED, None, None, Sums(requests=1, unpriced=1)),
        (State.FAILED, 0, None, Sums(requests=1, failed=1)),
        (State.EXPIRED, 0, None, Sums(requests=1, failed=1)),
        (State.CANCELED, 0, None, Sums(requests=1)),
    ],
)
def test_what_a_job_adds(state: State, final: int | None, charged: int | None, expected: Sums):
    job = make_job(state=state, final=final, created_at=NOON, finished_at=NOON + 86_400)
    place = UsageKey("acct_one", DAY, "sim_text_to_video", "sim", "key", "job")
    assert usage_rows.of_job(job, charged) == {place: expected}


# -- the rows


def test_what_is_added_twice_counts_twice_and_a_refund_is_taken_off_its_day(connection: Connection):
    record, job = make_completion(), make_job(state=State.SUCCEEDED, final=400, created_at=NOON)
    usage_rows.add(connection, usage_rows.of_completions([record]))
    usage_rows.add(connection, usage_rows.of_completions([record, make_completion(vendor="other")]))
    usage_rows.add(connection, usage_rows.of_job(job))
    usage_rows.add(connection, usage_rows.refund(record, 50))
    usage_rows.add(connection, usage_rows.refund(job, 400))
    usage_rows.add(connection, {})
    assert stored(connection) == {
        UsageKey("acct_one", DAY, "writer", "upstream", "key", "chat"): Sums(2, 0, 20, 40, 6, 10, 8, 0, 0, 1350),
        UsageKey("acct_one", DAY, "writer", "other", "key", "chat"): Sums(1, 0, 10, 20, 3, 5, 4, 0, 0, 700),
        UsageKey("acct_one", DAY, "sim_text_to_video", "sim", "key", "job"): Sums(requests=1),
    }


def test_a_record_is_read_as_it_was_written(connection: Connection):
    usages = [Usage(), Usage(10, 20, 3, 4, cache_writes=5, cache_writes_1h=2), Usage(1, 1, estimated=True)]
    records = [make_completion(usage=usage) for usage in usages]
    completion_rows.add_all(connection, "process", records, NOON)
    unstored = {"lineage": ""}
    found = completion_rows.of_account(connection, "acct_one")
    assert found == [msgspec.structs.replace(record, **unstored) for record in reversed(records)]
    assert completion_rows.find(connection, records[1].id) == found[1]


def test_what_older_code_writes_has_no_cache_writes(connection: Connection):
    """A rolling upgrade: the older version knows no such columns, and adds to sums that have some."""
    usage_rows.add(connection, usage_rows.of_completions([make_completion()]))
    old = make_completion(usage=Usage(10, 20, 3, 4))
    connection.execute(insert(completions), _row(old))
    names = [name for name in (*UsageKey._fields, *Sums._fields) if name != "cache_write_tokens"]
    values = ("acct_one", DAY, "writer", "upstream", "key", "chat", 1, 0, 10, 20, 3, 4, 0, 0, 700)
    marks = ", ".join([sql.mark(connection)] * len(names))
    adding = ", ".join(f"{name} = usage_days.{name} + excluded.{name}" for name in names[len(UsageKey._fields) :])
    words = f"INSERT INTO usage_days ({', '.join(names)}) VALUES ({marks}) ON CONFLICT ("  # noqa: S608
    connection.exec_driver_sql(f"{words}{', '.join(UsageKey._fields)}) DO UPDATE SET {adding}", values)
    assert completion_rows.of_account(connection, "acct_one") == [old]
    (sums,) = stored(connection).values()
    assert sums == Sums(2, 0, 20, 40, 6, 5, 8, 0, 0, 1400)


# -- reports

SOME: dict[str, st.SearchStrategy[Any]] = {
    "account_id": st.sampled_from(("acct_one", "acct_two")),
    "key_id": st.sampled_from(("key_a", "key_b", "key_gone")),
    "model": st.sampled_from(("writer", "=cmd()", "painter")),
    "vendor": st.sampled_from(("upstream", "other")),
    "created_at": st.floats((DAY - 20) * 86_400.0, (DAY + 50) * 86_400.0),
}
COSTS = st.none() | st.integers(0, 10**12)
COUNTS = st.integers(0, 10**9)
COMPLETIONS = st.builds(
    make_completion,
    usage=st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, st.booleans(), cache_writes=COUNTS, cache_writes_1h=COUNTS),
    outcome=st.sampled_from(ChatOutcome),
    cost=COSTS,
    **SOME,
)
JOBS = st.builds(make_job, state=st.sampled_from([state for state in State if state.done]), final=COSTS, **SOME)
DAYS = st.integers(-25, 55).map(lambda days: date.fromordinal(date(2023, 11, 14).toordinal() + days))
GROUPS = st.lists(st.sampled_from(sorted(usage_rows.COLUMNS.keys() | {Group.MONTH})), min_size=1, unique=True)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        Group.KEY: SOME["key_id"],
        Group.MODEL: SOME["model"],
        Group.VENDOR: SOME["vendor"],
        Group.KIND: st.sampled_from(("chat", "job")),
    },
)
NAMES = {"acct_one": "One", "acct_two": "", "key_a": "a", "key_b": "", "key_gone": ""}


def tell(record: Completion | Job, group: Group) -> dict[str, str]:
    """What a record is about, straight from its fields."""
    moment = datetime.fromtimestamp(int(record.created_at), UTC).date().isoformat()
    match group:
        case Group.DAY:
            return {"day": moment}
        case Group.MONTH:
            return {"month": moment[:7]}
        case Group.KEY:
            return {"key": record.key_id, "key_name": NAMES.get(record.key_id, "")}
        case Group.ACCOUNT:
            return {"account": NAMES[record.account_id], "account_id": record.account_id}
        case Group.KIND:
            return {"kind": kind_of(record)}
        case _:
            return {group.value: getattr(record, group.value)}


def kind_of(record: Completion | Job) -> str:
    return "job" if isinstance(record, Job) else "chat"


def count_up(record: Completion | Job) -> Totals:
    if isinstance(record, Job):
        failed = int(record.state.value in ("failed", "expired"))
        return Totals(jobs=1, failed=failed, unpriced=int(record.final is None), cost=record.final or 0)
    usage = record.usage
    return Totals(
        requests=1,
        failed=int(record.outcome.value in ("failed", "cut")),
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        cached_tokens=usage.cached,
        cache_write_tokens=usage.cache_writes,
        reasoning_tokens=usage.reasoning,
        estimated=int(usage.estimated),
        unpriced=int(record.cost is None),
        cost=record.cost or 0,
    )


def brute_force(records: Sequence[Completion | Job], by: Sequence[Group]) -> list[UsageLine]:
    """The same report, from the records themselves."""
    found: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for record in records:
        about = {name: value for group in by for name, value in tell(record, group).items()}
        sums = found.setdefault(tuple(about.items()), [0] * len(Totals._fields))
        sums[:] = [before + more for before, more in zip(sums, count_up(record), strict=True)]
    lines = [UsageLine(dict(about), Totals(*sums)) for about, sums in found.items()]
    shown = {Group.ACCOUNT: "account_id"}
    return sorted(lines, key=lambda line: [line.about[shown.get(group, group.value)] for group in by])


def name_them(connection: Connection) -> None:
    connection.execute(insert(accounts), {"id": "acct_one", "name": "One", "created_at": 0.0})
    blank = {"account_id": "acct_one", "secret_hash": b"", "models": "", "scopes": "", "created_at": 0.0}
    connection.execute(insert(keys), {"public_id": "key_a", "name": "a", "lineage": "key_a"} | blank)
    connection.execute(insert(keys), {"public_id": "key_b", "name": "", "lineage": "key_b"} | blank)


@given(
    batches=st.lists(st.lists(COMPLETIONS, max_size=8), max_size=3),
    jobs=st.lists(JOBS, max_size=8),
    account_id=st.sampled_from((None, "acct_one", "acct_two")),
    days=st.tuples(DAYS, DAYS).map(sorted),
    by=GROUPS,
    filters=FILTERS,
)
def test_a_report_says_what_the_records_say(trial, batches, jobs, account_id, days, by, filters):
    with undone(trial) as connection:
        name_them(connection)
        for batch in batches:
            usage_rows.add(connection, usage_rows.of_completions(batch))
        for job in jobs:
            usage_rows.add(connection, usage_rows.of_job(job))
        lines = usage_rows.report(connection, account_id, *days, by, filters, LIMIT)
    first, last = (day.isoformat() for day in days)
    wanted = [
        record
        for record in (*(record for batch in batches for record in batch), *jobs)
        if account_id in (None, record.account_id)
        and first <= tell(record, Group.DAY)["day"] <= last
        and all(tell(record, group)[group.value] == value for group, value in filters.items())
    ]
    expected = brute_force(wanted, by)
    assert lines == expected
    assert [list(line.about) for line in lines] == [list(line.about) for line in expected]
    assert usage_rows.total(lines) == (sum_of(wanted) if wanted else Totals())


def sum_of(records: Sequence[Completion | Job]) -> Totals:
    return Totals(*map(sum, zip(*map(count_up, records), strict=True)))


def test_no_more_lines_are_read_than_asked_for(connection: Connection):
    usage_rows.add(connection, usage_rows.of_completions([make_completion(key_id=f"k{n}") for n in range(9)]))
    day = date(2023, 11, 14)
    lines = usage_rows.report(connection, "acct_one", day, day, [Group.KEY], {}, 4)
    assert [line.about["key"] for line in lines] == ["k0", "k1", "k2", "k3"]


def _row(record: Completion) -> dict[str, Any]:
    """Return the row of a record in schema 0002."""
    fields = msgspec.structs.asdict(record)
    usage = fields.pop("usage")
    counts = {f"{name}_tokens": getattr(usage, name) for name in ("prompt", "completion", "cached", "reasoning")}
    wanted = fields | counts | {"estimated": int(usage.estimated), "streamed": 0, "outcome": record.outcome.value}
    return {name: value for name, value in wanted.items() if name in completions.columns and name != "guardrails"}


def test_what_was_used_before_there_were_sums_is_in_them(empty_url: str):
    engine = make_engine(empty_url)
    schema.upgrade(engine, "0002")
    usage = Usage(10, 20, 3, 4)
    records = [
        make_completion(usage=usage),
        make_completion(usage=usage, outcome=ChatOutcome.CUT, cost=None),
        make_completion(usage=usage, key_id="other"),
    ]
    jobs = [
        make_job(state=State.SUCCEEDED, estimated=400, final=400, charged=True, created_at=NOON, finished_at=NOON),
        make_job(state=State.FAILED, final=0, charged=False, created_at=NOON, finished_at=NOON),
        make_job(state=State.FAILED, final=None, created_at=NOON, finished_at=NOON),
        make_job(state=State.RUNNING, created_at=NOON),
    ]
    old = (
        *("id", "account_id", "model", "vendor", "state", "done", "created_at", "start_by", "finished_at", "epoch"),
        "document",
    )
    with transact(engine) as connection:
        connection.execute(insert(completions), [_row(record) for record in records])
        for job in jobs:
            values = (
                job.id,
                job.account_id,
                job.model,
                job.vendor,
                job.state.value,
                int(job.done),
                NOON,
                NOON,
                NOON,
                0,
            )
            marks = ", ".join([sql.mark(connection)] * len(old))
            insertion = f"INSERT INTO jobs ({', '.join(old)}) VALUES ({marks})"  # noqa: S608
            connection.exec_driver_sql(insertion, (*values, job_rows.encode(job)))
    schema.upgrade(engine)
    with engine.connect() as connection:
        day = date(2023, 11, 14)
        for by in ([Group.KEY], [Group.MODEL], [Group.MODEL, Group.KEY]):
            lines = usage_rows.report(connection, "acct_one", day, day, by, {}, LIMIT)
            done = brute_force([*records, *jobs[:3]], by)
            assert [line.totals for line in lines] == [line.totals for line in done]
        assert ledger_audit.check(connection) == []
        entries = ledger_rows.of_subject(connection, jobs[0].id), ledger_rows.of_subject(connection, jobs[3].id)
        assert [{kind.value: entry.amount for kind, entry in each.items()} for each in entries] == [
            {"hold": 400, "settle": 400},
            {"hold": 400_000_000},  # still under way: it will be settled
        ]
    engine.dispose()
