"""Randomness that looks natural: tiling clouds of noise, and wandering lines."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Randomness = np.random.Generator


def make_noise(
    random: Randomness, height: int, width: int, cells: tuple[int, int], octaves: int = 4
) -> NDArray[np.float32]:
    """Return a tiling field from 0 to 1. `cells` is the number of blobs down and across in the first octave."""
    total = np.zeros((height, width), np.float32)
    weight = 1.0
    for octave in range(octaves):
        rows, columns = (min(size, count << octave) for size, count in zip((height, width), cells, strict=True))
        total += weight * _stretch(random.random((rows, columns), np.float32), height, width)
        weight *= 0.5
    low, high = float(total.min()), float(total.max())
    return (total - low) / np.float32(high - low)


def _stretch(grid: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    """Enlarge a grid smoothly, wrapping around at its edges."""
    down, across = height / grid.shape[0], width / grid.shape[1]
    padded = np.pad(grid, 2, mode="wrap")
    large = cv2.resize(padded, None, fx=across, fy=down, interpolation=cv2.INTER_CUBIC)
    top, left = round(2 * down), round(2 * across)
    return np.asarray(large[top : top + height, left : left + width], np.float32)


def wander(
    random: Randomness, along: NDArray[np.float32], length: float, octaves: int = 4, rough: float = 0.5
) -> NDArray[np.float32]:
    """Return a line between about -1 and 1, with waves of `length` and ever smaller ones on them."""
    line = np.zeros_like(along)
    total, weight = 0.0, 1.0
    for octave in range(octaves):
        knots = random.uniform(-1, 1, 512).astype(np.float32)
        where = along * ((1 << octave) / length) + 200.0
        base = np.floor(where)
        share = where - base
        share = share * share * (3 - 2 * share)
        step = base.astype(np.int64)
        line += weight * (knots[step % 512] * (1 - share) + knots[(step + 1) % 512] * share)
        total += weight
        weight *= rough
    return (line / np.float32(total) * np.float32(1.6)).astype(np.float32)


def soften(values: NDArray[np.floating[Any]], low: float, high: float) -> NDArray[np.float32]:
    """Return 0 up to `low`, 1 from `high` on, and a smooth step in between."""
    share = np.clip((values - low) / (high - low), 0, 1)
    return (share * share * (3 - 2 * share)).astype(np.float32)
