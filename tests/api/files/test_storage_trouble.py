"""A disk that fails while a result is stored: what was paid for waits, and nothing counts as a crash."""

import errno
import os
from pathlib import Path
from typing import Any

from conftest import MODEL, Server
from steps import until
from test_s3 import wait_for_failures

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
