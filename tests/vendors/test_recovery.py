"""A gateway that is stopped at any point and opened again: each job ends as its script says, and is ordered once."""

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from vendors.double import Double, double_of

from penstock.gateway import Gateway
from penstock.intake import Receipt, Submission
from penstock.jobs import Job
from penstock.keys import ApiKey
from penstock.settings import Settings, load
from penstock.store import event_rows, job_rows

KEY = ApiKey(public_id="key", account_id="acct_one", account="mill", name="test", secret_hash=b"")

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


async def submit(gateway: Gateway, script: dict[str, Any]) -> Job:
    body = {"model": "sim_text_to_video", "input": [{"params": {"script": {"latency": 0.1, **script}}}]}
    receipt = await gateway.intake.accept(Submission(body=body, path_model=None, key=KEY, request_id="req_1"))
    assert isinstance(receipt, Receipt)
    return receipt.jobs[0]


async def let_happen(gateway: Gateway, events: int, job_ids: list[str]) -> bool:
    """Wait for so many things to happen to the jobs; whether all are done."""
    with gateway.database.bell.listen(KEY.account_id) as ear:
        begun = await gateway.database.read(event_rows.last_position, KEY.account_id)
        while True:
            jobs = await gateway.database.read(job_rows.get_several, job_ids)
            if all(job.done for job in jobs):
                return True
            if await gateway.database.read(event_rows.last_position, KEY.account_id) >= begun + events:
                return False
            await ear.wait(0.5)


def die(data: Path) -> None:
    """Leave the store as a killed process does: its jobs still held in its name."""
    with sqlite3.connect(data / "penstock.db") as store:
        store.execute("UPDATE jobs SET owner = 'runner_dead' WHERE done = 0")
    store.close()


async def run_with_stops(settings: Settings, scripts: list[dict[str, Any]], chance: random.Random) -> list[Job]:
    """Accept a job for each script, then stop and open again until all are done."""
    gateway = await Gateway.open(settings)
    job_ids = [(await submit(gateway, script)).id for script in scripts]
    for _ in range(300):
        done = await let_happen(gateway, chance.randrange(6), job_ids)
        if done:
            break
        await gateway.close()
        die(settings.data)
        gateway = await Gateway.open(settings)
    assert done
    jobs = await gateway.database.read(job_rows.get_several, job_ids)
    for job in jobs:
        told = await gateway.database.read(event_rows.of_job, job.id, 0)
        assert [event.sequence for event in told] == list(range(1, job.sequence + 1))
        assert sum(event.job.done for event in told) == 1
    await gateway.close()
    return jobs


def end_of(job: Job) -> str:
    return job.state.value if job.error is None else job.error["code"]


@pytest.fixture
def data(tmp_path: Path, empty_store: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "penstock.db").write_bytes(empty_store.read_bytes())
    return folder


@pytest.mark.parametrize("seed", range(3))
async def test_a_gateway_stopped_again_and_again_finishes_every_job_as_scripted(data, tmp_path, seed):
    settings = load(None, {}, {"data": data})
    chance = random.Random(seed)  # noqa: S311  where to stop
    jobs = await run_with_stops(settings, [script for script, _ in SCRIPTS], chance)
    assert [end_of(job) for job in jobs] == [expected for _, expected in SCRIPTS]
    vendor = (await Gateway.open(settings)).offers.vendors["sim"]
    ordered = sum(expected not in NEVER_ORDERED for _, expected in SCRIPTS)
    assert vendor.upstream.counts() == {"orders": ordered, "jobs": ordered, "duplicates": 0}


async def test_the_same_across_a_network(data, tmp_path):
    async with double_of(tmp_path / "double") as double:
        config = tmp_path / "penstock.toml"
        config.write_text(
            f'[vendors.far]\ntype = "sim"\nbase_url = "{double.url}"\npoll_seconds = 0.02\nlookup_seconds = 0.1\n'
        )
        scripts = SCRIPTS[:6]
        chance = random.Random(7)  # noqa: S311
        jobs = await run_with_stops(load(config, {}, {"data": data}), [script for script, _ in scripts], chance)
        assert [end_of(job) for job in jobs] == [expected for _, expected in scripts]
        assert double.counts() == {"orders": len(scripts), "jobs": len(scripts), "duplicates": 0}


async def test_a_cancel_survives_the_stop(data):
    settings = load(None, {}, {"data": data})
    gateway = await Gateway.open(settings)
    job = await submit(gateway, {"latency": 60})
    await let_happen(gateway, 3, [job.id])
    await gateway.close()
    gateway = await Gateway.open(settings)
    from penstock import jobs  # noqa: PLC0415

    await gateway.database.write(
        job_rows.amend_own, KEY.account_id, job.id, lambda found: jobs.request_cancel(found, gateway.clock()), 0.0
    )
    await gateway.close()
    die(data)
    gateway = await Gateway.open(settings)
    assert await let_happen(gateway, 1_000, [job.id])
    (job,) = await gateway.database.read(job_rows.get_several, [job.id])
    assert end_of(job) == "canceled"
    await gateway.close()
