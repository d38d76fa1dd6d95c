"""Statements of usage: which question a query asks, and that a spreadsheet works out nothing of what it is given."""

import csv
import io
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.billing.usage_report import SUMS, Question, as_csv, as_json, check_length, filename, read_question
from penstock.errors import InvalidRequest
from penstock.store.queries.billing.attribution_report import UsageReport
from penstock.store.queries.billing.usage_rows import Group, Totals, UsageLine, total

TODAY = date(2026, 3, 15)
DAY = date(2026, 3, 1)


# -- the question


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ({}, "2026-02-14", "2026-03-15"),
        ({"to": "2026-01-31"}, "2026-01-02", "2026-01-31"),
        ({"from": "2026-03-15"}, "2026-03-15", "2026-03-15"),
        ({"from": "2025-01-01", "to": "2025-12-31"}, "2025-01-01", "2025-12-31"),
        ({"to": "0001-01-05"}, "0001-01-01", "0001-01-05"),
        ({"from": "2026-03-01", "to": "9999-12-31"}, "2026-03-01", "9999-12-31"),
    ],
)
def test_days(query: dict[str, str], first: str, last: str):
    question = read_question(list(query.items()), TODAY)
    assert (question.first.isoformat(), question.last.isoformat()) == (first, last)


def test_groups_filters_and_format():
    query = {"by": "month, model", "model": " a/b:c ", "key": "k", "vendor": "v", "kind": "job", "format": "csv"}
    question = read_question(list(query.items()), TODAY)
    assert question.by == (Group.MONTH, Group.MODEL)
    assert question.filters == {Group.MODEL: "a/b:c", Group.KEY: "k", Group.VENDOR: "v", Group.KIND: "job"}
    assert question.format == "csv"
    everything = read_question([("by", "account"), ("account", "studio")], TODAY, everyone=True)
    assert (everything.by, everything.account) == ((Group.ACCOUNT,), "studio")


@pytest.mark.parametrize(
    ("query", "param", "told"),
    [
        ([("from", "yesterday")], "from", "a day such as 2026-01-31"),
        ([("from", "2026-02-30")], "from", '"2026-02-30"'),
        ([("from", "20260201")], "from", "a day such as"),
        ([("to", "2026-W01-1")], "to", "a day such as"),
        ([("from", "")], "from", "a day such as"),
        ([("from", "2026-03-16")], "from", "not be after `to`, which is 2026-03-15"),
        ([("by", "hour")], "by", "day,month,model,key,vendor,kind,tag,end_user,session, each once"),
        ([("by", "account")], "by", "day,month,model,key,vendor,kind,tag,end_user,session, each once"),
        ([("by", "")], "by", "one or several of"),
        ([("by", "day,,model")], "by", "one or several of"),
        ([("by", "day,day")], "by", "each once"),
        ([("by", "day"), ("by", "model")], "by", "given once"),
        ([("kind", "video")], "kind", "one of chat, job"),
        ([("by", "day,tag,session")], "by", "one of session, tag: sums are kept for each alone"),
        ([("by", "tag"), ("end_user", "ada")], "by", "one of end_user, tag"),
        ([("top", "0")], "top", "an integer from 1 to 1000"),
        ([("top", "1001")], "top", "an integer from 1 to 1000"),
        ([("top", "²")], "top", "an integer from 1 to 1000"),
        ([("format", "xml")], "format", "one of json, csv"),
        ([("model", "")], "model", "1 to 200 printable characters"),
        ([("key", "a\0b")], "key", "1 to 200 printable characters"),
        ([("modell", "x")], "modell", "Did you mean `model`? Known: by, end_user, format, from"),
        ([("account", "x")], "account", "Unknown parameter"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(query: list[tuple[str, str]], param: str, told: str):
    with pytest.raises(InvalidRequest) as caught:
        read_question(query, TODAY)
    assert caught.value.param == param
    assert told in caught.value.message


def test_everything_wrong_is_told_at_once():
    with pytest.raises(InvalidRequest) as caught:
        read_question([("from", "x"), ("by", "y"), ("limit", "5")], TODAY)
    assert [detail.loc for detail in caught.value.details] == ["from", "by", "limit"]
    assert [detail.code for detail in caught.value.details] == ["invalid_params", "invalid_params", "unknown_param"]


# -- the answer

LINE = UsageLine({"day": "2026-03-01"}, Totals(3, 1, 1, 100, 20, 5, 7, 6, 1, 2, 400_000_000))


def report_of(*lines: UsageLine) -> UsageReport:
    return UsageReport(lines, total(lines))


def test_a_statement():
    more = UsageLine({"day": "2026-03-02"}, Totals(cost=-1))
    told = as_json(Question(first=DAY, last=TODAY), report_of(LINE, more), [{"of": "key"}])
    sums = {
        "requests": 3,
        "jobs": 1,
        "failed": 1,
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "cached_tokens": 5,
        "reasoning_tokens": 6,
        "total_tokens": 120,
        "cost": "0.40",
        "estimated": 1,
        "unpriced": 2,
        "cache_write_tokens": 7,
    }
    assert told["data"][0] == {"day": "2026-03-01", **sums}
    assert told["data"][1]["cost"] == "-0.000000001"
    assert told["total"] == sums | {"cost": "0.399999999"}
    assert told["budgets"] == [{"of": "key"}]
    assert {name: told[name] for name in ("object", "from", "to", "by", "currency")} == {
        "object": "usage",
        "from": "2026-03-01",
        "to": "2026-03-15",
        "by": ["day"],
        "currency": "USD",
    }


def test_a_statement_without_lines_is_zero():
    told = as_json(Question(first=DAY, last=TODAY), report_of(), [])
    assert told["data"] == []
    assert told["total"] == dict.fromkeys(SUMS, 0) | {"cost": "0.00"}
    assert as_csv(Question(first=DAY, last=TODAY, by=(Group.KEY,)), []) == ",".join(("key", "key_name", *SUMS)) + "\r\n"


@given(st.text(), st.text())
@example("=1+1", "@SUM(A1)")
@example("+1", "\t=1")
@example("-1", '"=1')
def test_a_spreadsheet_finds_the_text_and_no_formula(model: str, name: str):
    line = UsageLine({"model": model, "key": "k", "key_name": name}, LINE.totals)
    text = as_csv(Question(first=DAY, last=TODAY, by=(Group.MODEL, Group.KEY)), [line])
    head, cells = csv.reader(io.StringIO(text, newline=""))
    assert head == ["model", "key", "key_name", *SUMS]
    for cell, original in ((cells[0], model), (cells[2], name)):
        assert cell.removeprefix("'") == original.removeprefix("'") or cell == original
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert cells[3:] == ["3", "1", "1", "100", "20", "5", "6", "120", "0.40", "1", "2", "7"]


def test_a_file_is_named_by_its_days():
    assert filename(Question(first=DAY, last=TODAY)) == "usage_2026-03-01_2026-03-15.csv"


def test_too_many_lines_are_refused_with_advice():
    check_length([LINE] * 10_000)
    with pytest.raises(InvalidRequest, match="more than 10000 lines") as caught:
        check_length([LINE] * 10_001)
    assert caught.value.param == "by"
    assert "fewer days with `from` and `to`" in (caught.value.suggestion or "")
