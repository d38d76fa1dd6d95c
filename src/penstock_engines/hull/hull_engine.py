"""Makes a textured GLB of pictures of a subject's sides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2

from penstock_engines.hull.carving import carve
from penstock_engines.hull.covering import cover
from penstock_engines.hull.views import View, open_view
from penstock_engines.inflate.shape.decimation import decimate
from penstock_engines.inflate.shape.mesh import smooth
from penstock_engines.mesh.remesh_engine import draw_preview
from penstock_engines.mesh.writing.glb_file import write_glb
from penstock_engines.product import Product, ReportProgress

ENGINE = "penstock inflate-views-1"
USUAL_FACES = 12_000
ROUNDS = 8
"""Of smoothing, which evens out the rows."""
NATURE = "The shape has the outlines of the pictures. Hollows that no outline shows are filled."
UNSEEN = "No picture shows the subject from the left or the right: its depth is estimated."
UNSEEN_BACK = "No picture shows the back: it has the colours of the front's rim."
DIFFERENT = "The outlines of the pictures `{}` and `{}` differ: the shape follows `{}`."
ALIKE = 0.8
"""Share of two opposite outlines that must be common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsWish:
    """A request for a model of views. `pictures` has a front and at least one more side, by name."""

    pictures: Mapping[str, Path]
    face_limit: int | None
    texture: bool
    pbr: bool
    seed: int


def make_model_of_views(wish: ViewsWish, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write `model.glb` and `preview.png` into the folder."""
    cv2.setNumThreads(1)
    views: dict[str, View] = {}
    for number, (side, path) in enumerate(wish.pictures.items(), start=1):
        views[side] = open_view(path, side, weights)
        report(0.4 * number / len(wish.pictures))
    surface = decimate(smooth(carve(views), rounds=ROUNDS), wish.face_limit or USUAL_FACES)
    report(0.7)
    solid = cover(surface, views, texture=wish.texture)
    path = folder / "model.glb"
    write_glb(solid, path, ENGINE)
    report(0.9)
    return Product(path, draw_preview(solid, folder), wish.seed, tuple(_warn(wish, views)))


def _warn(wish: ViewsWish, views: Mapping[str, View]) -> Iterator[str]:
    yield NATURE
    if not {"left", "right"} & set(views):
        yield UNSEEN
    if "back" not in views and wish.texture:
        yield UNSEEN_BACK
    for side, other in (("front", "back"), ("right", "left")):
        if side in views and other in views and _compare(views[side], views[other].mirrored()) < ALIKE:
            yield DIFFERENT.format(side, other, side)
    if wish.pbr:
        yield "`pbr` adds no maps here: roughness is one number for the whole model."


def _compare(one: View, other: View) -> float:
    """Return the common share of two outlines."""
    first, second = (view.outline(64, 64) for view in (one, other))
    return float((first & second).sum() / max(1, int((first | second).sum())))
