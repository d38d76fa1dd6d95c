"""Models that only the settings know: their params come from a schema of ours or from the vendor, and are kept."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import running
from doubles.fal import FalDouble, open_api
from doubles.media import Plan, listening
from doubles.replicate import PICTURE, ReplicateDouble
from jsonschema import Draft202012Validator
from typer.testing import CliRunner
from vendors.double import HttpDouble, drop, hang, raw, reply
from vendors.test_far import follow

from penstock.catalog.file_input import SOURCES
from penstock.cli.main import app
from penstock.offers.build import build_offers
from penstock.settings.problems import Problem, SettingsError
from penstock.settings.tables import load

LTX = '[[models]]\nid = "ltx"\nkind = "video"\nvendor = "fal"\nmodel = "fal-ai/ltx"\nparams = "vendor"\n'
OTHER = '[[models]]\nid = "sim_text_to_video"\nvendor = "sim"\n'
SCHEMA_PATH = "/api/openapi/"


@pytest.fixture
async def fal() -> AsyncGenerator[FalDouble]:
    async with listening(FalDouble()) as double:
        yield double


Begin = Callable[..., Any]


@pytest.fixture
def gateway(tmp_path: Path, weights: Path) -> Begin:
    """A gateway on one data folder, for as long as a block runs."""

    def begin(toml: str) -> Any:
        config = tmp_path / "penstock.toml"
        config.write_text(toml)
        return running(load(config, {}, {"data": tmp_path / "data", "weights": weights}))

    return begin


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "data" / "vendors").glob("*/schemas/*.json"))


async def show(server: Any, model: str = "ltx") -> dict[str, Any] | None:
    """The catalogue's entry; None if there is none."""
    response = await server.client.get(f"/api/v1/models/{model}")
    if response.status_code == 404:
        assert response.json()["error"]["code"] == "model_not_found"
        return None
    assert response.status_code == 200, response.text
    return response.json()


async def until(server: Any, fits: Callable[[dict[str, Any] | None], bool]) -> dict[str, Any] | None:
    """The catalogue's entry once it fits."""
    for _ in range(1000):
        found = await show(server)
        if fits(found):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("it never does")


async def post(server: Any, model: str = "ltx", **params: Any) -> Any:
    body = {"model": model, "input": [{"params": params}]}
    return await server.client.post("/model/v1/generation", json=body)


# -- the vendor's own params


async def test_the_vendors_description_is_fetched_kept_and_used(gateway, fal, tmp_path):
    async with gateway(fal.settings() + LTX) as server:
        record = await show(server)
        assert record is not None
        assert (record["kind"], record["title"], record["vendors"]) == ("video", "ltx", ["fal"])
        assert record["params"]["properties"].keys() == {"prompt", "steps"}
        assert record["params"]["required"] == ["prompt"]
        assert record["defaults"] == {"steps": 30}
        Draft202012Validator.check_schema(record["params"])
        Draft202012Validator(record["params"]).validate(record["example"]["input"][0]["params"])
        job = await server.generate("ltx", prompt="a mill")
        assert job["status"] == "succeeded", job["error"]
        assert job["input"] == {"prompt": "a mill", "steps": 30}
        refused = await post(server, promt="a", steps="many")
        assert refused.status_code == 400
        locs = {detail["loc"] for detail in refused.json()["error"]["details"]}
        assert locs == {"input.0.params.promt", "input.0.params.prompt", "input.0.params.steps"}
    assert json.loads(kept(tmp_path)[0].read_bytes()) == open_api("fal-ai/ltx")


