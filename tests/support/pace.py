"""How the tests are kept fast: in memory, in which order, and without searches for garbage that is none."""

import gc
import shutil
import tempfile
from pathlib import Path
from typing import Final

import pytest
from memory import find_memory

TESTS: Final = Path(__file__).parents[1]
FIRST: Final = (
    "crash/",
    "faults/",
    "dispatch/",
    "store/test_machine.py",
    "deploy/test_fleet_traces.py",
    "api/jobs/test_embedded.py",
    "api/chat/test_local_trouble.py",
    "api/chat/test_local_chat.py",
)
"""What takes longest, mostly by waiting. Begun first, and one after the other, none is left over at the end."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests' folders in memory, where there is room and nobody has asked for another place."""
    gc.disable()  # until all tests are found: that makes much, and no garbage
    is_first = not hasattr(config, "workerinput") and config.option.basetemp is None
    if is_first and (memory := find_memory()):
        config.option.basetemp = tempfile.mkdtemp(prefix="penstock-tests-", dir=memory)
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    name = item.path.relative_to(TESTS).as_posix()
    return next((number for number, begin in enumerate(FIRST) if name.startswith(begin)), len(FIRST))


def pytest_collection_finish() -> None:
    gc.freeze()  # what was imported stays: looking through it for garbage again and again would cost much
    gc.enable()
