"""kill -9 of the gateway while a tool is called: the bridge's resend, a repeated call and the poll find the one job."""

import asyncio
import json
import os
import shutil
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_client import Tasks, connected
from mcp import Client, StdioServerParameters

IMAGE = "sim_text_to_image"
PENSTOCK = shutil.which("penstock", path=str(Path(sys.executable).parent)) or "penstock"
DRAW = {"model": IMAGE, "params": {"prompt": "a boat", "script": {"latency": 2}}, "idempotency_key": "boat"}


class Machine:
    """A gateway in a process of its own, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = folder / "penstock.toml"
        config.write_text(f'[server]\nport = {self.port}\n[vendors.sim]\ntype = "sim"\n')
        self.environ = {**os.environ, "PENSTOCK_DATA": str(folder), "PENSTOCK_CONFIG": str(config)}
        self.process: Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            PENSTOCK, "serve", env=self.environ, stdout=DEVNULL, stderr=DEVNULL
        )
        async with httpx.AsyncClient(base_url=self.url, trust_env=False) as client:
            while True:
                try:
                    if (await client.get("/readyz")).status_code == 200:
                        return
                except httpx.TransportError:
                    assert self.process.returncode is None
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    async def make_key(self) -> str:
        words = (PENSTOCK, "key", "create", "--json", "--name", "test")
        process = await asyncio.create_subprocess_exec(*words, env=self.environ, stdout=PIPE)
        output, _ = await process.communicate()
        return json.loads(output)["key"]

    async def jobs(self, key: str) -> list[dict[str, Any]]:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False) as client:
            return (await client.get("/api/v1/jobs")).json()["data"]


@asynccontextmanager
async def machine_in(folder: Path) -> AsyncGenerator[Machine]:
    machine = Machine(folder)
    await machine.start()
    try:
        yield machine
    finally:
        await machine.kill()


@pytest.mark.timeout(600)
async def test_each_way_back_finds_the_one_job(tmp_path: Path) -> None:
    async with machine_in(tmp_path) as machine:
        key = await machine.make_key()
        command = StdioServerParameters(
            command=PENSTOCK,
            args=["mcp", "--base-url", machine.url],
            env={**machine.environ, "PENSTOCK_API_KEY": key},
        )
        async with Client(command) as client:
            began = asyncio.Event()

            async def note(progress: float, total: float | None, message: str | None) -> None:
                began.set()

            own = {name: value for name, value in DRAW.items() if name != "idempotency_key"}
            call = asyncio.create_task(client.call_tool("generate_image", own, progress_callback=note))
            await began.wait()
            await machine.kill()
            await machine.start()
            resent = (await call).structured_content
        assert resent["status"] == "succeeded"
        assert [job["id"] for job in await machine.jobs(key)] == [resent["job_id"]]

        async with connected(machine.url, key, extensions=[Tasks()]) as client:
            task = await client.session.call_tool("generate_image", DRAW, allow_claimed=True)
            await machine.kill()
        await machine.start()
        async with connected(machine.url, key) as client:
            headers = {"authorization": f"Bearer {key}", "mcp-protocol-version": "2025-11-25"}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": task.task_id}}
            async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
                found = (await http.post(f"{machine.url}/mcp", json=asked)).json()
            assert found["result"]["status"] in ("working", "completed")
            repeated = (await client.call_tool("generate_image", DRAW)).structured_content
            polled = (await client.call_tool("job_status", {"job_id": task.task_id})).structured_content
        assert (repeated["job_id"], repeated["status"]) == (task.task_id, "succeeded")
        assert polled["cost"] == repeated["cost"]
        assert len(await machine.jobs(key)) == 2
