"""Partial downloads on the local disk. Every process has its own folder, and clears those of dead processes."""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from penstock.domain.ids import new_id


class ScratchFolder:
    """One process's folder. The lock on a file beside it ends with the process, even if that crashes."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock, self.folder = _take(parent)
        self.folder.mkdir(mode=0o700)

    def clear(self) -> None:
        """Remove the folders of dead processes."""
        for path in self._parent.glob("*.lock"):
            with suppress(FileNotFoundError):
                lock = os.open(path, os.O_RDWR)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)
                except BlockingIOError:
                    pass  # its process is alive
                finally:
                    os.close(lock)

    def close(self) -> None:
        """Remove the folder; no download may be in progress."""
        _remove(self.folder.with_suffix(".lock"))
        os.close(self._lock)


def _take(parent: Path) -> tuple[int, Path]:
    """Create and lock a file with a new name; retry if another process cleared it before it was locked."""
    while True:
        path = parent / f"{new_id('process')}.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return lock, path.with_suffix("")
        os.close(lock)


def _remove(lock: Path) -> None:
    """Remove the folder, then its lock, so that no folder is left without one."""
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    lock.unlink(missing_ok=True)
