"""Kills the server that runs the jobs again and again, then counts what was lost, doubled or left out.

python tests/crash/ordeal.py --jobs 200 --kills 20 --servers 2
"""

import argparse
import asyncio
import json
import os
import random
import signal
import ssl
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
from ports import free_port

PENSTOCK = Path(sys.executable).with_name("penstock")
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Spares every client the reading of all authorities."""

SCRIPTS: list[tuple[dict[str, Any], str, str | None]] = [
    ({}, "succeeded", None),
    ({"ending": "failed"}, "failed", "upstream_error"),
    ({"ending": "filtered"}, "failed", "content_filtered"),
    ({"ending": "no_output"}, "failed", "content_filtered"),
    ({"ending": "corrupt"}, "failed", "bad_output"),
    ({"submission": "reply_lost"}, "succeeded", None),
    ({"submission": "never_arrived"}, "succeeded", None),
    ({"submission": "unreachable"}, "succeeded", None),
    ({"submission": "busy"}, "succeeded", None),
    ({"submission": "rejected", "submission_times": 1000}, "failed", "upstream_rejected"),
    ({"poll_errors": 2}, "succeeded", None),
    ({"download_errors": 1}, "succeeded", None),
]
"""What jobs play, and how each must end however often the server is killed."""


@dataclass
class Report:
    """What the ordeal found; everything but the first six must be 0."""

    jobs: int = 0
    kills: int = 0
    restart_seconds: list[float] = field(default_factory=list)
    leaderless_seconds: list[float] = field(default_factory=list)
    takeovers: int = 0
    """How often a server that was there already took over."""
    orders: int = 0
    lost: int = 0
    duplicates: int = 0
    wrong_endings: list[str] = field(default_factory=list)
    stream_gaps: int = 0
    feed_gaps: int = 0


class Ordeal:
    """One data folder, and servers on it of which the one that runs the jobs keeps dying."""

    def __init__(self, data: Path, jobs: int, kills: int, seed: int, servers: int = 1) -> None:
        self.data = data
        self.random = random.Random(seed)  # noqa: S311  moments, no secrets
        self.ports = [free_port() for _ in range(servers)]
        self.report = Report(jobs=jobs, kills=kills)
        self.servers: dict[int, asyncio.subprocess.Process] = {}
        self.over = asyncio.Event()
        self.key = ""

    async def run(self) -> Report:
        """Submit, watch and kill at the same time; then wait for every job's end and count."""
        made = await self._command("key", "create", "--json")
        self.key = json.loads(made)["key"]
        await asyncio.gather(*(self._start(port) for port in self.ports))
        feed = asyncio.create_task(self._follow_feed())
        ids = asyncio.gather(*(self._submit(number) for number in range(self.report.jobs)))
        await self._kill_repeatedly()
        job_ids = await ids
        watched = await asyncio.gather(*(self._watch(job_id) for job_id in job_ids))
        self.report.lost = self.report.jobs - len(set(job_ids))
        await asyncio.gather(*(self._judge(number, job_id) for number, job_id in enumerate(job_ids)))
        self.report.stream_gaps = sum(sequences != list(range(1, len(sequences) + 1)) for sequences in watched)
        self.over.set()
        seen = await feed
        for job_id, sequences in zip(job_ids, watched, strict=True):
            self.report.feed_gaps += seen[job_id] != sequences
        await self._stop()
        counts = json.loads(await self._command("sim", "--json"))
        counts = counts[0] if isinstance(counts, list) else counts.get("sim", counts)
        self.report.orders, self.report.duplicates = counts["orders"], counts["duplicates"]
        return self.report

    # -- the servers

    async def _command(self, *words: str) -> str:
        process = await asyncio.create_subprocess_exec(
            PENSTOCK, *words, "--data", self.data, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output
        return output.decode()

    async def _start(self, port: int) -> None:
        begun = time.monotonic()
        with (self.data / "server.log").open("ab") as log:
            server = self.servers[port] = await asyncio.create_subprocess_exec(
                PENSTOCK, "serve", "--port", str(port), "--data", self.data, stdout=log, stderr=log
            )
        async with self._client(port) as client:
            while True:
                assert server.returncode is None, (self.data / "server.log").read_text()[-3000:]
                try:
                    await client.get("/readyz")
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
        self.report.restart_seconds.append(time.monotonic() - begun)

    async def _kill_repeatedly(self) -> None:
        for _ in range(self.report.kills):
            await asyncio.sleep(self.random.uniform(0.0, 1.0))
            port = await self._find_leader()
            self.servers[port].send_signal(signal.SIGKILL)
            killed = time.monotonic()
            await self.servers[port].wait()
            if len(self.servers) > 1:
                successor = await self._find_leader()  # nobody else is there to take over
                self.report.takeovers += successor != port
                self.report.leaderless_seconds.append(time.monotonic() - killed)
            await self._start(port)

    async def _find_leader(self) -> int:
        """Return the port of the server that runs the jobs, once one that lives does."""
        while True:
            named = (self.data / "penstock.lock").read_text().strip()  # empty for a moment while it changes hands
            for port, server in self.servers.items():
                if server.returncode is None and named == str(server.pid):
                    return port
            await asyncio.sleep(0.005)

    async def _stop(self) -> None:
        for server in self.servers.values():
            server.send_signal(signal.SIGTERM)
        assert [await server.wait() for server in self.servers.values()] == [0] * len(self.servers)

    # -- the clients

    def _client(self, port: int | None = None) -> httpx.AsyncClient:
        """A client of this server, or of any."""
        url, headers = (
            f"http://127.0.0.1:{port or self.random.choice(self.ports)}",
            {"authorization": f"Bearer {self.key}"},
        )
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False, verify=NO_TLS)

    async def _submit(self, number: int) -> str:
        """As a careful client does: one idempotency key, sent again until it is answered."""
        await asyncio.sleep(self.random.uniform(0, 0.7 * self.report.kills))
        script = SCRIPTS[number % len(SCRIPTS)][0]
        params = {"script": {"latency": self.random.uniform(0, 2), **script}}
        model = ("sim_text_to_video", "sim_image_to_model")[number % 2]
        body = {"model": model, "input": [{"params": params}], "client_ref": f"ordeal-{number}"}
        async with self._client() as client:
            while True:
                try:
                    headers = {"idempotency-key": f"ordeal-{number}"}
                    response = await client.post("/model/v1/generation", json=body, headers=headers)
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
                    continue
                if response.status_code in (200, 202):
                    return response.json()["id"]
                assert response.status_code in (409, 503), response.text
                await asyncio.sleep(0.2)

    async def _watch(self, job_id: str) -> list[int]:
        """The sequence numbers of a job's events, through every reconnect."""
        sequences: list[int] = []
        last = ""
        async with self._client() as client:
            while True:
                try:
                    headers = {"last-event-id": last} if last else {}
                    async with client.stream("GET", f"/api/v1/jobs/{job_id}/events", headers=headers) as response:
                        if response.status_code == 204:
                            return sequences
                        if response.status_code == 503:  # it starts, or its store is busy
                            await asyncio.sleep(0.05)
                        async for line in response.aiter_lines():
                            if line.startswith("data:"):
                                event = json.loads(line[5:])
                                sequences.append(event["sequence"])
                                last = event["id"]
                except httpx.TransportError:
                    await asyncio.sleep(0.05)

    async def _follow_feed(self) -> dict[str, list[int]]:
        """The account's feed by pages, through every restart, until the ordeal is over."""
        seen: dict[str, list[int]] = {}
        after: str | None = None
        async with self._client() as client:
            while True:
                try:
                    ending = self.over.is_set()
                    response = await client.get(
                        "/api/v1/events", params={"after": after, "limit": 100} if after else {}
                    )
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                    continue
                if response.status_code == 503:  # it starts, or its store is busy
                    await asyncio.sleep(0.05)
                    continue
                page = response.json()
                for event in page["data"]:
                    seen.setdefault(event["data"]["id"], []).append(event["sequence"])
                after = page["next_after"]
                if ending and not page["has_more"]:
                    return seen
                if not page["data"]:
                    await asyncio.sleep(0.25)

    async def _judge(self, number: int, job_id: str) -> None:
        _, status, code = SCRIPTS[number % len(SCRIPTS)]
        async with self._client() as client:
            job = (await client.get(f"/api/v1/jobs/{job_id}", params={"wait": 60})).json()
        got = (job["status"], job["error"] and job["error"]["code"])
        if got != (status, code) or job["client_ref"] != f"ordeal-{number}":
            self.report.wrong_endings.append(f"{job_id}: {got}, scripted {(status, code)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        begun = time.monotonic()
        ordeal = Ordeal(Path(data), arguments.jobs, arguments.kills, arguments.seed, arguments.servers)
        report = asyncio.run(ordeal.run())
        scripted = Counter(SCRIPTS[number % len(SCRIPTS)][1] for number in range(arguments.jobs))
        print(f"seed {arguments.seed}, {time.monotonic() - begun:.0f} s, scripted {dict(scripted)}")  # noqa: T201
        print(report)  # noqa: T201


if __name__ == "__main__":
    main()
