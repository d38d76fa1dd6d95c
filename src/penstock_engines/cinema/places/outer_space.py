"""Space and other planets."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.landscape.ridges import add_glow
from penstock_engines.cinema.landscape.terrain import add_hills, make_peaks, paint_rocks, plant_row
from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.patterns import Randomness, make_noise, soften
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words
from penstock_engines.cinema.script import Time


def build_space(scene: Scene) -> None:
    """Build nebulas, stars and planets."""
    scene.outdoors = False
    random, view = scene.random, scene.view
    back = scene.sheet(0.02)
    height, width = back.picture.shape[:2]
    small = (height // 4 + 1, width // 4 + 1)
    tint = scene.script.tint
    hues = (
        ((70, 40, 150), (200, 60, 130), (40, 130, 190))
        if tint is None
        else (tint, mix(tint, (255, 80, 160), 0.4), mix(tint, (40, 120, 200), 0.5))
    )
    sky = np.zeros((*small, 3), np.float32) + np.array([26, 10, 8], np.float32)
    for number, hue in enumerate(hues):
        cloud = soften(make_noise(random, *small, (3, 4), 6), 0.42 + 0.04 * number, 1.0)
        dust = make_noise(random, *small, (6, 8), 5)
        sky += (cloud * (0.35 + 0.65 * dust))[..., None] * np.array(hue[::-1], np.float32) * 1.15
    _fill_enlarged(back, sky, random)
    _scatter_specks(back, random, round(700 * view.half), 1.0)
    scene.lay(back)
    far = scene.sheet(0.05)
    _scatter_specks(far, random, 120, 1.8)
    _paint_planet(
        far, (0.52 * view.half, view.top * 0.55), 0.2, (226, 150, 96), (120, 60, 90), random, ring=(240, 206, 160)
    )
    scene.lay(far)
    near = scene.sheet(0.16)
    _paint_planet(near, (-0.62 * view.half, view.top * 0.16), 0.075, (120, 190, 220), (40, 60, 130), random)
    scene.lay(near)
    low = scene.sheet(0.3)
    _paint_planet(low, (0.0, view.bottom + 0.86), 1.05, (90, 150, 210), (10, 16, 50), random)
    scene.lay(low)
    scene.perform(-0.1, 0.12)


def _fill_enlarged(sheet: Sheet, small: NDArray[np.float32], random: Randomness) -> None:
    """Fill a sheet with a small soft picture."""
    height, width = sheet.picture.shape[:2]
    large = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    large += random.random((height, width, 1), np.float32) - np.float32(0.5)
    sheet.picture[..., :3] = np.clip(large + 0.5, 0, 255).astype(np.uint8)
    sheet.picture[..., 3] = 255


def _scatter_specks(sheet: Sheet, random: Randomness, count: int, size: float) -> None:
    """Paint stars of every brightness, the largest with a halo."""
    for number in range(count):
        point = (random.uniform(sheet.left, sheet.right), random.uniform(sheet.top, sheet.bottom))
        power = float(random.random()) ** 3
        add_glow(
            sheet,
            point,
            (0.0026 + 0.005 * power) * size,
            mix((255, 255, 255), ((255, 200, 160), (170, 200, 255))[number % 2], 0.5),
            0.35 + 0.65 * power,
        )
        if power > 0.85:
            add_glow(sheet, point, 0.03 * size, (150, 180, 255), 0.35)


def _paint_planet(
    sheet: Sheet,
    centre: Point,
    radius: float,
    lit: Colour,
    dark: Colour,
    random: Randomness,
    ring: Colour | None = None,
) -> None:
    """Paint a banded ball, lit from the upper left, with a thin glow of air."""
    add_glow(sheet, centre, radius * 1.35, mix(lit, (255, 255, 255), 0.2), 0.6)
    if ring is not None:
        _paint_ring(sheet, centre, radius, mix(ring, dark, 0.35), -1)
    sheet.brush.ellipse(centre, (radius, radius), dark)
    unit = sheet.unit
    x, y, reach = (centre[0] - sheet.left) * unit, (centre[1] - sheet.top) * unit, radius * unit
    height, width = sheet.picture.shape[:2]
    left, right, top, bottom = (
        max(0, int(x - reach)),
        min(width, int(x + reach) + 1),
        max(0, int(y - reach)),
        min(height, int(y + reach) + 1),
    )
    if left >= right or top >= bottom:
        return
    rows, columns = np.ogrid[top:bottom, left:right]
    right_ward, down = ((columns - x) / reach).astype(np.float32), ((rows - y) / reach).astype(np.float32)
    inside = np.clip((1 - np.hypot(right_ward, down)) * reach, 0, 1)
    bulge = np.sqrt(np.clip(1 - right_ward**2 - down**2, 0, 1))
    bright = soften((-0.55 * right_ward - 0.6 * down + 0.62 * bulge).astype(np.float32), -0.1, 1.0)
    swirl = make_noise(random, bottom - top, right - left, (4, 2), 4)
    bands = 0.82 + 0.18 * np.sin(down * 14 + swirl * 7)
    colour = (
        np.array(dark[::-1], np.float32)
        + (np.array(lit[::-1], np.float32) - np.array(dark[::-1], np.float32)) * (bright * bands)[..., None]
    )
    part = sheet.picture[top:bottom, left:right]
    part[..., :3] = part[..., :3] * (1 - inside[..., None]) + colour * inside[..., None]
    if ring is not None:
        _paint_ring(sheet, centre, radius, ring, 1)


def _paint_ring(sheet: Sheet, centre: Point, radius: float, colour: Colour, half: int) -> None:
    """Paint the half of a ring before (1) or behind (-1) its planet, in two bands."""
    slant = math.radians(-16)
    for outer, inner, tone in ((1.95, 1.62, colour), (1.56, 1.36, mix(colour, (60, 30, 60), 0.3))):
        turns = np.linspace(0, math.pi, 40)
        rim = [(math.cos(t) * outer, half * math.sin(t) * outer * 0.2) for t in turns]
        rim += [(math.cos(t) * inner, half * math.sin(t) * inner * 0.2) for t in turns[::-1]]
        turned = [
            (x * math.cos(slant) - y * math.sin(slant), x * math.sin(slant) + y * math.cos(slant)) for x, y in rim
        ]
        sheet.brush.polygon([(centre[0] + x * radius, centre[1] + y * radius) for x, y in turned], tone, 0.8)


def build_alien_planet(scene: Scene) -> None:
    """Build strange spires under two moons."""
    light, random, view = scene.light, scene.random, scene.view
    scene.add_sky()
    _hang_moons(scene)
    for depth, foot, height, distance, wave in (
        (0.05, 0.02, 0.3, 0.9, 0.24),
        (0.11, 0.06, 0.24, 0.55, 0.2),
        (0.22, 0.12, 0.1, 0.28, 0.4),
    ):
        sheet = scene.sheet(depth)
        line = make_peaks(scene, sheet, foot, height, wave)
        paint_rocks(scene, sheet, line, ((226, 132, 150), (92, 54, 120), (180, 110, 160)), distance)
        scene.lay(sheet)
        scene.add_mist(
            mix(light.air, (180, 120, 200), 0.3),
            top=foot - 0.12,
            bottom=foot + 0.06,
            strength=0.35,
            speed=0.02,
        )
    ground, line = add_hills(
        scene, depth=0.42, foot=0.2, height=0.05, wave=0.8, distance=0.08, colours=((196, 112, 140), (104, 60, 110))
    )
    for x in scene.spots(round(9 * view.half) + 1, ground.left, ground.right):
        point = (x, 0.22 + random.uniform(0, 0.1))
        ground.brush.ellipse(point, (0.07, 0.014), light.ground((84, 46, 96), 0.05))
        ground.brush.ellipse((x, point[1] + 0.003), (0.062, 0.01), light.ground((140, 80, 124), 0.05))
    plant_row(
        scene,
        ground,
        line,
        lambda brush, foot, tall: _paint_bulb(brush, foot, tall, light.lamp((110, 255, 220), (120, 220, 200))),
        9,
        (0.08, 0.16),
    )
    scene.lay(ground)
    scene.perform(0.21, 0.31)
    near, _ = add_hills(
        scene,
        depth=0.95,
        foot=view.bottom + 0.02,
        height=0.09,
        wave=0.4,
        distance=0.0,
        colours=((96, 50, 104), (46, 26, 66)),
    )
    scene.lay(near)


def _hang_moons(scene: Scene) -> None:
    """Paint a ringed moon and a small one."""
    light, random, view = scene.light, scene.random, scene.view
    moons = scene.sheet(0.02)
    _paint_planet(
        moons,
        (0.45 * view.half, view.top * 0.6),
        0.17,
        mix((240, 190, 170), light.horizon, 0.3),
        mix((90, 60, 110), light.middle, 0.5),
        random,
        ring=mix((250, 220, 190), light.horizon, 0.4),
    )
    _paint_planet(
        moons,
        (-0.5 * view.half, view.top * 0.75),
        0.05,
        mix((200, 220, 240), light.horizon, 0.3),
        mix((80, 80, 120), light.middle, 0.5),
        random,
    )
    scene.lay(moons)


def _paint_bulb(brush: Brush, foot: Point, height: float, glow: Colour) -> None:
    """Paint a plant with a glowing bulb."""
    head = (foot[0] + height * 0.15, foot[1] - height)
    brush.limb(
        [foot, (foot[0] - height * 0.06, foot[1] - height * 0.5), head],
        [height * 0.09, height * 0.06, height * 0.04],
        mix(glow, (70, 30, 90), 0.75),
    )
    brush.glow(head, height * 0.4, glow, 0.45)
    brush.ellipse(head, (height * 0.13, height * 0.15), glow)
    brush.ellipse(
        (head[0] + height * 0.03, head[1] - height * 0.04),
        (height * 0.05, height * 0.06),
        mix(glow, (255, 255, 255), 0.6),
    )


OUTER_SPACE_PLACES = (
    Place(
        "space",
        list_words(
            "outer space, space, nebula, galaxy, planets, stars and planets, "
            "cosmos, universe, orbit, solar system, milky way"
        ),
        Surface.SPACE,
        "space",
        build_space,
        default_time=Time.NIGHT,
        horizon=0.5,
    ),
    Place(
        "alien planet",
        list_words(
            "alien planet, moon surface, mars, lunar landscape, another world, "
            "distant planet, extraterrestrial landscape, red planet, craters"
        ),
        Surface.GROUND,
        "space",
        build_alien_planet,
        horizon=0.58,
    ),
)
