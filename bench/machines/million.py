"""A million finished jobs in the store: what lists, records, usage and feeds cost beside a store with a few."""

import asyncio
import base64
import os
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import psycopg

from bench.machines.fleet import Fleet, fleet, quantiles, show, start
from penstock.domain.events import event_id
from penstock.domain.ids import encode

DAYS = 90
SEEDS = 120
"""Real jobs, of which all others are copies: more than fill a page."""
OTHERS = 9
"""Accounts that share one half of the jobs; the other half is the measured one's."""
JOBS = (
    *("id", "account_id", "lineage", "model", "vendor", "state", "done", "client_ref", "batch_id", "created_at"),
    *("start_by", "finished_at", "expires_at", "epoch", "seated", "document"),
)
TYPES = "text text text text text text int4 text text float8 float8 float8 float8 int4 int4 bytea"


# -- filling


@dataclass(frozen=True)
class Seed:
    """One real job with all its rows."""

    row: dict[str, Any]
    events: list[tuple[Any, ...]]
    ledger: list[tuple[Any, ...]]


def read_seeds(connection: psycopg.Connection[Any]) -> list[Seed]:
    seeds: list[Seed] = []
    rows = connection.execute(f"SELECT {', '.join(JOBS)} FROM jobs WHERE done = 1".encode()).fetchall()  # noqa: S608
    for row in rows:
        events = connection.execute(
            "SELECT sequence, type, document FROM events WHERE job_id = %s ORDER BY sequence", (row[0],)
        )
        ledger = connection.execute(
            "SELECT kind, key_id, lineage, amount, overrun, note FROM ledger WHERE subject = %s", (row[0],)
        )
        seeds.append(Seed(dict(zip(JOBS, row, strict=True)), events.fetchall(), ledger.fetchall()))
    return seeds


@dataclass(frozen=True)
class Copy:
    """A seed under another name, at another time, of another account."""

    seed: Seed
    id: str
    account_id: str
    at: float

    def document(self, of: bytes) -> bytes:
        """A document of the seed as its own."""
        own = self.seed.row
        return of.replace(own["id"].encode(), self.id.encode()).replace(
            own["account_id"].encode(), self.account_id.encode()
        )

    def row(self) -> list[Any]:
        """As the table of jobs has it."""
        took = self.seed.row["finished_at"] - self.seed.row["created_at"]
        number = self.id[-8:]
        own = {
            "id": self.id,
            "account_id": self.account_id,
            "client_ref": f"ref-{number}" if number < "g" else None,
            "batch_id": f"batch_{number}" if number > "w" else None,
            "created_at": self.at,
            "finished_at": self.at + took,
            "expires_at": time.time() + 86_400 * 400,
            "document": self.document(self.seed.row["document"]),
        }
        return [(self.seed.row | own)[name] for name in JOBS]


def copies(seeds: list[Seed], count: int) -> Iterator[Copy]:
    """In the order of time, over the last months."""
    chance = random.Random(20261116)  # noqa: S311  the same at every run
    accounts = [seeds[0].row["account_id"]] + [f"acct_{encode(number, 26)}" for number in range(OTHERS)]
    begin, step = time.time() - DAYS * 86_400, DAYS * 86_400 / count
    for number in range(count):
        at = begin + number * step
        identity = encode((int(at * 1e6) << 64) | chance.getrandbits(64), 26)
        account = accounts[0] if chance.random() < 0.5 else accounts[chance.randrange(1, OTHERS + 1)]
        yield Copy(seeds[chance.randrange(len(seeds))], f"job_{identity}", account, at)


def fill(url: str, count: int) -> float:
    """How long it took."""
    begun = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        seeds = read_seeds(connection)
        made = copies(seeds, count)
        written = 0
        while batch := [each for each, _ in zip(made, range(20_000), strict=False)]:
            write(connection, batch)
            written += len(batch)
            print(f"\r{written:,} jobs, {written / (time.perf_counter() - begun):,.0f} per second", end="", flush=True)
        print()
        for table in ("usage_days", "usage_model_days", "usage_key_days"):
            connection.execute(spread(connection, table).encode())
        connection.execute("VACUUM ANALYZE")
    return time.perf_counter() - begun


