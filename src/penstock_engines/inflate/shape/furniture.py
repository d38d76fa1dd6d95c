"""Finds furniture, such as a chair, a table or a sofa, and gives it the depth of a room's things.

The evidence is the silhouette: level and upright edges, and two or more legs below a wide part. What is narrower
above that part is a backrest and stands at the back.
"""

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Solid: TypeAlias = NDArray[np.bool_]
MOSTLY_STRAIGHT, PARTLY_STRAIGHT = 0.78, 0.55  # of the outline runs level or upright
SYMMETRICAL = 0.88  # overlap with its mirror image
NARROWEST = 0.45  # of the height; a person is narrower
SMALLEST = 24  # cells
STRAIGHT = np.tan(np.radians(14))
WIDE = 0.84  # of the full width; the seat, the table top or the arms of a sofa
LOWEST_LEGS, HIGHEST_LEGS = 0.03, 0.92  # of the height
LOWEST_BACKREST = 0.12
DEEP_FOR_WIDTH, DEEP_FOR_HEIGHT = 0.9, 0.8
BACKREST = 0.2  # of the depth
LEVEL = 0.04  # of the height: legs that end so much above the others are hind legs in perspective


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """A leg, with half its thickness, and the row it ends at."""

    solid: Solid
    half: float
    end: int


@dataclass(frozen=True, slots=True)
class Furniture:
    """A piece of furniture by rows of the grid: a backrest above the seat, and legs below it."""

    half: float
    """Half of the depth, in cells."""
    seat: int
    floor: int
    """The first row of the legs."""
    front_legs: tuple[Leg, ...]
    hind_legs: tuple[Leg, ...]


def find_furniture(solid: Solid) -> Furniture | None:
    """Return the parts of a piece of furniture, if the silhouette looks like one."""
    rows, columns = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    height, width = len(rows), int(columns[-1] - columns[0]) + 1
    filled = solid.sum(axis=1) / width
    wide = np.flatnonzero(filled > WIDE)
    if not len(wide) or min(height, width) < SMALLEST or not _is_made(solid[:, columns[0] : columns[-1] + 1]):
        return None
    floor = _find_floor(solid, int(wide[-1]), width)
    legs = _find_legs(solid, floor)
    tall = (int(rows[-1]) + 1 - floor) / height
    if len(legs) < 2 or not LOWEST_LEGS < tall < HIGHEST_LEGS:
        return None
    lowest = max(leg.end for leg in legs)
    front = tuple(leg for leg in legs if leg.end >= lowest - LEVEL * height)
    hind = tuple(leg for leg in legs if leg.end < lowest - LEVEL * height)
    half = min(DEEP_FOR_WIDTH * width, DEEP_FOR_HEIGHT * height) / 2
    return Furniture(half, _find_seat(filled, int(rows[0]), int(wide[0]), height), floor, front, hind or front)


def _is_made(solid: Solid) -> bool:
    """Return whether level and upright edges prevail, or are many and the whole is symmetrical."""
    straight = _measure_straight(solid)
    if straight >= MOSTLY_STRAIGHT:
        return True
    mirrored = solid[:, ::-1]
    overlap = np.count_nonzero(solid & mirrored) / np.count_nonzero(solid | mirrored)
    height = np.count_nonzero(solid.any(axis=1))
    return bool(straight > PARTLY_STRAIGHT and overlap > SYMMETRICAL and solid.shape[1] > NARROWEST * height)


def _find_floor(solid: Solid, last: int, width: int) -> int:
    """Return the first row below the wide part in which legs stand apart."""
    for row in range(last + 1, len(solid)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], solid[row].astype(np.int8), [0]])))
        if len(edges) > 2 and int((edges[1::2] - edges[::2]).max()) < 0.5 * width:
            return row
    return last + 1


def _find_seat(filled: NDArray[np.float64], top: int, first: int, height: int) -> int:
    """Return the row below a waist, else the first wide row, else the top if hardly anything is above it."""
    waist = np.flatnonzero(filled[top:first] < 0.5)
    waist = waist[waist > LOWEST_BACKREST * height]
    seat = top + int(waist[-1]) + 1 if len(waist) else first
    return seat if seat - top > LOWEST_BACKREST * height else top


def _find_legs(solid: Solid, floor: int) -> list[Leg]:
    below = solid.copy()
    below[:floor] = False
    count, labels, stats, _ = cv2.connectedComponentsWithStats(below.astype(np.uint8), connectivity=8)
    least = 0.02 * np.count_nonzero(solid.any(axis=0)) ** 2 * 0.05
    legs: list[Leg] = []
    for number in range(1, count):
        leg = labels == number
        high = int(stats[number, cv2.CC_STAT_HEIGHT])
        if stats[number, cv2.CC_STAT_AREA] > least and high > 2:
            thick = stats[number, cv2.CC_STAT_AREA] / high
            legs.append(Leg(leg, float(thick) / 2, int(stats[number, cv2.CC_STAT_TOP]) + high - 1))
    return legs


def _measure_straight(solid: Solid) -> float:
    """Return the share of the outline, holes included, that runs level or upright."""
    found, _ = cv2.findContours(solid.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    straight = total = 0.0
    allowed = 0.012 * float(np.sqrt(np.count_nonzero(solid)))
    for contour in found:
        corners = cv2.approxPolyDP(contour, max(1.0, allowed), closed=True)[:, 0].astype(np.float64)
        steps = np.abs(np.roll(corners, -1, axis=0) - corners)
        lengths = np.hypot(steps[:, 0], steps[:, 1])
        straight += float(lengths[steps.min(axis=1) <= STRAIGHT * steps.max(axis=1)].sum())
        total += float(lengths.sum())
    return straight / max(total, 1.0)
