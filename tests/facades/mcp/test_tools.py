"""The tools as the official Python client sees them, with both generations of the protocol."""

import base64
import io
import json
from typing import Any

import httpx2
import jsonschema
import pytest
from agent_client import connected
from conftest import MODEL, VIDEO, Server, Start
from mcp import Client, MCPError
from mcp.types import CallToolResult
from PIL import Image

from penstock.catalog.params import Params
from penstock.web.facades.mcp.tools import TOOLS

IMAGE = "sim_text_to_image"
PRICED = """
[vendors.sim]
type = "sim"
[[models]]
id = "sim_text_to_image"
vendor = "sim"
price = {per_job = "1"}
"""


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def content(result: CallToolResult) -> dict[str, Any]:
    """The structured content, which the text repeats."""
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def refused(result: CallToolResult, code: str) -> str:
    """The words of a refusal."""
    assert result.is_error, result
    assert content(result)["error"]["code"] == code, result
    return result.content[0].text


async def draw(client: Client, wait_seconds: int = 50, progress: Any = None, **script: Any) -> CallToolResult:
    params = {"prompt": "a boat", "script": {"latency": 0.05, **script}}
    given = {"model": IMAGE, "params": params, "wait_seconds": wait_seconds}
    return await client.call_tool("generate_image", given, progress_callback=progress)


async def test_a_picture_is_generated_with_progress(server: Server, mode: str) -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total == 1
        assert message is not None
        assert message.startswith("job_")
        seen.append(progress)

    async with connected(server.url, await server.new_key(), mode) as client:
        result = await draw(client, progress=note, latency=0.3)
    job = content(result)
    assert (job["status"], job["done"], result.is_error) == ("succeeded", True, False)
    assert seen == sorted(set(seen))
    assert len(seen) >= 2
    text, link, preview = result.content
    assert json.loads(text.text) == job
    assert (link.type, link.mime_type, link.uri) == ("resource_link", "image/png", job["outputs"][0]["url"])
    async with httpx2.AsyncClient() as http:  # without a key
        assert len((await http.get(link.uri)).content) == link.size
    with Image.open(io.BytesIO(base64.b64decode(preview.data))) as picture:
        assert (picture.format, max(picture.size)) == ("JPEG", 512)


