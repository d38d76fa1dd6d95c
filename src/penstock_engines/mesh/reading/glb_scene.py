"""Places the meshes of a glTF document: the transforms of its nodes and the rest pose of its skins."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from penstock_engines.mesh.reading.glb_buffers import Buffers
from penstock_engines.mesh.solid import Floats
from penstock_engines.product import Unable

MAX_NODES: Final = 20_000


def list_shown(buffers: Buffers) -> dict[int, Floats]:
    """Return the matrix of each node in the scene; without a scene, of all nodes."""
    nodes, scenes = buffers.list("nodes"), buffers.list("scenes")
    if scenes:
        roots: list[int] = list(buffers.pick("scenes", buffers.document.get("scene", 0)).get("nodes", ()))
    else:
        children = {child for node in nodes for child in node.get("children", ())}
        roots = [number for number in range(len(nodes)) if number not in children]
    waiting: list[tuple[int, Floats]] = [(number, np.eye(4)) for number in roots]
    shown: dict[int, Floats] = {}
    while waiting:
        number, above = waiting.pop()
        if number in shown or len(shown) >= MAX_NODES:
            raise Unable(f"The GLB reaches a node twice, or has more than {MAX_NODES} nodes.")
        shown[number] = above @ _find_matrix(nodes[number])
        waiting += [(child, shown[number]) for child in nodes[number].get("children", ())]
    return dict(sorted(shown.items()))


def pose(buffers: Buffers, part: Mapping[str, Any], skin: Mapping[str, Any], shown: Mapping[int, Floats]) -> Floats:
    """Return a matrix for each vertex of a skinned part: the mean of those of its joints, by weight."""
    joints = list(skin["joints"])
    moves = np.stack([shown.get(joint, np.eye(4)) for joint in joints])
    if "inverseBindMatrices" in skin:
        inverse = buffers.table(skin["inverseBindMatrices"]).reshape(-1, 4, 4).transpose(0, 2, 1)
        moves = moves @ inverse[: len(joints)]
    numbers = buffers.table(part["attributes"]["JOINTS_0"]).astype(np.int64)
    weights = buffers.table(part["attributes"]["WEIGHTS_0"])
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    total = np.zeros((len(numbers), 4, 4))
    for column in range(numbers.shape[1]):
        total += moves[numbers[:, column]] * weights[:, column, None, None]
    return total


def move(points: Floats, normals: Floats | None, matrix: Floats) -> tuple[Floats, Floats | None]:
    """Return points and normals moved by one matrix, or by one for each of them."""
    turn = matrix[..., :3, :3]
    moved = np.einsum("...ij,...j->...i", turn, points) + matrix[..., :3, 3]
    if normals is None:
        return moved, None
    # The matrix of cofactors turns normals rightly under any scale, also where it has no inverse.
    rows = [np.cross(turn[..., (row + 1) % 3, :], turn[..., (row + 2) % 3, :]) for row in range(3)]
    return moved, np.einsum("...ij,...j->...i", np.stack(rows, axis=-2), normals)


def list_meshes(buffers: Buffers) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None, Floats]]:
    """Yield each shown mesh with its skin and matrix; without nodes, each mesh."""
    meshes, nodes = buffers.list("meshes"), buffers.list("nodes")
    if not nodes:
        yield from ((mesh, None, np.eye(4)) for mesh in meshes)
        return
    for number, matrix in list_shown(buffers).items():
        node = nodes[number]
        if "mesh" in node:
            skin = buffers.pick("skins", node["skin"]) if "skin" in node else None
            yield buffers.pick("meshes", node["mesh"]), skin, matrix


def _find_matrix(node: Mapping[str, Any]) -> Floats:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T
    x, y, z, w = node.get("rotation", (0, 0, 0, 1))
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix = np.eye(4)
    matrix[:3, :3] = turn * np.array(node.get("scale", (1, 1, 1)), np.float64)
    matrix[:3, 3] = node.get("translation", (0, 0, 0))
    return matrix
