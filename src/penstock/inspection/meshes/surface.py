"""Check whether faces close a surface. Vertices in one place count as one, as texture seams part them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

MAX_JOINED_FACES: Final = 500_000
"""Of a model whose surface is checked; more would take too long."""

Point = tuple[float, float, float]


class Seam:
    """Counts how many faces meet at each edge of a surface."""

    def __init__(self) -> None:
        self._points: dict[Point, int] = {}
        self._open: set[int] = set()
        self._closed: set[int] = set()
        self._is_crowded = False

    def weld(self, points: Iterable[Point]) -> list[int]:
        """Return a number for each point: points in one place have one number."""
        known = self._points
        return [known.setdefault(point, len(known)) for point in points]

    def add(self, corners: Sequence[int]) -> None:
        """Add a face by the numbers of its corners. Corners in one place count once."""
        ring = [corner for place, corner in enumerate(corners) if corner != corners[place - 1]]
        if len(ring) < 3:
            return
        for place, corner in enumerate(ring):
            before = ring[place - 1]
            edge = before << 40 | corner if before < corner else corner << 40 | before
            if edge in self._open:
                self._open.remove(edge)
                self._closed.add(edge)
            elif edge in self._closed:
                self._is_crowded = True
            else:
                self._open.add(edge)

    @property
    def is_watertight(self) -> bool:
        """Return whether there are faces, and exactly two at each edge."""
        return bool(self._closed) and not self._open and not self._is_crowded


def cut_strip(corners: Sequence[int], *, fan: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the triangles of a strip or a fan."""
    for place in range(len(corners) - 2):
        yield (corners[0] if fan else corners[place]), corners[place + 1], corners[place + 2]
