"""The hook on the page of guardrails allows and refuses the requests of a real server."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from conftest import SIMULATOR, Start
from guard_hook import SECRET
from ports import free_port
from steps import refused

PAGE = Path(__file__).parents[2] / "docs" / "guardrails.md"


@asynccontextmanager
async def example(port: int) -> AsyncIterator[None]:
    """The page's program."""
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program.replace("9100", str(port))),
        env={"PATH": os.environ["PATH"], "GUARDRAIL_SECRET": SECRET},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(trust_env=False) as client:
            while True:
                try:
                    await client.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
        yield
    finally:
        process.kill()
        await process.wait()


async def test_the_hook_on_the_page(start: Start) -> None:
    port = free_port()
    own = f'name = "page"\nurl = "http://127.0.0.1:{port}/check"\nsecret = "{SECRET}"\ntimeout_seconds = 60\n'
    server = await start(f"{SIMULATOR}[[guardrails]]\n{own}")
    async with example(port):
        job = await server.submit(script={}, prompt="a boat")
        assert [each["verdict"] for each in job["guardrails"]] == ["allow"]
        body = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "a bomb"}}]}
        error = refused(await server.client.post("/model/v1/generation", json=body), 400, "content_refused")
        assert error["reason"] == "weapons are not allowed"
