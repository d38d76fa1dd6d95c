"""Gateways, workers, a PostgreSQL server that writes through to its disk, and a simulated vendor, to be measured."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import psycopg

from bench.harness.processes import cpu_seconds

TESTS = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "crash"), str(TESTS / "support")]

import postgres  # noqa: E402  they live with the tests
from fleet_machines import Machine, Machines  # noqa: E402
from fleet_troubles import Troubles as Troubles  # noqa: E402, PLC0414  for `machines`, which has no path to it

TICK = os.sysconf("SC_CLK_TCK")
SETTINGS = """
[server]
log_format = "json"
log_level = "warning"
max_streams = 10000
[jobs]
max_waiting = 1000000
max_waiting_total = 1000000
max_held = 20000
start_timeout = 86400
run_timeout = 86400
[vendors.sim]
type = "sim"
base_url = "http://127.0.0.1:{port}"
max_concurrent = {seats}
poll_seconds = {poll}
[[models]]
id = "sim_image_to_model"
vendor = "sim"
price = {{per_job = "0.002"}}
"""


class Fleet:
    """What runs, and how to ask it."""

    def __init__(self, machines: Machines, vendor: "subprocess.Popen[bytes]", port: int) -> None:
        self.machines = machines
        self.vendor = vendor
        self._vendor_port = port
        self.keys: dict[str, str] = {}

    @property
    def gateway(self) -> Machine:
        """The first, often the only one."""
        return self.machines.gateways[0]

    @property
    def workers(self) -> list[Machine]:
        """Also those that are not started."""
        return self.machines.workers

    async def key(self, account: str = "bench") -> str:
        """A key of this account."""
        if account not in self.keys:
            code, said = await self.machines.command("key", "create", "--account", account, "--json")
            if code:
                raise SystemExit(said)
            self.keys[account] = json.loads(said)["key"]
        return self.keys[account]

    async def books(self) -> dict[str, Any]:
        """What the vendor has seen."""
        url = f"http://127.0.0.1:{self._vendor_port}/books"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.json()

    async def load(
        self, connections: int, seconds: float, *, rate: float = 0.0, latency: float = 3600.0, count: int = 1 << 60,
        account: str = "bench",
    ) -> dict[str, float]:  # fmt: skip
        """Jobs from a process of its own."""
        words = (self.gateway.port, await self.key(account), connections, seconds, rate, latency, count)
        script = Path(__file__).with_name("load.py")
        process = await asyncio.create_subprocess_exec(
            sys.executable, script, *map(str, words), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        return json.loads(output)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """A question to the store itself."""
        with closing(psycopg.connect(self.machines.postgres.url(), autocommit=True)) as connection:
            return connection.execute(query.encode()).fetchall()

    def open_jobs(self) -> int:
        """How many are not done."""
        return self.ask("SELECT count(*) FROM jobs WHERE done = 0")[0][0]

    async def until(self, is_so: Callable[[], bool], seconds: float = 600.0) -> None:
        """Look until it is."""
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(is_so):  # noqa: ASYNC110  the store rings no bell here
                await asyncio.sleep(0.1)

    def cpu(self) -> dict[str, float]:
        """Seconds on a processor so far."""
        found = {machine.name: cpu_seconds(pid_of(machine)) for machine in self.machines.all if machine.process}
        return found | {"postgresql": self._store_cpu(), "vendor": cpu_seconds(self.vendor.pid)}

    def _store_cpu(self) -> float:
        """Of the server and all that serve its connections, also those that have ended."""
        process: Any = self.machines.postgres._process  # noqa: SLF001  only a measurement wants to know
        words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ended = (int(words[13]) + int(words[14])) / TICK
        return cpu_seconds(process.pid) + ended

    def commits(self) -> int:
        """Transactions of the store so far."""
        return self.ask("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")[
            0
        ][0]


def pid_of(machine: Machine) -> int:
    process: Any = machine.process
    return process.pid


@asynccontextmanager
async def fleet(
    gateways: int = 1, workers: int = 0, seats: int = 100_000, poll: float = 0.1, more: str = ""
) -> AsyncGenerator[Fleet]:
    """All of it, ready; `workers` are made, and started only by `start`. `more` settings are added."""
    postgres.OPTIONS.update(fsync="on", shared_buffers="512MB")
    script = Path(__file__).with_name("simulated_vendor.py")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as vendor, TemporaryDirectory() as folder:
        try:
            said: Any = vendor.stdout
            port = int(said.readline())
            machines = Machines(
                Path(folder), gateways, workers, SETTINGS.format(port=port, seats=seats, poll=poll) + more
            )
            try:
                await asyncio.to_thread(machines.postgres.start)
                await machines.gateways[0].start()
                await asyncio.gather(*(gateway.start() for gateway in machines.gateways[1:]))
                yield Fleet(machines, vendor, port)
            finally:
                await machines.end()
        finally:
            vendor.kill()


async def start(machines: Sequence[Machine]) -> None:
    await asyncio.gather(*(machine.start() for machine in machines))


# -- figures


def quantiles(values: Sequence[float], scale: float = 1e3) -> dict[str, float]:
    """Of how many, and where they lie; in milliseconds."""
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}
    places = {"p50": 0.5, "p99": 0.99}
    found = {name: ordered[min(len(ordered) - 1, int(len(ordered) * part))] * scale for name, part in places.items()}
    return {"count": len(ordered), **found, "max": ordered[-1] * scale}


def shares(before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
    """Percent of a core that each used."""
    return {name: 100 * (after[name] - before.get(name, 0.0)) / seconds for name in after}


def show(title: str, rows: dict[str, Any]) -> None:
    """A small table."""
    print(f"\n{title}")
    for name, value in rows.items():
        print(f"{name:>44}  {_tell(value)}")
    record = Path(__file__).parents[1] / "results" / "machines.json"
    record.parent.mkdir(exist_ok=True)
    known = json.loads(record.read_text()) if record.exists() else {}
    record.write_text(json.dumps(known | {title: rows}, indent=2) + "\n")


def _tell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_tell(each)}" for name, each in value.items())
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


@asynccontextmanager
async def measured(fleet: Fleet) -> AsyncGenerator[dict[str, float]]:
    """What everything used while the block ran, as shares of a core, and transactions for each second."""
    found: dict[str, float] = {}
    cpu, commits, begun = fleet.cpu(), fleet.commits(), time.perf_counter()
    yield found
    took = time.perf_counter() - begun
    found |= {"seconds": took, "transactions_per_second": (fleet.commits() - commits) / took}
    found |= {f"cpu_{name}_percent": value for name, value in shares(cpu, fleet.cpu(), took).items()}
