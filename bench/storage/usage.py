"""How fast a year of usage is told: ten million chat requests of 10 accounts, each with 20 keys and 50 models.

python -m bench.storage.usage [--completions 10000000] [--data DIR] [--requests 40]

Writing ten million records takes some minutes and 8 GB; with --data they are kept, and found again the next time.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from sqlalchemy import Connection, Table

from bench.harness.processes import cpu_seconds
from bench.jobs.jobs import wait_ready
from penstock.accounts import administration
from penstock.domain.accounts import Actor, KeyWish
from penstock.store.queries.billing import usage_rows
from penstock.store.schema import upgrade
from penstock.store.sqlite.database import open_file

ACCOUNTS, KEYS, MODELS, DAYS = 10, 20, 50, 365
AIM_MS = 100
LAST = datetime.now(UTC).date() - timedelta(days=1)
FIRST = LAST - timedelta(days=DAYS - 1)
YEAR = {"from": FIRST.isoformat(), "to": LAST.isoformat()}
QUESTIONS: Mapping[str, Mapping[str, str]] = {
    "a year by day": YEAR | {"by": "day"},
    "a year by month": YEAR | {"by": "month"},
    "a year by model": YEAR | {"by": "model"},
    "a year by key": YEAR | {"by": "key"},
    "a year by day, CSV": YEAR | {"by": "day", "format": "csv"},
    "a year by day and key, CSV": YEAR | {"by": "day,key", "format": "csv"},
    "a year of one key by model": YEAR | {"by": "model", "key": "KEY"},
    "a year by model and key": YEAR | {"by": "model,key"},
    "30 days by day": {"by": "day"},
    "30 days by model and key": {"by": "model,key"},
}


def fill(path: Path, count: int) -> dict[str, Any]:
    """Write the records and, as the gateway does, their sums; a key of the first account."""
    engine = open_file(path)
    upgrade(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA synchronous = OFF")  # only here: the gateway never does this
        owners: list[tuple[str, str]] = []
        known: dict[str, Any] = {}
        now = time.time()
        for account in range(ACCOUNTS):
            made = administration.create_account(connection, Actor.CLI, f"account {account}", now)
            for number in range(KEYS):
                wish = KeyWish(name=f"key {number}")
                text, key = administration.issue_key(connection, Actor.CLI, made.id, wish, now)
                owners.append((key.account_id, key.public_id))
                known = {"key": text, "public_id": key.public_id, "account_id": key.account_id}
        begun = time.perf_counter()
        write(connection, owners, count)
        print(f"{count:,} records written in {time.perf_counter() - begun:,.0f} s")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return known


def write(connection: Connection, owners: Sequence[tuple[str, str]], count: int) -> None:
    """Write requests in the order of time, their ledger entries and the sums, in SQL: a server would take hours.

    Each is of a random key and model: nearly every key uses every model every day. `penstock ledger check` holds.
    """
    connection.exec_driver_sql("CREATE TEMP TABLE owners (number INTEGER PRIMARY KEY, account_id TEXT, key_id TEXT)")
    connection.exec_driver_sql("INSERT INTO owners VALUES (?, ?, ?)", [(at, *owner) for at, owner in enumerate(owners)])
    start = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC).timestamp()
    connection.exec_driver_sql("PRAGMA cache_size = -1000000")
    connection.exec_driver_sql(_COMPLETIONS, (count, len(owners), start, DAYS * 86_400 / count))
    for statement in (_LEDGER, *map(_sums, usage_rows.TABLES)):
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql(statement)


_COMPLETIONS = f"""
    WITH RECURSIVE numbers (number, chance) AS (
        SELECT 0, abs(random()) UNION ALL SELECT number + 1, abs(random()) FROM numbers WHERE number + 1 < ?1
    )
    INSERT INTO completions (id, request_id, account_id, key_id, model, vendor, upstream_model, streamed, outcome, code,
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, estimated, cost, created_at, seconds,
        first_byte_seconds)
    SELECT printf('chat_%026d', numbers.number), printf('req_%026d', numbers.number), account_id, key_id,
        printf('model-%02d', chance % {MODELS}), 'vendor' || chance % 5, 'm', 1,
        CASE WHEN numbers.number % 50 = 0 THEN 'failed' ELSE 'ok' END, '',
        chance / 50 % 4000, chance / 7 % 900, chance / 50 % 90, 0, 0,
        chance / 50 % 4000 * 150 + chance / 7 % 900 * 600, ?3 + numbers.number * ?4, 1.5, 0.4
    FROM numbers JOIN owners ON owners.number = chance / 131 % ?2
"""  # noqa: S608  constants of this file
_LEDGER = """
    INSERT INTO ledger SELECT id, 'settle', account_id, key_id, key_id, cost, 0, created_at, created_at, ''
    FROM completions WHERE cost > 0
