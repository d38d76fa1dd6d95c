"""Measure what the content log costs a chat request: CPU of the whole gateway, with its writer, and of its loop alone.

python -m bench.chat.content_log [--rounds 8]

One gateway, two keys: the content of one is logged. Both are asked in turn, in small portions. After each portion the
writer gets time to finish, which counts for both alike. The median of all rounds counts.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop

from bench.chat.chat import Load, ask, connected, say
from bench.chat.doors import (
    CONNECTIONS,
    KINDS,
    PATIENCE,
    PAUSES,
    PENSTOCK_MODEL,
    PENSTOCK_VENDORS,
    make_request,
    set_pause,
)
from bench.chat.peers import PENSTOCK_PROGRAM, Door, free_port, penstock_door, run, serving
from bench.harness.processes import cpu_seconds

CONFIG: Final = '[content_log]\nretention = "7d"\n' + PENSTOCK_MODEL.format(
    vendor="openai", options=PENSTOCK_VENDORS["openai"]
)
WRITE_SECONDS: Final = 4.0
"""Time in which the writer finishes a portion."""


def loop_seconds(pid: int) -> float:
    """Return the CPU seconds of the first thread, which runs the event loop."""
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(door: Door, kind: str) -> tuple[float, float]:
    """Return the CPU seconds for each request: of all threads, and of the loop."""
    requests, pid = KINDS[kind], door.pid or 0
    variants = [make_request(door, "chat", kind, words) for words in range(7)]

    async def work() -> None:
        async with connected(door.port, CONNECTIONS) as callers:
            await ask(callers, Load(variants, requests, PATIENCE), PATIENCE)

    total, loop = cpu_seconds(pid), loop_seconds(pid)
    uvloop.run(work())
    time.sleep(WRITE_SECONDS)
    return (cpu_seconds(pid) - total) / requests, (loop_seconds(pid) - loop) / requests


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    cores, upstream = sorted(os.sched_getaffinity(0)), free_port()
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "bench.chat.dialects", str(upstream)]
        started = penstock_door(folder, upstream, cores[0], program=PENSTOCK_PROGRAM, limits=(), config=CONFIG)
        with serving(command, upstream, cores[-1], folder / "upstream.log"), started as door:
            places = ["--data", str(folder / "data"), "--config", str(folder / "penstock.toml")]
            logged = json.loads(run([PENSTOCK_PROGRAM, "key", "create", "--json", "--content-log", "on", *places]))
            quiet = replace(door, model="openai")
            doors = {"without": quiet, "with": replace(quiet, key=logged["key"])}
            for turn in range(options.rounds + 1):
                say("warming up" if not turn else f"round {turn} of {options.rounds}")
                for kind in KINDS:
                    set_pause(upstream, PAUSES[kind])
                    for label, each in doors.items():
                        costs = measure(each, kind)
                        if turn:
                            taken.setdefault((kind, label), []).append(costs)
    print("| request | log | CPU, µs | of that the loop, µs |\n|---|---|---|---|")
    for (kind, label), costs in taken.items():
        total, loop = (statistics.median(column) * 1e6 for column in zip(*costs, strict=True))
        print(f"| {kind} | {label} | {total:.0f} | {loop:.0f} |")


if __name__ == "__main__":
    main()
