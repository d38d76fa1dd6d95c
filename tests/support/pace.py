"""How the tests are kept fast: in memory, in which order, and without searches for garbage that is none."""

import gc
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

import pytest
from memory import find_memory

TESTS: Final = Path(__file__).parents[1]
WAITING: Final = (
    "crash/",
    "faults/",
    "dispatch/",
    "store/test_machine.py",
    "deploy/test_fleet_traces.py",
    "api/jobs/test_embedded.py",
    "api/chat/test_local_trouble.py",
    "api/chat/test_local_chat.py",
)
"""What takes longest, mostly by waiting. One process begins with it, and none of it is left over at the end."""
BROWSING: Final = "console/"
"""What two other processes begin with: each that runs any of it starts a browser."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests' folders in memory, where there is room and nobody has asked for another place."""
    gc.disable()  # until all tests are found: that makes much, and no garbage
    is_first = not hasattr(config, "workerinput") and config.option.basetemp is None
    if is_first and (memory := find_memory()):
        config.option.basetemp = tempfile.mkdtemp(prefix="penstock-tests-", dir=memory)
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = _deal(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _deal(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """Order the tests so that each process, which begins with an equal part of them, begins with what takes long."""
    waiting = sorted((item for item in items if _rank(item) < len(WAITING)), key=_rank)
    browsing = [item for item in items if _name(item).startswith(BROWSING)]
    early = {id(item) for item in (*waiting, *browsing)}
    rest = iter([item for item in items if id(item) not in early])
    half = _end_of_file(browsing, len(browsing) // 2)
    lanes = [waiting, browsing[:half], browsing[half:]]
    dealt: list[pytest.Item] = []
    end = 0
    for place in range(processes):
        end += (len(items) - end) // (processes - place)  # as pytest-xdist divides them
        dealt += [item for lane in lanes[place::processes] for item in lane]
        dealt += islice(rest, max(0, end - len(dealt)))
    return [*dealt, *rest]


def _end_of_file(items: Sequence[pytest.Item], place: int) -> int:
    """Return the first place from this one on at which another file begins."""
    return next((at for at in range(place, len(items)) if items[at].path != items[at - 1].path), len(items))


def _name(item: pytest.Item) -> str:
    return _name_file(item.path)


@cache
def _name_file(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()


def _rank(item: pytest.Item) -> int:
    name = _name(item)
    return next((number for number, begin in enumerate(WAITING) if name.startswith(begin)), len(WAITING))


def pytest_collection_finish() -> None:
    gc.freeze()  # what was imported stays: looking through it for garbage again and again would cost much
    gc.enable()
