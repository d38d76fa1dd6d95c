"""Sums by tag, end user and session: bounded, exact in total, and apart for each account."""

import threading
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, func, select
from store.sample_completions import DAY, NOON, make_completion

from penstock.accounts import ledger_corrections
from penstock.billing.usage_report import as_csv, read_question
from penstock.domain.attribution.labels import Attribution
from penstock.domain.budgets import Budget, Payer, Period, own_tag
from penstock.domain.usage import Completion
from penstock.store.connect import make_engine, transact
from penstock.store.queries.billing import (
    attribution_report,
    attribution_rows,
    balance_rows,
    budget_rows,
    completion_rows,
    usage_rows,
)
from penstock.store.queries.billing.attribution_rows import MAX_DAILY_VALUES
from penstock.store.queries.billing.attribution_tables import attribution_days
from penstock.store.queries.billing.ledger_audit import check
from penstock.store.queries.retention import roll_up_rows

TODAY = date(1970, 1, 1) + timedelta(DAY)
Line = tuple[Any, ...]


def write(connection: Connection, *records: Completion) -> None:
    completion_rows.add_all(connection, "process_1", records, NOON)


def ask(connection: Connection, by: str, account: str | None = "acct_one", **more: str) -> tuple[list[Line], Any]:
    """The lines of a report with their number of requests and cost, and its sum."""
    given = {"by": by, "from": TODAY.isoformat(), "to": TODAY.isoformat(), **more}
    question = read_question(list(given.items()), TODAY, everyone=True)
    found = attribution_report.report(connection, question.of(account), 10_000)
    lines = [(*line.about.values(), line.totals.requests + line.totals.jobs, line.totals.cost) for line in found.lines]
    return lines, found.total


def rows_of(connection: Connection, dimension: str) -> int:
    table = attribution_days.c
    return connection.execute(select(func.count()).where(table.dimension == dimension)).scalar_one()


def test_the_dearest_values_have_lines_and_the_rest_is_one(connection: Connection):
    write(
        connection,
        *(
            make_completion(cost=10 * number, attribution=Attribution(end_user=f"user-{number}"))
            for number in range(1, 6)
        ),
        make_completion(cost=1, attribution=Attribution(end_user="user-5")),
        make_completion(cost=7),
    )
    lines, total = ask(connection, "end_user", top="2")
    assert lines == [
        ("user-5", "value", 2, 51),
        ("user-4", "value", 1, 40),
        ("other", "other", 3, 60),
        ("", "none", 1, 7),
    ]
    assert (total.requests, total.cost) == (7, 158) == (sum(each[2] for each in lines), sum(each[3] for each in lines))
    assert ask(connection, "end_user", end_user="user-5")[0] == [("user-5", "value", 2, 51)]
    assert ask(connection, "model,end_user", top="1", kind="chat")[0][0] == ("writer", "user-5", "value", 2, 51)
    assert ask(connection, "day", end_user="user-1")[0] == [(TODAY.isoformat(), 1, 10)]
    assert ask(connection, "end_user", end_user="nobody")[0] == []


def test_a_request_with_two_tags_is_in_both_lines_and_once_in_the_total(connection: Connection):
    write(
        connection,
        make_completion(cost=10, attribution=Attribution(("red", "blue"))),
        make_completion(cost=5, attribution=Attribution(("red",), session="s")),
        make_completion(cost=2, attribution=Attribution(end_user="ada")),
        make_completion(cost=1),
    )
    lines, total = ask(connection, "tag")
    assert lines == [("red", "value", 2, 15), ("blue", "value", 1, 10), ("", "none", 2, 3)]
    assert (total.requests, total.cost) == (4, 18)
    assert ask(connection, "session")[0] == [("s", "value", 1, 5), ("", "none", 3, 13)]
    assert ask(connection, "month,tag", top="1")[0][-1][1:] == ("", "none", 2, 3)


