"""Drawn pictures, and what is read back from a model made of them."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from PIL import Image, ImageDraw

from penstock_engines.inflate.model_engine import ModelWish, Style, make_model, write_model
from penstock_engines.product import Product

NO_WEIGHTS = Path("no-such-folder")


def draw_bear(side: int = 192) -> Image.Image:
    """A cut-out: head, ears, eyes, on nothing."""
    image = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    for centre, radius, colour in (
        ((0.28, 0.25), 0.13, (120, 70, 30)),
        ((0.72, 0.25), 0.13, (120, 70, 30)),
        ((0.5, 0.52), 0.36, (160, 100, 50)),
        ((0.38, 0.45), 0.05, (10, 10, 10)),
        ((0.62, 0.45), 0.05, (10, 10, 10)),
    ):
        box = [(centre[axis] + sign * radius) * side for sign in (-1, 1) for axis in (0, 1)]
        draw.ellipse(box, fill=(*colour, 255))
    return image


def draw_ring(side: int = 192) -> Image.Image:
    image = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.ellipse([side * 0.1, side * 0.1, side * 0.9, side * 0.9], fill=(220, 180, 40, 255))
    draw.ellipse([side * 0.3, side * 0.3, side * 0.7, side * 0.7], fill=(0, 0, 0, 0))
    return image


def draw_disc_on_white(side: int = 192) -> Image.Image:
    image = Image.new("RGB", (side, side), "white")
    ImageDraw.Draw(image).ellipse([side * 0.2, side * 0.2, side * 0.8, side * 0.8], fill=(200, 40, 40))
    return image


def draw_landscape(side: int = 192) -> Image.Image:
    """Nothing stands out, and no border colour is to be flooded."""
    rows, columns = np.mgrid[0:side, 0:side].astype(np.float32) / side
    waves = 0.5 + 0.5 * np.sin(columns * 9 + 4 * np.sin(rows * 7))
    return Image.fromarray((np.stack([columns, rows, waves], axis=2) * 255).astype(np.uint8))


def make(
    folder: Path,
    image: Image.Image | Path,
    *,
    limit: int | None = 2000,
    texture: bool = True,
    pbr: bool = False,
    style: Style = "auto",
    seed: int = 1,
    weights: Path = NO_WEIGHTS,
    preview: bool = False,
) -> Product:
    """Make a model; the reported progress must rise. A preview costs more than a small model: only some want it."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = image if isinstance(image, Path) else folder / "picture.png"
    if not isinstance(image, Path):
        image.save(picture)
    told: list[float] = []
    wish = ModelWish(picture=picture, face_limit=limit, texture=texture, pbr=pbr, style=style, seed=seed)
    if preview:
        product = make_model(wish, folder, weights, told.append)
    else:
        path = folder / "model.glb"
        warnings = write_model(wish, path, weights, told.append).warnings
        product = Product(path, folder / "no-preview.png", seed, warnings)
    assert told == sorted(told)
    assert told[-1] == (1.0 if preview else 0.9)
    return product


def read_solid(path: Path) -> trimesh.Trimesh:
    """The geometry alone: vertices at one place are one, whatever their normals and texture coordinates."""
    loaded = trimesh.load(path, force="mesh", process=False)
    solid = trimesh.Trimesh(loaded.vertices, loaded.faces, process=False)
    solid.merge_vertices()
    return solid


def read_gltf(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    magic, version, length, head, kind = struct.unpack_from("<4sIII4s", data)
    assert (magic, version, length, kind) == (b"glTF", 2, len(data), b"JSON")
    return json.loads(data[20 : 20 + head])


def read_attribute(path: Path, name: str) -> np.ndarray:
    gltf, data = read_gltf(path), path.read_bytes()
    accessor = gltf["accessors"][gltf["meshes"][0]["primitives"][0]["attributes"][name]]
    view = gltf["bufferViews"][accessor["bufferView"]]
    start = 28 + struct.unpack_from("<I", data, 12)[0] + view["byteOffset"]
    values = np.frombuffer(data, np.float32, view["byteLength"] // 4, start)
    return values.reshape(accessor["count"], -1)


def assert_sound(solid: trimesh.Trimesh) -> None:
    """Closed, facing outward, every face with an area."""
    assert solid.is_watertight
    assert solid.is_winding_consistent
    assert solid.volume > 0
    assert solid.area_faces.min() > 0
