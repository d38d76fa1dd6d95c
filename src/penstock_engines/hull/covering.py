"""Projects the pictures of the sides onto a body: each face shows the side that it looks to."""

from collections.abc import Mapping
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.hull.views import SIDES, View, find
from penstock_engines.inflate.material.texture import paint_back, paint_front
from penstock_engines.inflate.shape.mesh import Surface
from penstock_engines.mesh.solid import Floats, Material, Solid, Texture, find_across, shade, unit

CHART: Final = 768
"""Side of a picture in the texture, in pixels."""
MARGIN: Final = 0.05
"""Room around the subject in it, as a share of its side."""
QUALITY: Final = 90
ROUGHNESS: Final = 0.7
LOOKS: Final = {"front": (0, 0, 1), "left": (1, 0, 0), "back": (0, 0, -1), "right": (-1, 0, 0)}
"""Where each side looks to. The subject's left is at the viewer's right."""
CELLS: Final = 64
"""Grid on which it is found which faces stand before others."""
BEHIND: Final = 0.08
"""Distance in meters from which a face counts as behind another."""
HIDDEN: Final = 0.8
PREFERRED: Final = {"front": 1.2, "left": 1.0, "back": 1.1, "right": 1.0}
"""The front is shown rather than a side where a face looks between both."""


def cover(surface: Surface, views: Mapping[str, View], *, texture: bool) -> Solid:
    """Return the body in meters, standing on the ground, with the pictures as its texture."""
    points = _to_metres(surface.points)
    faces = surface.faces.astype(np.int64)
    if not texture:
        normals, faces, used = shade(points, faces)
        return _build(points[used], faces, normals, None, Material(roughness=ROUGHNESS))
    sides = [side for side in SIDES if side in {"front", "back"} or find(views, side) is not None]
    chosen = _choose(points, faces, sides)
    normals, split, used = shade(points, faces)
    keys = split * len(sides) + chosen[:, None]
    kept, compact = np.unique(keys, return_inverse=True)
    vertex, chart = kept // len(sides), kept % len(sides)
    places = _place(surface.points[used[vertex]], chart, sides)
    picture = np.concatenate([_paint(views, side) for side in sides], axis=1)
    encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes()
    material = Material(name="views", colour=(1.0, 1.0, 1.0), roughness=ROUGHNESS, texture=Texture(encoded))
    return _build(points[used[vertex]], compact.reshape(-1, 3), normals[vertex], places, material)


def _build(points: Floats, faces: NDArray[np.int64], normals: Floats, places: Floats | None, skin: Material) -> Solid:
    owners = np.zeros(len(faces), np.int64)
    return Solid(points=points, faces=faces, normals=normals, places=places, owners=owners, materials=(skin,))


def _to_metres(points: Floats) -> Floats:
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    middle[1] = low[1]
    return (points - middle) / float((high - low).max())


def _choose(points: Floats, faces: NDArray[np.int64], sides: list[str]) -> NDArray[np.int64]:
    """Return the side that each face shows, smoothed over its neighbours so that the seams are calm."""
    across = find_across(points, faces)
    for _ in range(3):
        around = np.stack(
            [np.bincount(faces.ravel(), across[:, axis].repeat(3), minlength=len(points)) for axis in range(3)], axis=1
        )
        across = around[faces].sum(axis=1)
    looks = np.stack([np.array(LOOKS[side], np.float64) * PREFERRED[side] for side in sides])
    scores = unit(across) @ looks.T
    middles = points[faces].mean(axis=1)
    for number, side in enumerate(sides):
        scores[_is_hidden(middles, LOOKS[side]), number] -= HIDDEN
    return np.argmax(scores, axis=1)


def _is_hidden(middles: Floats, look: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Return whether other faces stand before a face, seen from a side."""
    axis = int(np.flatnonzero(look)[0])
    flat = np.delete(middles, axis, axis=1)
    cells = ((flat - flat.min(axis=0)) / max(float(np.ptp(flat, axis=0).max()), 1e-9) * (CELLS - 1)).astype(np.int64)
    keys, near = cells[:, 0] * CELLS + cells[:, 1], middles[:, axis] * look[axis]
    nearest = np.full(CELLS * CELLS, -np.inf)
    np.maximum.at(nearest, keys, near)
    return near < nearest[keys] - BEHIND


def _place(points: Floats, chart: NDArray[np.int64], sides: list[str]) -> Floats:
    """Return the texture coordinates of points in the chart of their side."""
    low, high = points.min(axis=0), points.max(axis=0)
    share = (points - low) / np.maximum(high - low, 1e-9)
    rightwards = {"front": share[:, 0], "back": 1 - share[:, 0], "left": 1 - share[:, 2], "right": share[:, 2]}
    across = np.stack([rightwards[side] for side in sides])[chart, np.arange(len(points))]
    inner = 1 - 2 * MARGIN
    return np.stack([(chart + MARGIN + across * inner) / len(sides), MARGIN + (1 - share[:, 1]) * inner], axis=1)


def _paint(views: Mapping[str, View], side: str) -> NDArray[np.uint8]:
    """Return the chart of a side. A back that no picture shows has the colours of the front's rim."""
    view = find(views, side)
    assert view is not None  # noqa: S101  sides without a view have no chart
    inner = round(CHART * (1 - 2 * MARGIN))
    border = (CHART - inner) // 2
    colours = cv2.resize(view.colours, (inner, inner), interpolation=cv2.INTER_AREA)
    mask = cv2.resize(view.mask, (inner, inner), interpolation=cv2.INTER_AREA)
    rest = CHART - inner - border
    edges = (border, rest, border, rest)
    colours = cv2.copyMakeBorder(colours, *edges, borderType=cv2.BORDER_REPLICATE).astype(np.uint8)
    mask = cv2.copyMakeBorder(mask, *edges, borderType=cv2.BORDER_CONSTANT, value=0).astype(np.float32)
    painted = paint_front(colours, mask)
    return paint_back(painted, mask) if side == "back" and "back" not in views else painted
