"""Meshy and Luma beyond what every media vendor must do: orders in their words, lost orders, Luma's call-backs."""

import base64
import io
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, Start, running
from doubles.luma import LumaDouble, wish_of
from doubles.media import MediaDouble, Plan, listening
from doubles.meshy import MeshyDouble
from PIL import Image
from ports import free_port
from vendors.double import drop, drop_after, reply
from vendors.test_media_contract import generate

from penstock.settings.tables import load
from penstock.simulator.samples import make_preview

MODEL, VIDEO = "vendora_image_to_model", "vendorb_video_31"
MILL = {"prompt": "a mill", "durationSeconds": 4}


@pytest.fixture
async def meshy() -> AsyncGenerator[MeshyDouble]:
    async with listening(MeshyDouble()) as double:
        yield double


@pytest.fixture
async def luma() -> AsyncGenerator[LumaDouble]:
    async with listening(LumaDouble()) as double:
        yield double


async def upload(server: Server, data: bytes) -> dict[str, str]:
    response = await server.client.post("/api/v1/files", files={"file": ("cat", data, "application/octet-stream")})
    return {"file_token": response.json()["file_token"]}


def ordered(double: MediaDouble) -> dict[str, Any]:
    """The body of the one order that was placed."""
    (order,) = double.orders.values()
    return order.body


async def until_generating(server: Server, job: dict[str, Any]) -> None:
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        async for line in stream.aiter_lines():
            if '"generating"' in line:
                break


def upstream_id(job: dict[str, Any]) -> str:
    return job["attempts"][-1]["upstream_id"]


# -- Meshy


async def test_meshy_gets_the_picture_and_makes_a_glb(start: Start, meshy: MeshyDouble):
    server = await start(meshy.settings())
    job = await server.generate(MODEL, file=await upload(server, make_preview(7)), pbr=False)
    assert job["status"] == "succeeded", job["error"]
    body = ordered(meshy)
    assert base64.b64decode(body.pop("image_url").removeprefix("data:image/png;base64,")) == make_preview(7)
    assert body == {"ai_model": "latest", "should_texture": True, "enable_pbr": False, "target_formats": ["glb"]}
    assert {output["role"] for output in job["outputs"]} == {"primary", "preview"}
    assert sorted(job["warnings"][1:]) == [
        "`model_seed` is not supported by Meshy and was ignored.",
        "`model_version` v3.1-20260211 is not run here: made by Meshy's latest.",
    ]


@pytest.mark.parametrize(
    ("limit", "asked", "warned"),
    [(48, 100, True), (100, 100, False), (10_000, 9500, False), (315_789, 299_999, False), (400_000, 300_000, True)],
)
async def test_meshy_face_limit(start: Start, meshy: MeshyDouble, limit: int, asked: int, warned: bool):
    server = await start(meshy.settings())
    job = await server.generate(MODEL, file=await upload(server, make_preview(7)), face_limit=limit)
    assert job["status"] == "succeeded", job["error"]
    body = ordered(meshy)
    assert (body["should_remesh"], body["topology"], body["target_polycount"]) == (True, "triangle", asked)
    told = f"`face_limit` {limit} is not supported by Meshy: about {asked} faces were requested instead."
    assert (told in job["warnings"]) == warned
    assert len(job["warnings"]) == 3 + warned, "one says that the price is not known"


async def test_a_route_names_another_of_meshys_models(start: Start, meshy: MeshyDouble):
    route = f'[[models]]\nid = "{MODEL}"\nroutes = [{{vendor = "meshy", model = "meshy-6"}}]\n'
    server = await start(f"{meshy.settings()}\n{route}")
    job = await server.generate(MODEL, file=await upload(server, make_preview(7)), model_version="P1-20260311")
    assert ordered(meshy)["ai_model"] == "meshy-6"
    assert "`model_version` P1-20260311 is not run here: made by Meshy's meshy-6." in job["warnings"]


async def test_meshy_is_not_asked_for_what_it_cannot_read(start: Start, meshy: MeshyDouble):
    picture = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(picture, "WEBP")
    server = await start(meshy.settings())
    job = await server.generate(MODEL, file=await upload(server, picture.getvalue()))
    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_rejected")
    assert job["error"]["message"] == "Meshy takes JPEG and PNG pictures only."
    assert meshy.seen == []


async def test_an_order_that_meshy_never_got_is_placed_again(start: Start, meshy: MeshyDouble):
    """Its list does not say what was ordered: only that all in it are other jobs'."""
    server = await start(meshy.settings(lookup_seconds=0.5))
    first = await generate(server, meshy)
    meshy.fault(drop, *meshy.order_call)
    second = await generate(server, meshy)
    assert (first["status"], second["status"], len(meshy.orders)) == ("succeeded", "succeeded", 2), second["error"]
    assert [attempt["outcome"] for attempt in second["attempts"]] == ["never_arrived", "succeeded"]


