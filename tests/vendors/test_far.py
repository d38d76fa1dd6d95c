"""A whole gateway and a vendor across a bad network: every job ends as it should, and each is ordered once."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from vendors.double import Act, Double, double_of, drip, drop, drop_after, hang, raw, reply, reset

from penstock.settings.tables import load

CREDENTIAL = "vendor-secret-0123456789"

Far = Callable[..., Awaitable[Any]]


@pytest.fixture
async def double(tmp_path: Path) -> AsyncGenerator[Double]:
    async with double_of(tmp_path / "double") as double:
        yield double


@pytest.fixture
def far(start, double: Double) -> Far:
    """Start a gateway whose only vendor is the double."""

    async def begin(options: str = "", lookup_seconds: float = 0.3, **overrides: Any) -> Any:
        toml = f"""
            [vendors.far]
            type = "sim"
            base_url = "{double.url}"
            api_key = "{CREDENTIAL}"
            poll_seconds = 0.02
            lookup_seconds = {lookup_seconds}
            {options}
        """
        return await start(toml, {name.replace("__", "."): value for name, value in overrides.items()})

    return begin


async def follow(server: Any, job_id: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first event's job that fits; the event stream tells each change as it happens."""
    async with server.client.stream("GET", f"/api/v1/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                told = json.loads(line.removeprefix("data:"))
                job = told.get("data", told)
                if until(job):
                    return job
    raise AssertionError("the job ended before that")


async def phases(server: Any, job_id: str) -> list[str]:
    feed = (await server.client.get("/api/v1/events", params={"limit": 100})).json()
    return [told["data"]["phase"] for told in feed["data"] if told["data"]["id"] == job_id]


def check_one_order(double: Double, jobs: int = 1) -> None:
    assert double.counts() == {"orders": jobs, "jobs": jobs, "duplicates": 0}


async def test_an_order_is_followed_up_with_the_credential_that_placed_it(far, double, tmp_path):
    server = await far()
    old = await server.submit(script={"latency": 1.5})
    await follow(server, old["id"], lambda job: job["phase"] == "generating")
    config = tmp_path / "penstock.toml"
    config.write_text(config.read_text().replace(CREDENTIAL, "another-credential"))
    await server.gateway.reload(load(config, {}, {"data": server.gateway.settings.data}))
    new = await server.generate(script={})
    assert (await server.finish(old["id"]))["status"] == "succeeded"
    upstream_ids = {job["id"]: (await server.finish(job["id"]))["attempts"][0]["upstream_id"] for job in (old, new)}
    for job, credential in ((old, CREDENTIAL), (new, "another-credential")):
        polls = [seen for seen in double.seen if upstream_ids[job["id"]] in seen.path]
        assert polls
        assert {seen.headers["Authorization"] for seen in polls} == {f"Bearer {credential}"}


# -- when all is well


@pytest.mark.parametrize("broken", [reply(200, b"no picture"), reply(404), reply(500), drop])
async def test_a_broken_preview_is_left_out_and_does_not_cost_the_result(far, double, broken):
    async def spoil_previews(double: Double, request: Any) -> Any:
        spoiled = request.path.endswith("/preview")
        return await (broken(double, request) if spoiled else double.play(request))

    double.fault(spoil_previews, "GET", "/orders/", times=1000)
    server = await far()
    job = await server.generate("sim_image_to_model", script={})
    assert job["status"] == "succeeded"
    assert [output["role"] for output in job["outputs"]] == ["primary"]
    assert any("preview" in warning for warning in job["warnings"])


@pytest.mark.parametrize("model", ["sim_text_to_video", "sim_image_to_model"])
async def test_a_job_is_done_far_away_and_its_bytes_are_ours(far, double, model):
    server = await far()
    job = await server.generate(model, script={})
    assert job["status"] == "succeeded", job
    check_one_order(double)
    await double.hide()
    asset = job["outputs"][0]
    data = (await server.client.get(asset["url"])).content
    assert hashlib.sha256(data).hexdigest() == asset["sha256"]
    assert double.url not in json.dumps(job)


async def test_the_vendor_gets_its_own_credential_and_never_the_callers_key(far, double):
    server = await far()
    await server.generate(script={})
    key = server.client.headers["authorization"].removeprefix("Bearer ")
    assert len({seen.path for seen in double.seen}) >= 3
    for seen in double.seen:
        assert seen.headers["Authorization"] == f"Bearer {CREDENTIAL}"
        assert key not in str(seen)
        assert server.gateway.settings.data.as_posix() not in str(seen)


async def test_what_the_vendor_says_reaches_the_caller_without_secrets(far, double):
    said = {"code": "no", "message": f"{CREDENTIAL} may not use {double.url}/x or 127.0.0.1:{double.port}"}
    double.fault(reply(401, json.dumps({"error": said}).encode()), "POST")
    server = await far()
    job = await server.generate(script={})
    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_auth")
    assert job["error"]["upstream"]["message"] == "… may not use … or …"
    assert CREDENTIAL not in json.dumps(job)
    assert double.counts()["orders"] == 0


# -- the order


LOST_AFTER = {
    "closed": drop_after,
    "a proxy's page": reply(502, b"<html>Bad Gateway</html>"),
    "cut": raw(b'HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{"id": "sim-'),
    "an odd body": reply(201, b'{"id": 7}'),
}


def after_accepting(act: Act) -> Act:
    async def accept(double: Double, request: Any) -> Any:
        await double.play(request)
        return await act(double, request)

    return act if act is drop_after else accept


@pytest.mark.parametrize("how", LOST_AFTER)
async def test_a_lost_answer_to_an_order_is_looked_up_and_not_ordered_again(far, double, how):
    double.fault(after_accepting(LOST_AFTER[how]), "POST", "/orders")
    server = await far()
    job = await server.generate(script={})
    assert job["status"] == "succeeded", job
    check_one_order(double)
    assert double.count("POST", "/orders") == 1
    assert len(job["attempts"]) == 1
    assert "reconciling" in await phases(server, job["id"])


@pytest.mark.parametrize("act", [drop, reset], ids=["closed", "reset"])
async def test_an_order_that_never_arrived_is_placed_again_once_that_is_certain(far, double, act):
    double.fault(act, "POST", "/orders")
    server = await far()
    job = await server.generate(script={})
    assert job["status"] == "succeeded", job
    check_one_order(double)
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["never_arrived", "succeeded"]
    references = [json.loads(seen.body)["reference"] for seen in double.seen if seen.method == "POST"]
    assert len(set(references)) == 2


async def test_an_order_that_arrives_late_is_found_and_not_placed_again(far, double):
    late: list[asyncio.Task[Any]] = []

    async def arrive_late(double: Double, request: Any) -> Any:
        async def arrive() -> None:
            await asyncio.sleep(0.1)  # as if it stood in a proxy
            await double.play(request)

        late.append(asyncio.create_task(arrive()))
        return await drop(double, request)

    double.fault(arrive_late, "POST", "/orders")
    server = await far(lookup_seconds=10)
    job = await server.generate(script={})
    assert job["status"] == "succeeded", job
    await asyncio.gather(*late)
    check_one_order(double)
    assert len(job["attempts"]) == 1


async def test_a_look_up_may_be_troubled_too(far, double):
    double.fault(drop_after, "POST", "/orders")
    for act in (drop, reply(503), reply(200, b"<html>"), reply(200, b'{"orders": 7}')):
        double.fault(act, "GET", "/orders?")
    server = await far()
    job = await server.generate(script={})
    assert job["status"] == "succeeded", job
    check_one_order(double)
    assert double.count("GET", "/orders?") >= 5


async def test_an_order_that_cannot_be_looked_up_is_not_guessed_at(far, double):
    double.fault(drop_after, "POST", "/orders")
    server = await far()
    job = await server.generate(script={"findable": False})
    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_outcome_unknown")
    assert job["attempts"][0]["outcome"] == "unknown"
    check_one_order(double)


async def test_a_vendor_that_is_away_for_a_while_is_waited_for(far, double):
    server = await far()
    await double.hide()
    job = await server.submit(script={})
    await follow(server, job["id"], lambda told: any(a["outcome"] == "not_sent" for a in told["attempts"]))
    await double.listen()
    job = await server.finish(job["id"])
    assert job["status"] == "succeeded", job
    check_one_order(double)


async def test_a_vendor_that_stays_away_is_told_so(far, double):
    server = await far("max_concurrent = 1")
    await double.hide()
    begun = time.monotonic()
    job = await server.generate(script={})
    assert (job["status"], job["error"]["code"], job["error"]["retryable"]) == ("failed", "upstream_unavailable", True)
    assert time.monotonic() - begun > 0.5  # it did wait between the tries: 0.04, 0.08, 0.16 and 0.32 seconds
    await double.listen()
    assert (await server.generate(script={}))["status"] == "succeeded"


async def test_a_busy_vendor_is_asked_again_when_it_says(far, double):
    double.fault(reply(429, b"{}", retry_after="0.4"), "POST", "/orders", times=2)
    server = await far()
    begun = time.monotonic()
    job = await server.generate(script={})
    assert job["status"] == "succeeded", job
    assert time.monotonic() - begun > 0.8
    assert double.count("POST", "/orders") == 3
    check_one_order(double)
    assert "throttled" in await phases(server, job["id"])


async def test_refusals_do_not_use_up_the_patience_for_a_broken_line(far, double):
    double.fault(reply(429, b"{}", retry_after="0.01"), "POST", "/orders", times=6)
    server = await far()
    job = await server.submit(script={})
    await follow(server, job["id"], lambda told: any(a["number"] == 5 for a in told["attempts"]))
    await double.hide()
    await follow(server, job["id"], lambda told: any(a["outcome"] == "not_sent" for a in told["attempts"]))
    await double.listen()
    assert (await server.finish(job["id"]))["status"] == "succeeded"


# -- the work


async def test_troubled_polls_are_simply_tried_again(far, double):
    for act in (reply(503, b"{}", retry_after="1"), reply(502, b"<html>"), drop, reset, reply(200, b"{}")):
        double.fault(act, "GET", "/orders/sim-")
    server = await far()
    job = await server.generate(script={})
    assert job["status"] == "succeeded", job
    check_one_order(double)


async def test_a_download_that_comes_short_is_fetched_again_whole(far, double):
    server = await far()
    job = await server.submit(script={"latency": 1})
    job = await follow(server, job["id"], lambda told: told["attempts"] and told["attempts"][0]["upstream_id"])
    outputs = f"/orders/{job['attempts'][0]['upstream_id']}/outputs"
    double.fault(raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\nshort"), "GET", outputs)
    double.fault(reply(404), "GET", outputs)
    job = await server.finish(job["id"])
    assert job["status"] == "succeeded", job
    assert double.count("GET", outputs) == 3
    check_one_order(double)


@pytest.mark.parametrize("act", [reply(200, b'{"status": "running"}'), hang, reply(404)], ids=["odd", "silent", "gone"])
async def test_a_vendor_that_never_says_anything_useful_ends_with_the_deadline(far, double, act):
    double.fault(act, "GET", "/orders/sim-", times=10_000)
    server = await far()
    body = {"model": "sim_text_to_video", "input": [{"params": {"script": {}}}], "run_timeout": 1}
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    job = await server.finish(job["id"])
    assert (job["status"], job["error"]["code"], job["charged"]) == ("expired", "run_timeout", False)


async def test_a_download_that_never_ends_ends_with_the_deadline(far, double):
    server = await far()
    body = {"model": "sim_text_to_video", "input": [{"params": {"script": {"latency": 1}}}], "run_timeout": 2.5}
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    job = await follow(server, job["id"], lambda told: told["attempts"] and told["attempts"][0]["upstream_id"])
    double.fault(drip(0.05, b"x"), "GET", f"/orders/{job['attempts'][0]['upstream_id']}/outputs", times=99)
    job = await server.finish(job["id"])
    assert (job["status"], job["error"]["code"]) == ("expired", "run_timeout")


# -- canceling


async def test_a_cancel_reaches_the_vendor_even_through_trouble(far, double):
    server = await far()
    job = await server.submit(script={"latency": 60})
    job = await follow(server, job["id"], lambda told: told["phase"] == "generating")
    cancel = f"/orders/{job['attempts'][0]['upstream_id']}/cancel"
    for act in (reply(503), drop, reply(429)):
        double.fault(act, "POST", cancel)
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    job = await server.finish(job["id"])
    assert (job["status"], job["charged"], job["warnings"]) == ("canceled", False, [])
    assert double.count("POST", cancel) == 4


async def test_a_cancel_that_the_vendor_never_hears_does_not_cost_the_result(far, double):
    server = await far()
    job = await server.submit(script={"latency": 1})
    job = await follow(server, job["id"], lambda told: told["phase"] == "generating")
    double.fault(reply(500), "POST", f"/orders/{job['attempts'][0]['upstream_id']}/cancel", times=1000)
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert (await server.finish(job["id"]))["status"] == "succeeded"


async def test_a_gateway_that_stops_waits_for_the_answer_to_an_order(far, double):
    taken, let_go = asyncio.Event(), asyncio.Event()

    async def answer_late(double: Double, request: Any) -> Any:
        answer = await double.play(request)
        taken.set()
        await let_go.wait()
        return answer

    double.fault(answer_late, "POST", "/orders")
    server = await far()
    job = await server.submit(script={"findable": False})
    await taken.wait()
    stopping = asyncio.create_task(server.gateway.dispatch.stop())
    await asyncio.sleep(0)
    let_go.set()
    await stopping
    server.gateway.leadership.release()
    again = await far()
    record = (await again.client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 30})).json()
    check_one_order(double)
    listed = (await again.client.get("/api/v1/jobs")).json()["data"]
    assert [each["status"] for each in listed] == ["succeeded"], record


