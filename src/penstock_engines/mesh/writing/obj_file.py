"""Writes a model as OBJ: alone, or in a zip with its materials and textures."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock_engines.mesh.solid import Material, Solid, Texture

MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""The same in every zip, so that a model always gives the same bytes."""


def write_obj(solid: Solid, folder: Path, quads: NDArray[np.int64] | None = None) -> Path:
    """Write `model.obj`, or with textures `model.zip`.

    `quads` are the vertices of other faces, with -1 as a triangle's fourth; `solid.owners` are then of these faces.
    """
    rings = solid.faces if quads is None else quads
    names = [f"{number}_{_plain(material.name)}" for number, material in enumerate(solid.materials)]
    text = io.BytesIO()
    textured = solid.is_textured
    for line in _list_lines(solid, rings, names, with_materials=textured):
        text.write(line)
    if not textured:
        path = folder / "model.obj"
        path.write_bytes(text.getvalue())
        return path
    path = folder / "model.zip"
    textures: dict[Texture, str] = {}
    materials = "".join(_list_materials(solid.materials, names, textures)).encode()
    with zipfile.ZipFile(path, "w") as archive:
        _store(archive, "model.obj", text.getvalue(), zipfile.ZIP_DEFLATED)
        _store(archive, "model.mtl", materials, zipfile.ZIP_DEFLATED)
        for texture, name in textures.items():
            _store(archive, name, texture.data, zipfile.ZIP_STORED)
    return path


def _list_lines(
    solid: Solid, rings: NDArray[np.int64], names: Sequence[str], *, with_materials: bool
) -> Iterator[bytes]:
    yield b"# y is up; positions are in the units of the source\n"
    if with_materials:
        yield b"mtllib model.mtl\n"
    tints = None if solid.tints is None else np.clip(solid.tints, 0, 1) ** (1 / 2.2)
    for number, point in enumerate(solid.points.tolist()):
        colour = "" if tints is None else " {:.4f} {:.4f} {:.4f}".format(*tints[number])
        yield f"v {point[0]:.7g} {point[1]:.7g} {point[2]:.7g}{colour}\n".encode()
    if solid.places is not None:
        for across, down in solid.places.tolist():
            yield f"vt {across:.7g} {1 - down:.7g}\n".encode()
    for normal in solid.normals.tolist():
        yield f"vn {normal[0]:.4f} {normal[1]:.4f} {normal[2]:.4f}\n".encode()
    between = "//" if solid.places is None else "/"
    order = np.argsort(solid.owners, kind="stable")
    last = -1
    for owner, ring in zip(solid.owners[order].tolist(), (rings[order] + 1).tolist(), strict=True):
        if owner != last and with_materials:
            yield f"usemtl {names[owner]}\n".encode()
        last = owner
        corners = (f"{n}{between}{n}" if solid.places is None else f"{n}/{n}/{n}" for n in ring if n > 0)
        yield f"f {' '.join(corners)}\n".encode()


def _list_materials(materials: Sequence[Material], names: Sequence[str], textures: dict[Texture, str]) -> Iterator[str]:
    """Yield the lines of the MTL, and give each texture a name."""
    for material, name in zip(materials, names, strict=True):
        red, green, blue = material.colour
        yield f"newmtl {name}\nKd {red:.4f} {green:.4f} {blue:.4f}\n"
        yield f"Pr {material.roughness:.4f}\nPm {material.metallic:.4f}\n"
        for word, texture in (("map_Kd", material.texture), ("norm", material.normal)):
            if texture is not None:
                textures.setdefault(texture, f"texture{len(textures)}{texture.suffix}")
                yield f"{word} {textures[texture]}\n"
        yield "\n"


def _plain(name: str) -> str:
    """Return a name that has no spaces or other signs of the format."""
    return "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in name)[:40] or "surface"


def _store(archive: zipfile.ZipFile, name: str, data: bytes, method: int) -> None:
    entry = zipfile.ZipInfo(name, MOMENT)
    entry.compress_type = method
    archive.writestr(entry, data)
