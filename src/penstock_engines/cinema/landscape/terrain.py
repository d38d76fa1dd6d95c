"""Layers that many places share: ranges of mountains, hills, rows of trees, and grass before the camera."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from penstock_engines.cinema.landscape.greenery import Tones, paint_fir, paint_flower, paint_grass, paint_leafy_tree
from penstock_engines.cinema.landscape.ridges import Line, paint_hill, paint_mountains
from penstock_engines.cinema.paint.brush import Brush, Colour, Picture, Point, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.patterns import wander
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_beams
from penstock_engines.cinema.scene import Scene

LEAVES: tuple[Colour, ...] = ((92, 158, 72), (66, 132, 70), (122, 172, 76))
"""The greens of summer."""
VARIANTS = 6
"""Number of plants of a row that are painted. The others are copies."""
Planter = Callable[[Brush, Point, float], None]
"""Paints one plant, given its foot and its height."""


def make_line(scene: Scene, sheet: Sheet, foot: float, height: float, wave: float, octaves: int = 3) -> Line:
    """Return a soft ridge up to `height` above `foot`."""
    rise = wander(scene.random, sheet.columns, wave, octaves) * 0.5 + 0.5
    return (foot - height * rise).astype(np.float32)


def make_peaks(scene: Scene, sheet: Sheet, foot: float, height: float, wave: float) -> Line:
    """Return a jagged ridge. Tall frames get taller mountains."""
    tall = 1.0 + 0.5 * max(0.0, 0.7 - scene.view.half)
    peaks = 1 - np.abs(wander(scene.random, sheet.columns, wave, 6, 0.48))
    return (foot - height * tall * (peaks - 0.2).clip(0) * 1.2).astype(np.float32)


def add_range(
    scene: Scene,
    *,
    depth: float,
    height: float,
    wave: float,
    distance: float,
    lit: Colour = (150, 142, 146),
    shadow: Colour = (62, 72, 106),
    snow: float = 0.0,
    foot: float = 0.02,
) -> None:
    """Add a range of mountains. `snow` sets how far down the snow reaches."""
    light = scene.light
    sheet = scene.sheet(depth)
    white = (light.shade((252, 252, 255), distance), light.shade((146, 174, 216), distance))
    paint_mountains(
        sheet,
        make_peaks(scene, sheet, foot, height, wave),
        lit=light.ground(lit, distance),
        shadow=light.ground(shadow, distance),
        foot=light.ground(mix(lit, light.air, 0.5), distance + 0.15),
        random=scene.random,
        snow=white if snow > 0 else None,
        snow_depth=snow,
        reach=height * 1.1,
    )
    scene.lay(sheet)


def paint_rocks(
    scene: Scene, sheet: Sheet, line: Line, tones: tuple[Colour, Colour, Colour], distance: float, *, reach: float = 0.3
) -> None:
    """Paint bare rock below a line, in its light, its shadow and the colour at its foot."""
    lit, shadow, foot = (scene.light.ground(tone, distance) for tone in tones)
    paint_mountains(sheet, line, lit=lit, shadow=shadow, foot=foot, random=scene.random, reach=reach)


def add_hills(
    scene: Scene,
    *,
    depth: float,
    foot: float,
    height: float,
    wave: float,
    distance: float,
    colours: Sequence[Colour],
    reach: float = 0.25,
    plant: Planter | None = None,
    count: int = 0,
    size: tuple[float, float] = (0.05, 0.1),
    grain: float = 10.0,
) -> tuple[Sheet, Line]:
    """Return a rounded hill in these colours, with `count` plants along its ridge. The caller lays the sheet."""
    sheet = scene.sheet(depth)
    line = make_line(scene, sheet, foot, height, wave)
    if plant is not None and count:
        plant_row(scene, sheet, line, plant, count, size)
    painted = [scene.light.ground(colour, distance) for colour in colours]
    paint_hill(sheet, line, painted, reach=reach, random=scene.random, grain=grain)
    return sheet, line


def plant_row(
    scene: Scene,
    sheet: Sheet,
    line: Line,
    plant: Planter,
    count: int,
    size: tuple[float, float],
    *,
    sink: float = 0.012,
    gap: float = 0.0,
) -> None:
    """Plant along a ridge. `count` is for a wide frame, `gap` is the share of the middle that stays free."""
    pots = [_pot(sheet, plant, size[1]) for _ in range(min(count, VARIANTS))]
    width = sheet.right - sheet.left
    for x in scene.spots(max(1, round(count * width / 1.9)), sheet.left, sheet.right):
        if abs(x) < gap:
            continue
        y = float(line[min(len(line) - 1, sheet.column(x))]) + sink
        scale = float(scene.random.uniform(*size)) / size[1]
        _transplant(sheet, pots[int(scene.random.integers(len(pots)))], (x, y), scale)


@dataclass(frozen=True, slots=True)
class Pot:
    """One plant on its own picture, with the position of its foot."""

    picture: Picture
    foot: Point


def _pot(sheet: Sheet, plant: Planter, height: float) -> Pot:
    """Paint one plant, and crop its picture."""
    unit = sheet.unit * height
    brush = Brush(round(unit * 2.2), round(unit * 1.4), sheet.unit, (unit * 1.1, unit * 1.2))
    plant(brush, (0.0, 0.0), height)
    x, y, width, tall = cv2.boundingRect(np.ascontiguousarray(brush.picture[..., 3]))
    return Pot(np.ascontiguousarray(brush.picture[y : y + tall, x : x + width]), (unit * 1.1 - x, unit * 1.2 - y))


def _transplant(sheet: Sheet, pot: Pot, foot: Point, scale: float) -> None:
    """Copy a painted plant at another size, as painting each one is slow."""
    size = (max(2, round(pot.picture.shape[1] * scale)), max(2, round(pot.picture.shape[0] * scale)))
    small = np.asarray(cv2.resize(pot.picture, size, interpolation=cv2.INTER_LINEAR), np.uint8)
    left = round((foot[0] - sheet.left) * sheet.unit - pot.foot[0] * scale)
    top = round((foot[1] - sheet.top) * sheet.unit - pot.foot[1] * scale)
    height, width = sheet.picture.shape[:2]
    x, y, right, bottom = max(0, left), max(0, top), min(width, left + size[0]), min(height, top + size[1])
    if x >= right or y >= bottom:
        return
    part = small[y - top : bottom - top, x - left : right - left]
    under = sheet.picture[y:bottom, x:right]
    rest = cv2.cvtColor(cv2.bitwise_not(np.ascontiguousarray(part[..., 3])), cv2.COLOR_GRAY2BGRA)
    rest[..., 3] = 255 - part[..., 3]
    under[:] = cv2.add(cv2.multiply(under, rest, scale=1 / 255), part)


def fir_planter(scene: Scene, colour: Colour, distance: float) -> Planter:
    """Return a painter of firs in a colour, as seen from a distance."""
    tones = make_plant_tones(scene, colour, distance)
    return lambda brush, foot, height: paint_fir(brush, foot, height, tones, scene.random)


def tree_planter(scene: Scene, colours: Sequence[Colour], distance: float) -> Planter:
    """Return a painter of leafy trees, each in one of the colours."""
    choices = [make_plant_tones(scene, colour, distance) for colour in colours]
    trunk = scene.light.shade((78, 58, 46), distance)

    def plant(brush: Brush, foot: Point, height: float) -> None:
        tones = choices[int(scene.random.integers(len(choices)))]
        paint_leafy_tree(brush, foot, height, tones, trunk, scene.random)

    return plant


def make_plant_tones(scene: Scene, colour: Colour, distance: float) -> Tones:
    """Return the shadow, plain and light tones of a plant."""
    light = scene.light
    snowy = mix(colour, (236, 242, 250), 0.62 * light.snow)
    plain = light.shade(mix(colour, snowy, 0.5), distance)
    bright = mix(light.shade(snowy, distance), mix(light.sun, light.horizon, 0.5), 0.3 * (1 - 0.7 * light.darkness))
    return mix(plain, light.shade((12, 26, 54), distance), 0.5), plain, bright


def add_meadow_front(
    scene: Scene, *, colours: Sequence[Colour], flowers: Sequence[Colour] = (), height: float = 0.1, rise: float = 0.0
) -> None:
    """Add grass before the camera, in two sheets that sway against each other."""
    light, random, bottom = scene.light, scene.random, scene.view.bottom
    for depth, rhythm, lift in ((0.85, 1.0, 0.055), (1.0, 1.25, 0.0)):
        sheet = scene.sheet(depth)
        foot = bottom * (1 + 0.02 * depth) - lift - rise + 0.02
        painted = [light.ground(mix(colour, (10, 24, 30), 0.45 if depth == 1.0 else 0.25)) for colour in colours]
        blades = round(330 * (sheet.right - sheet.left) / 1.9)
        paint_grass(sheet.brush, (sheet.left, sheet.right), foot, height, painted, random, blades)
        base = np.full(sheet.picture.shape[1], foot, np.float32) - 0.1 * height * wander(random, sheet.columns, 0.2)
        paint_hill(sheet, base.astype(np.float32), painted, reach=0.08, random=random)
        for petals in flowers:
            for x in scene.spots(round(7 * (sheet.right - sheet.left) / 1.9) + 1, sheet.left, sheet.right):
                shown = light.shade(mix(petals, (236, 242, 250), 0.4 * light.snow))
                size = height * random.uniform(0.7, 1.35)
                paint_flower(sheet.brush, (x, foot + 0.01), size, shown, painted[0], random)
        scene.lay(sheet, sway=0.05, foot=foot, rhythm=rhythm)


def add_beams(scene: Scene, strength: float) -> None:
    """Add rays of the sun, if it shines."""
    light, view = scene.light, scene.view
    power = strength * light.shine * (1 - 0.65 * light.darkness)
    sun = ((scene.sun[0] - view.width / 2) / view.unit, (scene.sun[1] - view.horizon) / view.unit)
    if power > 0.05:
        scene.add(SoftLight(view, paint_beams(sun, mix(light.sun, light.horizon, 0.3), power, scene.random)))
