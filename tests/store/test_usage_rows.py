"""Sums of usage: what is added together is what the records say, whatever the order and however they are split."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Connection, select
from store.sample_jobs import make_job

from penstock.chat import Usage
from penstock.jobs import State
from penstock.store import usage_rows
from penstock.store.database import make_engine
from penstock.store.tables import metadata, usage_days
from penstock.store.usage_rows import Slice, Sums
from penstock.usage_records import Completion, Outcome

DAY = 19_675
NOON = DAY * 86_400.0 + 43_200
_numbers = count()


def make_completion(**fields: object) -> Completion:
    """A record of a chat request; any field can be given."""
    defaults = {
        "id": f"chat_{next(_numbers):010d}",
        "request_id": "req_1",
        "account_id": "acct_one",
        "key_id": "key",
        "model": "writer",
        "vendor": "upstream",
        "upstream_model": "m",
        "streamed": False,
        "outcome": Outcome.OK,
        "code": "",
        "usage": Usage(10, 20, 3, 4),
        "cost": 700,
        "created_at": NOON,
        "seconds": 0.5,
        "first_byte_seconds": None,
    }
    return Completion(**(defaults | fields))  # type: ignore[arg-type]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = make_engine(tmp_path / "usage.db")
    metadata.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def stored(connection: Connection) -> dict[Slice, Sums]:
    rows = [tuple(row) for row in connection.execute(select(usage_days))]
    return {Slice(*row[:6]): Sums(*row[6:]) for row in rows}


# -- what records add


def test_what_chat_requests_add():
    records = [
        make_completion(),
        make_completion(outcome=Outcome.FAILED, usage=Usage(), cost=0),
        make_completion(outcome=Outcome.CUT, usage=Usage(5, 1, estimated=True), cost=None),
        make_completion(outcome=Outcome.CANCELED, cost=1),
        make_completion(key_id="other", created_at=NOON + 43_200),
    ]
    assert usage_rows.of_completions(records) == {
        Slice("acct_one", DAY, "writer", "upstream", "key", "chat"): Sums(4, 2, 25, 41, 6, 8, 1, 1, 701),
        Slice("acct_one", DAY + 1, "writer", "upstream", "other", "chat"): Sums(1, 0, 10, 20, 3, 4, 0, 0, 700),
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
        (State.CANCELED, 0, None, Sums(requests=1, failed=1)),
    ],
)
def test_what_a_job_adds(state: State, final: int | None, charged: int | None, expected: Sums):
    job = make_job(state=state, final=final, created_at=NOON, finished_at=NOON + 86_400)
    place = Slice("acct_one", DAY, "sim_text_to_video", "sim", "key", "job")
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
        Slice("acct_one", DAY, "writer", "upstream", "key", "chat"): Sums(2, 0, 20, 40, 6, 8, 0, 0, 1350),
        Slice("acct_one", DAY, "writer", "other", "key", "chat"): Sums(1, 0, 10, 20, 3, 4, 0, 0, 700),
        Slice("acct_one", DAY, "sim_text_to_video", "sim", "key", "job"): Sums(requests=1),
    }
