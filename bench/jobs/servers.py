"""How several servers on one folder share the work: idle cost, accepted jobs per second, and how late news are.

python -m bench.jobs.servers [--servers 2] [--seconds 8] [--connections 16]
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import aiohttp

from bench.harness.processes import cpu_seconds, memory_mb
from bench.jobs.jobs import load, wait_ready

PENSTOCK = Path(sys.executable).with_name("penstock")
BODY = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "bench", "script": {"latency": 3600}}}]}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def start(stack: ExitStack, data: str) -> tuple[str, "subprocess.Popen[bytes]"]:
    """One more server; its address and its process."""
    environ = os.environ | {
        "PENSTOCK_JOBS_MAX_WAITING": "1000000",
        "PENSTOCK_JOBS_MAX_WAITING_TOTAL": "1000000",
        "PENSTOCK_SERVER_LOG_LEVEL": "warning",
    }
    port = free_port()
    command = [PENSTOCK, "serve", "--port", str(port), "--data", data]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    stack.callback(server.wait, 60)
    stack.callback(server.terminate)
    await wait_ready(f"http://127.0.0.1:{port}", server)
    return f"http://127.0.0.1:{port}", server


async def hear(url: str, key: str, seen: dict[str, float], ready: asyncio.Event) -> None:
    """Note when each accepted job is told by the account's feed."""
    headers = {"authorization": f"Bearer {key}", "accept": "text/event-stream"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(f"{url}/api/v1/events", headers=headers) as response,
    ):
        name = ""
        async for line in response.content:
            ready.set()
            if line.startswith(b"id: "):
                name = line[4:].strip().decode()
            elif line.startswith(b"event: job.queued"):
                seen[name] = time.perf_counter()


async def measure_lag(near: str, far: str, key: str, jobs: int, per_second: float) -> list[float]:
    """How much later the same event arrives at a server than at the one where the job was accepted."""
    arrivals: list[dict[str, float]] = [{}, {}]
    ready = [asyncio.Event(), asyncio.Event()]
    subscriptions = [
        asyncio.create_task(hear(url, key, seen, event))
        for url, seen, event in zip((near, far), arrivals, ready, strict=True)
    ]
    await asyncio.gather(*(event.wait() for event in ready))
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session:
        for _ in range(jobs):
            async with session.post(f"{near}/model/v1/generation", json=BODY, headers=headers) as response:
                response.raise_for_status()
            await asyncio.sleep(1 / per_second)
    await asyncio.sleep(1)
    for subscription in subscriptions:
        subscription.cancel()
    return [arrivals[1][name] - at for name, at in arrivals[0].items() if name in arrivals[1]]


async def measure(servers: int, connections: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as data, ExitStack() as stack:
        key = json.loads(subprocess.check_output([PENSTOCK, "key", "create", "--json", "--data", data]))["key"]
        running = [await start(stack, data) for _ in range(servers)]
        pids = [server.pid for _, server in running]
        await asyncio.sleep(2)
        idle = [cpu_seconds(pid) for pid in pids]
        await asyncio.sleep(10)
        spent = [cpu_seconds(pid) - before for pid, before in zip(pids, idle, strict=True)]
        result = {"idle_cpu_percent": max(spent) * 10}
        if servers > 1:
            for name, near, far in (("other_to_leader", 1, 0), ("leader_to_other", 0, 1)):
                lags = await measure_lag(running[near][0], running[far][0], key, 60, 20)
                result[f"lag_{name}_p50_ms"] = statistics.median(lags) * 1e3
                result[f"lag_{name}_p99_ms"] = statistics.quantiles(lags, n=100)[98] * 1e3
        each = connections // servers
        await asyncio.gather(*(load(url, key, each, 1) for url, _ in running))
        cpu, begun = sum(map(cpu_seconds, pids)), time.perf_counter()
        loads = await asyncio.gather(*(load(url, key, each, seconds) for url, _ in running))
        latencies = [latency for latencies in loads for latency in latencies]
        took = time.perf_counter() - begun
        return result | {
            "accepted_per_second": len(latencies) / took,
            "cpu_us_per_job": (sum(map(cpu_seconds, pids)) - cpu) / len(latencies) * 1e6,
            "p50_ms": statistics.median(latencies) * 1e3,
            "p99_ms": statistics.quantiles(latencies, n=100)[98] * 1e3,
            "max_ms": max(latencies) * 1e3,
            "memory_mb": sum(map(memory_mb, pids)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--connections", type=int, default=16)
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments.servers, arguments.connections, arguments.seconds))
    for name, value in result.items():
        print(f"{name:>26}  {value:,.2f}")
    results = Path(__file__).parents[1] / "results"
    results.mkdir(exist_ok=True)
    (results / f"servers-{arguments.servers}.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
