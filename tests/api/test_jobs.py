"""Jobs over HTTP: looked at, waited for, listed, canceled, timed out, and ended as each script says."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from aiohttp import web
from conftest import MODEL, VIDEO

NEVER = {"ending": "never"}
FAILS = {"ending": "failed"}
ONE_SEAT = '[vendors.sim]\ntype = "sim"\nmax_concurrent = 1\npoll_seconds = 0.05\n'
QUICK = '[vendors.sim]\ntype = "sim"\npoll_seconds = 0.02\n'
FIELDS = {
    *("id", "object", "model", "status", "done", "phase", "progress", "queue_position", "eta_seconds"),
    *("poll_after_ms", "created_at", "started_at", "finished_at", "expires_at", "input", "seed", "vendor", "outputs"),
    *("error", "warnings", "attempts", "cost", "charged", "client_ref", "metadata", "batch_id", "urls", "request_id"),
}


async def order(client: httpx.AsyncClient, *scripts: dict[str, Any], model: str = MODEL, **top: Any) -> dict[str, Any]:
    """Submit one input per script; `top` stands beside `input`."""
    inputs = [{"params": {"script": {"latency": 0.05, **script}}} for script in scripts]
    response = await client.post("/model/v1/generation", json={"model": model, "input": inputs, **top})
    assert response.status_code == 202, response.text
    return response.json()


async def look(client: httpx.AsyncClient, job_id: str, **query: Any) -> dict[str, Any]:
    response = await client.get(f"/api/v1/jobs/{job_id}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def until(client: httpx.AsyncClient, job_id: str, **wanted: Any) -> dict[str, Any]:
    """The record once these fields have these values."""
    async with asyncio.timeout(20):
        while True:
            job = await look(client, job_id)
            if all(job[name] == value for name, value in wanted.items()):
                return job
            assert not job["done"], job
            await asyncio.sleep(0.01)


def moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


# -- one job


async def test_a_record_has_every_field_from_open_to_done(server):
    job = await order(server.client, {"latency": 0.3, **FAILS})
    open_answer = await server.client.get(f"/api/v1/jobs/{job['id']}")
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
    begun = time.monotonic()
    assert (await look(server.client, slow["id"], wait=60))["status"] == "failed"
    assert time.monotonic() - begun < 10
    begun = time.monotonic()
    assert (await look(server.client, slow["id"], wait=60))["status"] == "failed"
    assert time.monotonic() - begun < 5
    begun = time.monotonic()
    assert not (await look(server.client, stuck["id"], wait=1))["done"]
    assert 0.95 <= time.monotonic() - begun < 5
    for wrong in ("0", "61", "-1", "1.5", "abc", "", "\u0661"):
        answer = await server.client.get(f"/api/v1/jobs/{stuck['id']}", params={"wait": wrong})
        assert answer.status_code == 400, wrong
        assert answer.json()["error"]["param"] == "wait"


async def test_a_drain_lets_go_of_who_waits(server):
    job = await order(server.client, NEVER)
    waiting = asyncio.create_task(look(server.client, job["id"], wait=60))
    await until(server.client, job["id"], phase="generating")
    server.gateway.drain()
    assert not (await asyncio.wait_for(waiting, 5))["done"]


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
    async with asyncio.timeout(10):
        while True:
            again = await server.client.get(path, headers={"if-none-match": first.headers["etag"]})
            if again.status_code == 200:
                break
            link = await server.client.head(first.json()["outputs"][0]["url"], headers={"authorization": ""})
            assert link.status_code == 200
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


async def cancel(client: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    response = await client.post(f"/api/v1/jobs/{job_id}/cancel")
    assert response.status_code == 200, response.text
    return response.json()


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
    assert sum(event["data"]["status"] == "canceling" for event in events) == 1
    failed = await server.finish((await order(server.client, FAILS))["id"])
    assert await cancel(server.client, failed["id"]) == failed


async def test_a_vendor_that_cannot_stop_goes_on_and_its_result_is_kept(server):
    job = await order(server.client, {"cancelable": False, "latency": 1})
    await until(server.client, job["id"], phase="generating")
    await cancel(server.client, job["id"])
    done = await server.finish(job["id"])
    assert (done["status"], done["attempts"][0]["outcome"]) == ("succeeded", "succeeded")
    assert any("cannot stop" in warning for warning in done["warnings"])
    assert done["outputs"]


# -- how jobs end


def told(*, status: str = "failed", code: str | None = None, **rest: Any) -> dict[str, Any]:
    """What is expected of a job's end."""
    usual = {"stage": None, "retryable": None, "upstream": None, "outcomes": ["succeeded"], "charged": False}
    return usual | {"status": status, "code": code} | rest


