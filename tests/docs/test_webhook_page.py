"""The receivers on the pages of webhooks believe what a real server sends it, and nothing else."""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from hook_receiver import LOOPBACK, create
from plain import NO_TLS
from ports import free_port

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = {
    "python": (DOCS / "webhooks.md", (sys.executable, "-c")),
    "js": (DOCS / "howto" / "receive-webhooks.md", ("node", "--input-type=module", "--eval")),
}


@asynccontextmanager
async def receiver(language: str, port: int, secret: str) -> AsyncIterator[asyncio.StreamReader]:
    """The page's program, and what it prints."""
    page, command = PROGRAMS[language]
    (program,) = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    process = await asyncio.create_subprocess_exec(
        *(*command, program.replace("9000", str(port))),
        env={"PATH": os.environ["PATH"], "WEBHOOK_SECRET": secret},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
            while True:
                try:
                    await client.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
        assert process.stdout is not None
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("language", PROGRAMS)
async def test_the_receiver_on_the_page(start, language):
    server, port = await start(LOOPBACK), free_port()
    hook = await create(server.client, f"http://127.0.0.1:{port}/")
    ping = f"/api/v1/webhooks/{hook['id']}/ping"
    async with receiver(language, port, hook["secret"]) as printed:
        assert (await server.client.post(ping)).json()["status"] == "delivered"
        assert (await printed.readline()).startswith(b"webhook.ping ping_")
        job = await server.generate("sim_text_to_video", script={})
        assert (await printed.readline()).startswith(b"job.succeeded evt_")
        assert job["status"] == "succeeded"
    async with receiver(language, port, "whsec_c29tZWJvZHkgZWxzZQ=="):
        forged = {"webhook-id": "x", "webhook-timestamp": str(int(time.time())), "webhook-signature": b"\xe9" * 47}
        async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as stranger:
            assert (await stranger.post(f"http://127.0.0.1:{port}/", content=b"{}", headers=forged)).status_code == 401
        told = (await server.client.post(ping)).json()
        assert (told["status"], told["attempts"][0]["status_code"]) == ("failed", 401)
