"""How jobs end over HTTP: as each script says, after their progress, at their deadlines, with a vendor on a socket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from aiohttp import web
from conftest import MODEL, VIDEO
from steps import NEVER, ONE_SEAT, cancel, look, order, until

QUICK = '[vendors.sim]\ntype = "sim"\npoll_seconds = 0.02\n'


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
        told(code="upstream_outcome_unknown", stage="reconciling", retryable=False, outcomes=["unknown"], charged=None),
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
        final = {True: "0.40", False: "0.00", None: None}[job["charged"]]
        assert job["cost"] == {"estimated": "0.40", "final": final, "currency": "USD"}, name
        assert (job["progress"] == 1.0) == bool(job["outputs"]) == succeeded, name
        assert job["phase"] == "done"
        if job["error"]:
            assert job["error"]["charged"] is job["charged"]
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
    first = await order(server.client, {"latency": 3600, **untold})
    assert (await until(server.client, first["id"], phase="generating"))["eta_seconds"] is None
    server.age_orders()
    done = await server.finish(first["id"])
    assert done["status"] == "succeeded"
    took = datetime.fromisoformat(done["finished_at"]) - datetime.fromisoformat(done["started_at"])
    second = await order(server.client, {"latency": 3600, **untold})
    running = await until(server.client, second["id"], phase="generating")
    assert 0 <= running["eta_seconds"] <= took.total_seconds() + 1
    model = (await server.client.get(f"/api/v1/models/{MODEL}")).json()
    assert model["typical_seconds"]["jobs"] == 1


async def test_what_the_vendor_tells_of_progress_is_passed_on(server, monkeypatch):
    monkeypatch.setattr("penstock.jobs.polling.MAX_INTERVAL_SECONDS", 0.2)  # however long it takes
    job = await order(server.client, {"latency": 7200, "queued": 3600})
    waiting = await until(server.client, job["id"], queue_position=1)
    assert waiting["status"] == "running"
    server.age_orders()
    running = await until(server.client, job["id"], queue_position=None)
    assert 0 < running["progress"] < 1
    assert 0 <= running["eta_seconds"] < 3600
    assert 0 < running["poll_after_ms"] <= 5000


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
    done = await server.finish((await order(server.client, NEVER, run_timeout=2))["id"])
    assert summary(done) == told(
        status="expired", code="run_timeout", stage="generating", retryable=True, outcomes=["abandoned"], charged=False
    )
    upstream = server.gateway.offers.vendors["sim"].upstream
    _, _, body = upstream.answer("GET", f"/orders/{done['attempts'][0]['upstream_id']}", b"")
    assert b'"canceled"' in body


async def test_a_vendor_that_stays_busy_lets_the_job_expire(server):
    busy = {"submission": "busy", "submission_times": 1000}
    done = await server.finish((await order(server.client, busy, run_timeout=1.5))["id"])
    assert (done["status"], done["error"]["code"], done["charged"]) == ("expired", "run_timeout", False)
    assert len(done["attempts"]) == 1


async def test_a_job_that_no_runner_has_taken_up_can_be_canceled_and_expires(start):
    server = await start(overrides={"jobs.max_held": 1})
    blocker = await order(server.client, NEVER)
    await until(server.client, blocker["id"], phase="generating")
    canceled, late = await order(server.client, NEVER), await order(server.client, NEVER, start_timeout=0.2)
    await cancel(server.client, canceled["id"])
    assert (await look(server.client, canceled["id"], wait=20))["status"] == "canceled"
    assert (await look(server.client, late["id"], wait=20))["status"] == "expired"


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
        await asyncio.wait_for(upstream.reached.wait(), 60)
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
