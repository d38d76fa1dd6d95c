"""Processes in trouble: started and stopped without a database, killed, frozen, and overtaken by a newer version."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from conftest import MODEL, Start, client_of
from crew import loop_time
from fault_machines import Machines, machines_on
from fault_steps import check_away, timed, until, until_answered, withhold
from fleet_machines import Machine
from postgres import PostgresServer
from steps import until as look_until

from penstock.jobs.quarantine import MAX_DEATHS

DEATHS = "SELECT deaths FROM jobs WHERE id = %s"
TAKEOVER_SECONDS = 30.0
"""What a busy machine may make of five."""


@pytest.fixture
async def machines(postgres_store_url: str, tmp_path: Path) -> AsyncGenerator[Machines]:
    async with machines_on(tmp_path, postgres_store_url) as machines:
        yield machines


async def until_listening(machine: Machine) -> httpx.AsyncClient:
    """A client, once somebody listens."""
    client = client_of(machine.url, None)
    async with asyncio.timeout(300):
        while True:
            try:
                assert (await client.get("/healthz")).status_code == 200
            except httpx.TransportError:
                await asyncio.sleep(0.05)
            else:
                return client


async def test_who_starts_without_a_database_waits_for_it(machines: Machines, postgres_server: PostgresServer):
    postgres_server.stop()
    try:
        both = [await machines.start(verb, wait=False) for verb in ("serve", "worker")]
        gateway, worker = [await until_listening(machine) for machine in both]
        for client in (gateway, worker):
            assert (await client.get("/healthz")).json() == {"status": "starting"}
            check_away(*await timed(client.get("/readyz")), most=1)
        for key in ("psk_never_seen", "nonsense"):
            headers = {"authorization": f"Bearer {key}"}
            check_away(*await timed(gateway.get("/api/v1/jobs", headers=headers)), most=1)
            check_away(*await timed(gateway.post("/llm/chat/completions", headers=headers, json={})), most=1)
    finally:
        postgres_server.start()
    begun = loop_time()
    for client in (gateway, worker):
        await until_answered(client, "/readyz", 200)
    assert loop_time() - begun < TAKEOVER_SECONDS
    assert (await gateway.get("/api/v1/jobs")).status_code == 401
    postgres_server.stop()
    try:
        ends = await asyncio.gather(*(machine.stop() for machine in both))
    finally:
        postgres_server.start()
    assert [code for code, _ in ends] == [0, 0], [machine.log.read_text()[-2000:] for machine in both]
    assert max(seconds for _, seconds in ends) < 50
    for client in (gateway, worker):
        await client.aclose()


# -- workers


async def owner_of(connection: "psycopg.AsyncConnection[Any]", job_id: str) -> str | None:
    """Which worker has the job, by the name of its machine."""
    found = await connection.execute(
        "SELECT workers.name FROM jobs JOIN workers ON workers.id = jobs.owner WHERE jobs.id = %s", (job_id,)
    )
    row = await found.fetchone()
    return row and row[0]


async def holder(machines: Machines, connection: "psycopg.AsyncConnection[Any]", job_id: str) -> Machine:
    """The worker that has the job."""
    async with asyncio.timeout(300):
        while True:
            name = await owner_of(connection, job_id)
            for machine in machines.machines:
                if machine.process is not None and machine.worker_name == name:
                    return machine
            await asyncio.sleep(0.02)


async def test_jobs_of_workers_that_die_or_freeze_are_finished_by_others(
    postgres_store_url: str, start: Start, machines: Machines
):
    """One is killed as for want of memory, one stands still for longer than its lease, one job kills all who try it."""
    for verb in ("worker", "worker"):
        await machines.start(verb)
    config = (machines.folder / "machines.toml").read_text()
    overrides = {"database_url": postgres_store_url, "jobs.run": "workers"}
    server = await start(config, overrides | {"assets_url": (machines.folder / "assets").as_uri()})
    async with await psycopg.AsyncConnection.connect(postgres_store_url, autocommit=True) as connection:
        killed = await server.submit(MODEL, script={"latency": 7})
        await until(lambda: machines.double.counts()["orders"] == 1)
        victim = await holder(machines, connection, killed["id"])
        await victim.kill()
        begun = loop_time()
        await holder(machines, connection, killed["id"])
        assert loop_time() - begun < TAKEOVER_SECONDS
        await victim.start()
        frozen = await server.submit(MODEL, script={"latency": 7})
        await until(lambda: machines.double.counts()["orders"] == 2)
        sleeper = await holder(machines, connection, frozen["id"])
        sleeper.send(signal.SIGSTOP)
        asyncio.get_running_loop().call_later(8, sleeper.send, signal.SIGCONT)
        for job in (killed, frozen):
            done = await server.finish(job["id"])
            assert (done["status"], len(done["attempts"]), done["charged"]) == ("succeeded", 1, True), done
        await poison(server, machines, connection)
    assert machines.double.counts() == {"orders": 3, "jobs": 3, "duplicates": 0}


async def poison(server: Any, machines: Machines, connection: "psycopg.AsyncConnection[Any]") -> None:
    """Many have died at work on it, and on no other suspect: as it is paid, it waits and is collected in the end."""
    await until(lambda: not any(machine.frozen for machine in machines.machines))
    machines.double.fault(withhold(), "GET", "/orders/", times=9999)
    job = await server.submit(MODEL, script={"latency": 0.1})
    await look_until(server.client, job["id"], phase="storing")
    words = "UPDATE jobs SET deaths = %s, at_risk = 2 WHERE id = %s"
    await connection.execute(words, (MAX_DEATHS - 1, job["id"]))
    victim = await holder(machines, connection, job["id"])
    await victim.kill()
    async with asyncio.timeout(300):
        while (await (await connection.execute(DEATHS, (job["id"],))).fetchone()) != (MAX_DEATHS,):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    successor = await holder(machines, connection, job["id"])
    waiting = (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (waiting["status"], waiting["phase"], waiting["error"]) == ("running", "storing", None)
    machines.double.faults.clear()
    await connection.execute("UPDATE jobs SET deaths = 0 WHERE id = %s", (job["id"],))
    await victim.start()
    await successor.kill()
    done = await server.finish(job["id"])
    assert (done["status"], done["charged"]) == ("succeeded", True), done


# -- upgrades

FUTURE = """
    ALTER TABLE jobs ADD COLUMN of_the_future TEXT;
    UPDATE alembic_version SET version_num = '0900';
    INSERT INTO schema_support SELECT '0900', version FROM schema_support ORDER BY version DESC LIMIT 1;
