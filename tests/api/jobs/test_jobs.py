"""Jobs over HTTP: looked at, waited for, listed and canceled."""

import asyncio
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from conftest import MODEL, VIDEO
from steps import FAILS, FIELDS, NEVER, ONE_SEAT, cancel, look, order, until


def moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


# -- one job


async def test_a_record_has_every_field_from_open_to_done(server):
    job = await order(server.client, {"latency": 3600, "progress": False, **FAILS})
    await until(server.client, job["id"], phase="generating")
    open_answer = await server.client.get(f"/api/v1/jobs/{job['id']}")
    server.age_orders()
    opened, done = open_answer.json(), await server.finish(job["id"])
    assert set(job) == set(opened) == set(done) == FIELDS
    assert not opened["done"]
    assert 500 <= opened["poll_after_ms"] <= 5000
    assert int(open_answer.headers["retry-after"]) >= 1
    assert opened["charged"] is opened["finished_at"] is opened["expires_at"] is None
    assert done["status"] == "failed"
    assert done["poll_after_ms"] is done["eta_seconds"] is done["queue_position"] is None
    assert moment(done["created_at"]) <= moment(done["started_at"]) <= moment(done["finished_at"])
    assert moment(done["expires_at"]) - moment(done["finished_at"]) == timedelta(days=7)
    assert done["urls"]["self"] == f"{server.url}/api/v1/jobs/{job['id']}"
    closed_answer = await server.client.get(done["urls"]["self"])
    assert closed_answer.json() == done
    assert "retry-after" not in closed_answer.headers
    assert closed_answer.headers["cache-control"].startswith("private")


async def test_both_paths_tell_the_same(server):
    job = await server.finish((await order(server.client, FAILS, client_ref="a"))["id"])
    assert (await server.client.get(f"/model/v1/generation/{job['id']}")).json() == job
    held = await server.client.get(f"/model/v1/generation/{job['id']}", params={"wait": 5})
    assert held.json() == job
    canceled = await server.client.post(f"/model/v1/generation/{job['id']}/cancel")
    assert canceled.json() == job


async def test_nobody_else_sees_a_job(server):
    job = await order(server.client, NEVER)
    other = await server.sign_in("other")
    for client, job_id in ((other, job["id"]), (server.client, "job_00000000000000000000000000")):
        answers = [
            await client.get(f"/api/v1/jobs/{job_id}"),
            await client.get(f"/model/v1/generation/{job_id}"),
            await client.get(f"/api/v1/jobs/{job_id}", params={"wait": 5}),
            await client.get(f"/api/v1/jobs/{job_id}/events"),
            await client.post(f"/api/v1/jobs/{job_id}/cancel"),
            await client.post(f"/model/v1/generation/{job_id}/cancel"),
            await client.delete(f"/api/v1/jobs/{job_id}"),
        ]
        assert [(answer.status_code, answer.json()["error"]["code"]) for answer in answers] == [
            (404, "job_not_found")
        ] * len(answers)
    assert (await other.get("/api/v1/jobs")).json()["data"] == []
    assert (await look(server.client, job["id"]))["status"] != "canceling"


async def test_a_key_that_may_only_read_cannot_cancel_or_delete(server):
    job = await order(server.client, NEVER)
    reader = await server.sign_in(scopes=frozenset({"read"}))
    assert (await reader.get(f"/api/v1/jobs/{job['id']}")).status_code == 200
    for answer in (
        await reader.post(f"/api/v1/jobs/{job['id']}/cancel"),
        await reader.delete(f"/api/v1/jobs/{job['id']}"),
    ):
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "scope_not_allowed"


async def test_wait_holds_until_done_and_no_longer(server):
    slow, stuck = await order(server.client, {"latency": 0.5, **FAILS}), await order(server.client, NEVER)
    now = asyncio.get_running_loop().time  # it hardly runs while the machine is held up
    for _ in range(2):
        begun = now()
        assert (await look(server.client, slow["id"], wait=60))["status"] == "failed"
        assert now() - begun < 40
    begun = now()
    assert not (await look(server.client, stuck["id"], wait=1))["done"]
    assert 0.95 <= now() - begun < 40
    for wrong in ("0", "61", "-1", "1.5", "abc", "", "\u0661"):
        answer = await server.client.get(f"/api/v1/jobs/{stuck['id']}", params={"wait": wrong})
        assert answer.status_code == 400, wrong
        assert answer.json()["error"]["param"] == "wait"


async def test_a_drain_lets_go_of_who_waits(server):
    job = await order(server.client, NEVER)
    waiting = asyncio.create_task(look(server.client, job["id"], wait=60))
    await until(server.client, job["id"], phase="generating")
    server.gateway.drain()
    assert not (await asyncio.wait_for(waiting, 40))["done"]


