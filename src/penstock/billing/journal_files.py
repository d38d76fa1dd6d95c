"""The files of the usage journals: one folder of a machine, with a lock for each process that lives."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol


class JournalFile(Protocol):
    """A file that is open for appending. What is written survives the death of the process."""

    def write(self, data: bytes) -> int:
        """Append bytes. Return the number written, which a full disk makes smaller. May raise OSError."""
        ...

    def cut(self, count: int) -> None:
        """Remove the last bytes."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class JournalLock(Protocol):
    """A lock that its process holds until it ends."""

    def release(self) -> None:
        """Release the lock."""
        ...


class JournalFiles(Protocol):
    """A folder of journals, which all processes of a machine share."""

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def open(self, name: str) -> JournalFile:
        """Open a file for appending, and create it if it is missing."""
        ...

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def own(self, name: str) -> JournalLock:
        """Create a file and lock it."""
        ...

    def take(self, name: str) -> JournalLock | None:
        """Lock a file. Return None if another process has locked or removed it."""
        ...


class DiskFile:
    """A file on disk."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, data: bytes) -> int:
        """Append bytes. Return the number written."""
        return os.write(self._file, data)

    def cut(self, count: int) -> None:
        """Remove the last bytes."""
        os.ftruncate(self._file, os.fstat(self._file).st_size - count)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class DiskLock:
    """The lock of a file on disk. The system releases it when the process ends, even by a crash."""

    def __init__(self, file: int) -> None:
        self._file = file

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


class DiskJournals:
    """A folder of journals on disk."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of all files, sorted. A removed folder has none."""
        with suppress(FileNotFoundError):
            return sorted(path.name for path in self._folder.iterdir())
        return []

    def open(self, name: str) -> DiskFile:
        """Open a file for appending."""
        return DiskFile(self._folder / name)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        return (self._folder / name).read_bytes()

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self._folder / name).unlink(missing_ok=True)

    def own(self, name: str) -> DiskLock:
        """Create a file and lock it."""
        path = self._folder / name
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(path, file):
                return DiskLock(file)
            os.close(file)  # removed before the lock, by a process that took it for a dead one's

    def take(self, name: str) -> DiskLock | None:
        """Lock a file. Return None if another process has locked or removed it."""
        path = self._folder / name
        try:
            file = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        if _is_at(path, file):
            return DiskLock(file)
        os.close(file)
        return None


def _is_at(path: Path, file: int) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_ino == os.fstat(file).st_ino
    return False
