"""Whoever is begun twice or stopped half way leaves nothing behind that nobody works on."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from store.sample_jobs import make_job

from penstock.dispatch.local import LocalDispatch
from penstock.domain.jobs import Attempt, Claim, Job, State
from penstock.errors import StoreUnavailable
from penstock.store.connect import open_database
from penstock.store.database import Database
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.webhooks import delivery_rows
from penstock.webhooks.delivery import DeliveryWorker


@pytest.fixture
async def store(store_url) -> AsyncGenerator[Database]:
    store = open_database(store_url)
    yield store
    await store.close()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_dispatch_that_is_begun_again_runs_no_job_twice(store):
    await store.write(job_rows.insert_all, [make_job(id="job_1")], time.time())
    runs, begun = list[int](), asyncio.Event()

    async def run(claim: Claim, _job: Job, _seat: Any) -> None:
        runs.append(claim.epoch)
        begun.set()
        await asyncio.Event().wait()

    dispatch = LocalDispatch(store, lambda _vendor: 4, 10, time.time)
    await dispatch.start(run)
    await asyncio.wait_for(begun.wait(), 300)
    await dispatch.start(run)
    await store.read(job_rows.find, "job_1")  # whatever was to be claimed would have been by now
    await dispatch.stop()
    assert runs == [1]
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "dispatch"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_dispatch_stops_though_the_store_does_not_answer(store, monkeypatch):
    await store.write(job_rows.insert_all, [make_job(id="job_1")], time.time())
    begun = asyncio.Event()

    async def run(_claim: Claim, _job: Job, _seat: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def refuse(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable

    dispatch = LocalDispatch(store, lambda _vendor: 4, 10, time.time)
    await dispatch.start(run)
    await asyncio.wait_for(begun.wait(), 60)
    monkeypatch.setattr(store, "write", refuse)
    await dispatch.stop()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "dispatch"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_after_a_restart_a_job_between_two_orders_takes_no_seat_of_an_open_order(store):
    order = Attempt(number=1, vendor="sim", model="m", credential="c", reference="r", started_at=1.0)
    running = {"state": State.RUNNING, "started_at": 1.0, "vendor": "sim"}
    written = [make_job(id="job_1", **running), make_job(id="job_2", **running, attempts=(order,))]
    await store.write(job_rows.insert_all, written, time.time())
    seats = dict[str, asyncio.Event]()
    held = asyncio.Event()

    async def run(claim: Claim, _job: Job, seat: asyncio.Event) -> None:
        seats[claim.job_id] = seat
        if len(seats) == len(written):
            held.set()
        await asyncio.Event().wait()

    dispatch = LocalDispatch(store, lambda _vendor: 1, 10, time.time)
    await dispatch.start(run)
    await asyncio.wait_for(held.wait(), 300)
    granted = {job_id: seat.is_set() for job_id, seat in seats.items()}
    await dispatch.stop()

    assert granted == {"job_1": False, "job_2": True}


async def test_webhooks_claimed_as_delivery_stops_are_anyones_at_once(store, monkeypatch):
    wanted = {"url": "https://receiver.example/x", "events": ["job.queued"], "base_url": ""}
    await store.write(job_rows.insert_all, [make_job(id="job_1", webhook=wanted)], time.time())
    write, claims, claiming = store.write, list[Any](), asyncio.Event()

    async def tell(function: Any, *args: Any, **options: Any) -> Any:
        writing = asyncio.ensure_future(write(function, *args, **options))
        if function is delivery_rows.claim:
            claims.append(writing)
            asyncio.get_running_loop().call_soon(claiming.set)
        return await asyncio.shield(writing)

    async def fetch() -> Any:
        raise AssertionError

    monkeypatch.setattr(store, "write", tell)
    delivery = DeliveryWorker(store, fetch, lambda _base_url: None, time.time)
    await delivery.start()
    await claiming.wait()
    await delivery.stop()
    await asyncio.gather(*claims)
    [(lease, due_at)] = await store.read(
        lambda connection: connection.exec_driver_sql("SELECT lease, due_at FROM deliveries").all()
    )
    assert lease is None
    assert due_at <= time.time()
