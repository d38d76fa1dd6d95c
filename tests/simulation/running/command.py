"""The command line of the simulation: its options, its report and its exit status. `simulation.run` starts it."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, islice
from time import monotonic
from typing import Any, Final

from simulation.running.databases import open_server
from simulation.running.report import Totals, failure
from simulation.running.shrinking import shrink
from simulation.running.worlds import POSTGRESQL, SQLITE, Outcome, Wish, Worlds

STORES: Final = {SQLITE: (SQLITE,), POSTGRESQL: (POSTGRESQL,), "both": (SQLITE, POSTGRESQL)}
LIVE_SECONDS: Final = 1.0
LOG_SECONDS: Final = 30.0
NOTHING: Final = "nothing"
"""The text form of an empty list of steps."""


def main(words: Sequence[str], description: str | None = None) -> int:
    """Run the worlds that the command line names. Return 1 if a rule was broken."""
    options = _parse(words, description)
    with ExitStack() as stack:
        worlds = _open_worlds(options, stack)
        totals = Totals()
        broken = list(islice(_run(worlds, options, totals), options.failures))
        for outcome in broken:
            print(_explain(worlds, outcome, options))
    print(totals.table())
    return 1 if broken else 0


def _parse(words: Sequence[str], description: str | None) -> Any:
    parser = argparse.ArgumentParser(prog="simulation.run", description=description)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seed", type=int, help="run one seed")
    which.add_argument("--seeds", type=_read_range, help="run seeds, such as 1-500")
    parser.add_argument("--minutes", type=float, help="run seeds for so long, from --first on")
    parser.add_argument("--first", type=int, default=1, help="the first seed with --minutes")
    parser.add_argument("--store", choices=sorted(STORES), default=SQLITE)
    parser.add_argument("--jobs", type=int, default=60, help="jobs in each world")
    parser.add_argument("--chat", type=int, default=32, help="chat requests in each world")
    parser.add_argument("--pipelines", type=int, default=0, help="pipelines of each account in each world")
    parser.add_argument("--seconds", type=float, default=40.0, help="virtual seconds with faults in each world")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="worlds that run at a time")
    parser.add_argument("--only", type=_read_names, help="the steps that may happen, separated by commas")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many broken rules")
    parser.add_argument("--shrink-seconds", type=float, default=300.0, help="real time for shrinking; 0: do not")
    parser.add_argument("--digests", action="store_true", help="print the digest of each world")
    return parser.parse_args(words)


def _read_range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _read_names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip() not in ("", NOTHING))


def _open_worlds(options: Any, stack: ExitStack) -> Worlds:
    """Return the slots for worlds. One server has a database for each."""
    if options.store == SQLITE:
        return Worlds([""] * options.processes)
    databases = stack.enter_context(open_server())
    return Worlds([databases.create() for _ in range(options.processes)], databases.tidy)


def _wishes(options: Any) -> Iterator[Wish]:
    seeds: Iterator[int]
    if options.seed is not None:
        seeds = iter([options.seed])
    elif options.seeds is not None:
        seeds = iter(options.seeds)
    else:
        seeds = count(options.first) if options.minutes else iter(range(1, 101))
    end = monotonic() + options.minutes * 60 if options.minutes else float("inf")
    for seed in seeds:
        for store in STORES[options.store]:
            if monotonic() > end:
                return
            yield Wish(seed, store, options.jobs, options.chat, options.seconds, options.only, options.pipelines)


def _run(worlds: Worlds, options: Any, totals: Totals) -> Iterator[Outcome]:
    """Run all worlds and yield those that broke a rule."""
    is_terminal = sys.stdout.isatty()
    reported_at = monotonic()
    for outcome in worlds.run(_wishes(options)):
        totals.add(outcome)
        if options.digests:
            print(f"{outcome.wish.seed} {outcome.wish.store} {outcome.digest}")
        if monotonic() - reported_at >= (LIVE_SECONDS if is_terminal else LOG_SECONDS):
            reported_at = monotonic()
            print(f"\r\033[K{totals.line()}" if is_terminal else totals.line(), end="" if is_terminal else "\n")
            sys.stdout.flush()
        if outcome.rule is not None:
            wish = outcome.wish
            print(f"\nA rule was broken by seed {wish.seed} on {wish.store}: {outcome.rule}", flush=True)
            yield outcome
    print(f"\r\033[K{totals.line()}" if is_terminal else totals.line())


def _explain(worlds: Worlds, first: Outcome, options: Any) -> str:
    """Return the report of a failure: run it again, then shorten it."""
    second = worlds.run_one(first.wish)
    is_repeatable = second.digest == first.digest and second.rule == first.rule
    shortest = first
    if is_repeatable and options.shrink_seconds > 0:
        print(f"Shrinking {len(first.names)} steps of seed {first.wish.seed} ...")
        shortest = _shorten(worlds, first, options)
    return failure(first, shortest, is_repeatable=is_repeatable)


def _shorten(worlds: Worlds, first: Outcome, options: Any) -> Outcome:
    deadline = monotonic() + options.shrink_seconds
    found: dict[frozenset[str], Outcome] = {}

    def has_time() -> bool:
        return monotonic() < deadline

    def first_failing(candidates: Sequence[Sequence[str]]) -> int | None:
        for start in range(0, len(candidates), options.processes):
            if not has_time():
                return None
            wishes = [replace(first.wish, only=frozenset(names)) for names in candidates[start:][: options.processes]]
            outcomes = {outcome.wish.only or frozenset(): outcome for outcome in worlds.run(iter(wishes))}
            for place, wish in enumerate(wishes, start):
                outcome = outcomes[wish.only or frozenset()]
                if outcome.rule == first.rule:
                    found[frozenset(candidates[place])] = outcome
                    return place
        return None

    left = shrink(first.names, first_failing, has_time)
    return found.get(frozenset(left), first)
