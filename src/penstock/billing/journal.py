"""The usage journal: a file of each process, so that no usage is lost when the process is killed.

The operating system keeps the file when the process dies. The store follows within a second. Another process
that finds the file of a dead one writes its records to the store.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from penstock.domain.usage import Begun, Completion
from penstock.errors import StoreUnavailable

MAX_BYTES: Final = 4 << 20
"""A larger file is replaced once everything in it is in the store."""
UNWRITABLE: Final = "The journal cannot be written."
BEGUN, PROGRESS, ENDED = b"B", b"P", b"E"
_encode = msgspec.json.Encoder().encode
_decode_begun = msgspec.json.Decoder(Begun).decode
_decode_progress = msgspec.json.Decoder(list[tuple[str, int]]).decode
_decode_ended = msgspec.json.Decoder(Completion).decode


class Journal:
    """The journal file of this process, and the lock that shows others that it lives."""

    def __init__(self, folder: Path, process: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._process = process
        self._lock = _own(folder / f"{process}.lock")
        self._number = 0
        self._file, self._bytes = self._open(), 0

    def begin(self, begun: Begun) -> None:
        """Record that a vendor starts to work: from here on the request is charged."""
        self._write(BEGUN + _encode(begun) + b"\n")

    def progress(self, seen: Sequence[tuple[str, int]]) -> None:
        """Record the number of characters received for answers in progress."""
        self._write(PROGRESS + _encode(seen) + b"\n")

    def end(self, record: Completion) -> None:
        """Record the usage of a finished request."""
        self._write(ENDED + _encode(record) + b"\n")

    def compact(self, under_way: Iterable[tuple[Begun, int]], ended: Iterable[Completion]) -> None:
        """Replace a large file by one with only the records that are not in the store yet."""
        if self._bytes <= MAX_BYTES:
            return
        self._number += 1
        try:
            file = self._open()
        except OSError as error:
            self._number -= 1
            raise StoreUnavailable(UNWRITABLE, retry_after=1) from error
        os.close(self._file)  # if the rest fails, the old file is still there for whoever reads both
        self._file, self._bytes = file, 0
        for begun, seen in under_way:
            self.begin(begun)
            self.progress([(begun.id, seen)])
        for record in ended:
            self.end(record)
        for path in self._paths():
            if path != self._path(self._number):
                path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Close the journal and leave its file for recovery, as after the death of the process."""
        os.close(self._file)
        os.close(self._lock)

    def close(self) -> None:
        """Remove the journal: everything is in the store."""
        os.close(self._file)
        for path in self._paths():
            path.unlink(missing_ok=True)
        (self._folder / f"{self._process}.lock").unlink(missing_ok=True)
        os.close(self._lock)

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._process}.{number:06d}.journal"

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._process}.*.journal"))

    def _open(self) -> int:
        return os.open(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _write(self, line: bytes) -> None:
        """Write a whole line or nothing. On a full disk, a part may be written and is cut off again."""
        try:
            written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        except OSError as error:
            raise StoreUnavailable(UNWRITABLE, retry_after=1) from error
        if written < len(line):
            raise StoreUnavailable(UNWRITABLE, retry_after=1)
        self._bytes += written


@dataclass(slots=True)
class Remains:
    """Records that a dead process left in its journal."""

    process: str
    ended: list[Completion] = field(default_factory=list[Completion])
    under_way: list[tuple[Begun, int]] = field(default_factory=list[tuple[Begun, int]])
    """Requests in progress, each with the number of characters received."""


def find_remains(folder: Path) -> Iterator[Remains]:
    """Yield the records of every dead process. Its files are removed when the next is asked for."""
    for path in sorted(folder.glob("*.lock")):
        lock = _take(path)
        if lock is None:
            continue  # its process lives, or another has just recovered it
        try:
            process = path.name.removesuffix(".lock")
            files = sorted(folder.glob(f"{process}.*.journal"))
            yield _read(process, files)
            for file in files:
                file.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        finally:
            os.close(lock)


def _read(process: str, files: Sequence[Path]) -> Remains:
    begun: dict[str, Begun] = {}
    seen: dict[str, int] = {}
    ended: dict[str, Completion] = {}
    for line in (line for file in files for line in file.read_bytes().split(b"\n")):
        with suppress(msgspec.DecodeError):  # the last line may be cut
            match line[:1]:
                case b"B":
                    each = _decode_begun(line[1:])
                    begun[each.id] = each
                case b"P":
                    seen.update(_decode_progress(line[1:]))
                case b"E":
                    record = _decode_ended(line[1:])
                    ended[record.id] = record
                case _:
                    pass
    under_way = [(each, seen.get(name, 0)) for name, each in begun.items() if name not in ended]
    return Remains(process, list(ended.values()), under_way)


def _own(path: Path) -> int:
    """Create a file and lock it."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(path, file):
            return file
        os.close(file)  # removed before the lock, by a process that took it for a dead one's


def _take(path: Path) -> int | None:
    """Lock a file and return it. Return None if another process has locked or removed it."""
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
        return file
    os.close(file)
    return None


def _is_at(path: Path, file: int) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_ino == os.fstat(file).st_ino
    return False
