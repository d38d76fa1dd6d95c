"""Soft moving lights (sun beams, spotlights, aurora, caustics, fire glow), painted small and enlarged."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Moment, View
from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.paint.layers import Frame, Plane
from penstock_engines.cinema.paint.patterns import Randomness, soften

Field: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Grid:
    """The x and y of the small picture's pixels in units around the middle of the horizon."""

    x: Field
    y: Field


Glow: TypeAlias = Callable[[Grid, float], Field]
"""Takes a grid and a time in seconds, and returns the light to add: height x width x 3, red, green, blue."""


class SoftLight(Plane):
    """Adds light to the frame. `coarse` is the frame pixels per small pixel, `depth` the depth of the source."""

    def __init__(
        self, view: View, glow: Glow, *, coarse: int = 8, top: float = -9, bottom: float = 9, depth: float = 0.0
    ) -> None:
        self._glow, self._depth = glow, depth
        self._first = max(0, view.horizon + int(top * view.unit))
        self._last = min(view.height, view.horizon + int(bottom * view.unit))
        coarse = max(2, round(coarse * view.unit / 720))
        self._size = (-(-view.width // coarse), max(2, -(-(self._last - self._first) // coarse)))
        columns = (np.arange(self._size[0], dtype=np.float32) + 0.5) / self._size[0] * view.width - view.width / 2
        rows = (np.arange(self._size[1], dtype=np.float32) + 0.5) / self._size[1] * (self._last - self._first)
        y = (rows + self._first - view.horizon) / view.unit
        self._grid = Grid((columns / view.unit)[None].astype(np.float32), y[:, None].astype(np.float32))

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Paint the light of this moment, enlarge it and add it."""
        if frame.shape[0] <= self._first:
            return
        shot, depth = moment.shot, self._depth
        scale = np.float32(1 / (1 + shot.near * depth))
        moved = Grid(
            (self._grid.x + np.float32(shot.right * depth)) * scale,
            (self._grid.y - np.float32(shot.up * depth)) * scale,
        )
        light = np.clip(self._glow(moved, moment.seconds), 0, 255)
        small = np.zeros((*light.shape[:2], 4), np.uint8)
        small[..., :3] = light[..., ::-1] + np.float32(0.5)
        large = cv2.resize(small, (frame.shape[1], self._last - self._first), interpolation=cv2.INTER_LINEAR)
        part = frame[self._first : self._last]
        cv2.add(part, cv2.cvtColor(large[: part.shape[0]], cv2.COLOR_BGRA2BGR), dst=part)


def paint_beams(
    origin: tuple[float, float], colour: Colour, strength: float, random: Randomness, reach: float = 1.4
) -> Glow:
    """Return rays that fan out from a point and slowly change."""
    phases = random.uniform(0, 6.28, 4)
    tone = np.array(colour, np.float32) * np.float32(strength)

    def glow(grid: Grid, seconds: float) -> Field:
        across, down = grid.x - np.float32(origin[0]), grid.y - np.float32(origin[1])
        angle = np.arctan2(across, np.abs(down) + np.float32(0.02))
        rays = np.sin(angle * 9 + phases[0] + seconds * 0.12) + np.sin(angle * 17 + phases[1] - seconds * 0.2)
        rays += np.sin(angle * 29 + phases[2] + seconds * 0.27) * np.float32(0.7)
        far = np.hypot(across, down) / np.float32(reach)
        fade = np.clip(1 - far, 0, 1) * np.clip(far * 6, 0, 1)
        return ((soften(rays, -0.6, 2.4) * fade)[..., None] * tone).astype(np.float32)

    return glow


def paint_aurora(random: Randomness, strength: float) -> Glow:
    """Return curtains of green and violet light."""
    phases = random.uniform(0, 6.28, 9)

    def glow(grid: Grid, seconds: float) -> Field:
        total = np.zeros((grid.y.shape[0], grid.x.shape[1], 3), np.float32)
        for curtain in range(3):
            a, b, c = phases[curtain * 3 : curtain * 3 + 3]
            wave = 0.06 * np.sin(grid.x * 2.6 + a + seconds * 0.16) + 0.035 * np.sin(grid.x * 6.3 + b - seconds * 0.23)
            foot = wave - 0.16 - 0.1 * curtain
            above = foot - grid.y
            folds = 0.62 + 0.38 * np.sin(grid.x * 23 + 5 * wave * 20 + c + seconds * 0.5) * np.sin(
                grid.x * 9 - seconds * 0.31 + a
            )
            body = np.exp(np.minimum(-above * 5.5, above * 34)) * folds
            high = np.clip(above * 3.2, 0, 1)[..., None]
            colour = np.array([40, 235, 150], np.float32) * (1 - high) + np.array([150, 70, 220], np.float32) * high
            total += body[..., None].astype(np.float32) * colour * np.float32(strength * (0.75 - 0.17 * curtain))
        return total

    return glow


def paint_spotlights(lamps: tuple[tuple[float, float, Colour], ...], floor: float, strength: float = 1.0) -> Glow:
    """Return cones of light from lamps (x, y, colour) that sweep a floor."""

    def glow(grid: Grid, seconds: float) -> Field:
        total = np.zeros((grid.y.shape[0], grid.x.shape[1], 3), np.float32)
        for number, (x, y, colour) in enumerate(lamps):
            swing = 0.5 * math.sin(seconds * (0.7 + 0.13 * number) + number * 1.9) - x * 0.5
            down = grid.y - np.float32(y)
            centre = x + swing * down
            wide = 0.012 + 0.16 * down
            cone = np.exp(-(((grid.x - centre) / wide) ** 2) * 2.2) * np.clip(down * 40, 0, 1)
            cone *= 0.75 / (0.6 + down * 1.5)
            pool = np.exp(-(((grid.x - x - swing * (floor - y)) / 0.2) ** 2) - ((grid.y - floor) / 0.05) ** 2)
            beat = 0.8 + 0.2 * math.sin(seconds * 6.3 + number)
            total += ((cone + pool * 0.9) * beat * strength)[..., None].astype(np.float32) * np.array(
                colour, np.float32
            )
        return total

    return glow


def paint_flicker(lamps: tuple[tuple[float, float, float, Colour], ...], strength: float = 1.0) -> Glow:
    """Return fires and lava (x, y, radius, colour), each flickering in its own rhythm."""

    def glow(grid: Grid, seconds: float) -> Field:
        total = np.zeros((grid.y.shape[0], grid.x.shape[1], 3), np.float32)
        for number, (x, y, radius, colour) in enumerate(lamps):
            beat = 0.82 + 0.1 * math.sin(seconds * 7.1 + number * 2) + 0.08 * math.sin(seconds * 12.7 + number)
            near = np.exp(-(((grid.x - x) ** 2 + (grid.y - y) ** 2) / (radius * radius)))
            total += (near * beat * strength)[..., None].astype(np.float32) * np.array(colour, np.float32)
        return total

    return glow


def paint_caustics(colour: Colour, strength: float, random: Randomness, top: float) -> Glow:
    """Return the net of light that waves throw, on the ground below a line."""
    phases = random.uniform(0, 6.28, 6)
    tone = np.array(colour, np.float32) * np.float32(strength)

    def glow(grid: Grid, seconds: float) -> Field:
        near = np.clip((grid.y - np.float32(top)) * 4, 0, 1)
        x, y = grid.x * 14 / (0.6 + near), grid.y * 46 / (0.6 + near)
        one = np.abs(np.sin(x + 1.3 * np.sin(y * 0.6 + phases[0] + seconds * 0.9) + phases[1]))
        two = np.abs(np.sin(y * 0.8 + 1.6 * np.sin(x * 0.7 + phases[2] - seconds * 0.7) + phases[3]))
        return ((1 - np.minimum(one, two)) ** 7 * near)[..., None].astype(np.float32) * tone

    return glow


def paint_ribbons(colours: tuple[Colour, ...], random: Randomness) -> Glow:
    """Return bands of light that flow across the frame."""
    phases = random.uniform(0, 6.28, (len(colours), 3))
    slants = random.uniform(-0.25, 0.25, len(colours))

    def glow(grid: Grid, seconds: float) -> Field:
        total = np.zeros((grid.y.shape[0], grid.x.shape[1], 3), np.float32)
        for number, colour in enumerate(colours):
            a, b, c = phases[number]
            flow = 0.16 * np.sin(grid.x * 2.1 + a + seconds * 0.5) + 0.09 * np.sin(grid.x * 4.7 + b - seconds * 0.37)
            middle = flow + slants[number] * grid.x + (number - len(colours) / 2 + 0.5) * 0.09
            wide = 0.03 + 0.022 * np.sin(grid.x * 3 + c + seconds * 0.4)
            off = (grid.y - middle) / wide
            body = np.exp(-(off**2)) * 0.5 + np.exp(-np.abs(off) * 0.55) * 0.22
            total += body[..., None].astype(np.float32) * np.array(colour, np.float32)
        return total

    return glow
