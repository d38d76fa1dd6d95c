"""Mist: banks of fog that slide through a scene between two heights."""

import math

import cv2
import numpy as np

from penstock_engines.cinema.camera import Moment, View
from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.paint.layers import Frame, Plane, blend, take_apart
from penstock_engines.cinema.paint.patterns import Randomness, make_noise, soften

COARSE = 8


class Mist(Plane):
    """A band of fog, thickest in its middle, that moves from right to left in an endless loop."""

    def __init__(
        self,
        view: View,
        random: Randomness,
        colour: Colour,
        *,
        top: float,
        bottom: float,
        strength: float = 0.6,
        speed: float = 0.03,
        even: float = 0.35,
    ) -> None:
        self._first = max(0, view.horizon + round(top * view.unit))
        self._last = min(view.height, view.horizon + round(bottom * view.unit))
        coarse = max(2, round(COARSE * view.unit / 720))
        self._width = -(-view.width // coarse) + 1
        rows = max(2, -(-(self._last - self._first) // coarse))
        self._coarse = coarse
        field = soften(make_noise(random, rows, self._width * 2, (3, 7), 4), 0.15, 0.85)
        share = np.linspace(0, 1, rows, dtype=np.float32)[:, None]
        full = np.sin(share * np.pi).clip(0) ** 0.8 if bottom < view.bottom - 0.01 else soften(share, 0, 0.5)
        cover = (even + (1 - even) * field) * full * np.float32(strength)
        paint = np.array([*colour[::-1], 255], np.float32)
        picture = cover[..., None] * paint + (random.random((rows, self._width * 2, 1), np.float32) - 0.5)
        whole = np.clip(picture + 0.5, 0, 255).astype(np.uint8)
        self._picture = np.concatenate([whole, whole[:, : self._width + 2]], axis=1)
        self._speed = speed * view.unit / coarse

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Move, enlarge and blend the band."""
        part = frame[self._first : self._last]
        if part.shape[0] == 0:
            return
        offset = (moment.seconds * self._speed + moment.shot.right * 20) % (self._width * 2)
        whole = math.floor(offset)
        turn = np.array([[1, 0, whole - offset], [0, 1, 0]], np.float32)
        rows = self._picture.shape[0]
        source = self._picture[:, whole : whole + self._width + 1]
        moved = cv2.warpAffine(
            source, turn, (self._width, rows), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        size = (self._width * self._coarse, self._last - self._first)
        large = np.asarray(cv2.resize(moved, size, interpolation=cv2.INTER_LINEAR), np.uint8)
        piece = large[: part.shape[0], : part.shape[1]]
        blend(part, *take_apart(piece))
