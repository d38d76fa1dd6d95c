"""Lays a grid of nodes over the subject, with each node's distance to the silhouette and to cut sides."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.product import Unable

FINER = 4  # factor by which the grid for distances is finer than the nodes
FINEST_CELL = 0.6  # pixels; a finer grid shows nothing more
MARGIN = 3  # empty nodes around the subject


@dataclass(frozen=True, slots=True)
class Outline:
    """Nodes over the subject. A node's pixel is `origin + node * cell`. Lengths are in cells."""

    inside: NDArray[np.float32]
    """Above 0 inside the subject, below 0 outside. Its zero is the smooth silhouette."""
    depth: NDArray[np.float32]
    """Distance to the silhouette. The picture's frame does not count as one."""
    frame: NDArray[np.float32]
    """Distance to the nearest side of the frame that cuts the subject, or a large number."""
    origin: tuple[float, float]
    cell: float
    cut: tuple[bool, bool, bool, bool]
    """Left, top, right, bottom."""

    @property
    def size(self) -> float:
        """The side of a square with the subject's area."""
        return float(np.sqrt(max(1, np.count_nonzero(self.inside > 0))))

    def sample(self, values: NDArray[np.float32], blur: float = 0.5) -> NDArray[np.float32]:
        """Return a picture's values at the nodes, each the mean of its surroundings (`blur` in cells)."""
        soft = cv2.GaussianBlur(values, (0, 0), max(0.3, blur * self.cell), borderType=cv2.BORDER_REPLICATE)
        rows, columns = self.inside.shape
        matrix = np.array([[self.cell, 0, self.origin[0]], [0, self.cell, self.origin[1]]], np.float64)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return cv2.warpAffine(soft, matrix, (columns, rows), flags=flags, borderMode=cv2.BORDER_REPLICATE).astype(
            np.float32
        )


def lay_grid(mask: NDArray[np.float32], fineness: float, *, closed: bool = False) -> Outline:
    """Return the grid. `fineness` is the number of cells along a square with the area of the subject's box.

    With `closed`, the subject ends at the frame, as a painting does.
    """
    rows, columns = np.nonzero(mask.max(axis=1) > 0.5)[0], np.nonzero(mask.max(axis=0) > 0.5)[0]
    if not len(rows):
        raise Unable("The picture shows no solid subject.")
    left, right, top, bottom = int(columns[0]), int(columns[-1]) + 1, int(rows[0]), int(rows[-1]) + 1
    cell = max(float(np.sqrt((right - left) * (bottom - top))) / fineness, FINEST_CELL)
    cell = min(cell, min(right - left, bottom - top) / 12)
    cut = (False, False, False, False) if closed else _find_cuts(mask)
    firsts = (0.0 if cut[0] else left - MARGIN * cell, 0.0 if cut[1] else top - MARGIN * cell)
    lasts = (mask.shape[1] if cut[2] else right + MARGIN * cell, mask.shape[0] if cut[3] else bottom + MARGIN * cell)
    shape = tuple(int(np.ceil((last - first) / cell)) for first, last in zip(firsts, lasts, strict=True))
    return _measure(_thicken(mask, cell), shape, firsts, cell, cut)


def _find_cuts(mask: NDArray[np.float32]) -> tuple[bool, bool, bool, bool]:
    """Return the sides of the frame on which a good part of the subject lies."""
    solid = mask > 0.5
    least = max(4.0, 0.06 * float(np.sqrt(np.count_nonzero(solid))))
    sides = (solid[:, :2].any(axis=1), solid[:2].any(axis=0), solid[:, -2:].any(axis=1), solid[-2:].any(axis=0))
    left, top, right, bottom = (bool(np.count_nonzero(side) >= least) for side in sides)
    return left, top, right, bottom


def _thicken(mask: NDArray[np.float32], cell: float) -> NDArray[np.float32]:
    """Thicken parts that are too thin for the grid, such as a drawn line, so that they stay in one piece."""
    reach = round(2.2 * cell) | 1
    if reach < 3:
        return mask
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach))
    solid = (mask > 0.5).astype(np.uint8)
    thin = solid - cv2.morphologyEx(solid, cv2.MORPH_OPEN, kernel)
    return np.maximum(mask, cv2.dilate(thin, kernel)).astype(np.float32)


def _measure(
    mask: NDArray[np.float32],
    shape: tuple[int, ...],
    origin: tuple[float, float],
    cell: float,
    cut: tuple[bool, bool, bool, bool],
) -> Outline:
    columns, rows = shape[0] + 1, shape[1] + 1
    blank = np.zeros((rows, columns), np.float32)
    # Nodes beyond a side that cuts repeat that side. Beyond any other lies nothing.
    margin = 2
    sides = [0 if cut[side] else margin for side in (1, 3, 0, 2)]
    padded = cv2.copyMakeBorder(mask, *sides, borderType=cv2.BORDER_CONSTANT, value=0).astype(np.float32, copy=False)
    shifted = (origin[0] + sides[2], origin[1] + sides[0])
    raw = Outline(blank, blank, blank, shifted, cell, cut).sample(padded, blur=0.7) - 0.5
    inside = np.where(np.abs(raw) < 0.01, np.where(raw > 0, 0.01, -0.01), raw).astype(np.float32)
    if not np.any(inside > 0):
        raise Unable("The picture shows no solid subject.")
    return Outline(inside, _measure_depth(inside), _measure_frame(inside.shape, cut), origin, cell, cut)


def _measure_depth(inside: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, columns = inside.shape
    matrix = np.array([[FINER, 0, 0], [0, FINER, 0]], np.float64)
    size = ((columns - 1) * FINER + 1, (rows - 1) * FINER + 1)
    fine = cv2.warpAffine(inside, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    distance = cv2.distanceTransform((fine > 0).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    soft = cv2.GaussianBlur(np.maximum(distance - 0.5, 0), (0, 0), 1.0)
    return np.minimum(soft[::FINER, ::FINER] / FINER, 1e4).astype(np.float32)


def _measure_frame(shape: tuple[int, ...], cut: tuple[bool, bool, bool, bool]) -> NDArray[np.float32]:
    rows, columns = np.indices(shape, np.float32)
    distances = (columns, rows, shape[1] - 1 - columns, shape[0] - 1 - rows)
    lengths = [distance for distance, cuts in zip(distances, cut, strict=True) if cuts]
    return np.minimum.reduce([np.full(shape, 1e6, np.float32), *lengths]) + np.float32(0.5)