async def test_the_interfaces_own_description_holds_it(gateway, fal):
    async with gateway(fal.settings() + LTX + OTHER) as server:
        document = (await server.client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    assert schemas["ltx.params"]["properties"].keys() == {"prompt", "steps"}
    request = schemas["GenerationRequest"]["discriminator"]["mapping"]["ltx"].rpartition("/")[2]
    assert schemas[request]["properties"]["model"] == {"const": "ltx", "type": "string"}
    assert "SimVideoParams" in schemas


async def test_what_was_kept_serves_while_the_vendor_is_away(gateway, fal, tmp_path):
    async with gateway(fal.settings() + LTX) as server:
        before = await show(server)
    await fal.hide()
    async with gateway(fal.settings() + LTX) as server:
        assert await show(server) == before
        refused = await post(server, prompt=7)
        assert refused.status_code == 400
    assert len(kept(tmp_path)) == 1


AWAY = {
    "away": None,
    "out of order": reply(503, b"{}"),
    "a proxy's page": reply(200, b"<html>"),
    "another shape": reply(200, b"[1]"),
    "closed": drop,
    "cut": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"),
    "unknown there": reply(404, b"{}"),
    "silent": hang,
    "no input": reply(200, b'{"openapi": "3.1.0", "paths": {}}'),
    "no JSON Schema": reply(200, json.dumps({"properties": {"a": {"type": "strnig"}}}).encode()),
    "hostile": reply(200, json.dumps({"openapi": 7, "paths": [], "components": {"schemas": 7}}).encode()),
    "in a circle": reply(
        200,
        json.dumps(
            {"openapi": "3", "components": {"schemas": {"Input": {"$ref": "#/components/schemas/Input"}}}}
        ).encode(),
    ),
}


@pytest.mark.parametrize("how", AWAY)
async def test_what_was_never_known_is_not_offered_until_it_is(gateway, fal, tmp_path, how, monkeypatch, caplog):
    monkeypatch.setattr("penstock.upstream.schema_discovery.RETRY_SECONDS", 0.05)
    monkeypatch.setattr("penstock.upstream.schema_discovery.DISCOVERY_TIMEOUT_SECONDS", 0.5)
    if AWAY[how] is None:
        await fal.hide()
    else:
        fal.fault(AWAY[how], "GET", SCHEMA_PATH, times=10_000)
    async with gateway(fal.settings() + LTX + OTHER) as server:
        assert await show(server) is None
        assert (await post(server, prompt="a")).status_code == 404
        assert (await show(server, "sim_text_to_video")) is not None, "the others are served"
        assert "ltx" in caplog.text or any("ltx" in str(getattr(entry, "fields", "")) for entry in caplog.records)
        assert kept(tmp_path) == []
        fal.faults.clear()
        if AWAY[how] is None:
            await fal.listen()
        assert await until(server, lambda found: found is not None)
        assert (await server.generate("ltx", prompt="a mill"))["status"] == "succeeded"
    assert len(kept(tmp_path)) == 1


async def test_a_new_description_takes_the_place_of_the_old(gateway, fal, monkeypatch):
    monkeypatch.setattr("penstock.upstream.schema_discovery.REFRESH_SECONDS", 0.05)
    newer = open_api("fal-ai/ltx")
    newer["components"]["schemas"]["LtxInput"]["properties"]["image"] = {"type": "string"}
    async with gateway(fal.settings() + LTX) as server:
        assert "image" not in (await show(server))["params"]["properties"]
        fal.fault(reply(200, json.dumps(newer).encode()), "GET", SCHEMA_PATH, times=10_000)
        record = await until(server, lambda found: "image" in found["params"]["properties"])
        assert record["defaults"] == {"steps": 30}
        document = (await server.client.get("/openapi.json")).json()
        assert "image" in document["components"]["schemas"]["ltx.params"]["properties"]


@pytest.mark.parametrize("how", ["no input", "no JSON Schema", "hostile", "unknown there", "out of order"])
async def test_one_of_no_use_does_not(gateway, fal, tmp_path, monkeypatch, how):
    monkeypatch.setattr("penstock.upstream.schema_discovery.REFRESH_SECONDS", 0.02)
    asked = asyncio.Semaphore(0)

    async def spoil(double: HttpDouble, request: Any) -> Any:
        asked.release()
        return await AWAY[how](double, request)

    async with gateway(fal.settings() + LTX) as server:
        before, bytes_before = await show(server), kept(tmp_path)[0].read_bytes()
        fal.fault(spoil, "GET", SCHEMA_PATH, times=10_000)
        for _ in range(3):
            await asyncio.wait_for(asked.acquire(), 300)
        assert await show(server) == before
        assert kept(tmp_path)[0].read_bytes() == bytes_before


async def test_a_damaged_copy_is_as_good_as_none(gateway, fal, tmp_path):
    async with gateway(fal.settings() + LTX):
        pass
    for damage in (b"", b"[1]", b'{"openapi": ', b"\xff"):
        kept(tmp_path)[0].write_bytes(damage)
        async with gateway(fal.settings() + LTX) as server:
            assert await show(server) is not None
    assert json.loads(kept(tmp_path)[0].read_bytes()) == open_api("fal-ai/ltx")


async def test_a_copy_of_no_use_does_not_keep_the_gateway_from_starting(gateway, fal, tmp_path):
    async with gateway(fal.settings() + LTX):
        pass
    await fal.hide()
    for odd in (b'{"properties": 7}', b'{"openapi": 1, "components": 7}', b'{"type": "array"}'):
        kept(tmp_path)[0].write_bytes(odd)
        async with gateway(fal.settings() + LTX + OTHER) as server:
            assert await show(server) is None
            assert await show(server, "sim_text_to_video") is not None


async def test_a_folder_that_takes_nothing_costs_only_the_copy(gateway, fal, tmp_path, caplog):
    (tmp_path / "data" / "vendors" / "fal").mkdir(parents=True)
    (tmp_path / "data" / "vendors" / "fal" / "schemas").write_text("in the way")
    async with gateway(fal.settings() + LTX + OTHER) as server:
        assert await show(server, "sim_text_to_video") is not None
        assert await show(server) is None
    assert any(entry.levelno == logging.ERROR for entry in caplog.records)


async def test_names_there_never_leave_the_folder(gateway, fal, tmp_path):
    odd = LTX.replace("fal-ai/ltx", "../../../../x")
    fal.fault(reply(200, json.dumps(open_api("x")).encode()), "GET", SCHEMA_PATH, times=99)
    async with gateway(fal.settings() + odd) as server:
        assert await show(server) is not None
    (place,) = kept(tmp_path)
    assert place.parent == tmp_path / "data" / "vendors" / "fal" / "schemas"


async def test_a_model_declared_while_the_gateway_runs(gateway, fal, tmp_path, weights):
    async with gateway(fal.settings() + OTHER) as server:
        assert await show(server) is None
        fal.plans.append(Plan(polls=30))
        config = tmp_path / "penstock.toml"
        for lines, offered in ((LTX, True), ("", False)):
            config.write_text(fal.settings() + OTHER + lines)
            await server.gateway.reload(load(config, {}, {"data": tmp_path / "data", "weights": weights}))
            assert (await show(server) is not None) == offered
            if offered:
                job = (await post(server, prompt="a mill")).json()
                await follow(server, job["id"], lambda job: job["phase"] == "generating")
        job = await server.finish(job["id"])
        assert job["status"] == "succeeded", "what was begun is finished"


async def test_a_job_outlives_its_models_place_in_the_settings(gateway, fal):
    fal.plans.append(Plan(polls=10))
    async with gateway(fal.settings() + LTX) as server:
        job = (await post(server, prompt="a mill")).json()
        await follow(server, job["id"], lambda job: job["phase"] == "generating")
    async with gateway(fal.settings() + OTHER) as server:
        assert await show(server) is None
        job = await server.finish(job["id"])
        assert job["status"] == "succeeded", job["error"]
    assert len(fal.orders) == 1


# -- params of the settings' own

OWN = """
[[models]]
id = "my-film"
kind = "video"
title = "My film"
vendor = "fal"
model = "fal-ai/ltx"
file = "image"
price = {per_second = "0.10", per_job_if = {"tile=true" = "1"}}
[models.params]
required = ["prompt"]
[models.params.properties]
prompt = {type = "string"}
image = {type = "string"}
steps = {type = "integer"}
seed = {anyOf = [{type = "integer"}, {type = "null"}]}
duration = {type = "number"}
tile = {type = "boolean"}

[[models]]
id = "anything"
kind = "image"
vendor = "fal"
model = "fal-ai/flux/dev"
price = {per_second = "0.10"}
"""


@pytest.fixture
async def server(gateway, fal) -> AsyncGenerator[Any]:
    async with gateway(fal.settings() + OWN) as server:
        yield server


async def forecast(server: Any, model: str, **params: Any) -> dict[str, Any]:
    body = {"model": model, "input": [{"params": params}], "dry_run": True}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def test_it_is_shown_like_any_other(server):
    record = await show(server, "my-film")
    assert record["title"] == "My film"
    assert "image" not in record["params"]["properties"]
    assert record["params"]["properties"]["file"]["properties"].keys() == {*SOURCES, "output", "type"}
    assert record["price"]["per_job_if"] == {"tile=true": "1.00"}
    listed = (await server.client.get("/api/v1/models")).json()["data"]
    assert {model["id"] for model in listed} == {"my-film", "anything"}


async def test_a_whole_number_is_one_however_it_is_written(server, fal):
    fal.fault(reply(200, b'{"request_id": "x"}'), "POST", "/fal-ai/ltx", times=9)
    for number in (7, 7.0, "7.0e0"):
        body = (
            f'{{"model": "my-film", "input": [{{"params": {{"prompt": "a", "seed": {number}, "steps": {number}}}}}]}}'
        )
        response = await server.client.post("/model/v1/generation", content=body)
        record = (await server.client.get(f"/api/v1/jobs/{response.json()['id']}")).json()
        assert json.dumps([record["seed"], record["input"]["seed"], record["input"]["steps"]]) == "[7, 7, 7]"


async def test_a_seed_that_nobody_gave_is_chosen_and_told(server):
    record = (await post(server, "my-film", prompt="a")).json()
    assert record["seed"] == record["input"]["seed"]
    assert isinstance(record["seed"], int)


@pytest.mark.parametrize(
    ("params", "price"),
    [
        ({"duration": 8}, "0.80"),
        ({"duration": 8, "tile": True}, "1.80"),
        ({"duration": -1000}, None),
        ({"duration": 1e300}, "8640.00"),
        ({}, None),
    ],
    ids=str,
)
async def test_no_params_make_an_odd_price(server, params, price):
    assert (await forecast(server, "my-film", prompt="a", **params))["cost"]["estimated"] == price
    response = await post(server, "my-film", prompt="a", **params)
    assert (response.status_code, response.json()["cost"]["estimated"]) == (202, price)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


ATTACKS = {
    "deep": {"a": nested(500)},
    "a file of another shape": {"file": {"url": 7}},
    "a file of nothing": {"file": {}},
    "a file from two sources": {"file": {"url": "https://example.com/x", "file_token": "y"}},
    "a file inside": {"file": {"url": "http://127.0.0.1/x"}},
    "a token that is none": {"file": {"file_token": ["x"]}},
}


@pytest.mark.parametrize("how", ATTACKS)
async def test_where_anything_goes_not_everything_does(server, fal, how):
    for model in ("anything", "my-film"):
        response = await post(server, model, prompt="a", **ATTACKS[how])
        assert response.status_code == 400, response.text
        assert response.json()["error"]["details"]
    assert fal.orders == {}


@pytest.mark.parametrize(
    "value", [10**300, -(10**4000), 1e308, "\u0000", "x" * 100_000, "💥", [], {}, [[]]], ids=lambda v: str(v)[:9]
)
async def test_odd_values_are_the_vendors_to_judge(server, fal, value):
    body = json.dumps({"model": "anything", "input": [{"params": {"prompt": "a", "odd": value}}]})
    response = await server.client.post("/model/v1/generation", content=body)
    assert response.status_code == 202, response.text
    job = await server.finish(response.json()["id"])
    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_rejected")
    assert json.dumps(job["input"]["odd"]) == json.dumps(value)


# -- routes


@pytest.mark.parametrize("busy", [False, True])
async def test_a_declared_model_has_routes_like_any_other(gateway, fal, busy):
    async with listening(ReplicateDouble()) as replicate:
        routes = (
            f'[{{vendor = "fal", model = "fal-ai/flux/dev"}}, {{vendor = "replicate", model = "{PICTURE}", order = 2}}]'
        )
        model = f'[[models]]\nid = "flux"\nkind = "image"\nroutes = {routes}\n'
        if busy:
            fal.fault(reply(429), "POST", "/fal-ai/flux/dev", times=99)
        async with gateway(fal.settings() + replicate.settings() + model) as server:
            job = await server.generate("flux", prompt="a mill")
            assert job["status"] == "succeeded", job["error"]
            assert job["vendor"] == ("replicate" if busy else "fal")
            assert (len(fal.orders), len(replicate.orders)) == ((0, 1) if busy else (1, 0))


# -- the command line


def run(tmp_path: Path, *line: str, code: int = 0) -> str:
    done = CliRunner().invoke(
        app, [*line, "--data", str(tmp_path / "data"), "--config", str(tmp_path / "penstock.toml")]
    )
    assert done.exit_code == code, done.output
    return done.output


async def test_the_command_line_shows_what_was_learned(gateway, fal, tmp_path):
    config = tmp_path / "penstock.toml"
    config.write_text(fal.settings() + LTX)
    assert "There is no model `ltx`" in run(tmp_path, "models", "show", "ltx", code=1)
    async with gateway(fal.settings() + LTX):
        pass
    shown = run(tmp_path, "models", "show", "ltx")
    assert [line.split()[:3] for line in shown.splitlines()[-2:]] == [
        ["prompt", "string", "required"],
        ["steps", "integer", "30"],
    ]
    assert "ltx" in run(tmp_path, "models", "list")
    assert json.loads(run(tmp_path, "models", "show", "ltx", "--json"))["params"]["required"] == ["prompt"]


FORMS = """
[[models]]
id = "forms"
kind = "video"
vendor = "fal"
[models.params]
required = ["listed"]
[models.params."$defs"]
Size = {type = "object", properties = {width = {type = "integer", minimum = 8}, again = {"$ref" = "#/$defs/Size"}}}
[models.params.definitions]
Old = {type = "string", maxLength = 5}
[models.params.properties]
free = {}
any = true
listed = {enum = ["a", "b"]}
mixed = {enum = [1, "b"]}
several = {type = ["integer", "null"], description = "a number, perhaps"}
either = {anyOf = [{type = "string"}, {"$ref" = "#/$defs/Size"}, {type = "null"}]}
one = {oneOf = [{const = 1}, true]}
old = {"$ref" = "#/definitions/Old"}
round = {"$ref" = "#"}
itself = {"$ref" = "#/properties/itself"}
whole = {allOf = [{type = "integer"}]}
"""


def test_the_command_line_copes_with_every_form_of_schema(tmp_path):
    (tmp_path / "penstock.toml").write_text('[vendors.fal]\ntype = "fal"\n' + FORMS + OWN[OWN.rindex("[[models]]") :])
    rows = [line.split() for line in run(tmp_path, "models", "show", "forms").splitlines()]
    kinds = {row[0]: " ".join(row[1:]) for row in rows if row}
    assert kinds["free"] == kinds["any"] == kinds["whole"] == kinds["itself"] == "any"
    assert kinds["listed"] == "string required a, b"
    assert kinds["several"] == "integer a number, perhaps"
    assert kinds["either"] == "string or object"
    assert kinds["either.width"] == "integer 8 or more"
    assert kinds["old"] == "string at most 5 characters"
    assert "not known" in run(tmp_path, "models", "show", "anything")
    for name in ("forms", "anything"):
        assert json.loads(run(tmp_path, "models", "show", name, "--json"))["id"] == name


# -- settings that say it wrong

FAL = '[vendors.fal]\ntype = "fal"\napi_key = "0123456789"\n'
MODEL = FAL + '[[models]]\nid = "film"\nvendor = "fal"\n'
FILM = MODEL + 'kind = "video"\n'
KNOWN = FAL + '[[models]]\nid = "vendorb_video_31"\nvendor = "fal"\n'
MISTAKES = {
    "no kind": (MODEL, ":5 [[models]] 1 id", "its `kind`", "3d, video, image"),
    "a kind that is not checked": (MODEL + 'kind = "audio"\n', ":5 [[models]] 1 id", "its `kind`", "3d, video, image"),
    "a chat model": (MODEL + 'kind = "chat"\n', ":5 [[models]] 1 id", "does not run chat", "openai_compatible"),
    "a wrong schema": (
        FILM + '[models.params.properties]\nprompt = {type = "strnig"}\n',
        ":8 [[models]] 1 params",
        "properties.prompt.type: ",
        'params = "vendor"',
    ),
    "a schema of another shape": (
        FILM + "params = {required = 7}\n",
        ":8 [[models]] 1 params",
        "required: 7",
        "vendor",
    ),
    "no file": (
        FILM + 'params = "file:nowhere.json"\n',
        ":8 [[models]] 1 params",
        "nowhere.json is missing",
        "JSON file",
    ),
    "a file of hostile references": (
        FILM + 'params = "file:bomb.json"\n',
        ":8 [[models]] 1 params",
        "too large",
        'params = "vendor"',
    ),
    "no such param for the file": (
        FILM + 'file = "image"\nparams = {properties = {prompt = {}}}\n',
        ":9 [[models]] 1 params",
        "no param `image`",
        "Correct it",
    ),
    "an output of a known model": (
        KNOWN + 'output = "x"\n',
        ":7 [[models]] 1 output",
        "takes no `output`",
        "Leave it out",
    ),
    "params of a known model": (
        KNOWN + 'params = "vendor"\n',
        ":7 [[models]] 1 params",
        "takes no `params`",
        "Leave it",
    ),
    "a vendor that declares none": (
        '[vendors.mine]\ntype = "sim"\n[[models]]\nid = "film"\nkind = "video"\nvendor = "mine"\n',
        ":4 [[models]] 1 id",
        "no model `film`",
        "Known here: ",
    ),
    "one route that declares none": (
        MODEL.replace('vendor = "fal"\n', 'routes = [{vendor = "fal"}, {vendor = "sim"}]\n') + 'kind = "video"\n',
        ":5 [[models]] 1 id",
        "no model `film`",
        "Known here: ",
    ),
    "a chat price": (
        FILM + 'price = {input_per_million = "1"}\n',
        ":8 [[models]] 1 price",
        "price of a media",
        "per_job",
    ),
    "a workflow that is none": (FILM + "workflow = 7\n", ":8 [[models]] 1 workflow", "table", "table"),
    "a vendor's table": (
        FILM.replace("0123456789", '0123456789"\npoll_seconds = "soon'),
        ":4 [vendors.fal] poll_seconds",
        "number",
        "Correct it",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_tells_its_place_and_its_remedy(mistake, tmp_path):
    toml, where, what, remedy = MISTAKES[mistake]
    parts = {f"n{number}": {"allOf": [{"$ref": f"#/components/schemas/n{number + 1}"}] * 6} for number in range(9)}
    schemas = {"Input": {"$ref": "#/components/schemas/n0"}, **parts, "n9": {}}
    (tmp_path / "bomb.json").write_text(json.dumps({"openapi": "3.1.0", "components": {"schemas": schemas}}))
    (problem,) = problems(tmp_path, toml)
    assert problem.where == f"{tmp_path}/penstock.toml{where}"
    assert what in problem.what
    assert remedy in problem.remedy


def problems(folder: Path, toml: str) -> tuple[Problem, ...]:
    config = folder / "penstock.toml"
    config.write_text(toml)
    with pytest.raises(SettingsError) as told:
        build_offers(load(config, {}, {"data": folder}), None)
    return tuple(told.value.problems)


def test_all_mistakes_are_told_at_once(tmp_path):
    second = '[[models]]\nid = "other"\nkind = "3d"\nvendor = "fal"\nparams = {type = "array"}\n'
    told = problems(tmp_path, MODEL + second)
    assert [problem.where.rpartition(":")[2] for problem in told] == ["5 [[models]] 1 id", "11 [[models]] 2 params"]
