"""Gateways, workers and a PostgreSQL server, each a real process that can be killed, frozen and started again."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from money_fleet import PENSTOCK
from ports import free_port
from postgres import PostgresServer

READY_SECONDS: Final = 150.0
EXPECTED: Final = (
    "this worker's lease has ended",
    "the vendor cannot take our orders",
    "a webhook delivery failed",
)
"""What is told as an error, and is part of the ordeal."""


@dataclass
class Machine:
    """One process: a gateway or a worker, under the same address for as long as the ordeal lasts."""

    name: str
    words: tuple[str, ...]
    folder: Path
    port: int
    environ: dict[str, str]
    process: asyncio.subprocess.Process | None = None
    frozen: bool = False
    steady_since: float | None = None
    """Since when it is up and not frozen."""
    starts: list[float] = field(default_factory=list[float])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_worker(self) -> bool:
        return self.words[0] == "worker"

    @property
    def worker_name(self) -> str:
        """As the table of workers has it."""
        assert self.process is not None
        return f"{socket.gethostname()}:{self.process.pid}"

    @property
    def log(self) -> Path:
        return self.folder.parent / f"{self.name}.log"

    async def start(self, *, wait: bool = True) -> None:
        """Start it; `wait` until it is ready."""
        begun = time.monotonic()
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                PENSTOCK, *self.words, "--port", str(self.port), "--data", self.folder,
                stdout=log, stderr=log, env=self.environ,
            )  # fmt: skip
        if wait:
            await self.await_ready()
            self.starts.append(time.monotonic() - begun)
            self.steady_since = time.monotonic() if self.process is not None else None

    async def await_ready(self) -> None:
        """Until it is, or it was killed meanwhile."""
        process = self.process
        assert process is not None
        give_up_at = time.monotonic() + READY_SECONDS
        async with aiohttp.ClientSession() as session:
            while self.process is process:
                assert process.returncode is None, self.log.read_text()[-3000:]
                assert time.monotonic() < give_up_at, f"{self.name} was not ready in time"
                with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                    async with session.get(f"{self.url}/readyz", timeout=aiohttp.ClientTimeout(5)) as response:
                        if response.status == 200:
                            return
                await asyncio.sleep(0.05)

    def send(self, what: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(what)
        self.frozen = what is signal.SIGSTOP
        self.steady_since = None if self.frozen else time.monotonic()

    async def kill(self) -> None:
        """End it by kill -9."""
        process, self.process, self.frozen, self.steady_since = self.process, None, False, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def stop(self) -> tuple[int, float]:
        """SIGTERM; its exit code, and how long it took."""
        assert self.process is not None
        begun, process, self.process, self.steady_since = time.monotonic(), self.process, None, None
        process.terminate()
        code = await process.wait()
        return code, time.monotonic() - begun

    def errors(self) -> Counter[str]:
        """What its log tells that should not be there, and how often."""
        found: Counter[str] = Counter()
        for line in self.log.read_text().splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("level") in ("error", "critical"):
                told = " | ".join(str(said[name]) for name in ("message", "error", "exception") if said.get(name))
                if not told.startswith(EXPECTED):
                    found[f"{self.name.split('-')[0]}: {_shorten(told)}"] += 1
            elif line.startswith("Traceback") or "Task exception was never retrieved" in line:
                found[f"{self.name.split('-')[0]}: {line}"] += 1
        return found


def _shorten(told: str) -> str:
    """The beginning, which says what it is, and the end, which says why."""
    told = told.strip()
    return told if len(told) < 1500 else f"{told[:300]} … {told[-1200:]}"


class Machines:
    """All of them; they share a store, a folder of assets and their settings, and nothing else."""

    def __init__(self, folder: Path, gateways: int, workers: int, settings: str) -> None:
        self.folder = folder
        self.postgres = PostgresServer()
        self.config = folder / "penstock.toml"
        self.config.write_text(settings)
        self.gateways = [self._make(f"gateway-{number}", "serve") for number in range(gateways)]
        self.workers = [self._make(f"worker-{number}", "worker") for number in range(workers)]
        self.wrong: list[str] = []
        self.drains: list[float] = []

    def _make(self, name: str, verb: str) -> Machine:
        words = (verb, "--config", str(self.config))
        return Machine(name, words, self.folder / name, free_port(), self.environ())

    def environ(self) -> dict[str, str]:
        """Without the settings of whoever runs this."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return own | {
            "PENSTOCK_DATABASE_URL": self.postgres.url(),
            "PENSTOCK_ASSETS_URL": (self.folder / "assets").as_uri(),
            "PENSTOCK_JOBS_RUN": "workers",
        }

    @property
    def all(self) -> list[Machine]:
        return [*self.gateways, *self.workers]

    async def start(self) -> None:
        """Start everything, the store first."""
        await asyncio.to_thread(self.postgres.start)
        await self.gateways[0].start()
        await asyncio.gather(*(machine.start() for machine in self.all if machine.process is None))

    async def stop(self) -> float:
        """SIGTERM to all at once; how long the last took."""
        running = [machine for machine in self.all if machine.process is not None]
        ends = await asyncio.gather(*(machine.stop() for machine in running))
        for machine, (code, _) in zip(running, ends, strict=True):
            if code:
                self.wrong.append(f"{machine.name} ended with {code} on SIGTERM")
        return max((seconds for _, seconds in ends), default=0.0)

    async def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        for machine in self.all:
            await machine.kill()
        await asyncio.to_thread(self.postgres.remove)

    async def command(self, *words: str) -> tuple[int, str]:
        """A command of the operator's; its exit code and what it said."""
        process = await asyncio.create_subprocess_exec(
            PENSTOCK, *words, "--data", self.folder / "operator", "--config", self.config,
            stdout=asyncio.subprocess.PIPE, env=self.environ(),
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    def errors(self) -> Counter[str]:
        """What the logs of all tell that should not be there."""
        return sum((machine.errors() for machine in self.all), Counter())


class World:
    """The process of vendors and receivers."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> dict[str, str]:
        """What it says of itself."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, Path(__file__).with_name("fleet_vendors.py"), self._folder, str(self._seed),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        said = json.loads(await self._process.stdout.readline())
        self.url = said["url"]
        return said

    async def books(self) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/books") as response:
            return await response.json()

    async def trust(self, secrets: dict[str, str]) -> None:
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/secrets", json=secrets) as response:
            response.raise_for_status()

    async def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
