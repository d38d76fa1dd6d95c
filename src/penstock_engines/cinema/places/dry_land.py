"""Sand, red rock and lava."""

import math

import numpy as np

from penstock_engines.cinema.landscape.greenery import paint_bush
from penstock_engines.cinema.landscape.ridges import Line, add_glow, paint_hill
from penstock_engines.cinema.landscape.terrain import (
    add_hills,
    add_range,
    make_peaks,
    make_plant_tones,
    paint_rocks,
    plant_row,
)
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.patterns import wander
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_flicker
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_desert(scene: Scene) -> None:
    """Build dunes with a lit and a shaded side."""
    light, random = scene.light, scene.random
    scene.add_sky()
    for number, (depth, foot, height, wave, distance) in enumerate(
        (
            (0.04, 0.01, 0.1, 0.7, 0.9),
            (0.1, 0.05, 0.12, 0.8, 0.62),
            (0.22, 0.12, 0.13, 0.95, 0.35),
            (0.42, 0.22, 0.13, 1.2, 0.12),
            (0.8, 0.38, 0.1, 1.4, 0.0),
        )
    ):
        sheet = scene.sheet(depth)
        crest = 1 - np.abs(wander(random, sheet.columns, wave, 2, 0.3))
        line = (foot - height * crest).astype(np.float32)
        lit, dark = light.ground((238, 186, 116), distance), light.ground((170, 102, 78), distance)
        paint_hill(
            sheet,
            line,
            [lit, light.ground((226, 164, 98), distance), light.ground((204, 138, 86), distance)],
            reach=0.3,
            random=random,
            grain=6,
        )
        _shade_dune(sheet, line, dark)
        scene.lay(sheet)
        if number == 3:
            scene.perform(0.2, 0.3)


def _shade_dune(sheet: Sheet, line: Line, dark: Colour) -> None:
    """Darken the side away from the sun, below each falling stretch of the crest."""
    slope = np.gradient(line)
    falling = np.flatnonzero(np.diff((slope > 0).astype(np.int8)) == 1)
    for start in falling:
        end = start + int(np.argmax(slope[start + 1 :] <= 0)) + 1 if (slope[start + 1 :] <= 0).any() else len(line) - 1
        crest = [(float(sheet.columns[i]), float(line[i])) for i in range(start, end, 6)]
        if len(crest) < 4:
            continue
        (x0, y0), (x1, y1) = crest[0], crest[-1]
        back = [
            (
                x0 + (x1 - x0) * (share - 0.2 * math.sin(math.pi * share)),
                y0 + (y1 - y0) * share + (x1 - x0) * 0.3 * math.sin(math.pi * share**0.8),
            )
            for share in np.linspace(1, 0, 16)
        ]
        sheet.brush.polygon([*crest, *back], dark, 0.75)


def build_canyon(scene: Scene) -> None:
    """Build mesas of banded red rock."""
    light, random = scene.light, scene.random
    scene.add_sky()
    for depth, foot, height, wave, distance in (
        (0.04, 0.02, 0.2, 0.5, 0.85),
        (0.1, 0.05, 0.28, 0.7, 0.5),
        (0.2, 0.1, 0.16, 0.8, 0.25),
    ):
        sheet = scene.sheet(depth)
        rough = wander(random, sheet.columns, wave, 3, 0.4)
        steps = np.round((rough * 0.5 + 0.5) * 3.2) / 3.2
        line = (foot - height * steps + 0.006 * wander(random, sheet.columns, 0.04, 3)).astype(np.float32)
        line = _round_steps(line)
        bands = [(196, 96, 62), (224, 138, 84), (176, 80, 60), (232, 160, 104), (186, 92, 66), (214, 130, 84)]
        paint_hill(
            sheet, line, [light.ground(band, distance) for band in bands], reach=height * 1.25, random=random, grain=16
        )
        scene.lay(sheet)
    sheet, line = add_hills(
        scene, depth=0.4, foot=0.16, height=0.05, wave=0.9, distance=0.1, colours=((218, 140, 88), (164, 88, 62))
    )
    bush = make_plant_tones(scene, (122, 130, 80), 0.1)
    plant_row(
        scene, sheet, line, lambda brush, foot, size: paint_bush(brush, foot, size, bush, random), 9, (0.02, 0.05)
    )
    scene.lay(sheet)
    scene.perform(0.17, 0.28)
    near, _ = add_hills(
        scene,
        depth=0.9,
        foot=scene.view.bottom,
        height=0.07,
        wave=0.5,
        distance=0.0,
        colours=((150, 80, 60), (86, 46, 46)),
    )
    scene.lay(near)


