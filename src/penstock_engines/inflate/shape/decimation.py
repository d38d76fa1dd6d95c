"""Removes faces down to a limit, and repairs the surface afterwards."""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# fast_simplification ships no stubs, and its decorator hides its return types.

import fast_simplification
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.shape.mesh import Surface, smooth

SCALE = 1000.0  # the library's thresholds are absolute, so a large surface is simplified in small, well chosen steps
ATTEMPTS = 12
FEW = 600  # faces


def decimate(surface: Surface, limit: int) -> Surface:
    """Return a closed surface of at most `limit` faces, each edge between exactly two of them."""
    quick = _decimate_quickly(surface, limit)
    if len(quick.faces) <= limit and (limit >= FEW or count_euler(quick) == count_euler(surface)):
        return quick
    # With few faces a thin bridge or a hole may get lost. Below a safe number, collapse edges one by one.
    return collapse(_decimate_quickly(surface, max(limit, FEW)), limit)


def count_euler(surface: Surface) -> int:
    """Return vertices minus edges plus faces: 2 for each part, less 2 for each hole."""
    return len(surface.points) - len(surface.faces) // 2


def _decimate_quickly(surface: Surface, limit: int) -> Surface:
    best, target = surface, limit
    for _ in range(ATTEMPTS):
        if len(best.faces) <= limit:
            break
        points, faces = _simplify(best, max(4, min(target, len(best.faces) - 1)))
        best = mend(Surface(points, faces))
        if len(best.faces) > limit:
            # The library removes no face that would flip. Smoothing helps, and so does another pass.
            best = mend(smooth(best, rounds=1))
            target = int(target * 0.97)
    return best


def mend(surface: Surface) -> Surface:
    """Make it a manifold again: no back-to-back faces, no vertex with two fans, no edge with more than two faces."""
    faces = surface.faces
    while len(kept := _drop_folded(faces)) < len(faces):
        faces = kept
    points, faces = _part_fans(surface.points, faces)
    while len(twice := _find_double_edges(points, faces)):
        points, faces = _halve_edges(points, faces, twice)
    used, compact = np.unique(faces, return_inverse=True)
    return Surface(points[used], compact.reshape(-1, 3).astype(np.int32))


def collapse(surface: Surface, limit: int) -> Surface:
    """Collapse edges one by one, shortest first, where the surface stays whole. Slow, for the last few faces."""
    faces = surface.faces.astype(np.int64)
    points = surface.points.copy()
    around = _list_neighbours(faces)
    while len(faces) > limit:
        ends = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
        edges = np.stack(np.divmod(np.unique(ends @ (len(points), 1)), len(points)), axis=1)
        lengths = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
        for kept, gone in edges[np.argsort(lengths, kind="stable")].tolist():
            if len(around[kept] & around[gone]) == 4:  # both ends and two more: the link condition
                break
        else:
            break
        points[kept] = (points[kept] + points[gone]) / 2
        faces[faces == gone] = kept
        same = (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 2] == faces[:, 0])
        faces = faces[~same]
        inherited = around.pop(gone) - {gone}
        for neighbour in inherited:
            around[neighbour] = around[neighbour] - {gone} | {kept}
        around[kept] |= inherited
    return mend(Surface(points, faces.astype(np.int32)))


def _list_neighbours(faces: NDArray[np.int64]) -> dict[int, set[int]]:
    """Return, for each vertex, itself and all vertices that share a face with it."""
    around: dict[int, set[int]] = {}
    for face in faces.tolist():
        for corner in face:
            around.setdefault(corner, set()).update(face)
    return around


