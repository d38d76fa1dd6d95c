"""Two vendors for one model: what the first provably did not take goes to the second, and nothing else ever does."""

import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from doubles.media import listening
from doubles.tripo import TripoDouble
from vendors.double import Act, Double, double_of, drop_after, raw, reply, reset
from vendors.test_far import after_accepting, follow

from penstock.errors import StoreUnavailable
from penstock.observability import metrics
from penstock.simulator.samples import make_preview
from penstock.store.queries.jobs import job_rows

SIM, CATALOGUE = "sim_text_to_video", "vendorb_video_31"
NAMES = ("first", "second")
ALWAYS = 10_000
FILM = {"durationSeconds": 4, "resolution": "720p"}


@pytest.fixture
async def doubles(tmp_path: Path) -> AsyncGenerator[dict[str, Double]]:
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(double_of(tmp_path / name)) for name in NAMES}


@pytest.fixture
def first(doubles: dict[str, Double]) -> Double:
    return doubles["first"]


@pytest.fixture
def second(doubles: dict[str, Double]) -> Double:
    return doubles["second"]


def write_settings(doubles: dict[str, Double], options: dict[str, str], routes: dict[str, str]) -> str:
    tables = [
        f'[vendors.{name}]\ntype = "sim"\nbase_url = "{double.url}"\napi_key = "secret-of-{name}"\n'
        f"poll_seconds = 0.02\nlookup_seconds = 0.3\nscript = {{latency = 0.05}}\n{options.get(name, '')}\n"
        for name, double in doubles.items()
    ]
    ways = ", ".join(
        f'{{vendor = "{name}", {routes.get(name, f"order = {order}")}}}' for order, name in enumerate(doubles, 1)
    )
    return "".join([*tables, *(f'[[models]]\nid = "{model}"\nroutes = [{ways}]\n' for model in (SIM, CATALOGUE))])


Begin = Callable[..., Awaitable[Any]]


@pytest.fixture
def gateway(start, doubles: dict[str, Double]) -> Begin:
    """Start a gateway with both vendors; `first` and `second` are more lines of their tables."""

    async def begin(routes: dict[str, str] | None = None, **options: str) -> Any:
        return await start(write_settings(doubles, options, routes or {}))

    return begin


def told(job: dict[str, Any]) -> list[tuple[str, str]]:
    """Who was asked, and what came of it."""
    return [(attempt["vendor"], attempt["outcome"]) for attempt in job["attempts"]]


def orders(double: Double) -> int:
    return double.counts()["orders"]


def rerouted(vendor: str, why: str) -> float:
    return metrics.JOBS_REROUTED.labels(vendor, why)._value.get()


# -- what goes to the second

SAID = json.dumps({"error": {"code": "no", "message": "not here"}}).encode()
NOT_TAKEN = {
    "busy": (reply(429, b"{}", retry_after="60"), "refused", "refused"),
    "bad credential": (reply(401, SAID), "failed", "upstream_auth"),
    "bad order": (reply(400, SAID), "failed", "upstream_rejected"),
}


@pytest.mark.parametrize("model", [SIM, CATALOGUE])
@pytest.mark.parametrize("why", NOT_TAKEN)
async def test_what_the_first_does_not_take_the_second_does(gateway, first, second, why, model):
    act, outcome, reason = NOT_TAKEN[why]
    first.fault(act, "POST", "/orders", times=ALWAYS)
    server, before = await gateway(), rerouted("first", reason)
    job = await (server.generate(SIM, script={}) if model == SIM else server.generate(CATALOGUE, prompt="a", **FILM))
    assert job["status"] == "succeeded", job["error"]
    assert job["vendor"] == "second"
    assert told(job) == [("first", outcome), ("second", "succeeded")]
    assert [attempt["number"] for attempt in job["attempts"]] == [1, 2]
    assert [attempt["upstream_id"] is None for attempt in job["attempts"]] == [True, False]
    assert (orders(first), orders(second)) == (0, 1)
    assert first.count("POST", "/orders") == 1
    assert rerouted("first", reason) == before + 1
    references = [json.loads(seen.body)["reference"] for double in (first, second) for seen in double.seen if seen.body]
    assert references == [f"{job['id']}-1", f"{job['id']}-2"]


