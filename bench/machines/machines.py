"""Many machines on PostgreSQL, one question for each command.

python -m bench.machines.machines QUESTION [--help]

Questions: accept, pickup, throughput, held, fair, seats, takeover, watchers, million.
"""

import argparse
import asyncio
import inspect
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any

from bench.harness.processes import memory_mb
from bench.machines.fleet import Fleet, Troubles, fleet, measured, pid_of, quantiles, show, start
from bench.machines.million import million
from bench.machines.watchers import watchers

PICKED_UP = """
SELECT started.created_at - queued.created_at FROM events AS started JOIN events AS queued USING (job_id)
WHERE started.type = 'job.started' AND queued.type = 'job.queued' AND queued.created_at > {since}
"""


RUN = """
SELECT min(started.created_at), max(jobs.finished_at), count(*) FROM jobs
JOIN events AS started ON started.job_id = jobs.id AND started.type = 'job.started' WHERE jobs.state = 'succeeded'
"""


# -- accepting


async def accept(seconds: float = 10.0, connections: int = 32) -> None:
    """Jobs accepted by one gateway: without workers, and with one that takes them up."""
    for workers, told in ((0, ""), (1, ", a worker takes them up")):
        async with fleet(gateways=1, workers=workers) as running:
            await start(running.workers)
            await running.load(connections, 2)
            show(
                f"accepted by one gateway, {connections} connections{told}",
                await _accept(running, connections, seconds),
            )


async def pickup(seconds: float = 20.0, rate: float = 20.0, latency: float = 1.0) -> None:
    """How soon a worker takes up jobs that come at a steady rate."""
    async with fleet(gateways=1, workers=1) as running:
        await start(running.workers)
        await running.load(8, 2, rate=rate, latency=latency)
        since = time.time()
        async with measured(running) as used:
            jobs = await running.load(8, seconds, rate=rate, latency=latency)
        await running.until(lambda: _is_idle(running))
        waits = [float(row[0]) for row in running.ask(PICKED_UP.format(since=since))]
        rows = {"jobs": jobs, "from created to started, ms": quantiles(waits)}
        show(f"picked up at {rate:g} jobs/s", rows | used)


async def _accept(running: Fleet, connections: int, seconds: float) -> dict[str, Any]:
    async with measured(running) as used:
        found = await running.load(connections, seconds)
    accepted = found["accepted"]
    costs = {
        f"CPU of {name}, ms for a job": used[f"cpu_{each}_percent"] / 100 * used["seconds"] / accepted * 1e3
        for name, each in (("the gateway", "gateway-0"), ("PostgreSQL", "postgresql"))
    }
    return found | costs | used


def _is_idle(running: Fleet) -> bool:
    """Nothing waits to be taken up."""
    return not running.ask("SELECT 1 FROM jobs WHERE done = 0 AND state = 'queued' LIMIT 1")


# -- running


async def throughput(jobs: int = 2000, latency: float = 0.2) -> None:
    """Short jobs through 1, 2 and 4 workers, all accepted before."""
    for workers in (1, 2, 4):
        async with fleet(gateways=1, workers=workers) as running:
            await running.load(16, 600, latency=latency, count=jobs)
            await start(running.workers)
            async with measured(running) as used:
                await running.until(lambda running=running: running.open_jobs() == 0)
            first, last, count = running.ask(RUN)[0]
            books = await running.books()
            rows = {"jobs": count, "jobs_per_second": count / (last - first), "doubled": books["doubled"]} | used
            show(f"throughput, {workers} workers", rows)


async def held(jobs: int = 5000, seconds: float = 30.0, poll: float = 2.0) -> None:
    """Long jobs, all held by one worker."""
    async with fleet(gateways=1, workers=1, poll=poll) as running:
        await start(running.workers)
        idle = memory_mb(pid_of(running.workers[0]))
        await running.load(16, 600, latency=86_000, count=jobs)
        await running.until(lambda: running.ask("SELECT count(*) FROM jobs WHERE state = 'running'")[0][0] >= jobs)
        await asyncio.sleep(10)
        calls = (await running.books())["calls"]
        async with measured(running) as used:
            await asyncio.sleep(seconds)
        after = (await running.books())["calls"]
        memory = memory_mb(pid_of(running.workers[0]))
        polls = {"polls_per_second": (after["poll"] - calls.get("poll", 0)) / seconds}
        show(f"{jobs} jobs held by one worker", {"idle_mb": idle, "memory_mb": memory} | polls | used)


