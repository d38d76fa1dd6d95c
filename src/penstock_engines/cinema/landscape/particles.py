"""Small things in the air: fireflies, petals, leaves, embers, bubbles, dust, confetti, lanterns and fireworks."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Moment, View
from penstock_engines.cinema.paint.brush import Brush, Colour, mix
from penstock_engines.cinema.paint.layers import Frame, Plane
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.patterns import Randomness
from penstock_engines.cinema.paint.splat import Numbers, lay_picture, place_picture, shine, splat
from penstock_engines.cinema.scene import Scene
from penstock_engines.cinema.script import Particles


@dataclass(frozen=True, slots=True)
class Drift:
    """The look and movement of a kind of particle. Lengths are in units, speeds in units a second."""

    count: int
    size: tuple[float, float]
    colours: tuple[Colour, ...]
    right: float = 0.0
    down: float = 0.0
    swing: float = 0.02
    rhythm: float = 1.0
    soft: float = 0.5
    strength: float = 1.0
    glows: bool = False
    pulse: float = 0.0
    """Strength of its pulsing light."""


DRIFTS: dict[Particles, Drift] = {
    Particles.FIREFLIES: Drift(
        46, (0.003, 0.006), ((230, 255, 120), (255, 240, 140)), 0.01, -0.006, 0.05, 0.9, 0.8, 1.0, glows=True, pulse=1.0
    ),
    Particles.EMBERS: Drift(
        90,
        (0.0015, 0.0042),
        ((255, 170, 60), (255, 110, 40), (255, 220, 120)),
        0.03,
        -0.16,
        0.03,
        2.2,
        0.7,
        1.0,
        glows=True,
        pulse=0.5,
    ),
    Particles.BUBBLES: Drift(60, (0.003, 0.012), ((225, 245, 255),), 0.0, -0.12, 0.015, 2.0, 0.35, 0.45),
    Particles.DUST: Drift(110, (0.0012, 0.0032), ((255, 246, 220),), 0.02, 0.005, 0.03, 0.7, 0.9, 0.55, pulse=0.5),
}
SNOWFALL = Drift(520, (0.0016, 0.0066), ((250, 252, 255),), -0.04, 0.15, 0.02, 1.3, 0.75, 0.9)
GUST = Drift(70, (0.0012, 0.003), ((250, 246, 230),), 0.75, 0.02, 0.02, 2.6, 0.8, 0.6)


class Swarm(Plane):
    """Round particles, each at its own depth. Near ones are larger and faster."""

    def __init__(self, view: View, random: Randomness, drift: Drift, *, wind: float = 1.0) -> None:
        count = round(drift.count * max(0.6, view.width * view.height / view.unit**2 / 1.78))
        self._view, self._drift, self._wind = view, drift, wind
        self._near = (random.random(count) ** 1.6).astype(np.float32)
        self._start = random.random((2, count)).astype(np.float32)
        self._turn = random.uniform(0, 6.28, (2, count)).astype(np.float32)
        self._rhythm = (drift.rhythm * random.uniform(0.6, 1.4, count)).astype(np.float32)
        low, high = drift.size
        self._size = ((low + (high - low) * self._near) * view.unit).astype(np.float32)
        tones = np.array(drift.colours, np.float32)
        self._colour = tones[random.integers(len(tones), size=count)]

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Move all particles and draw them together."""
        drift, view, t = self._drift, self._view, moment.seconds
        pace = 0.35 + 0.65 * self._near
        wave = np.sin(t * self._rhythm + self._turn[0]) * drift.swing
        rise = np.sin(t * self._rhythm * 0.7 + self._turn[1]) * drift.swing * 0.5
        wide, high = view.width / view.unit + 0.1, view.height / view.unit + 0.1
        right = self._start[0] * wide + drift.right * self._wind * pace * t + wave - moment.shot.right * self._near
        down = self._start[1] * high + drift.down * pace * t + rise + moment.shot.up * self._near
        x = (right % wide - 0.05) * view.unit
        y = (down % high - 0.05) * view.unit
        power = 1 - drift.pulse * (0.5 + 0.5 * np.sin(t * self._rhythm * 1.7 + self._turn[1]))
        strength = (drift.strength * power * (0.55 + 0.45 * self._near)).astype(np.float32)
        if drift.glows:
            splat(frame, x, y, self._size * 4.5, self._colour, strength * np.float32(0.3), soft=1.0, adds=True)
        splat(frame, x, y, self._size, self._colour, strength, soft=drift.soft, adds=drift.glows)