async def test_who_cannot_be_reached_is_gone_around(gateway, first, second):
    server = await gateway()
    await first.hide()
    job = await server.generate(SIM, script={})
    assert (job["status"], job["vendor"]) == ("succeeded", "second")
    assert told(job) == [("first", "not_sent"), ("second", "succeeded")]
    assert orders(second) == 1


async def test_each_vendor_is_shown_its_own_credential_only(gateway, first, second):
    first.fault(reply(429), "POST", "/orders")
    server = await gateway()
    await server.generate(SIM, script={})
    for double, name in ((first, "first"), (second, "second")):
        assert {seen.headers["Authorization"] for seen in double.seen} == {f"Bearer secret-of-{name}"}


async def test_the_next_job_asks_the_first_again(gateway, first, second):
    first.fault(reply(429), "POST", "/orders")
    server = await gateway()
    assert (await server.generate(SIM, script={}))["vendor"] == "second"
    assert (await server.generate(SIM, script={}))["vendor"] == "first"


UPLOADS = {
    "busy": (reply(429, b'{"code": 2000}', retry_after="60"), "refused"),
    "bad credential": (reply(401, b'{"code": 1002}'), "failed"),
    "lost": (drop_after, "not_sent"),
    "a proxy's page": (reply(502, b"<html>"), "not_sent"),
    "another shape": (reply(200, b"[]"), "not_sent"),
}


@pytest.mark.parametrize("way", UPLOADS)
async def test_an_upload_that_comes_to_nothing_is_no_order(start, second, way):
    """Whatever happens before the paid call: the second is asked, and the record tells both."""
    act, outcome = UPLOADS[way]
    async with listening(TripoDouble()) as tripo:
        tripo.fault(act, "POST", "/v3/files", times=ALWAYS)
        table = f'[vendors.second]\ntype = "sim"\nbase_url = "{second.url}"\npoll_seconds = 0.02\n'
        routes = 'routes = [{vendor = "tripo"}, {vendor = "second", order = 2}]'
        server = await start(f'{tripo.settings()}{table}[[models]]\nid = "vendora_image_to_model"\n{routes}\n')
        file = {"file": ("cat.png", make_preview(7), "image/png")}
        token = (await server.client.post("/api/v1/files", files=file)).json()["file_token"]
        job = await server.generate("vendora_image_to_model", file={"file_token": token})
        assert job["status"] == "succeeded", job["error"]
        assert told(job) == [("tripo", outcome), ("second", "succeeded")]
        assert (tripo.orders, orders(second)) == ({}, 1)
        assert tripo.count("POST", "/v3/files") == 1


# -- what does not

UNSURE = {
    "reply lost": drop_after,
    "reset": reset,
    "500": reply(500, b"{}"),
    "a proxy's page": reply(502, b"<html>Bad Gateway</html>"),
    "503": reply(503, b"{}", retry_after="0"),
    "408": reply(408, b"{}"),
    "cut": raw(b'HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{"id": "sim-'),
    "an odd body": reply(201, b'{"id": 7}'),
}


@pytest.mark.parametrize("way", UNSURE)
async def test_what_the_first_may_have_taken_is_never_ordered_elsewhere(gateway, first, second, way):
    first.fault(after_accepting(UNSURE[way]), "POST", "/orders")
    server = await gateway()
    job = await server.generate(SIM, script={})
    assert (job["status"], job["vendor"]) == ("succeeded", "first"), job["error"]
    assert told(job) == [("first", "succeeded")]
    assert orders(first) == 1
    assert second.seen == []


@pytest.mark.parametrize("way", ["reply lost", "500", "a proxy's page", "cut"])
async def test_nor_if_nobody_can_tell(gateway, first, second, way):
    first.fault(after_accepting(UNSURE[way]), "POST", "/orders")
    server = await gateway()
    job = await server.generate(SIM, script={"findable": False})
    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_outcome_unknown")
    assert told(job) == [("first", "unknown")]
    assert second.seen == []


@pytest.mark.parametrize("ending", ["filtered", "failed", "no_output", "corrupt"])
async def test_what_the_first_took_and_did_not_finish_stays_there(gateway, first, second, ending):
    server = await gateway()
    job = await server.generate(SIM, script={"ending": ending})
    assert (job["status"], job["vendor"]) == ("failed", "first")
    assert told(job) == [("first", "failed")]
    assert second.seen == []


