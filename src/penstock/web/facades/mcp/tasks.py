"""Tasks: jobs under another name. The extension of 2026-07-28, and the experimental methods of 2025-11-25."""

from typing import Any, Final

import mcp_types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import Field

from penstock.domain.api_keys import Scope
from penstock.domain.jobs import Job
from penstock.errors import PenstockError
from penstock.store.queries.jobs import job_rows
from penstock.web.api.jobs import read_cursor, write_cursor
from penstock.web.auth import Caller
from penstock.web.facades import orders
from penstock.web.facades.mcp import task_record
from penstock.web.facades.mcp.context import PAGE, Context, admitted, call_of, is_modern, refusal, unknown_method
from penstock.web.facades.mcp.tools import GENERATE

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The extension by which 2026-07-28 answers long calls with a task."""
HANDSHAKE_VERSION: Final = "2025-11-25"
"""The only version with a handshake that has tasks."""
CAPABILITY: Final[dict[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
WHOLE_JOB_SECONDS: Final = float("inf")
"""A wait that ends with the job."""


class TaskParams(mcp_types.RequestParams):
    """Params of the methods about one task."""

    task_id: str = Field(alias="taskId")


def add_handlers(server: Server[Any]) -> None:
    """Let the server answer the methods about tasks."""
    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, _get)
    server.add_request_handler("tasks/cancel", TaskParams, _cancel)
    server.add_request_handler("tasks/update", TaskParams, _update)
    server.add_request_handler("tasks/list", mcp_types.PaginatedRequestParams, _list)
    server.add_request_handler("tasks/result", TaskParams, _get_result)


async def _get(context: Context, params: TaskParams) -> dict[str, Any]:
    caller, job = await _find(context, params.task_id)
    now = caller.gateway.clock()
    if not is_modern(context):
        return task_record.describe_handshake_task(job, now)
    task = task_record.describe_task(job, now)
    more = {"result": await call_of(context).finish(job)} if task["status"] == "completed" else {}
    return {"resultType": "complete", **task, **more}


async def _cancel(context: Context, params: TaskParams) -> dict[str, Any]:
    caller, job = await _find(context, params.task_id, Scope.GENERATE)
    if job.done and not is_modern(context):
        raise MCPError(mcp_types.INVALID_PARAMS, f"The task has ended, it cannot be cancelled: the job is {job.state}.")
    try:
        job = await orders.cancel(caller, params.task_id)
    except PenstockError as error:
        raise refusal(error) from None
    if is_modern(context):
        return {"resultType": "complete"}
    return task_record.describe_handshake_task(job, caller.gateway.clock())


async def _update(context: Context, params: TaskParams) -> dict[str, Any]:
    """Take answers that no job asks for: they are to be ignored."""
    if not is_modern(context):
        raise unknown_method(context)
    await _find(context, params.task_id)
    return {"resultType": "complete"}


async def _list(context: Context, params: mcp_types.PaginatedRequestParams) -> dict[str, Any]:
    """List the account's jobs, newest first."""
    if context.protocol_version != HANDSHAKE_VERSION:
        raise unknown_method(context)
    caller = admitted(context, Scope.READ)
    now = caller.gateway.clock()
    try:
        before = None if params.cursor is None else read_cursor(params.cursor)
        found = await caller.gateway.database.look(job_rows.page, caller.account_id, {"kept_at": now}, before, PAGE + 1)
    except PenstockError as error:
        raise refusal(error) from None
    page = found[:PAGE]
    more = {"nextCursor": write_cursor(page[-1].id)} if len(found) > PAGE else {}
    return {"tasks": [task_record.describe_handshake_task(job, now) for job in page], **more}


async def _get_result(context: Context, params: TaskParams) -> dict[str, Any]:
    """Return the result of the call. While the job is open, the answer waits for its end where the client can wait."""
    if context.protocol_version != HANDSHAKE_VERSION:
        raise unknown_method(context)
    _, job = await _find(context, params.task_id)
    call = call_of(context)
    if not job.done:
        call.job, call.wait_seconds = job, WHOLE_JOB_SECONDS
        raise MCPError(mcp_types.INTERNAL_ERROR, f"{job.id} goes on: poll tasks/get, then ask for the result again.")
    found = {name: value for name, value in (await call.finish(job)).items() if name != "resultType"}
    return {**found, "_meta": {task_record.RELATED_TASK: {"taskId": job.id}}}


async def _find(context: Context, job_id: str, scope: Scope = Scope.READ) -> tuple[Caller, Job]:
    if not is_modern(context) and context.protocol_version != HANDSHAKE_VERSION:
        raise unknown_method(context)
    caller = admitted(context, scope)
    try:
        return caller, await orders.find(caller, job_id)
    except PenstockError as error:
        raise refusal(error) from None


async def start(context: Context, params: mcp_types.CallToolRequestParams) -> dict[str, Any]:
    """Begin a call that wants a task of 2025-11-25. Only tools that generate have one."""
    if not params.name.startswith(GENERATE):
        raise MCPError(mcp_types.METHOD_NOT_FOUND, f"{params.name[:100]} makes no task: call it without `task`.")
    call = call_of(context)
    call.wants_task = True
    result = await call.answer(params.name, params.arguments or {})
    if result["isError"]:
        raise MCPError(mcp_types.INVALID_PARAMS, result["content"][0]["text"], result["structuredContent"]["error"])
    return result