def _round_steps(line: Line) -> Line:
    """Round the edges of steps, as cliffs are steep but not vertical."""
    kernel = np.ones(7, np.float32) / 7
    return np.convolve(np.pad(line, 3, mode="edge"), kernel, mode="valid").astype(np.float32)


def build_volcano(scene: Scene) -> None:
    """Build a burning mountain with rivers of lava."""
    light, random, view = scene.light, scene.random, scene.view
    scene.add_sky()
    add_range(scene, depth=0.03, height=0.14, wave=0.5, distance=0.95, lit=(130, 90, 90), shadow=(70, 54, 76))
    cone = scene.sheet(0.07)
    middle, high = 0.12 * view.half, 0.36 if view.half > 0.5 else 0.5
    off = np.abs(cone.columns - middle)
    slope = high * np.exp(-off / 0.26) * 1.25
    line = (0.04 - np.minimum(slope, high * 0.92) + 0.006 * wander(random, cone.columns, 0.05, 3)).astype(np.float32)
    paint_rocks(scene, cone, line, ((120, 84, 80), (52, 42, 58), (88, 66, 76)), 0.35, reach=0.5)
    rim = 0.04 - high * 0.92
    _pour_lava(cone, middle, rim)
    scene.lay(cone)
    scene.add_mist(
        mix(light.middle, (70, 56, 60), 0.6),
        top=rim - 0.22,
        bottom=rim + 0.02,
        strength=0.6,
        speed=0.05,
        even=0.1,
    )
    lamps = ((middle, rim, 0.13, (255, 110, 40)), (middle, rim + 0.1, 0.3, (150, 40, 16)))
    scene.add(SoftLight(view, paint_flicker(lamps, 0.5 + 0.4 * light.darkness), depth=0.07))
    for depth, foot, distance in ((0.18, 0.1, 0.25), (0.4, 0.2, 0.08)):
        sheet = scene.sheet(depth)
        edge = make_peaks(scene, sheet, foot, 0.06, 0.3)
        paint_rocks(scene, sheet, edge, ((112, 84, 80), (44, 36, 48), (70, 56, 62)), distance, reach=0.2)
        for x in scene.spots(round(6 * view.half) + 1, sheet.left, sheet.right):
            low = foot + random.uniform(0.0, 0.07)
            crack = [(x + 0.04 * step, low + 0.012 * math.sin(step * 4 + x * 40)) for step in range(4)]
            add_glow(sheet, crack[1], 0.09, (255, 80, 20), 0.5)
            sheet.brush.limb(crack, [0.004, 0.008, 0.006, 0.002], (255, 140, 50))
        scene.lay(sheet)
    scene.perform(0.2, 0.3)


def _pour_lava(cone: Sheet, middle: float, rim: float) -> None:
    """Paint streams that run down from the rim."""
    steps = np.linspace(0, 1, 10)
    for start, drift, long in ((-0.03, -0.12, 0.24), (0.02, 0.1, 0.3), (0.045, 0.2, 0.18)):
        points = [
            (middle + start + drift * step**1.4 + 0.012 * math.sin(step * 9), rim + 0.012 + long * step)
            for step in steps
        ]
        add_glow(cone, points[4], 0.14, (255, 70, 20), 0.4)
        cone.brush.limb(points, [0.018 - 0.008 * step for step in steps], (240, 70, 24))
        cone.brush.limb(points, [0.008 - 0.004 * step for step in steps], (255, 210, 90))


DRY_LAND_PLACES = (
    Place(
        "desert",
        list_words("desert, sand dunes, sahara, dunes, arid sand, hot sand desert, oasis, wasteland, desert sand"),
        Surface.GROUND,
        "wind",
        build_desert,
        horizon=0.54,
    ),
    Place(
        "canyon",
        list_words(
            "canyon, grand canyon, red rocks, mesa, gorge, wild west, "
            "badlands, rocky cliffs, arizona, western landscape"
        ),
        Surface.GROUND,
        "wind",
        build_canyon,
        horizon=0.58,
    ),
    Place(
        "volcano",
        list_words(
            "volcano, lava, eruption, magma, volcanic landscape, burning mountain, lava river, crater of fire, mordor"
        ),
        Surface.GROUND,
        "fire",
        build_volcano,
        horizon=0.58,
    ),
)
