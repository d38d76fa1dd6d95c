"""Pipelines on SQLite and on PostgreSQL: money, removed parents, retries, and what goes on by itself."""

import asyncio
from typing import Any

import httpx
import pytest
from conftest import Server, Start
from flows import FAST, FILM, FOX, MODEL, PICTURE, PRICED, finish, run, scripted, step, steps_of
from sqlalchemy import text
from steps import refused, until
from test_retention import on_disk

from penstock.domain.jobs import Outcome, fail
from penstock.store.database import Connection
from penstock.store.queries.billing import ledger_audit
from penstock.store.queries.jobs import change_rows, job_rows

JOIN = step("join", "sim_text_to_image", prompt="both", references=[{"step": "picture"}, {"step": "slow"}], **FAST)
SLOW = step("slow", "sim_text_to_image", prompt="x", script={"latency": 3600, "progress": False})
LATE = "UPDATE pipelines SET advanced_at = 0"


@pytest.fixture
async def server(store_url: str, start: Start) -> Server:
    """A gateway whose models have prices, on a store of either kind that outlives it."""
    server = await start(PRICED, {"database_url": store_url})
    server.gateway.upkeep.sweeps = False  # what is removed here, the test removes
    return server


async def ask(server: Server, query: str) -> list[tuple[Any, ...]]:
    """Return what the store has."""
    return await server.gateway.database.read(lambda connection: [*map(tuple, connection.execute(text(query)))])


async def assert_books(server: Server) -> None:
    """The ledger is right, nothing is held, and no event is missing."""
    assert await server.gateway.database.read(ledger_audit.check) == []
    assert all(held == 0 for (held,) in await ask(server, "SELECT held FROM purses"))
    assert await ask(server, "SELECT child_id FROM lineage WHERE is_open = 1") == []
    subjects: dict[str, list[int]] = {}
    for subject, sequence in await ask(server, "SELECT job_id, sequence FROM events ORDER BY position"):
        subjects.setdefault(subject, []).append(sequence)
    notices = [subject for subject in subjects if subject.startswith("notice")]
    assert all(found == [*range(1, len(found) + 1)] for name, found in subjects.items() if name not in notices)


async def job_at(server: Server, record: dict[str, Any], name: str) -> dict[str, Any]:
    return await server.finish(steps_of(record)[name]["job_ids"][0])


