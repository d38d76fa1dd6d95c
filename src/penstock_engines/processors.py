"""The number of usable processors. A container often has fewer than the machine."""

import os
from pathlib import Path

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def count_processors() -> int:
    """Return the number of processors this process may use, limited by the container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = map(int, CPU_QUOTA.read_text().split())
    except (OSError, ValueError):  # no container, or one without a limit
        return count
    return max(1, min(count, quota // period))
