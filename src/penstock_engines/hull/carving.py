"""Carves a closed surface that has the outlines of its views, with round cross-sections."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.hull.views import View, find
from penstock_engines.inflate.shape.mesh import Surface

TALLEST: Final = 128
"""Cells of the grid along the longest side."""
FEWEST: Final = 8
ROUNDNESS: Final = 2.4
"""2 makes the cross-sections ellipses, more makes them boxes."""
SOFT: Final = 1.3
"""Blur of the body, in cells, which joins its slices."""
UNSEEN_DEPTH: Final = 1.0
"""Depth by width of a subject that no picture shows from the side."""
SIDE_PART: Final = 0.55
"""A run shorter than this share of the longest in its row belongs to a side part, such as an arm."""
THIN_DEPTH: Final = 1.25
"""Depth of a side part by its width."""
OUTSIDE: Final = 1.3
SOFT_CELLS: Final = 3.0
EDGES: Final = (
    ((0, 0, 0), (0, 0, 1)), ((0, 0, 0), (0, 1, 0)), ((0, 0, 0), (1, 0, 0)), ((1, 1, 1), (1, 1, 0)),
    ((1, 1, 1), (1, 0, 1)), ((1, 1, 1), (0, 1, 1)), ((0, 0, 1), (0, 1, 1)), ((0, 0, 1), (1, 0, 1)),
    ((0, 1, 0), (0, 1, 1)), ((0, 1, 0), (1, 1, 0)), ((1, 0, 0), (1, 1, 0)), ((1, 0, 0), (1, 0, 1)),
)  # fmt: skip
"""Edges of a cell, by their ends: down, across, deep."""


@dataclass(frozen=True, slots=True)
class _Runs:
    """An outline row by row. A run is a part of a row without a gap."""

    off: NDArray[np.float64]
    """How far each cell is from the middle of its run: 0 there, 1 at its ends, more outside."""
    half: NDArray[np.float64]
    """Half the length of its run in cells; 0 outside."""

    def thin(self, other: "_Runs") -> NDArray[np.float64]:
        """Return how deep each cell may be, as a share of the other outline: an arm is not as deep as its body."""
        widest = np.maximum(self.half.max(axis=1, keepdims=True), 1e-9)
        deepest = np.maximum(other.half.max(axis=1, keepdims=True), 1e-9)
        share = np.clip(THIN_DEPTH * self.half / deepest, 0.1, 1)
        return np.where(self.half >= SIDE_PART * widest, 1.0, share)


def carve(views: Mapping[str, View]) -> Surface:
    """Return the body: one unit high, x right, y up, z to the front, with its middle on the axis."""
    front, right = views["front"], find(views, "right")
    depth = UNSEEN_DEPTH * front.ratio if right is None else right.ratio
    scale = TALLEST / max(1.0, front.ratio, depth)
    rows, columns, layers = (max(FEWEST, round(share * scale)) for share in (1.0, front.ratio, depth))
    if right is None:
        body = _inflate(front.outline(columns, rows), layers)
    else:
        across = _list_runs(front.outline(columns, rows))
        deep = _list_runs(right.outline(layers, rows))
        wide = across.off[:, :, None] / deep.thin(across)[:, None, :]
        near = deep.off[:, None, :] / across.thin(deep)[:, :, None]
        body = 1 - wide**ROUNDNESS - near**ROUNDNESS
    padded = np.pad(np.clip(body, -1, 1), 3, constant_values=-1).astype(np.float32)
    surface = _skin(_blur(padded))
    low = np.array([3 + rows - 0.5, 3 + columns / 2 - 0.5, 3 + layers / 2 - 0.5])
    down, right_of, forward = ((surface.points - low) / scale).T
    return Surface(np.stack([right_of, -down, forward], axis=1), surface.faces)


def _list_runs(outline: NDArray[np.bool_]) -> _Runs:
    padded = np.pad(outline, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(padded, axis=1)
    starts, ends = np.argwhere(change == 1), np.argwhere(change == -1)
    off, halves = np.full(outline.shape, OUTSIDE), np.zeros(outline.shape)
    for (row, start), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True):
        middle, half = (start + end) / 2, (end - start) / 2
        off[row, start:end] = np.abs(np.arange(start, end) + 0.5 - middle) / half
        halves[row, start:end] = half
    return _Runs(off, halves)


def _inflate(outline: NDArray[np.bool_], layers: int) -> NDArray[np.float64]:
    """Return a body that is as deep as it is wide at each place, for a subject that no picture shows from the side."""
    inside = cv2.distanceTransform(np.pad(outline, 1).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)[1:-1, 1:-1]
    reach = int(np.ceil(float(inside.max()))) | 1
    near = cv2.dilate(inside, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach)))
    radius = np.maximum(cv2.GaussianBlur(near, (0, 0), max(1.0, reach / 4)), inside)
    half = np.minimum(np.sqrt(inside * (2 * radius - inside)), layers / 2 - 0.5)
    away = np.abs(np.arange(layers) + 0.5 - layers / 2)
    body = (half[:, :, None] - away) / SOFT_CELLS
    return np.where(outline[:, :, None], body, -1.0).astype(np.float64)


def _blur(body: NDArray[np.float32]) -> NDArray[np.float32]:
    """Blur along all three axes."""
    rows, columns, layers = body.shape
    flat = cv2.GaussianBlur(body.reshape(rows, -1), (1, 0), sigmaX=0.1, sigmaY=SOFT)
    blurred = np.asarray(flat).reshape(rows, columns, layers)
    return np.stack([np.asarray(cv2.GaussianBlur(part, (0, 0), SOFT), np.float32) for part in blurred])


def _skin(body: NDArray[np.float32]) -> Surface:
    """Return the surface where the body is zero: a vertex in each cell that it crosses, four faces' corners an edge."""
    inside = body > 0
    shape = tuple(side - 1 for side in body.shape)
    total, count = np.zeros((*shape, 3)), np.zeros(shape)
    for start, end in EDGES:
        here, there = (body[_window(corner, shape)] for corner in (start, end))
        crossed = (here > 0) != (there > 0)
        share = np.where(crossed, here / np.where(crossed, here - there, 1), 0)[..., None]
        total += np.where(crossed[..., None], np.array(start) * (1 - share) + np.array(end) * share, 0)
        count += crossed
    cells = count > 0
    numbers = np.full(shape, -1, np.int64)
    numbers[cells] = np.arange(int(cells.sum()))
    points = np.argwhere(cells) + total[cells] / count[cells][:, None]
    faces = [_list_faces(inside, numbers, axis) for axis in range(3)]
    return Surface(points, np.concatenate(faces).astype(np.int32))


def _window(corner: tuple[int, int, int], shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(start, start + side) for start, side in zip(corner, shape, strict=True))


def _list_faces(inside: NDArray[np.bool_], numbers: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    """Return two triangles for each edge along an axis that the surface crosses, out of the four cells around it."""
    ahead = np.diff(inside.astype(np.int8), axis=axis)
    places = np.argwhere(ahead)
    first, second = (other for other in ((axis + 1) % 3, (axis + 2) % 3))
    step = np.eye(3, dtype=np.int64)
    ring = [places, places - step[first], places - step[first] - step[second], places - step[second]]
    corners = np.stack([numbers[tuple(cell.T)] for cell in ring], axis=1)
    leaves = ahead[tuple(places.T)] < 0
    corners = np.where(leaves[:, None], corners, corners[:, ::-1])
    return np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