async def test_an_unchanged_record_is_not_sent_again(server):
    job = await order(server.client, {"progress": False, **NEVER})
    path = f"/api/v1/jobs/{job['id']}"
    await until(server.client, job["id"], phase="generating")
    tag = (await server.client.get(path)).headers["etag"]
    strong = tag.removeprefix("W/")
    for known in (tag, strong, f'"other", {tag}', "*"):
        same = await server.client.get(path, headers={"if-none-match": known})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag), known
        assert int(same.headers["retry-after"]) >= 1
    await server.client.post(f"{path}/cancel")
    await server.finish(job["id"])
    changed = await server.client.get(path, headers={"if-none-match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_a_move_in_the_queue_is_a_change(start):
    server = await start(ONE_SEAT)
    await order(server.client, NEVER)
    first, second = await order(server.client, NEVER), await order(server.client, NEVER)
    await until(server.client, second["id"], queue_position=1)
    tag = (await server.client.get(f"/api/v1/jobs/{second['id']}")).headers["etag"]
    await server.client.post(f"/api/v1/jobs/{first['id']}/cancel")
    await server.finish(first["id"])
    moved = await server.client.get(f"/api/v1/jobs/{second['id']}", headers={"if-none-match": tag})
    assert moved.status_code == 200
    assert moved.json()["queue_position"] == 0


async def test_a_cached_record_never_keeps_links_that_are_over(start):
    server = await start(overrides={"jobs.link_seconds": 2})
    path = f"/api/v1/jobs/{(await server.generate(MODEL, script={}))['id']}"
    first = await server.client.get(path)
    async with asyncio.timeout(60):
        while True:
            asked = time.monotonic()
            again = await server.client.get(path, headers={"if-none-match": first.headers["etag"]})
            if again.status_code == 200:
                break
            link = await server.client.head(first.json()["outputs"][0]["url"], headers={"authorization": ""})
            assert link.status_code == 200 or time.monotonic() - asked > 0.5  # a busy machine: it was over meanwhile
            await asyncio.sleep(0.05)


# -- the list


async def test_paging_shows_each_job_once_while_new_ones_arrive(start):
    server = await start(ONE_SEAT)
    wanted = []
    for _ in range(8):
        wanted += [job["id"] for job in (await order(server.client, *[NEVER] * 16))["jobs"]]
    found, cursor = [], None
    while True:
        query = {"limit": 17} | ({"cursor": cursor} if cursor else {})
        page = (await server.client.get("/api/v1/jobs", params=query)).json()
        assert len(page["data"]) == 17 or not page["has_more"]
        found += [job["id"] for job in page["data"]]
        cursor = page["next_cursor"]
        assert (cursor is not None) == page["has_more"]
        if cursor is None:
            break
        await order(server.client, NEVER)
    assert len(wanted) == 128
    assert found == wanted[::-1]
    default = (await server.client.get("/api/v1/jobs")).json()["data"]
    assert len(default) == 20
    assert len((await server.client.get("/api/v1/jobs", params={"limit": 100})).json()["data"]) == 100


async def ids(client: httpx.AsyncClient, **query: Any) -> list[str]:
    response = await client.get("/api/v1/jobs", params=query)
    assert response.status_code == 200, response.text
    return [job["id"] for job in response.json()["data"]]


async def test_filters_narrow_the_list_alone_and_together(server):
    client = server.client
    failed = await server.finish((await order(client, FAILS, client_ref="a"))["id"])
    stuck = await order(client, NEVER, client_ref="a")
    video = await order(client, NEVER, model=VIDEO, client_ref="ä &=%")
    batch = await order(client, NEVER, NEVER)
    members = [job["id"] for job in batch["jobs"]][::-1]
    for job_id in (stuck["id"], video["id"], *members):
        await until(client, job_id, status="running")
    assert await ids(client) == [*members, video["id"], stuck["id"], failed["id"]]
    assert await ids(client, status="failed") == [failed["id"]]
    assert await ids(client, status="running") == [*members, video["id"], stuck["id"]]
    assert await ids(client, status="expired") == []
    assert await ids(client, model=VIDEO) == [video["id"]]
    assert await ids(client, client_ref="a") == [stuck["id"], failed["id"]]
    assert await ids(client, client_ref="ä &=%") == [video["id"]]
    assert await ids(client, batch=batch["id"]) == members
    assert await ids(client, client_ref="a", status="running", model=MODEL) == [stuck["id"]]
    assert await ids(client, client_ref="a", batch=batch["id"]) == []
    assert await ids(client, client_ref="a", limit=1) == [stuck["id"]]
    other = await server.sign_in("other")
    assert await ids(other, status="running") == await ids(other, batch=batch["id"]) == []


async def test_times_narrow_the_list(server):
    first = await order(server.client, NEVER)
    between = datetime.now(UTC)
    second = await order(server.client, NEVER)
    for text in (
        between.isoformat(),
        between.isoformat().replace("+00:00", "Z"),
        between.astimezone(timezone(timedelta(hours=-7, minutes=-30))).isoformat(),
        between.isoformat().replace("T", "t").replace("+00:00", "z"),
    ):
        assert await ids(server.client, created_after=text) == [second["id"]], text
        assert await ids(server.client, created_before=text) == [first["id"]], text
        assert await ids(server.client, created_after=text, created_before=text) == []
    assert len(await ids(server.client, created_after="0001-01-01T00:00:00Z")) == 2
    assert len(await ids(server.client, created_before="9999-12-31T23:59:59Z")) == 2
    assert len(await ids(server.client, created_before=second["created_at"])) == 1


@pytest.mark.parametrize("name", ["created_after", "created_before"])
async def test_times_without_a_zone_are_refused(server, name):
    wrong = (
        *("yesterday", "2026-01-01", "2026-01-01T00:00:00", "1767225600", "1767225600.5", "", "2026-13-01T00:00:00Z"),
        *("2026-01-01T25:00:00Z", "2026-01-01T00:00:00 02:00", "2026-W01-1T00:00:00Z", "T00:00:00Z", "9" * 300),
    )
    for text in wrong:
        answer = await server.client.get("/api/v1/jobs", params={name: text})
        assert answer.status_code == 400, text
        assert answer.json()["error"]["param"] == name


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("limit", ["0", "101", "-1", "ten", "", "1.5"]),
        ("status", ["done", "RUNNING", ""]),
        ("cursor", ["garbage", "", "é", "am9i", "%00", "=", "x" * 200, "Zm9vXzEyMw"]),
        ("model", ["m" * 201]),
        ("client_ref", ["c" * 129]),
    ],
)
async def test_what_the_list_cannot_read_is_named(server, name, values):
    for value in values:
        answer = await server.client.get("/api/v1/jobs", params={name: value})
        assert answer.status_code == 400, value
        assert answer.json()["error"]["param"] == name


