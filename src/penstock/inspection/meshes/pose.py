"""The places of a glTF scene's meshes: transforms from the nodes, and the box around what is shown."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from penstock.inspection.meshes.document import GltfDocument, GltfNode, Vector, pick

Matrix: TypeAlias = tuple[float, ...]
"""Three rows of four numbers; the fourth row is always 0, 0, 0, 1."""
Box: TypeAlias = tuple[Vector, Vector]
"""The lowest and the highest corner."""

IDENTITY: Final[Matrix] = (1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)


def list_shown(document: GltfDocument) -> Iterator[tuple[int, Matrix]]:
    """Yield each node of the scene with its transform; without a scene, each node as if it stood alone."""
    nodes, scenes = document.nodes, document.scenes
    roots = pick(scenes, document.scene, "scene").nodes if scenes else range(len(nodes))
    waiting: list[tuple[int, Matrix]] = [(number, IDENTITY) for number in roots]
    seen: set[int] = set()
    while waiting:
        number, above = waiting.pop()
        node = pick(nodes, number, "node")
        if number in seen:
            raise ValueError(f"node {number} is reached twice")
        seen.add(number)
        own = multiply(above, _find_transform(number, node))
        waiting += ((child, own) for child in node.children) if scenes else ()
        yield number, own


def multiply(first: Matrix, second: Matrix) -> Matrix:
    """Return the transform that does the second, then the first."""
    if second is IDENTITY:
        return first
    a, b = first, second
    return tuple(
        a[row] * b[column]
        + a[row + 1] * b[column + 4]
        + a[row + 2] * b[column + 8]
        + (a[row + 3] if column == 3 else 0)
        for row in (0, 4, 8)
        for column in range(4)
    )


def read_columns(numbers: Sequence[float]) -> Matrix:
    """Return a matrix that a document holds column by column."""
    return tuple(numbers[column * 4 + row] for row in range(3) for column in range(4))


def move_box(box: Box, transform: Matrix) -> Box:
    """Return the box around the moved box."""
    corners = list(itertools.product(*zip(*box, strict=True)))
    moved = [
        [sum(transform[row + axis] * corner[axis] for axis in range(3)) + transform[row + 3] for corner in corners]
        for row in (0, 4, 8)
    ]
    (left, bottom, back), (right, top, front) = [min(axis) for axis in moved], [max(axis) for axis in moved]
    return (left, bottom, back), (right, top, front)


def join_boxes(boxes: Sequence[Box]) -> Box | None:
    """Return the box around all of them; None without any, or if it has no finite size."""
    if not boxes:
        return None
    low = [min(box[0][axis] for box in boxes) for axis in range(3)]
    high = [max(box[1][axis] for box in boxes) for axis in range(3)]
    if not all(map(math.isfinite, (*low, *high))):
        return None
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])


def measure_box(box: Box) -> Vector:
    """Return width, height and depth."""
    width, height, depth = (round(high - low, 6) for low, high in zip(*box, strict=True))
    return width, height, depth


def _find_transform(number: int, node: GltfNode) -> Matrix:
    if node.matrix is not None:
        if len(node.matrix) != 16:
            raise ValueError(f"node {number} has a matrix of {len(node.matrix)} numbers")
        return read_columns(node.matrix)
    if (node.translation, node.rotation, node.scale) == ((0, 0, 0), (0, 0, 0, 1), (1, 1, 1)):
        return IDENTITY
    x, y, z, w = node.rotation
    across, up, deep = node.scale
    return (
        (1 - 2 * (y * y + z * z)) * across,
        2 * (x * y - z * w) * up,
        2 * (x * z + y * w) * deep,
        node.translation[0],
        2 * (x * y + z * w) * across,
        (1 - 2 * (x * x + z * z)) * up,
        2 * (y * z - x * w) * deep,
        node.translation[1],
        2 * (x * z - y * w) * across,
        2 * (y * z + x * w) * up,
        (1 - 2 * (x * x + y * y)) * deep,
        node.translation[2],
    )
