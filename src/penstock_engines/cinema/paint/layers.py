"""Layers of a scene: painted once, moved by the camera, and blended into the frame only where they show."""

import math
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import FAR, Lens, Moment
from penstock_engines.cinema.paint.brush import Brush, Picture

Frame: TypeAlias = NDArray[np.uint8]
"""Height x width x 3: blue, green, red."""
Mask: TypeAlias = NDArray[np.uint8]
"""Height x width: the opacity of each pixel."""


class Plane:
    """An element that is drawn into each frame, in front of everything drawn before."""

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw into the frame. Its lower rows may be cut off where nearer planes hide them."""
        raise NotImplementedError

    def hides(self, moment: Moment) -> int | None:
        """Return the first row below which everything behind is hidden, or None."""


def blend(frame: Frame, colour: Frame, cover: Mask) -> None:
    """Lay a premultiplied picture over an equally large part of a frame."""
    rest = cv2.cvtColor(cv2.bitwise_not(cover), cv2.COLOR_GRAY2BGR)
    cv2.multiply(frame, rest, dst=frame, scale=1 / 255)
    cv2.add(frame, colour, dst=frame)


def take_apart(picture: Picture) -> tuple[Frame, Mask]:
    """Return a picture's colours and its opacity."""
    colour = cv2.cvtColor(picture, cv2.COLOR_BGRA2BGR)
    return np.asarray(colour, np.uint8), np.asarray(cv2.extractChannel(picture, 3), np.uint8)


class Sheet:
    """An empty picture, as large as everything the camera ever sees of a layer at this depth."""

    def __init__(self, lens: Lens, depth: float) -> None:
        self.depth = depth
        self.lens = lens
        self.left, self.top, self.right, self.bottom = lens.reach(depth)
        self.unit = lens.view.unit
        width = math.ceil((self.right - self.left) * self.unit)
        height = math.ceil((self.bottom - self.top) * self.unit)
        self.brush = Brush(width, height, self.unit, (-self.left * self.unit, -self.top * self.unit))

    @property
    def picture(self) -> Picture:
        """The picture so far."""
        return self.brush.picture

    @property
    def columns(self) -> NDArray[np.float32]:
        """The x of each column of pixels, in units."""
        return (np.arange(self.picture.shape[1], dtype=np.float32) + 0.5) / np.float32(self.unit) + np.float32(
            self.left
        )

    @property
    def rows(self) -> NDArray[np.float32]:
        """The y of each row of pixels, in units."""
        return (np.arange(self.picture.shape[0], dtype=np.float32) + 0.5) / np.float32(self.unit) + np.float32(self.top)

    def row(self, y: float) -> int:
        """Return the row of pixels at a y, limited to the picture."""
        return min(max(0, round((y - self.top) * self.unit)), self.picture.shape[0])

    def column(self, x: float) -> int:
        """Return the column of pixels at an x, limited to the picture."""
        return min(max(0, round((x - self.left) * self.unit)), self.picture.shape[1])


