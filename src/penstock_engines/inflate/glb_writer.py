"""Writes a model as binary glTF 2.0."""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.material.skin import Skin
from penstock_engines.inflate.material.uv_charts import Shape

GENERATOR = "penstock inflate-1"
FLOAT, SHORT, LONG = 5126, 5123, 5125
ARRAY, INDICES = 34962, 34963
CLAMPED, REPEATED = 33071, 10497
SMALL_IMAGE = 128 * 128  # pixels; up to this size PNG is about as small as JPEG, and exact
NEUTRAL = (0.72, 0.72, 0.74, 1.0)


@dataclass(slots=True)
class Document:
    """A glTF document in the making, with the bytes it points into."""

    generator: str = GENERATOR
    materials: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    primitives: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    views: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    accessors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    images: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    body: bytearray = field(default_factory=bytearray)

    def add_view(self, data: bytes, **extra: int) -> int:
        """Append bytes and return the number of their view."""
        self.views.append({"buffer": 0, "byteOffset": len(self.body), "byteLength": len(data), **extra})
        self.body += data + b"\0" * (-len(data) % 4)
        return len(self.views) - 1

    def add_accessor(self, values: NDArray[Any], component: int, kind: str, target: int, **extra: Any) -> int:
        """Append a table of numbers and return its number."""
        view = self.add_view(values.tobytes(), target=target)
        entry = {"bufferView": view, "componentType": component, "count": len(values), "type": kind, **extra}
        self.accessors.append(entry)
        return len(self.accessors) - 1

    def add_indices(self, faces: NDArray[Any]) -> int:
        """Append the corners of faces and return the number of their accessor."""
        few = not len(faces) or int(faces.max()) < 65534  # some readers take the largest index for a primitive restart
        indices = faces.ravel().astype(np.uint16 if few else np.uint32)
        return self.add_accessor(indices, SHORT if few else LONG, "SCALAR", INDICES)

    def add_texture(self, image: NDArray[np.uint8], quality: int) -> dict[str, int]:
        """Append a picture, red, green, blue, and return how a material uses it."""
        small = image.shape[0] * image.shape[1] <= SMALL_IMAGE
        ending, options = (".png", []) if small else (".jpg", [cv2.IMWRITE_JPEG_QUALITY, quality])
        _, data = cv2.imencode(ending, image[..., ::-1], options)
        return self.add_image(data.tobytes(), "image/png" if small else "image/jpeg")

    def add_image(self, data: bytes, kind: str) -> dict[str, int]:
        """Append an encoded picture and return how a material uses it."""
        self.images.append({"bufferView": self.add_view(data), "mimeType": kind})
        return {"index": len(self.images) - 1}

    def write(self, path: Path, name: str, extras: dict[str, str | int], wrap: int = CLAMPED) -> None:
        """Write one mesh of all primitives. `wrap` says what lies outside of a texture."""
        gltf: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": self.generator, "extras": extras},
            "scene": 0,
            "scenes": [{"nodes": [0], "name": "scene"}],
            "nodes": [{"mesh": 0, "name": name}],
            "meshes": [{"primitives": self.primitives, "name": name}],
            "materials": self.materials,
            "accessors": self.accessors,
            "bufferViews": self.views,
            "buffers": [{"byteLength": len(self.body)}],
        }
        if self.images:
            gltf["images"] = self.images
            gltf["samplers"] = [{"magFilter": 9729, "minFilter": 9987, "wrapS": wrap, "wrapT": wrap}]
            gltf["textures"] = [{"sampler": 0, "source": index} for index in range(len(self.images))]
        head = json.dumps(gltf, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 4)
        length = 12 + 8 + len(head) + 8 + len(self.body)
        with path.open("wb") as file:
            file.write(struct.pack("<4sII", b"glTF", 2, length))
            file.write(struct.pack("<I4s", len(head), b"JSON") + head)
            file.write(struct.pack("<I4s", len(self.body), b"BIN\0"))
            file.write(self.body)


def write_glb(path: Path, shape: Shape, skin: Skin, extras: dict[str, str | int]) -> None:
    """Write the model. `extras` record how it was made."""
    document = Document()
    primitive = {"attributes": _add_attributes(document, shape, skin), "indices": document.add_indices(shape.faces)}
    document.primitives.append({**primitive, "material": 0, "mode": 4})
    document.materials.append(_describe_material(document, skin))
    document.write(path, "subject", extras)


def _add_attributes(document: Document, shape: Shape, skin: Skin) -> dict[str, int]:
    low, high = (edge.astype(float).tolist() for edge in (shape.points.min(axis=0), shape.points.max(axis=0)))
    attributes = {
        "POSITION": document.add_accessor(shape.points, FLOAT, "VEC3", ARRAY, min=low, max=high),
        "NORMAL": document.add_accessor(shape.normals, FLOAT, "VEC3", ARRAY),
    }
    if skin.colour is not None:
        attributes["TEXCOORD_0"] = document.add_accessor(shape.places, FLOAT, "VEC2", ARRAY)
    if skin.normals is not None:
        attributes["TANGENT"] = document.add_accessor(shape.tangents, FLOAT, "VEC4", ARRAY)
    return attributes


def _describe_material(document: Document, skin: Skin) -> dict[str, Any]:
    surface: dict[str, Any] = {"metallicFactor": 0.0, "roughnessFactor": round(skin.roughness, 3)}
    material: dict[str, Any] = {"name": "skin", "pbrMetallicRoughness": surface}
    if skin.colour is None:
        surface["baseColorFactor"] = list(NEUTRAL)
    else:
        surface["baseColorTexture"] = document.add_texture(skin.colour, 90)
    if skin.normals is not None:
        material["normalTexture"] = document.add_texture(skin.normals, 94)
    if skin.material is not None:
        surface["metallicRoughnessTexture"] = document.add_texture(skin.material, 90)
        surface["roughnessFactor"] = 1.0
        material["occlusionTexture"] = surface["metallicRoughnessTexture"]
    return material