async def test_what_cannot_be_stopped_goes_on_and_is_kept(far, double):
    server = await far()
    job = await server.submit(script={"latency": 1.5, "cancelable": False})
    await follow(server, job["id"], lambda told: told["phase"] == "generating")
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    job = await server.finish(job["id"])
    assert job["status"] == "succeeded", job
    assert sum("cannot stop" in warning for warning in job["warnings"]) == 1


async def test_a_cancel_while_the_order_is_lost_finds_it_and_stops_it(far, double):
    double.fault(drop_after, "POST", "/orders")
    double.fault(reply(503), "GET", "/orders?", times=2)
    server = await far()
    job = await server.submit(script={"latency": 60})
    await follow(server, job["id"], lambda told: told["phase"] == "reconciling")
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    job = await server.finish(job["id"])
    assert job["status"] == "canceled", job
    assert double.count("POST", "/orders/sim-") == 1
    check_one_order(double)


# -- many


async def test_a_vendors_limit_holds_and_nobody_is_forgotten(far, double, monkeypatch):
    monkeypatch.setattr("penstock.dispatch.local.SAFETY_NET_SECONDS", 60.0)
    at_once: list[int] = []

    async def count(double: Double, request: Any) -> Any:
        answer = await double.play(request)
        records = (await server.client.get("/api/v1/jobs", params={"status": "running"})).json()["data"]
        at_once.append(len(records))
        return answer

    double.fault(count, "POST", "/orders", times=8)
    server = await far("max_concurrent = 2", jobs__max_held=3)
    accepted = [await server.submit(script={"latency": 0.1}) for _ in range(8)]
    begun = asyncio.get_running_loop().time()
    done = await asyncio.gather(*(server.finish(job["id"]) for job in accepted))
    assert {job["status"] for job in done} == {"succeeded"}
    assert max(at_once) <= 2
    assert asyncio.get_running_loop().time() - begun < 40  # less than the dispatcher's safety net
    check_one_order(double, 8)
