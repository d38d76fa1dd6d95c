"""Opens USDZ packages whose scene is a text: meshes with one material each, as `writing.usd_file` writes them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

import numpy as np

from penstock_engines.mesh.solid import Faces, Floats, Material, Piece, Solid, Texture, join
from penstock_engines.product import Unable

SEALED: Final = "The scene in the USDZ is binary, which the built-in engine cannot read: give a GLB, OBJ or STL."
MOVED: Final = "The USDZ moves its meshes, which the built-in engine cannot read: give a GLB, OBJ or STL."
HEAD: Final = re.compile(r'^\s*def (Mesh|Material) "([^"]{1,200})"', re.MULTILINE)
NUMBERS: Final = re.compile(r"[-+0-9.eE]+|nan|inf")
UP: Final = re.compile(r'upAxis = "Z"')


def read_usd(files: Mapping[str, bytes]) -> Solid:
    """Return the scene among the files of a package."""
    name = next(name for name in files if name.endswith((".usda", ".usdc", ".usd")))
    data = files[name]
    if not data.startswith(b"#usda"):
        raise Unable(SEALED)
    text = data.decode()
    if "xformOp:" in text:
        raise Unable(MOVED)
    blocks = list(_list_blocks(text))
    materials = {name: _read_material(name, block, files) for kind, name, block in blocks if kind == "Material"}
    names = list(materials)
    pieces: list[Piece] = []
    for kind, _, block in blocks:
        if kind == "Mesh":
            bound = re.search(r"rel material:binding = <[^>]*/([^/>]+)>", block)
            number = names.index(bound[1]) if bound and bound[1] in materials else len(names)
            pieces.append(_read_mesh(block, number, upright=UP.search(text) is None))
    return join(pieces, [*materials.values(), Material()])


def _list_blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and text of each mesh and material, up to the next one."""
    heads = list(HEAD.finditer(text))
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        yield head[1], head[2], text[head.end() : end]


def _read_mesh(block: str, material: int, *, upright: bool) -> Piece:
    points = _table(block, r"point3f\[\] points", 3)
    if points is None:
        raise Unable("A mesh of the USDZ has no points.")
    counts, corners = _table(block, r"int\[\] faceVertexCounts", 1), _table(block, r"int\[\] faceVertexIndices", 1)
    if counts is None or corners is None:
        raise Unable("A mesh of the USDZ has no faces.")
    faces = _cut(counts[:, 0].astype(np.int64), corners[:, 0].astype(np.int64))
    places, normals = _table(block, r"texCoord2f\[\] primvars:st", 2), _table(block, r"normal3f\[\] normals", 3)
    tints = _table(block, r"color3f\[\] primvars:displayColor", 3)
    places, normals, tints = (
        value if value is not None and len(value) == len(points) else None for value in (places, normals, tints)
    )
    if places is not None:
        places = np.stack([places[:, 0], 1 - places[:, 1]], axis=1)
    if not upright:
        points = points[:, [0, 2, 1]] * (1, 1, -1)
        normals = None if normals is None else normals[:, [0, 2, 1]] * (1, 1, -1)
    return Piece(points=points, faces=faces, normals=normals, places=places, tints=tints, material=material)


def _table(block: str, name: str, columns: int) -> Floats | None:
    """Return an array of a block; None if it is missing."""
    found = re.search(name + r" = \[([^\]]*)\]", block)
    if found is None:
        return None
    return np.array(NUMBERS.findall(found[1]), np.float64).reshape(-1, columns)


def _cut(counts: Faces, corners: Faces) -> Faces:
    """Return polygons as triangles around their first corners."""
    if (counts < 3).any() or int(counts.sum()) != len(corners):
        raise ValueError("faces and corners differ")
    firsts = np.cumsum(counts) - counts
    pieces = counts - 2
    steps = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = np.repeat(firsts, pieces)
    return np.stack([corners[start], corners[start + steps + 1], corners[start + steps + 2]], axis=1)


def _read_material(name: str, block: str, files: Mapping[str, bytes]) -> Material:
    textures: dict[str, Texture] = {}
    for shader in re.split(r"\bdef Shader ", block)[1:]:
        file = re.search(r"asset inputs:file = @([^@]+)@", shader)
        data = files.get(PurePosixPath(file[1]).name.lower()) if file else None
        if data is not None:
            textures[shader.split('"')[1]] = Texture(data)

    def use(key: str) -> Texture | None:
        found = re.search(rf"inputs:{key}\.connect = <[^>]*/([^/>.]+)\.outputs", block)
        return textures.get(found[1]) if found else None

    def number(key: str, default: float) -> float:
        found = re.search(rf"inputs:{key} = ([-+0-9.eE]+)", block)
        return float(np.clip(float(found[1]), 0, 1)) if found else default

    found = re.search(r"inputs:diffuseColor = \(([^)]*)\)", block)
    red, green, blue = (
        (float(np.clip(float(value), 0, 1)) for value in found[1].split(",")) if found else (1.0, 1.0, 1.0)
    )
    surface = use("roughness")
    return Material(
        name=name[:80],
        colour=(red, green, blue),
        roughness=number("roughness", 1.0 if surface else 0.6),
        metallic=number("metallic", 1.0 if surface else 0.0),
        texture=use("diffuseColor"),
        normal=use("normal"),
        surface=surface,
    )
