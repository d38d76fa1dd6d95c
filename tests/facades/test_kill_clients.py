"""kill -9 while clients of other services wait: their own retry or poll finds the one job, paid once."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from plain import NO_TLS
from ports import free_port
from tls_front import fronted

PENSTOCK = Path(sys.executable).parent / "penstock"
PROGRAM = Path(__file__).parent / "fal" / "fal_program.py"
SCRIPT = {"latency": 3}


@dataclass
class Machine:
    """A gateway in a process of its own."""

    folder: Path
    public_url: str
    port: int = field(default_factory=free_port)
    key: str = ""

    async def start(self) -> Process:
        settings = f'data = "{self.folder}"\n[server]\nport = {self.port}\npublic_url = "{self.public_url}"\n'
        config = self.folder / "penstock.toml"
        config.write_text(settings + '[vendors.sim]\ntype = "sim"\n')
        with (self.folder / "server.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                PENSTOCK, "serve", "--config", str(config), stdout=log, stderr=log
            )
        async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
            while True:
                assert process.returncode is None, (self.folder / "server.log").read_text()[-3000:]
                try:
                    await client.get(f"http://127.0.0.1:{self.port}/readyz")
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
                else:
                    return process

    def connect(self) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {self.key}"}
        url = f"http://127.0.0.1:{self.port}"
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False, verify=NO_TLS)

    async def command(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(PENSTOCK, *words, "--data", str(self.folder), stdout=PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 0, output
        return output.decode()

    async def count_orders(self) -> dict[str, Any]:
        found = json.loads(await self.command("sim", "--json"))
        return found[0] if isinstance(found, list) else found.get("sim", found)


async def jobs_of(client: httpx.AsyncClient, number: int) -> list[dict[str, Any]]:
    """The jobs once so many run."""
    while True:
        jobs = (await client.get("/api/v1/jobs")).json()["data"]
        if len([job for job in jobs if job["status"] == "running"]) >= number:
            return jobs
        await asyncio.sleep(0.02)


@pytest.mark.timeout(300)
async def test_killed_while_clients_wait_each_finds_its_one_job(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with fronted(authority) as front:
        machine = Machine(tmp_path, f"https://localhost:{front.port}")
        front.target = machine.port
        machine.key = json.loads(await machine.command("key", "create", "--json"))["key"]
        server = await machine.start()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "FAL_RUN_HOST": f"localhost:{front.port}/fal/run",
            "FAL_QUEUE_RUN_HOST": f"localhost:{front.port}/fal/queue",
            "FAL_KEY": machine.key,
            "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
        }
        cases = ("a_run_that_is_killed", "a_subscription_that_is_killed")
        programs = [
            await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), case, env=environment, stdout=PIPE)
            for case in cases
        ]
        async with machine.connect() as client:
            path = "/replicate/v1/models/penstock/sim_text_to_video/predictions"
            prediction = (await client.post(path, json={"input": {"prompt": "kept", "script": SCRIPT}})).json()
            await jobs_of(client, 3)
            server.kill()
            await server.wait()
            server = await machine.start()
            told = [json.loads((await program.communicate())[0]) for program in programs]
            assert [each["problem"] for each in told] == [None, None]
            while (found := (await client.get(f"{path[:13]}/predictions/{prediction['id']}")).json())["output"] is None:
                assert found["status"] in ("starting", "processing"), found
                await asyncio.sleep(0.05)
            jobs = (await client.get("/api/v1/jobs")).json()["data"]
            assert [job["status"] for job in jobs] == ["succeeded"] * 3
        server.terminate()
        assert await server.wait() == 0
        counts = await machine.count_orders()
        assert (counts["orders"], counts["duplicates"]) == (3, 0)