SUCCEEDED = told(status="succeeded", charged=True)
FILTERED = told(code="content_filtered", stage="generating", retryable=False, upstream="filtered", outcomes=["failed"])
BAD = told(code="bad_output", stage="storing", retryable=True, outcomes=["failed"])
ENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "succeeded": ({}, SUCCEEDED),
    "failed": (
        {"ending": "failed"},
        told(code="upstream_error", stage="generating", retryable=True, upstream="failed", outcomes=["failed"]),
    ),
    "filtered": ({"ending": "filtered"}, FILTERED),
    "no output": ({"ending": "no_output"}, FILTERED | {"upstream": None}),
    "corrupt": ({"ending": "corrupt"}, BAD),
    "wrong size": ({"ending": "wrong_size"}, BAD),
    "reply lost": ({"submission": "reply_lost"}, SUCCEEDED),
    "reply lost for good": (
        {"submission": "reply_lost", "findable": False},
        told(code="upstream_outcome_unknown", stage="reconciling", retryable=False, outcomes=["unknown"]),
    ),
    "reply lost, then fails": (
        {"submission": "reply_lost", "ending": "filtered"},
        FILTERED,
    ),
    "never arrived": (
        {"submission": "never_arrived", "submission_times": 2},
        SUCCEEDED | {"outcomes": ["never_arrived", "never_arrived", "succeeded"]},
    ),
    "unreachable for a while": ({"submission": "unreachable", "submission_times": 3}, SUCCEEDED),
    "unreachable": (
        {"submission": "unreachable", "submission_times": 1000},
        told(code="upstream_unavailable", stage="dispatching", retryable=True, outcomes=["not_sent"]),
    ),
    "busy for a while": ({"submission": "busy", "submission_times": 2}, SUCCEEDED),
    "rejected": (
        {"submission": "rejected"},
        told(code="upstream_rejected", stage="dispatching", retryable=False, upstream="bad_order", outcomes=["failed"]),
    ),
    "unauthorized": (
        {"submission": "unauthorized"},
        told(
            code="upstream_auth", stage="dispatching", retryable=False, upstream="bad_credential", outcomes=["failed"]
        ),
    ),
    "polls fail": ({"poll_errors": 4}, SUCCEEDED),
    "downloads fail": ({"download_errors": 2}, SUCCEEDED),
    "vendor's queue": ({"queued": 0.1, "latency": 0.2, "progress": False}, SUCCEEDED),
}
NOT_ACCEPTED = {"unreachable", "rejected", "unauthorized"}


def summary(job: dict[str, Any]) -> dict[str, Any]:
    """A job's end in the words of `told`."""
    error = job["error"] or {"stage": None, "retryable": None, "upstream": None, "code": None}
    return {
        "status": job["status"],
        "code": error["code"],
        "stage": error["stage"],
        "retryable": error["retryable"],
        "upstream": (error["upstream"] or {}).get("code"),
        "outcomes": [attempt["outcome"] for attempt in job["attempts"]],
        "charged": job["charged"],
    }


async def test_every_script_ends_as_told_and_is_ordered_once(start):
    price = f'[[models]]\nid = "{MODEL}"\nvendor = "sim"\nprice = {{per_job = "0.40"}}\n'
    server = await start(QUICK + price)
    jobs = {}
    for name, (script, _) in ENDS.items():
        body = {"params": {"face_limit": 48, "script": {"latency": 0.05, **script}}}
        answer = await server.client.post("/model/v1/generation", json={"model": MODEL, "input": [body]})
        jobs[name] = answer.json()["id"]
    records = dict(zip(jobs, await asyncio.gather(*(server.finish(job_id) for job_id in jobs.values())), strict=True))
    assert {name: summary(job) for name, job in records.items()} == {name: end for name, (_, end) in ENDS.items()}
    for name, job in records.items():
        succeeded = job["status"] == "succeeded"
        assert job["cost"] == {"estimated": "0.40", "final": "0.40" if succeeded else "0.00", "currency": "USD"}, name
        assert (job["progress"] == 1.0) == bool(job["outputs"]) == succeeded, name
        assert job["phase"] == "done"
        if job["error"]:
            assert job["error"]["charged"] is False
            assert job["error"]["request_id"] == job["request_id"]
            assert job["error"]["message"]
    accepted = len(ENDS) - len(NOT_ACCEPTED)
    counted = server.gateway.offers.vendors["sim"].upstream.counts()
    assert counted == {"orders": accepted, "jobs": accepted, "duplicates": 0}


async def test_downloads_may_fail_more_often(server):
    assert (await server.generate(MODEL, script={"download_errors": 3}))["status"] == "succeeded"


async def test_a_video_of_another_ratio_is_no_success(server):
    job = await server.generate(VIDEO, script={"ending": "wrong_size"})
    assert (job["status"], job["error"]["code"], job["outputs"]) == ("failed", "bad_output", [])
    assert "640 x 480" in job["error"]["message"]


async def test_the_time_left_is_told_once_such_jobs_have_run(server):
    untold = {"progress": False}
    first = await order(server.client, {"latency": 0.8, **untold})
    assert (await until(server.client, first["id"], phase="generating"))["eta_seconds"] is None
    assert (await server.finish(first["id"]))["status"] == "succeeded"
    second = await order(server.client, {"latency": 30, **untold})
    running = await until(server.client, second["id"], phase="generating")
    assert 0 <= running["eta_seconds"] < 10
    model = (await server.client.get(f"/api/v1/models/{MODEL}")).json()
    assert model["typical_seconds"]["jobs"] == 1


