"""Polls of one vendor asked together: each gets its own answer, whatever becomes of the others or of the batch."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from itertools import pairwise
from operator import sub
from typing import Any

import pytest
from conftest import running
from doubles.media import Plan, listening
from doubles.tripo import TripoDouble
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from vendors.double import Act, Double, double_of, hang, reply

from penstock.domain.files import StoredFile
from penstock.domain.job_errors import UpstreamError
from penstock.jobs import polling
from penstock.jobs.polling import MAX_REST_SECONDS, Polling
from penstock.settings.tables import load
from penstock.simulator.samples import make_preview
from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import (
    Call,
    Failed,
    Flow,
    GenerationDefaults,
    Reply,
    Running,
    Unclear,
    VendorOptions,
)
from penstock.vendors.sim import Sim

OK = "ok"


class Fake(GenerationDefaults):
    """A vendor, and the upstream inside of it: what each call is answered with can be chosen."""

    models = ()

    def __init__(self, batch: int = 3, credential: str = "secret") -> None:
        self.options = VendorOptions(type="fake", api_key=credential, base_url="")
        self.batch = batch
        self.upstream = self
        self.many: list[list[str]] = []
        self.alone: list[str] = []
        self.plan: list[str] = []  # how the next batches go: ok, 503, short, long, missing, nothing, odd
        self.gone: set[str] = set()

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Failed]:
        reply = yield Call("GET", f"/one/{operation['id']}")
        return _stand(reply.json())

    def poll_many(self, operations: Sequence[Mapping[str, Any]]) -> Flow[Any]:
        reply = yield Call("POST", "/many", json=[operation["id"] for operation in operations])
        if reply.status != 200:
            raise Unclear("HTTP 503")
        told = reply.json()
        if told == "bug":
            raise RuntimeError("a vendor's own mistake")
        return told if told is None else [None if item is None else _stand(item) for item in told]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET":
            name = path.rpartition("/")[2]
            self.alone.append(name)
            return 200, {}, json.dumps(self._about(name)).encode()
        names = json.loads(body)
        self.many.append(names)
        answers: Any = [self._about(name) for name in names]
        match self.plan.pop(0) if self.plan else OK:
            case "503":
                return 503, {}, b"{}"
            case "short":
                answers = answers[:1]
            case "long":
                answers += [{"progress": 99}] * 2
            case "missing":
                answers[0] = None
            case "nothing":
                answers = None
            case "bug":
                answers = "bug"
        return 200, {}, json.dumps(answers).encode()

    def _about(self, name: str) -> dict[str, Any]:
        return {"gone": name} if name in self.gone else {"progress": int(name)}


def _stand(told: Mapping[str, Any]) -> Running | Failed:
    return Failed(UpstreamError(told["gone"])) if "gone" in told else Running(told["progress"])


async def no_file(file: StoredFile) -> bytes:
    raise AssertionError(f"{file} is not asked for here")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def desk(clock: Clock) -> AsyncGenerator[Polling]:
    exchange = Exchange(no_file)
    yield Polling(exchange, clock)
    await exchange.close()


async def ask(desk: Polling, vendor: Fake, *numbers: int, name: str = "fake") -> list[float | None]:
    """What each is told, as its own number."""
    asked = [desk.poll(name, vendor, {"id": str(number)}) for number in numbers]
    return [told.progress for told in await asyncio.gather(*asked)]


# -- together


async def test_polls_at_the_same_time_go_together_as_many_as_are_taken(desk):
    vendor = Fake(batch=3)
    assert await ask(desk, vendor, *range(8)) == list(range(8))
    assert vendor.many == [["0", "1", "2"], ["3", "4", "5"], ["6", "7"]]
    assert vendor.alone == []


async def test_one_goes_alone(desk):
    vendor = Fake()
    assert await ask(desk, vendor, 5) == [5]
    assert (vendor.many, vendor.alone) == ([], ["5"])
    assert await ask(desk, vendor, 0, 1, 2, 3) == [0, 1, 2, 3]
    assert (vendor.many, vendor.alone) == ([["0", "1", "2"]], ["5", "3"])


@pytest.mark.parametrize("batch", [0, 1])
async def test_who_takes_no_batches_is_asked_for_each(desk, batch):
    vendor = Fake(batch=batch)
    assert await ask(desk, vendor, 1, 2, 3) == [1, 2, 3]
    assert vendor.many == []
    assert sorted(vendor.alone) == ["1", "2", "3"]


async def test_credentials_and_vendors_are_never_mixed(desk):
    one, other, namesake = Fake(credential="one"), Fake(credential="other"), Fake(credential="one")
    told = await asyncio.gather(ask(desk, one, 1, 2), ask(desk, other, 3, 4), ask(desk, namesake, 5, 6, name="another"))
    assert told == [[1, 2], [3, 4], [5, 6]]
    assert (one.many, other.many, namesake.many) == ([["1", "2"]], [["3", "4"]], [["5", "6"]])


async def test_a_failed_order_among_them_fails_alone(desk):
    vendor = Fake()
    vendor.gone = {"2"}
    asked = [desk.poll("fake", vendor, {"id": str(number)}) for number in (1, 2, 3)]
    one, two, three = await asyncio.gather(*asked)
    assert (one, three) == (Running(1), Running(3))
    assert isinstance(two, Failed)
    assert two.error.message == "2"


# -- when the batch does not tell


@pytest.mark.parametrize(("how", "alone"), [("missing", ["0"]), ("short", ["1", "2"]), ("long", [])])
async def test_who_is_missing_is_asked_for_alone(desk, how, alone):
    vendor = Fake()
    vendor.plan = [how]
    assert await ask(desk, vendor, 0, 1, 2) == [0, 1, 2]
    assert sorted(vendor.alone) == alone
    assert await ask(desk, vendor, 3, 4) == [3, 4]
    assert len(vendor.many) == 2, "that is no reason to rest"


@pytest.mark.parametrize("how", ["nothing", "bug"])
async def test_not_even_a_vendors_own_mistake_leaves_anyone_waiting(desk, how):
    vendor = Fake()
    vendor.plan = [how]
    assert await ask(desk, vendor, 0, 1, 2) == [0, 1, 2]
    assert sorted(vendor.alone) == ["0", "1", "2"]


async def test_a_batch_that_fails_is_let_be_for_longer_and_longer(desk, clock):
    vendor = Fake()
    rests = [2, 4, 8, 16, 32, 64, 128, 256, MAX_REST_SECONDS, MAX_REST_SECONDS]
    vendor.plan = ["503"] * len(rests)
    for failures, rest in enumerate(rests, 1):
        assert await ask(desk, vendor, 0, 1) == [0, 1]
        assert len(vendor.many) == failures
        clock.now += rest - 0.01
        assert await ask(desk, vendor, 0, 1) == [0, 1]
        assert len(vendor.many) == failures, "it rests"
        clock.now += 0.01
    await ask(desk, vendor, 0, 1)
    assert len(vendor.many) == len(rests) + 1


async def test_while_it_rests_each_goes_alone_and_a_success_ends_that(desk, clock):
    vendor = Fake()
    vendor.plan = ["503", "503"]
    await ask(desk, vendor, 0, 1)
    await ask(desk, vendor, 2, 3)
    assert (len(vendor.many), sorted(vendor.alone)) == (1, ["0", "1", "2", "3"])
    clock.now += 2
    await ask(desk, vendor, 4, 5)
    clock.now += 4
    assert await ask(desk, vendor, 6, 7) == [6, 7]
    assert len(vendor.many) == 3
    vendor.plan = ["503"]
    await ask(desk, vendor, 8, 9)
    clock.now += 2
    await ask(desk, vendor, 10, 11)
    assert len(vendor.many) == 5, "it began anew with the shortest rest"


async def test_trouble_of_a_single_poll_is_told_to_whom_it_concerns(desk, monkeypatch):
    vendor = Fake(batch=0)
    monkeypatch.setattr(vendor, "answer", lambda *_: (200, {}, b"<html>"))
    with pytest.raises(TROUBLE):
        await desk.poll("fake", vendor, {"id": "1"})


# -- who leaves


async def test_who_leaves_is_not_asked_for_and_bothers_nobody(desk):
    vendor = Fake()
    asked = [asyncio.create_task(desk.poll("fake", vendor, {"id": str(number)})) for number in range(2)]
    await asyncio.sleep(0)
    asked[0].cancel()
    assert await ask(desk, vendor, 7) == [7]
    assert await asked[1] == Running(1)
    assert asked[0].cancelled()
    assert vendor.many == [["1", "7"]]


async def test_if_all_leave_nobody_is_asked(desk, monkeypatch):
    monkeypatch.setattr(polling, "GATHER_SECONDS", 0.001)
    vendor = Fake()
    asked = [asyncio.create_task(desk.poll("fake", vendor, {"id": "1"})) for _ in range(2)]
    await asyncio.sleep(0)
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert await ask(desk, vendor, 5) == [5]
    assert (vendor.many, vendor.alone) == ([], ["5"])


@given(
    some.integers(2, 5),
    some.lists(some.sampled_from([OK, "503", "short", "long", "missing", "nothing", "bug"]), max_size=8),
    some.lists(some.tuples(some.integers(1, 4), some.integers(0, 3), some.booleans()), min_size=1, max_size=12),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_happens_everyone_who_stays_is_told_of_their_own(batch, plan, waves):
    """Waves of polls: how many, how many of them leave, and whether the next comes at once."""
    clock, vendor = Clock(), Fake(batch=batch)
    vendor.plan = list(plan)
    exchange = Exchange(no_file)
    desk, asked, left, number = Polling(exchange, clock), {}, set(), 0
    for size, leaving, at_once in waves:
        for _ in range(size):
            asked[number] = asyncio.create_task(desk.poll("fake", vendor, {"id": str(number)}))
            number += 1
        await asyncio.sleep(0)
        for each in range(number - size, number)[:leaving]:
            asked[each].cancel()
            left.add(each)
        if not at_once:
            clock.now += 100
            await asyncio.sleep(0.001)
    async with asyncio.timeout(300):
        told = await asyncio.gather(*asked.values(), return_exceptions=True)
    for each, answer in enumerate(told):
        assert answer == Running(each) or (each in left and isinstance(answer, asyncio.CancelledError))
    assert all(2 <= len(names) <= batch for names in vendor.many)
    await exchange.close()


# -- a whole gateway


@pytest.fixture
async def tripo() -> AsyncGenerator[TripoDouble]:
    async with listening(TripoDouble()) as double:
        yield double


async def submit(server: Any, number: int) -> list[str]:
    upload = await server.client.post("/api/v1/files", files={"file": ("cat.png", make_preview(7), "image/png")})
    params = {"file": {"file_token": upload.json()["file_token"]}, "face_limit": 5000}
    body = {"model": "vendora_image_to_model", "input": [{"params": params}] * number}
    accepted = (await server.client.post("/model/v1/generation", json=body)).json()
    return [job["id"] for job in accepted["jobs"]]


def batches(double: TripoDouble) -> list[int]:
    return [len(json.loads(seen.body)["task_ids"]) for seen in double.seen if seen.path == "/v3/tasks/list"]


async def test_many_jobs_at_one_vendor_take_few_calls(start, tripo):
    tripo.plans.extend(Plan(polls=6) for _ in range(8))
    server = await start(tripo.settings())
    done = [await server.finish(job_id) for job_id in await submit(server, 8)]
    assert {job["status"] for job in done} == {"succeeded"}
    assert len(tripo.orders) == 8
    assert max(batches(tripo)) > 1
    polls = tripo.count("GET", "/v3/tasks/") + len(batches(tripo))
    assert polls < sum(order.polls for order in tripo.orders.values())


async def test_a_batch_call_out_of_order_costs_no_job(start, tripo):
    tripo.fault(reply(500, b"{}"), "POST", "/v3/tasks/list", times=1000)
    server = await start(tripo.settings())
    done = [await server.finish(job_id) for job_id in await submit(server, 4)]
    assert {job["status"] for job in done} == {"succeeded"}
    assert len(batches(tripo)) >= 1
    assert tripo.count("GET", "/v3/tasks/") >= 4


async def test_a_gateway_may_stop_while_a_batch_is_asked(tripo, tmp_path, weights):
    asked = asyncio.Event()

    async def never_answer(double: TripoDouble, request: Any) -> Any:
        asked.set()
        return await hang(double, request)

    tripo.fault(never_answer, "POST", "/v3/tasks/list", times=1000)
    config = tmp_path / "penstock.toml"
    config.write_text(tripo.settings())
    async with running(load(config, {}, {"data": tmp_path / "data", "weights": weights})) as server:
        await submit(server, 4)
        async with asyncio.timeout(300):
            await asked.wait()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "batch"]


# -- when to ask again


@pytest.fixture
async def far(tmp_path, start) -> AsyncGenerator[tuple[Double, Any]]:
    """The simulator behind HTTP, asked as often as it may be, and a gateway before it."""
    async with double_of(tmp_path / "double") as double:
        table = f'[vendors.far]\ntype = "sim"\nbase_url = "{double.url}"\npoll_seconds = 0.02\n'
        yield double, await start(table)


def note_polls(double: Double, act: Act | None, times: int) -> list[float]:
    """The moments of the next polls, which meet with this; then all goes on as usual."""
    moments: list[float] = []

    async def note(double: Double, request: Any) -> Any:
        moments.append(time.monotonic())
        return await (act or Double.play)(double, request)

    async def note_last(double: Double, request: Any) -> Any:
        moments.append(time.monotonic())
        return await double.play(request)

    double.fault(note, "GET", "/orders/sim-", times=times)
    double.fault(note_last, "GET", "/orders/sim-")
    return moments


@pytest.mark.parametrize("status", [429, 503])
async def test_a_vendor_that_says_when_is_left_alone_until_then(far, status):
    double, server = far
    moments = note_polls(double, reply(status, b"{}", retry_after="0.5"), times=2)
    job = await server.generate(script={"latency": 0})
    assert job["status"] == "succeeded"
    assert len(moments) == 3
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(moments))


async def test_so_is_one_that_tells_a_running_jobs_next_poll(far, monkeypatch):
    double, server = far
    told = [Running(poll_after=0.5), Running(poll_after=0.0), Running(poll_after=0.5)]
    usual = Sim.poll

    def poll(vendor: Sim, operation: Mapping[str, Any]) -> Flow[Any]:
        answer = yield from usual(vendor, operation)
        return told.pop() if told else answer

    monkeypatch.setattr(Sim, "poll", poll)
    moments = note_polls(double, None, times=3)
    job = await server.generate(script={"latency": 0})
    assert job["status"] == "succeeded"
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert len(gaps) == 3
    assert min(gaps[0], gaps[2]) >= 0.5
    assert gaps[1] >= 0.02, "the vendor's least holds"


async def test_trouble_in_a_row_is_met_with_patience(far):
    double, server = far
    moments = note_polls(double, reply(500, b"{}"), times=4)
    job = await server.generate(script={"latency": 0})
    assert job["status"] == "succeeded"
    assert all(
        gap >= least for gap, least in zip(map(sub, moments[1:], moments), (0.05, 0.08, 0.16, 0.32), strict=True)
    )


def test_a_reply_tells_when_to_ask_again():
    assert Reply(429, {"retry-after": "7"}, b"").retry_after == 7
    for odd in ("-3", "soon", "", "nan", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert not Reply(429, {"retry-after": odd}, b"").retry_after
    assert Reply(429, {"retry-after": "1e99"}, b"").retry_after == 3_600
