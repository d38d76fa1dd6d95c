"""A disk that is really full, under a gateway whose store, journal and downloads lie on it."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from chat_steps import HELLO, settings_of
from conftest import MODEL, client_of
from fault_steps import CHAT, GENERATION, check_away, far_vendor, timed, until_answered
from money_fleet import PENSTOCK
from openai_double import OpenAIDouble
from ports import free_port
from test_files import picture, upload
from vendors.double import Double, double_of

DISK = "12m"
MOUNT = 'mount -t tmpfs -o size="$1" penstock "$2" && shift 2 && exec "$@"'

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there may anyone have a small disk of its own")


@asynccontextmanager
async def small_disk(folder: Path, config: Path) -> AsyncGenerator[tuple[httpx.AsyncClient, Path]]:
    """A gateway on a disk that only it has; a client, and the disk as seen from here."""
    port, data = free_port(), folder / "data"
    data.mkdir()
    unshare = shutil.which("unshare")
    assert unshare is not None
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    process = await asyncio.create_subprocess_exec(
        unshare, "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", DISK, data,
        PENSTOCK, "serve", "--port", str(port), "--data", data, "--config", config,
        env=environ, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            told = ""
            while "first API key is in" not in told:
                told = (await process.stdout.readline()).decode()
        disk = Path(f"/proc/{process.pid}/root") / data.relative_to("/")
        async with client_of(f"http://127.0.0.1:{port}", (disk / "first-key").read_text().strip()) as client:
            await until_answered(client, "/readyz", 200)
            yield client, disk
    finally:
        process.kill()
        await process.wait()


def fill(disk: Path) -> Path:
    """Take what is left of it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 12))
        except OSError:
            return filler


async def order(client: httpx.AsyncClient, latency: float) -> httpx.Response:
    body = {"model": MODEL, "input": [{"params": {"script": {"latency": latency}}}]}
    return await client.post(GENERATION, json=body)


async def test_on_a_full_disk_nothing_is_taken_and_nothing_is_lost(tmp_path: Path):
    config = tmp_path / "penstock.toml"
    async with double_of(tmp_path / "double") as double, OpenAIDouble() as upstream:
        config.write_text(settings_of(upstream, ["plain"], more=far_vendor(double)))
        async with small_disk(tmp_path, config) as (client, disk):
            await check_full_disk(client, disk, double, upstream)


async def check_full_disk(client: httpx.AsyncClient, disk: Path, double: Double, upstream: OpenAIDouble) -> None:
    ask = {"model": "plain", "messages": HELLO}
    job = (await order(client, 1)).json()
    assert (await client.post(CHAT, json=ask)).status_code == 200
    filler = fill(disk)
    check_away(*await timed(order(client, 1)))
    check_away(*await timed(upload(client, picture() + bytes(4 << 20))))
    for answered in range(1, 1000):  # what goes into the journal's last block is let in
        answer, seconds = await timed(client.post(CHAT, json=ask))
        if answer.status_code != 200:
            check_away(answer, seconds)
            assert len(upstream.requests) == answered
            break
    else:
        pytest.fail("what cannot be written down is let in")
    assert (await client.get(f"/api/v1/jobs/{job['id']}")).status_code == 200
    await asyncio.sleep(2)  # the vendor has finished, and there is no room for its result
    assert not (await client.get(f"/api/v1/jobs/{job['id']}")).json()["done"]
    filler.unlink()
    done = (await client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 60})).json()
    assert (done["status"], len(done["attempts"])) == ("succeeded", 1), done
    assert (await client.post(CHAT, json=ask)).status_code == 200
    assert (await order(client, 0.1)).status_code == 202
    assert (await upload(client, picture())).status_code == 201
    usage = (await client.get("/api/v1/usage", params={"by": "model"})).json()
    (chat,) = (line for line in usage["data"] if line["model"] == "plain")
    assert chat["requests"] - chat["failed"] == len(upstream.requests), chat
    assert double.counts()["duplicates"] == 0