def write(connection: psycopg.Connection[Any], batch: list[Copy]) -> None:
    """All rows of these jobs, in the binary form: documents are most of it."""
    with connection.transaction(), connection.cursor() as cursor:
        copy_rows(cursor, "jobs", dict(zip(JOBS, TYPES.split(), strict=True)), (each.row() for each in batch))
        columns = {
            "account_id": "text", "job_id": "text", "sequence": "int4", "type": "text", "created_at": "float8",
            "document": "bytea",
        }  # fmt: skip
        events = (
            (each.account_id, each.id, sequence, kind, each.at, each.document(document))
            for each in batch
            for sequence, kind, document in each.seed.events
        )
        copy_rows(cursor, "events", columns, events)
        columns = {
            "subject": "text", "kind": "text", "key_id": "text", "lineage": "text", "amount": "int8",
            "overrun": "int8", "note": "text", "account_id": "text", "at": "float8", "created_at": "float8",
        }  # fmt: skip
        entries = (
            (each.id, kind, *entry, each.account_id, each.at, each.at)
            for each in batch
            for kind, *entry in each.seed.ledger
        )
        copy_rows(cursor, "ledger", columns, entries)
        columns = {
            "id": "text", "account_id": "text", "key_id": "text", "fingerprint": "bytea", "job_ids": "text",
            "created_at": "float8",
        }  # fmt: skip
        requests = ((each.id, each.account_id, "bench", os.urandom(32), each.id, each.at) for each in batch)
        copy_rows(cursor, "requests", columns, requests)


def copy_rows(cursor: psycopg.Cursor[Any], table: str, columns: dict[str, str], rows: Iterable[Sequence[Any]]) -> None:
    with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)".encode()) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)


def spread(connection: psycopg.Connection[Any], table: str) -> str:
    """What was used today, on each of the days before too."""
    cursor = connection.execute(f"SELECT * FROM {table} LIMIT 0".encode())  # noqa: S608  names of ours
    names = [column.name for column in cursor.description or ()]
    chosen = ", ".join("day - number" if name == "day" else name for name in names)
    return f"INSERT INTO {table} SELECT {chosen} FROM {table}, generate_series(1, {DAYS}) AS number"  # noqa: S608


# -- asking


def questions(running: Fleet, account_id: str) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """By name: paths and queries, asked in turn."""
    sample = running.ask(
        f"SELECT id, client_ref, batch_id, created_at FROM jobs WHERE account_id = '{account_id}'"  # noqa: S608
        " ORDER BY md5(id) LIMIT 2000"
    )
    moments = [datetime.fromtimestamp(row[3], UTC).isoformat() for row in sample[:100]]
    deep = [base64.urlsafe_b64encode(row[0].encode()).decode().rstrip("=") for row in sample[:100]]
    refs = [row[1] for row in sample if row[1]][:100] or ["none"]
    batches = [row[2] for row in sample if row[2]][:100] or ["none"]
    positions = [row[0] for row in running.ask("SELECT position FROM events ORDER BY md5(job_id) LIMIT 100")]
    last = running.ask("SELECT max(position) FROM events")[0][0]
    jobs, events, usage = "/api/v1/jobs", "/api/v1/events", "/api/v1/usage"
    return {
        "get": [(f"{jobs}/{row[0]}", {}) for row in sample[:100]],
        "list": [(jobs, {})],
        "list, 100": [(jobs, {"limit": "100"})],
        "list, deep": [(jobs, {"cursor": each}) for each in deep],
        **{f"list, {state}": [(jobs, {"status": state})] for state in ("succeeded", "failed", "canceled", "running")},
        "list, failed, deep": [(jobs, {"status": "failed", "cursor": each}) for each in deep],
        "list, model": [(jobs, {"model": "sim_image_to_model"})],
        "list, other model": [(jobs, {"model": "vendorb_video_31"})],
        "list, model and failed": [(jobs, {"model": "sim_image_to_model", "status": "failed"})],
        "list, model and running": [(jobs, {"model": "sim_image_to_model", "status": "running"})],
        "list, client_ref": [(jobs, {"client_ref": each}) for each in refs],
        "list, batch": [(jobs, {"batch": each}) for each in batches],
        "list, created_before": [(jobs, {"created_before": each}) for each in moments],
        "list, created_after": [(jobs, {"created_after": each}) for each in moments],
        "usage by day": [(usage, {"by": "day"})],
        "usage by model": [(usage, {"by": "model"})],
        "usage by key": [(usage, {"by": "key"})],
        "feed from the oldest": [(events, {})],
        "feed from the middle": [(events, {"after": event_id(each)}) for each in positions],
        "feed at its end": [(events, {"after": event_id(last)})],
    }


