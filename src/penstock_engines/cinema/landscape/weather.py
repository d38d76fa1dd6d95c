"""Weather before the camera: rain with splashes, lightning, snow, fog and gusts."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Moment, View
from penstock_engines.cinema.landscape.mist import Mist
from penstock_engines.cinema.landscape.particles import GUST, SNOWFALL, Swarm
from penstock_engines.cinema.paint.brush import mix
from penstock_engines.cinema.paint.layers import Frame, Plane
from penstock_engines.cinema.paint.patterns import Randomness
from penstock_engines.cinema.paint.splat import shine
from penstock_engines.cinema.scene import Scene
from penstock_engines.cinema.script import Weather


class Rain(Plane):
    """A near fast and a far slow sheet of streaks that loop."""

    def __init__(self, view: View, random: Randomness, *, heavy: float, slant: float) -> None:
        self._slant = slant
        unit = view.unit
        # Count, length, brightness and speed in frame heights a second.
        kinds = ((420, 0.05, 42, 1.5), (170, 0.1, 62, 2.4))
        self._sheets = [
            (self._paint(view, random, round(count * heavy), length * unit, bright), speed * unit)
            for count, length, bright, speed in kinds
        ]

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw the streaks at whole pixels, which is fine enough at their speed."""
        height, width = frame.shape[:2]
        for sheet, speed in self._sheets:
            rows, columns = sheet.shape[0] // 2, sheet.shape[1] // 2
            fallen = moment.seconds * speed
            top, left = round(-fallen) % rows, round(fallen * self._slant) % columns
            part = sheet[top : top + height, left : left + width]
            cv2.add(frame, cv2.cvtColor(np.ascontiguousarray(part), cv2.COLOR_GRAY2BGR), dst=frame)

    def _paint(self, view: View, random: Randomness, count: int, length: float, bright: int) -> NDArray[np.uint8]:
        tile = np.zeros((view.height, view.width), np.uint8)
        thick = max(1, round(view.unit / 720))
        for x, y, share in random.random((count, 3)):
            start = (x * view.width, y * view.height)
            long = length * (0.6 + 0.6 * share)
            for right in (0, view.width, -view.width):
                for down in (0, -view.height):
                    a = (round((start[0] + right) * 8), round((start[1] + down) * 8))
                    b = (a[0] - round(long * self._slant * 8), a[1] + round(long * 8))
                    cv2.line(tile, a, b, (int(bright * (0.5 + 0.5 * share)),), thick, cv2.LINE_AA, 3)
        return np.tile(tile, (2, 2))


