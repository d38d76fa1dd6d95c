"""Where files of tests lie in memory: nothing waits for a disk, and a database takes a tenth of the CPU."""

import os
import shutil
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")  # noqa: S108  a folder of its own is made in it by whoever uses it
ROOM_BYTES: Final = 4 << 30


def find_memory() -> Path | None:
    """Return a folder in memory, or None where there is too little room or no such folder."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
        return MEMORY
    return None
