"""Orders whose answer was lost, at vendors that list orders: found wherever they are, placed again only if absent."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from conftest import Server, Start
from doubles.media import MediaDouble, Plan, Verdict, Wish, listening
from doubles.tripo import TripoDouble
from vendors.double import HttpDouble, drop, drop_after, reply
from vendors.test_media_contract import DOUBLES, check, generate, submit

from penstock.simulator.samples import make_preview

TEXTURED = 0
USAGE = ("GET", "/v3/account/usage")
LISTING = [kind for kind in DOUBLES if kind.finds and kind.vendor not in ("comfyui", "veo")]
EMPTY = json.dumps({"code": 0, "data": {"items": []}}).encode()


@pytest.fixture
async def tripo() -> AsyncGenerator[TripoDouble]:
    async with listening(TripoDouble()) as double:
        assert isinstance(double, TripoDouble)
        yield double


def fill(double: TripoDouble, number: int, **more: Any) -> None:
    """Orders of others, all of them younger than any that was placed before."""
    for _ in range(number):
        double.place({"model": "v3.1-20260211", "texture": True, "texture_seed": 1, **more}, Wish("model"))


@pytest.mark.parametrize("kind", LISTING, ids=lambda kind: f"{kind.vendor}{kind.mode}")
async def test_an_order_that_never_arrived_is_placed_again(kind: type[MediaDouble], start: Start):
    async with listening(kind()) as double:
        server = await start(double.settings(lookup_seconds=0.5))
        done = await generate(server, double)
        double.fault(drop, *double.order_call)
        job = await generate(server, double)
        assert (done["status"], job["status"]) == ("succeeded", "succeeded"), job["error"]
        assert [attempt["outcome"] for attempt in job["attempts"]] == ["never_arrived", "succeeded"]
        assert len(double.orders) == 2


async def test_it_is_found_behind_pages_of_others(start: Start, tripo: TripoDouble):
    tripo.page = 7

    async def take_and_bury(double: HttpDouble, request: Any) -> Any:
        await double.play(request)
        fill(tripo, 60)
        return await drop(double, request)

    tripo.fault(take_and_bury, *tripo.order_call)
    server = await start(tripo.settings(lookup_seconds=5))
    job = await generate(server, tripo)
    assert (job["status"], len(job["attempts"])) == ("succeeded", 1), job["error"]
    assert tripo.count(*tripo.order_call) == 1


@pytest.mark.parametrize("ahead", [-7200.0, 7200.0])
async def test_clocks_may_differ(start: Start, tripo: TripoDouble, ahead: float):
    tripo.ahead = ahead
    tripo.fault(drop_after, *tripo.order_call)
    server = await start(tripo.settings(lookup_seconds=1))
    job = await generate(server, tripo)
    assert (job["status"], len(job["attempts"]), len(tripo.orders)) == ("succeeded", 1, 1)


async def test_a_list_that_lags_fails_or_is_empty_for_a_moment_proves_nothing(start: Start, tripo: TripoDouble):
    tripo.lag = 1.0
    tripo.fault(reply(200, EMPTY), *USAGE, times=2)
    tripo.fault(reply(503, b"{}"), *USAGE, times=2)
    tripo.fault(reply(200, EMPTY), *USAGE, times=3)
    tripo.fault(drop_after, *tripo.order_call)
    server = await start(tripo.settings(lookup_seconds=0.5))
    job = await generate(server, tripo)
    assert (job["status"], len(job["attempts"]), len(tripo.orders)) == ("succeeded", 1, 1)


async def order_plain(server: Server) -> dict[str, Any]:
    """A job whose order carries no seed of ours: the caller has chosen it, and there is no texture."""
    upload = await server.client.post("/api/v1/files", files={"file": ("cat.png", make_preview(7), "image/png")})
    file = {"file_token": upload.json()["file_token"]}
    params = {"file": file, "texture": False, "pbr": False, "model_seed": 7}
    body = {"model": "vendora_image_to_model", "input": [{"params": params}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 202, response.text
    return await server.finish(response.json()["id"])


async def test_one_without_a_mark_is_placed_again_only_if_none_like_it_is_there(start: Start, tripo: TripoDouble):
    server = await start(tripo.settings(lookup_seconds=0.5))
    first = await order_plain(server)
    tripo.fault(drop, *tripo.order_call)
    second = await order_plain(server)
    assert (first["status"], second["status"], len(tripo.orders)) == ("succeeded", "succeeded", 2)
    tripo.fault(drop_after, *tripo.order_call)
    third = await order_plain(server)
    assert (third["error"]["code"], len(tripo.orders)) == ("upstream_outcome_unknown", 3)


async def test_equal_jobs_whose_orders_are_lost_each_find_their_own(start: Start, tripo: TripoDouble):
    server = await start(tripo.settings(lookup_seconds=1, max_concurrent=8))
    tripo.plans.extend(Plan(polls=4) for _ in range(20))
    for act in (drop_after, drop, drop_after, drop):
        tripo.fault(act, *tripo.order_call)
    accepted = [await submit(server, tripo, TEXTURED) for _ in range(8)]
    done = await asyncio.gather(*(server.finish(job["id"]) for job in accepted))
    for job in done:
        check(job, Verdict(None))
    assert len(tripo.orders) == len(done)
    assert {job["attempts"][-1]["upstream_id"] for job in done} == tripo.orders.keys()


async def test_what_a_vendor_does_not_echo_is_no_proof(start: Start, tripo: TripoDouble):
    """Its list has an order that may be ours: it tells nothing of the seed by which we would know."""

    async def take_and_forget(double: HttpDouble, request: Any) -> Any:
        await double.play(request)
        for order in tripo.orders.values():
            order.body.pop("texture_seed")
        return await drop(double, request)

    tripo.fault(take_and_forget, *tripo.order_call)
    server = await start(tripo.settings(lookup_seconds=0.5))
    job = await generate(server, tripo)
    assert (job["error"]["code"], len(tripo.orders)) == ("upstream_outcome_unknown", 1)
