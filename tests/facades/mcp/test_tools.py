"""The tools as the official Python client sees them, with both generations of the protocol."""

import pytest
from agent_client import connected
from conftest import Server, Start


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_a_picture_is_generated(server: Server, mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with connected(server.url, await server.new_key(), mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        print({name: len(str(tool.input_schema)) for name, tool in tools.items()})
        assert "generate_image" in tools
        result = await client.call_tool(
            "generate_image",
            {"model": "sim_text_to_image", "params": {"prompt": "a boat", "script": {"latency": 0.3}}},
            progress_callback=note,
        )
    print(result, seen)
    assert not result.is_error