class Layer(Plane):
    """A painted sheet. It may sway in the wind (`sway` is its slant) or bob up and down (in units)."""

    def __init__(
        self, sheet: Sheet, *, sway: float = 0.0, foot: float = 0.0, rhythm: float = 1.0, bob: float = 0.0
    ) -> None:
        self._bob = bob
        self._lens = sheet.lens
        self._depth = sheet.depth
        self._sway, self._foot, self._rhythm = sway, foot, rhythm
        picture = sheet.picture
        cover = np.ascontiguousarray(picture[..., 3])
        filled = picture.view(np.uint32)[..., 0] != 0
        down, across = filled.any(axis=1), filled.any(axis=0)
        self._top, self._bottom = _span(down)
        self._left, self._right = _span(across)
        solid = cover.min(axis=1) == 255
        self._solid = len(solid) - int((~solid[::-1]).argmax()) if not solid.all() else 0
        if not solid[-1] or sway or bob:
            self._solid = len(solid)
        crop = np.s_[self._top : self._bottom, self._left : self._right]
        self._origin = (-sheet.left * sheet.unit - self._left, -sheet.top * sheet.unit - self._top)
        self._spans = [(left - self._left, right - self._left) for left, right in _split(across)]
        # Moving is cheaper in two parts, scaling in one.
        self._warps = (self._lens.zooms and self._depth >= FAR) or bool(sway)
        nothing = picture[:1, :1]
        self._picture = np.ascontiguousarray(picture[crop] if self._warps else nothing)
        self._colour, self._cover = take_apart(np.ascontiguousarray(nothing if self._warps else picture[crop]))

    def hides(self, moment: Moment) -> int | None:
        """Return the row below which the layer is opaque everywhere."""
        scale, _, y = self._lens.project(self._depth, moment.shot)
        row = math.ceil((self._solid - self._top - self._origin[1]) * scale + y) + 1
        return row if self._solid < self._bottom and row < self._lens.view.height else None

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Blend the upper part, and copy the part that is opaque everywhere."""
        scale, x, y = self._lens.project(self._depth, moment.shot)
        y += self._bob * self._lens.view.unit * math.sin(moment.seconds * self._rhythm)
        x, y = x - self._origin[0] * scale, y - self._origin[1] * scale
        top = max(0, math.floor(y))
        bottom = min(frame.shape[0], math.ceil(y + (self._bottom - self._top) * scale))
        extra = math.ceil(1.5 * self._sway * self._lens.view.unit) + 2 if self._sway else 0
        for start, end in self._spans:
            left = max(0, math.floor(x + start * scale) - extra)
            right = min(frame.shape[1], math.ceil(x + end * scale) + extra)
            if left < right and top < bottom:
                self._draw_part(frame, (left, top, right, bottom), (scale, x, y), moment)

    def _draw_part(
        self, frame: Frame, box: tuple[int, int, int, int], place: tuple[float, float, float], moment: Moment
    ) -> None:
        left, top, right, bottom = box
        solid = min(bottom, max(top, math.ceil((self._solid - self._top) * place[0] + place[2]) + 1))
        if top < solid:
            colour, cover = self._sample(left, top, right, solid, place, moment)
            blend(frame[top:solid, left:right], colour, cover)
        if solid < bottom:
            colour, _ = self._sample(left, solid, right, bottom, place, moment)
            frame[solid:bottom, left:right] = colour

    def _sample(
        self, left: int, top: int, right: int, bottom: int, place: tuple[float, float, float], moment: Moment
    ) -> tuple[Frame, Mask]:
        """Return the part of the layer behind these pixels of the frame."""
        scale, x, y = place
        size = (right - left, bottom - top)
        if not self._warps:
            centre = (left - x + (size[0] - 1) / 2, top - y + (size[1] - 1) / 2)
            colour = cv2.getRectSubPix(self._colour, size, centre)
            return np.asarray(colour, np.uint8), np.asarray(cv2.getRectSubPix(self._cover, size, centre), np.uint8)
        foot = (self._foot * self._lens.view.unit) + self._origin[1]
        lean = self._lean(moment.seconds) / scale
        half = (scale - 1) / 2
        turn = np.array([[scale, -lean * scale, x - left + half + lean * foot * scale], [0, scale, y - top + half]])
        warped = np.asarray(cv2.warpAffine(self._picture, turn, size, flags=cv2.INTER_LINEAR), np.uint8)
        return take_apart(warped)

    def _lean(self, seconds: float) -> float:
        """Return the layer's shear: two waves that never quite repeat."""
        wave = math.sin(seconds * 1.7 * self._rhythm + self._depth * 9) + 0.5 * math.sin(seconds * 2.9 * self._rhythm)
        return self._sway * wave


def _span(filled: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first and the end index of the filled part, one wider on each side for soft edges."""
    if not filled.any():
        return 0, 0
    return max(0, int(filled.argmax()) - 1), min(len(filled), len(filled) - int(filled[::-1].argmax()) + 1)


def _split(filled: NDArray[np.bool_], gap: int = 60) -> list[tuple[int, int]]:
    """Return the filled stretches that are more than a gap apart, each one wider on both sides."""
    where = np.flatnonzero(filled)
    if len(where) == 0:
        return []
    breaks = np.flatnonzero(np.diff(where) > gap)
    starts, ends = where[np.r_[0, breaks + 1]], where[np.r_[breaks, len(where) - 1]]
    return [(max(0, int(start) - 1), min(len(filled), int(end) + 2)) for start, end in zip(starts, ends, strict=True)]