async def test_an_order_at_meshy_that_nobody_knows_may_be_ours(start: Start, meshy: MeshyDouble):
    server = await start(meshy.settings(lookup_seconds=0.5))
    meshy.fault(drop_after, *meshy.order_call)
    job = await generate(server, meshy)
    assert (job["error"]["code"], len(meshy.orders)) == ("upstream_outcome_unknown", 1)


async def test_meshy_tells_its_queue(start: Start, meshy: MeshyDouble):
    meshy.plans.append(Plan(polls=3))
    server = await start(meshy.settings())
    job = await server.submit("meshy_image_to_3d", file=await upload(server, make_preview(7)))
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        told = [json.loads(line[5:]) async for line in stream.aiter_lines() if line.startswith("data:")]
    assert any(event["data"]["queue_position"] == 3 for event in told)


async def test_meshys_own_params_are_checked(start: Start, meshy: MeshyDouble):
    server = await start(meshy.settings())
    wrong = {
        "target_polycount": 99,
        "texture_prompt": "x" * 601,
        "texture_image_url": "file:///etc/passwd",
        "input_task_id": "of another account",
        "target_formats": ["obj"],
    }
    params = {"file": {"url": "https://example.com/cat.png"}, **wrong}
    body = {"model": "meshy_image_to_3d", "input": [{"params": params}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400
    told = {detail["loc"].rpartition(".")[2] for detail in response.json()["error"]["details"]}
    assert told == set(wrong)


# -- Luma: words


@pytest.mark.parametrize(
    ("given", "asked", "lost"),
    [
        ({}, {"duration": "9s"}, ["durationSeconds` 8 is not supported by Luma: 9 seconds were requested instead."]),
        (
            {"durationSeconds": 6},
            {"duration": "5s"},
            ["durationSeconds` 6 is not supported by Luma: 5 seconds were requested instead."],
        ),
        (
            {"durationSeconds": 4, "aspectRatio": "9:16", "resolution": "1080p", "compressionQuality": "LOSSLESS"},
            {"duration": "5s", "aspect_ratio": "9:16", "resolution": "1080p"},
            [
                "durationSeconds` 4 is not supported by Luma: 5 seconds were requested instead.",
                "compressionQuality` lossless is not supported by Luma and was ignored.",
            ],
        ),
        (
            {"durationSeconds": 4, "personGeneration": "dont_allow"},
            {"duration": "5s"},
            [
                "durationSeconds` 4 is not supported by Luma: 5 seconds were requested instead.",
                "personGeneration` dont_allow is not supported by Luma and was ignored.",
            ],
        ),
    ],
)
async def test_luma_in_other_words(start: Start, luma: LumaDouble, given: Any, asked: Any, lost: list[str]):
    server = await start(luma.settings())
    job = await server.generate(VIDEO, prompt="a mill", **given)
    assert job["status"] == "succeeded", job["error"]
    usual = {"model": "ray-2", "prompt": "a mill", "aspect_ratio": "16:9", "resolution": "720p"}
    assert ordered(luma) == usual | asked
    assert job["warnings"][1:] == [f"`{sentence}" for sentence in lost]
    (primary,) = (output for output in job["outputs"] if output["role"] == "primary")
    assert primary["duration_seconds"] == pytest.approx(int(asked["duration"][0]), abs=0.25)


async def test_what_luma_was_not_asked_for_is_no_success(start: Start, luma: LumaDouble):
    server = await start(luma.settings())
    luma.plans.append(Plan(polls=5))
    job = await server.submit(VIDEO, **MILL)
    await until_generating(server, job)
    (order,) = luma.orders.values()
    order.wish = wish_of({"duration": "9s"})
    assert (await server.finish(job["id"]))["error"]["code"] == "bad_output"


async def test_lumas_keyframes_are_addresses(start: Start, luma: LumaDouble):
    server = await start(luma.settings())
    for frame in (
        {"type": "generation", "id": "of another account"},
        {"type": "image", "url": "data:image/png;base64,AAAA"},
        {"type": "image"},
    ):
        params = {"prompt": "a mill", "keyframes": {"frame0": frame}}
        body = {"model": "luma_text_to_video", "input": [{"params": params}]}
        response = await server.client.post("/model/v1/generation", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["param"].startswith("input.0.params.keyframes.frame0")


# -- Luma: orders whose answer was lost


async def test_two_equal_lost_orders_find_one_each(start: Start, luma: LumaDouble):
    server = await start(luma.settings())
    luma.fault(drop_after, *luma.order_call, times=2)
    first, second = await server.submit(VIDEO, **MILL), await server.submit(VIDEO, **MILL)
    ended = [await server.finish(job["id"]) for job in (first, second)]
    assert [job["status"] for job in ended] == ["succeeded"] * 2
    assert {upstream_id(job) for job in ended} == set(luma.orders)
    assert luma.count(*luma.order_call) == 2
    warning = "`durationSeconds` 4 is not supported by Luma: 5 seconds were requested instead."
    assert ended[0]["warnings"][1:] == [warning]


async def test_a_lost_order_is_not_an_equal_one_of_before(start: Start, luma: LumaDouble):
    server = await start(luma.settings())
    before = await server.generate(VIDEO, **MILL)
    luma.fault(drop_after, *luma.order_call)
    after = await server.generate(VIDEO, **MILL)
    assert after["status"] == "succeeded", after["error"]
    assert upstream_id(before) != upstream_id(after)


async def test_a_lost_order_is_none_that_differs(start: Start, luma: LumaDouble):
    server = await start(luma.settings(lookup_seconds=0.1))
    for wrong in ({"prompt": "a mill!"}, {"duration": "9s"}, {"callback_url": "https://elsewhere.example/x"}):
        body = {"model": "ray-2", "prompt": "a mill", "aspect_ratio": "16:9", "resolution": "720p", "duration": "5s"}
        luma.place(body | wrong, wish_of(body))
    luma.fault(drop, *luma.order_call)
    luma.fault(reply(503), "GET", "/dream-machine/v1/generations?")
    job = await server.generate(VIDEO, **MILL)
    assert job["error"]["code"] == "upstream_outcome_unknown"
    assert luma.count(*luma.order_call) == 1
    assert luma.count("GET", "/dream-machine/v1/generations?limit=50&offset=0") >= 2


# -- Luma: call-backs


@asynccontextmanager
async def reachable(luma: LumaDouble, folder: Path, empty_store: Path, **more: Any) -> AsyncGenerator[Server]:
    """A gateway that knows its own address, and polls so seldom that only a call-back helps."""
    port = free_port()
    shutil.copy(empty_store, folder)
    config = folder / "penstock.toml"
    settings = luma.settings(**{"poll_seconds": 300, **more})
    config.write_text(f'[server]\npublic_url = "http://127.0.0.1:{port}"\n{settings}')
    async with running(load(config, {}, {"data": folder}), port) as server:
        yield server


async def test_a_call_back_ends_the_wait(luma: LumaDouble, tmp_path: Path, empty_store: Path):
    luma.plans.append(Plan(seconds=0.3))
    async with reachable(luma, tmp_path, empty_store) as server:
        job = await server.generate(VIDEO, **MILL)
        assert job["status"] == "succeeded", job["error"]
        address = ordered(luma)["callback_url"]
        assert address.startswith(f"{server.url}/vendor/v1/luma/{job['id']}-1/")
        assert address not in json.dumps(job)


async def test_a_call_back_of_a_failure(luma: LumaDouble, tmp_path: Path, empty_store: Path):
    luma.plans.append(Plan("moderated", seconds=0.1))
    async with reachable(luma, tmp_path, empty_store) as server:
        job = await server.generate(VIDEO, **MILL)
    assert job["error"]["code"] == "content_filtered"


NO_GENERATIONS = (
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b"{}",
    b"[" * 100_000,
    b'{"id": "g1"}',
    b'{"id": 7, "state": "completed"}',
    b'{"id": "", "state": "completed"}',
    b'{"id": "g1", "state": null}',
)


async def test_what_is_no_generation_is_no_call_back(luma: LumaDouble, tmp_path: Path, empty_store: Path):
    luma.plans.append(Plan(polls=0))
    async with reachable(luma, tmp_path, empty_store) as server:
        job = await server.submit(VIDEO, **MILL)
        await until_generating(server, job)
        (order,) = luma.orders.values()
        for body in NO_GENERATIONS:
            assert (await server.client.post(order.webhook, content=body)).status_code == 404, body[:40]
        whole = luma.tell(order, over=False)
        assert (await server.client.post(f"{order.webhook[:-1]}_", json=whole)).status_code == 404
        assert order.polls == 0
        assert (await server.client.post(order.webhook, json=whole)).status_code == 200
        assert (await server.finish(job["id"]))["status"] == "succeeded"


async def test_a_lost_order_is_known_by_its_call_back(luma: LumaDouble, tmp_path: Path, empty_store: Path):
    body = {"model": "ray-2", "prompt": "a mill", "aspect_ratio": "16:9", "resolution": "720p", "duration": "5s"}
    luma.place(body, wish_of(body))  # the account is used elsewhere too
    luma.fault(drop_after, *luma.order_call)
    async with reachable(luma, tmp_path, empty_store, poll_seconds=0.02) as server:
        job = await server.generate(VIDEO, **MILL)
    assert job["status"] == "succeeded", job["error"]
    assert "callback_url" in luma.orders[upstream_id(job)].body


async def test_luma_need_not_call_back(luma: LumaDouble, tmp_path: Path, empty_store: Path):
    async with reachable(luma, tmp_path, empty_store, poll_seconds=0.02, webhooks=False) as server:
        job = await server.generate(VIDEO, **MILL)
    assert job["status"] == "succeeded", job["error"]
    assert "callback_url" not in ordered(luma)
