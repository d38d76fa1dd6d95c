"""Uploads on their way to the disk: in little memory, refused as soon as they are too large, gone if they are cut."""

import asyncio
import hashlib
import os
import tempfile
import threading
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import MODEL, Server
from PIL import Image
from test_files import picture, stored, upload

HEAD = b'--edge\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
TAIL = b"\r\n--edge--\r\n"
FORM = {"content-type": "multipart/form-data; boundary=edge"}
PIECE = 1 << 16
DISKS = (Path("/dev/shm"), Path("/var/tmp"))  # noqa: S108  of every Linux, and often not the same


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def landed(server: Server) -> list[Path]:
    """What is on its way."""
    return [path for path in files_in(server.gateway.settings.data / "landing") if path.suffix != ".lock"]


async def until(happened: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not happened():  # noqa: ASYNC110  told by nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def sending(server: Server, length: int) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """An upload whose body the test sends itself."""
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    lines = {**FORM, "host": "x", "authorization": server.client.headers["authorization"], "content-length": length}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"POST /api/v1/files HTTP/1.1\r\n{head}\r\n".encode() + HEAD)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_memory_does_not_grow_with_uploads(server, tmp_path):
    path = tmp_path / "noise.bmp"
    Image.effect_noise((2000, 2000), 90).save(path, "PNG", compress_level=0)
    size = path.stat().st_size

    async def body() -> AsyncIterator[bytes]:
        yield HEAD
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece
        yield TAIL

    async def send() -> dict[str, Any]:
        return (await server.client.post("/api/v1/files", content=body(), headers=FORM)).json()

    assert (await upload(server.client, picture())).status_code == 201  # what is loaded once is loaded
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        records = await asyncio.gather(*(send() for _ in range(2)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < size, "of two"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(record["sha256"], record["bytes"]) for record in records] == [(digest, size)] * 2
    assert (len(stored(server)), landed(server)) == (2, [])


async def test_what_becomes_too_large_is_refused_before_it_ends(server):
    async with sending(server, 30 << 20) as (reader, writer):
        writer.write(picture() + bytes(20 << 20))
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413")
    async with sending(server, 300 << 20) as (reader, _):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413")
    await until(lambda: not landed(server))
    assert stored(server) == []


async def test_who_leaves_in_the_middle_leaves_nothing(server, caplog):
    async with sending(server, 10 << 20) as (_, writer):
        writer.write(picture() + bytes(2 << 20))
        await until(lambda: landed(server))
    await until(lambda: not landed(server))
    assert stored(server) == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_slow_disk_slows_the_sender_down(server, monkeypatch):
    write, go_on, written = os.write, threading.Event(), 0

    def wait(file: int, data: Any) -> int:
        nonlocal written
        if "/landing/" in str(Path(f"/dev/fd/{file}").readlink()):
            go_on.wait(10)
            written += len(data)
        return write(file, data)

    monkeypatch.setattr(os, "write", wait)
    size = 15 << 20
    async with sending(server, len(HEAD) + size + len(TAIL)) as (reader, writer):
        writer.write(bytes(size) + TAIL)
        await until(lambda: landed(server))
        assert (await server.client.get("/api/v1/models")).status_code == 200, "others are served"
        assert writer.transport.get_write_buffer_size() > 0, "much is left with the sender"
        go_on.set()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400")
    assert written == size


async def test_a_folder_on_another_disk_is_copied_to(start, tmp_path):
    here = tmp_path.stat().st_dev
    disk = next((disk for disk in DISKS if disk.is_dir() and disk.stat().st_dev != here), None)
    if disk is None:
        pytest.skip("there is no other disk")
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        server = await start(overrides={"assets_url": f"file://{folder}"})
        data = picture()
        assert (await upload(server.client, data)).status_code == 201
        assert (await server.generate(MODEL, script={}))["status"] == "succeeded"
        kept = files_in(Path(folder))
        assert sorted(path.parts[-3] for path in kept) == ["assets", "assets", "files"]
        assert hashlib.sha256(data).hexdigest() in [path.name for path in kept]
        assert landed(server) == []
