"""Which of several servers on one data folder runs the jobs: the one that holds the folder's lock."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

LOCK_NAME = "penstock.lock"


class Appointment:
    """With a store of many machines any number of processes runs jobs: whoever is told to."""

    def __init__(self, *, is_held: bool) -> None:
        self.is_held = is_held

    def take(self) -> bool:
        """As it was said."""
        return self.is_held

    def tell_holder(self) -> str:
        """For people."""
        return "the workers"

    def release(self) -> None:
        """Nothing is held."""


class Leadership:
    """The lock of a data folder; it ends with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._file: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether the jobs are run here."""
        return self._file is not None

    def take(self) -> bool:
        """Take the lock if nobody has it; whether it is held here now."""
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            self._file = file
            with suppress(OSError):  # a full disk: who holds it is only for people
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
        return True

    def tell_holder(self) -> str:
        """The process that holds the lock, or held it last."""
        with suppress(OSError):
            return self._path.read_text().strip() or "unknown"
        return "unknown"

    def release(self) -> None:
        """Let another server have it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
