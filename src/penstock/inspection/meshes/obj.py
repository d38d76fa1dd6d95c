"""Reads OBJ models line by line, for their counts."""

import math
from collections.abc import Iterator
from typing import IO, Final

from penstock.domain.files import MeshFacts
from penstock.inspection.meshes.pose import join_boxes, measure_box
from penstock.inspection.meshes.surface import MAX_JOINED_FACES, Point, Seam

MAX_TEXT_BYTES: Final = 128 * 1024 * 1024
MAX_LINE_BYTES: Final = 65_536
TOO_LARGE: Final = f"it has more than {MAX_TEXT_BYTES} bytes of text"


class ObjReader:
    """Counts the parts of an OBJ, and keeps its faces for the check of its surface while they are few."""

    def __init__(self) -> None:
        self.faces = self.vertices = self._polygons = self._textured = 0
        self._quads = self._places = 0
        self._materials: set[bytes] = set()
        self._low, self._high = [math.inf] * 3, [-math.inf] * 3
        self._points: list[Point] = []
        self._rings: list[list[int]] = []

    def read(self, file: IO[bytes]) -> tuple[int, int, MeshFacts]:
        """Return faces (as triangles), vertices and the other facts; raise a ValueError for the first broken line."""
        for number, line in enumerate(list_lines(file), start=1):
            try:
                self._read_line(line.split())
            except (ValueError, IndexError, OverflowError) as error:
                raise ValueError(f"line {number} is broken") from error
        if self.faces == 0:
            raise ValueError("it has no faces")
        box = join_boxes([((self._low[0], self._low[1], self._low[2]), (self._high[0], self._high[1], self._high[2]))])
        facts = MeshFacts(
            format="obj",
            size=None if box is None else measure_box(box),
            has_uv=self._textured == self._polygons,
            is_watertight=self._check_surface(),
            quads=self._quads,
            materials=len(self._materials),
        )
        return self.faces, self.vertices, facts

    def _read_line(self, words: list[bytes]) -> None:
        match words[:1]:
            case [b"v"]:
                point = (float(words[1]), float(words[2]), float(words[3]))
                if not math.isfinite(sum(point)):
                    raise ValueError(point)
                self.vertices += 1
                self._low = list(map(min, self._low, point))
                self._high = list(map(max, self._high, point))
                if self.vertices <= MAX_JOINED_FACES:
                    self._points.append(point)
            case [b"vt"]:
                self._places += 1
            case [b"f"]:
                self._add_face(words[1:])
            case [b"usemtl"]:
                self._materials.add(b" ".join(words[1:]))
            case _:
                pass

    def _add_face(self, corners: list[bytes]) -> None:
        ring: list[int] = []
        for corner in corners:
            number = int(corner.partition(b"/")[0])
            number = number - 1 if number > 0 else self.vertices + number
            if not 0 <= number < self.vertices:
                raise ValueError(corner)
            ring.append(number)
        if len(ring) < 3:
            raise ValueError(ring)
        self.faces += len(ring) - 2
        self._polygons += 1
        self._quads += len(ring) == 4
        self._textured += all(len(corner.split(b"/")) > 1 and corner.split(b"/")[1] for corner in corners)
        if self.faces <= MAX_JOINED_FACES:
            self._rings.append(ring)

    def _check_surface(self) -> bool | None:
        if max(self.faces, self.vertices) > MAX_JOINED_FACES:
            return None
        seam = Seam()
        welded = seam.weld(self._points)
        for ring in self._rings:
            seam.add([welded[corner] for corner in ring])
        return seam.is_watertight


def list_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text; raise a ValueError if it is no text, or too long."""
    total = 0
    while line := file.readline(MAX_LINE_BYTES):
        total += len(line)
        if total > MAX_TEXT_BYTES:
            raise ValueError(TOO_LARGE)
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise ValueError(f"it has a line of more than {MAX_LINE_BYTES} bytes")
        if b"\0" in line:
            raise ValueError("it is not a text")
        yield line
