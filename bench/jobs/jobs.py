"""Jobs on SQLite and on PostgreSQL: start-up, idling, accepting, picking up, polling, and events through SSE.

python -m bench.jobs.jobs [--stores sqlite postgresql] [--questions start accept pickup streams feed poll] [--help]

On SQLite one server does everything; on PostgreSQL a gateway accepts and tells, a worker runs the jobs, and the store
writes through to its disk. The vendor, the load and the watchers of events are processes of their own.

start    from the command to /readyz: the first time, and again; what it holds and uses without any work
accept   jobs as fast as they are accepted, 100 at the vendor at once; CPU of each process for an accepted job
pickup   20 jobs a second: from created to started
streams  a stream of events for each of many running jobs: how late events are; then all of them told again
feed     the account's feed while jobs are accepted as fast as they can be; then all of it told again
poll     many open jobs at the vendor: polls per second, and what they cost
"""

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import msgspec
import uvloop

from bench.harness import tables
from bench.harness.processes import cpu_seconds, memory_mb
from bench.machines.fleet import SETTINGS, Fleet, Machine, Machines, fleet, measured, pid_of, start
from bench.machines.machines import PICKED_UP

BODY = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "bench", "script": {"latency": 3600}}}]}
FROM_THE_START = "/api/v1/events?limit=100&after=evt_0000000000000"
WAITING = "SELECT 1 FROM jobs WHERE done = 0 AND state = 'queued' LIMIT 1"
LONG = 86_000.0
MANY = 100_000
Figures = dict[str, float]


# -- what other measurements use


async def wait_ready(url: str, server: "subprocess.Popen[bytes]") -> None:
    """Until a server that was just started answers."""
    await _wait_ready(url, lambda: server.poll() is None)


async def _wait_ready(url: str, lives: Callable[[], bool]) -> None:
    async with aiohttp.ClientSession() as session:
        while lives():
            try:
                async with session.get(f"{url}/readyz") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.005)
    raise SystemExit("the server did not start")


async def load(url: str, key: str, connections: int, seconds: float) -> list[float]:
    """Post as fast as `connections` clients can for some seconds; the latency of each accepted job."""
    latencies: list[float] = []
    body = json.dumps(BODY).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    end = time.monotonic() + seconds

    async def client(session: aiohttp.ClientSession) -> None:
        while time.monotonic() < end:
            begun = time.perf_counter()
            async with session.post(f"{url}/model/v1/generation", data=body, headers=headers) as response:
                await response.read()
                if response.status != 202:
                    raise SystemExit(f"HTTP {response.status}: {await response.text()}")
            latencies.append(time.perf_counter() - begun)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:
        await asyncio.gather(*(client(session) for _ in range(connections)))
    return latencies


# -- one server on a file, to be measured as a fleet is


class OneServer(Machines):
    """A server on SQLite that runs its jobs itself."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder = folder
        self.database = folder / "penstock.db"
        self.config = folder / "penstock.toml"
        self.config.write_text(settings)
        self.gateways = [self._make("gateway-0", "serve")]
        self.workers = []

    def environ(self) -> dict[str, str]:
        """Without the settings of whoever runs this."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return own | {"PENSTOCK_DATABASE_URL": f"sqlite:///{self.database}"}

    async def end(self) -> None:
        """Leave nothing behind."""
        await self.gateways[0].kill()


