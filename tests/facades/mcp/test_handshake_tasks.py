"""The experimental tasks of 2025-11-25: `task` in the params of a call, then the methods about it."""

import asyncio
from typing import Any

import pytest
from conftest import Server
from mcp import types

IMAGE = "sim_text_to_image"
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
RELATED = "io.modelcontextprotocol/related-task"


async def ask(server: Server, method: str, key: str | None = None, **params: Any) -> dict[str, Any]:
    """The answer to a message: the last one, if it is a stream."""
    headers = HEADERS if key is None else {**HEADERS, "authorization": f"Bearer {key}"}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = await server.client.post("/mcp", json=message, headers=headers)
    if response.headers["content-type"].startswith("text/event-stream"):
        lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
        response._content = lines[-1].removeprefix("data: ").encode()
    return response.json()


def draw(**script: Any) -> dict[str, Any]:
    arguments = {"model": IMAGE, "params": {"prompt": "a boat", "script": {"latency": 0.05, **script}}}
    return {"name": "generate_image", "arguments": arguments, "task": {"ttl": 60_000}}


async def order(server: Server, **script: Any) -> str:
    return (await ask(server, "tools/call", **draw(**script)))["result"]["task"]["taskId"]


async def test_a_task_is_created_listed_and_has_a_result(server: Server) -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    capabilities = (await ask(server, "initialize", **client))["result"]["capabilities"]
    assert capabilities["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    tools = {tool["name"]: tool.get("execution") for tool in (await ask(server, "tools/list"))["result"]["tools"]}
    assert (tools["generate_image"], tools["list_models"]) == ({"taskSupport": "optional"}, None)

    created = types.CreateTaskResult.model_validate((await ask(server, "tools/call", **draw(latency=0.3)))["result"])
    task_id = created.task.task_id
    assert created.task.status == "working"
    assert (await server.client.get(f"/api/v1/jobs/{task_id}")).status_code == 200  # it is durable
    result = (await ask(server, "tasks/result", taskId=task_id))["result"]  # waits
    types.CallToolResult.model_validate(result)
    assert [each["type"] for each in result["content"]] == ["text", "resource_link", "image"]
    assert result["_meta"] == {RELATED: {"taskId": task_id}}
    task = types.GetTaskResult.model_validate((await ask(server, "tasks/get", taskId=task_id))["result"])
    assert (task.status, task.poll_interval) == ("completed", 1000)
    listed = types.ListTasksResult.model_validate((await ask(server, "tasks/list"))["result"])
    assert [each.task_id for each in listed.tasks] == [task_id]


async def test_the_list_has_pages(server: Server) -> None:
    made = [await order(server) for _ in range(51)]
    first = (await ask(server, "tasks/list"))["result"]
    second = (await ask(server, "tasks/list", cursor=first["nextCursor"]))["result"]
    assert [task["taskId"] for task in first["tasks"] + second["tasks"]] == made[::-1]
    assert "nextCursor" not in second
    assert (await ask(server, "tasks/list", cursor="soup"))["error"]["code"] == types.INVALID_PARAMS


@pytest.mark.parametrize("ending", ["failed", "filtered"])
async def test_a_failed_job_is_a_failed_task_with_a_result(server: Server, ending: str) -> None:
    task_id = await order(server, ending=ending)
    job = await server.finish(task_id)
    task = (await ask(server, "tasks/get", taskId=task_id))["result"]
    assert task["status"] == "failed"
    assert job["error"]["message"] in task["statusMessage"]
    result = (await ask(server, "tasks/result", taskId=task_id))["result"]
    assert result["isError"]
    assert job["error"]["message"] in result["content"][0]["text"]


async def test_a_task_is_cancelled_once(server: Server) -> None:
    task_id = await order(server, latency=600)
    waiting = asyncio.create_task(ask(server, "tasks/result", taskId=task_id))
    task = types.CancelTaskResult.model_validate((await ask(server, "tasks/cancel", taskId=task_id))["result"])
    assert task.status in ("working", "cancelled")
    assert (await server.finish(task_id))["status"] == "canceled"
    assert (await ask(server, "tasks/get", taskId=task_id))["result"]["status"] == "cancelled"
    assert "Nothing is charged" in (await waiting)["result"]["content"][0]["text"]
    assert (await ask(server, "tasks/cancel", taskId=task_id))["error"]["code"] == types.INVALID_PARAMS


async def test_a_refused_call_makes_no_task(server: Server) -> None:
    for call, code in (
        ({"name": "generate_image", "arguments": {"model": IMAGE, "params": {"promt": "x"}}}, -32602),
        ({"name": "generate_image", "arguments": {"model": "nothing"}}, -32602),
        ({"name": "generate_soup", "arguments": {}}, -32602),
        ({"name": "list_models", "arguments": {}}, -32601),
    ):
        answer = await ask(server, "tools/call", **call, task={})
        assert answer["error"]["code"] == code, answer
    assert (await ask(server, "tasks/list"))["result"] == {"tasks": []}


async def test_a_client_that_reads_no_events_polls(server: Server) -> None:
    task_id = await order(server, latency=600)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tasks/result", "params": {"taskId": task_id}}
    headers = {**HEADERS, "accept": "application/json"}
    answer = (await server.client.post("/mcp", json=message, headers=headers)).json()
    assert "tasks/get" in answer["error"]["message"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/result"])
async def test_tasks_of_others_are_not_found(server: Server, method: str) -> None:
    task_id, other = await order(server), await server.new_key("other")
    for given in (task_id, "job_unknown", "", "job_" + "x" * 10_000, "job_\0"):
        answer = await ask(server, method, other, taskId=given)
        assert answer["error"]["code"] == types.INVALID_PARAMS, answer
        assert answer["error"]["data"]["code"] == "job_not_found"
    assert (await ask(server, "tasks/list", other))["result"] == {"tasks": []}


async def test_scopes_hold(server: Server) -> None:
    task_id = await order(server, latency=600)
    for scope, methods in (
        ("chat", ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")),
        ("read", ("tasks/cancel",)),
    ):
        key = await server.new_key(scopes=frozenset({scope}))
        for method in methods:
            answer = await ask(server, method, key, taskId=task_id)
            assert answer["error"]["data"]["code"] == "scope_not_allowed", (scope, method)
    assert (await ask(server, "tasks/get", key, taskId=task_id))["result"]["status"] == "working"
    await ask(server, "tasks/cancel", taskId=task_id)


@pytest.mark.parametrize("method", ["tasks/update", "tasks/nothing"])
async def test_other_methods_are_not_known(server: Server, method: str) -> None:
    assert (await ask(server, method, taskId="job_x"))["error"]["code"] == types.METHOD_NOT_FOUND