PAPERS: dict[Particles, tuple[tuple[Colour, ...], float, float, float]] = {
    # Colours, size, speed of falling, and speed in the wind.
    Particles.PETALS: (((255, 190, 214), (255, 214, 228), (250, 160, 196)), 0.011, 0.075, 0.08),
    Particles.LEAVES: (((224, 122, 40), (200, 70, 44), (238, 180, 60), (160, 96, 50)), 0.015, 0.11, 0.1),
    Particles.CONFETTI: (
        ((255, 80, 100), (80, 180, 255), (255, 214, 70), (120, 230, 130), (210, 110, 255)),
        0.009,
        0.2,
        0.02,
    ),
}


class Papers(Plane):
    """Flat particles that tumble as they fall."""

    def __init__(self, view: View, light: Light, random: Randomness, kind: Particles) -> None:
        colours, size, fall, blow = PAPERS[kind]
        count = round((150 if kind is Particles.CONFETTI else 64) * max(0.6, view.width / view.unit / 1.78))
        self._view, self._fall, self._blow = view, fall, blow * light.wind
        self._near = np.sort(random.random(count) ** 1.3)
        self._start = random.random((count, 2))
        self._turn = random.uniform(0, 6.28, (count, 3))
        self._size = size * view.unit * (0.5 + 0.9 * self._near)
        self._colours = [
            light.shade(colours[int(pick)], 0.25 * (1 - near))
            for pick, near in zip(random.integers(len(colours), size=count), self._near, strict=True)
        ]
        turns = np.linspace(0, 2 * math.pi, 10, endpoint=False)
        square = [(-1, -0.6), (1, -0.6), (1, 0.6), (-1, 0.6)]
        leaf = [(math.cos(turn) * (1 if abs(math.sin(turn)) < 0.9 else 0.8), math.sin(turn) * 0.55) for turn in turns]
        self._shape = np.array(square if kind is Particles.CONFETTI else leaf)

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw each particle as a small polygon."""
        t, unit = moment.seconds, self._view.unit
        wide, high = self._view.width / unit + 0.1, self._view.height / unit + 0.1
        for number, near in enumerate(self._near):
            a, b, c = self._turn[number]
            pace = 0.5 + 0.7 * near
            x = (
                self._start[number, 0] * wide
                + self._blow * pace * t
                + 0.03 * math.sin(t * 1.3 + a)
                - moment.shot.right * near
            )
            y = self._start[number, 1] * high + self._fall * pace * t + 0.012 * math.sin(t * 1.9 + b)
            spin, flip = t * (0.8 + 0.4 * math.sin(c)) + a, math.cos(t * (1.6 + math.sin(b)) + c)
            shape = self._shape * np.array([1.0, 0.25 + 0.75 * abs(flip)]) * self._size[number]
            turned = shape @ np.array([[math.cos(spin), math.sin(spin)], [-math.sin(spin), math.cos(spin)]])
            where = np.array([float(x) % wide - 0.05, float(y) % high - 0.05]) * unit
            corners = np.asarray(np.round((turned + where) * 16), np.int32)
            red, green, blue = mix(self._colours[number], (255, 255, 255), 0.16 * max(0.0, flip))
            cv2.fillConvexPoly(frame, corners, (blue, green, red), cv2.LINE_AA, 4)


class Lanterns(Plane):
    """Paper lanterns that rise into the sky."""

    def __init__(self, view: View, random: Randomness) -> None:
        self._view = view
        count = round(26 * max(0.6, view.width / view.unit / 1.78))
        self._near = np.sort(random.random(count) ** 1.5)
        self._start = random.random((count, 3))
        size = round(0.085 * view.unit)
        brush = Brush(size * 2, size * 2, size, (size, size))
        brush.glow((0, 0), 0.95, (255, 150, 60), 0.5)
        brush.blob([(-0.24, -0.32), (0.24, -0.32), (0.3, 0.0), (0.2, 0.34), (-0.2, 0.34), (-0.3, 0.0)], (250, 150, 70))
        brush.blob(
            [(-0.14, -0.2), (0.14, -0.2), (0.18, 0.1), (0.12, 0.32), (-0.12, 0.32), (-0.18, 0.1)], (255, 206, 120)
        )
        brush.ellipse((0, 0.3), (0.13, 0.06), (255, 246, 210))
        self._picture = brush.picture
        self._middle = (float(size), float(size))

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw the lanterns, far ones first."""
        t, unit = moment.seconds, self._view.unit
        wide, high = self._view.width / unit + 0.2, self._view.height / unit + 0.2
        for near, (a, b, c) in zip(self._near, self._start, strict=True):
            x = (a * wide + 0.015 * t + 0.012 * math.sin(t * 0.8 + c * 6) - moment.shot.right * near) % wide - 0.1
            y = (b * high - (0.02 + 0.035 * near) * t + moment.shot.up * near) % high - 0.1
            scale = 0.22 + 0.6 * near
            tilt = 5 * math.sin(t * 0.9 + c * 9)
            lay_picture(
                frame, *place_picture(self._picture, self._middle, x * unit, y * unit, scale=scale, degrees=tilt)
            )