class TestMoney:
    async def test_a_whole_run_is_charged_once_and_the_books_are_right(self, server: Server) -> None:
        client = await server.sign_in("payer", budgets={"total": "0.60"})
        record = await finish(client, (await run(client, FOX))["id"])
        assert (record["status"], record["cost"]["final"]) == ("succeeded", "0.60")
        usage = (await client.get("/api/v1/usage")).json()
        assert usage["total"]["cost"] == "0.60"
        await assert_books(server)

    @pytest.mark.parametrize(
        ("limits", "status", "code"),
        [({"budgets": {"total": "0.59"}}, 402, "insufficient_budget"), ({"concurrent_jobs": 2}, 429, None)],
    )
    async def test_what_does_not_fit_is_refused_as_a_whole(
        self, server: Server, limits: dict[str, Any], status: int, code: str | None
    ) -> None:
        client = await server.sign_in("poor", **limits)
        refused(await client.post("/api/v1/pipelines", json=FOX), status, code or "concurrency_limited")
        for table in ("jobs", "pipelines", "lineage", "holds", "ledger", "requests"):
            assert await ask(server, f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608
        less = {**FOX, "steps": [PICTURE, MODEL]}
        assert (await finish(client, (await run(client, less))["id"]))["status"] == "succeeded"
        await assert_books(server)

    async def test_a_failure_in_the_middle_releases_the_rest(self, server: Server) -> None:
        client = await server.sign_in("payer", budgets={"total": "1"})
        steps = [PICTURE, scripted(MODEL, ending="failed"), FILM]
        record = await finish(client, (await run(client, {**FOX, "steps": steps}))["id"])
        assert (record["status"], record["cost"]["final"]) == ("failed", "0.10")
        await assert_books(server)

    async def test_a_cancel_in_the_middle_releases_the_rest(self, server: Server) -> None:
        client = await server.sign_in("payer", budgets={"total": "1"})
        record = await run(client, {**FOX, "steps": [PICTURE, SLOW, JOIN]})
        picture = (await client.get(f"/api/v1/jobs/{record['steps'][0]['job_ids'][0]}", params={"wait": 60})).json()
        assert picture["status"] == "succeeded"
        await client.post(f"/api/v1/pipelines/{record['id']}/cancel")
        ended = await finish(client, record["id"])
        assert (ended["status"], ended["cost"]["final"]) == ("canceled", "0.10")
        assert [each["status"] for each in ended["steps"]] == ["succeeded", "canceled", "canceled"]
        await assert_books(server)


class TestRemovedParents:
    async def test_the_bytes_of_a_deleted_parent_stay_until_its_child_is_done(self, server: Server) -> None:
        record = await run(server.client, {**FOX, "steps": [PICTURE, SLOW, JOIN]})
        picture = await job_at(server, record, "picture")
        assert (await server.client.delete(f"/api/v1/jobs/{picture['id']}")).status_code == 204
        await server.gateway.upkeep.sweep()
        assert any(picture["id"] in path for path in on_disk(server))
        await job_started(server, record, "slow")
        server.age_orders(7200)
        ended = await finish(server.client, record["id"])
        assert (ended["status"], ended["cost"]["final"]) == ("succeeded", "0.30")
        assert ended["steps"][0]["status"] == "succeeded"
        join = steps_of(ended)["join"]["jobs"][0]
        assert join["input"]["references"][0]["sha256"] == picture["outputs"][0]["sha256"]
        await server.gateway.upkeep.sweep()
        assert not any(picture["id"] in path for path in on_disk(server))
        await assert_books(server)

    async def test_an_expired_parent_stays_until_its_child_is_done(self, server: Server) -> None:
        record = await run(server.client, {**FOX, "steps": [PICTURE, SLOW, JOIN], "retention": 0.001})
        picture_id = steps_of(record)["picture"]["job_ids"][0]
        await gone(server, f"SELECT id FROM jobs WHERE done = 0 AND id = '{picture_id}'")  # noqa: S608
        await server.gateway.upkeep.sweep()
        assert any(picture_id in path for path in on_disk(server))
        await job_started(server, record, "slow")
        server.age_orders(7200)
        await gone(server, "SELECT id FROM pipelines WHERE done = 0")
        for _ in range(2):
            await server.gateway.upkeep.sweep()
        assert on_disk(server) == []
        refused(await server.client.get(f"/api/v1/pipelines/{record['id']}"), 410, "job_expired")
        assert await ask(server, "SELECT document FROM pipelines WHERE removed IS NULL") == []

    async def test_a_deleted_job_is_refused_as_an_input(self, server: Server) -> None:
        picture = await server.generate("sim_text_to_image", prompt="x")
        await server.client.delete(f"/api/v1/jobs/{picture['id']}")
        steps = [step("model", "sim_image_to_model", file={"job": picture["id"]})]
        error = refused(await server.client.post("/api/v1/pipelines", json={"steps": steps}), 400, "job_deleted")
        assert error["param"] == "steps.0.params.file.job"
        assert "Step `model`" in error["message"]


async def job_started(server: Server, record: dict[str, Any], name: str) -> None:
    """Wait until the vendor has the order."""
    await until(server.client, steps_of(record)[name]["job_ids"][0], phase="generating")


async def gone(server: Server, query: str) -> None:
    """Wait until the store has no such row."""
    while await ask(server, query):  # noqa: ASYNC110  rows ring no bell
        await asyncio.sleep(0.02)


class TestRetries:
    async def test_outputs_are_used_again_without_a_copy_or_a_charge(self, server: Server) -> None:
        client = await server.sign_in("payer", budgets={"total": "2"})
        steps = [PICTURE, {**MODEL, "params": {"file": {"step": "picture"}, "script": {"param": "script"}}}]
        body = {"params": {"prompt": "fox", "script": {"latency": 0.05, "ending": "failed"}}, "steps": steps}
        failed = await finish(client, (await run(client, body))["id"])
        kept = on_disk(server)
        response = await client.post(
            f"/api/v1/pipelines/{failed['id']}/retry", json={"params": {"script": {"latency": 0.05}}}
        )
        ended = await finish(client, response.json()["id"])
        assert (ended["status"], ended["cost"]["estimated"], ended["cost"]["final"]) == ("succeeded", "0.20", "0.20")
        model = steps_of(ended)["model"]["jobs"][0]
        assert set(on_disk(server)) - set(kept) == set(paths_of(model))
        assert (await client.get("/api/v1/usage")).json()["total"]["cost"] == "0.30"
        await assert_books(server)

    async def test_jobs_are_listed_by_pipeline_with_those_used_again(self, server: Server) -> None:
        client, other = server.client, await server.sign_in("other")
        failed = await finish(
            client, (await run(client, {**FOX, "steps": [PICTURE, scripted(MODEL, ending="failed")]}))["id"]
        )
        again = await finish(
            client, (await client.post(f"/api/v1/pipelines/{failed['id']}/retry", json={})).json()["id"]
        )
        picture, model = (each["job_ids"][0] for each in failed["steps"])
        repeated = steps_of(again)["model"]["job_ids"][0]

        async def listed(client: httpx.AsyncClient = client, **query: Any) -> list[str]:
            answer = await client.get("/api/v1/jobs", params=query)
            assert answer.status_code == 200, answer.text
            return [job["id"] for job in answer.json()["data"]]

        assert await listed(pipeline=failed["id"]) == sorted((model, picture), reverse=True)
        assert await listed(pipeline=again["id"]) == sorted((repeated, picture), reverse=True)
        assert await listed(pipeline=again["id"], limit=1) == [max(repeated, picture)]
        assert await listed(pipeline=failed["id"], status="failed") == [model]
        assert await listed(pipeline=again["id"], model="sim_text_to_image", q="fox") == [picture]
        assert await listed(pipeline="pipe_none") == await listed(other, pipeline=failed["id"]) == []

    async def test_a_retry_keeps_timeouts_and_reports_what_is_deleted(self, server: Server) -> None:
        steps = [PICTURE, scripted(MODEL, ending="failed")]
        body = {**FOX, "steps": steps, "run_timeout": 77, "start_timeout": 66, "metadata": {"a": "b"}}
        failed = await finish(server.client, (await run(server.client, body))["id"])
        await server.client.delete(f"/api/v1/jobs/{steps_of(failed)['picture']['job_ids'][0]}")
        again = (await server.client.post(f"/api/v1/pipelines/{failed['id']}/retry", json={})).json()
        assert again["metadata"] == {"a": "b"}
        assert steps_of(again)["picture"]["job_ids"] != steps_of(failed)["picture"]["job_ids"]
        jobs = await server.gateway.database.read(job_rows.get_several, [each["job_ids"][0] for each in again["steps"]])
        assert [job.run_seconds for job in jobs] == [77, 77]
        await finish(server.client, again["id"])


def paths_of(job: dict[str, Any]) -> list[str]:
    """Return where the outputs of a job lie."""
    names = [output["url"].partition("?")[0].rpartition("/")[2] for output in job["outputs"]]
    return [
        f"assets/{job['id']}/{each['sha256'][:16]}-{name}" for each, name in zip(job["outputs"], names, strict=True)
    ]


class TestByItself:
    async def test_a_job_that_expires_fails_what_needs_it(self, server: Server) -> None:
        client = await server.sign_in("payer", budgets={"total": "1"})
        slow = step("slow", "sim_text_to_image", prompt="x", script={"ending": "never"})
        late = step("late", "sim_text_to_image", prompt="x", references={"step": "slow"}, **FAST)
        record = await finish(client, (await run(client, {"steps": [slow, late], "run_timeout": 0.3}))["id"])
        jobs = {name: each["jobs"][0] for name, each in steps_of(record).items()}
        assert (jobs["slow"]["status"], jobs["late"]["error"]["code"]) == ("expired", "parent_failed")
        assert (record["status"], record["error"]["steps"], record["cost"]["final"]) == ("failed", ["slow"], "0.00")
        await assert_books(server)

    async def test_a_start_timeout_begins_when_the_inputs_are_there(self, server: Server) -> None:
        late = step("late", "sim_text_to_image", prompt="x", references={"step": "slow"}, **FAST)
        record = await run(server.client, {"steps": [SLOW, late], "start_timeout": 500})
        await job_started(server, record, "slow")
        job_id = steps_of(record)["late"]["job_ids"][0]
        begun = server.gateway.clock()
        waiting = await ask(server, f"SELECT start_by FROM jobs WHERE id = '{job_id}'")  # noqa: S608
        assert waiting[0][0] > begun + 86_400 * 365
        server.age_orders(7200)
        await finish(server.client, record["id"])
        (found,) = await ask(server, f"SELECT start_by FROM jobs WHERE id = '{job_id}'")  # noqa: S608
        assert begun + 500 <= found[0] <= server.gateway.clock() + 500

    async def test_only_outputs_are_stored(self, server: Server) -> None:
        record = await finish(server.client, (await run(server.client, FOX))["id"])
        outputs = [path for each in record["steps"] for path in paths_of(each["jobs"][0])]
        assert on_disk(server) == sorted(outputs)
        assert await ask(server, "SELECT count(*) FROM files") == [(0,)]

    async def test_a_sweep_goes_on_where_older_code_ended_a_job(self, server: Server) -> None:
        late = step("late", "sim_text_to_image", prompt="x", references={"step": "slow"}, **FAST)
        record = await run(server.client, {"steps": [SLOW, late]})
        await job_started(server, record, "slow")
        job_id = steps_of(record)["slow"]["job_ids"][0]

        def end(connection: Connection) -> None:
            job = job_rows.find(connection, job_id)
            assert job is not None
            connection.execute(text("UPDATE jobs SET owner = NULL, epoch = epoch + 1 WHERE id = :id"), {"id": job_id})
            now = job.created_at + 1
            failed = fail(job, now, {"code": "run_timeout"}, Outcome.ABANDONED)
            change_rows.close(connection, [change_rows.write(connection, job, failed, now)], now)
            connection.execute(text(LATE))

        await server.gateway.database.write(end)
        await server.gateway.upkeep.sweep()
        ended = await finish(server.client, record["id"])
        assert [each["status"] for each in ended["steps"]] == ["failed", "failed"]
        await assert_books(server)
