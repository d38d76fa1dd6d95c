"""Kills and freezes the server between an order and its answer, then counts what was lost, doubled or given up.

python tests/crash/lost_orders_ordeal.py --jobs 200 --strikes 20
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import httpx
from aiohttp import web
from doubles.media import Plan, listening
from doubles.tripo import TripoDouble
from ordeal import NO_TLS
from ports import free_port

from penstock.simulator.samples import make_preview

PENSTOCK = (sys.executable, "-m", "penstock")
MODEL = "vendora_image_to_model"
HOLD_SECONDS = 0.6
"""How long at most an order, and then its answer, is on its way."""


@dataclass
class Report:
    """What was found; `orphans` and `doubled` must be 0."""

    jobs: int = 0
    kills: int = 0
    freezes: int = 0
    accepted: int = 0
    orphans: int = 0
    """Orders that the vendor took, and that no job has delivered."""
    doubled: int = 0
    """Jobs for which the vendor took more than one."""
    unknown: int = 0
    placed_again: int = 0
    endings: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class HeldTripo(TripoDouble):
    """Tripo across a slow network: orders and answers are on their way for a while, and one may be lost with us."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.on_way = 0

    @property
    def open_orders(self) -> int:
        return 0

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if (request.method, request.path) != self.order_call:
            return await super().play(request)
        self.on_way += 1
        try:
            await asyncio.sleep(self.chance.uniform(0, HOLD_SECONDS))
            if request.transport is None or request.transport.is_closing():  # it never came through
                return web.Response(status=499)
            self.plans.append(Plan(seconds=0.5))
            answer = await super().play(request)
            await asyncio.sleep(self.chance.uniform(0, HOLD_SECONDS))
            return answer
        finally:
            self.on_way -= 1


class LostOrders:
    """One server, one vendor, and someone who strikes while orders are on their way."""

    def __init__(self, data: Path, jobs: int, strikes: int, seed: int) -> None:
        self.data = data
        self.chance = random.Random(seed)  # noqa: S311  moments, no secrets
        self.strikes = strikes
        self.port = free_port()
        self.report = Report(jobs=jobs)
        self.server: asyncio.subprocess.Process | None = None
        self.key = ""

    async def run(self) -> Report:
        """Submit and strike at the same time; then wait for every job's end and count."""
        begun = time.monotonic()
        async with listening(HeldTripo(self.chance)) as double:
            assert isinstance(double, HeldTripo)
            config = double.settings(lookup_seconds=5, max_concurrent=15, poll_seconds=0.2)
            (self.data / "penstock.toml").write_text(config)
            self.key = json.loads(await self._command("key", "create", "--json"))["key"]
            await self._start()
            token = await self._upload()
            ids = asyncio.gather(*(self._submit(number, token) for number in range(self.report.jobs)))
            await self._strike(double)
            done = await asyncio.gather(*(self._finish(job_id) for job_id in await ids))
            self._count(double, done)
            await self._stop()
        self.report.seconds = round(time.monotonic() - begun, 1)
        return self.report

    def _count(self, double: HeldTripo, done: list[dict[str, Any]]) -> None:
        report = self.report
        codes = [job["error"]["code"] if job["error"] else job["status"] for job in done]
        report.endings = dict(Counter(codes))
        report.unknown = codes.count("upstream_outcome_unknown")
        report.accepted = len(double.orders)
        delivered = [job["attempts"][-1]["upstream_id"] for job in done if job["status"] == "succeeded"]
        report.orphans = len(double.orders.keys() - set(delivered))
        assert len(set(delivered)) == len(delivered), "two jobs have delivered one order"
        seeds = Counter(order.body["model_seed"] for order in double.orders.values())  # each job has one of its own
        report.doubled = sum(number > 1 for number in seeds.values())
        report.placed_again = sum(len(job["attempts"]) - 1 for job in done)

    # -- the server

    async def _command(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *PENSTOCK, *words, "--data", self.data, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output
        return output.decode()

    async def _start(self) -> None:
        words = ("serve", "--port", str(self.port), "--data", self.data, "--config", self.data / "penstock.toml")
        with (self.data / "server.log").open("ab") as log:
            self.server = await asyncio.create_subprocess_exec(*PENSTOCK, *words, stdout=log, stderr=log)
        async with self._client() as client:
            while True:
                assert self.server.returncode is None, (self.data / "server.log").read_text()[-3000:]
                try:
                    await client.get("/readyz")
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
                else:
                    return

    async def _stop(self) -> None:
        assert self.server is not None
        self.server.send_signal(signal.SIGTERM)
        await self.server.wait()

    async def _strike(self, double: HeldTripo) -> None:
        """Two of three are kills; whoever is only frozen wakes up a little later."""
        for number in range(self.strikes):
            assert self.server is not None
            give_up_at = time.monotonic() + 20
            while double.on_way < 2 and time.monotonic() < give_up_at:  # noqa: ASYNC110  nobody rings for it
                await asyncio.sleep(0.01)
            await asyncio.sleep(self.chance.uniform(0, HOLD_SECONDS))
            if number % 3 == 2:
                self.report.freezes += 1
                self.server.send_signal(signal.SIGSTOP)
                await asyncio.sleep(self.chance.uniform(0.5, 2))
                self.server.send_signal(signal.SIGCONT)
            else:
                self.report.kills += 1
                self.server.send_signal(signal.SIGKILL)
                await self.server.wait()
                await self._start()

    # -- the clients

    def _client(self) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {self.key}"}
        url = f"http://127.0.0.1:{self.port}"
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False, verify=NO_TLS)

    async def _upload(self) -> str:
        async with self._client() as client:
            files = {"file": ("cat.png", make_preview(7), "image/png")}
            return (await client.post("/api/v1/files", files=files)).json()["file_token"]

    async def _submit(self, number: int, token: str) -> str:
        """As a careful client does: one idempotency key, sent again until it is answered."""
        await asyncio.sleep(self.chance.uniform(0, 2.0 * self.strikes))
        params = {"file": {"file_token": token}, "face_limit": 5000, "texture": True, "model_seed": number}
        body = {"model": MODEL, "input": [{"params": params}]}
        async with self._client() as client:
            while True:
                try:
                    headers = {"idempotency-key": f"lost-{number}"}
                    response = await client.post("/model/v1/generation", json=body, headers=headers)
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
                    continue
                if response.status_code in (200, 202):
                    return response.json()["id"]
                assert response.status_code in (409, 503), response.text
                await asyncio.sleep(0.2)

    async def _finish(self, job_id: str) -> dict[str, Any]:
        async with self._client() as client:
            while True:
                job = (await client.get(f"/api/v1/jobs/{job_id}", params={"wait": 20})).json()
                if job["done"]:
                    return job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--strikes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        ordeal = LostOrders(Path(data), arguments.jobs, arguments.strikes, arguments.seed)
        report = asyncio.run(ordeal.run())
        print(f"seed {arguments.seed}: {report}")  # noqa: T201
        sys.exit(bool(report.orphans or report.doubled))


if __name__ == "__main__":
    main()
