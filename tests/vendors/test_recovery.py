"""A gateway that is stopped at any point and opened again: each job ends as its script says, and is ordered once."""

import random
import sqlite3
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from store.sample_jobs import make_job
from vendors.double import double_of

from penstock.domain import jobs
from penstock.domain.jobs import Job
from penstock.gateway import Gateway, build_offers
from penstock.settings.tables import Settings, load
from penstock.store.connect import open_database, prepare
from penstock.store.queries.jobs import event_rows, job_rows, open_job_rows

ACCOUNT = "acct_one"
PARAMS = {"prompt": "", "durationSeconds": 1, "aspectRatio": "16:9", "resolution": "720p"}

SCRIPTS: list[tuple[dict[str, Any], str]] = [
    ({}, "succeeded"),
    ({"latency": 0.6}, "succeeded"),
    ({"latency": 0.4, "queued": 0.2, "progress": False}, "succeeded"),
    ({"submission": "reply_lost"}, "succeeded"),
    ({"submission": "reply_lost", "latency": 0.5}, "succeeded"),
    ({"submission": "never_arrived", "submission_times": 2}, "succeeded"),
    ({"submission": "busy", "submission_times": 2}, "succeeded"),
    ({"submission": "unreachable", "submission_times": 2}, "succeeded"),
    ({"poll_errors": 3}, "succeeded"),
    ({"download_errors": 2}, "succeeded"),
    ({"ending": "failed"}, "upstream_error"),
    ({"ending": "filtered"}, "content_filtered"),
    ({"ending": "no_output"}, "content_filtered"),
    ({"ending": "corrupt"}, "bad_output"),
    ({"submission": "reply_lost", "findable": False}, "upstream_outcome_unknown"),
    ({"submission": "rejected", "submission_times": 1000}, "upstream_rejected"),
    ({"submission": "unauthorized", "submission_times": 1000}, "upstream_auth"),
]
NEVER_ORDERED = {"upstream_rejected", "upstream_auth"}


async def submit(gateway: Gateway, script: dict[str, Any]) -> str:
    """Accept a job; its id."""
    now, vendor = time.time(), "far" if "far" in gateway.offers.vendors else "sim"
    params = PARAMS | {"script": {"latency": 0.1, **script}}
    job = make_job(account_id=ACCOUNT, vendor=vendor, params=params, created_at=now, start_by=now + 600)
    await gateway.database.write(job_rows.insert_all, [job], now)
    return job.id


async def let_happen(gateway: Gateway, events: int, job_ids: list[str]) -> bool:
    """Wait for so many things to happen to the jobs; whether all are done."""
    with gateway.database.signals.listen(ACCOUNT) as subscription:
        begun = await gateway.database.read(event_rows.last_position, ACCOUNT)
        while True:
            if all(job.done for job in await gateway.database.read(job_rows.get_several, job_ids)):
                return True
            if await gateway.database.read(event_rows.last_position, ACCOUNT) >= begun + events:
                return False
            await subscription.wait(0.5)


def die(data: Path) -> None:
    """Leave the store as a killed process does: its jobs still held in its name."""
    with closing(sqlite3.connect(data / "penstock.db")) as store, store:
        store.execute("UPDATE jobs SET owner = 'runner_dead' WHERE done = 0")


async def run_with_stops(settings: Settings, scripts: list[dict[str, Any]], chance: random.Random) -> list[Job]:
    """Accept a job for each script, then stop and open again until all are done."""
    gateway = await Gateway.open(settings)
    job_ids = [await submit(gateway, script) for script in scripts]
    for _ in range(300):
        done = await let_happen(gateway, chance.randrange(6), job_ids)
        if done:
            break
        await gateway.close()
        die(settings.data)
        gateway = await Gateway.open(settings)
    assert done
    finished = await gateway.database.read(job_rows.get_several, job_ids)
    for job in finished:
        told = (await gateway.news.of_job(job.id, 0)).events
        assert [event.sequence for event in told] == list(range(1, job.sequence + 1))
        assert sum(event.job.done for event in told) == 1
    await gateway.close()
    return finished