# -- cancel


async def test_a_waiting_job_tells_its_place_and_is_canceled_unpaid(start):
    server = await start(ONE_SEAT)
    blocker = await order(server.client, NEVER)
    await until(server.client, blocker["id"], phase="generating")
    first, second = await order(server.client, FAILS), await order(server.client, FAILS)
    assert (await until(server.client, first["id"], queue_position=0))["phase"] == "throttled"
    assert (await until(server.client, second["id"], queue_position=1))["phase"] == "throttled"
    assert (await cancel(server.client, first["id"]))["status"] in ("canceling", "canceled")
    done = await server.finish(first["id"])
    assert (done["status"], done["phase"], done["queue_position"]) == ("canceled", "done", None)
    assert (done["attempts"], done["outputs"], done["error"], done["charged"]) == ([], [], None, False)
    assert done["started_at"] is None
    assert (await look(server.client, second["id"]))["queue_position"] == 0
    await cancel(server.client, blocker["id"])
    assert (await server.finish(second["id"]))["status"] == "failed"
    assert server.gateway.offers.vendors["sim"].upstream.counts() == {"orders": 2, "jobs": 2, "duplicates": 0}


async def test_a_running_job_that_would_never_end_is_canceled(server):
    job = await order(server.client, NEVER)
    running = await until(server.client, job["id"], phase="generating")
    assert (await cancel(server.client, job["id"]))["status"] in ("canceling", "canceled")
    done = await server.finish(job["id"])
    assert (done["status"], done["attempts"][0]["outcome"]) == ("canceled", "canceled")
    assert (done["cost"]["final"], done["charged"], done["error"]) == ("0.00", False, None)
    assert done["attempts"][0]["upstream_id"] == running["attempts"][0]["upstream_id"]


@pytest.mark.parametrize("submission", ["busy", "never_arrived", "unreachable"])
async def test_a_job_whose_order_is_not_accepted_yet_is_canceled(server, submission):
    job = await order(server.client, {"submission": submission, "submission_times": 1000})
    await until(server.client, job["id"], status="running")
    await cancel(server.client, job["id"])
    assert (await server.finish(job["id"]))["status"] == "canceled"
    assert server.gateway.offers.vendors["sim"].upstream.counts()["orders"] == 0


async def test_canceling_twice_or_too_late_changes_nothing(server):
    job = await order(server.client, NEVER)
    await until(server.client, job["id"], phase="generating")
    answers = await asyncio.gather(*(cancel(server.client, job["id"]) for _ in range(5)))
    assert {answer["status"] for answer in answers} <= {"canceling", "canceled"}
    done = await server.finish(job["id"])
    assert await cancel(server.client, job["id"]) == done
    events = (await server.client.get("/api/v1/events")).json()["data"]
    assert sum(event["data"]["status"] == "canceled" for event in events) == 1
    canceling = sum(event["data"]["status"] == "canceling" for event in events)
    assert 1 <= canceling < len(answers)  # the first request writes one; a poll under way may report progress after it
    failed = await server.finish((await order(server.client, FAILS))["id"])
    assert await cancel(server.client, failed["id"]) == failed


async def test_a_vendor_that_cannot_stop_goes_on_and_its_result_is_kept(server):
    job = await order(server.client, {"cancelable": False, "latency": 3600, "progress": False})
    await until(server.client, job["id"], phase="generating")
    await cancel(server.client, job["id"])
    server.age_orders()
    done = await server.finish(job["id"])
    assert (done["status"], done["attempts"][0]["outcome"]) == ("succeeded", "succeeded")
    assert any("cannot stop" in warning for warning in done["warnings"])
    assert done["outputs"]
