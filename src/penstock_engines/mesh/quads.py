"""Pairs the triangles of a model to faces of four corners."""

import numpy as np
from numpy.typing import NDArray

from penstock_engines.mesh.solid import Faces, Floats, Solid, find_across, unit

FLATTEST = np.cos(np.radians(50.0))
"""Triangles that fold more than this are no face of four corners."""
NARROWEST, WIDEST = np.radians(15.0), np.radians(170.0)
"""Corners of a good face."""
ROUNDS = 4


def pair_triangles(solid: Solid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the corners of all faces, with -1 as a triangle's fourth, and the material of each."""
    faces = solid.faces
    edges, rings, badness = _list_pairs(solid)
    partner = _match(edges, badness, len(faces))
    taken = np.flatnonzero(partner[edges[:, 0]] == edges[:, 1]) if len(edges) else np.zeros(0, np.int64)
    _, first = np.unique(edges[taken, 0], return_index=True)
    taken = taken[first]
    alone = np.flatnonzero(partner < 0)
    triangles = np.concatenate([faces[alone], np.full((len(alone), 1), -1)], axis=1)
    owners = np.concatenate([solid.owners[edges[taken, 0]], solid.owners[alone]])
    return np.concatenate([rings[taken], triangles]), owners


def _list_pairs(solid: Solid) -> tuple[Faces, Faces, Floats]:
    """Return neighbours that make a good face of four corners: their numbers, its corners, and how far from square."""
    faces, base = solid.faces, len(solid.points)
    corners = faces.ravel()
    after = np.roll(faces, -1, axis=1).ravel()
    opposite = np.roll(faces, -2, axis=1).ravel()
    forward, backward = corners * base + after, after * base + corners
    order = np.argsort(forward, kind="stable")
    place = np.minimum(np.searchsorted(forward[order], backward), len(order) - 1)
    twin = order[place]
    met = (forward[twin] == backward) & (corners < after)
    one, two = np.flatnonzero(met), twin[met]
    edges = np.stack([one // 3, two // 3], axis=1)
    # A ring begins at the edge that it replaces, so that readers cut it there again.
    rings = np.stack([corners[one], opposite[two], after[one], opposite[one]], axis=1)
    normals = unit(find_across(solid.points, faces))
    flat = (normals[edges[:, 0]] * normals[edges[:, 1]]).sum(axis=1)
    angles = _measure_angles(solid.points[rings])
    same = solid.owners[edges[:, 0]] == solid.owners[edges[:, 1]]
    distinct = rings[:, 1] != rings[:, 3]
    good = same & distinct & (flat > FLATTEST) & (angles.min(axis=1) > NARROWEST) & (angles.max(axis=1) < WIDEST)
    badness = np.abs(angles - np.pi / 2).max(axis=1) + (1 - flat)
    return edges[good], rings[good], badness[good]


def _measure_angles(rings: Floats) -> Floats:
    """Return the four inner angles of each ring."""
    after, before = np.roll(rings, -1, axis=1) - rings, np.roll(rings, 1, axis=1) - rings
    return np.arccos(np.clip((unit(after) * unit(before)).sum(axis=2), -1, 1))


def _match(edges: Faces, badness: Floats, count: int) -> NDArray[np.int64]:
    """Return the partner of each triangle, or -1: the squarest pairs first, then chains that free two more."""
    partner = [-1] * count
    near: dict[int, list[int]] = {}
    for one, two in edges[np.argsort(badness, kind="stable")].tolist():
        near.setdefault(one, []).append(two)
        near.setdefault(two, []).append(one)
        if partner[one] < 0 and partner[two] < 0:
            partner[one], partner[two] = two, one
    for _ in range(ROUNDS):
        if not sum(_lengthen(lonely, near, partner) for lonely in range(count) if partner[lonely] < 0):
            break
    return np.array(partner, np.int64)


def _lengthen(lonely: int, near: dict[int, list[int]], partner: list[int]) -> bool:
    """Pair a lone triangle by moving partners along a short chain to another lone one. Return whether it worked."""
    came_from: dict[int, int] = {}
    seen, edge = {lonely}, [lonely]
    for _ in range(6):
        following: list[int] = []
        for one in edge:
            for two in near.get(one, ()):
                if two in seen:
                    continue
                came_from[two] = one
                if partner[two] < 0:
                    _swap(two, came_from, partner, lonely)
                    return True
                seen |= {two, partner[two]}
                following.append(partner[two])
        edge = following
    return False


def _swap(last: int, came_from: dict[int, int], partner: list[int], lonely: int) -> None:
    two = last
    while True:
        one = came_from[two]
        before = partner[one]
        partner[one], partner[two] = two, one
        if one == lonely:
            return
        two = before
