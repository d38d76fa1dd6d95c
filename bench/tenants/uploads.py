"""One account's hostile pictures beside another's: how long an upload and a finished result wait meanwhile.

python -m bench.tenants.uploads [--hostile 6] [--kind chunks] [--megabytes 13] [--rounds 5] [--penstock PATH]

The hostile pictures are sound PNGs of a million empty chunks, or of 36 million pixels, sent at once by one account.
Meanwhile another account uploads small pictures, one after the other, and orders jobs whose results are stored: of
these the time in the phase `storing` is what counts. Before, both are measured on an idle server.
`--penstock` names another version's `src` folder to compare with.
"""

import argparse
import asyncio
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import aiohttp

from bench.jobs.jobs import wait_ready
from bench.jobs.servers import free_port

SETTINGS = '[server]\nlog_level = "warning"\n[vendors.sim]\ntype = "sim"\npoll_seconds = 0.2\n'
JOB = {"model": "sim_image_to_model", "input": [{"params": {"script": {"latency": 0.2}}}]}
MOST_SECONDS = 600


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def make_png(side: int, filling: bytes = b"") -> bytes:
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    pixels = zlib.compress(bytes((side + 1) * side))
    return b"\x89PNG\r\n\x1a\n" + head + filling + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def make_hostile(kind: str, megabytes: float) -> bytes:
    """A sound PNG of empty private chunks, 12 bytes each, or one of as many pixels as are allowed."""
    chunk = _chunk(b"prVt", b"")
    return make_png(6000) if kind == "pixels" else make_png(64, chunk * int(megabytes * 2**20 / len(chunk)))


class Caller:
    """One account on the server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str) -> None:
        self._session, self._url = session, url
        self._headers = {"authorization": f"Bearer {key}"}

    async def upload(self, data: bytes) -> tuple[float, int]:
        """Return the seconds that it took, and the status of the answer."""
        form = aiohttp.FormData()
        form.add_field("file", data, filename="a.png")
        began = time.perf_counter()
        async with self._session.post(f"{self._url}/api/v1/files", data=form, headers=self._headers) as answer:
            await answer.read()
            return time.perf_counter() - began, answer.status

    async def store(self) -> float:
        """Have a job done, and return the seconds from `storing` to its end."""
        async with self._session.post(f"{self._url}/model/v1/generation", json=JOB, headers=self._headers) as answer:
            job = (await answer.json())["id"]
        storing_at = 0.0
        while True:
            async with self._session.get(f"{self._url}/api/v1/jobs/{job}", headers=self._headers) as answer:
                record: dict[str, Any] = await answer.json()
            if record["phase"] == "storing" and not storing_at:
                storing_at = time.perf_counter()
            if record["done"]:
                return time.perf_counter() - storing_at if storing_at else 0.0
            await asyncio.sleep(0.005)


async def measure(caller: Caller, rounds: int) -> dict[str, float]:
    uploads = [(await caller.upload(make_png(64 + number)))[0] for number in range(rounds)]
    results = [await caller.store() for _ in range(rounds)]
    return {
        "upload_median_s": round(statistics.median(uploads), 3),
        "upload_max_s": round(max(uploads), 3),
        "storing_median_s": round(statistics.median(results), 3),
        "storing_max_s": round(max(results), 3),
    }


def start_server(folder: Path, port: int, source: Path | None) -> tuple["subprocess.Popen[bytes]", list[str]]:
    environ = os.environ | ({"PYTHONPATH": str(source)} if source else {})
    config = folder / "penstock.toml"
    config.write_text(SETTINGS)
    penstock = [sys.executable, "-m", "penstock"]
    common = ["--data", str(folder / "data"), "--config", str(config)]
    keys: list[str] = []
    for account in ("hostile", "other"):
        command = [*penstock, "key", "create", "--account", account, "--json", *common]
        keys.append(json.loads(subprocess.check_output(command, env=environ))["key"])
    command = [*penstock, "serve", "--port", str(port), *common]
    return subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL), keys


async def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    port = free_port()
    server, keys = start_server(folder, port, options.penstock)
    url = f"http://127.0.0.1:{port}"
    try:
        await wait_ready(url, server)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=MOST_SECONDS)) as session:
            hostile, other = (Caller(session, url, key) for key in keys)
            await measure(other, 1)  # what starts once has started
            idle = await measure(other, options.rounds)
            data = make_hostile(options.kind, options.megabytes)
            began = time.perf_counter()
            attack = [asyncio.create_task(hostile.upload(data)) for _ in range(options.hostile)]
            await asyncio.sleep(1)  # they are on their way
            beside = await measure(other, options.rounds)
            answers = await asyncio.gather(*attack)
            return {
                "idle": idle,
                "beside": beside,
                "hostile_statuses": sorted({status for _, status in answers}),
                "hostile_all_answered_s": round(time.perf_counter() - began, 1),
            }
    finally:
        server.terminate()
        server.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostile", type=int, default=6)
    parser.add_argument("--kind", choices=("chunks", "pixels"), default="chunks")
    parser.add_argument("--megabytes", type=float, default=13)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--penstock", type=Path, help="the `src` folder of another version")
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(run(parser.parse_args(), Path(folder))), indent=1))


if __name__ == "__main__":
    main()
