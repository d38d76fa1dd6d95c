"""Rasterises triangles with a depth test, all rows of all triangles at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

CHUNK = 400_000  # pixels at a time, to bound memory


@dataclass(frozen=True, slots=True)
class Fragments:
    """The covered pixels, with their triangle and nearness (larger is nearer)."""

    pixels: NDArray[np.int64]
    triangles: NDArray[np.int64]
    nearness: NDArray[np.float32]

    def split(self, size: int) -> Iterator["Fragments"]:
        """Yield the fragments in pieces of at most so many pixels."""
        for start in range(0, len(self.pixels), size):
            part = slice(start, start + size)
            yield Fragments(self.pixels[part], self.triangles[part], self.nearness[part])


def fit_planes(corners: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a, b, c of `a x + b y + c` for each triangle (n x 3 x 2 on the screen) and value (n x 3 x k)."""
    first = corners[:, 1] - corners[:, 0]
    second = corners[:, 2] - corners[:, 0]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    rise, climb = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    across = (rise * second[:, 1:] - climb * first[:, 1:]) / area[:, None]
    down = (climb * first[:, :1] - rise * second[:, :1]) / area[:, None]
    start = values[:, 0] - across * corners[:, 0, :1] - down * corners[:, 0, 1:]
    return np.stack([across, down, start], axis=1)


def rasterise(corners: NDArray[np.float64], nearness: NDArray[np.float64], width: int, height: int) -> Fragments:
    """Return the visible pixels. Corners are n x 3 x 2, y down, counter-clockwise to the eye. Nearness is n x 3."""
    planes = fit_planes(corners, nearness[..., None])[..., 0]
    triangle, row = _list_rows(corners, height)
    first, count = _list_spans(corners, triangle, row, width)
    held = count > 0
    triangle, row, first, count = triangle[held], row[held], first[held], count[held]
    nearest = np.full(width * height, -np.inf, np.float32)
    owner = np.full(width * height, -1, np.int64)
    base = planes[triangle, 1] * (row + 0.5) + planes[triangle, 2]
    edges = np.searchsorted(np.cumsum(count), np.arange(0, int(count.sum()) + CHUNK, CHUNK))
    for start, stop in pairwise(edges.tolist()):
        part = slice(start, stop + 1)
        lengths = count[part]
        spans = np.repeat(np.arange(len(lengths)), lengths)
        steps = np.arange(len(spans)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = first[part][spans] + steps
        near = (planes[triangle[part], 0][spans] * (columns + 0.5) + base[part][spans]).astype(np.float32)
        pixels = row[part][spans] * width + columns
        np.maximum.at(nearest, pixels, near)
        won = near >= nearest[pixels]
        owner[pixels[won]] = triangle[part][spans[won]]
    covered = np.flatnonzero(owner >= 0)
    return Fragments(covered, owner[covered], nearest[covered])


def _list_rows(corners: NDArray[np.float64], height: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return triangle and row for every pixel row whose middle lies within a triangle's height."""
    low = np.clip(np.ceil(corners[..., 1].min(axis=1) - 0.5), 0, height).astype(np.int64)
    high = np.clip(np.floor(corners[..., 1].max(axis=1) - 0.5), -1, height - 1).astype(np.int64)
    count = np.maximum(high - low + 1, 0)
    triangle = np.repeat(np.arange(len(corners)), count)
    return triangle, low[triangle] + np.arange(len(triangle)) - np.repeat(np.cumsum(count) - count, count)


def _list_spans(
    corners: NDArray[np.float64], triangle: NDArray[np.int64], row: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first pixel inside and the number of pixels, for each row. Each edge bounds it on one side."""
    following = np.roll(corners, -1, axis=1)
    level = row + 0.5
    left, right = np.full(len(row), -np.inf), np.full(len(row), np.inf)
    for edge in range(3):
        start, step = corners[:, edge], following[:, edge] - corners[:, edge]
        rising = step[triangle, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = start[triangle, 0] + (level - start[triangle, 1]) * step[triangle, 0] / rising
        left = np.where(rising > 0, np.maximum(left, crossing), left)
        right = np.where(rising < 0, np.minimum(right, crossing), right)
    first = np.clip(np.ceil(left - 0.5), 0, width).astype(np.int64)
    last = np.clip(np.floor(right - 0.5), -1, width - 1).astype(np.int64)
    return first, last - first + 1
