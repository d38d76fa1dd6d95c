"""A disk or a memory that fails while a result is stored: what was paid for waits, and no file is blamed."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

from conftest import MODEL, Server
from steps import until
from test_files import picture, upload
from test_s3 import wait_for_failures

from penstock.inspection import worker_pool

QUICK = '[vendors.sim]\ntype = "sim"\npoll_seconds = 0.05\n'


async def store_later(server: Server, job: dict[str, Any]) -> None:
    """The job has waited in vain for some time."""
    await until(server.client, job["id"], phase="storing")
    await wait_for_failures(server, 2)
    record = (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (record["status"], record["phase"]) == ("running", "storing")


async def test_a_full_disk_is_waited_for(start, monkeypatch):
    server = await start(QUICK)
    write, full = os.write, True

    def fill(file: int, data: Any) -> int:
        if full and "/landing/" in str(Path(f"/proc/self/fd/{file}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data)

    monkeypatch.setattr(os, "write", fill)
    job = await server.submit(MODEL, script={})
    await store_later(server, job)
    full = False
    done = await server.finish(job["id"])
    assert (done["status"], len(done["attempts"])) == ("succeeded", 1), done["error"]


async def test_a_folder_of_assets_that_cannot_be_written_is_waited_for(start, tmp_path):
    server = await start(QUICK)
    folder = tmp_path / "data" / "assets"
    folder.rmdir()
    folder.write_bytes(b"no folder")
    job = await server.submit(MODEL, script={})
    await store_later(server, job)
    folder.unlink()
    folder.mkdir()
    done = await server.finish(job["id"])
    assert (done["status"], len(done["attempts"])) == ("succeeded", 1), done["error"]


async def test_a_machine_out_of_memory_is_waited_for_and_blames_no_file(start, monkeypatch):
    server = await start(QUICK)
    open_file, kills = worker_pool._Child.do, 0
    is_full, often = True, asyncio.Event()

    async def be_killed(child: Any, errand: Any, file: Any) -> tuple[str, bytes]:
        nonlocal kills
        if not is_full:
            return await open_file(child, errand, file)
        kills += 1
        if kills == 6:  # each output is tried twice, and two bad outputs would fail the job
            often.set()
        return "killed", b""

    monkeypatch.setattr(worker_pool._Child, "do", be_killed)
    job = await server.submit(MODEL, script={})
    await asyncio.wait_for(often.wait(), 60)
    refused = await upload(server.client, picture())
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_unavailable")
    assert refused.headers["Retry-After"] == "1"
    is_full = False
    assert (await upload(server.client, picture())).is_success
    record = await server.finish(job["id"])
    assert (record["status"], len(record["attempts"])) == ("succeeded", 1), record["error"]