async def test_what_the_vendor_tells_of_progress_is_passed_on(server):
    job = await order(server.client, {"latency": 3, "queued": 0.5})
    waiting = await until(server.client, job["id"], queue_position=1)
    assert waiting["status"] == "running"
    running = await until(server.client, job["id"], queue_position=None)
    assert 0 < running["progress"] < 1
    assert 0 <= running["eta_seconds"] < 3
    assert running["poll_after_ms"] <= 1000


# -- deadlines


async def test_a_job_that_cannot_start_in_time_expires_unpaid(start):
    server = await start(ONE_SEAT)
    await order(server.client, NEVER)
    late = await order(server.client, {}, start_timeout=0.3)
    done = await server.finish(late["id"])
    assert summary(done) == told(
        status="expired", code="start_timeout", stage="queued", retryable=True, outcomes=[], charged=False
    )
    assert done["started_at"] is None
    assert server.gateway.offers.vendors["sim"].upstream.counts()["orders"] == 1


async def test_a_job_that_runs_too_long_expires_and_the_vendor_is_told(server):
    done = await server.finish((await order(server.client, NEVER, run_timeout=0.8))["id"])
    assert summary(done) == told(
        status="expired", code="run_timeout", stage="generating", retryable=True, outcomes=["abandoned"], charged=False
    )
    upstream = server.gateway.offers.vendors["sim"].upstream
    _, _, body = upstream.answer("GET", f"/orders/{done['attempts'][0]['upstream_id']}", b"")
    assert b'"canceled"' in body


async def test_a_vendor_that_stays_busy_lets_the_job_expire(server):
    busy = {"submission": "busy", "submission_times": 1000}
    done = await server.finish((await order(server.client, busy, run_timeout=0.5))["id"])
    assert (done["status"], done["error"]["code"], done["charged"]) == ("expired", "run_timeout", False)
    assert len(done["attempts"]) == 1


async def test_a_job_that_no_runner_has_taken_up_can_be_canceled_and_expires(start):
    server = await start(overrides={"jobs.max_held": 1})
    blocker = await order(server.client, NEVER)
    await until(server.client, blocker["id"], phase="generating")
    canceled, late = await order(server.client, NEVER), await order(server.client, NEVER, start_timeout=0.2)
    await cancel(server.client, canceled["id"])
    assert (await look(server.client, canceled["id"], wait=1))["status"] == "canceled"
    assert (await look(server.client, late["id"], wait=1))["status"] == "expired"


# -- a vendor over HTTP

SECRET = "hush-hush-4711"


class Upstream:
    """A vendor on a socket: it keeps orders waiting until told, and counts what it is asked."""

    def __init__(self) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self.asked: list[str] = []
        self.refusal: dict[str, Any] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        if request.path != "/orders":
            return web.json_response({"id": "one", "status": "running"})
        self.reached.set()
        await self.go_on.wait()
        if self.refusal:
            return web.json_response({"error": self.refusal}, status=400)
        return web.json_response({"id": "one"}, status=201)


@asynccontextmanager
async def listening(upstream: Upstream) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", upstream.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        upstream.go_on.set()
        await runner.cleanup()


async def test_a_cancel_during_the_order_reaches_the_vendor_after_it(start):
    upstream = Upstream()
    async with listening(upstream) as url:
        server = await start(f'[vendors.far]\ntype = "sim"\nbase_url = "{url}"\n')
        job = await order(server.client, {})
        await asyncio.wait_for(upstream.reached.wait(), 10)
        assert (await look(server.client, job["id"]))["phase"] == "dispatching"
        assert (await cancel(server.client, job["id"]))["status"] == "canceling"
        assert (await cancel(server.client, job["id"]))["status"] == "canceling"
        upstream.go_on.set()
        done = await server.finish(job["id"])
    assert (done["status"], done["attempts"][0]["outcome"], done["charged"]) == ("canceled", "canceled", False)
    assert upstream.asked == ["POST /orders", "POST /orders/one/cancel"]


async def test_what_a_vendor_says_is_told_without_addresses_and_secrets(start):
    upstream = Upstream()
    upstream.go_on.set()
    upstream.refusal = {"code": "nope", "message": f"see https://v.example.com/x?key=1 with {SECRET}; " + "x" * 5000}
    async with listening(upstream) as url:
        server = await start(f'[vendors.far]\ntype = "sim"\nbase_url = "{url}"\napi_key = "{SECRET}"\n')
        done = await server.finish((await order(server.client, {}))["id"])
    assert (done["status"], done["error"]["code"]) == ("failed", "upstream_rejected")
    assert done["error"]["upstream"]["code"] == "nope"
    assert done["error"]["upstream"]["message"].startswith("see … with …")
    assert len(done["error"]["upstream"]["message"]) <= 300
    everything = str(done)
    assert SECRET not in everything
    assert "example.com" not in everything
    assert url not in everything