def _simplify(surface: Surface, target: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    low = surface.points.min(axis=0)
    scale = SCALE / float(np.ptp(surface.points, axis=0).max())
    result = fast_simplification.simplify((surface.points - low) * scale, surface.faces, target_count=target)
    points, faces = np.asarray(result[0], np.float64), np.asarray(result[1], np.int32)
    return points / scale + low, faces


def _drop_folded(faces: NDArray[np.int32]) -> NDArray[np.int32]:
    """Remove faces with fewer than three corners, and pairs of faces that lie back to back."""
    ordered = np.sort(faces, axis=1)
    whole = (ordered[:, 0] != ordered[:, 1]) & (ordered[:, 1] != ordered[:, 2])
    faces, ordered = faces[whole], ordered[whole].astype(np.int64)
    base = int(faces.max(initial=0)) + 1
    keys = (ordered[:, 0] * base + ordered[:, 1]) * base + ordered[:, 2]
    _, group, count = np.unique(keys, return_inverse=True, return_counts=True)
    if not np.any(count > 1):
        return faces
    first = np.argmin(faces, axis=1)
    turned = np.take_along_axis(faces, (first[:, None] + np.arange(3)) % 3, axis=1)
    sign = np.where(turned[:, 1] < turned[:, 2], 1, -1)
    total = np.bincount(group, sign)[group]
    # Of each group only the surplus of one side stays.
    rank = _rank(group * 2 + (sign > 0))
    return faces[(np.sign(total) == sign) & (rank < np.abs(total))]


def _rank(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each entry's position within its group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.empty(len(groups), np.int64)
    rank[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
    return rank


def _part_fans(points: NDArray[np.float64], faces: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Give each fan of faces around a vertex its own vertex.

    At an edge with more than two faces, each face is paired with one of the opposite direction. Corners that
    pairs connect are a fan. New vertices move slightly towards their fan, so that they are not merged again.
    """
    fans = _find_fans(points, faces)
    corners = faces.ravel()
    _, first = np.unique(fans, return_index=True)
    owners = corners[first]
    if len(first) == len(np.unique(corners)):
        return points, faces
    numbers = np.searchsorted(fans[first], fans)
    parted = numbers.reshape(-1, 3).astype(np.int32)
    moved = points[owners]
    centres = points[faces].mean(axis=1).repeat(3, axis=0)
    count = np.bincount(numbers)[:, None]
    middle = np.stack([np.bincount(numbers, centres[:, axis]) for axis in range(3)], axis=1) / count
    shared = np.bincount(owners, minlength=len(points))[owners] > 1
    moved[shared] += 0.02 * (middle[shared] - moved[shared])
    return moved, parted


def _find_fans(points: NDArray[np.float64], faces: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return, for each corner (three per face, in order), the lowest corner number of its fan."""
    after, other = _pair_edges(points, faces)
    labels = np.arange(len(after))
    pairs = np.concatenate([np.stack([labels, after[other]], axis=1), np.stack([after, other], axis=1)])
    while True:
        lower = labels.copy()
        np.minimum.at(lower, pairs[:, 0], labels[pairs[:, 1]])
        np.minimum.at(lower, pairs[:, 1], labels[pairs[:, 0]])
        lower = lower[lower]
        if np.array_equal(lower, labels):
            return labels
        labels = lower


def _pair_edges(points: NDArray[np.float64], faces: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for the edge that begins at each corner, the corner where it ends and where its twin begins.

    The k-th edge from a to b meets the k-th from b to a, both sorted by the angle of their face around the edge.
    """
    corners = faces.astype(np.int64).ravel()
    after = np.roll(np.arange(len(corners)).reshape(-1, 3), -1, axis=1).ravel()
    base = int(corners.max(initial=0)) + 1
    low, high = np.minimum(corners, corners[after]), np.maximum(corners, corners[after])
    along = points[high] - points[low]
    along /= np.maximum(np.linalg.norm(along, axis=1), 1e-12)[:, None]
    away = points[faces].mean(axis=1).repeat(3, axis=0) - points[low]
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along), axis=1)])
    turn = np.arctan2((away * np.cross(along, side)).sum(axis=1), (away * side).sum(axis=1))
    other = np.empty_like(after)
    other[np.lexsort((turn, corners * base + corners[after]))] = np.lexsort((turn, corners[after] * base + corners))
    return after, other


def _find_double_edges(points: NDArray[np.float64], faces: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return pairs of corners where an edge and its twin begin, for vertices joined more than once."""
    corners = faces.astype(np.int64).ravel()
    after, other = _pair_edges(points, faces)
    rising = np.flatnonzero(corners < corners[after])
    keys = corners[rising] * (int(corners.max(initial=0)) + 1) + corners[after[rising]]
    again = rising[_rank(keys) > 0]
    return np.stack([again, other[again]], axis=1)


def _halve_edges(
    points: NDArray[np.float64], faces: NDArray[np.int32], edges: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Put a new vertex into each of the edges, slightly towards its faces, one edge of a face at a time."""
    new_points, new_faces, touched = list(points), faces.tolist(), set[int]()
    for edge in edges.tolist():
        places = [divmod(corner, 3) for corner in edge]
        if touched & {face for face, _ in places}:
            continue
        rows = [np.roll(faces[face], -first) for face, first in places]
        start, end, tips = rows[0][0], rows[0][1], [row[2] for row in rows]
        middle = (points[start] + points[end]) / 2
        new_points.append(middle + 0.05 * (points[tips].mean(axis=0) - middle))
        for (face, _), (begin, stop, tip) in zip(places, rows, strict=True):
            touched.add(face)
            new_faces[face] = [begin, len(new_points) - 1, tip]
            new_faces.append([len(new_points) - 1, stop, tip])
    return np.array(new_points), np.array(new_faces, np.int32)
