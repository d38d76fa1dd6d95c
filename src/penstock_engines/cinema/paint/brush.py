"""Paints anti-aliased shapes on a transparent picture. Coordinates are in units, y points down."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Picture: TypeAlias = NDArray[np.uint8]
"""Height x width x 4: blue, green, red, alpha. Colours are premultiplied by alpha."""
Point: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[int, int, int]
"""Red, green, blue: 0 to 255."""

SHIFT = 6  # fractional bits of a coordinate
TURN = np.linspace(0, 2 * np.pi, 48, endpoint=False)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)], axis=1)
ROUND = CIRCLE[::2]  # enough for the joint of a limb


class Brush:
    """A picture in the making. `origin` is the pixel position of (0, 0), `unit` the number of pixels in 1.0."""

    def __init__(self, width: int, height: int, unit: float, origin: Point = (0.0, 0.0)) -> None:
        self.picture: Picture = np.zeros((height, width, 4), np.uint8)
        self.matrix = np.eye(2) * unit
        self.origin = np.array(origin, np.float64)

    def moved(self, shift: Point = (0.0, 0.0), *, degrees: float = 0.0, scale: float | Point = 1.0) -> "Brush":
        """Return a brush on this picture with (0, 0) at `shift`, turned clockwise and scaled around it."""
        wide, high = scale if isinstance(scale, tuple) else (scale, scale)
        angle = np.radians(degrees)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        brush = copy(self)
        brush.origin = np.array(shift) @ self.matrix + self.origin
        brush.matrix = np.diag([wide, high]) @ turn @ self.matrix
        return brush

    @contextmanager
    def inside(self, points: Sequence[Point], *, straight: bool = False) -> Generator[None]:
        """Clip everything painted meanwhile to this shape (a blob, or a polygon if `straight`)."""
        outline = np.array(points, np.float64)
        corners = self._corners(outline if straight else smooth(outline))
        left, top, right, bottom = self._bounds(corners)
        whole, origin = self.picture, self.origin
        part = whole[top:bottom, left:right]
        self.picture, self.origin = part.copy(), origin - (left, top)
        yield
        painted, self.picture, self.origin = self.picture, whole, origin
        if not part.size:
            return
        mask = np.zeros(part.shape[:2], np.uint8)
        cv2.fillPoly(mask, [corners - np.array([left, top], np.int32) * (1 << SHIFT)], 255, cv2.LINE_8, SHIFT)
        cv2.copyTo(painted, mask, part)

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
        flat = CIRCLE * np.array(radii)
        angle = np.radians(degrees)
        rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        self._fill(flat @ rotation + np.array(centre), colour, opacity)

    def limb(self, points: Sequence[Point], widths: Sequence[float], colour: Colour, opacity: float = 1.0) -> None:
        """Draw a leg, branch or mast: a tapering line with round joints."""
        joints, radii = np.array(points, np.float64), np.array(widths, np.float64) / 2
        hulls = [
            cv2.convexHull(np.concatenate([start + ROUND * thick, end + ROUND * thin]).astype(np.float32))[:, 0]
            for start, end, thick, thin in zip(joints, joints[1:], radii, radii[1:], strict=False)
        ]
        for hull in hulls:
            self._fill(hull.astype(np.float64), colour, opacity)

    def ribbon(self, points: Sequence[Point], widths: Sequence[float], colour: Colour, opacity: float = 1.0) -> None:
        """Draw a tail, neck or rope: a limb that bends smoothly through its points."""
        joints = np.column_stack([np.array(points, np.float64), np.array(widths, np.float64) / 2])
        line = smooth(np.concatenate([joints[:1], joints, joints[-1:]]), 4)[4 : len(joints) * 4 + 1]
        ahead = np.gradient(line[:, :2], axis=0)
        length = np.maximum(np.hypot(ahead[:, 0], ahead[:, 1]), 1e-9)
        side = np.stack([-ahead[:, 1], ahead[:, 0]], axis=1) * (np.maximum(line[:, 2], 0) / length)[:, None]
        one, other = line[:, :2] + side, line[:, :2] - side
        if opacity < 1.0:
            self._fill(np.concatenate([one, other[::-1]]), colour, opacity)
            return
        # Piece by piece: a sharp bend overlaps itself, and one closed shape would get a hole there.
        red, green, blue = colour
        for piece in self._corners(np.stack([one[:-1], one[1:], other[1:], other[:-1]], axis=1)):
            cv2.fillConvexPoly(self.picture, piece, (blue, green, red, 255), cv2.LINE_AA, SHIFT)
        for x, y, radius in (line[0], line[-1]):
            self._fill(ROUND * radius + (x, y), colour, 1.0)

    def glow(self, centre: Point, radius: float, colour: Colour, strength: float = 1.0) -> None:
        """Draw light that fades out around a point."""
        x, y = np.array(centre) @ self.matrix + self.origin
        reach = radius * float(np.sqrt(abs(np.linalg.det(self.matrix))))
        height, width = self.picture.shape[:2]
        left, right = max(0, int(x - reach)), min(width, int(x + reach) + 2)
        top, bottom = max(0, int(y - reach)), min(height, int(y + reach) + 2)
        if left >= right or top >= bottom:
            return
        # Light is smooth, so a coarse picture of it is enough.
        across = np.linspace(left - x, right - 1 - x, min(right - left, 96), dtype=np.float32) / np.float32(reach)
        down = np.linspace(top - y, bottom - 1 - y, min(bottom - top, 96), dtype=np.float32) / np.float32(reach)
        near = np.maximum(1 - np.hypot(across[None, :], down[:, None]), 0) ** 2 * np.float32(strength)
        share = cv2.resize(near, (right - left, bottom - top), interpolation=cv2.INTER_LINEAR)
        red, green, blue = colour
        part = self.picture[top:bottom, left:right]
        pixel = np.array([blue, green, red, 255], np.uint8).view(np.uint32)
        paint = np.full(part.shape[:2], pixel[0]).view(np.uint8).reshape(part.shape)
        part[:] = cv2.blendLinear(part, paint, 1 - share, share)

    def _corners(self, points: NDArray[np.float64]) -> NDArray[np.int32]:
        return np.round((points @ self.matrix + self.origin) * (1 << SHIFT)).astype(np.int32)

    def _bounds(self, corners: NDArray[np.int32]) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom, in pixels, of everything that these corners can touch."""
        height, width = self.picture.shape[:2]
        low, high = corners.min(axis=0) >> SHIFT, (corners.max(axis=0) >> SHIFT) + 2
        return max(0, int(low[0]) - 1), max(0, int(low[1]) - 1), min(width, int(high[0])), min(height, int(high[1]))

    def _fill(self, points: NDArray[np.float64], colour: Colour, opacity: float) -> None:
        corners = self._corners(points)
        red, green, blue = colour
        paint = (blue, green, red, 255)
        if opacity >= 1.0:
            cv2.fillPoly(self.picture, [corners], paint, cv2.LINE_AA, SHIFT)
            return
        left, top, right, bottom = self._bounds(corners)
        if left >= right or top >= bottom:
            return
        part = self.picture[top:bottom, left:right]
        painted = part.copy()
        moved = corners - np.array([left, top], np.int32) * (1 << SHIFT)
        cv2.fillPoly(painted, [moved], paint, cv2.LINE_AA, SHIFT)
        part[:] = cv2.addWeighted(painted, opacity, part, 1 - opacity, 0)


def smooth(points: NDArray[np.float64], steps: int = 8) -> NDArray[np.float64]:
    """Return a closed curve through all the points (Catmull-Rom)."""
    around = np.concatenate([points[-1:], points, points[:2]])
    before, points, after, beyond = around[:-3], around[1:-2], around[2:-1], around[3:]
    t = (np.arange(steps) / steps)[None, :, None]
    a, b, c, d = (side[:, None, :] for side in (before, points, after, beyond))
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
    return curve.reshape(-1, points.shape[1])


def arc(start: Point, towards: Point, end: Point) -> list[Point]:
    """Return points of a curve that leaves `start` towards `towards` and arrives at `end` from there."""
    shares = [index / 10 for index in range(11)]
    return [
        (
            (1 - share) ** 2 * start[0] + 2 * share * (1 - share) * towards[0] + share**2 * end[0],
            (1 - share) ** 2 * start[1] + 2 * share * (1 - share) * towards[1] + share**2 * end[1],
        )
        for share in shares
    ]


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """Return a colour between two. `share` 0 is the first, 1 the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue
