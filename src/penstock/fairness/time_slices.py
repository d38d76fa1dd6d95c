"""Share the event loop: process large reads in slices, round robin, within a time budget for each turn of the loop."""

import asyncio
import time
from collections import deque
from typing import Final, Protocol

SLICE_BYTES: Final = 8 << 10
"""Larger reads are processed in slices of this size. An ordinary read of a chat stream is far smaller."""
TURN_SECONDS: Final = 0.002
"""The part of one turn of the event loop that all large reads together may take."""


class Sliced(Protocol):
    """Work that can be interrupted after each slice."""

    def take_slice(self) -> bool:
        """Process one slice. Return whether another one can follow."""
        ...


class TimeSlices:
    """Large reads of all connections. One per event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Sliced] = deque()
        self._is_scheduled = False

    def add(self, work: Sliced) -> None:
        """Process this work from the next turn on. Do not add work that is already waiting."""
        self._waiting.append(work)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        # Not the loop's clock: uvloop's stands still during a turn.
        end = time.perf_counter() + TURN_SECONDS
        waiting = self._waiting
        try:
            while waiting:
                work = waiting.popleft()
                if work.take_slice():
                    waiting.append(work)
                if time.perf_counter() >= end:
                    break
        finally:  # a failure does not stop the other work
            self._is_scheduled = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)
