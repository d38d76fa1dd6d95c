"""Half downloads, on the local disk: every process has a folder of its own, and clears those of dead ones."""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from penstock.domain.ids import new_id


class ScratchFolder:
    """One process's folder. Beside it lies a locked file, whose lock ends with the process, however that ends."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock, self.folder = _take(parent)
        self.folder.mkdir(mode=0o700)

    def clear(self) -> None:
        """Remove what dead processes left."""
        for path in self._parent.glob("*.lock"):
            with suppress(FileNotFoundError):
                lock = os.open(path, os.O_RDWR)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)
                except BlockingIOError:
                    pass  # its process lives
                finally:
                    os.close(lock)

    def close(self) -> None:
        """Remove the folder, when nobody is downloading."""
        _remove(self.folder.with_suffix(".lock"))
        os.close(self._lock)


def _take(parent: Path) -> tuple[int, Path]:
    """A locked file of a new name; one that another process cleared before it was locked is left to it."""
    while True:
        path = parent / f"{new_id('process')}.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return lock, path.with_suffix("")
        os.close(lock)


def _remove(lock: Path) -> None:
    """The folder first: as long as it is there, so is its lock."""
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    lock.unlink(missing_ok=True)