async def ask(running: Fleet, asked: dict[str, list[tuple[str, dict[str, str]]]], times: int) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {await running.key()}"}
    found: dict[str, Any] = {}
    async with aiohttp.ClientSession(running.gateway.url, headers=headers) as session:
        for name, choices in asked.items():
            took: list[float] = []
            for number in range(times + 5):
                path, query = choices[number % len(choices)]
                begun = time.perf_counter()
                async with session.get(path, params=query) as response:
                    body = await response.read()
                    if response.status != 200:
                        raise SystemExit(f"{path} {query}: {response.status} {body[:500]!r}")
                if number >= 5:
                    took.append(time.perf_counter() - begun)
            found[name] = quantiles(took)
    return found


# -- the measurement


async def million(jobs: int = 1_000_000, times: int = 200) -> None:
    """Lists, records, usage and feeds with so many finished jobs, beside a store with a few."""
    async with fleet(gateways=1, workers=1) as running:
        await start(running.workers)
        await seed(running)
        account_id = running.ask("SELECT account_id FROM jobs LIMIT 1")[0][0]
        few = await look(running, account_id, times)
        took = await asyncio.to_thread(fill, running.machines.postgres.url(), jobs)
        size = running.ask("SELECT pg_database_size(current_database())")[0][0]
        counts = {name: running.ask(f"SELECT count(*) FROM {name}")[0][0] for name in ("jobs", "events", "ledger")}  # noqa: S608
        show(f"{jobs:,} finished jobs", {"seconds": took, "gigabytes": size / 1e9} | counts)
        many = await look(running, account_id, times)
        rows = {
            name: {
                "p50 few": few[name]["p50"],
                "p50 many": many[name]["p50"],
                "times": many[name]["p50"] / few[name]["p50"],
                "p99 few": few[name]["p99"],
                "p99 many": many[name]["p99"],
            }
            for name in few
        }
        show(f"latency in ms, {jobs:,} finished jobs beside {SEEDS}", rows)


async def seed(running: Fleet) -> None:
    """Real jobs, most of which succeed; some are canceled or come in a batch."""
    await running.load(4, 60, latency=0.05, count=SEEDS - 20)
    headers = {"authorization": f"Bearer {await running.key()}"}
    async with aiohttp.ClientSession(running.gateway.url, headers=headers, raise_for_status=True) as session:
        for number in range(10):
            params = {"script": {"latency": 3600 if number % 2 else 0.05}}
            body = {"model": "sim_image_to_model", "input": [{"params": params}] * 2, "client_ref": f"ref-{number}"}
            async with session.post("/model/v1/generation", json=body) as response:
                batch = await response.json()
            for job in batch["jobs"] if number % 2 else ():
                async with session.post(f"/api/v1/jobs/{job['id']}/cancel"):
                    pass
    await running.until(lambda: running.open_jobs() == 0)
    # A quarter of them failed: what the vendor says is no matter here.
    running.ask("UPDATE jobs SET state = 'failed' WHERE state = 'succeeded' AND right(id, 1) < '8' RETURNING 1")


async def look(running: Fleet, account_id: str, times: int) -> dict[str, Any]:
    """Every question, of a gateway that was started just now; and how long its start, a job and an order take."""
    await running.gateway.stop()
    starts: list[float] = []
    for _ in range(2):
        if running.gateway.process is not None:
            await running.gateway.stop()
        await running.gateway.start()
        starts.append(running.gateway.starts[-1])
    found = await ask(running, await asyncio.to_thread(questions, running, account_id), times)
    accepted = await running.load(1, 600, latency=0.0, count=times)
    found["accept"] = {"p50": accepted["p50_ms"], "p99": accepted["p99_ms"]}
    await running.until(lambda: running.open_jobs() == 0)
    latest = running.ask(f"SELECT finished_at - created_at FROM jobs ORDER BY created_at DESC LIMIT {times}")  # noqa: S608
    found["a whole job"] = quantiles([row[0] for row in latest])
    return found | {"start of a gateway": quantiles(starts)}
