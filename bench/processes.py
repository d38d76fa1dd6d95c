"""What processes use, read from /proc."""

from pathlib import Path


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    found = [root]
    for path in Path(f"/proc/{root}/task").glob("*/children"):
        for child in path.read_text().split():
            found += tree(int(child))
    return found


def cpu_seconds(root: int) -> float:
    """Time on a processor of a process, its threads and its descendants, to the nanosecond."""
    files = (path for pid in tree(root) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(path.read_text().split()[0]) for path in files) / 1e9


def memory_mb(root: int) -> float:
    """What a process and its descendants hold in memory."""
    lines = (line for pid in tree(root) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
