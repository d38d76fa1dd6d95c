"""Pipelines that reuse: a step whose results are kept has the earlier jobs; a whole pipeline may need no job at all."""

from typing import Any

import httpx
from conftest import Server
from flows import FOX, PICTURE, PRICED, finish, run, step, steps_of
from steps import count_jobs

from penstock.store.queries.billing.ledger_audit import check

EXACT = {**FOX, "reuse": "exact"}


async def done(client: httpx.AsyncClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = await client.post(
        "/api/v1/pipelines", json=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    assert answer.status_code in (200, 202), answer.text
    record = await finish(client, answer.json()["id"])
    assert record["status"] == "succeeded", record
    return record


def reused(record: dict[str, Any]) -> dict[str, bool]:
    return {name: each["is_reused"] for name, each in steps_of(record).items()}


def ids(record: dict[str, Any]) -> list[list[str]]:
    return [each["job_ids"] for each in record["steps"]]


async def test_a_whole_pipeline_is_reused_and_costs_nothing(start):
    server: Server = await start(PRICED)
    client = await server.sign_in(budgets={"total": "0.60"}, concurrent_jobs=3)
    first = await done(client, FOX)
    assert (first["cost"]["final"], set(reused(first).values())) == ("0.60", {False})
    answer = await client.post("/api/v1/pipelines", json=EXACT, headers={"idempotency-key": "a"})
    assert answer.status_code == 200, answer.text
    again = answer.json()
    assert (again["status"], again["done"], again["progress"], again["cost"]["final"]) == (
        "succeeded",
        True,
        1.0,
        "0.00",
    )
    assert (ids(again), set(reused(again).values())) == (ids(first), {True})
    replayed = await client.post("/api/v1/pipelines", json=EXACT, headers={"idempotency-key": "a"})
    assert (replayed.json()["id"], replayed.headers["idempotency-replayed"]) == (again["id"], "true")
    told = (await client.get(f"/api/v1/pipelines/{again['id']}/events")).text
    assert [line for line in told.splitlines() if line.startswith("event:")] == [
        "event: pipeline.queued",
        "event: pipeline.succeeded",
    ]
    assert await server.gateway.database.read(check) == []
    assert (await client.delete(f"/api/v1/pipelines/{again['id']}")).status_code == 204
    assert (await client.get(f"/api/v1/jobs/{ids(first)[0][0]}")).status_code == 200, "the jobs are another's"


async def test_what_follows_from_a_change_is_made_anew(server: Server):
    first = await done(server.client, FOX)
    slower = {**FOX["steps"][2], "params": {**FOX["steps"][2]["params"], "script": {"latency": 0.06}}}
    part = await done(server.client, {**EXACT, "steps": [*FOX["steps"][:2], slower]})
    assert reused(part) == {"picture": True, "model": True, "film": False}
    assert ids(part)[:2] == ids(first)[:2]
    assert steps_of(part)["film"]["jobs"][0]["parents"] == ids(first)[1]
    other = await done(server.client, {**EXACT, "params": {"prompt": "a blue fox"}})
    assert set(reused(other).values()) == {False}


async def test_the_default_of_a_key(server: Server):
    first = await done(server.client, FOX)
    client = await server.sign_in(reuse="exact")
    assert ids(await done(client, FOX)) == ids(first)
    assert set(reused(await done(client, {**FOX, "reuse": "off"})).values()) == {False}
    webhook = {"url": "https://example.com/hook", "events": ["job.succeeded"]}
    assert set(reused(await done(client, {**FOX, "webhook": webhook})).values()) == {False}


async def test_a_repeated_step_is_made_anew_whatever_the_key_says(server: Server):
    client = await server.sign_in(reuse="exact")
    first = await done(client, FOX)
    answer = await client.post(f"/api/v1/pipelines/{first['id']}/retry", json={"from": "model"})
    again = await finish(client, answer.json()["id"])
    assert reused(again) == {"picture": True, "model": False, "film": False}


async def test_equal_jobs_of_one_pipeline_are_never_one_result(server: Server):
    three = {"params": {}, "steps": [step("many", "sim_text_to_image", prompt="a fox") | {"for_each": [1, 2, 3]}]}
    await done(server.client, three)
    again = await done(server.client, {**three, "reuse": "exact"})
    assert len(set(ids(again)[0])) == 3
    before = await count_jobs(server)
    four = {"params": {}, "steps": [{**three["steps"][0], "for_each": [1, 2, 3, 4]}], "reuse": "exact"}
    assert reused(await done(server.client, four)) == {"many": False}
    assert await count_jobs(server) == before + 4
    twins = [{**PICTURE, "name": name} for name in ("one", "two")]
    both = {**EXACT, "steps": twins}
    await done(server.client, both)
    record = await done(server.client, both)
    assert len({job_id for job_ids in ids(record) for job_id in job_ids}) == 2


async def test_another_accounts_and_deleted_results_are_not_used(server: Server):
    first = await done(server.client, FOX)
    stranger = await server.sign_in("mill", reuse="exact")
    assert set(reused(await done(stranger, FOX)).values()) == {False}
    assert (await server.client.delete(f"/api/v1/jobs/{ids(first)[1][0]}")).status_code == 204
    again = await done(server.client, EXACT)
    assert reused(again) == {"picture": True, "model": False, "film": False}
    assert (await run(server.client, FOX))["id"] != again["id"]
