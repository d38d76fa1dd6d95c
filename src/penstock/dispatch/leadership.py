"""The lock of a data folder: of several servers that share the folder, its holder runs the jobs."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

LOCK_NAME = "penstock.lock"


class Appointment:
    """A fixed role, for a store of many machines, where any number of processes run jobs."""

    def __init__(self, *, is_held: bool) -> None:
        self.is_held = is_held

    def take(self) -> bool:
        """Return the fixed role."""
        return self.is_held

    def tell_holder(self) -> str:
        """Return the name that logs and status pages show."""
        return "the workers"

    def release(self) -> None:
        """Do nothing, as no lock is held."""


class Leadership:
    """The lock of a data folder. The system releases it when the process ends, even by a crash."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._file: int | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this server runs the jobs."""
        return self._file is not None

    def take(self) -> bool:
        """Take the lock if it is free. Return whether it is held here now."""
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            self._file = file
            with suppress(OSError):  # a full disk: the holder's name is only information
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
        return True

    def tell_holder(self) -> str:
        """Return the id of the process that holds the lock, or held it last."""
        with suppress(OSError):
            return self._path.read_text().strip() or "unknown"
        return "unknown"

    def release(self) -> None:
        """Release the lock for another server."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
