"""The transport: what is refused, what is counted, and what lasts."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from agent_client import connected
from conftest import Server, Start

IMAGE = "sim_text_to_image"
EVENTS = {"accept": "application/json, text/event-stream"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list", **EVENTS}


def ask(method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def draw(wait_seconds: int = 50, **script: Any) -> dict[str, Any]:
    arguments = {"model": IMAGE, "params": {"prompt": "x", "script": script}, "wait_seconds": wait_seconds}
    return ask("tools/call", name="generate_image", arguments=arguments)


def answer_of(text: str) -> dict[str, Any]:
    """The last message of a stream."""
    return json.loads([line for line in text.splitlines() if line.startswith("data: ")][-1].removeprefix("data: "))


async def test_there_is_no_session(server: Server) -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    response = await server.client.post("/mcp", json=ask("initialize", **client), headers=EVENTS)
    assert response.json()["result"]["protocolVersion"] == "2025-11-25"
    assert "mcp-session-id" not in response.headers
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    acknowledged = await server.client.post("/mcp", json=notice)
    assert (acknowledged.status_code, acknowledged.content) == (202, b"")
    for method in ("GET", "DELETE"):
        assert (await server.client.request(method, "/mcp")).status_code == 405


async def test_who_is_not_known_is_refused(server: Server) -> None:
    for headers in ({}, {"authorization": "Bearer psk_wrong"}):
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
            response = await client.post("/mcp", json=ask("tools/list"), headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["error"]["data"]["code"] in ("missing_api_key", "invalid_api_key")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:6274", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:8080", 200),
        ("https://gateway.example.com", 200),
        ("https://evil.example.com", 403),
        ("http://gateway.example.com", 403),
        ("http://localhost.evil.example.com", 403),
        ("null", 403),
        ("http://[", 403),
    ],
)
async def test_pages_of_other_sites_are_refused(start: Start, origin: str, status: int) -> None:
    server = await start(overrides={"server.public_url": "https://gateway.example.com"})
    response = await server.client.post("/mcp", json=ask("tools/list"), headers={"origin": origin})
    assert response.status_code == status
    if status == 403:
        assert response.json()["error"]["data"]["code"] == "origin_not_allowed"


async def test_hostile_messages_are_refused_in_json_rpc(server: Server) -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5001
    cases: list[tuple[bytes, int, int]] = [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"[]", 400, -32700),
        (b"\xff", 400, -32700),
        (deep, 400, -32700),
        (b"{}", 400, -32600),
        (b'{"id":1,"method":"tools/list"}', 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":3}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x\\u0000"}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel","_meta":3}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing\\u0000"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"job_x"}}', 200, -32601),
    ]
    for body, status, code in cases:
        headers = {"content-type": "application/json", **EVENTS}
        response = await server.client.post("/mcp", content=body, headers=headers)
        found = (response.status_code, response.json()["error"]["code"])
        assert found == (status, code), (body[:100], response.text)
    large = await server.client.post("/mcp", content=b" " * (33 << 20), headers={"content-type": "application/json"})
    assert (large.status_code, large.json()["error"]["data"]["code"]) == (413, "body_too_large")
    form = await server.client.post("/mcp", data={"a": "b"})
    assert (form.status_code, form.json()["error"]["data"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("headers", "meta", "code"),
    [
        ({"mcp-protocol-version": "2030-01-01"}, META, -32020),
        (
            {"mcp-protocol-version": "2030-01-01"},
            {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"},
            -32022,
        ),
        ({"mcp-method": "tools/call"}, META, -32020),
        ({}, {}, -32602),
    ],
)
async def test_headers_and_body_must_agree(
    server: Server, headers: dict[str, str], meta: dict[str, Any], code: int
) -> None:
    request = ask("tools/list", _meta=meta)
    fine = await server.client.post("/mcp", json=ask("tools/list", _meta=META), headers=MODERN)
    assert fine.json()["result"]["resultType"] == "complete"
    response = await server.client.post("/mcp", json=request, headers={**MODERN, **headers})
    assert (response.status_code, response.json()["error"]["code"]) == (400, code), response.text


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_versions_get_what_they_know(server: Server, version: str) -> None:
    headers = {**EVENTS, "mcp-protocol-version": version}
    response = await server.client.post("/mcp", json=draw(latency=0.05), headers=headers)
    kinds = [each["type"] for each in answer_of(response.text)["result"]["content"]]
    assert kinds == (["text", "resource_link", "image"] if version >= "2025-06-18" else ["text", "image"])


async def test_who_reads_no_events_is_answered_at_once(server: Server) -> None:
    response = await server.client.post("/mcp", json=draw(latency=600), headers={"accept": "application/json"})
    assert response.headers["content-type"] == "application/json"
    assert not response.json()["result"]["structuredContent"]["done"]


async def test_a_client_that_leaves_does_not_stop_the_job(server: Server) -> None:
    async with server.client.stream("POST", "/mcp", json=draw(latency=1), headers=EVENTS) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
    job = (await server.client.get("/api/v1/jobs")).json()["data"][0]
    assert (await server.finish(job["id"]))["status"] == "succeeded"


async def test_waiting_calls_count_as_streams(start: Start) -> None:
    server = await start(overrides={"server.max_streams": 1})
    async with server.client.stream("POST", "/mcp", json=draw(latency=600), headers=EVENTS) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        second = await server.client.post("/mcp", json=draw(latency=600), headers=EVENTS)
        assert second.headers["content-type"] == "application/json"
        assert "job_status" in second.json()["result"]["structuredContent"]["next"]
        assert (await server.client.get("/api/v1/events", headers={"accept": "text/event-stream"})).status_code == 429


async def test_a_drain_ends_the_wait_with_the_open_job(server: Server) -> None:
    async with server.client.stream("POST", "/mcp", json=draw(latency=600), headers=EVENTS) as response:
        server.gateway.drain()
        answer = answer_of((await response.aread()).decode())
    assert answer["id"] == 1
    assert not answer["result"]["structuredContent"]["done"]
    late = await server.client.post("/mcp", json=draw(latency=600), headers=EVENTS)
    assert late.json()["result"]["structuredContent"]["error"]["code"] == "overloaded"


async def test_it_can_be_switched_off(start: Start) -> None:
    server = await start(overrides={"facades.off": ("mcp",)})
    assert (await server.client.post("/mcp", json=ask("tools/list"))).status_code == 404


async def test_rate_limits_hold(server: Server) -> None:
    async with connected(server.url, await server.new_key(requests_per_minute=1)) as client:
        given = {"model": IMAGE, "params": {"prompt": "x"}, "wait_seconds": 0}
        assert not (await client.call_tool("generate_image", given)).is_error
        result = await client.call_tool("generate_image", given)
        assert result.structured_content["error"]["code"] == "rate_limited"
        assert result.structured_content["error"]["retry_after"] > 0
        assert not (await client.call_tool("list_models", {})).is_error


async def test_equal_keys_at_the_same_time_make_one_job(server: Server) -> None:
    request = draw(0, latency=0.05)
    headers = {**EVENTS, "idempotency-key": "one"}
    answers = await asyncio.gather(*(server.client.post("/mcp", json=request, headers=headers) for _ in range(5)))
    jobs = [answer.json()["result"]["structuredContent"].get("job_id") for answer in answers]
    assert len({job for job in jobs if job}) == 1
    assert len((await server.client.get("/api/v1/jobs")).json()["data"]) == 1
