"""The usage journal: a file of each process, so that no usage is lost when the process is killed.

The operating system keeps the file when the process dies. The store follows within a second. Another process
that finds the file of a dead one writes its records to the store.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from penstock.billing.journal_files import JournalFile, JournalFiles
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

    def __init__(self, files: JournalFiles, process: str) -> None:
        self._files = files
        self._process = process
        self._lock = files.own(f"{process}.lock")
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
        self._file.close()  # if the rest fails, the old file is still there for whoever reads both
        self._file, self._bytes = file, 0
        for begun, seen in under_way:
            self.begin(begun)
            self.progress([(begun.id, seen)])
        for record in ended:
            self.end(record)
        for name in _names(self._files, self._process):
            if name != self._name(self._number):
                self._files.remove(name)

    def leave(self) -> None:
        """Close the journal and leave its file for recovery, as after the death of the process."""
        self._file.close()
        self._lock.release()

    def close(self) -> None:
        """Remove the journal: everything is in the store."""
        self._file.close()
        for name in _names(self._files, self._process):
            self._files.remove(name)
        self._files.remove(f"{self._process}.lock")
        self._lock.release()

    def _name(self, number: int) -> str:
        return f"{self._process}.{number:06d}.journal"

    def _open(self) -> JournalFile:
        return self._files.open(self._name(self._number))

    def _write(self, line: bytes) -> None:
        """Write a whole line or nothing. On a full disk, a part may be written and is cut off again."""
        try:
            written = self._file.write(line)
            if written < len(line):
                self._file.cut(written)
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


def find_remains(files: JournalFiles) -> Iterator[Remains]:
    """Yield the records of every dead process. Its files are removed when the next is asked for."""
    for lock_name in [name for name in files.names() if name.endswith(".lock")]:
        lock = files.take(lock_name)
        if lock is None:
            continue  # its process lives, or another has just recovered it
        try:
            process = lock_name.removesuffix(".lock")
            names = _names(files, process)
            yield _read(process, [files.read(name) for name in names])
            for name in names:
                files.remove(name)
            files.remove(lock_name)
        finally:
            lock.release()


def _names(files: JournalFiles, process: str) -> list[str]:
    """Return the names of the journals of a process, oldest first."""
    return [name for name in files.names() if name.startswith(f"{process}.") and name.endswith(".journal")]


def _read(process: str, journals: Sequence[bytes]) -> Remains:
    begun: dict[str, Begun] = {}
    seen: dict[str, int] = {}
    ended: dict[str, Completion] = {}
    for line in (line for journal in journals for line in journal.split(b"\n")):
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
