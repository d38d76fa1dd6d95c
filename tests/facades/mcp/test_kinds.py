"""Every kind that the built-in engines make, each from the output of an earlier call."""

from typing import Any

import httpx
import jsonschema
import pytest
from agent_client import connected
from conftest import Server, Start
from mcp import Client

MAGIC = {
    "image/png": (0, b"\x89PNG"),
    "video/mp4": (4, b"ftyp"),
    "model/gltf-binary": (0, b"glTF"),
    "audio/mpeg": (0, b""),
    "application/json": (0, b"{"),
}


class Agent:
    """A client that checks each call by its tool's schema, and each output by its bytes."""

    def __init__(self, client: Client, tools: dict[str, Any]) -> None:
        self._client = client
        self._tools = tools

    async def make(self, kind: str, content_type: str, model: str, **params: Any) -> str:
        """Generate, and return the URI of the output."""
        given = {"model": model, "params": params}
        jsonschema.validate(given, self._tools[f"generate_{kind}"].input_schema)
        price = await self._client.call_tool("estimate", given)
        assert (price.is_error, price.structured_content["cost"]["estimated"]) == (False, "0.00")
        result = await self._client.call_tool(f"generate_{kind}", {**given, "wait_seconds": 300})
        assert not result.is_error, result.content[0].text
        job_id = result.structured_content["job_id"]
        asset = await self._client.call_tool("get_asset", {"job_id": job_id})
        assert asset.structured_content["content_type"] == content_type
        async with httpx.AsyncClient(trust_env=False) as http:  # without a key
            data = (await http.get(next(each.uri for each in asset.content if each.type == "resource_link"))).content
        start, magic = MAGIC[content_type]
        assert data[start:].startswith(magic)
        return f"penstock://jobs/{job_id}/outputs/0"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_every_kind_is_generated(start: Start, mode: str) -> None:
    server = await start("")
    async with connected(server.url, await server.new_key(), mode) as client:
        agent = Agent(client, {tool.name: tool for tool in (await client.list_tools()).tools})
        picture = await agent.make("image", "image/png", "sketch_1", prompt="a red fox", size="256x256")
        await agent.make("3d", "model/gltf-binary", "inflate_1", image=picture, face_limit=1000)
        await agent.make("video", "video/mp4", "still_film", prompt="slow push in", image=picture, duration=1)
        speech = await agent.make("audio", "audio/mpeg", "hibari_text_to_speech", text="The water drives a turbine.")
        text = await agent.make("text", "application/json", "whisper_speech_to_text", audio=speech)
        (read,) = (await client.read_resource(text)).contents
    assert "turbine" in read.text


async def test_an_output_of_another_account_is_no_input(server: Server) -> None:
    job = await server.generate("sim_text_to_image", prompt="a boat", script={})
    given = {"model": "sim_image_to_model", "params": {"image": f"penstock://jobs/{job['id']}/outputs/0"}}
    async with connected(server.url, await server.new_key("other")) as client:
        refused = await client.call_tool("generate_3d", given)
    assert refused.is_error
    assert "params.image" in refused.content[0].text
    async with connected(server.url, await server.new_key()) as client:
        made = await client.call_tool("generate_3d", given)
        beyond = {**given, "params": {"image": f"penstock://jobs/{job['id']}/outputs/9"}}
        missing = await client.call_tool("generate_3d", beyond)
    assert not made.is_error
    assert missing.is_error
