"""Thousands of event streams over several gateways, of jobs that workers run: how late news are, and what it costs."""

import asyncio
import json
import time
from collections import Counter
from datetime import datetime
from typing import Any

import aiohttp

from bench.harness.processes import memory_mb
from bench.machines.fleet import Fleet, fleet, measured, pid_of, quantiles, show, start


class Watching:
    """All watchers, in this process."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.kinds: Counter[str] = Counter()
        self.open = 0
        self.wrong = 0

    async def watch(self, session: aiohttp.ClientSession, url: str, job_id: str) -> None:
        """To the end of the job; how late each event was that came once the stream was open."""
        last = 0
        async with session.get(f"{url}/api/v1/jobs/{job_id}/events") as response:
            response.raise_for_status()
            self.open += 1
            opened = time.time()
            async for line in response.content:
                if line.startswith(b"data:"):
                    now, event = time.time(), json.loads(line[5:])
                    made = datetime.fromisoformat(event["created_at"]).timestamp()
                    self.wrong += event["sequence"] != last + 1
                    last = event["sequence"]
                    if made > opened:
                        self.lags.append(now - made)
                        self.kinds[event["type"]] += 1
        self.open -= 1


async def watchers(
    watchers: int = 2000, gateways: int = 3, workers: int = 2, jobs: int = 500, latency: float = 90.0, poll: float = 5.0
) -> None:
    """Event streams over several gateways: how late events are, and the memory of each stream."""
    async with fleet(gateways=gateways, workers=workers, poll=poll) as running:
        await start(running.workers)
        machines = running.machines.gateways
        idle = [memory_mb(pid_of(machine)) for machine in machines]
        ids = await _order(running, jobs, latency)
        watching = Watching()
        headers = {"authorization": f"Bearer {await running.key()}"}
        async with aiohttp.ClientSession(
            headers=headers, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        ) as session:
            tasks = [
                asyncio.create_task(
                    watching.watch(session, machines[number % gateways].url, ids[number // gateways % jobs])
                )
                for number in range(watchers)
            ]
            await _await_open(watching, watchers)
            async with measured(running) as used:
                await asyncio.sleep(min(15.0, latency / 3))
            memory = [memory_mb(pid_of(machine)) for machine in machines]
            await asyncio.gather(*tasks)
        each = [(now - before) * 1024 / (watchers / gateways) for now, before in zip(memory, idle, strict=True)]
        rows: dict[str, Any] = {
            "events": dict(watching.kinds),
            "lag, ms": quantiles(watching.lags),
            "out of order or missed": watching.wrong,
            "idle_mb": [round(value, 1) for value in idle],
            "memory_mb": [round(value, 1) for value in memory],
            "kb_for_a_watcher": [round(value, 1) for value in each],
        }
        show(f"{watchers} watchers over {gateways} gateways, {jobs} jobs", rows | used)


async def _order(running: Fleet, jobs: int, latency: float) -> list[str]:
    await running.load(8, 300, latency=latency, count=jobs)
    return [row[0] for row in running.ask("SELECT id FROM jobs WHERE done = 0 ORDER BY id")]


async def _await_open(watching: Watching, count: int) -> None:
    async with asyncio.timeout(120):
        while watching.open < count:  # noqa: ASYNC110  a bench may look
            await asyncio.sleep(0.05)
