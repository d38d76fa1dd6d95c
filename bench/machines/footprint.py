"""Start and memory of one server on SQLite: until it listens, idle, with idle streams, and with open jobs.

python -m bench.machines.footprint [--starts 5] [--streams 2000] [--jobs 5000]

start    from the command to the first accepted connection; `CPU s` counts where other programs use the machine
idle     without any request but one of `/readyz`
streams  the account's event feed, over and over, while nothing happens
jobs     open jobs at the vendor, polled every 5 seconds
"""

import argparse
import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from bench.harness import tables
from bench.harness.processes import cpu_seconds, own_memory_mb
from bench.jobs.jobs import FileFleet, OneServer
from bench.machines.fleet import SETTINGS, pid_of

STREAMS = "max_streams = 10000"
LONG_SECONDS = 86_000.0
SETTLE_SECONDS = 8.0
POLL_SECONDS = 5.0


def measure_start(server: OneServer) -> dict[str, Any]:
    """Start a server, and stop it once it accepts a connection."""
    machine = server.gateways[0]
    begun = time.perf_counter()
    command = [sys.executable, "-m", "penstock", *machine.words, "--port", str(machine.port), "--data", machine.folder]
    with subprocess.Popen(
        command, env=machine.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while True:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", machine.port)) == 0:
                    break
            time.sleep(0.005)
        seconds, cpu = time.perf_counter() - begun, cpu_seconds(process.pid)
        process.terminate()
    return {"what": "start", "seconds": seconds, "CPU s": cpu}


async def measure_streams(running: FileFleet, count: int) -> dict[str, Any]:
    """Open streams on which nothing happens."""
    pid, headers = pid_of(running.gateway), {"authorization": f"Bearer {await running.key()}"}
    timeout, connector = aiohttp.ClientTimeout(total=None), aiohttp.TCPConnector(limit=0)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(running.gateway.url, headers=headers, timeout=timeout, connector=connector)
        )
        await stack.enter_async_context(session.get("/api/v1/events"))  # what the first one loads is not the streams'
        await asyncio.sleep(SETTLE_SECONDS / 2)
        before = own_memory_mb(pid)
        for _ in range(count):
            response = await stack.enter_async_context(session.get("/api/v1/events"))
            if response.status != 200:
                raise SystemExit(await response.text())
        await asyncio.sleep(SETTLE_SECONDS)
        held = own_memory_mb(pid)
    return {
        "what": f"{count} streams",
        "MB": held,
        "grown MB": held - before,
        "kB each": (held - before) * 1024 / count,
    }


async def measure_jobs(running: FileFleet, count: int) -> dict[str, Any]:
    """Hold open jobs."""
    pid = pid_of(running.gateway)
    await running.load(1, 60, latency=LONG_SECONDS, count=1)  # what the first one loads is not the jobs'
    await asyncio.sleep(SETTLE_SECONDS / 2)
    before = own_memory_mb(pid)
    await running.load(4, 600, latency=LONG_SECONDS, count=count)
    running_jobs = "SELECT count(*) FROM jobs WHERE state = 'running'"
    await running.until(lambda: running.ask(running_jobs)[0][0] > count)
    await asyncio.sleep(SETTLE_SECONDS)
    return _row(f"{count} jobs", before, own_memory_mb(pid), count)


def _row(what: str, before: float, held: float, count: int) -> dict[str, Any]:
    return {"what": what, "MB": held, "grown MB": held - before, "kB each": (held - before) * 1024 / count}


async def measure(options: argparse.Namespace, folder: Path, vendor: "subprocess.Popen[bytes]") -> list[dict[str, Any]]:
    """Measure all, each on a server of its own with the same store."""
    said: Any = vendor.stdout
    port = int(said.readline())
    settings = SETTINGS.format(port=port, seats=100_000, poll=POLL_SECONDS)
    server = OneServer(folder, settings.replace(STREAMS, f"{STREAMS}\nmax_streams_per_account = 10000"))
    starts = [await asyncio.to_thread(measure_start, server) for _ in range(options.starts + 1)][1:]
    best = {name: min(each[name] for each in starts) for name in ("seconds", "CPU s")}
    rows: list[dict[str, Any]] = [{"what": f"start, best of {len(starts)}", **best}]
    running = FileFleet(server, vendor, port)
    for question in ("idle", "streams", "jobs"):
        await server.gateways[0].start()
        try:
            await asyncio.sleep(SETTLE_SECONDS / 2)
            idle = own_memory_mb(pid_of(running.gateway))
            match question:
                case "streams":
                    rows.append(await measure_streams(running, options.streams) | {"idle MB": idle})
                case "jobs":
                    rows.append(await measure_jobs(running, options.jobs) | {"idle MB": idle})
                case _:
                    rows.append({"what": "idle", "MB": idle})
        finally:
            await server.end()
    return rows


def main() -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=5000)
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    script = Path(__file__).with_name("simulated_vendor.py")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    with (
        subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment) as vendor,
        TemporaryDirectory() as folder,
    ):
        try:
            rows = asyncio.run(measure(options, Path(folder), vendor))
        finally:
            vendor.kill()
    tables.show("start and memory of one server", rows)
    tables.save("footprint", {"rows": rows})


if __name__ == "__main__":
    main()
