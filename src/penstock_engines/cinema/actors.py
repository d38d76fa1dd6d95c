"""Actors on the stage, lit by the scene, with shadow, wake, smoke and lamps."""

import math
from dataclasses import replace
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Moment
from penstock_engines.cinema.paint.brush import Colour, Picture, mix
from penstock_engines.cinema.paint.layers import Frame, Plane
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.splat import SPOT, lay_picture, place_picture, shine, splat
from penstock_engines.cinema.paths import LEAN, Part, Path, Pose, choose_path, stays_on_ground
from penstock_engines.cinema.scene import Scene, Surface
from penstock_engines.cinema.subjects import STEPS, Habitat, Motion, Sprite, draw_step

Factors: TypeAlias = NDArray[np.float64]
"""Factors for blue, green, red and alpha."""


class Wardrobe:
    """Pictures of a role's loop in the light of the scene. Each is drawn and lit once."""

    def __init__(self, scene: Scene, part: Part, *, drawn: float, colour: Colour | None) -> None:
        self.pixels = max(8, round(drawn * scene.view.unit))
        self._subject, self._colour = part.subject, colour
        self._key, self._haze, self._rim = _light_sprite(scene.light, part)
        right_of_middle = scene.sun[0] > scene.view.width / 2
        self.flips = part.ahead < 0 and part.subject.motion is not Motion.CLIMB and part.subject.turns
        self._sun_right = right_of_middle != self.flips
        self._ready: dict[int, Sprite] = {}

    def pick(self, phase: float) -> Sprite:
        """Return the picture at a phase of the loop."""
        every = STEPS // self._subject.steps
        step = round(phase * self._subject.steps) % self._subject.steps * every
        if step not in self._ready:
            raw = draw_step(self._subject, step, self.pixels, self._colour)
            x, y, width, height = cv2.boundingRect(np.ascontiguousarray(raw.picture[..., 3]))
            cut = np.ascontiguousarray(raw.picture[y : y + height, x : x + width])
            self._ready[step] = Sprite(self._illuminate(cut), (raw.anchor[0] - x, raw.anchor[1] - y))
        return self._ready[step]

    def _illuminate(self, picture: Picture) -> Picture:
        """Apply the scene's light and air, and a bright edge towards the sun."""
        cover = np.ascontiguousarray(picture[..., 3])
        lit = cv2.multiply(picture, self._key)
        air = cv2.multiply(cv2.cvtColor(cover, cv2.COLOR_GRAY2BGRA), self._haze)
        lit = cv2.add(lit, air)
        reach = max(1, round(self.pixels / 70))
        behind = np.zeros_like(cover)
        if self._sun_right:
            behind[reach:, :-reach] = cover[:-reach, reach:]
        else:
            behind[reach:, reach:] = cover[:-reach, :-reach]
        edge = cv2.multiply(cv2.cvtColor(cv2.subtract(cover, behind), cv2.COLOR_GRAY2BGRA), self._rim)
        lit = cv2.add(lit, edge)
        lit[..., 3] = cover
        return np.asarray(lit, np.uint8)


