"""Show that the simulation notices planted faults: `python -m simulation.planted.teeth [NAME…] --seeds 2000`.

Each fault is planted into a process of its own, which runs seeds until a rule is broken. A seed counts only if the
unchanged code passes it.
"""

import argparse
import gc
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import Queue
from typing import Any, Final

from simulation.planted.mutations import Mutation, load, plant

SEEDS: Final = 2000
CHILD_SEEDS: Final = 10
"""Seeds that one child runs, as it keeps its dead worlds in memory."""
HUNG_SECONDS: Final = 120.0
"""CPU time after which a world hangs: the changed code never comes to an end, which is noticed as well."""
CLEAN: Final = "-"
"""The name of the unchanged code."""
JOBS_ONLY: Final = {"jobs": 30, "chat": 0, "seconds": 20.0}
WORLDS: Final = {
    "chat": {"jobs": 9, "chat": 32, "seconds": 20.0},
    "kept": {"jobs": 0, "chat": 48, "seconds": 20.0},
}
"""The options of the worlds in which faults of a concept show soonest: smaller than usual, as most show early."""
PRELOADED: Final = ["sqlalchemy.dialects.sqlite", "pydantic", "msgspec", "uvicorn", "fastapi", "aiohttp", "alembic"]
"""Libraries that are imported once for all children."""


@dataclass(frozen=True)
class Catch:
    """The result of one planted fault: the rule that noticed it, or None if no seed did."""

    mutation: Mutation
    rule: str | None
    what: str
    seeds: int
    """Seeds that were needed, or tried in vain."""
    seconds: float

    def __str__(self) -> str:
        """Return a row of the table."""
        rule = self.rule or "SURVIVED"
        return f"| {self.mutation.concept}/{self.mutation.name} | {rule} | {self.seeds} | {self.seconds:.0f} |"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# -- a child: one planted fault, some seeds


def run_seeds(name: str, seeds: range, options: Mapping[str, Any], pipe: Connection) -> None:
    """Plant the fault, run the seeds, and send one result for each, up to the first broken rule."""
    gc.disable()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    if name != CLEAN:
        plant([load()[name]])
    from simulation.running.worlds import Wish, end_hung, play  # noqa: PLC0415  it imports the changed modules

    sizes = {name: value for name, value in options.items() if name != "database_url"}
    url: str = options.get("database_url", "")
    signal.signal(signal.SIGPROF, end_hung)
    for seed in seeds:
        signal.setitimer(signal.ITIMER_PROF, HUNG_SECONDS)
        outcome = play(Wish(seed, "postgresql" if url else "sqlite", **sizes), url)
        signal.setitimer(signal.ITIMER_PROF, 0)
        broken = {} if outcome.rule is None else {"rule": outcome.rule, "what": outcome.what[:300]}
        pipe.send({"seed": seed} | broken)
        if broken:
            break
    os._exit(0)  # without the `finally` blocks of dead worlds


# -- the parent


def _run_child(name: str, seeds: range, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results of a child. The last one may break a rule."""
    os.environ["PYTHONHASHSEED"] = "0"  # read by the server that makes the children
    children = get_context("forkserver")
    children.set_forkserver_preload(PRELOADED)
    received, sent = children.Pipe(duplex=False)
    child = children.Process(target=run_seeds, args=(name, seeds, options, sent), daemon=True)
    child.start()
    sent.close()
    with received, suppress(EOFError):
        while True:
            yield received.recv()
    child.join()


@dataclass
class Bench:
    """Places at which planted faults are tried, each with a store, and the seeds that the unchanged code passes."""

    urls: Sequence[str]
    """The URLs of databases; empty for SQLite."""
    _clean: dict[tuple[Any, ...], bool] = field(default_factory=dict[tuple[Any, ...], bool])

    def __post_init__(self) -> None:
        self._free: Queue[str] = Queue()
        for url in self.urls:
            self._free.put(url)

    def try_all(self, mutations: Sequence[Mutation], seeds: int) -> list[Catch]:
        """Try planted faults, several at once, and print a row for each as it is done."""
        _say("| planted fault | noticed by the rule | seeds | seconds |\n|---|---|---|---|")
        caught: list[Catch] = []
        with ThreadPoolExecutor(len(self.urls)) as pool:
            for done in as_completed([pool.submit(self._try_one, mutation, seeds) for mutation in mutations]):
                _say(str(done.result()))
                caught.append(done.result())
        return caught

    def _try_one(self, mutation: Mutation, seeds: int) -> Catch:
        url = self._free.get()
        try:
            return self._try_at(url, mutation, seeds)
        finally:
            self._free.put(url)

    def _try_at(self, url: str, mutation: Mutation, seeds: int) -> Catch:
        """Run seeds until one breaks a rule that the unchanged code keeps."""
        begun, seed = time.monotonic(), 1
        world = WORLDS.get(mutation.concept, JOBS_ONLY)
        options = world | ({"database_url": url} if url else {})
        while seed <= seeds:
            last = seed - 1
            for result in _run_child(mutation.name, range(seed, min(seed + CHILD_SEEDS, seeds + 1)), options):
                last = result["seed"]
                if "rule" in result and self._is_clean(last, options):
                    return Catch(mutation, result["rule"], result["what"], last, time.monotonic() - begun)
            if last < seed:  # it could not even begin
                return Catch(mutation, "the changed code starts", "", seed, time.monotonic() - begun)
            seed = last + 1
        return Catch(mutation, None, "", seeds, time.monotonic() - begun)

    def _is_clean(self, seed: int, options: Mapping[str, Any]) -> bool:
        """Return whether the unchanged code passes a seed."""
        name = (seed, *(value for option, value in sorted(options.items()) if option != "database_url"))
        if name not in self._clean:
            results = list(_run_child(CLEAN, range(seed, seed + 1), options))
            self._clean[name] = bool(results) and "rule" not in results[0]
            if not self._clean[name]:
                _say(f"The unchanged code does not pass seed {seed}: {results}")
        return self._clean[name]


def main() -> int:
    """Try the named planted faults, or all of them. Return the number of those that nothing noticed."""
    parser = argparse.ArgumentParser(prog="simulation.planted.teeth", description=__doc__)
    parser.add_argument("names", nargs="*", help="names or concepts of planted faults")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds to try for each")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    given = parser.parse_args()
    chosen = [
        each
        for each in load().values()
        if each.store == given.store and (not given.names or each.name in given.names or each.concept in given.names)
    ]
    with ExitStack() as stack:
        urls = [""] * given.processes
        if given.store != "sqlite":
            from simulation.running.databases import open_server  # noqa: PLC0415  it imports a server

            databases = stack.enter_context(open_server())
            urls = [databases.create() for _ in urls]
        survivors = [catch for catch in Bench(urls).try_all(chosen, given.seeds) if catch.rule is None]
    _say(f"{len(chosen) - len(survivors)} of {len(chosen)} planted faults were noticed.")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main())