async def fair(jobs: int = 10_000, latency: float = 0.5, seats: int = 10) -> None:
    """One account has many jobs waiting, another adds one."""
    async with fleet(gateways=1, workers=1, seats=seats) as running:
        await running.load(16, 600, latency=latency, count=jobs, account="many")
        await running.key("few")
        await start(running.workers)
        await running.until(lambda: running.ask("SELECT count(*) FROM jobs WHERE done = 1")[0][0] > 2 * seats)
        waits: list[float] = []
        overtaken: list[int] = []
        for _ in range(10):
            await running.load(1, 60, latency=latency, count=1, account="few")
            await running.until(lambda: bool(running.ask(NEWEST)[0][1]))
            created, started = running.ask(NEWEST)[0]
            waits.append(started - created)
            overtaken.append(running.ask(OVERTAKEN.format(since=created, until=started))[0][0])
            await asyncio.sleep(1)
        rows = {"waits, s": [round(wait, 3) for wait in waits], "of the others begun before": overtaken}
        show(f"fair: {jobs} jobs wait, {seats} seats of {latency:g} s", rows)


NEWEST = """
SELECT queued.created_at, max(started.created_at) FROM events AS queued
JOIN jobs ON jobs.id = queued.job_id JOIN accounts ON accounts.id = jobs.account_id AND accounts.name = 'few'
LEFT JOIN events AS started ON started.job_id = jobs.id AND started.type = 'job.started'
WHERE queued.type = 'job.queued' GROUP BY queued.position ORDER BY queued.position DESC LIMIT 1
"""
OVERTAKEN = """
SELECT count(*) FROM events JOIN accounts ON accounts.id = events.account_id AND accounts.name = 'many'
WHERE type = 'job.started' AND events.created_at > {since} AND events.created_at < {until}
"""


BUSIEST = """
SELECT workers.name FROM workers JOIN jobs ON jobs.owner = workers.id AND jobs.done = 0
GROUP BY workers.name ORDER BY count(*) DESC LIMIT 1
"""


async def seats(jobs: int = 600, latency: float = 0.3, limit: int = 10, workers: int = 3) -> None:
    """A vendor's limit over several workers, of which one is killed: the most orders that it ever had at once."""
    async with fleet(gateways=1, workers=workers, seats=limit) as running:
        await running.load(16, 600, latency=latency, count=jobs)
        await start(running.workers)
        await running.until(lambda: running.ask("SELECT count(*) FROM jobs WHERE done = 1")[0][0] > jobs / 5)
        busiest = running.ask(BUSIEST)[0][0]
        await next(worker for worker in running.workers if worker.worker_name == busiest).kill()
        await running.until(lambda: running.open_jobs() == 0)
        books = await running.books()
        taken_over = running.ask("SELECT count(*) FROM jobs WHERE epoch > 1")[0][0]
        rows = {"most_at_once": books["most"], "orders": books["orders"], "doubled": books["doubled"]}
        show(f"a limit of {limit} over {workers} workers, one killed", rows | {"taken_over": taken_over})


async def takeover(rounds: int = 5, jobs: int = 200, workers: int = 3) -> None:
    """How long held jobs wait for another worker after kill -9 and after SIGSTOP of theirs."""
    async with fleet(gateways=1, workers=workers) as running:
        await start(running.workers)
        await running.load(8, 600, latency=86_000, count=jobs)
        await running.until(lambda: _is_idle(running))
        troubles = Troubles(running.machines, random.Random())  # noqa: S311  no secrets
        for _ in range(rounds):
            for strike in (troubles.kill_worker, troubles.freeze_worker):
                await asyncio.sleep(6)
                await strike()
                await troubles.settle()
        found = troubles.takeovers
        rows = {"after kill -9, ms": quantiles(found.killed), "after SIGSTOP, ms": quantiles(found.frozen)}
        others = {"disturbed, ms": quantiles(found.disturbed), "never": len(found.left)}
        show(f"takeover of {jobs} jobs, {workers} workers", rows | others)


COMMANDS: tuple[Callable[..., Coroutine[Any, Any, None]], ...] = (
    accept,
    pickup,
    throughput,
    held,
    fair,
    seats,
    takeover,
    watchers,
    million,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for command in COMMANDS:
        own = commands.add_parser(command.__name__, help=command.__doc__, description=command.__doc__)
        own.set_defaults(command=command)
        for name, parameter in inspect.signature(command).parameters.items():
            own.add_argument(f"--{name}", type=type(parameter.default), default=parameter.default)
    options = vars(parser.parse_args())
    asyncio.run(options.pop("command")(**options))


if __name__ == "__main__":
    main()
