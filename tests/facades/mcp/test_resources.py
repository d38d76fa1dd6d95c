"""Outputs as resources, which agents list and read."""

import base64
from typing import Any

import httpx
import pytest
from agent_client import connected
from conftest import Server
from mcp import MCPError, types

from penstock.errors import Overloaded
from penstock.web.facades.mcp import resources

IMAGE = "sim_text_to_image"


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


async def draw(server: Server, **params: Any) -> dict[str, Any]:
    return await server.finish((await server.submit(IMAGE, prompt="a boat", script={}, **params))["id"])


async def test_outputs_are_listed_and_read(server: Server, mode: str) -> None:
    job = await draw(server)
    made = (await server.client.get(job["outputs"][0]["url"])).content
    async with connected(server.url, await server.new_key(), mode) as client:
        if mode == "legacy":  # the other has asked for none
            assert client.server_capabilities.resources is not None
        (listed,) = (await client.list_resources()).resources
        assert str(listed.uri) == f"penstock://jobs/{job['id']}/outputs/0"
        assert (listed.title, listed.mime_type, listed.size) == ("a boat", "image/png", len(made))
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "penstock://jobs/{job_id}/outputs/{output}"
        called = await client.call_tool("get_asset", {"job_id": job["id"]})
        link = next(each.uri for each in called.content if each.type == "resource_link")
        for uri in (listed.uri, link):
            (read,) = (await client.read_resource(uri)).contents
            assert (str(read.uri), read.mime_type) == (str(uri), "image/png")
            assert base64.b64decode(read.blob) == made


async def test_a_large_output_is_read_as_its_link(server: Server, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_READ_BYTES", 1000)
    job = await draw(server)
    async with connected(server.url, await server.new_key(), mode) as client:
        (read,) = (await client.read_resource(f"penstock://jobs/{job['id']}/outputs/0")).contents
    assert read.mime_type == "text/uri-list"
    async with httpx.AsyncClient(trust_env=False) as http:  # without a key
        assert len((await http.get(read.text)).content) == job["outputs"][0]["bytes"]


async def test_the_list_has_pages(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PAGE", 2)
    made = [(await draw(server))["id"] for _ in range(3)]
    await server.finish((await server.submit(IMAGE, prompt="x", script={"ending": "failed"}))["id"])
    async with connected(server.url, await server.new_key()) as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        with pytest.raises(MCPError):
            await client.list_resources(cursor="soup")
    listed = [str(each.uri).split("/")[3] for each in first.resources + second.resources]
    assert (listed, second.next_cursor) == (made[::-1], None)


async def test_what_is_not_ones_own_is_not_found(server: Server, mode: str) -> None:
    job = await draw(server)
    uri = f"penstock://jobs/{job['id']}/outputs/"
    missing = types.INVALID_PARAMS if mode == "2026-07-28" else -32002
    async with connected(server.url, await server.new_key("other"), mode) as client:
        assert (await client.list_resources()).resources == []
        for given in (f"{uri}0", job["outputs"][0]["url"], "penstock://jobs/job_unknown/outputs/0"):
            with pytest.raises(MCPError) as refusal:
                await client.read_resource(given)
            assert (refusal.value.code, refusal.value.data["status"]) == (missing, 404)
    async with connected(server.url, await server.new_key(), mode) as client:
        for given, status in (
            (f"{uri}1", 404),
            (f"{uri}x", 400),
            (f"{uri}0/../0", 400),
            (f"{server.url}/api/v1/jobs", 404),
            ("file:///etc/passwd", 400),
            ("http://169.254.169.254/", 400),
            ("", 400),
        ):
            with pytest.raises(MCPError) as refusal:
                await client.read_resource(given)
            assert refusal.value.data["status"] == status, given
    async with connected(server.url, await server.new_key(scopes=frozenset({"chat"})), mode) as client:
        for asked in (client.list_resources(), client.list_resource_templates(), client.read_resource(f"{uri}0")):
            with pytest.raises(MCPError) as refusal:
                await asked
            assert refusal.value.data["code"] == "scope_not_allowed"


async def test_a_deleted_job_has_none(server: Server) -> None:
    job = await draw(server)
    assert (await server.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    async with connected(server.url, await server.new_key()) as client:
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError) as refusal:
            await client.read_resource(f"penstock://jobs/{job['id']}/outputs/0")
    assert refusal.value.data["status"] == 410


async def test_without_memory_there_is_a_link(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await draw(server)

    async def take(*_: Any) -> None:
        raise Overloaded

    monkeypatch.setattr(server.gateway.body_memory, "take", take)
    async with connected(server.url, await server.new_key()) as client:
        (read,) = (await client.read_resource(f"penstock://jobs/{job['id']}/outputs/0")).contents
        shown = await client.call_tool("get_asset", {"job_id": job["id"]})
    assert read.mime_type == "text/uri-list"
    assert [each.type for each in shown.content] == ["text", "resource_link"]
