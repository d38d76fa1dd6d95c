"""How fast a year of usage is told: ten million chat requests of 10 accounts, each with 20 keys and 50 models.

python -m bench.storage.usage [--completions 10000000] [--data DIR] [--requests 40]

Writing ten million records takes some minutes and 4 GB; with --data they are kept, and found again the next time.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from sqlalchemy import Connection

from bench.harness.processes import cpu_seconds
from bench.jobs.jobs import wait_ready
from penstock.accounts import administration
from penstock.domain.accounts import Actor, KeyWish
from penstock.domain.chat import Usage
from penstock.domain.usage import ChatOutcome, Completion
from penstock.store.queries.billing import completion_rows, usage_rows
from penstock.store.schema import upgrade
from penstock.store.sqlite.database import open_file

ACCOUNTS, KEYS, MODELS, DAYS = 10, 20, 50, 365
BATCH = 100_000
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
        now = time.time()
        for account in range(ACCOUNTS):
            made = administration.create_account(connection, Actor.CLI, f"account {account}", now)
            for number in range(KEYS):
                wish = KeyWish(name=f"key {number}")
                text, key = administration.issue_key(connection, Actor.CLI, made.id, wish, now)
                owners.append((key.account_id, key.public_id))
                known = {"key": text, "public_id": key.public_id, "account_id": key.account_id}
        written, begun = 0, time.perf_counter()
        for batch in records(owners, count):
            write(connection, batch)
            written += len(batch)
            print(
                f"\r{written:,} records, {written / (time.perf_counter() - begun):,.0f} per second", end="", flush=True
            )
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    print()
    return known


def records(owners: list[tuple[str, str]], count: int) -> Iterator[list[Completion]]:
    """In the order of time, each of a random key and model: nearly every key uses every model every day."""
    chance = random.Random(20261115)  # noqa: S311  the same at every run
    start = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC).timestamp()
    seconds = DAYS * 86_400 / count
    usages = [Usage(chance.randrange(4000), chance.randrange(900), chance.randrange(90), 0) for _ in range(1000)]
    for first in range(0, count, BATCH):
        batch: list[Completion] = []
        for number in range(first, min(first + BATCH, count)):
            account_id, key_id = owners[int(chance.random() * len(owners))]
            model = int(chance.random() * MODELS)
            usage = usages[int(chance.random() * 1000)]
            batch.append(
                Completion(
                    id=f"chat_{number:026d}",
                    request_id=f"req_{number:026d}",
                    account_id=account_id,
                    key_id=key_id,
                    model=f"model-{model:02d}",
                    vendor=f"vendor{model % 5}",
                    upstream_model="m",
                    streamed=True,
                    outcome=ChatOutcome.FAILED if number % 50 == 0 else ChatOutcome.OK,
                    code="",
                    usage=usage,
                    cost=usage.prompt * 150 + usage.completion * 600,
                    created_at=start + number * seconds,
                    seconds=1.5,
                    first_byte_seconds=0.4,
                )
            )
        yield batch


def write(connection: Connection, batch: list[Completion]) -> None:
    """Write them as a server does, with their ledger entries."""
    connection.exec_driver_sql("BEGIN")
    completion_rows.add_all(connection, "bench", batch, time.time())
    connection.exec_driver_sql("COMMIT")


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
