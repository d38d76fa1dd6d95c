"""Finds bodies that a lathe could turn, such as a bottle, a vase or an apple, and gives them their full depth.

The evidence is the silhouette: one axis, the same distance to both sides of it in nearly every row, and nothing
beside it but handles, a spout or a nozzle. Of a flat thing with such a silhouette, light and shade decide.
"""

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Solid: TypeAlias = NDArray[np.bool_]
LEAST_BODY = 0.66  # of the area lies within the turned body; the rest is handles
MOST_ASIDE = 0.06  # of the area lies in rows that do not cross the axis, such as a leaf
MOST_LIMBS = 0.015  # of the area may stand on both sides of the body without touching it, as ears and arms do
WIDEST = 1.9  # times the height
LEAST_SHADE = 0.03  # difference of light across the middle; less is flat
MOST_UNEVEN = 0.06  # deviation of the light across the body from a smooth course; more is pillars or a dial
HANDLE_REACH = 0.14  # of the height, above and below the hole of a handle, where it joins the body
SMALLEST_HOLE = 8  # nodes
STEPS = 24


@dataclass(frozen=True, slots=True)
class Turned:
    """A body of revolution about a vertical axis. Lengths are in cells."""

    axis: float
    radius: NDArray[np.float32]
    """For each row of the grid, 0 where there is no body."""

    def raise_at(self, columns: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the height of the surface over each place."""
        wide = np.interp(rows.ravel(), np.arange(len(self.radius)), self.radius).reshape(rows.shape)
        return np.sqrt(np.maximum(wide * wide - (columns - self.axis) ** 2, 0)).astype(np.float32)

    def cover(self, solid: Solid) -> Solid:
        """Return the part of the silhouette that the body covers."""
        away = np.abs(np.arange(int(solid.shape[1]), dtype=np.float64) - self.axis)[None]
        return solid & (away <= self.radius[:, None] + 0.5)


def find_turned(solid: Solid, inside: NDArray[np.float32], light: NDArray[np.float32]) -> Turned | None:
    """Return the body that a lathe could turn, if this part of the picture shows one.

    `inside` is above 0 in the subject. Its zero is the silhouette, finer than the grid.
    """
    spans = np.flatnonzero(solid.any(axis=1))
    axis = _find_axis(solid)
    reach, central = _measure_reach(solid, inside, axis)
    area = np.count_nonzero(solid)
    aside = np.count_nonzero(solid[reach == 0])
    if aside > MOST_ASIDE * area or _count_limbs(solid, axis, central) > MOST_LIMBS * area:
        return None
    turned = Turned(axis, _smooth(_trim_handles(solid, axis, reach)))
    body = turned.cover(solid)
    if np.count_nonzero(body) < LEAST_BODY * area or 2 * reach.max() > WIDEST * len(spans):
        return None
    return turned if _is_shaded(turned, light) else None


def _find_axis(solid: Solid) -> float:
    """Return the column through the middle of most rows. Rows count by the width of their widest run."""
    middles: list[float] = []
    widths: list[int] = []
    for row in solid[solid.any(axis=1)]:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
        starts, ends = edges[::2], edges[1::2]
        widest = int(np.argmax(ends - starts))
        middles.append(float(starts[widest] + ends[widest] - 1) / 2)
        widths.append(int(ends[widest] - starts[widest]))
    order = np.argsort(middles)
    weight = np.cumsum(np.array(widths)[order])
    return float(np.array(middles)[order][np.searchsorted(weight, weight[-1] / 2)])


def _measure_reach(solid: Solid, inside: NDArray[np.float32], axis: float) -> tuple[NDArray[np.float32], Solid]:
    """Return how far each row is solid on both sides of the axis, and the run that crosses the axis."""
    middle = round(axis)
    left, right = solid[:, middle::-1], solid[:, middle:]
    steps = np.stack([np.cumprod(side, axis=1).sum(axis=1) for side in (left, right)])
    ends = [
        _find_edge(field, count)
        for field, count in zip((inside[:, middle::-1], inside[:, middle:]), steps, strict=True)
    ]
    reach = np.minimum(ends[0] - (middle - axis), ends[1] + (middle - axis))
    reach = np.where((steps > 0).all(axis=0), np.maximum(reach, 0.1), 0)
    places = np.arange(int(solid.shape[1]), dtype=np.int64)[None]
    central = (places > middle - steps[0][:, None]) & (places < middle + steps[1][:, None])
    return reach.astype(np.float32), solid & central


def _find_edge(field: NDArray[np.float32], count: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the distance at which each row of the field falls below 0, after so many nodes above it."""
    rows = np.arange(len(field))
    last = np.clip(count - 1, 0, field.shape[1] - 1)
    high, low = field[rows, last], field[rows, np.minimum(last + 1, field.shape[1] - 1)]
    fraction = np.where(low < 0, high / np.maximum(high - low, 1e-6), 0.5)
    return (last + np.clip(fraction, 0, 1)).astype(np.float32)


def _count_limbs(solid: Solid, axis: float, central: Solid) -> float:
    """Return the area of rows' outer runs that have a counterpart on the other side and enclose no hole."""
    outer = solid & ~central & _list_held(central)[:, None]
    middle = round(axis)
    both = _list_held(outer[:, :middle]) & _list_held(outer[:, middle:])
    reach = round(HANDLE_REACH * np.count_nonzero(solid.any(axis=1)))
    outer = outer & both[:, None] & ~_widen(_find_hole_rows(solid), reach)[:, None]
    return float(np.count_nonzero(outer))


def _list_held(solid: Solid) -> Solid:
    """Return the rows in which anything is solid."""
    return np.asarray(solid.any(axis=1), np.bool_)


def _find_hole_rows(solid: Solid) -> Solid:
    """Return the rows at the holes of handles."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats((~np.pad(solid, 1)).astype(np.uint8), connectivity=4)
    rows = np.zeros(len(solid), bool)
    for number in range(1, count):
        if number != labels[0, 0] and stats[number, cv2.CC_STAT_AREA] > SMALLEST_HOLE:
            top = int(stats[number, cv2.CC_STAT_TOP]) - 1
            rows[top : top + int(stats[number, cv2.CC_STAT_HEIGHT])] = True
    return rows


def _widen(rows: Solid, reach: int) -> Solid:
    return cv2.dilate(rows.astype(np.uint8)[:, None], np.ones((2 * reach + 1, 1), np.uint8))[:, 0] > 0


def _trim_handles(solid: Solid, axis: float, reach: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take away what handles add to the radius above and below their holes, where they join the body.

    A bump that is shorter than a handle's joint is cut off. Below handles on both sides the profile runs straight.
    """
    window = max(1, round(HANDLE_REACH * np.count_nonzero(solid.any(axis=1))))
    held = np.flatnonzero(reach)
    profile = reach[held[0] : held[-1] + 1, None]
    opened = reach.copy()
    kernel = np.ones((2 * window + 1, 1), np.uint8)
    opened[held[0] : held[-1] + 1] = cv2.morphologyEx(profile, cv2.MORPH_OPEN, kernel, borderType=cv2.BORDER_REPLICATE)[
        :, 0
    ]
    trimmed = np.where(_widen(_find_hole_rows(solid), window), np.minimum(reach, opened + 0.5), reach)
    middle = round(axis)
    left, right = solid.copy(), solid.copy()
    left[:, middle:], right[:, :middle] = True, True
    both = np.flatnonzero(_find_hole_rows(left) & _find_hole_rows(right) & (reach > 0))
    if len(both):
        last = int(both[-1])
        far = min(last + window, int(held[-1]))
        straight = np.linspace(float(trimmed[last]), float(reach[far]), far - last + 1)
        trimmed[last : far + 1] = np.minimum(reach[last : far + 1], straight)
    return trimmed.astype(np.float32)


def _smooth(reach: NDArray[np.float32]) -> NDArray[np.float32]:
    """Smooth the profile between its ends."""
    held = np.flatnonzero(reach)
    first, last = int(held[0]), int(held[-1]) + 1
    sigma = max(0.8, 0.01 * (last - first))
    radius = reach.copy()
    soft = cv2.GaussianBlur(reach[None, first:last], (0, 1), sigmaX=sigma, borderType=cv2.BORDER_REPLICATE)[0]
    away = np.minimum(np.arange(last - first), np.arange(last - first)[::-1])
    share = np.clip(away / (3 * sigma), 0, 1)  # the ends of a ball stay steep
    radius[first:last] = soft * share + reach[first:last] * (1 - share)
    return radius


def _is_shaded(turned: Turned, light: NDArray[np.float32]) -> bool:
    """Return whether light changes smoothly from side to side over most of the body, as it does on round things."""
    rows = np.flatnonzero(turned.radius > 0.35 * turned.radius.max())
    places = np.linspace(-0.85, 0.85, STEPS, dtype=np.float32)
    columns = (turned.axis + turned.radius[rows, None] * places).astype(np.float32)
    deep = np.repeat(rows[:, None], STEPS, axis=1).astype(np.float32)
    across = cv2.remap(light, columns, deep, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    course = np.median(across - across.mean(axis=1, keepdims=True), axis=0)
    uneven = float(np.std(course - np.polyval(np.polyfit(places, course, 2), places)))
    return float(np.ptp(course[STEPS // 6 : -STEPS // 6])) > LEAST_SHADE and uneven < MOST_UNEVEN
