"""Processes that die at work on jobs: innocent ones are finished, and a paid one is never given up for it."""

import random
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
from fault_steps import OUTPUT, until, withhold
from vendors.double import Double, double_of
from vendors.test_recovery import die, end_of, let_happen, submit

from penstock.domain.jobs import Phase, State
from penstock.gateway import Gateway
from penstock.jobs.quarantine import MAX_DEATHS
from penstock.settings.tables import Settings, load
from penstock.store.queries.jobs import job_rows

DEATHS = 2 * MAX_DEATHS + 2
ORDERS = ("GET", "/orders/")


@pytest.fixture
async def double(tmp_path: Path) -> AsyncGenerator[Double]:
    async with double_of(tmp_path / "double") as double:
        yield double


@pytest.fixture
def settings(tmp_path: Path, empty_store: Path, double: Double) -> Settings:
    data = tmp_path / "data"
    data.mkdir()
    (data / "penstock.db").write_bytes(empty_store.read_bytes())
    config = tmp_path / "penstock.toml"
    options = "poll_seconds = 0.02\nlookup_seconds = 0.1\nmax_concurrent = 100\n"
    config.write_text(f'[vendors.far]\ntype = "sim"\nbase_url = "{double.url}"\n{options}')
    return load(config, {}, {"data": data})


def count_downloads(double: Double, *order_ids: str) -> int:
    """How often results were asked for; of these orders, if any are named."""
    paths = [seen.path for seen in double.seen if OUTPUT in seen.path]
    return sum(not order_ids or any(order_id in path for order_id in order_ids) for path in paths)


async def kill(gateway: Gateway, settings: Settings) -> None:
    """Let the process die as by SIGKILL: its jobs stay in its name, with all that was written of them."""
    with closing(sqlite3.connect(settings.data / "penstock.db")) as store, store:
        marks = dict(store.execute("SELECT id, at_risk FROM jobs WHERE done = 0").fetchall())
    await gateway.close()
    die(settings.data)
    with closing(sqlite3.connect(settings.data / "penstock.db")) as store, store:
        store.executemany("UPDATE jobs SET at_risk = ? WHERE id = ?", [(mark, name) for name, mark in marks.items()])
    store.close()


def deaths_of(settings: Settings) -> dict[str, int]:
    with closing(sqlite3.connect(settings.data / "penstock.db")) as store, store:
        found = dict(store.execute("SELECT id, deaths FROM jobs").fetchall())
    store.close()
    return found


async def test_processes_killed_from_outside_fail_no_job(settings: Settings, double: Double):
    """All jobs are collected when the first dies; the others die while one of them after the other has its turn."""
    double.fault(withhold(), *ORDERS, times=100_000)
    gateway = await Gateway.open(settings)
    job_ids = [await submit(gateway, {"latency": 0}) for _ in range(20)]
    await until(lambda: count_downloads(double) >= len(job_ids))
    for _ in range(DEATHS):
        seen = count_downloads(double)
        await kill(gateway, settings)
        gateway = await Gateway.open(settings)
        await until(lambda seen=seen: count_downloads(double) > seen)
    assert max(deaths_of(settings).values()) < MAX_DEATHS
    double.faults.clear()
    await kill(gateway, settings)
    gateway = await Gateway.open(settings)
    assert await let_happen(gateway, 10_000, job_ids)
    done = await gateway.database.read(job_rows.get_several, job_ids)
    assert [end_of(job) for job in done] == ["succeeded"] * len(job_ids)
    assert double.counts() == {"orders": len(job_ids), "jobs": len(job_ids), "duplicates": 0}
    await gateway.close()


async def test_a_paid_job_that_kills_its_processes_is_found_among_others_and_waits(settings: Settings, double: Double):
    double.fault(withhold(), *ORDERS, times=100_000)
    gateway = await Gateway.open(settings)
    job_ids = [await submit(gateway, {"latency": 0}) for _ in range(6)]
    await until(lambda: count_downloads(double) >= len(job_ids))
    chosen = random.Random(7).choice(job_ids)  # noqa: S311
    (job,) = await gateway.database.read(job_rows.get_several, [chosen])
    guilty = job.attempts[-1].upstream_id or ""
    others = [job_id for job_id in job_ids if job_id != chosen]
    double.faults.clear()
    double.fault(withhold(guilty), *ORDERS, times=100_000)
    deaths = []
    while max(deaths, default=0) < 2:  # where the machine is so slow that two have turns at once, neither is to blame
        seen = count_downloads(double, guilty)
        await kill(gateway, settings)
        gateway = await Gateway.open(settings)
        deaths.append(deaths_of(settings)[chosen])
        await until(lambda seen=seen: count_downloads(double, guilty) > seen)
    assert deaths[0] == 1
    assert await let_happen(gateway, 10_000, others)
    await kill(gateway, settings)
    with closing(sqlite3.connect(settings.data / "penstock.db")) as store, store:
        store.execute("UPDATE jobs SET deaths = ? WHERE id = ?", (MAX_DEATHS, chosen))
    store.close()
    seen = count_downloads(double, guilty)
    gateway = await Gateway.open(settings)
    await until(lambda: chosen in owned(settings))
    (waiting,) = await gateway.database.read(job_rows.get_several, [chosen])
    assert (waiting.state, waiting.phase, count_downloads(double, guilty)) == (State.RUNNING, Phase.STORING, seen)
    double.faults.clear()
    await kill(gateway, settings)
    with closing(sqlite3.connect(settings.data / "penstock.db")) as store, store:
        store.execute("UPDATE jobs SET deaths = 1 WHERE id = ?", (chosen,))
    store.close()
    gateway = await Gateway.open(settings)
    assert await let_happen(gateway, 10_000, job_ids)
    done = await gateway.database.read(job_rows.get_several, job_ids)
    assert {end_of(job) for job in done} == {"succeeded"}
    assert double.counts() == {"orders": len(job_ids), "jobs": len(job_ids), "duplicates": 0}
    await gateway.close()


def owned(settings: Settings) -> set[str]:
    """The open jobs that a process has claimed."""
    with closing(sqlite3.connect(settings.data / "penstock.db")) as store, store:
        found = store.execute("SELECT id FROM jobs WHERE done = 0 AND owner LIKE 'runner_0%'").fetchall()
    store.close()
    return {name for (name,) in found}