"""


def _sums(table: Table) -> str:
    """Return the statement that sums up all completions for one table of usage."""
    columns = {
        "day": "CAST(created_at / 86400 AS INTEGER)",
        "kind": "'chat'",
        "requests": "count(*)",
        "failed": "sum(outcome = 'failed')",
        "unpriced": "sum(cost IS NULL)",
    }
    keys = [columns.get(column.name, column.name) for column in table.primary_key.columns]
    sums = [columns.get(name, f"sum({name})") for name in usage_rows.Sums._fields]
    grouped = ", ".join(str(number + 1) for number in range(len(keys)))
    names = ", ".join((*table.primary_key.columns.keys(), *usage_rows.Sums._fields))
    return f"INSERT INTO {table.name} ({names}) SELECT {', '.join((*keys, *sums))} FROM completions GROUP BY {grouped}"  # noqa: S608


def brute_force(path: Path, account_id: str) -> tuple[float, int, int]:
    """How long it takes to add up the records themselves, and what they cost."""
    with closing(open_file(path).raw_connection()) as connection:
        begun = time.perf_counter()
        words = "SELECT count(*), sum(cost) FROM completions WHERE account_id = ?"
        requests, cost = connection.cursor().execute(words, (account_id,)).fetchone()
        return time.perf_counter() - begun, requests, cost


async def ask(url: str, known: Mapping[str, Any], requests: int, server: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    headers = {"authorization": f"Bearer {known['key']}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for name, question in QUESTIONS.items():
            query = {each: value.replace("KEY", known["public_id"]) for each, value in question.items()}
            took: list[float] = []
            size, cpu = 0, 0.0
            for number in range(requests + 2):
                cpu = cpu_seconds(server) if number == 2 else cpu  # the first two warm up
                begun = time.perf_counter()
                async with session.get(f"{url}/api/v1/usage", params=query) as response:
                    body = await response.read()
                    if response.status != 200:
                        raise SystemExit(f"HTTP {response.status}: {body.decode()}")
                took.append((time.perf_counter() - begun) * 1e3)
                size = len(body)
            found[name] = {
                "p50_ms": statistics.median(took[2:]),
                "p95_ms": statistics.quantiles(took[2:], n=20)[18],
                "cpu_ms": (cpu_seconds(server) - cpu) * 1e3 / requests,
                "first_ms": took[0],
                "bytes": size,
            }
    return found


async def total_of(url: str, known: Mapping[str, Any]) -> tuple[int, str]:
    headers = {"authorization": f"Bearer {known['key']}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{url}/api/v1/usage", params={"from": FIRST.isoformat(), "by": "kind"}) as response,
    ):
        total = (await response.json())["total"]
        return total["requests"], total["cost"]


async def measure(data: Path, known: Mapping[str, Any], requests: int, port: int) -> dict[str, dict[str, float]]:
    penstock = Path(sys.executable).with_name("penstock")
    environ = os.environ | {"PENSTOCK_SERVER_LOG_LEVEL": "warning"}
    command = [penstock, "serve", "--port", str(port), "--data", data]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        await wait_ready(url, server)
        seconds, count, cost = brute_force(data / "penstock.db", known["account_id"])
        told = await total_of(url, known)
        if told[0] != count or round(float(told[1]) * 1e9) != cost:
            raise SystemExit(f"the statement says {told}, the records {count} and {cost}")
        print(f"the statement equals the sum over {count:,} records, which takes {seconds:.2f} s")
        return await ask(url, known, requests, server.pid)
    finally:
        server.terminate()
        server.wait(30)


def rows_of(path: Path) -> dict[str, int]:
    with closing(open_file(path).raw_connection()) as connection:
        names = ("completions", *(table.name for table in usage_rows.TABLES))
        words = "SELECT count(*) FROM {}"
        return {name: connection.cursor().execute(words.format(name)).fetchone()[0] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--completions", type=int, default=10_000_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--port", type=int, default=8798)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        data = arguments.data or Path(temporary)
        data.mkdir(parents=True, exist_ok=True)
        kept = data / f"bench-{date.today()}-{arguments.completions}.json"  # noqa: DTZ011  the question is about today
        if not kept.exists():
            kept.write_text(json.dumps(fill(data / "penstock.db", arguments.completions)))
        known = json.loads(kept.read_text())
        print(
            ", ".join(f"{name}: {count:,}" for name, count in rows_of(data / "penstock.db").items()), "rows,", end=" "
        )
        print(f"{(data / 'penstock.db').stat().st_size / 1e9:.2f} GB")
        result = asyncio.run(measure(data, known, arguments.requests, arguments.port))
    for name, values in result.items():
        verdict = "" if values["p95_ms"] < AIM_MS else f"  above the aim of {AIM_MS} ms"
        told = ", ".join(f"{key} {value:,.1f}" for key, value in values.items())
        print(f"{name:>28}: {told}{verdict}")
    results = Path(__file__).parents[1] / "results"
    results.mkdir(exist_ok=True)
    (results / "usage.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
