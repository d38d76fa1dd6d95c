"""Clocks: the time of day and a steady clock, injected by the composition root."""

import time
from collections.abc import Callable
from typing import Final, NamedTuple


class Clocks(NamedTuple):
    """The two clocks of a process.

    `now` is the time of day, which all processes share and which may jump. `steady` never jumps: it measures all waits
    and ages.
    """

    now: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


CLOCKS: Final = Clocks()
"""The clocks of this machine."""