class Splashes(Plane):
    """Rings of drops on the ground."""

    def __init__(self, view: View, random: Randomness, top: float, tone: tuple[int, int, int]) -> None:
        self._view, self._top, self._tone = view, top, tone
        self._where = random.random((70, 3))

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw rings that grow for a quarter of a second, then start elsewhere."""
        view = self._view
        red, green, blue = self._tone
        for x, y, start in self._where:
            turn, age = divmod(moment.seconds / 0.32 + start * 7, 1)
            down = self._top + (view.bottom - self._top) * ((y + turn * 0.618) % 1)
            row = view.horizon + down * view.unit
            if row >= frame.shape[0]:
                continue
            near = 0.3 + 0.7 * down / view.bottom
            size = (0.003 + 0.014 * age) * near * view.unit
            column = ((x + turn * 0.414) % 1) * view.width
            fade = 1 - age
            under = frame[int(row), min(view.width - 1, int(column))]
            colour = [
                float(low + (high - low) * 0.55 * fade)
                for low, high in zip(under.tolist(), (blue, green, red), strict=True)
            ]
            centre, axes = (round(column * 8), round(row * 8)), (round(size * 8), round(size * 2.6))
            cv2.ellipse(frame, centre, axes, 0, 0, 360, colour, 1, cv2.LINE_AA, 3)


class Lightning(Plane):
    """Distant bolts that light up the whole picture for a moment."""

    def __init__(self, view: View, random: Randomness, seconds: float) -> None:
        self._view = view
        count = max(1, round(seconds / 1.1))
        slots = (np.arange(count) + random.uniform(0.3, 0.6, count)) * seconds / count
        self._when = [float(slot) for slot in slots]
        self._bolts = [self._branch(random, random.uniform(0.15, 0.85) * view.width) for _ in self._when]

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw the bolt while it lasts."""
        for when, bolt in zip(self._when, self._bolts, strict=True):
            power = flash(moment.seconds - when)
            if power > 0.15:
                main, *twigs = (np.round(line * 16).astype(np.int32) for line in bolt)
                x, y = bolt[0][len(bolt[0]) // 2]
                shine(frame, float(x), float(y), self._view.unit * 0.6, (150, 160, 230), 0.7 * power)
                tone = (255, int(215 + 30 * power), int(200 + 50 * power))
                thick = max(2, round(self._view.unit / 180))
                cv2.polylines(frame, [main], isClosed=False, color=tone, thickness=thick, lineType=cv2.LINE_AA, shift=4)
                thin = max(1, thick // 2)
                cv2.polylines(frame, twigs, isClosed=False, color=tone, thickness=thin, lineType=cv2.LINE_AA, shift=4)

    def light_up(self, frame: Frame, moment: Moment) -> None:
        """Brighten the whole frame."""
        power = max((flash(moment.seconds - when) for when in self._when), default=0.0)
        if power > 0.02:
            cv2.convertScaleAbs(frame, dst=frame, alpha=1 + 0.5 * power, beta=18 * power)

    def _branch(self, random: Randomness, x: float) -> list[NDArray[np.float64]]:
        """Return the points of a bolt and of its twigs."""
        steps = 14
        y = np.linspace(-5, self._view.horizon, steps)
        main = np.stack([x + np.cumsum(random.uniform(-1, 1, steps)) * self._view.unit * 0.028, y], axis=1)
        twigs: list[NDArray[np.float64]] = []
        for start, side in ((4, 1), (7, -1), (9, 1)):
            reach = np.arange(5) * side * self._view.unit * random.uniform(0.012, 0.03)
            bend = np.cumsum(random.uniform(-0.5, 0.5, 5)) * self._view.unit * 0.02
            twigs.append(
                np.stack([main[start, 0] + reach + bend - bend[0], y[start] + (y[1] - y[0]) * np.arange(5)], axis=1)
            )
        return [main, *twigs]


def flash(age: float) -> float:
    """Return the brightness of a bolt: two beats, then dark."""
    if not 0 <= age < 0.6:
        return 0.0
    return math.exp(-age * 6) if age < 0.16 else 0.85 * math.exp(-(age - 0.16) * 5)


class Flash(Plane):
    """The light of the bolts on everything."""

    def __init__(self, lightning: Lightning) -> None:
        self._lightning = lightning

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Brighten the frame."""
        self._lightning.light_up(frame, moment)


def add_weather(scene: Scene, seconds: float) -> None:
    """Put the script's weather into the scene. Indoors it shows only through the window."""
    view, random, light, weather = scene.view, scene.random, scene.light, scene.script.weather
    if not scene.outdoors:
        return
    if weather is Weather.STORM:
        lightning = Lightning(view, random, seconds)
        scene.insert(1, lightning)
        scene.add(Flash(lightning))
    if weather in (Weather.RAIN, Weather.STORM):
        scene.add(Splashes(view, random, max(0.04, scene.floor.far), mix(light.air, (255, 255, 255), 0.35)))
        scene.add(
            Rain(
                view,
                random,
                heavy=0.8 if weather is Weather.RAIN else 1.5,
                slant=0.12 if weather is Weather.RAIN else 0.38,
            )
        )
    if weather is Weather.SNOW:
        scene.add(Swarm(view, random, SNOWFALL))
    if weather is Weather.WIND:
        scene.add(Swarm(view, random, GUST))
    if weather is Weather.FOG:
        tone = mix(light.air, light.horizon, 0.5)
        scene.insert(
            scene.actors_at or len(scene.planes),
            Mist(view, random, tone, top=-0.2, bottom=0.3, strength=0.5, speed=0.03),
        )
        scene.add(Mist(view, random, tone, top=0.0, bottom=9, strength=0.5, speed=0.05, even=0.15))
