"""Gives a model fewer faces, or faces of four corners."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from penstock_engines.mesh.quads import pair_triangles
from penstock_engines.mesh.reading.opening import open_solid
from penstock_engines.mesh.render import Renderer
from penstock_engines.mesh.simplifying import simplify
from penstock_engines.mesh.solid import Solid
from penstock_engines.mesh.writing.glb_file import write_glb
from penstock_engines.mesh.writing.obj_file import write_obj
from penstock_engines.product import Product, ReportProgress

ENGINE = "penstock remesh-1"
PREVIEW_SIDE = 768
PREVIEW_ANGLE = 32.0
FEWEST, MOST = 2_000, 50_000
"""Faces without a `face_limit`: a quarter of the model's, within these."""
MAX_PAIRED = 300_000
"""Faces that are paired to faces of four corners."""
COARSER = "The model was reduced to {} faces first: more are not paired to faces of four corners."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemeshWish:
    """A request for other faces. `face_limit` None lets the engine choose."""

    mesh: Path
    face_limit: int | None
    quads: bool


def remesh(wish: RemeshWish, folder: Path, report: ReportProgress) -> Product:
    """Write `model.glb`, or for faces of four corners an OBJ, and `preview.png` into the folder."""
    cv2.setNumThreads(1)
    solid = open_solid(wish.mesh)
    report(0.2)
    usual = min(MOST, max(FEWEST, len(solid.faces) // 4))
    reduced = simplify(solid, wish.face_limit or usual)
    report(0.6)
    warnings = list(_warn(solid, reduced))
    if wish.quads:
        return write_quads(replace(reduced, warnings=tuple(warnings)), folder, report)
    path = folder / "model.glb"
    write_glb(reduced, path, ENGINE)
    report(0.8)
    return Product(path, draw_preview(reduced, folder), 0, tuple(warnings))


def write_quads(solid: Solid, folder: Path, report: ReportProgress) -> Product:
    """Write the model with its triangles paired, as OBJ, and a preview."""
    warnings = list(solid.warnings)
    if len(solid.faces) > MAX_PAIRED:
        solid = simplify(solid, MAX_PAIRED)
        warnings.append(COARSER.format(MAX_PAIRED))
    rings, owners = pair_triangles(solid)
    single = int(np.count_nonzero(rings[:, 3] < 0))
    if single:
        warnings.append(f"{len(rings) - single} faces have four corners; {single} stay triangles.")
    path = write_obj(replace(solid, owners=owners), folder, rings)
    report(0.9)
    return Product(path, draw_preview(solid, folder), 0, tuple(warnings))


def pair_faces(product: Product, folder: Path) -> Product:
    """Return a finished model with its triangles paired."""
    paired = write_quads(open_solid(product.primary), folder, lambda _: None)
    return replace(paired, preview=product.preview, seed=product.seed, warnings=(*product.warnings, *paired.warnings))


def draw_preview(solid: Solid, folder: Path) -> Path:
    """Write `preview.png`."""
    path = folder / "preview.png"
    picture = Renderer(solid, PREVIEW_SIDE, PREVIEW_SIDE).draw(PREVIEW_ANGLE)
    path.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
    return path


def _warn(solid: Solid, reduced: Solid) -> Iterator[str]:
    yield from solid.warnings
    if reduced.is_textured and len(reduced.faces) < len(solid.faces):
        yield "The texture is that of the source. Its seams may show, as they moved with the faces."
