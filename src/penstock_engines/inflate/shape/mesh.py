"""Sews the two sheets together at the rim. Both share the rim vertices, so the result is watertight."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.shape.inflation import Sheets
from penstock_engines.inflate.shape.outline import Outline

TAUBIN_ROUNDS = 3
LONG_EDGE = 4.0  # cells


@dataclass(frozen=True, slots=True)
class Surface:
    """A closed surface in cells: x right, y up, z to the front. Faces are counter-clockwise from outside."""

    points: NDArray[np.float64]
    faces: NDArray[np.int32]


def sew_sheets(outline: Outline, sheets: Sheets) -> Surface:
    """Cut the grid along the silhouette, once for the front and once for the back."""
    inside = np.pad(outline.inside, 1, constant_values=-0.5)
    triangles, rim, ends = _cut_grid(inside)
    rows, columns = inside.shape
    nodes = np.flatnonzero(inside > 0)
    index = np.full(rows * columns + len(rim), -1, np.int32)
    index[nodes] = np.arange(len(nodes), dtype=np.int32)
    index[rows * columns :] = np.arange(len(rim), dtype=np.int32) + 2 * len(nodes)
    front = index[triangles]
    back = np.where(front >= 2 * len(nodes), front, front + len(nodes))[:, ::-1]
    points = np.concatenate([_lift(sheets, nodes, columns, sheets.front), _lift(sheets, nodes, columns, sheets.back)])
    middle = np.pad(sheets.middle, 1, mode="edge").ravel()[rim]
    flat = _place_rim(inside.ravel(), rim, ends, columns)
    flat[:, 2] = middle
    return Surface(np.concatenate([points, flat]), np.concatenate([front, back]).astype(np.int32))


def join(surfaces: Sequence[Surface]) -> Surface:
    """Return several closed surfaces as one."""
    firsts = np.cumsum([0, *(len(surface.points) for surface in surfaces[:-1])])
    faces = [surface.faces + first for surface, first in zip(surfaces, firsts, strict=True)]
    return Surface(np.concatenate([surface.points for surface in surfaces]), np.concatenate(faces).astype(np.int32))


def smooth(surface: Surface, rounds: int = TAUBIN_ROUNDS) -> Surface:
    """Smooth by Taubin's method: a step that shrinks, then one that swells, so the volume stays.

    Long edges, as in the sides of a box, pull less: they would fray its rim.
    """
    starts, ends = surface.faces.ravel(), np.roll(surface.faces, -1, axis=1).ravel()
    count = len(surface.points)
    points = surface.points
    lengths = np.linalg.norm(points[ends] - points[starts], axis=1)
    weight = np.minimum(1, LONG_EDGE / np.maximum(lengths, 1e-9)) ** 2
    degree = np.bincount(starts, weight, minlength=count)[:, None]
    for step in (0.5, -0.53) * rounds:
        pulled = np.stack(
            [np.bincount(starts, points[ends, axis] * weight, minlength=count) for axis in range(3)], axis=1
        )
        points = points + step * (pulled / degree - points)
    return Surface(points, surface.faces)


def _cut_grid(inside: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return triangles over nodes and rim vertices (numbered after the nodes), and each rim vertex's two nodes.

    Each cell is two triangles, so the silhouette runs through it in only one way.
    """
    rows, columns = inside.shape
    row, column = np.divmod(np.arange((rows - 1) * (columns - 1), dtype=np.int64), columns - 1)
    corner = row * columns + column
    square = np.stack([corner, corner + columns, corner + columns + 1, corner + 1], axis=1)
    odd = (row + column) % 2 == 1
    square[odd] = np.roll(square[odd], 1, axis=1)
    flags = inside.ravel() > 0
    square = square[flags[square].any(axis=1)]
    triangles = np.concatenate([square[:, [0, 1, 2]], square[:, [0, 2, 3]]])
    held = flags[triangles]
    count = held.sum(axis=1)
    one = _turn(triangles[count == 1], np.argmax(held[count == 1], axis=1))
    two = _turn(triangles[count == 2], np.argmin(held[count == 2], axis=1))
    crossings = np.concatenate([one[:, [0, 1]], one[:, [0, 2]], two[:, [1, 0]], two[:, [2, 0]]])
    keys, numbers = np.unique(crossings[:, 0] * inside.size + crossings[:, 1], return_inverse=True)
    numbers = numbers + inside.size
    first, second, third, fourth = np.split(numbers, np.cumsum([len(one), len(one), len(two)]))
    parts = [
        triangles[count == 3],
        np.stack([one[:, 0], first, second], axis=1),
        np.stack([third, two[:, 1], two[:, 2]], axis=1),
        np.stack([third, two[:, 2], fourth], axis=1),
    ]
    return np.concatenate(parts), keys // inside.size, keys % inside.size


def _turn(triangles: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rotate each triangle so that it begins at the given corner."""
    return np.take_along_axis(triangles, (first[:, None] + np.arange(3)) % 3, axis=1)


def _lift(sheets: Sheets, nodes: NDArray[np.int64], columns: int, heights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the positions in space of the padded grid's nodes."""
    place = (nodes // columns - 1, nodes % columns - 1)
    return np.stack([sheets.columns[place], -sheets.rows[place], heights[place]], axis=1).astype(np.float64)


def _place_rim(
    inside: NDArray[np.float32], rim: NDArray[np.int64], ends: NDArray[np.int64], columns: int
) -> NDArray[np.float64]:
    """Return the crossings of silhouette and grid lines, kept off the nodes so that every face has area."""
    share = np.clip(inside[rim] / (inside[rim] - inside[ends]), 0.1, 0.9).astype(np.float64)
    x = (rim % columns) * (1 - share) + (ends % columns) * share - 1
    y = (rim // columns) * (1 - share) + (ends // columns) * share - 1
    return np.stack([x, -y, np.zeros(len(rim))], axis=1)
