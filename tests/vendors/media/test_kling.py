"""Kling beyond what every media vendor must do: keys and tokens, orders in its words, lost orders, its call-backs."""

import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, Start, running
from doubles.kling import ACCESS, SECRET, KlingDouble, check_token, wish_of
from doubles.media import Plan, listening
from ports import free_port
from pydantic import ValidationError
from vendors.double import drop, drop_after, reply

from penstock.clocks import Clocks
from penstock.settings.tables import load
from penstock.vendor_api.generation import Order, VendorFolders
from penstock.vendors.kling import Kling, KlingOptions

VIDEO = "vendorb_video_31"
MILL = {"prompt": "a mill", "durationSeconds": 4}
FOLDERS = VendorFolders(Path("nowhere"), Path("nowhere"))


@pytest.fixture
async def kling() -> AsyncGenerator[KlingDouble]:
    async with listening(KlingDouble()) as double:
        yield double


def ordered(double: KlingDouble) -> dict[str, Any]:
    (order,) = double.orders.values()
    return order.body


# -- keys and tokens


@pytest.mark.parametrize("key", ["a-key-without-one", ":only-a-secret", "only-an-access-key:"])
def test_a_key_is_two(key: str):
    with pytest.raises(ValidationError, match="the access key and the secret key with a colon between them") as caught:
        KlingOptions(type="kling", api_key=key)
    assert key.strip(":") not in str(caught.value)


def token(vendor: Kling) -> str:
    return next(vendor.poll({"id": "k1"})).headers["authorization"]


def test_a_token_is_kept_while_it_is_good():
    now = 0.0
    folders = VendorFolders(Path("nowhere"), Path("nowhere"), Clocks(lambda: now))
    vendor = Kling(KlingOptions(type="kling", api_key=f"{ACCESS}:{SECRET}"), folders)
    told: dict[float, str] = {}
    for now in (1e9, 1e9 + 1499, 1e9 + 1500, 1e9 + 2999, 1e9 + 3000, 1e9 - 60):
        told[now] = token(vendor)
        assert check_token(told[now], now) is None
    first, same, second, also, third, back = told.values()
    assert first == same != second == also != third
    assert back not in (first, second, third), "a clock that was set back needs a new one"


async def test_no_one_is_told_a_token(start: Start, kling: KlingDouble):
    server = await start(kling.settings(api_key=f"{ACCESS}:wrong"))
    job = await server.generate(VIDEO, **MILL)
    assert job["error"]["code"] == "upstream_auth"
    shown = {seen.headers["Authorization"].removeprefix("Bearer ") for seen in kling.seen}
    assert job["error"]["upstream"]["code"] == "1002"
    for secret in (*shown, ACCESS, "wrong"):
        assert secret not in json.dumps(job)


# -- words


@pytest.mark.parametrize(
    ("given", "asked", "lost"),
    [
        (
            {},
            {"duration": "10"},
            [
                "durationSeconds` 8 is not supported by Kling: 10 seconds were requested instead.",
                "resolution` 720p is not supported by Kling: its mode pro makes 1080p.",
            ],
        ),
        (
            {"durationSeconds": 6, "resolution": "1080p"},
            {"duration": "5"},
            ["durationSeconds` 6 is not supported by Kling: 5 seconds were requested instead."],
        ),
        (
            {"durationSeconds": 4, "aspectRatio": "9:16", "resolution": "1080p", "personGeneration": "dont_allow"},
            {"duration": "5", "aspect_ratio": "9:16"},
            [
                "durationSeconds` 4 is not supported by Kling: 5 seconds were requested instead.",
                "personGeneration` dont_allow is not supported by Kling and was ignored.",
            ],
        ),
    ],
)
async def test_in_other_words(start: Start, kling: KlingDouble, given: Any, asked: Any, lost: list[str]):
    server = await start(kling.settings())
    job = await server.generate(VIDEO, prompt="a mill", **given)
    assert job["status"] == "succeeded", job["error"]
    usual = {"model_name": "kling-v2-5-turbo", "prompt": "a mill", "mode": "pro", "aspect_ratio": "16:9"}
    assert ordered(kling) == usual | asked | {"external_task_id": f"{job['id']}-1"}
    assert job["warnings"][1:] == [f"`{sentence}" for sentence in lost]


async def test_a_size_that_kling_chose_is_noted(start: Start, kling: KlingDouble):
    server = await start(kling.settings())
    kling.plans.append(Plan(polls=10))
    job = await server.submit(VIDEO, **MILL, resolution="1080p")
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        async for line in stream.aiter_lines():
            if '"generating"' in line:
                break
    (order,) = kling.orders.values()
    order.wish = wish_of({"mode": "std"})
    job = await server.finish(job["id"])
    assert job["status"] == "succeeded", job["error"]
    assert any("1280 x 720" in warning for warning in job["warnings"])


