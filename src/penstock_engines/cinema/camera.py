"""The camera: its position at each moment, and the resulting position of a layer in the frame."""

import math
from dataclasses import dataclass

from penstock_engines.cinema.script import Camera, Script


@dataclass(frozen=True, slots=True)
class View:
    """The frame. Places are painted in units around the middle of the horizon: x to the right, y down."""

    width: int
    height: int
    horizon: int
    """The pixel row of the horizon. The camera never moves it."""

    @property
    def unit(self) -> float:
        """Pixels per unit: the frame's height, but less in a tall frame, so that things fit its width."""
        return min(self.height, self.width * 4 / 3)

    @property
    def half(self) -> float:
        """Distance from the middle to the right edge."""
        return self.width / 2 / self.unit

    @property
    def top(self) -> float:
        """Distance from the horizon to the upper edge, as a negative number."""
        return -self.horizon / self.unit

    @property
    def bottom(self) -> float:
        """Distance from the horizon to the lower edge."""
        return (self.height - self.horizon) / self.unit


@dataclass(frozen=True, slots=True)
class Shot:
    """The camera's position: units to the right and up, and its approach."""

    right: float
    up: float
    near: float


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant of the clip. `seconds` follows the script's pace, `progress` runs from 0 to 1."""

    index: int
    progress: float
    seconds: float
    shot: Shot


FAR = 0.05
"""Layers below this depth do not grow visibly when the camera approaches, so they are not scaled."""

# Start and end of each movement: right, up, near.
MOVES: dict[Camera, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    Camera.STILL: ((0, 0, 0), (0, 0, 0)),
    Camera.PAN_LEFT: ((0.17, 0, 0), (-0.17, 0, 0)),
    Camera.PAN_RIGHT: ((-0.17, 0, 0), (0.17, 0, 0)),
    Camera.PUSH_IN: ((0, 0, 0), (0, 0, 0.24)),
    Camera.PULL_OUT: ((0, 0, 0.24), (0, 0, 0)),
    Camera.RISE: ((0, -0.05, 0), (0, 0.11, 0)),
    Camera.DESCEND: ((0, 0.11, 0), (0, -0.05, 0)),
}


class Lens:
    """The camera's path through a clip."""

    def __init__(self, script: Script, view: View, frames: int, fps: int) -> None:
        self.view = view
        self._frames = frames
        self._fps = fps
        self._pace = script.pace
        # A short clip gets a shorter path, or its camera would rush.
        reach = min(1.0, math.sqrt(frames / fps / 6)) * min(1.4, math.sqrt(script.pace))
        start, end = MOVES[script.camera]
        self._start = tuple(reach * part for part in start)
        self._end = tuple(reach * part for part in end)
        self.zooms = self._start[2] != self._end[2]

    def look(self, index: int) -> Moment:
        """Return the moment of a frame, with the camera's position."""
        progress = index / max(1, self._frames - 1)
        return Moment(index, progress, index / self._fps * self._pace, self._aim(progress, index / self._fps))

    def _aim(self, progress: float, seconds: float) -> Shot:
        eased = 0.6 * progress * progress * (3 - 2 * progress) + 0.4 * progress
        right, up, near = (a + (b - a) * eased for a, b in zip(self._start, self._end, strict=True))
        # Even a steady hand moves a little.
        right += 0.006 * math.sin(seconds * 0.9)
        up += 0.004 * math.sin(seconds * 1.3 + 1)
        return Shot(right, up, near)

    def project(self, depth: float, shot: Shot) -> tuple[float, float, float]:
        """Return a layer's scale and the pixel position of the horizon's middle. Depth 0 is infinity, 1 is near."""
        unit = self.view.unit
        right = self.view.width / 2 - shot.right * depth * unit
        scale = 1 + shot.near * depth if depth >= FAR else 1.0
        return scale, right, self.view.horizon + shot.up * depth * unit

    def reach(self, depth: float) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom, in units, of everything that the frame ever shows of a layer."""
        view, shots = self.view, [self._aim(step / 8, second) for step in range(9) for second in (0.5, 1.7, 3.0, 5.2)]
        boxes: list[tuple[float, float, float, float]] = []
        for shot in shots:
            scale, x, y = self.project(depth, shot)
            size = scale * view.unit
            boxes.append((-x / size, -y / size, (view.width - x) / size, (view.height - y) / size))
        margin = 0.01 + 0.03 * depth
        left, top = (min(box[side] for box in boxes) - margin for side in (0, 1))
        right, bottom = (max(box[side] for box in boxes) + margin for side in (2, 3))
        return left, top, right, bottom
