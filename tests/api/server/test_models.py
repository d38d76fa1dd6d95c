"""The catalogue: what it says of a model is what the gateway does with it."""

from typing import Any

import httpx
import jsonschema
import pytest
from conftest import MODEL, SIMULATOR, VIDEO, Server

from penstock.domain.prices import FREE
from penstock.web.openapi.schemas import ModelList

GENERATION = "/model/v1/generation"
TEXT_TO_VIDEO = "vendorb_video_31"
IMAGE_TO_MODEL = "vendora_image_to_model"
FIELDS = {
    *("id", "object", "kind", "title", "description", "params", "defaults", "example"),
    *("price", "prices", "vendors", "typical_seconds", "endpoints"),
}
TEXT_KINDS = ("chat", "embedding", "speech", "transcription")
URL = {"url": "https://example.com/a.png"}


async def list_models(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    response = await client.get("/api/v1/models")
    assert response.status_code == 200
    ModelList.model_validate_json(response.content, strict=True)
    return {model["id"]: model for model in response.json()["data"]}


def vendor_of(model: dict[str, Any]) -> str:
    (vendor,) = model["vendors"]
    return vendor


async def try_params(server: Server, model: str, params: dict[str, Any]) -> httpx.Response:
    body = {"model": model, "input": [{"params": params}], "dry_run": True}
    return await server.client.post(GENERATION, json=body)


async def test_every_model_says_all_about_itself(server):
    models = await list_models(server.client)
    assert {VIDEO, MODEL, TEXT_TO_VIDEO, IMAGE_TO_MODEL} <= {
        name for name in models if vendor_of(models[name]) == "sim"
    }
    built_in = {name: vendor_of(model) for name, model in models.items() if vendor_of(model) != "sim"}
    assert {name: vendor for name, vendor in built_in.items() if vendor != "embedded"} == {
        "smollm2-135m": "local",
        "qwen2.5-coder-1.5b": "local_large",
        "minilm-l6": "minilm",
        "hibari": "hibari",
        "whisper-base": "whisper",
    }
    for name, model in models.items():
        assert set(model) == FIELDS
        assert model["object"] == "model"
        if model["kind"] not in TEXT_KINDS:
            assert model["price"] == FREE.describe()
            price = {"vendor": vendor_of(model), "from": None, "until": None, "price": FREE.describe()}
            assert model["prices"] == [price]
        assert (await server.client.get(f"/api/v1/models/{name}")).json() == model
    assert [models[name]["kind"] for name in (TEXT_TO_VIDEO, IMAGE_TO_MODEL)] == ["video", "3d"]


async def test_an_example_is_a_whole_request_that_is_taken(server):
    models = await list_models(server.client)
    for model in (model for model in models.values() if model["kind"] not in TEXT_KINDS):
        jsonschema.Draft202012Validator.check_schema(model["params"])
        for item in model["example"]["input"]:
            jsonschema.validate(item["params"], model["params"])
        response = await server.client.post(GENERATION, json=model["example"] | {"dry_run": True})
        assert response.status_code == 200, response.text


async def test_a_model_names_the_paths_that_take_orders_for_it(start):
    server = await start(SIMULATOR)
    models = await list_models(server.client)
    for model in models.values():
        for path in model["endpoints"]:
            answer = await server.client.post(path, json={"model": model["id"]})
            assert answer.status_code not in {404, 405}, path
    assert models["sim_text_to_image"]["endpoints"][2:] == [
        "/v1/images/generations",
        "/v1/images/edits",
        "/replicate/v1/models/penstock/sim_text_to_image/predictions",
        "/fal/queue/penstock/sim_text_to_image",
        "/mcp",
    ]
    assert "/v1/videos" in models[VIDEO]["endpoints"]
    off = await start(overrides={"facades.off": ["images", "videos", "replicate", "fal", "mcp"]})
    for name, model in (await list_models(off.client)).items():
        if model["kind"] not in TEXT_KINDS:
            assert model["endpoints"] == [GENERATION, f"/api/v1/{name}/generate"]


async def test_defaults_are_what_a_request_gets(server):
    models = await list_models(server.client)
    for name, params in ((TEXT_TO_VIDEO, {"prompt": "x"}), (IMAGE_TO_MODEL, {"file": URL})):
        defaults = models[name]["defaults"]
        resolved = (await try_params(server, name, params)).json()["input"][0]
        assert resolved | defaults == resolved
    assert models[TEXT_TO_VIDEO]["defaults"] == {
        "durationSeconds": 8,
        "aspectRatio": "16:9",
        "resolution": "720p",
        "compressionQuality": "optimized",
        "personGeneration": "allow_adult",
    }
    assert models[IMAGE_TO_MODEL]["defaults"] == {"model_version": "v3.1-20260211", "texture": True}


SAMPLES: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    TEXT_TO_VIDEO: (
        {"prompt": "x"},
        {
            "prompt": ["y", "", "x" * 4000, "x" * 4001, 5, []],
            "durationSeconds": [4, 6, 8, 8.0, 5, 8.5, "8", True, None],
            "aspectRatio": ["16:9", "9:16", "1:1", 5, None],
            "resolution": ["720p", "1080p", "4k", None],
            "personGeneration": ["allow_all", "nobody", None],
            "nonsense": [1],
        },
    ),
    IMAGE_TO_MODEL: (
        {"file": URL},
        {
            "file": [
                URL,
                {"object": "a"},
                {"object": {"bucket": "a", "key": "b"}},
                {"object": {"bucket": "a"}},
                "x",
                5,
            ],
            "model_version": ["P1-20260311", "v9", None],
            "model_seed": [0, 2147483647, 2147483648, -1, 7.0, "7", None],
            "face_limit": [48, 47, 2_000_001, 48.5, True, None],
            "texture": [True, "true", 1, None],
            "pbr": [True, False, 0, None],
        },
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_the_schema_takes_what_the_gateway_takes(server, name):
    schema = (await list_models(server.client))[name]["params"]
    params, rows = SAMPLES[name]
    for field, values in rows.items():
        for value in values:
            given = params | {field: value}
            valid = jsonschema.Draft202012Validator(schema).is_valid(given)
            response = await try_params(server, name, given)
            assert (response.status_code == 200) == valid, (given, response.text)


async def test_a_price_is_told_as_it_was_set(start):
    server = await start(
        """
        [vendors.fast]
        type = "sim"
        [vendors.slow]
        type = "sim"
        [[models]]
        id = "vendora_image_to_model"
        price = {per_job = "0.20", per_job_if = {texture = "0.10"}}
        routes = [{vendor = "slow"}, {vendor = "fast", order = 2}]
        [[models]]
        id = "vendorb_video_31"
        vendor = "fast"
        price = {per_second = "0.40"}
        """
    )
    models = await list_models(server.client)
    assert set(models) == {IMAGE_TO_MODEL, TEXT_TO_VIDEO}
    assert models[IMAGE_TO_MODEL]["vendors"] == ["fast", "slow"]
    assert models[IMAGE_TO_MODEL]["price"] == {
        "per_job": "0.20",
        "per_second": "0.00",
        "per_image": "0.00",
        "per_thousand_faces": "0.00",
        "per_job_if": {"texture": "0.10"},
        "per_second_if": {},
        "per_image_if": {},
        "seconds": None,
        "faces": None,
        "currency": "USD",
    }
    for name, params, price in [
        (IMAGE_TO_MODEL, {"file": URL}, "0.30"),
        (IMAGE_TO_MODEL, {"file": URL, "texture": False}, "0.20"),
        (TEXT_TO_VIDEO, {"prompt": "x", "durationSeconds": 6}, "2.40"),
    ]:
        assert (await try_params(server, name, params)).json()["cost"]["estimated"] == price
    assert (await try_params(server, VIDEO, {})).status_code == 404


async def test_how_long_a_model_takes_is_learned_from_its_jobs(server):
    assert (await list_models(server.client))[MODEL]["typical_seconds"] is None
    for _ in range(2):
        assert (await server.generate(MODEL, face_limit=100, script={"latency": 0.2}))["status"] == "succeeded"
    typical = (await list_models(server.client))[MODEL]["typical_seconds"]
    assert typical["jobs"] == 2
    assert 0.2 <= typical["p50"] <= typical["p90"]
    dry = await try_params(server, MODEL, {})
    assert dry.json()["expected_seconds"] == typical


async def test_a_model_that_is_not_there(server):
    for name, nearest in ((f"{VIDEO}s", VIDEO), ("vendor/model-x", None), ("x" * 150, None)):
        response = await server.client.get(f"/api/v1/models/{name}")
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (404, "model_not_found")
        assert (f"Did you mean `{nearest}`?" in error["message"]) == bool(nearest)
    too_long = await server.client.get(f"/api/v1/models/{'x' * 5000}")
    assert too_long.status_code in (400, 404)
    assert too_long.json()["error"]["message"]
