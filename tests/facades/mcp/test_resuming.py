"""A call that waits goes on when its connection breaks: clients of 2025-11-25 take the stream up again."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_client import connected
from conftest import Server

from penstock.web.facades.mcp import resuming

HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


def call(method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "seven", "method": method, "params": params}


def draw(**script: Any) -> dict[str, Any]:
    return {"model": "sim_text_to_image", "params": {"prompt": "a boat", "script": script}}


async def break_off(server: Server, message: dict[str, Any], version: str = "2025-11-25") -> str | None:
    """Leave in the middle of a stream. Return the event id that it gave."""
    headers = {**HEADERS, "mcp-protocol-version": version}
    async with server.client.stream("POST", "/mcp", json=message, headers=headers) as response:
        first = await anext(response.aiter_text())
    lines = dict(line.split(": ", 1) for line in first.splitlines() if ": " in line[1:])
    return lines.get("id")


async def resume(server: Server, event_id: str | None, key: str | None = None) -> dict[str, Any]:
    headers = {**HEADERS, "last-event-id": event_id or ""} | ({} if key is None else {"authorization": f"Bearer {key}"})
    response = await server.client.get("/mcp", headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    return json.loads([line for line in response.text.splitlines() if line.startswith("data: {")][-1][6:])


async def test_a_broken_stream_is_taken_up_again(server: Server) -> None:
    event_id = await break_off(server, call(name="generate_image", arguments=draw(latency=0.5)))
    for _ in range(2):  # while the job is open, perhaps, and when it is done
        answer = await resume(server, event_id)
        assert answer["id"] == "seven"
        assert answer["result"]["structuredContent"]["status"] == "succeeded"
    assert len((await server.client.get("/api/v1/jobs")).json()["data"]) == 1


async def test_so_is_the_wait_for_a_task(server: Server) -> None:
    job = await server.submit("sim_text_to_image", prompt="a boat", script={"latency": 0.5})
    event_id = await break_off(server, call("tasks/result", taskId=job["id"]))
    answer = await resume(server, event_id)
    assert answer["result"]["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": job["id"]}}


async def test_nothing_else_is_resumed(server: Server) -> None:
    message = call(name="generate_image", arguments=draw(latency=600))
    assert await break_off(server, message, "2025-06-18") is None
    event_id = await break_off(server, message)
    answer = await resume(server, event_id, await server.new_key("other"))
    assert answer["result"]["structuredContent"]["error"]["code"] == "job_not_found"
    answer = await resume(server, event_id, await server.new_key(scopes=frozenset({"chat"})))
    assert answer["result"]["structuredContent"]["error"]["code"] == "scope_not_allowed"
    for given in ("", "soup", "e30", "_" * 1000, "\x80"):
        response = await server.client.get(
            "/mcp", headers=[*HEADERS.items(), ("last-event-id", given.encode("latin-1"))]
        )
        assert (response.status_code, response.headers["allow"]) == (405, "POST"), given
    response = await server.client.get("/mcp", headers={"origin": "https://evil.example.com", "last-event-id": "x"})
    assert response.status_code == 403


async def test_an_id_that_is_too_long_for_a_header_is_not_given(server: Server) -> None:
    message = {**call(name="generate_image", arguments=draw(latency=600)), "id": "x" * 10_000}
    assert await break_off(server, message) is None


class Proxy:
    """Passes connections on, and cuts them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: list[asyncio.StreamWriter] = []

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open += [writer, far_writer]
        await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()


@asynccontextmanager
async def cut_off(server: Server) -> AsyncGenerator[tuple[Proxy, str]]:
    proxy = Proxy(int(server.url.rpartition(":")[2]))
    async with await asyncio.start_server(proxy.carry, "127.0.0.1", 0) as listener:
        yield proxy, f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        proxy.cut()


async def test_the_official_client_gets_its_result_after_a_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "RETRY_MS", 10)
    cuts = 0

    async def cut(*_: Any) -> None:
        nonlocal cuts
        if not cuts:
            cuts += 1
            proxy.cut()

    async with cut_off(server) as (proxy, url), connected(url, await server.new_key(), "legacy") as client:
        result = await client.call_tool("generate_image", draw(latency=1), progress_callback=cut)
    assert (result.structured_content["status"], cuts) == ("succeeded", 1)
    assert len((await server.client.get("/api/v1/jobs")).json()["data"]) == 1
