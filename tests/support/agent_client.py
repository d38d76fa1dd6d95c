"""The official client of MCP for Python, connected to a gateway."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp import Client, types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client

TASKS = "io.modelcontextprotocol/tasks"


@asynccontextmanager
async def connected(url: str, key: str, mode: str = "auto", **options: Any) -> AsyncGenerator[Client]:
    """A client over streamable HTTP; `mode` is legacy, auto or a version."""
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=300, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, **options) as client,
    ):
        yield client


class TaskHandle(types.Result):
    """A task that a call was answered with."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None


class Tasks(ClientExtension):
    """The tasks extension of a client. It leaves the polling to the test."""

    identifier = TASKS

    def claims(self) -> list[ResultClaim[Any]]:
        async def resolve(task: TaskHandle, context: ClaimContext) -> types.CallToolResult:
            raise AssertionError(task, context)

        return [ResultClaim(result_type="task", model=TaskHandle, resolve=resolve)]


class AnyResult(types.Result):
    """A result of any shape."""

    model_config = {"extra": "allow"}
