"""Whether cost grows in proportion to work: the gateway's CPU as load grows four- and sixteenfold.

python -m bench.jobs.growth [--curves plain streamed open jobs events] [--scale 1.0]

plain     chat requests that are not streamed; as many connections more as requests
streamed  chat answers of 64 chunks; likewise
open      open chat streams with a chunk a second, for a while; also their memory
jobs      accepted jobs, on SQLite; the store keeps all of them
events    events told to watchers of the account's feed, at ten jobs a second; what it costs without watchers is off

The exponent is the slope of the line through total cost over units of work, both as logarithms: 1.0 is in proportion,
2.0 is with the square.
"""

import argparse
import asyncio
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.chat.guard import ask_portion, beside_upstream, cpu_of
from bench.chat.streams import Measurement
from bench.harness import tables
from bench.harness.processes import cpu_seconds
from bench.jobs.jobs import LONG, on_file, watch
from bench.machines.fleet import Fleet, pid_of

GROWTH = (1, 4, 16)
Curve = dict[float, float]
"""Total cost by units of work."""


def exponent(curve: Mapping[float, float]) -> float:
    """The slope of the straight line that fits best."""
    places = [(math.log(units), math.log(cost)) for units, cost in curve.items()]
    middle = [sum(values) / len(places) for values in zip(*places, strict=True)]
    rise = sum((across - middle[0]) * (up - middle[1]) for across, up in places)
    return rise / sum((across - middle[0]) ** 2 for across, _ in places)


# -- chat


def ask_chat(kind: str, least: int, rounds: int) -> Curve:
    """CPU for so many requests."""
    taken: dict[float, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        beside_upstream(Path(folder), "penstock", connections=4 * GROWTH[-1]) as doors,
    ):
        door = doors["penstock"]
        ask_portion(door, kind, least, 4)
        for _ in range(rounds):
            for growth in GROWTH:
                cost = cpu_of(door, partial(ask_portion, door, kind, least * growth, 4 * growth))
                taken.setdefault(least * growth, []).append(cost)
    return {units: tables.quantile(costs, 0.5) for units, costs in taken.items()}


def ask_open(least: int) -> tuple[Curve, Curve]:
    """CPU for the seconds of so many open streams, and their memory."""
    cpu, memory = Curve(), Curve()
    for growth in GROWTH:
        streams = least * growth
        measurement = Measurement(argparse.Namespace(streams=streams, seconds=15))
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(measurement.listen_through(Path(folder) / "gateway"))
        cpu[streams * measurement.steady] = found["cpu_percent"] / 100 * measurement.steady
        memory[streams] = found["kb_per_stream"] * streams
    return cpu, memory


# -- jobs


async def ask_jobs(least: int) -> Curve:
    """CPU for so many accepted jobs, each time on a new store."""
    found = Curve()
    for growth in GROWTH:
        async with on_file(seats=100) as running:
            await running.load(4, 60, count=200)
            before = cpu_seconds(pid_of(running.gateway))
            await running.load(4 * growth, 600, count=least * growth)
            found[least * growth] = cpu_seconds(pid_of(running.gateway)) - before
    return found


async def ask_events(least: int, seconds: float = 12.0) -> Curve:
    """CPU for so many events told, beyond what the jobs cost by themselves."""
    found = Curve()
    async with on_file() as running:
        await _run_jobs(running, 3.0)
        alone = await _run_jobs(running, seconds)
        for growth in GROWTH:
            watching = await watch(running, ["/api/v1/events?limit=100"] * least * growth, least * growth)
            cost = await _run_jobs(running, seconds)
            await asyncio.sleep(0.5)
            found[(await watching.stop())["events"]] = max(1e-3, cost - alone)
    return found


async def _run_jobs(running: Fleet, seconds: float) -> float:
    before = cpu_seconds(pid_of(running.gateway))
    await running.load(4, seconds, rate=10, latency=LONG)
    return cpu_seconds(pid_of(running.gateway)) - before


# -- all of them


def measure(wanted: Sequence[str], scale: float) -> dict[str, Curve]:
    found: dict[str, Curve] = {}

    def some(count: float) -> int:
        return max(2, round(count * scale))

    curves: dict[str, Callable[[], dict[str, Curve]]] = {
        "plain": lambda: {"chat plain, CPU s": ask_chat("plain", some(500), 2)},
        "streamed": lambda: {"chat streamed, CPU s": ask_chat("streamed", some(40), 2)},
        "open": lambda: dict(zip(("stream-seconds, CPU s", "streams open, KB"), ask_open(some(125)), strict=True)),
        "jobs": lambda: {"jobs accepted, CPU s": asyncio.run(ask_jobs(some(500)))},
        "events": lambda: {"events watched, CPU s": asyncio.run(ask_events(some(4)))},
    }
    for name in wanted:
        print(name, file=sys.stderr, flush=True)
        found |= curves[name]()
    return found


def describe(name: str, curve: Curve) -> dict[str, Any]:
    work, _, unit = name.rpartition(", ")
    scale, shown = (1, "KB") if unit == "KB" else (1e6, "CPU µs")
    costs = {
        f"at x {growth}": cost / units * scale for growth, (units, cost) in zip(GROWTH, curve.items(), strict=True)
    }
    return {"": work, "units at x 1": round(next(iter(curve))), "each": shown, **costs, "exponent": exponent(curve)}


def relate(curve: Curve) -> list[tuple[float, float]]:
    """Load and cost as multiples of the least."""
    first, cost = next(iter(curve.items()))
    return [(units / first, total / cost) for units, total in curve.items()]


CURVES = ("plain", "streamed", "open", "jobs", "events")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=CURVES)
    parser.add_argument("--scale", type=float, default=1.0, help="of all amounts")
    options = parser.parse_args()
    found = measure(options.curves, options.scale)
    rows = [describe(name, curve) for name, curve in found.items()]
    tables.show("cost of one unit of work as load grows; exponent 1.0: in proportion", rows)
    tables.save("growth", {"curves": found, "rows": rows})
    tables.draw(
        "lines",
        "growth",
        {f"{name.rpartition(',')[0]} ^{exponent(curve):.2f}": relate(curve) for name, curve in found.items()},
        title="Total cost as load grows",
        subtitle="Times the cost at the least load; CPU of the gateway, or memory for open streams. Names end with the "
        "exponent of the fit: 1.0 is in proportion.",
        x_label="times the least load",
        y_label="times its cost",
        log_x=True,
        log_y=True,
    )


if __name__ == "__main__":
    main()
