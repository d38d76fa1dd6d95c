"""Writes a model in another format."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np

from penstock_engines.mesh.reading.opening import open_solid
from penstock_engines.mesh.remesh_engine import draw_preview
from penstock_engines.mesh.simplifying import simplify
from penstock_engines.mesh.solid import Solid
from penstock_engines.mesh.writing.glb_file import write_glb
from penstock_engines.mesh.writing.obj_file import write_obj
from penstock_engines.mesh.writing.stl_file import write_stl
from penstock_engines.mesh.writing.usd_file import write_usdz
from penstock_engines.product import Product, ReportProgress, Unable

ENGINE = "penstock convert-1"
MAX_WRITTEN = 1_000_000
"""Faces of a format that is a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertWish:
    """A request for another format."""

    mesh: Path
    format: Literal["glb", "obj", "stl", "usdz"]
    face_limit: int | None


def convert(wish: ConvertWish, folder: Path, report: ReportProgress) -> Product:
    """Write the model in the format, and `preview.png`, into the folder."""
    cv2.setNumThreads(1)
    solid = open_solid(wish.mesh)
    report(0.3)
    if wish.face_limit is not None:
        solid = simplify(solid, wish.face_limit)
    report(0.5)
    path = _write(solid, wish.format, folder)
    report(0.8)
    seen = solid.bare() if wish.format == "stl" else solid
    return Product(path, draw_preview(seen, folder), 0, tuple(_warn(solid, wish.format)))


def _write(solid: Solid, format_: str, folder: Path) -> Path:
    if format_ in {"obj", "usdz"} and len(solid.faces) > MAX_WRITTEN:
        allowed = f"at most {MAX_WRITTEN} are written as {format_.upper()}"
        raise Unable(f"The 3D model has {len(solid.faces)} faces: {allowed}. Give a `face_limit`.")
    path = folder / f"model.{format_}"
    match format_:
        case "glb":
            write_glb(solid, path, ENGINE)
        case "obj":
            return write_obj(solid, folder)
        case "stl":
            write_stl(solid, path)
        case _:
            write_usdz(solid, path)
    return path


def _warn(solid: Solid, format_: str) -> Iterator[str]:
    yield from solid.warnings
    coloured = solid.is_textured or solid.tints is not None or len(np.unique(solid.owners)) > 1
    if format_ == "stl" and coloured:
        yield "STL has no colours: textures and materials were left out."
    if format_ == "obj" and any(material.surface for material in solid.materials):
        yield "OBJ has no textures of roughness and metal: they were left out."