# -- when no one takes it


async def test_the_last_word_is_told_if_both_say_no(gateway, first, second):
    first.fault(reply(401, SAID), "POST", "/orders")
    second.fault(reply(400, SAID), "POST", "/orders")
    server = await gateway()
    job = await server.generate(SIM, script={})
    assert (job["error"]["code"], job["error"]["upstream"]["message"]) == ("upstream_rejected", "not here")
    assert told(job) == [("first", "failed"), ("second", "failed")]
    assert (job["charged"], job["vendor"]) == (False, "second")


async def test_both_out_of_reach_is_told_so(gateway, first, second):
    server = await gateway()
    await first.hide()
    await second.hide()
    job = await server.generate(SIM, script={})
    assert (job["error"]["code"], job["error"]["retryable"]) == ("upstream_unavailable", True)
    assert told(job) == [("first", "not_sent"), ("second", "not_sent")]


async def test_all_busy_waits_at_the_last_and_is_ordered_once(gateway, first, second):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    second.fault(reply(429, b"{}", retry_after="0.05"), "POST", "/orders", times=4)
    server = await gateway()
    job = await server.submit(SIM, script={})
    waiting = await follow(server, job["id"], lambda told: told["phase"] == "throttled")
    assert (waiting["vendor"], waiting["status"]) == ("second", "running")
    job = await server.finish(job["id"])
    assert (job["status"], job["vendor"]) == ("succeeded", "second")
    assert told(job) == [("first", "refused"), ("second", "succeeded")]  # a long wait leaves no long list
    assert (orders(first), orders(second)) == (0, 1)
    assert first.count("POST", "/orders") == 1


async def test_three_routes_are_tried_in_their_order_each_once(start, tmp_path, doubles):
    async with double_of(tmp_path / "third") as third:
        for double in doubles.values():
            double.fault(reply(429), "POST", "/orders", times=ALWAYS)
        server = await start(
            write_settings({**doubles, "third": third}, {}, {"first": "order = 2", "second": "order = 1"})
        )
        job = await server.generate(SIM, script={})
        assert told(job) == [("second", "refused"), ("first", "refused"), ("third", "succeeded")]
        assert [double.count("POST", "/orders") for double in (*doubles.values(), third)] == [1, 1, 1]


# -- seats


async def test_a_rerouted_job_waits_for_a_seat_at_the_second(gateway, first, second):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    server = await gateway(second="max_concurrent = 1")
    sitting = await server.submit(SIM, script={"latency": 60})
    await follow(server, sitting["id"], lambda job: job["phase"] == "generating")
    waiting = await server.submit(SIM, script={})
    record = await follow(server, waiting["id"], lambda job: job["vendor"] == "second" and job["phase"] == "throttled")
    assert told(record) == [("first", "refused")]
    assert orders(second) == 1
    await server.client.post(f"/api/v1/jobs/{sitting['id']}/cancel")
    job = await server.finish(waiting["id"])
    assert (job["status"], told(job)) == ("succeeded", [("first", "refused"), ("second", "succeeded")])


async def test_a_rerouted_job_gives_its_seat_at_the_first_back(gateway, first, second):
    first.fault(reply(429), "POST", "/orders")
    server = await gateway(first="max_concurrent = 1")
    away = await server.submit(SIM, script={"latency": 60})
    await follow(server, away["id"], lambda job: job["vendor"] == "second" and job["phase"] == "generating")
    job = await server.generate(SIM, script={})
    assert (job["status"], job["vendor"]) == ("succeeded", "first")


async def test_two_routes_of_one_vendor_share_its_seats(start, first):
    first.fault(reply(429), "POST", "/orders", times=3)
    routes = '[{vendor = "first", model = "a"}, {vendor = "first", model = "b", order = 2}]'
    table = f'[vendors.first]\ntype = "sim"\nbase_url = "{first.url}"\npoll_seconds = 0.02\nmax_concurrent = 1\n'
    server = await start(f'{table}[[models]]\nid = "{SIM}"\nroutes = {routes}\n')
    accepted = [await server.submit(SIM, script={}) for _ in range(3)]
    done = [await server.finish(job["id"]) for job in accepted]
    assert {job["status"] for job in done} == {"succeeded"}
    assert first.counts() == {"orders": 3, "jobs": 3, "duplicates": 0}
    assert sum(outcome == "refused" for job in done for _, outcome in told(job)) >= 1


