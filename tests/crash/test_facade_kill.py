"""kill -9 while clients of OpenAI wait: their own repetition finds the one job, and nothing is paid twice."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from hook_receiver import LOOPBACK
from ordeal import PENSTOCK
from plain import NO_TLS
from ports import free_port

IMAGE = "sim_text_to_image"
VIDEO = "sim_text_to_video"
SLOW: dict[str, Any] = {"script": {"latency": 3}}
PRICED = "".join(
    f'[[models]]\nid = "{name}"\nvendor = "sim"\nprice = {{per_job = "0.05"}}\n' for name in (IMAGE, VIDEO)
)


class Gateway:
    """A gateway that is killed and started again at its port."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.config = data / "penstock.toml"
        self.config.write_text(LOOPBACK + PRICED)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.key = ""
        self.process: asyncio.subprocess.Process | None = None
        self.client = httpx.AsyncClient(base_url=self.url, timeout=300, trust_env=False, verify=NO_TLS)

    async def start(self) -> None:
        words = ("serve", "--port", str(self.port), "--data", self.data, "--config", self.config)
        with (self.data / "server.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(PENSTOCK, *words, stdout=log, stderr=log)
        while not await self._is_ready():
            assert self.process.returncode is None, (self.data / "server.log").read_text()[-3000:]
            await asyncio.sleep(0.05)

    async def _is_ready(self) -> bool:
        try:
            return (await self.client.get("/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def sign_in(self) -> None:
        words = ("key", "create", "--json", "--data", self.data)
        process = await asyncio.create_subprocess_exec(PENSTOCK, *words, stdout=asyncio.subprocess.PIPE)
        made, _ = await process.communicate()
        self.key = json.loads(made)["key"]
        self.client.headers["authorization"] = f"Bearer {self.key}"

    async def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        await self.process.wait()

    async def jobs(self) -> list[dict[str, Any]]:
        return (await self.client.get("/api/v1/jobs")).json()["data"]

    async def kill_at_work(self, number: int) -> None:
        """Kill it once so many jobs are at their vendor, and start it again."""
        while True:
            if [job["phase"] for job in await self.jobs()] == ["generating"] * number:
                break
            await asyncio.sleep(0.02)
        await self.end()
        await self.start()


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    found = Gateway(tmp_path)
    async with found.client:
        await found.sign_in()
        await found.start()
        try:
            yield found
        finally:
            await found.end()


def connect(gateway: Gateway) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    return openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=10, http_client=http)


@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
async def test_clients_of_openai_get_what_they_ordered_once(gateway: Gateway) -> None:
    unmarked = {"model": IMAGE, "prompt": "three", **SLOW}
    async with connect(gateway) as client:
        drawing = asyncio.create_task(client.images.generate(model=IMAGE, prompt="one", extra_body=SLOW))
        filming = asyncio.create_task(client.videos.create_and_poll(model=VIDEO, prompt="two", extra_body=SLOW))
        lost = asyncio.create_task(gateway.client.post("/v1/images/generations", json=unmarked))
        await gateway.kill_at_work(3)
        with pytest.raises(httpx.TransportError):
            await lost
        again = await gateway.client.post("/v1/images/generations", json=unmarked)
        answer, video = await drawing, await filming

    assert [bool(picture.b64_json) for picture in answer.data or ()] == [True]
    assert video.status == "completed"
    assert again.status_code == 200, again.text
    jobs = await gateway.jobs()
    assert sorted(job["input"]["prompt"] for job in jobs) == ["one", "three", "two"]
    assert [(job["status"], len(job["attempts"]), job["cost"]["final"]) for job in jobs] == [
        ("succeeded", 1, "0.05")
    ] * 3
