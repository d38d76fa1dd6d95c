"""A garden in bloom."""

import math

import numpy as np

from penstock_engines.cinema.landscape.greenery import clump_blob, paint_leafy_tree
from penstock_engines.cinema.landscape.masonry import Builder
from penstock_engines.cinema.landscape.terrain import (
    Planter,
    add_hills,
    add_meadow_front,
    add_range,
    make_plant_tones,
)
from penstock_engines.cinema.paint.brush import Brush, Point, mix
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_garden(scene: Scene) -> None:
    """Build cherry trees in bloom around a pond with a red bridge."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    add_range(scene, depth=0.03, height=0.24, wave=0.9, distance=0.95, snow=0.1)
    for depth, foot, distance, count, size in ((0.08, 0.02, 0.6, 24, (0.08, 0.14)), (0.15, 0.05, 0.3, 6, (0.2, 0.3))):
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.04,
            wave=0.6,
            distance=distance,
            colours=((130, 178, 96), (96, 148, 84)),
            plant=_cherry_planter(scene, distance),
            count=count,
            size=size,
        )
        scene.lay(sheet)
    scene.add_water((50, 120, 120), top=0.055, calm=0.9)
    bridge = scene.sheet(0.22)
    _paint_bridge(Builder(bridge, light, random, 0.08), (0.3 * view.half, 0.1), 0.5)
    scene.lay(bridge)
    bank, line = add_hills(
        scene, depth=0.42, foot=0.19, height=0.03, wave=0.7, distance=0.05, colours=((140, 190, 96), (88, 142, 76))
    )
    for x in scene.spots(round(8 * view.half) + 1, bank.left, bank.right):
        y = float(line[min(len(line) - 1, bank.column(x))]) + 0.006
        stone = light.ground((150, 148, 146), 0.05)
        bank.brush.ellipse((x, y), (0.03, 0.016), stone)
        bank.brush.ellipse((x + 0.005, y - 0.004), (0.02, 0.009), mix(stone, (255, 255, 255), 0.2))
    scene.lay(bank)
    scene.perform(0.21, 0.3)
    _hang_boughs(scene)
    add_meadow_front(scene, colours=((80, 142, 66), (120, 178, 80)), flowers=((250, 190, 214),), height=0.07)


def _hang_boughs(scene: Scene) -> None:
    """Add blossoming boughs that reach in from above."""
    light, random, view = scene.light, scene.random, scene.view
    near = scene.sheet(0.75)
    boughs = make_plant_tones(scene, (246, 160, 190), 0.0)
    trunk = light.shade((72, 48, 46))
    start = (-view.half * 1.15, view.top * 0.55)
    for tip in (
        (-view.half * 0.1, view.top * 0.95),
        (-view.half * 0.35, view.top * 0.62),
        (-view.half * 0.62, view.top * 0.3),
    ):
        middle = ((start[0] + tip[0]) / 2, (start[1] + tip[1]) / 2 - 0.04)
        near.brush.limb([start, middle, tip], [0.04, 0.022, 0.007], trunk)
        for share in np.linspace(0.25, 1.05, 13):
            x = start[0] + (tip[0] - start[0]) * share + random.uniform(-0.04, 0.04)
            y = start[1] + (tip[1] - start[1]) * share - 0.06 * math.sin(share * 3) + random.uniform(-0.04, 0.04)
            for tone, grow in ((0, 0.05), (1, 0.04), (2, 0.022)):
                clump_blob(
                    near.brush,
                    (x + 0.008 * tone, y - 0.01 * tone),
                    grow * random.uniform(0.6, 1.1),
                    boughs[tone],
                    random,
                )
    scene.lay(near, sway=0.006, foot=view.bottom, rhythm=0.8)


def _cherry_planter(scene: Scene, distance: float) -> Planter:
    choices = [
        make_plant_tones(scene, colour, distance) for colour in ((246, 166, 194), (252, 196, 214), (236, 140, 176))
    ]
    trunk = scene.light.shade((84, 58, 54), distance)

    def plant(brush: Brush, foot: Point, height: float) -> None:
        paint_leafy_tree(brush, foot, height, choices[int(scene.random.integers(3))], trunk, scene.random)

    return plant


def _paint_bridge(builder: Builder, middle: Point, width: float) -> None:
    """Paint a red arch with railings."""
    x, y = middle
    red, dark = builder.roof_tone((206, 62, 54)), builder.tone((140, 40, 44))
    shares = np.linspace(-1, 1, 21)
    bow = [(x + share * width / 2, y - 0.1 * (1 - share**2)) for share in shares]
    builder.brush.polygon([*bow, *[(px, py + 0.03) for px, py in reversed(bow)]], dark)
    builder.brush.limb(bow, [0.012] * 21, red)
    builder.brush.limb([(px, py - 0.055) for px, py in bow], [0.011] * 21, red)
    for px, py in bow[::2]:
        builder.brush.limb([(px, py), (px, py - 0.062)], [0.011, 0.011], red)


GARDEN_PLACES = (
    Place(
        "blossom garden",
        list_words(
            "garden, cherry blossom, japanese garden, sakura, park, spring garden, "
            "rose garden, pond with a bridge, backyard, blooming trees"
        ),
        Surface.GROUND,
        "meadow",
        build_garden,
        horizon=0.56,
    ),
)
