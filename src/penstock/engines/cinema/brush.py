"""Paints anti-aliased shapes on a transparent picture; coordinates are in units, y points down."""

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Picture: TypeAlias = NDArray[np.uint8]
"""Height x width x 4: blue, green, red, alpha; colours are premultiplied by alpha."""
Point: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[int, int, int]
"""Red, green, blue: 0 to 255."""

SHIFT = 6  # fractional bits of a coordinate


class Brush:
    """A picture in the making. `origin` is where the point (0, 0) lies, `unit` how many pixels 1.0 is."""

    def __init__(self, width: int, height: int, unit: float, origin: Point = (0.0, 0.0)) -> None:
        self.picture: Picture = np.zeros((height, width, 4), np.uint8)
        self._unit = unit
        self._origin = np.array(origin, np.float64)

    def polygon(self, points: Sequence[Point], colour: Colour, opacity: float = 1.0) -> None:
        """Fill a closed shape with straight edges."""
        self._fill(np.array(points, np.float64), colour, opacity)

    def blob(self, points: Sequence[Point], colour: Colour, opacity: float = 1.0) -> None:
        """Fill a closed shape that runs smoothly through its points."""
        self._fill(smooth(np.array(points, np.float64)), colour, opacity)

    def ellipse(
        self, centre: Point, radii: Point, colour: Colour, opacity: float = 1.0, *, degrees: float = 0.0
    ) -> None:
        """Fill an ellipse."""
        turn = np.linspace(0, 2 * np.pi, 64, endpoint=False)
        flat = np.stack([np.cos(turn) * radii[0], np.sin(turn) * radii[1]], axis=1)
        angle = np.radians(degrees)
        rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        self._fill(flat @ rotation + np.array(centre), colour, opacity)

    def limb(self, points: Sequence[Point], widths: Sequence[float], colour: Colour) -> None:
        """A leg, branch or mast: a line that gets thicker or thinner, with round joints."""
        for (start, end), (thick, thin) in zip(itertools.pairwise(points), itertools.pairwise(widths), strict=True):
            along = np.subtract(end, start)
            length = float(np.hypot(*along)) or 1.0
            side = np.array([-along[1], along[0]]) / length / 2
            corners = np.array([start + side * thick, end + side * thin, end - side * thin, start - side * thick])
            self._fill(corners, colour, 1.0)
        for point, width in zip(points, widths, strict=True):
            self.ellipse(point, (width / 2, width / 2), colour)

    def glow(self, centre: Point, radius: float, colour: Colour, strength: float = 1.0) -> None:
        """Light that fades out around a point."""
        x, y = np.array(centre) * self._unit + self._origin
        reach = radius * self._unit
        height, width = self.picture.shape[:2]
        left, right = max(0, int(x - reach)), min(width, int(x + reach) + 2)
        top, bottom = max(0, int(y - reach)), min(height, int(y + reach) + 2)
        if left >= right or top >= bottom:
            return
        rows, columns = np.mgrid[top:bottom, left:right]
        near = np.clip(1 - np.hypot(columns - x, rows - y) / reach, 0, 1) ** 2 * strength
        self._blend(near.astype(np.float32), colour, left, top)

    def _fill(self, points: NDArray[np.float64], colour: Colour, opacity: float) -> None:
        corners = np.round((points * self._unit + self._origin) * (1 << SHIFT)).astype(np.int32)
        if opacity >= 1.0:
            red, green, blue = colour
            cv2.fillPoly(self.picture, [corners], (blue, green, red, 255), cv2.LINE_AA, SHIFT)
            return
        height, width = self.picture.shape[:2]
        low, high = corners.min(axis=0) >> SHIFT, (corners.max(axis=0) >> SHIFT) + 2
        left, top = max(0, int(low[0]) - 1), max(0, int(low[1]) - 1)
        right, bottom = min(width, int(high[0])), min(height, int(high[1]))
        if left >= right or top >= bottom:
            return
        mask = np.zeros((bottom - top, right - left), np.uint8)
        moved = corners - np.array([left, top], np.int32) * (1 << SHIFT)
        cv2.fillPoly(mask, [moved], 255, cv2.LINE_AA, SHIFT)
        self._blend(mask.astype(np.float32) * np.float32(opacity / 255), colour, left, top)

    def _blend(self, cover: NDArray[np.float32], colour: Colour, left: int, top: int) -> None:
        """Lay a colour over a part of the picture, as much of it as `cover` says."""
        red, green, blue = colour
        part = self.picture[top : top + cover.shape[0], left : left + cover.shape[1]]
        paint = np.array([blue, green, red, 255], np.float32)
        share = cover[..., None]
        part[:] = np.round(part * (1 - share) + paint * share)


def smooth(points: NDArray[np.float64], steps: int = 8) -> NDArray[np.float64]:
    """A closed curve through all the points (Catmull-Rom)."""
    before, after, beyond = np.roll(points, 1, axis=0), np.roll(points, -1, axis=0), np.roll(points, -2, axis=0)
    t = np.linspace(0, 1, steps, endpoint=False)[None, :, None]
    a, b, c, d = (side[:, None, :] for side in (before, points, after, beyond))
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
    return curve.reshape(-1, 2)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """A colour between two: `share` 0 is the first, 1 the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue
