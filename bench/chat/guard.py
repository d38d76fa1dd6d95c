"""Whether the gateway's chat has become dearer: its cost of a request beside a bare proxy's, in the same run.

python -m bench.chat.guard [--record] [--rounds 12]

The bare proxy is uvicorn and aiohttp, and watches for callers who leave; the gateway has everything on, for a key with
a budget and limits. Both are asked in turn, in small portions, and of all portions the middle ratio counts: what else
runs on the machine slows both alike. Cost is instructions where `perf` can count them, else CPU time. It fails if a
ratio is beyond 1.3 times the one in guard.json; `--record` writes that anew, after a change that is worth its cost.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from bench.chat.chat import SETTLE, Bench, Load, ask, connected, make_door_requests, set_pause
from bench.chat.peers import PEERS, Door, free_port, serving
from bench.harness import tables
from bench.harness.processes import cpu_seconds

HERE = Path(__file__).parent
RECORD = HERE / "guard.json"
ALLOWED = 1.3
PORTIONS = {"plain": 300, "streamed": 48}
"""Requests at a time: less than a second."""
CONNECTIONS = 16
PATIENCE = 60
Ratios = dict[str, float]
Cost = Callable[[Door, Callable[[], Any]], float]


# -- the load


@contextlib.contextmanager
def beside_upstream(folder: Path, *names: str, connections: int) -> Iterator[dict[str, Door]]:
    """Proxies on one core, their upstream and this process on another; its pace is that for so many streams."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    try:
        with contextlib.ExitStack() as stack:
            port = free_port()
            command = [sys.executable, HERE / "upstream.py", str(port)]
            stack.enter_context(serving(command, port, cores[-1], folder / "upstream.log"))
            set_pause(Bench(port, 0, cores[0], folder, 0.0), connections)
            yield {name: stack.enter_context(PEERS[name].start(folder / name, port, cores[0])) for name in names}
    finally:
        os.sched_setaffinity(0, cores)


def ask_portion(door: Door, kind: str, requests: int, connections: int) -> None:
    """Some requests, and what a proxy writes after them."""

    async def run() -> None:
        async with connected(door.port, connections) as callers:
            await ask(callers, Load(make_door_requests(door, kind), requests, PATIENCE), PATIENCE)

    uvloop.run(run())
    time.sleep(SETTLE)


# -- their cost


def can_count() -> bool:
    """Whether `perf` knows this machine's instructions."""
    if not shutil.which("perf"):
        return False
    command = ["perf", "stat", "-x", ",", "-e", "instructions:u", "true"]
    said = subprocess.run(command, capture_output=True, check=False)
    return said.returncode == 0 and b"<not" not in said.stderr


def cpu_of(door: Door, work: Callable[[], Any]) -> float:
    """Seconds on a processor while the work was done."""
    before = cpu_seconds(door.pid or 0)
    work()
    return cpu_seconds(door.pid or 0) - before


def instructions_of(door: Door, work: Callable[[], Any]) -> float:
    """Instructions outside of the kernel while the work was done."""
    command = ["perf", "stat", "-x", ",", "-e", "instructions:u", "-p", str(door.pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as counting:
        time.sleep(0.1)  # it says nothing when it begins
        work()
        counting.send_signal(signal.SIGINT)
        _, said = counting.communicate()
    return float(said.decode().partition(",")[0])


COSTS: dict[str, Cost] = {"instructions": instructions_of, "cpu": cpu_of}


def measure(cost: Cost, rounds: int) -> tuple[Ratios, list[dict[str, Any]]]:
    """The gateway's cost by the bare proxy's, and what both were."""
    taken: dict[tuple[str, str], list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        beside_upstream(Path(folder), "penstock", "bare", connections=CONNECTIONS) as doors,
    ):
        for turn in range(rounds + 1):
            for kind, requests in PORTIONS.items():
                for name, door in doors.items():
                    found = cost(door, partial(ask_portion, door, kind, requests, CONNECTIONS))
                    if turn:  # the first warms up
                        taken.setdefault((kind, name), []).append(found / requests)
    ratios = {
        kind: statistics.median(
            ours / theirs for ours, theirs in zip(taken[kind, "penstock"], taken[kind, "bare"], strict=True)
        )
        for kind in PORTIONS
    }
    rows = [{"": kind, **{name: statistics.median(taken[kind, name]) for name in doors}} for kind in PORTIONS]
    return ratios, rows


# -- the verdict


def judge(unit: str, ratios: Ratios, recorded: Ratios) -> int:
    """1 if anything became dearer than is allowed."""
    dearer = {kind: ratio for kind, ratio in ratios.items() if ratio > ALLOWED * recorded[kind]}
    for kind, ratio in dearer.items():
        print(
            f"FAILED: a {kind} chat request costs {ratio:.2f} times the bare proxy's ({unit}), recorded are "
            f"{recorded[kind]:.2f}, and at most {ALLOWED * recorded[kind]:.2f} are allowed. Find what made it dearer; "
            "if it is worth that, `python -m bench.chat.guard --record`."
        )
    if not dearer:
        print("passed: chat costs no more than is allowed")
    return bool(dearer)


def tell(unit: str, rows: list[dict[str, Any]], ratios: Ratios, recorded: Ratios) -> None:
    scale, shown = (1e6, "CPU µs") if unit == "cpu" else (1.0, "instructions")
    told = [
        {"": kind, "penstock": row["penstock"] * scale, "bare": row["bare"] * scale, "ratio": ratios[kind]}
        | {"recorded": recorded.get(kind), "allowed": ALLOWED * recorded[kind] if kind in recorded else None}
        for kind, row in ((row[""], row) for row in rows)
    ]
    tables.show(f"{shown} of a chat request", told)
    tables.save("guard", {"unit": unit, "rows": told})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write what is measured to guard.json")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    known: dict[str, Ratios] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    unit = "instructions" if can_count() and (options.record or "instructions" in known) else "cpu"
    ratios, rows = measure(COSTS[unit], options.rounds)
    tell(unit, rows, ratios, known.get(unit, {}))
    if options.record:
        known[unit] = {kind: round(ratio, 3) for kind, ratio in ratios.items()}
        RECORD.write_text(json.dumps(known, indent=2) + "\n")
        print(f"recorded in bench/chat/{RECORD.name}")
    elif unit not in known:
        sys.exit("FAILED: nothing is recorded to compare with; `python -m bench.chat.guard --record` does that.")
    else:
        sys.exit(judge(unit, ratios, known[unit]))


if __name__ == "__main__":
    main()
