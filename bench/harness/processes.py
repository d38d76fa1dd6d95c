"""What processes use, read from /proc."""

import os
import time
from contextlib import suppress
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    found = [root]
    for path in Path(f"/proc/{root}/task").glob("*/children"):
        for child in path.read_text().split():
            found += tree(int(child))
    return found


def cpu_seconds(root: int) -> float:
    """Time on a processor of a process, all threads that it ever had, and its descendants that still live."""
    return sum(map(own_cpu_seconds, tree(root)))


def own_cpu_seconds(pid: int) -> float:
    """Time on a processor of a process, without its descendants."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the number of a process's own clock
    except OSError:  # it has just ended
        return 0.0


def ended_cpu_seconds(root: int) -> float:
    """Time on a processor of all descendants that have ended."""
    found = 0.0
    for pid in tree(root):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found += (int(words[13]) + int(words[14])) / TICK
    return found


def memory_mb(root: int) -> float:
    """What a process and its descendants hold in memory."""
    return sum(map(own_memory_mb, tree(root)))


def own_memory_mb(pid: int) -> float:
    """What one process holds in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
