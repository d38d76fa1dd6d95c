"""One account's files hold up neither another's nor anyone's results, and an account sends so many at once."""

import asyncio
import base64
import io
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from conftest import MODEL, SIMULATOR, Server
from PIL import Image
from steps import refused
from test_files import picture, upload
from test_upload_streams import HEAD, landed, sending, until


def heavy_picture() -> bytes:
    """One that takes much longer to open than to make."""
    buffer = io.BytesIO()
    Image.new("L", (6000, 6000)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def forked_processes() -> list[int]:
    """Return the processes that open files just now: grandchildren of this one."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return [pid for pid, parent in parents.items() if parents.get(parent) == os.getpid()]


def freeze(frozen: list[int]) -> bool:
    """Stop a process that opens a file. Return False if there is none."""
    for pid in forked_processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            frozen.append(pid)
    return bool(frozen)


@asynccontextmanager
async def full_queue(server: Server) -> AsyncGenerator[list[asyncio.Task[object]]]:
    """Send heavy pictures for the account `default`, and stop the opening of the first until the block ends."""
    data, frozen = heavy_picture(), list[int]()
    sent: list[asyncio.Task[object]] = [asyncio.create_task(upload(server.client, data)) for _ in range(10)]
    try:
        await until(lambda: freeze(frozen) and len(landed(server)) >= 4)
        yield sent
    finally:
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert {answer.status_code for answer in await asyncio.gather(*sent)} == {201}


async def test_another_account_s_upload_does_not_wait_behind_them(server):
    other = await server.sign_in("other")
    assert (await upload(other, picture())).status_code == 201  # what starts once has started
    async with full_queue(server) as sent:
        assert (await upload(other, picture(colour="green"))).status_code == 201
        assert not all(each.done() for each in sent)


async def test_a_finished_result_does_not_wait_behind_them(server):
    assert (await server.generate(MODEL, script={}))["status"] == "succeeded"
    async with full_queue(server) as sent:
        assert (await server.generate(MODEL, script={}))["status"] == "succeeded"
        assert not all(each.done() for each in sent)


async def test_a_picture_in_too_many_pieces_is_refused_by_its_number(server):
    data = picture()
    answer = await upload(server.client, data[:33] + b"\0\0\0\0prVt\xa6\x87\x8cI" * 1_000_000 + data[33:])
    assert "at most 20000" in refused(answer, 400, "file_unreadable")["message"]


@pytest.fixture
async def small_server(start) -> Server:
    return await start(f"{SIMULATOR}[server]\nmax_uploads = 2\n")


async def test_more_uploads_at_once_than_allowed_are_refused_until_one_is_done(small_server):
    server, other = small_server, await small_server.sign_in("other")
    async with sending(server, 10 << 20) as (_, first):
        async with sending(server, 10 << 20) as (_, second):
            for writer in (first, second):
                writer.write(HEAD + bytes(100))
            await until(lambda: len(landed(server)) == 2)
            answer = await upload(server.client, picture())
            assert "2 files at once" in refused(answer, 429, "too_many_uploads")["message"]
            assert int(answer.headers["retry-after"]) > 0
            assert (await upload(other, picture())).status_code == 201
        await until(lambda: len(landed(server)) == 1)
        assert (await upload(server.client, picture())).status_code == 201
    await until(lambda: not landed(server))


async def test_pictures_within_a_request_count_too(small_server):
    server = small_server
    uri = "data:image/png;base64," + base64.b64encode(picture()).decode()
    body = {"model": MODEL, "input": [{"params": {"file": {"url": uri}}}]}
    async with sending(server, 10 << 20) as (_, first), sending(server, 10 << 20) as (_, second):
        for writer in (first, second):
            writer.write(HEAD + bytes(100))
        await until(lambda: len(landed(server)) == 2)
        refused(await server.client.post("/model/v1/generation", json=body), 429, "too_many_uploads")
    await until(lambda: not landed(server))
    assert (await server.client.post("/model/v1/generation", json=body)).status_code == 202
