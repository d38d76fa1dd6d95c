"""How fast the gateway starts, how small it idles, and how many jobs per second it accepts on SQLite.

python bench/jobs.py [--seconds 10] [--connections 16]
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from processes import cpu_seconds, memory_mb

BODY = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "bench", "script": {"latency": 3600}}}]}


async def wait_ready(url: str, server: "subprocess.Popen[bytes]") -> None:
    async with aiohttp.ClientSession() as session:
        while server.poll() is None:
            try:
                async with session.get(f"{url}/readyz") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientConnectionError:
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


async def measure(connections: int, seconds: float, port: int) -> dict[str, float]:
    penstock = Path(sys.executable).with_name("penstock")
    with tempfile.TemporaryDirectory() as data:
        made = subprocess.check_output([penstock, "key", "create", "--json", "--data", data])
        key = json.loads(made)["key"]
        many = dict.fromkeys(("PENSTOCK_JOBS_MAX_WAITING", "PENSTOCK_JOBS_MAX_WAITING_TOTAL"), "1000000")
        environ = os.environ | many | {"PENSTOCK_SERVER_LOG_LEVEL": "warning"}
        begun = time.perf_counter()
        server = subprocess.Popen(
            [penstock, "serve", "--port", str(port), "--data", data], env=environ, stdout=subprocess.DEVNULL
        )
        try:
            url = f"http://127.0.0.1:{port}"
            await wait_ready(url, server)
            ready = time.perf_counter() - begun
            await asyncio.sleep(1)
            idle = memory_mb(server.pid)
            await load(url, key, connections, 1)
            cpu, begun = cpu_seconds(server.pid), time.perf_counter()
            latencies = await load(url, key, connections, seconds)
            took = time.perf_counter() - begun
            cpu = cpu_seconds(server.pid) - cpu
            return {
                "ready_seconds": ready,
                "idle_memory_mb": idle,
                "accepted_per_second": len(latencies) / took,
                "cpu_us_per_job": cpu / len(latencies) * 1e6,
                "p50_ms": statistics.median(latencies) * 1e3,
                "p99_ms": statistics.quantiles(latencies, n=100)[98] * 1e3,
                "loaded_memory_mb": memory_mb(server.pid),
                "jobs": len(latencies),
            }
        finally:
            server.terminate()
            server.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--port", type=int, default=8799)
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments.connections, arguments.seconds, arguments.port))
    for name, value in result.items():
        print(f"{name:>22}  {value:,.2f}")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "jobs.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
