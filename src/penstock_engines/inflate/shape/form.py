"""Turns the mask into a closed surface with at most the allowed number of faces."""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.shape.decimation import decimate
from penstock_engines.inflate.shape.inflation import InflationMode, emboss
from penstock_engines.inflate.shape.mesh import Surface, join, sew_sheets, smooth
from penstock_engines.inflate.shape.outline import Outline, lay_grid
from penstock_engines.inflate.shape.solids import raise_solids
from penstock_engines.inflate.subject.parts import keep_parts

FACES_PER_PART = 24
COARSEST, FINEST = 96, 640


@dataclass(frozen=True, slots=True)
class Form:
    """A surface, the grid it was made on, and whether it holds the whole subject."""

    surface: Surface
    outline: Outline
    mask: NDArray[np.float32]
    whole: bool


def shape_form(
    mask: NDArray[np.float32],
    light: NDArray[np.float32],
    manner: InflationMode,
    limit: int,
    *,
    flat: bool,
    closed: bool,
) -> Form:
    """Give the subject its depth, or emboss it if `flat`.

    With few faces small parts are dropped, then only the hull is kept.
    """
    fineness = float(np.clip(2.0 * np.sqrt(limit), COARSEST, FINEST))
    for attempt in _simplify_mask(mask, limit):
        outline = lay_grid(attempt, fineness, closed=closed)
        lit = outline.sample(light)
        raised = [sew_sheets(outline, emboss(outline, lit, manner))] if flat else raise_solids(outline, lit, manner)
        surface = decimate(smooth(join(raised)), limit)
        if len(surface.faces) <= limit:
            return Form(surface, outline, attempt, whole=attempt is mask)
    message = f"a hull cannot have more than {limit} faces"
    raise AssertionError(message)


def guess_faces(mask: NDArray[np.float32], light: NDArray[np.float32]) -> int:
    """Return the number of faces that suits the subject's detail: 8,000 for an egg, 30,000 for a crowd."""
    detail = np.abs(light - cv2.GaussianBlur(light, (0, 0), 6.0))[mask > 0.5]
    solid = (mask > 0.5).astype(np.uint8)
    edge = float(np.count_nonzero(cv2.morphologyEx(solid, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))))
    winding = edge / (7 * float(np.sqrt(solid.sum())))  # about 1 for a disc
    return int(np.clip(6000 + 200_000 * float(detail.mean()) + 2500 * winding, 8000, 30_000))


def _simplify_mask(mask: NDArray[np.float32], limit: int) -> Iterator[NDArray[np.float32]]:
    yield keep_parts(mask, max(1, limit // FACES_PER_PART))
    yield keep_parts(mask, 1)
    yield _fill_hull(mask)


def _fill_hull(mask: NDArray[np.float32]) -> NDArray[np.float32]:
    points = cv2.findNonZero((mask > 0.5).astype(np.uint8))
    filled = np.zeros(mask.shape, np.uint8)
    cv2.fillConvexPoly(filled, cv2.convexHull(points), 1)
    return filled.astype(np.float32)
