"""Cost of a job on PostgreSQL: jobs per second, CPU and transactions for each job, by number of workers.

python -m bench.jobs.workers [--workers 1 2] [--jobs 1000] [--backlog] [--unsigned] [--help]

A gateway accepts jobs of the simulated vendor as fast as it can while the workers run them. Everything shares the
machine's cores, PostgreSQL included. With `--backlog` all jobs are accepted before, so that nothing but the workers,
PostgreSQL and the vendor uses the cores.
"""

import argparse
import asyncio
import time
from typing import Any

from bench.harness import tables
from bench.harness.processes import cpu_seconds, ended_cpu_seconds, own_cpu_seconds
from bench.machines.fleet import Fleet, fleet, pid_of, start

WARM_UP_JOBS = 50
UNSIGNED = '[provenance]\nresults = "unsigned"\n'
SUCCEEDED = "SELECT count(*) FROM jobs WHERE state = 'succeeded'"


async def measure(workers: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run all jobs through this number of workers. Return a row of the table."""
    more = UNSIGNED if options.unsigned else ""
    async with fleet(gateways=1, workers=workers, more=more) as running:
        await start(running.workers)
        await _load(running, WARM_UP_JOBS, options)
        await _until_done(running)
        if options.backlog:
            await asyncio.gather(*(worker.stop() for worker in running.workers))
            await _load(running, options.jobs, options)
            await start(running.workers)
        before, begun = _used(running), time.perf_counter()
        if not options.backlog:
            await _load(running, options.jobs, options)
        await _until_done(running)
        seconds = time.perf_counter() - begun
        await asyncio.sleep(1.5)  # PostgreSQL counts a transaction up to a second late
        after, books = _used(running), await running.books()
        done = running.ask(SUCCEEDED)[0][0]
    if done != options.jobs + WARM_UP_JOBS or books["doubled"]:
        raise SystemExit(f"{done} jobs succeeded, {books['doubled']} orders were placed twice")
    each = {name: (after[name] - before[name]) / options.jobs for name in after}
    return {"workers": workers, "jobs/s": options.jobs / seconds, **each}


async def _load(running: Fleet, jobs: int, options: argparse.Namespace) -> None:
    await running.load(options.connections, 600, latency=options.latency, count=jobs)


async def _until_done(running: Fleet) -> None:
    await running.until(lambda: running.open_jobs() == 0)


def _used(running: Fleet) -> dict[str, float]:
    """Return CPU in milliseconds by part, and transactions, since the start."""
    workers = [pid_of(worker) for worker in running.workers]
    own = sum(map(own_cpu_seconds, workers))
    whole = sum(map(cpu_seconds, workers)) + sum(map(ended_cpu_seconds, workers))
    cpu = running.cpu()
    return {
        "worker CPU, ms": own * 1e3,
        "its children, ms": (whole - own) * 1e3,
        "PostgreSQL, ms": cpu["postgresql"] * 1e3,
        "gateway, ms": cpu["gateway-0"] * 1e3,
        "vendor, ms": cpu["vendor"] * 1e3,
        "transactions": float(running.commits()),
    }


async def run(options: argparse.Namespace) -> None:
    """Measure each number of workers, and print the table."""
    rows = [await measure(workers, options) for workers in options.workers]
    title = f"{options.jobs} jobs of the simulated vendor on PostgreSQL; CPU and transactions for each job"
    tables.show(title, rows)
    tables.save("workers", {"rows": rows})


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the vendor works on an order")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--backlog", action="store_true", help="accept all jobs before the workers start")
    parser.add_argument("--unsigned", action="store_true", help="without signatures in the results")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