class Actor(Plane):
    """One subject on its way. `depth` is the depth of the layer it stands on."""

    def __init__(
        self,
        scene: Scene,
        part: Part,
        wardrobe: Wardrobe,
        *,
        depth: float,
        path: Path | None = None,
        carried: bool = False,
    ) -> None:
        """Put an actor on its own path, or on one that its leader gives. One that is carried throws no shadow."""
        self.part, self.path, self.depth = part, path or choose_path(part), depth
        self._wardrobe = wardrobe
        self._lens, self._light = scene.lens, scene.light
        self._pixels = wardrobe.pixels
        self._scale = part.height * scene.view.unit / self._pixels
        self._sun_side = 1 if scene.sun[0] > scene.view.width / 2 else -1
        self._shadow = _paint_shadow(scene.light) if stays_on_ground(part) and not carried else None
        smoke = np.array([*scene.light.shade((238, 234, 234))[::-1], 255], np.float32)
        self._puff = (np.sqrt(SPOT)[..., None] * smoke).astype(np.uint8)
        self._afloat = part.subject.habitat is Habitat.WATER and part.surface is Surface.WATER
        self._leaps = part.subject.habitat is Habitat.UNDERWATER and part.surface is Surface.WATER

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Draw shadow or reflection first, then the actor, then its lights."""
        pose = self.path(moment.seconds)
        x, y, scale = self._find(pose, moment)
        sprite = self._wardrobe.pick(pose.phase)
        size = scale * self._scale
        lit, left, top = place_picture(
            sprite.picture, sprite.anchor, x, y, scale=size, degrees=pose.degrees, flips=self._wardrobe.flips
        )
        wide = sprite.picture.shape[1] * size
        if self._shadow is not None:
            self._cast_shadow(frame, self._shadow, x, y, wide)
        if self.part.subject.motion is Motion.CLIMB:
            self._smoke(frame, moment, size)
        target = frame
        if self._afloat or self._leaps:
            target = self._touch_water(frame, lit, left, top, moment, wide)
        if self.part.subject.glows and self._light.darkness > 0.2:
            tall = sprite.picture.shape[0] * size
            shine(frame, x, y - tall * 0.45, tall * 1.3, (255, 150, 70), 0.55 * self._light.darkness)
        lay_picture(target, lit, left, top)
        if self.part.subject.motion is Motion.DRIVE and self._light.darkness > 0.3:
            self._shine_ahead(frame, x, y, wide, sprite.picture.shape[0] * size)

    def _find(self, pose: Pose, moment: Moment) -> tuple[float, float, float]:
        """Return the pixel position of a pose, and its scale for a nearer camera."""
        scale, x, y = self._lens.project(self.depth, moment.shot)
        unit = self._lens.view.unit * scale
        return x + pose.x * unit, y + pose.y * unit, scale

    def _cast_shadow(self, frame: Frame, shadow: Picture, x: float, y: float, wide: float) -> None:
        """Draw a soft dark pool at the feet."""
        width, height = max(4, round(wide * 0.95)), max(3, round(wide * 0.16))
        pool = np.asarray(cv2.resize(shadow, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)
        lay_picture(frame, pool, round(x - width / 2 - self._sun_side * wide * 0.05), round(y - height * 0.52))

    def _touch_water(self, frame: Frame, lit: Picture, left: int, top: int, moment: Moment, wide: float) -> Frame:
        """Mirror the actor in the water and add foam. Return the part of the frame above the surface."""
        _, line, scale = self._find(Pose(0.0, self.part.line), moment)
        level = round(line)
        if self._afloat:
            self._mirror(frame, lit, left, top, level, moment.seconds)
        self._foam(frame, moment, wide, scale)
        sink = round(self.part.height * self._lens.view.unit * 0.03) if self._afloat else 0
        return frame[: max(0, level + sink)]

    def _mirror(self, frame: Frame, lit: Picture, left: int, top: int, level: int, seconds: float) -> None:
        # A reflection in waves is soft, so half the pixels are enough.
        above = np.ascontiguousarray(lit[: max(1, level - top)][::-2, ::2])
        if above.shape[0] < 2 or level < top:
            return
        rows = np.arange(above.shape[0], dtype=np.float32)[:, None]
        shift = np.sin(rows * np.float32(0.84) + np.float32(seconds * 4)) * (np.float32(0.5) + rows * np.float32(0.03))
        columns = np.arange(above.shape[1], dtype=np.float32)[None] + shift
        wavy = cv2.remap(above, columns, np.repeat(rows, above.shape[1], axis=1), cv2.INTER_LINEAR)
        faint = cv2.convertScaleAbs(wavy, alpha=0.42)
        size = (faint.shape[1] * 2, max(2, round(faint.shape[0] * 1.4)))
        lay_picture(frame, np.asarray(cv2.resize(faint, size, interpolation=cv2.INTER_LINEAR), np.uint8), left, level)

    def _foam(self, frame: Frame, moment: Moment, wide: float, scale: float) -> None:
        """Draw white water along the stretch that the actor has just crossed."""
        light = mix(self._light.horizon, (255, 255, 255), 0.5 * (1 - self._light.darkness))
        ages = np.linspace(0.02, 2.2, 26)
        level = self.part.line
        points: list[tuple[float, float, float, float]] = []
        for number, age in enumerate(ages):
            pose = self.path(moment.seconds - float(age))
            if self._leaps and abs(pose.y - level) > self.part.height * 0.6:
                continue
            x, y, _ = self._find(replace(pose, y=level), moment)
            side = math.sin(number * 2.4) * 0.02 * wide * float(age)
            lag = self.part.ahead * wide * 0.3
            points.append(
                (
                    x - (lag if self._afloat else 0),
                    y + wide * 0.012 + side,
                    wide * (0.02 + 0.022 * float(age)),
                    0.34 * (1 - float(age) / 2.3),
                )
            )
        if points:
            x, y, size, power = np.array(points, np.float32).T
            tone = np.repeat(np.array([light], np.float32), len(points), axis=0)
            splat(frame, x, y, np.minimum(size * scale, 31), tone, power, soft=0.9, flat=0.3)

    def _smoke(self, frame: Frame, moment: Moment, size: float) -> None:
        """Draw a trail of swelling smoke, and the engine's glow on everything near."""
        tall = self._pixels * size
        ages = np.linspace(2.8, 0.0, 56)
        for number, age in enumerate(ages):
            x, y = self._find_nozzle(max(0.0, moment.seconds - float(age)), moment, tall)
            radius = tall * (0.07 + 0.085 * float(age))
            wobble = math.sin(number * 2.7 + number**2) * radius * 0.35
            side = max(2, round(radius * 2))
            puff = cv2.resize(self._puff, (side, side), interpolation=cv2.INTER_LINEAR)
            thin = cv2.convertScaleAbs(puff, alpha=0.62 * (1 - float(age) / 2.9) ** 0.7)
            lay_picture(frame, np.asarray(thin, np.uint8), round(x + wobble - radius), round(y - radius))
        x, y = self._find_nozzle(moment.seconds, moment, tall)
        flicker = 0.85 + 0.15 * math.sin(moment.seconds * 37)
        shine(frame, x, y, tall * 1.5, (255, 170, 90), (0.35 + 0.4 * self._light.darkness) * flicker)

    def _find_nozzle(self, seconds: float, moment: Moment, tall: float) -> tuple[float, float]:
        """Return the pixel position of the engine at a time, as seen by the current camera."""
        pose = self.path(seconds)
        x, y, _ = self._find(pose, moment)
        heading = math.radians(LEAN - pose.degrees)
        return x - math.sin(heading) * tall * 0.5, y + math.cos(heading) * tall * 0.5

    def _shine_ahead(self, frame: Frame, x: float, y: float, wide: float, tall: float) -> None:
        """Light the road ahead of the headlights."""
        front = x + self.part.ahead * wide * 0.44
        power = self._light.darkness
        shine(frame, front, y - tall * 0.3, tall * 0.22, (255, 246, 210), 0.9 * power)
        for step in range(1, 5):
            reach = wide * 0.22 * step
            shine(
                frame,
                front + self.part.ahead * reach,
                y - tall * 0.14,
                tall * (0.2 + 0.1 * step),
                (255, 236, 180),
                0.32 * power / step**0.5,
            )
        shine(frame, x - self.part.ahead * wide * 0.45, y - tall * 0.33, tall * 0.18, (255, 40, 30), 0.7 * power)


