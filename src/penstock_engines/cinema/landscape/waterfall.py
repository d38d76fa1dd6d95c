"""A waterfall: streaks that run down a wall of rock in an endless loop."""

import math

import cv2
import numpy as np

from penstock_engines.cinema.camera import Lens, Moment
from penstock_engines.cinema.paint.brush import mix
from penstock_engines.cinema.paint.layers import Frame, Plane, blend
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.patterns import Randomness, make_noise, soften


class Cascade(Plane):
    """A waterfall in the middle of the picture, between a top and a bottom line in units."""

    def __init__(
        self, lens: Lens, light: Light, random: Randomness, *, depth: float, top: float, bottom: float, width: float
    ) -> None:
        self._lens = lens
        self._depth = depth
        self._box = (top, bottom, width)
        unit = lens.view.unit
        rows, columns = math.ceil((bottom - top) * unit * 1.3), math.ceil(width * unit * 1.3)
        self._rows = rows
        streaks = make_noise(random, rows, columns, (3, 22), 4)
        bright, dark = (
            np.array(tone[::-1], np.float32)
            for tone in (light.shade((250, 253, 255)), mix(light.shade((130, 180, 206)), light.middle, 0.3))
        )
        colour = dark + (bright - dark) * soften(streaks, 0.25, 0.75)[..., None]
        self._colour = np.concatenate([colour, colour]).astype(np.uint8)
        across = np.linspace(-1, 1, columns, dtype=np.float32)[None]
        edge = make_noise(random, rows, columns, (6, 3), 3) * np.float32(0.35)
        down = np.linspace(0, 1, rows, dtype=np.float32)[:, None]
        cover = soften(1.05 - np.abs(across) / (0.8 + 0.2 * down) - edge, 0, 0.2) * soften(down, 0, 0.02)
        self._cover = (cover * 245).astype(np.uint8)

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Move the streaks, shape them by the outline and blend."""
        scale, x, y = self._lens.project(self._depth, moment.shot)
        unit = self._lens.view.unit * scale
        top, bottom, width = self._box
        turn = np.array(
            [
                [width * unit / self._cover.shape[1], 0, x - width * unit / 2],
                [0, (bottom - top) * unit / self._rows, y + top * unit],
            ],
            np.float32,
        )
        left, right = max(0, math.floor(turn[0, 2])), min(frame.shape[1], math.ceil(turn[0, 2] + width * unit))
        first, last = max(0, math.floor(turn[1, 2])), min(frame.shape[0], math.ceil(y + bottom * unit))
        if left >= right or first >= last:
            return
        turn[:, 2] -= (left, first)
        offset = self._rows - round(moment.seconds * 0.55 * unit) % self._rows
        falling = self._colour[offset : offset + self._rows]
        shaped = cv2.multiply(falling, cv2.cvtColor(self._cover, cv2.COLOR_GRAY2BGR), scale=1 / 255)
        size = (right - left, last - first)
        colour, cover = (cv2.warpAffine(part, turn, size, flags=cv2.INTER_LINEAR) for part in (shaped, self._cover))
        blend(frame[first:last, left:right], np.asarray(colour, np.uint8), np.asarray(cover, np.uint8))
