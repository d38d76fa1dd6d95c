"""Reads STL models, binary and text, for their counts."""

import math
import struct
from collections.abc import Iterator
from typing import IO, Final

from penstock.domain.files import MeshFacts
from penstock.inspection.meshes.obj import list_lines
from penstock.inspection.meshes.pose import measure_box
from penstock.inspection.meshes.surface import MAX_JOINED_FACES, Point, Seam

HEAD_BYTES: Final = 84
FACET: Final = struct.Struct("<12x9f2x")
PIECE_BYTES: Final = FACET.size * 20_000


def is_binary_stl(file: IO[bytes], size: int) -> bool:
    """Return whether the number of facets in the head fits the size of the file."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    return len(head) == HEAD_BYTES and size == HEAD_BYTES + FACET.size * int.from_bytes(head[80:], "little")


def read_stl(file: IO[bytes], *, binary: bool) -> tuple[int, int, MeshFacts]:
    """Return faces, corners and the other facts; raise a ValueError for the first problem."""
    file.seek(HEAD_BYTES if binary else 0)
    seam, corners = Seam(), list[Point]()
    low, high, faces = [math.inf] * 3, [-math.inf] * 3, 0
    for facet in _list_facets(file) if binary else _list_written_facets(file):
        if not math.isfinite(sum(facet)):
            raise ValueError("it has positions that are not finite numbers")
        faces += 1
        for axis in range(3):
            low[axis] = min(low[axis], *facet[axis::3])
            high[axis] = max(high[axis], *facet[axis::3])
        if faces <= MAX_JOINED_FACES:
            corners += ((facet[0], facet[1], facet[2]), (facet[3], facet[4], facet[5]), (facet[6], facet[7], facet[8]))
    if faces == 0:
        raise ValueError("it has no faces")
    facts = MeshFacts(
        format="stl",
        size=measure_box(((low[0], low[1], low[2]), (high[0], high[1], high[2]))),
        has_uv=False,
        is_watertight=_check_surface(seam, corners) if faces <= MAX_JOINED_FACES else None,
        quads=0,
        materials=0,
        textures=0,
    )
    return faces, 3 * faces, facts


def _check_surface(seam: Seam, corners: list[Point]) -> bool:
    welded = iter(seam.weld(corners))
    for face in zip(welded, welded, welded, strict=True):
        seam.add(face)
    return seam.is_watertight


def _list_facets(file: IO[bytes]) -> Iterator[tuple[float, ...]]:
    while piece := file.read(PIECE_BYTES):
        yield from FACET.iter_unpack(piece[: len(piece) // FACET.size * FACET.size])


def _list_written_facets(file: IO[bytes]) -> Iterator[tuple[float, ...]]:
    numbers: list[float] = []
    for place, line in enumerate(list_lines(file), start=1):
        words = line.split()
        if words[:1] == [b"vertex"]:
            numbers += _read_vertex(place, words)
        elif words[:1] == [b"endfacet"]:
            if len(numbers) != 9:
                raise ValueError(f"the facet that ends in line {place} has not three corners")
            yield tuple(numbers)
            numbers = []
    if numbers:
        raise ValueError("its last facet is cut off")


def _read_vertex(place: int, words: list[bytes]) -> tuple[float, float, float]:
    try:
        return float(words[1]), float(words[2]), float(words[3])
    except (ValueError, IndexError) as error:
        raise ValueError(f"line {place} is broken") from error
