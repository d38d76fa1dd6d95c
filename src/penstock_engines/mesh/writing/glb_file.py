"""Writes a model as GLB, one primitive for each material."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.glb_writer import ARRAY, FLOAT, REPEATED, Document
from penstock_engines.mesh.solid import Material, Solid, Texture

KINDS = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}


def write_glb(solid: Solid, path: Path, generator: str) -> None:
    """Write the model with the textures of its source, byte for byte."""
    document = Document(generator=generator)
    images: dict[Texture, dict[str, int]] = {}
    for owner in np.unique(solid.owners).tolist():
        part = solid.only(owner)
        document.primitives.append(
            {
                "attributes": _add_attributes(document, part),
                "indices": document.add_indices(part.faces),
                "material": len(document.materials),
                "mode": 4,
            }
        )
        textured = part.places is not None
        document.materials.append(_describe(document, part.materials[0], images, textured=textured))
    document.write(path, "model", {}, wrap=REPEATED)


def _add_attributes(document: Document, part: Solid) -> dict[str, int]:
    points = part.points.astype(np.float32)
    low, high = (edge.astype(float).tolist() for edge in (points.min(axis=0), points.max(axis=0)))
    attributes = {
        "POSITION": document.add_accessor(points, FLOAT, "VEC3", ARRAY, min=low, max=high),
        "NORMAL": _add(document, part.normals, "VEC3"),
    }
    if part.places is not None:
        attributes["TEXCOORD_0"] = _add(document, part.places, "VEC2")
    if part.tints is not None:
        attributes["COLOR_0"] = _add(document, part.tints, "VEC3")
    return attributes


def _add(document: Document, values: NDArray[np.float64], kind: str) -> int:
    return document.add_accessor(values.astype(np.float32), FLOAT, kind, ARRAY)


def _describe(
    document: Document, material: Material, images: dict[Texture, dict[str, int]], *, textured: bool
) -> dict[str, Any]:
    def add(texture: Texture) -> dict[str, int]:
        if texture not in images:
            images[texture] = document.add_image(texture.data, KINDS[texture.suffix])
        return images[texture]

    surface: dict[str, Any] = {
        "baseColorFactor": [*material.colour, 1.0],
        "metallicFactor": material.metallic,
        "roughnessFactor": material.roughness,
    }
    entry: dict[str, Any] = {"name": material.name, "pbrMetallicRoughness": surface}
    if textured and material.texture is not None:
        surface["baseColorTexture"] = add(material.texture)
    if textured and material.surface is not None:
        surface["metallicRoughnessTexture"] = add(material.surface)
    if textured and material.normal is not None:
        entry["normalTexture"] = add(material.normal)
    return entry
