"""Whole worlds, each run in processes of its own: fixed seeds, equal digests, and the report of a planted failure."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[2]
TINY: Final = ("--jobs", "3", "--chat", "1", "--seconds", "3", "--processes", "2")
SMALL: Final = ("--jobs", "5", "--chat", "2", "--seconds", "5", "--processes", "2", "--digests")
PLANTED: Final = """
import sys
from simulation.world import World

note = World.note

def note_and_break(world, what, name=""):
    note(world, what, name)
    if sum(" submit" in step.what for step in world.trace) >= 3:
        world.violate("planted", "three submissions")

World.note = note_and_break
from simulation.running.command import main
sys.exit(main(sys.argv[1:]))
"""
"""A rule that any three submissions break."""

pytestmark = pytest.mark.timeout(900)  # a bound for a hung world, on a machine that is busy with others


def _run(*words: str, code: tuple[str, ...] = ("-m", "simulation.run")) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS / 'support'}", "PYTHONHASHSEED": "0"}
    if code[0] == "-m":
        environment["PYTHONHASHSEED"] = "random"  # the runner fixes it
    command = (sys.executable, *code, *words)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


def _digests(output: str) -> dict[tuple[str, str], str]:
    found = re.findall(r"^(\d+) (sqlite|postgresql) ([0-9a-f]{64})$", output, re.MULTILINE)
    return {(seed, store): digest for seed, store, digest in found}


def test_fixed_seeds_break_no_rule_and_repeat_in_another_process():
    first = _run("--seed", "2", "--store", "both", *SMALL)
    assert first.returncode == 0, first.stdout + first.stderr
    digests = _digests(first.stdout)
    assert len(set(digests.values())) == 2
    again = _run("--seeds", "1-2", "--store", "sqlite", *SMALL)
    assert again.returncode == 0, again.stdout + again.stderr
    repeated = _digests(again.stdout)
    assert repeated["2", "sqlite"] == digests["2", "sqlite"]
    assert repeated["1", "sqlite"] not in digests.values()


@pytest.mark.long
def test_thirty_whole_worlds_break_no_rule_on_either_store_and_repeat():
    done = _run("--seeds", "101-130", "--store", "both", "--processes", "2", "--digests")
    assert done.returncode == 0, done.stdout + done.stderr
    again = _run("--seeds", "101-103", "--store", "both", "--processes", "2", "--digests")
    assert _digests(again.stdout).items() <= _digests(done.stdout).items()
    assert len(_digests(again.stdout)) == 6


def test_a_broken_rule_is_shrunk_to_steps_that_replay_it():
    found = _run("--seed", "7", "--shrink-seconds", "800", *TINY, code=("-c", PLANTED))
    assert found.returncode == 1, found.stdout + found.stderr
    assert "BROKEN RULE: planted" in found.stdout
    assert "Shortest trace found: 3 of " in found.stdout
    replay = re.search(
        r"^Replay: make simulate SEED=(\d+) JOBS=3 CHAT=1 SECONDS=3 ONLY='(.*)'$", found.stdout, re.MULTILINE
    )
    assert replay, found.stdout
    assert len(replay[2].split(",")) == 3
    again = _run("--seed", replay[1], "--only", replay[2], "--shrink-seconds", "0", *TINY, code=("-c", PLANTED))
    assert again.returncode == 1
    assert f"seed {replay[1]} on sqlite, 3 steps" in again.stdout
