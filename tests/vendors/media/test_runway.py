"""Runway over HTTP: how long a prompt may be, where it goes then, and what is asked in whose words."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from conftest import Server
from doubles.media import MediaDouble, Plan, listening
from doubles.runway import RunwayDouble
from vendors.double import drop_after, reply

GEN = {"promptText": "a mill", "ratio": "1280:720", "duration": 2}


@pytest.fixture
async def double() -> AsyncGenerator[MediaDouble]:
    async with listening(RunwayDouble()) as double:
        yield double


async def generate(server: Server, model: str = "vendorb_video_31", **params: Any) -> dict[str, Any]:
    return await server.generate(model, **params)


def bodies(double: MediaDouble) -> list[Any]:
    return [order.body for order in double.orders.values()]


@pytest.mark.parametrize(
    ("model", "params"),
    [
        ("vendorb_video_31", {"prompt": "x" * 1001}),
        ("vendorb_video_31", {"prompt": "🛶" * 501}),
        ("runway_gen45_text_to_video", {**GEN, "promptText": "🛶" * 501}),
    ],
)
async def test_a_prompt_that_is_too_long_is_refused_without_a_call(start, double, model, params):
    server = await start(double.settings())
    error = (await generate(server, model, **params))["error"]
    assert (error["code"], error["retryable"]) == ("upstream_rejected", False)
    assert "at most 1000" in error["message"]
    assert double.seen == []


async def test_a_prompt_that_is_too_long_goes_to_another_route(start, double):
    routes = '[{vendor = "runway"}, {vendor = "sim", order = 2}]'
    server = await start(double.settings() + f'[[models]]\nid = "vendorb_video_31"\nroutes = {routes}\n')
    job = await generate(server, prompt="x" * 1001, durationSeconds=4)
    assert (job["status"], job["vendor"]) == ("succeeded", "sim")
    assert double.seen == []


async def test_the_longest_prompt_is_taken(start, double):
    server = await start(double.settings())
    assert (await generate(server, prompt="🛶" * 500, durationSeconds=4))["status"] == "succeeded"


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("promptText", "x" * 1001),
        ("promptText", ""),
        ("ratio", "1920:1080"),
        ("duration", 11),
        ("duration", 2.5),
        ("seed", -1),
        ("contentModeration", {"publicFigureThreshold": "high"}),
        ("contentModeration", {"threshold": "low"}),
        ("outputFormat", "prores"),
    ],
)
async def test_its_own_params_are_checked(start, double, param, value):
    server = await start(double.settings())
    body = {"model": "runway_gen45_text_to_video", "input": [{"params": {**GEN, param: value}}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["loc"].startswith(f"input.0.params.{param}")
    assert double.seen == []


async def test_the_catalogues_params_in_its_words(start, double):
    server = await start(double.settings())
    await generate(server, prompt="a mill", aspectRatio="9:16", resolution="1080p", durationSeconds=4)
    assert bodies(double) == [
        {"model": "veo3.1", "promptText": "a mill", "ratio": "1080:1920", "duration": 4, "audio": True}
    ]


@pytest.mark.parametrize("name", ["veo3.1_fast", "gen4.5"])
async def test_a_route_may_name_another_of_its_models(start, double, name):
    entry = f'[[models]]\nid = "vendorb_video_31"\nvendor = "runway"\nmodel = "{name}"\n'
    server = await start(double.settings() + entry)
    assert (await generate(server, prompt="a mill", durationSeconds=4))["status"] == "succeeded"
    assert bodies(double)[0]["model"] == name


async def test_a_seed_is_chosen_and_echoed(start, double):
    server = await start(double.settings())
    job = await generate(server, "runway_gen45_text_to_video", **GEN)
    assert bodies(double)[0]["seed"] == job["seed"]


async def test_its_version_is_a_setting(start, double):
    server = await start(double.settings(version="2030-01-01"))
    error = (await generate(server, prompt="a mill"))["error"]
    assert (error["code"], error["upstream"]["message"]) == ("upstream_rejected", "a version is required")
    assert double.seen[0].headers["x-runway-version"] == "2030-01-01"


async def test_a_missing_job_that_only_a_proxy_tells_of_is_asked_for_again(start, double):
    server = await start(double.settings())
    double.fault(reply(404, b"<html>Not Found</html>"), *double.poll_call, times=2)
    assert (await generate(server, prompt="a mill", durationSeconds=4))["status"] == "succeeded"


async def test_a_cancel_whose_answer_is_lost_ends_the_job(start, double):
    server = await start(double.settings())
    double.plans.append(Plan(polls=10**6))
    job = await server.submit("vendorb_video_31", prompt="a mill")
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        async for line in stream.aiter_lines():
            if '"generating"' in line:
                break
    double.fault(drop_after, "DELETE", "/v1/tasks/")
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    job = await server.finish(job["id"])
    assert job["done"]
    assert job["charged"] is False
