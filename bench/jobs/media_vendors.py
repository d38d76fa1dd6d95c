"""All media vendors' doubles at once in a storm, and one gateway that polls thousands of open jobs.

python -m bench.jobs.media_vendors [--storm 2000] [--open 5000] [--vendor luma]
"""

import argparse
import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.harness.processes import cpu_seconds, memory_mb
from bench.jobs.jobs import wait_ready

TESTS = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from doubles.media import MediaDouble, Plan, listening  # noqa: E402  they live with the tests
from vendors.storm import Asked, Odds, find_doubles, judge, lags, params_of, rage, settings_of, submit  # noqa: E402


@dataclass(frozen=True)
class Running:
    """A gateway in a process of its own."""

    url: str
    key: str
    pid: int


@asynccontextmanager
async def gateway(toml: str, port: int) -> AsyncGenerator[Running]:
    penstock = Path(sys.executable).with_name("penstock")
    with tempfile.TemporaryDirectory() as data:
        config = Path(data) / "config.toml"
        config.write_text(toml)
        made = subprocess.check_output([penstock, "key", "create", "--json", "--data", data])
        environ = os.environ | {"PENSTOCK_SERVER_LOG_LEVEL": "error"}
        command = [penstock, "serve", "--port", str(port), "--data", data]
        server = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
        try:
            await wait_ready(f"http://127.0.0.1:{port}", server)
            yield Running(f"http://127.0.0.1:{port}", json.loads(made)["key"], server.pid)
        finally:
            server.terminate()
            server.wait(30)


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


# -- the storm


async def storm(count: int, port: int) -> bool:
    """Whether every job ends in the right state."""
    async with AsyncExitStack() as stack:
        doubles = [await stack.enter_async_context(listening(kind())) for kind in find_doubles()]
        begun = time.monotonic()
        server = await stack.enter_async_context(gateway(settings_of(doubles), port))
        asked = await rage(server.url, server.key, doubles, count, Odds(), seed=5)
        took = time.monotonic() - begun
    return report(asked, took)


def report(asked: list[Asked], took: float) -> bool:
    print(f"{len(asked)} jobs in {took:.0f} s; 10 % 5xx, 5 % lost replies, 2 % corrupt bytes, links of half a second")
    print(
        f"{'vendor':12}{'jobs':>6}{'ok':>6}{'unknown':>9}{'other':>7}{'orders':>8}{'most':>6}{'wrong':>7}{'lag p99':>9}"
    )
    for vendor in sorted({job.double.vendor for job in asked}):
        own = [job for job in asked if job.double.vendor == vendor]
        codes = Counter((job.record["error"] or {}).get("code") for job in own)
        unknown = codes["upstream_outcome_unknown"]
        numbers = (
            len(own),
            codes[None],
            unknown,
            len(own) - codes[None] - unknown,
            sum(len(job.orders) for job in own),
        )
        most, wrong = max(len(job.orders) for job in own), sum(judge(job) is not None for job in own)
        print(
            f"{vendor:12}{numbers[0]:6}{numbers[1]:6}{numbers[2]:9}{numbers[3]:7}{numbers[4]:8}{most:6}{wrong:7}",
            end="",
        )
        print(f"{quantile(lags(own), 0.99):8.2f}s")
    problems = [f"{job.double.vendor} {job.id}: {problem}" for job in asked if (problem := judge(job))]
    print(f"detection lag: p50 {quantile(lags(asked), 0.5):.2f} s, p99 {quantile(lags(asked), 0.99):.2f} s")
    print("\n".join(problems[:20]) or "every job ended in the right state, and was ordered at most once")
    return not problems


# -- many open jobs


async def hold(count: int, vendor: str, port: int) -> None:
    """What one gateway needs to poll `count` open jobs, and how late it polls."""
    kind = next(kind for kind in find_doubles() if kind.vendor == vendor)
    ending = next(name for name, verdict in kind.endings.items() if verdict.code == "upstream_error")
    async with listening(kind()) as double:
        toml = double.settings(poll_seconds=kind_poll_seconds(kind), max_concurrent=count)
        double.plans.extend(Plan(ending, seconds=120 + 60 * number / count) for number in range(count))
        async with gateway(toml, port) as server:
            idle = memory_mb(server.pid)
            headers = {"authorization": f"Bearer {server.key}"}
            async with aiohttp.ClientSession(server.url, headers=headers) as session:
                jobs = [Asked(number, double) for number in range(count)]
                gate = asyncio.Semaphore(32)
                await asyncio.gather(*(_submit(session, job, gate) for job in jobs))
                await until(lambda: len(double.orders) == count)
                print(f"{count} jobs open at {vendor}: {params_of(double, 0)[0]}")
                await asyncio.sleep(15)
                before, seen, begun = cpu_seconds(server.pid), len(double.seen), time.monotonic()
                await asyncio.sleep(40)
                took = time.monotonic() - begun
                cpu, polls = (cpu_seconds(server.pid) - before) / took, (len(double.seen) - seen) / took
                print(f"CPU {100 * cpu:.1f} % of a core at {polls:.0f} calls/s, {1e6 * cpu / polls:.0f} µs each")
                print(f"memory {memory_mb(server.pid):.0f} MB, idle {idle:.0f} MB")
                await until(lambda: all(order.noticed_at for order in double.orders.values()))
                async with session.get("/metrics") as response:
                    text = await response.text()
        late = read_quantile(text, "penstock_poll_late_seconds", 0.99)
        found = [order.noticed_at - order.created_at - (order.plan.seconds or 0) for order in double.orders.values()]
        print(f"polls later than planned: p99 at most {late} s")
        middle, most = quantile(found, 0.5), quantile(found, 0.99)
        print(f"from an order's end to its being noticed: p50 {middle:.2f} s, p99 {most:.2f} s")


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  the doubles ring no bell
        await asyncio.sleep(0.2)


async def _submit(session: aiohttp.ClientSession, job: Asked, gate: asyncio.Semaphore) -> None:
    async with gate:
        await submit(session, job)


def kind_poll_seconds(kind: type[MediaDouble]) -> float:
    module = importlib.import_module(f"penstock.vendors.{kind.vendor}")
    return module.VENDOR.options_type.model_fields["poll_seconds"].default


def read_quantile(text: str, metric: str, part: float) -> float:
    """The least bound of a histogram's buckets that holds this part of all."""
    found = [
        (float(bound), float(value))
        for bound, value in re.findall(rf'{metric}_bucket{{le="([^"]+)",[^}}]*}} (\S+)', text)
    ]
    total = max(value for _, value in found)
    return next(bound for bound, value in sorted(found) if value >= part * total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storm", type=int, default=2000)
    parser.add_argument("--open", type=int, default=5000)
    parser.add_argument("--vendor", default="luma")
    parser.add_argument("--port", type=int, default=8797)
    options = parser.parse_args()
    right = asyncio.run(storm(options.storm, options.port)) if options.storm else True
    if options.open:
        asyncio.run(hold(options.open, options.vendor, options.port))
    raise SystemExit(0 if right else 1)


if __name__ == "__main__":
    main()
