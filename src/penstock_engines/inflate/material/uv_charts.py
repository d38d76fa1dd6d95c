"""Turns a closed surface into a renderable shape: metres, normals, tangents, and texture coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.shape.mesh import Surface

MARGIN = 0.04  # around the subject, as a share of its longer side


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the picture that a chart shows, in pixels."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Shape:
    """Vertices and faces, at most one metre in any direction, standing on the ground, front towards +Z."""

    points: NDArray[np.float32]
    normals: NDArray[np.float32]
    faces: NDArray[np.uint32]
    places: NDArray[np.float32]
    """Texture coordinates. The left half is the front, the right half the back, both as seen from the front."""
    tangents: NDArray[np.float32]


def frame_window(surface: Surface, cell: float, origin: tuple[float, float]) -> Window:
    """Return the surface's bounding box with a margin."""
    pixels = _to_pixels(surface.points, cell, origin)
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    margin = MARGIN * float((high - low).max())
    left, top = (float(value) - margin for value in low)
    width, height = (float(value) + 2 * margin for value in high - low)
    return Window(left, top, width, height)


def chart(
    surface: Surface, window: Window, cell: float, origin: tuple[float, float], *, split: bool, crease: bool
) -> Shape:
    """Return the surface as a shape. `split` makes a front and a back chart, `crease` keeps their edge sharp."""
    corners = surface.points[surface.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    behind = (across[:, 2] < 0).astype(np.int64) * (split or crease)
    count = len(surface.points)
    keys, faces = np.unique(surface.faces + behind[:, None] * count, return_inverse=True)
    faces = faces.reshape(-1, 3)
    owner, back = keys % count, keys >= count
    normals = _average(across, faces, len(keys)) if crease else _average(across, surface.faces, count)[owner]
    pixels = _to_pixels(surface.points[owner], cell, origin)
    places = (pixels - (window.left, window.top)) / (window.width, window.height)
    places[:, 0] = (places[:, 0] + back) / 2
    return Shape(
        _to_metres(surface.points)[owner].astype(np.float32),
        normals.astype(np.float32),
        faces.astype(np.uint32),
        np.clip(places, 0, 1).astype(np.float32),
        _find_tangents(normals, back).astype(np.float32),
    )


def _to_pixels(points: NDArray[np.float64], cell: float, origin: tuple[float, float]) -> NDArray[np.float64]:
    return points[:, :2] * (cell, -cell) + np.array(origin)


def _to_metres(points: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    middle[1] = low[1]
    return (points - middle) / float((high - low).max())


def _average(
    across: NDArray[np.float64], faces: NDArray[np.int64] | NDArray[np.int32], count: int
) -> NDArray[np.float64]:
    """Return the normal of each vertex: the mean over its faces, weighted by area."""
    corners, repeated = faces.ravel(), across.repeat(3, axis=0)
    total = np.stack([np.bincount(corners, repeated[:, axis], minlength=count) for axis in range(3)], axis=1)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 1e-12, total / np.maximum(length, 1e-12), (0.0, 0.0, 1.0))


def _find_tangents(normals: NDArray[np.float64], back: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return tangents along the texture's rows: up x normal. The fourth value marks mirrored charts."""
    sign = np.where(back, -1.0, 1.0)
    along = np.cross((0.0, 1.0, 0.0), normals) * sign[:, None]
    along = np.where(np.linalg.norm(along, axis=1, keepdims=True) > 1e-3, along, np.cross(normals, (0.0, 0.0, 1.0)))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    return np.concatenate([along, sign[:, None]], axis=1)
