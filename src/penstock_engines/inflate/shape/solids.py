"""Gives each part of the subject its depth: turned on a lathe, built as furniture, or else inflated."""

from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.shape.furniture import BACKREST, Furniture, Leg, find_furniture
from penstock_engines.inflate.shape.inflation import InflationMode, Sheets, inflate, round_off
from penstock_engines.inflate.shape.lathe import Solid, Turned, find_turned
from penstock_engines.inflate.shape.mesh import Surface, sew_sheets
from penstock_engines.inflate.shape.outline import Outline

SMALLEST_PART = 0.04  # of the subject; a smaller one is inflated
SWAY = 0.16  # share of the seed's variation that solids of known proportions take
HANDLE_DEPTH = 1.15  # times half its thickness
TURNED_RELIEF, BUILT_RELIEF = 0.4, 0.5  # of the relief that an inflated part has
BEVEL = 0.035  # of the size
OVERLAP = 3  # rows that hind legs reach into the seat
LEAST_LEG, MOST_LEG = 0.1, 0.4  # of half the depth


def raise_solids(outline: Outline, light: NDArray[np.float32], manner: InflationMode) -> list[Surface]:
    """Return closed surfaces: one for all that is seen, and one for each leg behind."""
    sheets = inflate(outline, light, manner)
    behind: list[Surface] = []
    count, labels, stats, _ = cv2.connectedComponentsWithStats((outline.inside > 0).astype(np.uint8), connectivity=8)
    least = SMALLEST_PART * np.count_nonzero(labels)
    whole = range(1, count) if not any(outline.cut) else ()  # a part that the frame cuts shows too little of its shape
    for number in whole:
        solid = labels == number
        if stats[number, cv2.CC_STAT_AREA] < least:
            continue
        if (turned := find_turned(solid, outline.inside, light)) is not None:
            sheets = _turn(outline, sheets, solid, turned, manner)
        elif (furniture := find_furniture(solid)) is not None:
            sheets = _build(outline, sheets, solid, furniture, manner)
            behind += [_set_hind_leg(outline, sheets, furniture, leg, manner) for leg in furniture.hind_legs]
            outline = _take_away(outline, [leg.solid for leg in furniture.hind_legs if leg not in furniture.front_legs])
    return [sew_sheets(outline, sheets), *behind]


def _sway(manner: InflationMode) -> float:
    return 1 + SWAY * (manner.puffiness - 1)


def _split(sheets: Sheets, manner: InflationMode) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the height of the balloon, and the relief upon its front."""
    height = (-sheets.back / np.float32(manner.back)).astype(np.float32)
    return height, (sheets.front - height).astype(np.float32)


def _turn(outline: Outline, sheets: Sheets, solid: Solid, turned: Turned, manner: InflationMode) -> Sheets:
    """Replace the balloon by the turned body. Handles and the like stay balloons, as thick as they are wide."""
    balloon, relief = _split(sheets, manner)
    body = turned.raise_at(sheets.columns, sheets.rows) * np.float32(_sway(manner))
    height = np.maximum(body, np.minimum(balloon, _limit_aside(outline, solid & ~turned.cover(solid))))
    front = np.maximum(height + TURNED_RELIEF * relief, 0.3 * height)
    return replace(sheets, front=np.where(solid, front, sheets.front), back=np.where(solid, -height, sheets.back))


def _limit_aside(outline: Outline, aside: Solid) -> NDArray[np.float32]:
    """Return the greatest height of a balloon: by its thickness for a part beside the body, else a thin rest."""
    limit = np.ones(aside.shape, np.float32)
    count, labels = cv2.connectedComponents(aside.astype(np.uint8), connectivity=8)
    for number in range(1, count):
        part = labels == number
        limit[part] = max(1.0, HANDLE_DEPTH * float(np.percentile(outline.depth[part], 85)))
    return limit


def _build(outline: Outline, sheets: Sheets, solid: Solid, furniture: Furniture, manner: InflationMode) -> Sheets:
    """Replace the balloon by boxes with round edges: backrest, seat and front legs."""
    half = furniture.half * _sway(manner)
    rows = np.indices(solid.shape, np.float32)[0]
    thick = np.full(solid.shape, half, np.float32)
    middle = np.zeros(solid.shape, np.float32)
    above = rows < furniture.seat
    thick[above], middle[above] = BACKREST * half, (BACKREST - 1) * half
    for leg in (*furniture.hind_legs, *furniture.front_legs):
        thick[leg.solid] = _thicken_leg(leg, half)
        middle[leg.solid] = half - _thicken_leg(leg, half)
    _, relief = _split(sheets, manner)
    raised = _place_box(outline, sheets, middle, thick)
    return replace(
        sheets,
        front=np.where(solid, raised.front + BUILT_RELIEF * relief, sheets.front),
        back=np.where(solid, raised.back, sheets.back),
        middle=np.where(solid, raised.middle, sheets.middle),
    )


def _place_box(outline: Outline, sheets: Sheets, middle: NDArray[np.float32], thick: NDArray[np.float32]) -> Sheets:
    """Raise a box of half the thickness `thick` about `middle`, its edges rounded."""
    width = BEVEL * outline.size
    edge = np.minimum(width * (1 - round_off(outline.depth, width)), 0.5 * thick)
    half = (thick - edge).astype(np.float32)
    return replace(sheets, front=middle + half, back=middle - half, middle=middle)


def _set_hind_leg(outline: Outline, sheets: Sheets, furniture: Furniture, leg: Leg, manner: InflationMode) -> Surface:
    """Build a leg at the back. One that perspective shortens is stretched to the ground."""
    half = furniture.half * _sway(manner)
    thick = np.full(leg.solid.shape, _thicken_leg(leg, half), np.float32)
    box = _place_box(outline, sheets, thick - np.float32(half), thick)
    solid = leg.solid.copy()
    floor = furniture.floor
    solid[max(0, floor - OVERLAP) : floor] |= leg.solid[floor]
    inside = np.where(solid, outline.inside, np.minimum(outline.inside, -0.5)).astype(np.float32)
    surface = sew_sheets(replace(outline, inside=inside), box)
    ground = max(front.end for front in furniture.front_legs)
    stretch = (ground - floor + 1) / max(1, leg.end - floor + 1)
    level = surface.points[:, 1] + floor
    surface.points[:, 1] = np.where(level < 0, level * stretch, level) - floor
    return surface


def _thicken_leg(leg: Leg, half: float) -> float:
    return float(np.clip(leg.half, LEAST_LEG * half, MOST_LEG * half))


def _take_away(outline: Outline, parts: list[Solid]) -> Outline:
    """Return the outline without these parts."""
    gone = np.logical_or.reduce([np.zeros(outline.inside.shape, bool), *parts])
    return replace(outline, inside=np.where(gone, np.minimum(outline.inside, -0.5), outline.inside).astype(np.float32))