async def test_a_prompt_that_is_too_long_is_not_sent(start: Start, kling: KlingDouble):
    server = await start(kling.settings())
    job = await server.generate(VIDEO, prompt="ü" * 2501)
    assert job["error"]["code"] == "upstream_rejected"
    assert job["error"]["message"] == "The prompt has 2501 characters. Kling takes at most 2500."
    assert kling.seen == []
    assert (await server.generate(VIDEO, prompt="🌊" * 2500, durationSeconds=4))["status"] == "succeeded"


async def test_klings_own_params_are_checked(start: Start, kling: KlingDouble):
    server = await start(kling.settings())
    wrong = {
        "duration": 5,
        "cfg_scale": 1.1,
        "sound": True,
        "mode": "best",
        "external_task_id": "x",
        "callback_url": "x",
    }
    body = {"model": "kling_text_to_video", "input": [{"params": {"prompt": "a mill", **wrong}}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400
    assert {detail["loc"].rpartition(".")[2] for detail in response.json()["error"]["details"]} == set(wrong)


def test_an_id_is_no_path():
    vendor = Kling(KlingOptions(type="kling"), FOLDERS)
    assert next(vendor.poll({"id": "../x?y"})).url == "/v1/videos/text2video/..%2Fx%3Fy"
    assert next(vendor.submit(Order("job_1-1", "x", {"prompt": "a mill"}))).headers["authorization"]


# -- lost orders


async def test_two_equal_lost_orders_find_one_each(start: Start, kling: KlingDouble):
    server = await start(kling.settings())
    kling.fault(drop_after, *kling.order_call, times=2)
    jobs = [await server.submit(VIDEO, **MILL) for _ in range(2)]
    ended = [await server.finish(job["id"]) for job in jobs]
    for job in ended:
        assert job["status"] == "succeeded", job["error"]
        assert kling.orders[job["attempts"][-1]["upstream_id"]].body["external_task_id"] == f"{job['id']}-1"
        assert len(job["warnings"]) == 3, "one says that the price is not known"
    assert kling.count(*kling.order_call) == 2


async def test_a_list_without_it_is_proof_only_once_it_was_read(start: Start, kling: KlingDouble):
    server = await start(kling.settings(lookup_seconds=0.1))
    kling.place({"external_task_id": "another"}, wish_of({}))
    kling.fault(drop, *kling.order_call)
    kling.fault(reply(503), "GET", "/v1/videos/text2video?")
    job = await server.generate(VIDEO, **MILL)
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["never_arrived", "succeeded"]
    assert kling.count(*kling.order_call) == 2
    assert kling.count("GET", "/v1/videos/text2video?") >= 4


# -- call-backs


@asynccontextmanager
async def reachable(kling: KlingDouble, folder: Path, empty_store: Path, **more: Any) -> AsyncGenerator[Server]:
    port = free_port()
    shutil.copy(empty_store, folder)
    config = folder / "penstock.toml"
    config.write_text(
        f'[server]\npublic_url = "http://127.0.0.1:{port}"\n{kling.settings(**{"poll_seconds": 300, **more})}'
    )
    async with running(load(config, {}, {"data": folder}), port) as server:
        yield server


@pytest.mark.parametrize(("ending", "code"), [("ok", None), ("policy", "content_filtered")])
async def test_a_call_back_ends_the_wait(kling: KlingDouble, tmp_path: Path, empty_store: Path, ending, code):
    kling.plans.append(Plan(ending, seconds=0.3))
    async with reachable(kling, tmp_path, empty_store) as server:
        job = await server.generate(VIDEO, **MILL)
        assert (job["error"] or {}).get("code") == code
        address = ordered(kling)["callback_url"]
        assert address.startswith(f"{server.url}/vendor/v1/kling/{job['id']}-1/")


NO_TASKS = (
    b"",
    b"{",
    b"\xff",
    b"[]",
    b"{}",
    b"[" * 100_000,
    b'{"task_id": "k1"}',
    b'{"task_id": 7, "task_status": "x"}',
)


async def test_what_is_no_task_is_no_call_back(kling: KlingDouble, tmp_path: Path, empty_store: Path):
    kling.plans.append(Plan(polls=0))
    async with reachable(kling, tmp_path, empty_store) as server:
        job = await server.submit(VIDEO, **MILL)
        async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
            async for line in stream.aiter_lines():
                if '"generating"' in line:
                    break
        (order,) = kling.orders.values()
        for body in NO_TASKS:
            assert (await server.client.post(order.webhook, content=body)).status_code == 404, body[:40]
        assert order.polls == 0
        assert (await server.client.post(order.webhook, json=kling.tell(order, over=False))).status_code == 200
        assert (await server.finish(job["id"]))["status"] == "succeeded"


async def test_it_need_not_call_back(kling: KlingDouble, tmp_path: Path, empty_store: Path):
    async with reachable(kling, tmp_path, empty_store, poll_seconds=0.02, webhooks=False) as server:
        job = await server.generate(VIDEO, **MILL)
    assert job["status"] == "succeeded", job["error"]
    assert "callback_url" not in ordered(kling)
