"""Makes a textured GLB of one picture: cuts the subject out and gives it depth, or raises it as a plaque."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.glb_writer import write_glb
from penstock_engines.inflate.material.skin import Skin, paint_skin
from penstock_engines.inflate.material.uv_charts import Shape, chart, frame_window
from penstock_engines.inflate.render import render
from penstock_engines.inflate.shape.form import Form, guess_faces, shape_form
from penstock_engines.inflate.shape.inflation import InflationMode
from penstock_engines.inflate.subject.flatness import is_flat
from penstock_engines.inflate.subject.mask import Cutout, cut_out, find_border_colour
from penstock_engines.inflate.subject.picture import open_picture
from penstock_engines.processors import count_processors
from penstock_engines.product import Product, ReportProgress

ENGINE = "inflate-1"
MAX_THREADS = 16  # more bring nothing, and each takes memory
Style: TypeAlias = Literal["auto", "inflate", "relief"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWish:
    """A request for a model. `face_limit` None lets the subject's detail decide."""

    picture: Path
    face_limit: int | None
    texture: bool
    pbr: bool
    style: Style
    seed: int


@dataclass(frozen=True, slots=True)
class Sculpture:
    """A finished model before it is written, with facts about its making."""

    shape: Shape
    skin: Skin
    source: str
    style: Style
    warnings: tuple[str, ...]


def make_model(wish: ModelWish, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write `model.glb` and `preview.png` into the folder. `weights` may hold the segmenter."""
    primary, preview = folder / "model.glb", folder / "preview.png"
    sculpture = write_model(wish, primary, weights, report)
    picture = render(sculpture.shape, sculpture.skin)[..., ::-1]
    preview.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
    report(1.0)
    return Product(primary, preview, wish.seed, sculpture.warnings)


def write_model(wish: ModelWish, path: Path, weights: Path, report: ReportProgress) -> Sculpture:
    """Write the model without a preview. Return it as it was written."""
    cv2.setNumThreads(min(count_processors(), MAX_THREADS))
    sculpture = sculpt(wish, weights, report)
    extras = {"engine": ENGINE, "mask_source": sculpture.source, "style": sculpture.style, "seed": wish.seed}
    write_glb(path, sculpture.shape, sculpture.skin, extras)
    report(0.9)
    return sculpture


def sculpt(wish: ModelWish, weights: Path, report: ReportProgress) -> Sculpture:
    """Do all of the work except the writing."""
    picture = open_picture(wish.picture)
    colours = np.ascontiguousarray(picture[..., :3])
    report(0.05)
    cutout = cut_out(picture, weights)
    report(0.5)
    manner = InflationMode.from_seed(wish.seed)
    flat = wish.style == "relief" or (wish.style == "auto" and is_flat(cutout, _find_brightness(colours)))
    mask = _merge_parts(cutout.mask) if flat else cutout.mask
    light = _find_light(colours, cutout, flat=flat)
    limit = wish.face_limit or guess_faces(mask, light)
    form = shape_form(mask, light, manner, limit, flat=flat, closed=flat or cutout.source == "frame")
    report(0.75)
    cell, origin = form.outline.cell, form.outline.origin
    window = frame_window(form.surface, cell, origin)
    shape = chart(form.surface, window, cell, origin, split=wish.texture, crease=flat)
    skin = Skin(None, None, None, manner.roughness)
    if wish.texture:
        skin = paint_skin(colours, form.mask, window, manner, pbr=wish.pbr)
    report(0.85)
    warnings = tuple(_warn(wish, cutout, form, flat=flat))
    return Sculpture(shape, skin, cutout.source, "relief" if flat else "inflate", warnings)


def _merge_parts(mask: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return one piece for a plaque: scattered parts, such as letters, stand on the whole frame."""
    _, _, stats, _ = cv2.connectedComponentsWithStats((mask > 0.5).astype(np.uint8), connectivity=8)
    areas = stats[1:, cv2.CC_STAT_AREA]
    return mask if areas.max() > 0.9 * areas.sum() else np.ones_like(mask)


def _find_light(colours: NDArray[np.uint8], cutout: Cutout, *, flat: bool) -> NDArray[np.float32]:
    """Return the relief, 0 to 1: brightness, or on a plain ground the distance from its colour."""
    ground = find_border_colour(colours) if flat and cutout.source != "alpha" else None
    if ground is None:
        return _find_brightness(colours)
    return np.clip(np.abs(colours.astype(np.float32) - ground).max(axis=2) / 160, 0, 1).astype(np.float32)


def _find_brightness(colours: NDArray[np.uint8]) -> NDArray[np.float32]:
    return cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY).astype(np.float32) / np.float32(255)


def _warn(wish: ModelWish, cutout: Cutout, form: Form, *, flat: bool) -> Iterator[str]:
    if not cutout.segmented:
        yield "The segmenter's weights are missing: the subject was separated from its background by colour only."
    if cutout.source == "frame":
        yield "No subject could be separated from its background: the whole picture was used."
    if any(form.outline.cut):
        yield "The picture's edge cuts the subject: the model is flat there."
    if flat and wish.style == "auto":
        yield "The picture became a relief, not a round body."
    if not form.whole:
        yield "The face limit is too small for all parts of the subject: the smallest parts were left out."
    yield "Depth is estimated from the outline: parts that the picture does not show are invented."
