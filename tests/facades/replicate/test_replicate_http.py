"""Replicate's dialect over plain HTTP: repeats, names of models, films inline, and bodies that are wrong."""

import base64
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from conftest import SIMULATOR, Server, Start

from penstock.jobs.dialects.replicate import version_of
from penstock.store.queries.jobs import job_rows

PATH = "/replicate/v1/models/penstock/sim_text_to_video/predictions"
QUICK: Any = {"prompt": "a boat", "script": {"latency": 0.05}}
NEVER: Any = {"script": {"ending": "never"}}
AI_SDK = {"user-agent": "ai/7.0.169 ai-sdk/replicate/3.0.46 runtime/node.js/22"}


async def post(server: Server, path: str = PATH, headers: Any = None, **body: Any) -> httpx.Response:
    return await server.client.post(path, json={"input": NEVER, **body}, headers=headers)


async def test_a_key_finds_the_one_prediction(server: Server) -> None:
    headers = {"idempotency-key": "one", "prefer": "wait"}
    first, second = [await post(server, headers=headers, input=QUICK) for _ in range(2)]

    assert first.json()["id"] == second.json()["id"]
    assert second.headers["idempotency-replayed"] == "true"
    assert (await post(server, headers={"idempotency-key": "one"})).status_code == 422
    assert len((await server.client.get("/replicate/v1/predictions")).json()["results"]) == 1


async def test_every_scheme_of_keys(server: Server, subtests: pytest.Subtests) -> None:
    for scheme in ("Token", "Bearer", "Key"):
        with subtests.test(scheme):
            headers = {"authorization": f"{scheme} {await server.new_key()}"}
            assert (await post(server, headers=headers)).status_code == 201


def rename(server: Server, *names: str) -> None:
    """Serve the simulated film under more names."""
    offers = server.gateway.offers
    film = offers.by_model["sim_text_to_video"]
    more = {name: replace(film, model=replace(film.model, id=name)) for name in names}
    server.gateway.offers = replace(offers, by_model={**offers.by_model, **more})


NAMES = (
    ("models/studio/film/predictions", None, "studio/film"),
    ("models/penstock/studio/film/predictions", None, "studio/film"),
    ("models/penstock/studio--films--one/predictions", None, "studio/films/one"),
    ("models/studio/films/one/predictions", None, "studio/films/one"),
    ("predictions", version_of("studio/films/one"), "studio/films/one"),
    ("predictions", "studio/film", "studio/film"),
    ("predictions", "penstock/sim_text_to_image", "sim_text_to_image"),
    ("predictions", f"penstock/studio/film:{version_of('studio/film')}", "studio/film"),
    ("deployments/penstock/sim_text_to_image/predictions", None, "sim_text_to_image"),
)


async def test_every_model_has_a_name(server: Server, subtests: pytest.Subtests) -> None:
    rename(server, "studio/films/one", "studio/film")
    for path, version, model in NAMES:
        with subtests.test(path, version=version):
            fields = {} if version is None else {"version": version}
            response = await post(server, f"/replicate/v1/{path}", input={"prompt": "a boat"}, **fields)
            assert response.status_code == 201, response.text
            assert response.json()["model"] == f"penstock/{model}"


async def test_every_model_that_is_listed_can_be_got(server: Server) -> None:
    listed = (await server.client.get("/replicate/v1/models")).json()["results"]
    own = (await server.client.get("/api/v1/models")).json()["data"]

    generating = [model["id"] for model in own if "/model/v1/generation" in model["endpoints"]]
    assert [model["name"] for model in listed] == generating
    for model in listed:
        found = (await server.client.get(model["url"])).json()
        assert found == model
        schemas = found["latest_version"]["openapi_schema"]["components"]["schemas"]
        references = {part.split('"')[0] for part in json.dumps(schemas).split('"$ref": "#/components/schemas/')[1:]}
        assert references <= set(schemas)


