"""Places below the surface of the sea."""

import math

import numpy as np

from penstock_engines.cinema.landscape.ridges import add_glow, paint_hill, paint_wash
from penstock_engines.cinema.landscape.terrain import make_line, make_peaks
from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.patterns import Randomness
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_beams, paint_caustics, paint_flicker
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words

CORALS: tuple[Colour, ...] = (
    (255, 110, 120),
    (255, 170, 90),
    (220, 100, 200),
    (250, 210, 110),
    (120, 200, 190),
    (240, 90, 150),
)


def _water_tones(scene: Scene, near: Colour, deep: Colour) -> tuple[Colour, Colour]:
    """Return the colours near the surface and in the depth, which follow the hour above."""
    light = scene.light
    return mix(light.shade(near), light.middle, 0.15), mix(light.shade(deep), light.zenith, 0.15)


def _add_depths(scene: Scene, near: Colour, deep: Colour) -> tuple[Colour, Colour]:
    top, low = _water_tones(scene, near, deep)
    back = scene.sheet(0.0)
    paint_wash(
        back,
        [mix(top, (255, 255, 255), 0.25 * scene.light.shine), top, mix(top, low, 0.6), low],
        back.top,
        scene.view.bottom,
        scene.random,
    )
    scene.lay(back)
    scene.outdoors = False
    return top, low


def build_reef(scene: Scene) -> None:
    """Build corals on sandy ground, swaying kelp and light from above."""
    top, low = _add_depths(scene, (70, 200, 226), (8, 70, 130))
    light, random, view = scene.light, scene.random, scene.view
    for depth, foot, height, share, size in (
        (0.06, 0.06, 0.26, 0.75, 0.08),
        (0.16, 0.14, 0.2, 0.5, 0.11),
        (0.32, 0.22, 0.12, 0.24, 0.15),
    ):
        sheet = scene.sheet(depth)
        line = make_line(scene, sheet, foot, height, 0.5)
        for x in scene.spots(round(22 * view.half) + 2, sheet.left, sheet.right):
            y = float(line[min(len(line) - 1, sheet.column(x))]) + 0.02
            colour = mix(light.shade(CORALS[int(random.integers(6))]), mix(top, low, 0.5), share)
            _paint_coral(sheet.brush, (x, y), size * random.uniform(0.6, 1.2), colour, random)
        rock = [mix(light.shade(tone), mix(top, low, 0.5), share) for tone in ((150, 130, 130), (80, 84, 110))]
        paint_hill(sheet, line, rock, reach=0.2, random=random, grain=24)
        scene.lay(sheet)
    sand = scene.sheet(0.5)
    sands = [mix(light.shade(tone), low, 0.25) for tone in ((236, 214, 164), (170, 156, 140))]
    paint_hill(sand, make_line(scene, sand, 0.3, 0.05, 0.9), sands, reach=0.2, random=random)
    scene.lay(sand)
    power = 0.3 + 0.7 * light.shine * (1 - 0.7 * light.darkness)
    scene.add(SoftLight(view, paint_caustics((255, 255, 225), 0.28 * power, random, 0.1), coarse=5, top=0.05))
    scene.add(
        SoftLight(view, paint_beams((-0.25 * view.half, view.top - 0.45), (190, 240, 250), 0.5 * power, random, 2.2))
    )
    scene.perform(0.05, 0.3)
    _add_kelp(scene, mix(light.shade((40, 110, 80)), low, 0.35))


def _paint_coral(brush: Brush, foot: Point, size: float, colour: Colour, random: Randomness) -> None:
    """Paint a fan, a bunch of tubes or a round brain of coral."""
    kind = int(random.integers(3))
    dark = mix(colour, (20, 20, 80), 0.3)
    if kind == 0:
        for turn in np.linspace(-0.9, 0.9, 6):
            middle = (foot[0] + math.sin(turn) * size * 0.5, foot[1] - math.cos(turn) * size * 0.55)
            tip = (foot[0] + math.sin(turn * 1.2) * size * 0.9, foot[1] - math.cos(turn) * size)
            brush.limb([foot, middle, tip], [size * 0.12, size * 0.09, size * 0.06], colour)
            twig = (middle[0] + size * 0.22 * random.uniform(-1, 1), middle[1] - size * 0.3)
            brush.limb([middle, twig], [size * 0.08, size * 0.05], dark)
    elif kind == 1:
        for step in range(5):
            x = foot[0] + (step - 2) * size * 0.24
            tall = size * random.uniform(0.5, 1.0)
            brush.limb(
                [(x, foot[1]), (x + (step - 2) * size * 0.05, foot[1] - tall)], [size * 0.17, size * 0.22], colour
            )
            brush.ellipse((x + (step - 2) * size * 0.05, foot[1] - tall), (size * 0.07, size * 0.04), dark)
    else:
        brush.ellipse((foot[0], foot[1] - size * 0.2), (size * 0.6, size * 0.42), colour)
        for ring in range(4):
            brush.ellipse(
                (foot[0] + size * (ring - 1.5) * 0.24, foot[1] - size * 0.24), (size * 0.05, size * 0.26), dark, 0.6
            )