class FileFleet(Fleet):
    """The same questions, of a file."""

    machines: OneServer

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """A question to the store itself."""
        with closing(sqlite3.connect(f"file:{self.machines.database}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()

    def commits(self) -> int:
        """Nobody counts them."""
        return 0

    def _store_cpu(self) -> float:
        """The store works inside of the server."""
        return 0.0


@asynccontextmanager
async def on_file(seats: int = MANY, poll: float = 0.1) -> AsyncGenerator[Fleet]:
    """A server on a new file, and a vendor."""
    script = Path(__file__).parents[1] / "machines" / "simulated_vendor.py"
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as vendor, TemporaryDirectory() as folder:
        try:
            said: Any = vendor.stdout
            port = int(said.readline())
            machines = OneServer(Path(folder), SETTINGS.format(port=port, seats=seats, poll=poll))
            try:
                await machines.gateways[0].start()
                yield FileFleet(machines, vendor, port)
            finally:
                await machines.end()
        finally:
            vendor.kill()


@asynccontextmanager
async def on_postgresql(seats: int = MANY, poll: float = 0.1) -> AsyncGenerator[Fleet]:
    """A gateway and a worker on PostgreSQL, and a vendor."""
    async with fleet(gateways=1, workers=1, seats=seats, poll=poll) as running:
        await start(running.workers)
        yield running


STORES = {"sqlite": on_file, "postgresql": on_postgresql}


# -- watchers of events, in a process of their own


class _Made(msgspec.Struct):
    """What a watcher wants to know of an event."""

    created_at: datetime


class Watchers:
    """Streams of events, `at_once` at a time, until all have ended, have told `most` events, or are told to stop."""

    def __init__(self, port: int, key: str, paths: Sequence[str], at_once: int, most: int) -> None:
        self._port = port
        self._head = f"HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\naccept: text/event-stream\r\n"
        self._paths = list(reversed(paths))
        self._at_once = min(at_once, len(paths))
        self._most = most
        self._open = 0
        self._events = 0
        self._heard_at = 0.0
        self._lags: list[float] = []

    async def run(self) -> None:
        """Tell when all are open, and in the end what was seen."""
        begun = self._heard_at = time.perf_counter()
        tasks = [asyncio.create_task(self._watch_on()) for _ in range(self._at_once)]
        watching = asyncio.gather(*tasks)
        stopping = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        await asyncio.wait((watching, stopping), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        took, lags = self._heard_at - begun, {}
        if self._lags:
            lags = {"p50_ms": tables.quantile(self._lags, 0.5) * 1e3, "p99_ms": tables.quantile(self._lags, 0.99) * 1e3}
        print(json.dumps({"events": self._events, "new": len(self._lags), "seconds": took} | lags), flush=True)
        os._exit(0)  # a thread still reads stdin

    async def _watch_on(self) -> None:
        while self._paths:
            with suppress(asyncio.IncompleteReadError):
                await self._watch(self._paths.pop())

    async def _watch(self, path: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        try:
            writer.write(f"GET {path} {self._head}connection: close\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(head.decode())
            await reader.readuntil(b"\n\n")
            self._open += 1
            if self._open == self._at_once:
                print("open", flush=True)
            opened = time.time()
            while not self._most or self._events < self._most:
                self._hear(await reader.readuntil(b"\n\n"), opened)
        finally:
            writer.close()

    def _hear(self, frame: bytes, opened: float) -> None:
        """How late it is counts only for what happened since the stream was opened."""
        now, data = time.time(), frame.partition(b"\ndata: ")[2]
        if data:
            self._events += 1
            self._heard_at = time.perf_counter()
            made = msgspec.json.decode(data, type=_Made).created_at.timestamp()
            if made > opened:
                self._lags.append(now - made)


class Watching:
    """The process of watchers, as the one that measures sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def stop(self) -> dict[str, Any]:
        """What they saw until now."""
        output, _ = await self._process.communicate(b"stop\n")
        return json.loads(output)

    async def end(self) -> dict[str, Any]:
        """What they saw, when they have seen all."""
        said: Any = self._process.stdout
        output = await said.readline()
        await self._process.wait()
        return json.loads(output)


async def watch(running: Fleet, paths: Sequence[str], at_once: int, most: int = 0) -> Watching:
    """Watchers whose streams are open."""
    words = [running.gateway.port, await running.key(), list(paths), at_once, most]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.jobs.jobs", "--watch"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    given: Any = process.stdin
    said: Any = process.stdout
    given.write(json.dumps(words).encode() + b"\n")
    await given.drain()
    if await said.readline() != b"open\n":
        raise SystemExit("the watchers could not open their streams")
    return Watching(process)


# -- the questions


async def ask_start(running: Fleet, options: argparse.Namespace) -> Figures:
    """How soon it is ready, and what it takes to idle."""
    first, machine, times = running.gateway.starts[0], running.gateway, list[float]()
    for _ in range(3):
        await machine.stop()
        begun = time.perf_counter()
        await machine.start(wait=False)
        process: Any = machine.process
        await _wait_ready(machine.url, lambda process=process: process.returncode is None)
        times.append(time.perf_counter() - begun)
    await asyncio.sleep(3)
    before = running.cpu()
    await asyncio.sleep(options.seconds)
    used = {name: running.cpu()[name] - before[name] for name in before}
    found = {"first start to /readyz, s": first, "start to /readyz, s": statistics.median(times)}
    for each in running.machines.all:
        name = _name(each)
        found[f"idle memory of the {name}, MB"] = memory_mb(pid_of(each))
        found[f"idle CPU of the {name}, %"] = 100 * used[each.name] / options.seconds
    return found


async def ask_accept(running: Fleet, options: argparse.Namespace) -> Figures:
    """Jobs as fast as they are accepted."""
    await running.load(options.connections, 2)
    async with measured(running) as used:
        found = await running.load(options.connections, options.seconds)
    rows = {"accepted per second": found["per_second"]}
    for name, share in _shares(running, used).items():
        rows[f"CPU of the {name}, ms per accepted job"] = share / 100 * used["seconds"] / found["accepted"] * 1e3
    return rows | {"accepting p50, ms": found["p50_ms"], "accepting p99, ms": found["p99_ms"]}


async def ask_pickup(running: Fleet, options: argparse.Namespace) -> Figures:
    """How soon a job is started that does not have to wait."""
    await running.load(8, 2, rate=20, latency=LONG)
    since = time.time()
    await running.load(8, options.seconds, rate=20, latency=LONG)
    await running.until(lambda: not running.ask(WAITING))
    waits = [float(row[0]) * 1e3 for row in running.ask(PICKED_UP.format(since=since))]
    return {f"created to started p{part}, ms": tables.quantile(waits, part / 100) for part in (50, 99)}


async def ask_streams(running: Fleet, options: argparse.Namespace) -> Figures:
    """Streams of jobs that run, and end some tens a second; then all of them once more."""
    since, count, rate = time.time(), options.watchers, 30.0
    await running.load(8, 300, rate=rate, latency=count / rate + 3, count=count)
    rows = running.ask(f"SELECT id FROM jobs WHERE created_at > {since}")  # noqa: S608  a number of our own
    paths = [f"/api/v1/jobs/{row[0]}/events" for row in rows]
    live = await (await watch(running, paths, count)).end()
    before, name = cpu_seconds(pid_of(running.gateway)), f"{count} streams of jobs"
    again = await (await watch(running, paths, 16)).end()
    cpu = cpu_seconds(pid_of(running.gateway)) - before
    return {
        f"{name}, running: late p50, ms": live["p50_ms"],
        f"{name}, running: late p99, ms": live["p99_ms"],
        f"{name}, told again: streams per second": count / again["seconds"],
        f"{name}, told again: events per second": again["events"] / again["seconds"],
        f"{name}, told again: CPU µs per event": cpu / again["events"] * 1e6,
    }


async def ask_feed(running: Fleet, options: argparse.Namespace) -> Figures:
    """The feed while jobs are accepted and started as fast as they can be, then all of it at once."""
    live = await watch(running, ["/api/v1/events?limit=100"], 1)
    accepted = await running.load(options.connections, options.seconds, latency=LONG)
    await running.until(lambda: not running.ask(WAITING))
    await asyncio.sleep(1)
    seen = await live.stop()
    total = running.ask("SELECT count(*) FROM events")[0][0]
    before = cpu_seconds(pid_of(running.gateway))
    again = await (await watch(running, [FROM_THE_START], 1, total)).end()
    cpu = cpu_seconds(pid_of(running.gateway)) - before
    return {
        "the feed, live: jobs accepted per second": accepted["per_second"],
        "the feed, live: events per second": seen["events"] / seen["seconds"],
        "the feed, live: late p50, ms": seen["p50_ms"],
        "the feed, live: late p99, ms": seen["p99_ms"],
        "the feed, told again: events per second": again["events"] / again["seconds"],
        "the feed, told again: CPU µs per event": cpu / again["events"] * 1e6,
    }


async def ask_poll(running: Fleet, options: argparse.Namespace) -> Figures:
    """Open jobs, all at the vendor; how soon they were there is told too."""
    begun = time.perf_counter()
    await running.load(16, 600, latency=LONG, count=options.open)
    running_jobs = "SELECT count(*) FROM jobs WHERE state = 'running'"
    await running.until(lambda: running.ask(running_jobs)[0][0] >= options.open)
    taken = options.open / (time.perf_counter() - begun)
    await asyncio.sleep(10)
    calls = (await running.books())["calls"]["poll"]
    async with measured(running) as used:
        await asyncio.sleep(max(20.0, options.seconds))
    polls = ((await running.books())["calls"]["poll"] - calls) / used["seconds"]
    runner = running.machines.all[-1]
    share, name = used[f"cpu_{runner.name}_percent"], f"{options.open} open jobs"
    found = {f"{name}: accepted and started per second": taken, f"{name}: polls per second": polls}
    found |= {f"{name}: CPU of the process that polls, %": share}
    if running.machines.workers:
        found[f"{name}: CPU of PostgreSQL, %"] = used["cpu_postgresql_percent"]
    return found | {
        f"{name}: CPU µs per poll": share / 100 / polls * 1e6,
        f"{name}: memory, MB": memory_mb(pid_of(runner)),
    }


def _name(machine: Machine) -> str:
    return machine.name.partition("-")[0]


def _shares(running: Fleet, used: Mapping[str, float]) -> Figures:
    """Shares of a core of what is ours, by its name."""
    found = {_name(machine): used[f"cpu_{machine.name}_percent"] for machine in running.machines.all}
    return found | {"store": used["cpu_postgresql_percent"]} if running.machines.workers else found


# -- all of them

QUESTIONS: Mapping[str, Callable[[Fleet, argparse.Namespace], Awaitable[Figures]]] = {
    "start": ask_start,
    "accept": ask_accept,
    "pickup": ask_pickup,
    "streams": ask_streams,
    "feed": ask_feed,
    "poll": ask_poll,
}
STANDS = ((100, ("start", "accept")), (MANY, ("pickup", "streams", "feed")), (MANY, ("poll",)))
"""Which questions are asked of the same servers, and how many jobs the vendor takes at once."""


async def measure(store: str, options: argparse.Namespace) -> None:
    """Every question is kept as it is answered: a run that is cut short has not been in vain."""
    for seats, names in STANDS:
        wanted = [name for name in names if name in options.questions]
        if wanted:
            async with STORES[store](seats=seats, poll=2.0) as running:  # a vendor's usual pace
                for name in wanted:
                    begun = time.perf_counter()
                    keep(store, await QUESTIONS[name](running, options))
                    print(f"{store}: {name}, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


def keep(store: str, figures: Figures) -> None:
    known = tables.load("jobs").get("stores", {})
    told = {"measured": time.strftime("%Y-%m-%d %H:%M"), **figures}
    tables.save("jobs", {"stores": known | {store: known.get(store, {}) | told}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is measured")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--open", type=int, default=5000, help="jobs to poll")
    parser.add_argument("--watchers", type=int, default=300, help="streams of jobs")
    parser.add_argument("--watch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        uvloop.run(Watchers(*json.loads(sys.stdin.readline())).run())
        return
    for store in options.stores:
        asyncio.run(measure(store, options))
    tell(tables.load("jobs")["stores"])


def tell(found: Mapping[str, Mapping[str, Any]]) -> None:
    """What was measured now, and what was before: not everything has to be asked again."""
    names = dict.fromkeys(name for figures in found.values() for name in figures)
    rows = [{"": name, **{store: figures.get(name) for store, figures in found.items()}} for name in names]
    tables.show("jobs", rows)

    draw(found)


def draw(found: Mapping[str, Mapping[str, Any]]) -> None:
    """What can be told in bars."""
    wanted = ("accepted per second", "created to started p99, ms", "the feed, told again: events per second")
    panels = {
        name: values
        for name in wanted
        if (values := {store: figures[name] for store, figures in found.items() if name in figures})
    }
    if panels:
        tables.draw("bars", "jobs", panels, title="Jobs", subtitle="by store", log=False)


if __name__ == "__main__":
    main()
