"""Long calls as durable tasks, for clients that list the extension."""

from typing import Any, Literal, cast

import pytest
from agent_client import TASKS, AnyResult, TaskHandle, Tasks, connected
from conftest import Server
from mcp import Client, MCPError, types

IMAGE = "sim_text_to_image"


class TaskParams(types.RequestParams):
    task_id: str


class TaskRequest(types.Request[TaskParams, str]):
    method: str
    params: TaskParams


async def ask(client: Client, method: str, task_id: str) -> dict[str, Any]:
    request = TaskRequest(method=method, params=TaskParams(task_id=task_id))
    answer = await client.session.send_request(cast("Any", request), AnyResult)
    return answer.model_dump(by_alias=True)


async def order(client: Client, **script: Any) -> TaskHandle:
    params = {"prompt": "a boat", "script": {"latency": 0.05, **script}}
    given = {"model": IMAGE, "params": params}
    task = await client.session.call_tool("generate_image", given, allow_claimed=True)
    assert isinstance(task, TaskHandle), task
    return task


async def finish(server: Server, client: Client, task: TaskHandle) -> dict[str, Any]:
    await server.finish(task.task_id)
    return await ask(client, "tasks/get", task.task_id)


async def test_a_call_becomes_a_task_with_the_id_of_its_job(server: Server) -> None:
    async with connected(server.url, await server.new_key(), extensions=[Tasks()]) as client:
        assert TASKS in (client.server_capabilities.extensions or {})
        task = await order(client, latency=0.3)
        assert task.task_id.startswith("job_")
        assert task.status == "working"
        assert task.ttl_ms is not None
        assert task.poll_interval_ms is not None
        assert (await server.client.get(f"/api/v1/jobs/{task.task_id}")).status_code == 200  # it is durable
        done = await finish(server, client, task)
        assert (done["status"], done["resultType"]) == ("completed", "complete")
        types.CallToolResult.model_validate(done["result"])
        assert [each["type"] for each in done["result"]["content"]] == ["text", "resource_link", "image"]
        assert await ask(client, "tasks/update", task.task_id) == {"_meta": done["_meta"], "resultType": "complete"}


async def test_a_failed_job_is_a_completed_task_and_a_canceled_one_is_cancelled(server: Server) -> None:
    async with connected(server.url, await server.new_key(), extensions=[Tasks()]) as client:
        failed = await finish(server, client, await order(client, ending="failed"))
        assert failed["status"] == "completed"
        assert failed["result"]["isError"]
        task = await order(client, latency=600)
        await ask(client, "tasks/cancel", task.task_id)
        canceled = await finish(server, client, task)
        assert canceled["status"] == "cancelled"
        assert "result" not in canceled


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
async def test_tasks_of_others_are_not_found(server: Server, method: str) -> None:
    async with connected(server.url, await server.new_key(), extensions=[Tasks()]) as client:
        task = await order(client)
    async with connected(server.url, await server.new_key("other"), extensions=[Tasks()]) as client:
        for task_id in (task.task_id, "job_unknown"):
            with pytest.raises(MCPError) as refusal:
                await ask(client, method, task_id)
            assert (refusal.value.code, refusal.value.data["code"]) == (types.INVALID_PARAMS, "job_not_found")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_other_clients_get_no_task(server: Server, mode: Literal["legacy", "2026-07-28"]) -> None:
    params = {"prompt": "a boat", "script": {"latency": 0.1}}
    async with connected(server.url, await server.new_key(), mode) as client:
        result = await client.call_tool("generate_image", {"model": IMAGE, "params": params})
        assert result.structured_content["done"]


async def test_scopes_hold(server: Server) -> None:
    async with connected(server.url, await server.new_key(), extensions=[Tasks()]) as client:
        task = await order(client, latency=600)
    for scope, methods in (("chat", ("tasks/get", "tasks/cancel", "tasks/update")), ("read", ("tasks/cancel",))):
        key = await server.new_key(scopes=frozenset({scope}))
        async with connected(server.url, key, extensions=[Tasks()]) as client:
            for method in methods:
                with pytest.raises(MCPError) as refusal:
                    await ask(client, method, task.task_id)
                assert refusal.value.data["code"] == "scope_not_allowed", (scope, method)
    assert not (await server.client.get(f"/api/v1/jobs/{task.task_id}")).json()["done"]


async def test_the_methods_of_the_other_generation_are_not_known(server: Server) -> None:
    async with connected(server.url, await server.new_key(), extensions=[Tasks()]) as client:
        for method in ("tasks/list", "tasks/result"):
            with pytest.raises(MCPError, match="not found"):
                await ask(client, method, "job_x")
