"""Counts work instead of time: a busy machine takes longer over a line of Python, but executes no more of them."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_lines(work: Callable[[], object]) -> int:
    """Return the number of lines of Python that a call executes, in all functions that it calls."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
