"""Removes faces of a model, and moves its texture coordinates along."""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false, reportUnknownVariableType=false
# fast_simplification ships no stubs, and its decorator hides its return types.

from dataclasses import dataclass, replace
from typing import Any

import fast_simplification
import numpy as np
from numpy.typing import NDArray

from penstock_engines.mesh.solid import Faces, Floats, Solid, find_across, shade, weld
from penstock_engines.product import Unable

SCALE = 1000.0  # the library's thresholds are absolute
ATTEMPTS = 6
SLACK = 0.9
"""Each attempt keeps at least so much of the faces to count as a failure."""
FINE_PLACE = 1 << 16
FINEST_GRID = 2048


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A reduced surface: its points, the new number of each old vertex, and the old face of each new one."""

    points: Floats
    moved: NDArray[np.int64]
    kept: NDArray[np.int64]


def simplify(solid: Solid, limit: int) -> Solid:
    """Return the model with at most `limit` faces. Textures stay, and their coordinates follow the surface."""
    for _ in range(ATTEMPTS):
        before = len(solid.faces)
        if before <= limit:
            return solid
        solid = _take_step(solid, limit, by_cells=False)
        if len(solid.faces) > SLACK * before:
            break
    return solid if len(solid.faces) <= limit else _take_step(solid, limit, by_cells=True)


def _take_step(solid: Solid, limit: int, *, by_cells: bool) -> Solid:
    welded = weld(solid.points)
    _, first = np.unique(welded, return_index=True)
    points, faces = solid.points[first], welded[solid.faces]
    whole = _has_three(faces)
    source = np.flatnonzero(whole)
    reduced = (_merge_cells if by_cells else _collapse)(points, faces[whole], limit)
    if not len(reduced.kept):
        raise Unable(f"The 3D model cannot be drawn with {limit} faces: allow more.")
    reduced = replace(reduced, kept=source[reduced.kept])
    return _carry_over(solid, welded, reduced)


def _has_three(faces: Faces) -> NDArray[np.bool_]:
    """Return whether a face has three different corners."""
    first, second, third = faces.T
    return (first != second) & (second != third) & (third != first)


def _collapse(points: Floats, faces: Faces, limit: int) -> _Reduced:
    """Collapse edges, those first that change the surface least."""
    low = points.min(axis=0)
    scale = SCALE / max(float(np.ptp(points, axis=0).max()), 1e-12)
    given = (points - low) * scale
    corners = faces.astype(np.int32)
    target = max(4, min(limit, len(faces) - 1))
    result: Any = fast_simplification.simplify(given, corners, target_count=target, return_collapses=True)
    replayed: Any = fast_simplification.replay_simplification(given, corners, result[2])
    moved = np.asarray(replayed[2], np.int64)
    return _Reduced(np.asarray(replayed[0], np.float64) / scale + low, moved, _drop_repeated(moved[faces]))


def _merge_cells(points: Floats, faces: Faces, limit: int) -> _Reduced:
    """Merge all vertices in a cell of a grid, the finest that leaves few enough faces. It works on every surface."""
    low = points.min(axis=0)
    extent = max(float(np.ptp(points, axis=0).max()), 1e-12)
    best: _Reduced | None = None
    coarse, fine = 1, FINEST_GRID
    while coarse <= fine:
        count = (coarse + fine) // 2
        cells = np.minimum(((points - low) / extent * count).astype(np.int64), count - 1)
        _, moved = np.unique((cells[:, 0] * count + cells[:, 1]) * count + cells[:, 2], return_inverse=True)
        moved = moved.reshape(-1)
        kept = _drop_repeated(moved[faces])
        if len(kept) > limit:
            fine = count - 1
            continue
        share = np.bincount(moved)
        means = [np.bincount(moved, points[:, axis]) / share for axis in range(3)]
        best, coarse = _Reduced(np.stack(means, axis=1), moved, kept), count + 1
    if best is None:
        raise Unable(f"The 3D model cannot be drawn with {limit} faces: allow more.")
    return best


def _drop_repeated(faces: Faces) -> NDArray[np.int64]:
    """Return the faces with three corners, without those that lie back to back or twice."""
    kept = np.flatnonzero(_has_three(faces))
    ordered = np.sort(faces[kept], axis=1)
    turned = np.take_along_axis(faces[kept], (np.argmin(faces[kept], axis=1)[:, None] + np.arange(3)) % 3, axis=1)
    sign = np.where(turned[:, 1] < turned[:, 2], 1, -1)
    _, group = np.unique(ordered, axis=0, return_inverse=True) if len(ordered) else (None, np.zeros(0, np.int64))
    group = group.reshape(-1)
    total = np.bincount(group, sign, minlength=1)[group] if len(group) else np.zeros(0)
    # Of each group one face of the side in surplus stays; a single face is a group, too.
    _, first = np.unique(group * 2 + (sign > 0), return_index=True)
    chosen = np.zeros(len(kept), np.bool_)
    chosen[first] = True
    return kept[chosen & (np.sign(total) == sign)]


# -- texture coordinates


def _carry_over(solid: Solid, welded: NDArray[np.int64], reduced: _Reduced) -> Solid:
    """Return the reduced surface with materials, and with texture coordinates and tints of the old vertices near by."""
    corners = reduced.moved[welded[solid.faces[reduced.kept]]]
    owners = solid.owners[reduced.kept]
    if solid.places is None and solid.tints is None:
        normals, faces, used = shade(reduced.points, corners)
        return replace(solid, points=reduced.points[used], faces=faces, normals=normals, owners=owners)
    charts = _find_charts(solid, welded)
    goal = reduced.moved[welded[solid.faces]].ravel()
    pair = goal * (int(charts.max()) + 1) + charts.repeat(3)
    away = np.linalg.norm(solid.points[solid.faces].reshape(-1, 3) - reduced.points[goal], axis=1)
    order = np.lexsort((away, pair))
    keys, first = np.unique(pair[order], return_index=True)
    nearest = order[first]  # for each new vertex of a chart, the old corner that is nearest
    rows = np.searchsorted(keys, pair.reshape(-1, 3)[reduced.kept])
    used, compact = np.unique(rows, return_inverse=True)
    faces, nearest = compact.reshape(-1, 3), nearest[used]
    points = reduced.points[goal[nearest]]
    normals, split, origin = shade(points, faces)
    old = solid.faces.ravel()[nearest]
    places = None if solid.places is None else _slide(solid, nearest, points)[origin]
    return replace(
        solid,
        points=points[origin],
        faces=split,
        normals=normals,
        places=places,
        tints=None if solid.tints is None else solid.tints[old][origin],
        owners=owners,
    )


def _find_charts(solid: Solid, welded: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the chart of each face: faces of one chart are joined in space and in the texture."""
    places = np.zeros((len(solid.points), 2)) if solid.places is None else solid.places
    cells = np.round(np.clip(places, -1000, 1000) * FINE_PLACE).astype(np.int64)
    _, wedges = np.unique(np.column_stack([welded, cells]), axis=0, return_inverse=True)
    corners = wedges.reshape(-1)[solid.faces]
    # Materials part charts: the same wedge under another material is another one.
    _, corners = np.unique(corners * (len(solid.materials) + 1) + solid.owners[:, None], return_inverse=True)
    corners = corners.reshape(-1, 3)
    labels = np.arange(int(corners.max()) + 1)
    while True:
        lowest = labels[corners].min(axis=1)
        lower = labels.copy()
        np.minimum.at(lower, corners.ravel(), lowest.repeat(3))
        lower = lower[lower]
        if np.array_equal(lower, labels):
            break
        labels = lower
    _, charts = np.unique(labels[corners[:, 0]], return_inverse=True)
    return charts.reshape(-1)


def _slide(solid: Solid, nearest: NDArray[np.int64], points: Floats) -> Floats:
    """Return texture coordinates at points near old corners: those of the corner, moved along its face."""
    assert solid.places is not None  # noqa: S101  for the type
    face, corner = np.divmod(nearest, 3)
    ring = solid.faces[face]
    here, after, before = (np.take_along_axis(ring, ((corner + turn) % 3)[:, None], 1)[:, 0] for turn in range(3))
    first, second = solid.points[after] - solid.points[here], solid.points[before] - solid.points[here]
    step = points - solid.points[here]
    normal = find_across(solid.points, ring)
    size = np.maximum((normal**2).sum(axis=1), 1e-30)
    along = (np.cross(step, second) * normal).sum(axis=1) / size
    across = (np.cross(first, step) * normal).sum(axis=1) / size
    # A step of more than one face would leave the part of the texture that the face knows.
    far = np.maximum(1, np.abs(along) + np.abs(across))
    start = solid.places[here]
    right, down = solid.places[after] - start, solid.places[before] - start
    return start + (along / far)[:, None] * right + (across / far)[:, None] * down
