"""Show that the simulation notices planted faults: `python -m simulation.teeth [NAME…] --seeds 2000`.

Each fault is planted into a process of its own, which runs seeds until a rule is broken. A seed counts only if the
unchanged code passes it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulation.planted.mutations import Mutation, load, plant, source_folder

SEEDS: Final = 2000
CLEAN: Final = "-"
"""Names the unchanged code on the command line of a child."""


@dataclass(frozen=True)
class Catch:
    """The result of one planted fault: the rule that noticed it, or None if no seed did."""

    mutation: Mutation
    rule: str | None
    what: str
    seed: int
    seeds: int
    seconds: float

    def __str__(self) -> str:
        """Return a row of the table."""
        rule = self.rule or "SURVIVED"
        return f"| {self.mutation.concept}/{self.mutation.name} | {rule} | {self.seeds} | {self.seconds:.0f} |"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# -- a child: one planted fault, many seeds


def run_seeds(name: str, first: int, last: int, url: str | None) -> None:
    """Plant the fault, run the seeds, and print one line for each, up to the first broken rule."""
    _be_quiet()
    if name != CLEAN:
        plant([load()[name]])
    from simulation.scenario import Scenario  # noqa: PLC0415  only now, as it imports the changed modules

    options: dict[str, Any] = {} if url is None else {"database_url": url}
    for seed in range(first, last + 1):
        broken: dict[str, Any] = {"seed": seed}
        try:
            Scenario(seed, **options).run()
        except Exception as error:  # noqa: BLE001  a crash of the scenario is noticed as well
            broken["rule"] = getattr(error, "rule", type(error).__name__)
            broken["what"] = getattr(error, "what", str(error))[:300]
        _say(json.dumps(broken))
        if "rule" in broken:
            return


def _be_quiet() -> None:
    """Hide what dead processes leave behind: the parent wants one line for each seed."""
    import logging  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None


# -- the parent


def _run_child(name: str, first: int, last: int, url: str | None) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "simulation.teeth", "--child", name, "--first", str(first), "--last", str(last)]
    command += [] if url is None else ["--url", url]
    paths = [str(Path(__file__).parents[1]), str(source_folder().parent)]
    around = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(  # noqa: S603  our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=around
    ) as child:
        for line in child.stdout or ():
            with suppress(ValueError):
                yield json.loads(line)


@cache
def _is_clean(seed: int, url: str | None) -> bool:
    """Return whether the unchanged code passes a seed."""
    results = list(_run_child(CLEAN, seed, seed, url))
    is_clean = bool(results) and "rule" not in results[0]
    if not is_clean:
        _say(f"The unchanged code does not pass seed {seed}: {results}")
    return is_clean


def try_mutation(mutation: Mutation, seeds: int, url: str | None = None, first: int = 1) -> Catch:
    """Run seeds until one breaks a rule that the unchanged code keeps."""
    begun, last = time.monotonic(), first + seeds - 1
    seed = first
    while seed <= last:
        reported = seed - 1
        for result in _run_child(mutation.name, seed, last, url):
            reported = result["seed"]
            if "rule" in result and _is_clean(reported, url):
                passed = time.monotonic() - begun
                return Catch(mutation, result["rule"], result["what"], reported, reported - first + 1, passed)
        if reported < seed:  # it could not even begin a seed
            what = "the changed code does not start"
            return Catch(mutation, what if _is_clean(seed, url) else None, what, seed, 1, time.monotonic() - begun)
        seed = reported + 1
    return Catch(mutation, None, "", last, seeds, time.monotonic() - begun)


def try_all(mutations: Sequence[Mutation], seeds: int, processes: int, url: str | None = None) -> list[Catch]:
    """Try all planted faults, several at once, and print a row for each as it is done."""
    _say("| planted fault | noticed by the rule | seeds | seconds |\n|---|---|---|---|")
    caught: list[Catch] = []
    with ThreadPoolExecutor(processes) as pool:
        for catch in pool.map(lambda mutation: try_mutation(mutation, seeds, url), mutations):
            _say(str(catch))
            caught.append(catch)
    return caught


def main() -> int:
    """Try the named planted faults, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="names or concepts of planted faults")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds to try for each")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--url", help="the store, if it is not SQLite")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--last", type=int, default=SEEDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        run_seeds(given.child, given.first, given.last, given.url)
        return 0
    store = "sqlite" if given.url is None else "postgresql"
    chosen = [
        each
        for each in load().values()
        if each.store in (store, "any") and (not given.names or each.name in given.names or each.concept in given.names)
    ]
    survivors = [catch for catch in try_all(chosen, given.seeds, given.processes, given.url) if catch.rule is None]
    _say(f"{len(chosen) - len(survivors)} of {len(chosen)} planted faults were noticed.")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(main())
