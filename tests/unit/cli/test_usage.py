"""`penstock usage`: the same numbers as a table, as JSON and as CSV, read from the store."""

import csv
import io
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from shell import Shell, forget_settings
from store.sample_completions import make_completion
from store.sample_jobs import make_job

from penstock.domain.jobs import State
from penstock.store.queries.billing import usage_rows
from penstock.store.sqlite.database import open_file


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch):
    forget_settings(monkeypatch)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Two accounts, of which one spent three times as much as the other, and a job of the first."""
    shell = Shell(tmp_path / "data")
    now = time.time()
    made = [shell.json(f"key create --account {account} --name '{account} [red]'") for account in ("one", "two")]
    engine = open_file(tmp_path / "data" / "penstock.db")
    with engine.connect() as connection:
        for key, cost in zip(made, (300_000_000, 100_000_000), strict=True):
            owner = {"account_id": key["account_id"], "key_id": key["public_id"], "created_at": now}
            records = [make_completion(**owner, cost=cost), make_completion(**owner, cost=None)]
            usage_rows.add(connection, usage_rows.of_completions(records))
        owner = {"account_id": made[0]["account_id"], "key_id": made[0]["public_id"], "created_at": now - 40 * 86_400}
        usage_rows.add(connection, usage_rows.of_job(make_job(**owner, state=State.FAILED, final=0)))
    engine.dispose()
    return shell


def test_a_table_for_people(shell: Shell):
    result = shell("usage --by account,key")
    head, first, second, total = result.stdout.splitlines()
    assert head.split()[:3] == ["account", "key", "key"]
    assert first.split()[0] == "one"
    assert "one [red]" in first
    assert first.split()[-7:] == ["2", "0", "0", "20", "40", "0.3000", "█" * 16]
    assert second.split()[-2:] == ["0.1000", "█" * 5 + "▎"]
    assert total.split() == ["total", "4", "0", "0", "40", "80", "0.4000"]
    assert "price is unknown: 2." in result.stderr


def test_one_account_and_longer_than_usual(shell: Shell):
    told = shell.json("usage --account one --from 2023-01-01 --by kind")
    assert [(line["kind"], line["requests"], line["jobs"], line["cost"]) for line in told["data"]] == [
        ("chat", 2, 0, "0.30"),
        ("job", 0, 1, "0.00"),
    ]
    assert (told["from"], told["to"]) == ("2023-01-01", datetime.now(UTC).date().isoformat())
    assert told["total"]["failed"] == 1


def test_csv_is_the_same_as_json(shell: Shell):
    rows = list(csv.DictReader(io.StringIO(shell("usage --by day,account --csv").stdout)))
    lines = shell.json("usage --by day,account")["data"]
    assert rows == [{name: str(value) for name, value in line.items()} for line in lines]
    assert [row["account"] for row in rows] == ["one", "two"]


def test_nothing_used(shell: Shell):
    result = shell("usage --from 2020-01-01 --to 2020-01-31")
    assert result.stdout == "Nothing was used from 2020-01-01 to 2020-01-31.\n"
    assert json.loads(shell("usage --to 2020-01-31 --json").stdout)["data"] == []


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ("--account nobody", 1, "There is no account `nobody`."),
        ("--from soon", 2, "--from: Should be a day such as 2026-01-31"),
        ("--from 2026-02-01 --to 2026-01-01", 2, "--from: Should not be after `to`"),
        ("--by hour", 2, "--by: Should be one or several of day,month,model,key,vendor,kind,account"),
        ("--json --csv", 2, "--json and --csv exclude each other."),
    ],
)
def test_what_cannot_be_asked(shell: Shell, options: str, code: int, told: str):
    result = shell(f"usage {options}", code=code)
    assert told in result.stderr
    assert bool(result.stdout) == ("--json" in options)  # there the error itself