async def test_a_client_that_refuses_private_hosts_gets_the_film_inline(server: Server) -> None:
    job = (await post(server, headers={"prefer": "wait"}, input=QUICK)).json()
    path = f"/replicate/v1/predictions/{job['id']}"

    linked = (await server.client.get(path)).json()["output"]
    inline = (await server.client.get(path, headers=AI_SDK)).json()["output"]
    public = (await server.client.get(path, headers={**AI_SDK, "host": "films.example.com"})).json()["output"]

    head, _, text = inline.partition(",")
    assert head == "data:video/mp4;base64"
    assert base64.b64decode(text) == (await server.client.get(linked)).content
    assert public.startswith("http://films.example.com/api/v1/assets/")


WRONG = (
    ("{", 400, "not valid JSON"),
    ("[]", 400, "JSON object"),
    ("{}", 422, "input"),
    ('{"input": []}', 422, "input: Input should be an object"),
    ('{"input": {}, "wait": 1}', 422, "wait"),
    ('{"input": {}, "webhook": 1}', 422, "webhook"),
    ('{"input": {}, "webhook": "http://127.0.0.1/hook"}', 422, "webhook: "),
    ('{"input": {}, "webhook_events_filter": ["end"]}', 422, "webhook_events_filter.0"),
    ('{"input": {"colour\\u0000": 1}}', 422, "input.colour"),
    ('{"input": {"frame_images": ["https://example.com/a.png", 7]}}', 422, "input.frame_images.1"),
    ('{"input": ' + '{"a":' * 5000 + "1" + "}" * 5000 + "}", 400, "JSON"),
    ('{"input": {"a": [' + "1," * 6000 + "1]}}", 400, "5000 values"),
)


async def test_a_wrong_body_is_a_problem_that_names_the_field(server: Server, subtests: pytest.Subtests) -> None:
    for body, status, says in WRONG:
        with subtests.test(body[:60]):
            response = await server.client.post(PATH, content=body, headers={"content-type": "application/json"})
            problem = response.json()
            assert (response.status_code, problem["status"]) == (status, status), problem
            assert says in problem["detail"]
            assert isinstance(problem["title"], str)
            assert "Traceback" not in response.text


async def test_a_missing_version_is_named(server: Server) -> None:
    problem = (await post(server, "/replicate/v1/predictions")).json()

    assert (problem["status"], problem["param"]) == (422, "version")


async def test_it_can_be_switched_off(start: Start) -> None:
    server = await start(SIMULATOR + '[facades]\noff = ["replicate"]\n')

    assert (await post(server)).status_code == 404


async def test_hints_that_the_model_does_not_take_are_named(server: Server) -> None:
    given = {**QUICK, "go_fast": True, "num_inference_steps": 28}
    response = await post(server, input=given)
    request = await server.client.post("/fal/queue/penstock/sim_text_to_video", json={**given, "sync_mode": True})

    assert response.headers["x-penstock-left-out"] == "go_fast, num_inference_steps"
    assert request.headers["x-penstock-left-out"] == "go_fast, num_inference_steps, sync_mode"
    assert set(response.json()["input"]).isdisjoint({"go_fast", "num_inference_steps"})
    assert "x-penstock-left-out" not in (await post(server, input=QUICK)).headers


@pytest.mark.parametrize(("text", "seconds"), [("5", 5), ("90s", 90), ("1m30s", 90), ("1h", 3600)])
async def test_cancel_after_is_how_long_it_may_take(server: Server, text: str, seconds: float) -> None:
    prediction = (await post(server, headers={"cancel-after": text})).json()

    (job,) = await server.gateway.database.read(job_rows.get_several, [prediction["id"]])
    assert job.start_by == pytest.approx(job.created_at + seconds)
    assert job.run_seconds == seconds


@pytest.mark.parametrize("text", ["", "4s", "soon", "1d", "-5", "1.5m", "999999999999999999999"])
async def test_a_wrong_cancel_after_is_named(server: Server, text: str) -> None:
    problem = (await post(server, headers={"cancel-after": text})).json()

    assert (problem["status"], problem["param"]) == (422, "Cancel-After")
