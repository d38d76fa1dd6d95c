"""The bytes and numbers of a model, read from an open file in windows: a model may be larger than the memory."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final, Literal, cast

WINDOW_BYTES: Final = 1 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True, slots=True)
class FileRegion:
    """A part of an open file."""

    file: IO[bytes]
    start: int
    size: int

    def cut(self, start: int, end: int) -> "FileRegion":
        """Return a part of this part."""
        return FileRegion(self.file, self.start + start, end - start)

    def read(self, start: int, end: int) -> bytes:
        """Return some of the bytes. Raise a ValueError if the file has become shorter."""
        self.file.seek(self.start + start)
        data = self.file.read(end - start)
        if len(data) != end - start:
            raise ValueError("it is cut off")
        return data


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table of numbers: rows of `columns` numbers of `size` bytes, each row `stride` bytes behind the last."""

    region: FileRegion
    format: str
    size: int
    stride: int
    columns: int
    rows: int

    def read(self, first: int, end: int) -> list[memoryview]:
        """Return the numbers of some rows, by column."""
        data = self.region.read(self.stride * first, self.stride * (end - 1) + self.size * self.columns)
        numbers = memoryview(data).cast(cast('Literal["B"]', self.format))  # the stubs want one literal
        return [numbers[column :: self.stride // self.size] for column in range(self.columns)]

    def windows(self) -> Iterator[list[memoryview]]:
        """Yield all rows, by column, some at a time."""
        step = max(1, WINDOW_BYTES // self.stride)
        for first in range(0, self.rows, step):
            yield self.read(first, min(self.rows, first + step))

    def find_range(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return the lowest and the highest number of each column; None if one is not finite."""
        low, high = [math.inf] * self.columns, [-math.inf] * self.columns
        for window in self.windows():
            if not all(math.isfinite(sum(column)) for column in window):
                return None
            low = list(map(min, low, map(min, window)))
            high = list(map(max, high, map(max, window)))
        return low, high