def test_a_hundred_thousand_users_of_a_day_leave_a_bounded_number_of_rows(connection: Connection):
    batch = 10_000
    for start in range(0, 100_000, batch):
        records = [
            make_completion(cost=1, attribution=Attribution(end_user=f"user-{start + number}"))
            for number in range(batch)
        ]
        usage_rows.add(connection, usage_rows.of_completions(records))
    assert rows_of(connection, "end_user") == MAX_DAILY_VALUES + 1
    lines, total = ask(connection, "end_user", top=str(MAX_DAILY_VALUES))
    assert lines[-1] == ("other", "other", 100_000 - MAX_DAILY_VALUES, 100_000 - MAX_DAILY_VALUES)
    assert sum(each[3] for each in lines) == total.cost == 100_000
    again = make_completion(cost=9, attribution=Attribution(end_user="user-0"))
    usage_rows.add(connection, usage_rows.of_completions([again]))
    assert ask(connection, "end_user", end_user="user-0")[0] == [("user-0", "value", 2, 10)]


def test_writers_at_once_keep_the_bound(store_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attribution_rows, "MAX_DAILY_VALUES", 40)
    engine = make_engine(store_url)

    def fill(writer: int) -> None:
        for start in range(5):
            records = [
                make_completion(cost=1, attribution=Attribution(session=f"session-{writer % 2}-{start * 10 + number}"))
                for number in range(10)
            ]
            with transact(engine) as connection:
                usage_rows.add(connection, usage_rows.of_completions(records))

    threads = [threading.Thread(target=fill, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        assert rows_of(connection, "session") == 41
        lines, total = ask(connection, "session", top="1000")
        assert sum(each[3] for each in lines) == total.cost == 200
    engine.dispose()


def test_accounts_with_equal_tags_share_nothing(connection: Connection):
    red = Attribution(("red",), "ada", "s")
    write(connection, make_completion(cost=3, attribution=red))
    write(connection, make_completion(cost=4, account_id="acct_two", key_id="k2", attribution=red))
    for account, cost in (("acct_one", 3), ("acct_two", 4)):
        for dimension, value in (("tag", "red"), ("end_user", "ada"), ("session", "s")):
            assert ask(connection, dimension, account)[0] == [(value, "value", 1, cost)]
    assert ask(connection, "tag", None)[0] == [("red", "value", 2, 7)]
    budget = Budget(owner=own_tag("acct_one", "red"), period=Period.TOTAL, cap=100)
    budget_rows.put(connection, budget, "acct_one", NOON)
    [standing] = budget_rows.tag_standings(connection, "acct_one", NOON)
    assert (standing.spent, standing.describe()["tag"]) == (3, "red")
    assert budget_rows.tag_standings(connection, "acct_two", NOON) == []
    assert check(connection) == []


def test_a_refund_changes_the_line_that_the_charge_is_in(connection: Connection):
    record = make_completion(cost=30, attribution=Attribution(("red",), "ada"))
    write(connection, record)
    ledger_corrections.refund(connection, "admin", record.id, "a gift", NOON)
    for dimension, value in (("tag", "red"), ("end_user", "ada")):
        assert ask(connection, dimension)[0] == [(value, "value", 1, 0)]
    assert check(connection) == []


def test_a_tag_budget_set_later_and_rolled_up_entries_count(connection: Connection):
    payer = Payer("acct_one", "key", "key", ("red", "%_"))
    write(
        connection,
        make_completion(cost=30, attribution=Attribution(("red",))),
        make_completion(cost=5, attribution=Attribution(("Red", "%_"))),
        make_completion(cost=2),
    )
    now = NOON + 400 * 86_400
    assert roll_up_rows.roll_up(connection, "acct_one", now - 86_400, now, 100) == 3
    write(connection, make_completion(cost=4, attribution=Attribution(("red",))))
    for tag in ("red", "%_"):
        budget = Budget(owner=own_tag("acct_one", tag), period=Period.TOTAL, cap=100)
        budget_rows.put(connection, budget, "acct_one", now)
    spent = {each.budget.tag: each.spent for each in balance_rows.standings(connection, payer, now)}
    assert spent == {"red": 34, "%_": 5}
    assert check(connection) == []


def test_spreadsheets_get_no_formulas(connection: Connection):
    values: Sequence[str] = ("=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", 'x,y"z')
    write(connection, *(make_completion(attribution=Attribution(end_user=value)) for value in values))
    given = {"by": "end_user", "from": TODAY.isoformat(), "to": TODAY.isoformat()}
    question = read_question(list(given.items()), TODAY)
    lines = attribution_report.report(connection, question.of("acct_one"), 10_000).lines
    cells = as_csv(question, lines).splitlines()[1:]
    assert [cell[:2] for cell in sorted(cells)] == ['"x', "'+", "'-", "'=", "'@", "'\uff1d"]