def _add_kelp(scene: Scene, colour: Colour) -> None:
    view, random = scene.view, scene.random
    for depth, rhythm in ((0.8, 0.5), (1.0, 0.7)):
        sheet = scene.sheet(depth)
        for x in scene.spots(round(16 * view.half), sheet.left, sheet.right):
            edge = min(1.0, abs(x) / view.half)
            tall = (0.06 + 0.36 * edge**3) * random.uniform(0.7, 1.2)
            points = [
                (x + 0.018 * math.sin(step * 5 + x * 20), view.bottom + 0.05 - tall * step)
                for step in np.linspace(0, 1.2, 9)
            ]
            sheet.brush.limb(
                points,
                [0.03 * (1.25 - step) for step in np.linspace(0, 1.2, 9)],
                mix(colour, (4, 20, 40), depth * 0.55),
            )
        scene.lay(sheet, sway=0.06, foot=view.bottom, rhythm=rhythm)


def build_deep_sea(scene: Scene) -> None:
    """Build darkness with glowing creatures and smoking vents."""
    top, low = _add_depths(scene, (14, 74, 120), (2, 8, 26))
    light, random, view = scene.light, scene.random, scene.view
    for depth, foot, height, share in ((0.06, 0.1, 0.3, 0.7), (0.18, 0.2, 0.24, 0.4), (0.4, 0.3, 0.1, 0.1)):
        sheet = scene.sheet(depth)
        line = make_peaks(scene, sheet, foot, height, 0.4)
        paint_hill(sheet, line, [mix((26, 40, 66), top, share), mix((8, 14, 30), low, share)], reach=0.3, random=random)
        for x in scene.spots(round(16 * view.half), sheet.left, sheet.right):
            y = float(line[min(len(line) - 1, sheet.column(x))]) - 0.004
            neon = ((80, 255, 220), (120, 160, 255), (230, 110, 255), (120, 255, 140))[int(random.integers(4))]
            for bead in range(5):
                point = (x + 0.012 * math.sin(bead * 1.3), y - 0.016 * bead)
                add_glow(sheet, point, 0.022 * (1.2 - share), neon, 0.8)
                sheet.brush.ellipse(point, (0.0035, 0.0035), mix(neon, (255, 255, 255), 0.4))
        scene.lay(sheet)
        if depth == 0.18:
            scene.perform(0.0, 0.22)
    jellies = tuple(
        (
            random.uniform(-1, 1) * view.half,
            random.uniform(view.top * 0.8, 0),
            random.uniform(0.05, 0.12),
            ((40, 110, 160), (110, 60, 160))[number % 2],
        )
        for number in range(5)
    )
    scene.add(SoftLight(view, paint_flicker(jellies, 0.5)))
    scene.add(
        SoftLight(view, paint_beams((0.1, view.top - 0.5), (60, 130, 170), 0.35 + 0.2 * light.shine, random, 1.6))
    )


UNDERWATER_PLACES = (
    Place(
        "coral reef",
        list_words(
            "underwater, coral reef, under the sea, tropical fish, reef, seabed, aquarium, diving, kelp, ocean floor"
        ),
        Surface.UNDERWATER,
        "underwater",
        build_reef,
        horizon=0.6,
    ),
    Place(
        "deep sea",
        list_words(
            "deep sea, abyss, dark depths of the ocean, submarine, "
            "bioluminescent creatures, mariana trench, deep ocean, bottom of the ocean"
        ),
        Surface.UNDERWATER,
        "underwater",
        build_deep_sea,
        horizon=0.6,
    ),
)
