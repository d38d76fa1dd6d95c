"""Resumable uploads as tus-js-client sends them: cut and resumed, ended, and over a gateway killed in between."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import small_media
from conftest import Server
from ports import free_port

HERE = Path(__file__).parent
BYTES = 40 << 20
PIECE = 4 << 20
WAV_HEAD = 44


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A sound of 40 MB."""
    path = tmp_path / "long silence.wav"
    path.write_bytes(small_media.sound(BYTES / 16000))
    return path


@asynccontextmanager
async def uploading(url: str, key: str, path: Path, mode: str) -> AsyncIterator[Process]:
    environment = {**os.environ, "PENSTOCK_URL": url, "PENSTOCK_API_KEY": key}
    process = await asyncio.create_subprocess_exec(
        "node", "tus_upload.mjs", str(path), mode, cwd=HERE, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def run(server: Server, path: Path, mode: str) -> list[dict[str, Any]]:
    async with uploading(server.url, await server.new_key(), path, mode) as process:
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return [json.loads(line) for line in output.splitlines()]


async def check_file(client: httpx.AsyncClient, token: str, path: Path) -> None:
    record = (await client.get(f"/api/v1/files/{token}")).json()
    assert (record["bytes"], record["kind"], record["name"]) == (BYTES + WAV_HEAD, "audio", path.name)


async def test_an_upload_cut_in_the_middle_is_resumed(server: Server, sound: Path) -> None:
    *_, last = await run(server, sound, "abort")
    await check_file(server.client, last["token"], sound)
    assert last["first"] > PIECE, "the bytes before the cut were not sent again"


async def test_an_upload_is_ended(server: Server, sound: Path) -> None:
    first, *_ = await run(server, sound, "end")
    assert (await server.client.get(first["url"])).status_code == 404


@asynccontextmanager
async def serving(data: Path, port: int) -> AsyncIterator[Process]:
    words = ("-m", "penstock", "serve", "--data", str(data), "--port", str(port))
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=DEVNULL, stderr=DEVNULL)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            async with asyncio.timeout(120):
                while not await is_ready(client):  # noqa: ASYNC110  another process
                    await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


async def make_key(data: Path) -> str:
    words = ("-m", "penstock", "key", "create", "--data", str(data))
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=PIPE, stderr=DEVNULL)
    output, _ = await process.communicate()
    return output.decode().strip()


async def test_an_upload_continues_after_the_gateway_was_killed(tmp_path: Path, sound: Path) -> None:
    data, port = tmp_path / "data", free_port()
    data.mkdir()
    (data / "config.toml").write_text('[vendors.sim]\ntype = "sim"\n')
    key, url = await make_key(data), f"http://127.0.0.1:{port}"
    async with uploading(url, key, sound, "by hand") as upload:
        assert upload.stdin is not None
        assert upload.stdout is not None
        async with serving(data, port):
            for sent in (PIECE, 2 * PIECE):
                upload.stdin.write(b"\n")
                assert json.loads(await upload.stdout.readline())["sent"] == sent
        upload.stdin.write(b"\n" * 20)  # the first of them is refused by a port where nobody listens
        async with serving(data, port):
            sizes, token = list[int](), ""
            async for line in upload.stdout:
                event = json.loads(line)
                token = event.get("token", token)
                sizes += [event["sent"]] if "sent" in event else []
            assert sizes[0] == 3 * PIECE, "it went on where it was"
            async with httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {key}"}) as client:
                await check_file(client, token, sound)