def end_of(job: Job) -> str:
    return job.state.value if job.error is None else job.error["code"]


@pytest.fixture
def data(tmp_path: Path, empty_store: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "penstock.db").write_bytes(empty_store.read_bytes())
    return folder


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.long
async def test_a_gateway_stopped_again_and_again_finishes_every_job_as_scripted(data, tmp_path, seed):
    settings = load(None, {}, {"data": data})
    chance = random.Random(seed)  # noqa: S311  where to stop
    finished = await run_with_stops(settings, [script for script, _ in SCRIPTS], chance)
    assert [end_of(job) for job in finished] == [expected for _, expected in SCRIPTS]
    ordered = sum(expected not in NEVER_ORDERED for _, expected in SCRIPTS)
    with closing(build_offers(settings, None).vendors["sim"].upstream) as books:
        assert books.counts() == {"orders": ordered, "jobs": ordered, "duplicates": 0}


async def test_the_same_across_a_network(data, tmp_path):
    async with double_of(tmp_path / "double") as double:
        config = tmp_path / "penstock.toml"
        config.write_text(
            f'[vendors.far]\ntype = "sim"\nbase_url = "{double.url}"\npoll_seconds = 0.02\nlookup_seconds = 0.1\n'
        )
        scripts = SCRIPTS[:6]
        chance = random.Random(7)  # noqa: S311
        finished = await run_with_stops(load(config, {}, {"data": data}), [script for script, _ in scripts], chance)
        assert [end_of(job) for job in finished] == [expected for _, expected in scripts]
        assert double.counts() == {"orders": len(scripts), "jobs": len(scripts), "duplicates": 0}


async def test_a_cancel_survives_the_stop(data):
    settings = load(None, {}, {"data": data})
    gateway = await Gateway.open(settings)
    job_id = await submit(gateway, {"latency": 60})
    with gateway.database.signals.listen(job_id) as subscription:
        job = None
        while job is None or job.attempt is None or job.attempt.operation is None:
            await subscription.wait(0.5)
            job = await gateway.database.read(job_rows.get, ACCOUNT, job_id)
    await gateway.database.write(
        job_rows.amend_own, ACCOUNT, job_id, lambda job: jobs.request_cancel(job, time.time()), 0
    )
    await gateway.close()
    die(data)
    gateway = await Gateway.open(settings)
    assert await let_happen(gateway, 1_000, [job_id])
    (job,) = await gateway.database.read(job_rows.get_several, [job_id])
    assert end_of(job) == "canceled"
    await gateway.close()


async def test_the_vendors_limit_holds_for_jobs_that_were_begun_but_not_ordered(data, tmp_path):
    config = tmp_path / "penstock.toml"
    config.write_text('[vendors.sim]\ntype = "sim"\nmax_concurrent = 1\n')
    settings = load(config, {}, {"data": data})
    database = open_database(settings.database_url)
    prepare(database.engine)
    now = time.time()
    begun = [make_job(params=PARAMS | {"script": {"latency": 0.3}}, start_by=now + 60) for _ in range(3)]
    await database.write(job_rows.insert_all, begun, now)
    for claim, _ in await database.write(open_job_rows.claim, "runner_dead", 3):
        await database.write(job_rows.amend, claim, lambda job: jobs.start(job, now), now)
    await database.close()
    gateway = await Gateway.open(settings)
    assert await let_happen(gateway, 1_000, [job.id for job in begun])
    await gateway.close()
    with closing(sqlite3.connect(data / "vendors" / "sim" / "simulator.db")) as books, books:
        moments = [row[0] for row in books.execute("SELECT accepted_at FROM orders ORDER BY accepted_at")]
    books.close()
    assert len(moments) == 3
    assert all(later - earlier > 0.3 for earlier, later in pairwise(moments))