class Fireworks(Plane):
    """Bursts of sparks in the sky."""

    def __init__(self, view: View, random: Randomness, seconds: float) -> None:
        self._view = view
        count = max(3, round(seconds * 1.7))
        self._when = np.sort(random.uniform(-0.6, max(1.0, seconds - 0.4), count))
        self._where = np.stack(
            [random.uniform(0.12, 0.88, count) * view.width, random.uniform(0.12, 0.5, count) * view.horizon], axis=1
        )
        self._size = random.uniform(0.14, 0.26, count) * view.unit
        hues = np.array(
            [(255, 90, 110), (110, 190, 255), (255, 214, 110), (150, 255, 170), (230, 130, 255)], np.float32
        )
        self._hue = hues[random.integers(len(hues), size=count)]
        turns, reach = random.uniform(0, 6.28, 90), np.sqrt(random.uniform(0.25, 1, 90))
        self._way = np.stack([np.cos(turns) * reach, np.sin(turns) * reach], axis=1)

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw the bursts. Each opens fast, then sinks and fades."""
        for when, where, size, hue in zip(self._when, self._where, self._size, self._hue, strict=True):
            age = moment.seconds - float(when)
            if not 0 <= age < 2.0:
                continue
            red, green, blue = (int(part) for part in hue)
            shine(
                frame,
                float(where[0]),
                float(where[1]),
                float(size) * 1.5,
                (red, green, blue),
                0.55 * max(0.0, 1 - age / 0.7),
            )
            for trail in range(5):
                self._draw_sparks(frame, age - trail * 0.045, where, float(size), hue, 1 - trail * 0.2)

    def _draw_sparks(
        self, frame: Frame, age: float, where: NDArray[np.float64], size: float, hue: Numbers, share: float
    ) -> None:
        if age <= 0:
            return
        spread = 1 - math.exp(-age * 3.2)
        x = (where[0] + self._way[:, 0] * size * spread).astype(np.float32)
        y = (where[1] + self._way[:, 1] * size * spread + 0.22 * size * age**2).astype(np.float32)
        fade = max(0.0, 1 - age / 2.0) ** 0.9 * share
        white = max(0.0, 1 - age * 2.2)
        colour = np.repeat((hue * (1 - white) + 255 * white)[None], len(x), axis=0).astype(np.float32)
        radius = np.full(len(x), self._view.unit * 0.0036 * (0.5 + 0.5 * share), np.float32)
        splat(frame, x, y, radius, colour, np.full(len(x), fade, np.float32), soft=0.9, adds=True)


def add_particles(scene: Scene, kind: Particles, seconds: float) -> None:
    """Put particles before the scene. Fireworks go far behind, so that roofs hide and water mirrors them."""
    view, random = scene.view, scene.random
    makers: dict[Particles, Callable[[], Papers | Lanterns | Swarm]] = {
        Particles.LANTERNS: lambda: Lanterns(view, random),
        **{paper: lambda paper=paper: Papers(view, scene.light, random, paper) for paper in PAPERS},
        **{swarm: lambda swarm=swarm: Swarm(view, random, DRIFTS[swarm], wind=scene.light.wind) for swarm in DRIFTS},
    }
    if kind is Particles.FIREWORKS:
        scene.insert(1, Fireworks(view, random, seconds))
    elif kind is not Particles.NONE:
        scene.add(makers[kind]())