"""
FAR_FUTURE = """
    UPDATE alembic_version SET version_num = '0901';
    INSERT INTO schema_support VALUES ('0901', '0901');
"""


@pytest.mark.long
async def test_old_and_new_serve_side_by_side_until_the_schema_says_otherwise(
    postgres_store_url: str, start: Start, machines: Machines
):
    old = await machines.start("serve")
    config = (machines.folder / "machines.toml").read_text()
    server = await start(config, {"database_url": postgres_store_url})
    with psycopg.connect(postgres_store_url, autocommit=True) as connection:
        before = await server.submit(MODEL, script={"latency": 3})
        connection.execute(FUTURE)
        assert (await server.generate(MODEL, script={}))["status"] == "succeeded"
        assert await old.stop()
        await old.start()
        async with client_of(old.url, await server.new_key()) as client:
            assert (await client.get("/api/v1/jobs")).status_code == 200
            connection.execute(FAR_FUTURE)
            begun = loop_time()
            for each in (server.client, client):
                ready = await until_answered(each, "/readyz", 503, seconds=300)
                assert ready.json()["checks"]["store"] == "is of a newer version"
                check_away(*await timed(each.get("/api/v1/jobs")), most=1)
            assert loop_time() - begun < 30
            new = await machines.start("serve", wait=False)
            assert new.process is not None
            assert await asyncio.wait_for(new.process.wait(), 300) != 0
            assert "knows" in new.log.read_text()
            connection.execute("UPDATE alembic_version SET version_num = '0900'")
            for each in (server.client, client):
                await until_answered(each, "/api/v1/jobs", 200, seconds=300)
    assert (await server.finish(before["id"]))["status"] == "succeeded"
    assert machines.double.counts() == {"orders": 2, "jobs": 2, "duplicates": 0}