async def test_the_definitions_are_objects_that_agents_can_send(server: Server, mode: str) -> None:
    async with connected(server.url, await server.new_key(), mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        models = content(await client.call_tool("list_models", {}))["models"]
        assert {model["tool"] for model in models} == {name for name in tools if name.startswith("generate_")}
        for tool in tools.values():
            assert tool.input_schema["type"] == "object"
            assert not {"oneOf", "anyOf", "allOf"} & tool.input_schema.keys()
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        for model in models:
            example = {"model": model["id"], **model["example"]["input"][0]}
            jsonschema.validate(example, tools[model["tool"]].input_schema)
            described = content(await client.call_tool("describe_model", {"model": model["id"]}))
            jsonschema.validate(example["params"], described["params"])
        only = content(await client.call_tool("list_models", {"kind": "video"}))["models"]
    assert [model["id"] for model in only] == [model["id"] for model in models if model["kind"] == "video"]


async def test_neutral_names_and_an_upload_make_a_model(server: Server) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(picture, "PNG")
    async with connected(server.url, await server.new_key()) as client:
        data = base64.b64encode(picture.getvalue()).decode()
        token = content(await client.call_tool("upload", {"data": data, "name": "red.png"}))["file_token"]
        params = {"image": token, "script": {"latency": 0.05}}
        made = content(await client.call_tool("generate_3d", {"model": MODEL, "params": params}))
        assert made["status"] == "succeeded", made
        inline = {"model": MODEL, "params": {"image": f"data:image/png;base64,{data}", "script": {"latency": 0.05}}}
        assert content(await client.call_tool("generate_3d", inline))["status"] == "succeeded"
        asset = await client.call_tool("get_asset", {"job_id": made["job_id"]})
        assert content(asset)["content_type"] == "model/gltf-binary"
        assert [each.type for each in asset.content][1] == "resource_link"
        missing = await client.call_tool("get_asset", {"job_id": made["job_id"], "output": 99})
        assert "0 to" in refused(missing, "invalid_params")
        bad = await client.call_tool("upload", {"data": "bm90IGEgZmlsZQ"})
        assert refused(bad, content(bad)["error"]["code"]).startswith("data: ")


async def test_a_call_that_does_not_wait_names_the_job(server: Server, mode: str) -> None:
    async with connected(server.url, await server.new_key(), mode) as client:
        job = content(await draw(client, wait_seconds=0, latency=0.2))
        assert not job["done"]
        assert "job_status" in job["next"]
        early = await client.call_tool("get_asset", {"job_id": job["job_id"]})
        refused(early, "job_not_finished")
        done = await client.call_tool("job_status", {"job_id": job["job_id"], "wait_seconds": 60})
    assert content(done)["status"] == "succeeded"
    assert [each.type for each in done.content] == ["text", "resource_link", "image"]


async def test_a_wait_that_is_too_short_ends_with_the_open_job(server: Server) -> None:
    async with connected(server.url, await server.new_key()) as client:
        result = await draw(client, wait_seconds=1, latency=600)
        assert not result.is_error
        job = content(result)
        assert job["status"] in ("queued", "running")
        canceled = content(await client.call_tool("cancel", {"job_id": job["job_id"]}))
        assert canceled["status"] in ("canceling", "canceled")
        ended = await client.call_tool("job_status", {"job_id": job["job_id"], "wait_seconds": 60})
        assert "Nothing is charged" in refused(ended, "canceled")
        again = content(await client.call_tool("cancel", {"job_id": job["job_id"]}))
    assert again["status"] == "canceled"


@pytest.mark.parametrize("ending", ["failed", "filtered"])
async def test_a_failed_job_is_an_error_in_plain_words(server: Server, mode: str, ending: str) -> None:
    async with connected(server.url, await server.new_key(), mode) as client:
        result = await draw(client, ending=ending)
    job = content(result)
    assert (result.is_error, job["status"], job["cost"]["final"]) == (True, "failed", "0.00")
    text = refused(result, job["error"]["code"])
    assert job["error"]["message"] in text
    assert job["job_id"] in text


async def test_an_estimate_costs_nothing_and_the_budget_holds(start: Start) -> None:
    server = await start(PRICED)
    key = await server.new_key(budgets={"total": "1.50"})
    async with connected(server.url, key) as client:
        found = content(await client.call_tool("estimate", {"model": IMAGE, "params": {"prompt": "a boat"}}))
        assert (found["cost"]["estimated"], found["budget_left"]) == ("1.00", "1.50")
        assert content(await draw(client))["cost"]["final"] == "1.00"
        text = refused(await draw(client), "insufficient_budget")
        assert "402" in text
    assert len((await server.client.get("/api/v1/jobs")).json()["data"]) == 1


async def test_a_key_sees_only_what_it_may_use(server: Server) -> None:
    async with connected(server.url, await server.new_key(scopes=frozenset({"read"}))) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"list_models", "describe_model", "job_status", "get_asset"}
        refused(await draw(client), "scope_not_allowed")
        refused(await client.call_tool("upload", {"data": "x"}), "scope_not_allowed")
    async with connected(server.url, await server.new_key(scopes=frozenset({"chat"}))) as client:
        assert (await client.list_tools()).tools == []
        refused(await client.call_tool("list_models", {}), "scope_not_allowed")
    async with connected(server.url, await server.new_key(models=frozenset({VIDEO}))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert [name for name in tools if name.startswith("generate_")] == ["generate_video"]
        assert tools["generate_video"].input_schema["properties"]["model"]["enum"] == [VIDEO]
        refused(await draw(client), "model_not_allowed")
        refused(await client.call_tool("describe_model", {"model": IMAGE}), "model_not_allowed")


async def test_accounts_do_not_see_each_other(server: Server) -> None:
    async with connected(server.url, await server.new_key()) as client:
        job_id = content(await draw(client))["job_id"]
    async with connected(server.url, await server.new_key("other")) as client:
        for name in ("job_status", "cancel", "get_asset"):
            assert "404" in refused(await client.call_tool(name, {"job_id": job_id}), "job_not_found")


async def test_a_repeated_call_with_its_key_finds_the_job(server: Server, mode: str) -> None:
    given = {"model": IMAGE, "params": {"prompt": "a boat"}, "idempotency_key": "boat-1"}
    async with connected(server.url, await server.new_key(), mode) as client:
        first = content(await client.call_tool("generate_image", {**given, "wait_seconds": 0}))
        second = content(await client.call_tool("generate_image", given))
        assert first["job_id"] == second["job_id"]
        other = await client.call_tool("generate_image", {**given, "params": {"prompt": "a ship"}})
        refused(other, "idempotency_key_mismatch")


async def test_wrong_arguments_are_named(server: Server) -> None:
    async with connected(server.url, await server.new_key()) as client:
        cases: list[tuple[str, dict[str, Any], str]] = [
            ("generate_image", {}, "model"),
            ("generate_image", {"model": 3}, "model"),
            ("generate_image", {"model": IMAGE, "params": "x"}, "params"),
            ("generate_image", {"model": IMAGE, "params": {"prompt": 3}}, "params.prompt"),
            ("generate_image", {"model": IMAGE, "params": {"promt": "a"}}, "params.promt"),
            ("generate_image", {"model": IMAGE, "params": {}, "wait_seconds": 601}, "wait_seconds"),
            ("generate_image", {"model": IMAGE, "params": {}, "idempotency_key": "a b"}, "idempotency_key"),
            ("generate_image", {"model": VIDEO, "params": {}}, "generate_video"),
            ("generate_image", {"model": "sim_text_to_imag", "params": {}}, IMAGE),
            ("job_status", {"job_id": ["x"]}, "job_id"),
            ("list_models", {"kind": "soup"}, "kind"),
            ("list_models", {"sort": "price"}, "sort"),
        ]
        for name, given, named in cases:
            result = await client.call_tool(name, given)
            assert result.is_error, (name, given)
            assert named in result.content[0].text, (name, given, result.content[0].text)
        with pytest.raises(MCPError, match="list_models"):
            await client.call_tool("list_model", {})


async def test_a_prompt_beside_the_params_is_taken(server: Server) -> None:
    given = {"model": IMAGE, "prompt": "a boat", "params": {"script": {"latency": 0.05}}}
    async with connected(server.url, await server.new_key()) as client:
        job = content(await client.call_tool("generate_image", given))
    assert (await server.finish(job["job_id"]))["input"]["prompt"] == "a boat"


async def test_schemas_are_made_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making them takes a tenth of a second, in which nobody else is served."""
    async with connected(server.url, await server.new_key()) as client:
        await client.list_tools()
        models = [model["id"] for model in content(await client.call_tool("list_models", {}))["models"]]
        before = [await client.call_tool("describe_model", {"model": model}) for model in models]

        def make(*_: Any, **__: Any) -> None:
            raise AssertionError

        monkeypatch.setattr(Params, "model_json_schema", make)
        assert [await client.call_tool("describe_model", {"model": model}) for model in models] == before
        assert (await server.client.get("/api/v1/models")).status_code == 200
    async with connected(server.url, await server.new_key()) as client:  # which has kept no list of tools
        assert len((await client.list_tools()).tools) > len(TOOLS)


async def test_more_open_jobs_than_allowed_are_refused(server: Server) -> None:
    async with connected(server.url, await server.new_key(concurrent_jobs=1)) as client:
        first = content(await draw(client, wait_seconds=0, latency=600))
        text = refused(await draw(client, latency=600), "concurrency_limited")
        assert "429" in text
        await client.call_tool("cancel", {"job_id": first["job_id"]})