async def test_many_rerouted_jobs_keep_to_the_limit(gateway, first, second):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    server = await gateway(second="max_concurrent = 2")
    accepted = [await server.submit(SIM, script={"latency": 0.1}) for _ in range(8)]
    done = await asyncio.gather(*(server.finish(job["id"]) for job in accepted))
    assert {job["status"] for job in done} == {"succeeded"}
    with (
        closing(sqlite3.connect(f"file:{second.simulator._folder / 'simulator.db'}?mode=ro", uri=True)) as books,
        books,
    ):
        moments = sorted(row[0] for row in books.execute("SELECT accepted_at FROM orders"))
    books.close()
    assert len(moments) == 8
    assert all(later - earlier >= 0.1 for earlier, later in zip(moments, moments[2:], strict=False))


async def test_a_store_that_fails_at_the_handover_lets_nobody_past_the_queue(gateway, first, second, monkeypatch):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    server = await gateway(second="max_concurrent = 1")
    sitting = await server.submit(SIM, script={"latency": 60})
    await follow(server, sitting["id"], lambda job: job["phase"] == "generating")
    release, failures = job_rows.release, [StoreUnavailable()]

    def fail_once(*args: Any) -> None:
        if failures:
            raise failures.pop()
        release(*args)

    monkeypatch.setattr(job_rows, "release", fail_once)
    waiting = await server.submit(SIM, script={})
    await follow(server, waiting["id"], lambda job: job["vendor"] == "second" and job["phase"] == "throttled")
    assert orders(second) == 1
    await server.client.post(f"/api/v1/jobs/{sitting['id']}/cancel")
    assert (await server.finish(waiting["id"]))["status"] == "succeeded"
    assert orders(second) == 2


# -- cancels and stops


async def test_a_cancel_while_the_first_says_no_ends_the_job_there(gateway, first, second):
    asked, go = asyncio.Event(), asyncio.Event()

    async def say_no_late(double: Double, request: Any) -> Any:
        asked.set()
        await go.wait()
        return await reply(429)(double, request)

    first.fault(say_no_late, "POST", "/orders", times=ALWAYS)
    server = await gateway()
    job = await server.submit(SIM, script={})
    await asked.wait()
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    go.set()
    job = await server.finish(job["id"])
    assert (job["status"], job["charged"]) == ("canceled", False)
    assert told(job) == [("first", "refused")]
    assert second.seen == []
    assert orders(first) == 0


async def test_a_cancel_while_it_waits_at_the_second_orders_nothing(gateway, first, second):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    server = await gateway(second="max_concurrent = 1")
    sitting = await server.submit(SIM, script={"latency": 60})
    await follow(server, sitting["id"], lambda job: job["phase"] == "generating")
    waiting = await server.submit(SIM, script={})
    await follow(server, waiting["id"], lambda job: job["phase"] == "throttled")
    await server.client.post(f"/api/v1/jobs/{waiting['id']}/cancel")
    job = await server.finish(waiting["id"])
    assert (job["status"], job["charged"]) == ("canceled", False)
    assert orders(second) == 1


async def test_a_cancel_at_any_moment_of_the_handover_pays_at_most_once(gateway, first, second):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    server = await gateway()
    chance = random.Random(3)  # noqa: S311  when to cancel

    async def submit_and_cancel() -> dict[str, Any]:
        job = await server.submit(SIM, script={"latency": 60})
        await asyncio.sleep(chance.random() * 0.05)
        await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
        return await server.finish(job["id"])

    done = await asyncio.gather(*(submit_and_cancel() for _ in range(25)))
    assert {job["status"] for job in done} == {"canceled"}
    assert orders(first) == 0
    assert second.counts()["duplicates"] == 0
    for job in done:
        assert Counter(vendor for vendor, _ in told(job)).most_common(1)[0:1] in ([], [("first", 1)], [("second", 1)])


