"""kill -9 between an event and its webhook: nothing is lost, and what was on its way comes again under its id."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hook_receiver import LOOPBACK, Receiver, create, is_signed, receiving
from ordeal import PENSTOCK
from plain import NO_TLS
from ports import free_port
from steps import order

JOBS = 12


class Victim:
    """A server that is killed and started again."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.config = data / "penstock.toml"
        self.config.write_text(LOOPBACK)
        self.port = free_port()
        self.process: asyncio.subprocess.Process | None = None
        self.client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", timeout=300, trust_env=False, verify=NO_TLS
        )

    async def sign_in(self) -> None:
        words = ("key", "create", "--json", "--data", self.data)
        process = await asyncio.create_subprocess_exec(PENSTOCK, *words, stdout=asyncio.subprocess.PIPE)
        made, _ = await process.communicate()
        self.client.headers["authorization"] = f"Bearer {json.loads(made)['key']}"

    async def start(self) -> None:
        words = ("serve", "--port", str(self.port), "--data", self.data, "--config", self.config)
        with (self.data / "server.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(PENSTOCK, *words, stdout=log, stderr=log)
        while True:
            assert self.process.returncode is None, (self.data / "server.log").read_text()[-3000:]
            try:
                if (await self.client.get("/readyz")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.02)

    async def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        await self.process.wait()

    async def until_delivered(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(200):
            while True:
                query = {"status": "delivered", "limit": 100}
                response = await self.client.get("/api/v1/webhooks/deliveries", params=query)
                assert response.status_code == 200, response.text
                found = response.json()["data"]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.05)


@pytest.fixture
async def victim(tmp_path: Path) -> AsyncGenerator[Victim]:
    victim = Victim(tmp_path)
    await victim.sign_in()
    await victim.start()
    yield victim
    await victim.end(signal.SIGTERM)
    await victim.client.aclose()


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.mark.timeout(900)
async def test_a_server_killed_before_it_told_tells_when_it_is_back(victim, receiver):
    receiver.reply = receiver.hang
    hook = await create(victim.client, receiver.url())
    batch = await order(victim.client, *[{}] * JOBS)
    await receiver.wait(3)  # some are on their way, others wait for room or are not over yet
    await victim.end()
    for _ in range(20):  # what it had sent is taken up
        await asyncio.sleep(0.01)
    receiver.reply = 200
    cut = len(receiver.messages)
    await victim.start()
    told = await victim.until_delivered(JOBS)
    assert {each["job_id"] for each in told} == {job["id"] for job in batch["jobs"]}
    assert all(is_signed(message, hook["secret"]) for message in receiver.messages)
    after = [message.id for message in receiver.messages[cut:]]
    assert sorted(after) == sorted(each["event_id"] for each in told), "each once more, or at last"
    assert {message.id for message in receiver.messages[:cut]} <= set(after)
