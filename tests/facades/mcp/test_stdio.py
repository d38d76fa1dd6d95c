"""`penstock mcp`: the tools over stdin and stdout, as the official client starts them."""

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

import pytest
from agent_client import Tasks
from conftest import Server
from mcp import Client, StdioServerParameters

IMAGE = "sim_text_to_image"
PENSTOCK = shutil.which("penstock", path=str(Path(sys.executable).parent)) or "penstock"


def environment(url: str, key: str) -> dict[str, str]:
    return {**os.environ, "PENSTOCK_BASE_URL": url, "PENSTOCK_API_KEY": key}


def draw(**script: Any) -> dict[str, Any]:
    return {"model": IMAGE, "params": {"prompt": "a boat", "script": {"latency": 0.05, **script}}}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_generates(server: Server, mode: str) -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    command = StdioServerParameters(command=PENSTOCK, args=["mcp"], env=environment(server.url, await server.new_key()))
    async with Client(command, mode=mode) as client:
        assert "generate_image" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("generate_image", draw(latency=0.3), progress_callback=note)
    assert result.structured_content["status"] == "succeeded"
    assert len(seen) >= 2


async def test_tasks_pass(server: Server) -> None:
    command = StdioServerParameters(command=PENSTOCK, args=["mcp"], env=environment(server.url, await server.new_key()))
    async with Client(command, extensions=[Tasks()]) as client:
        task = await client.session.call_tool("generate_image", draw(), allow_claimed=True)
    assert task.task_id.startswith("job_")


async def start(url: str, key: str) -> Process:
    return await asyncio.create_subprocess_exec(
        PENSTOCK, "mcp", env=environment(url, key), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def say(process: Process, message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
    await process.stdin.drain()


async def hear(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    return json.loads(await process.stdout.readline())


async def test_bad_messages_are_answered_and_the_end_of_the_input_ends_it(server: Server) -> None:
    process = await start(server.url, await server.new_key())
    for message, code in ((b"{", -32700), (b"[1]", -32600), ({"id": None, "method": "ping"}, -32600)):
        await say(process, message)
        assert (await hear(process))["error"]["code"] == code
    await say(process, {"id": 7, "method": "ping"})
    answer = await hear(process)
    assert (answer["id"], answer["error"]["code"]) == (7, -32600)
    await say(process, b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "\\ud800"}}')
    answer = await hear(process)
    assert (answer["id"], answer["error"]["code"]) == (8, -32700)
    await say(process, {"jsonrpc": "2.0", "id": 9, "method": "ping"})
    await say(process, {"jsonrpc": "2.0", "id": 9, "method": "ping"})
    both = {str(message["id"]): message for message in (await hear(process), await hear(process))}
    assert both["9"]["result"] == {}
    assert both["None"]["error"]["code"] == -32600
    output, errors = await process.communicate(b"")
    assert (process.returncode, output, errors) == (0, b"", b"")


def call(number: int, **script: Any) -> dict[str, Any]:
    params = {"name": "generate_image", "arguments": draw(**script), "_meta": {"progressToken": number}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


async def test_open_calls_are_answered_after_the_end_of_the_input(server: Server) -> None:
    process = await start(server.url, await server.new_key())
    words = [json.dumps(call(number, latency=0.5)) for number in range(3)]
    output, errors = await process.communicate("\n".join(words).encode())  # without a newline at the end
    answers = [message for message in map(json.loads, output.splitlines()) if "id" in message]
    assert {answer["id"]: answer["result"]["structuredContent"]["status"] for answer in answers} == dict.fromkeys(
        range(3), "succeeded"
    )
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.parametrize("has_ended", [False, True])
async def test_it_leaves_when_nobody_reads(server: Server, has_ended: bool) -> None:
    ours, theirs = os.pipe()
    process = await asyncio.create_subprocess_exec(
        PENSTOCK, "mcp", env=environment(server.url, await server.new_key()), stdin=PIPE, stdout=theirs, stderr=PIPE
    )
    os.close(theirs)
    await say(process, call(1, latency=600))
    assert b"notifications/progress" in await asyncio.to_thread(os.read, ours, 1000)  # the call is open
    os.close(ours)
    assert process.stdin is not None
    if has_ended:
        process.stdin.close()
    else:
        await say(process, {"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert process.stderr is not None
    assert await process.stderr.read() == b""
    assert await process.wait() == 0


async def test_a_cancelled_call_is_not_answered_and_its_job_goes_on(server: Server) -> None:
    process = await start(server.url, await server.new_key())
    await say(process, call(1, latency=600))
    assert (await hear(process))["method"] == "notifications/progress"
    await say(process, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    output, errors = await process.communicate(b"")
    assert (process.returncode, output, errors) == (0, b"", b"")
    (job,) = (await server.client.get("/api/v1/jobs")).json()["data"]
    assert not job["done"]


async def test_a_wrong_key_is_answered(server: Server) -> None:
    process = await start(server.url, "psk_wrong")
    await say(process, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    answer = await hear(process)
    assert (answer["id"], answer["error"]["data"]["code"]) == (1, "invalid_api_key")
    await process.communicate(b"")


async def test_without_a_key_it_says_what_to_set() -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    process = await asyncio.create_subprocess_exec(PENSTOCK, "mcp", env=environ, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    _, errors = await process.communicate(b"")
    assert process.returncode == 2
    assert b"PENSTOCK_API_KEY" in errors