async def test_a_gateway_stopped_between_the_two_goes_on_at_the_second(start, doubles, first, second, tmp_path):
    first.fault(reply(429), "POST", "/orders", times=ALWAYS)
    settings = write_settings(doubles, {"second": "max_concurrent = 1"}, {})
    server = await start(settings)
    sitting = await server.submit(SIM, script={"latency": 60})
    await follow(server, sitting["id"], lambda job: job["phase"] == "generating")
    waiting = await server.submit(SIM, script={})
    await follow(server, waiting["id"], lambda job: job["phase"] == "throttled")
    await server.gateway.dispatch.stop()
    server.gateway.leadership.release()
    again = await start(settings)
    await again.client.post(f"/api/v1/jobs/{sitting['id']}/cancel")
    job = await again.finish(waiting["id"])
    assert (job["status"], told(job)) == ("succeeded", [("first", "refused"), ("second", "succeeded")])
    assert first.count("POST", "/orders") == 2
    assert orders(second) == 2


# -- orders and weights


async def test_the_lowest_order_is_asked_first_whatever_comes_first_in_the_file(gateway, first, second):
    server = await gateway({"first": "order = 7", "second": "order = 3"})
    for _ in range(5):
        assert (await server.generate(SIM, script={}))["vendor"] == "second"
    assert first.seen == []


async def test_weights_share_the_jobs_of_one_order(gateway, first, second):
    server = await gateway({"first": "weight = 9", "second": "weight = 1"}, first="max_concurrent = 20")
    accepted = await asyncio.gather(*(server.submit(SIM, script={}) for _ in range(60)))
    counts = Counter(job["vendor"] for job in accepted)
    assert counts["first"] > counts["second"]  # 1 in 10¹⁴ that it is not
    done = await asyncio.gather(*(server.finish(job["id"]) for job in accepted))
    assert {job["status"] for job in done} == {"succeeded"}
    assert (orders(first), orders(second)) == (counts["first"], counts["second"])


# -- a storm

SURE: list[Act] = [reply(429, b"{}", retry_after="0.02"), reply(401, SAID), reply(400, SAID)]
DOUBT: list[Act] = [drop_after, reset, *(UNSURE[way] for way in ("500", "a proxy's page", "cut", "an odd body"))]


def stormy(chance: random.Random) -> Act:
    """Each order meets with something else: taken and told, taken and lost, lost on its way, or refused."""

    async def act(double: Double, request: Any) -> Any:
        match chance.randrange(4):
            case 0:
                return await double.play(request)
            case 1:
                return await after_accepting(chance.choice(DOUBT))(double, request)
            case 2:
                return await chance.choice(DOUBT[1:])(double, request)
            case _:
                return await chance.choice(SURE)(double, request)

    return act


NOT_MADE = {"upstream_outcome_unknown", "upstream_rejected", "upstream_auth", "upstream_unavailable"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.long
async def test_a_storm_over_both_orders_each_job_once_in_all_books(gateway, doubles, seed):
    chance = random.Random(seed)  # noqa: S311
    for double in doubles.values():
        double.fault(stormy(chance), "POST", "/orders", times=ALWAYS)
    server = await gateway({"first": "weight = 2", "second": "weight = 1"} if seed == 2 else None)
    scripts = [{"findable": chance.random() < 0.7, "latency": chance.random() * 0.1} for _ in range(60)]
    accepted = await asyncio.gather(*(server.submit(SIM, script=script) for script in scripts))
    done = await asyncio.gather(*(server.finish(job["id"], seconds=60) for job in accepted))
    books: Counter[str] = Counter()
    for double in doubles.values():
        with (
            closing(sqlite3.connect(f"file:{double.simulator._folder / 'simulator.db'}?mode=ro", uri=True)) as store,
            store,
        ):
            books.update(row[0].rpartition("-")[0] for row in store.execute("SELECT reference FROM orders"))
        store.close()
    assert max(books.values()) == 1
    for job in done:
        ends = [outcome for _, outcome in told(job)]
        assert all(outcome in ("refused", "failed", "not_sent", "never_arrived") for outcome in ends[:-1])
        if job["status"] == "succeeded":
            assert books[job["id"]] == 1
            assert ends[-1] == "succeeded"
        else:
            assert job["error"]["code"] in NOT_MADE
            assert books[job["id"]] == 0 or job["error"]["code"] == "upstream_outcome_unknown"
    assert {job["status"] for job in done} == {"succeeded", "failed"}