def _light_sprite(light: Light, part: Part) -> tuple[Factors, Factors, Factors]:
    """Return a sprite's colour factors, the air to add, and its bright edge, in blue, green, red and alpha."""
    far = max(0.0, 0.22 - 0.3 * part.height) * min(1.4, light.haze * 1.6)
    if part.surface is Surface.INDOOR:
        far = 0.0
    # The night is dark, but an actor must stay visible.
    key = [max(part_key, 126 + 12 * number) / 255 for number, part_key in enumerate(light.key)]
    plain = np.array([*(value * (1 - far) for value in key[::-1]), 1.0])
    air = np.array([*(value / 255 * far for value in light.air[::-1]), 0.0])
    if part.subject.glows:
        plain = np.ones(4)
    low = 1 - light.sun_height
    strength = 0.15 + 0.5 * light.shine * low * (1 - 0.5 * light.darkness)
    rim = np.array([*(value / 255 * strength for value in mix(light.sun, light.horizon, 0.4)[::-1]), 0.0])
    return plain, air, rim


def _paint_shadow(light: Light) -> NDArray[np.uint8]:
    rows, columns = np.ogrid[-1:1:24j, -1:1:64j]
    near = np.clip(1 - np.hypot(rows, columns), 0, 1) ** 0.8
    dark = np.array([*mix(light.shade((20, 20, 40)), (0, 0, 0), 0.4)[::-1], 255], np.float32)
    return (near[..., None] * dark * (0.5 - 0.2 * light.darkness)).astype(np.uint8)
