"""The jungle."""

import math

import numpy as np

from penstock_engines.cinema.landscape.ridges import paint_hill
from penstock_engines.cinema.landscape.terrain import (
    add_beams,
    add_hills,
    make_plant_tones,
    plant_row,
    tree_planter,
)
from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.patterns import Randomness
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_jungle(scene: Scene) -> None:
    """Build deep green with big leaves and hanging vines."""
    greens: tuple[Colour, ...] = ((52, 140, 72), (34, 112, 74), (96, 166, 62))
    light, random = scene.light, scene.random
    scene.add_sky()
    for depth, foot, distance, size in (
        (0.06, 0.04, 0.9, (0.36, 0.5)),
        (0.14, 0.07, 0.6, (0.45, 0.66)),
        (0.26, 0.11, 0.3, (0.5, 0.8)),
    ):
        sheet, line = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.05,
            wave=0.5,
            distance=distance,
            colours=((60, 122, 66), (26, 70, 56)),
            plant=tree_planter(scene, greens, distance),
            count=round(9 / size[0]),
            size=size,
        )
        tones = make_plant_tones(scene, greens[0], distance)
        plant_row(
            scene,
            sheet,
            line,
            lambda brush, base, tall, tones=tones: _paint_fern(brush, base, tall, tones[1], random),
            22,
            (0.08, 0.16),
            sink=0.03,
        )
        scene.lay(sheet)
        scene.add_mist(
            mix(light.air, light.shade((120, 190, 140)), 0.4),
            top=-0.2,
            bottom=0.14,
            strength=0.26,
            speed=0.02,
        )
    add_beams(scene, 0.4)
    sheet, _ = add_hills(
        scene, depth=0.42, foot=0.17, height=0.04, wave=0.6, distance=0.1, colours=((66, 110, 58), (34, 66, 46))
    )
    scene.lay(sheet)
    scene.perform(0.2, 0.3)
    _add_leaf_frame(scene, greens)


def _paint_fern(brush: Brush, foot: Point, height: float, colour: Colour, random: Randomness) -> None:
    """Paint arching leaves from one point."""
    for turn in np.linspace(-1.2, 1.2, 7):
        reach = height * random.uniform(0.7, 1.1)
        tip = (foot[0] + math.sin(turn) * reach, foot[1] - math.cos(turn) * reach * 0.7 + reach * 0.25 * abs(turn))
        middle = ((foot[0] + tip[0]) / 2 - 0.02 * turn, (foot[1] + tip[1]) / 2 - reach * 0.22)
        side = reach * 0.07
        brush.blob(
            [foot, (middle[0] - side, middle[1]), tip, (middle[0] + side, middle[1] + side)],
            mix(colour, (255, 255, 160), 0.12 * random.random()),
        )


def _add_leaf_frame(scene: Scene, greens: tuple[Colour, ...]) -> None:
    """Add vines from above and dark leaves from the corners."""
    light, random, view = scene.light, scene.random, scene.view
    vines = scene.sheet(0.7)
    for x in scene.spots(round(9 * view.half / 0.9) + 3, vines.left, vines.right):
        length = random.uniform(0.1, 0.3) * (0.6 + abs(x) / view.half)
        colour = light.shade(mix(greens[1], (10, 30, 26), 0.5))
        spine = [(x + 0.02 * math.sin(step * 3 + x * 9), vines.top + length * step) for step in np.linspace(0, 1, 8)]
        vines.brush.limb(spine, [0.007] * 8, colour)
        for px, py in spine[1:]:
            vines.brush.ellipse((px + 0.012, py), (0.018, 0.008), mix(colour, light.shade(greens[2]), 0.3), degrees=30)
    scene.lay(vines, sway=0.03, foot=vines.top, rhythm=0.6)
    for depth, dark, rhythm in ((0.85, 0.35, 0.8), (1.0, 0.6, 1.1)):
        front = scene.sheet(depth)
        for x in scene.spots(round(13 * view.half / 0.9) + 3, front.left, front.right):
            edge = abs(x) / view.half
            foot = (x, view.bottom + 0.06)
            size = (0.1 + 0.22 * edge**2) * random.uniform(0.8, 1.2)
            _paint_fern(
                front.brush, foot, size, light.shade(mix(greens[int(random.integers(3))], (6, 24, 26), dark)), random
            )
        line = np.full(front.picture.shape[1], view.bottom - 0.005, np.float32)
        paint_hill(front, line, [light.shade(mix(greens[1], (6, 24, 26), dark))], reach=0.1, random=random)
        scene.lay(front, sway=0.02, foot=view.bottom, rhythm=rhythm)


JUNGLE_PLACES = (
    Place(
        "jungle",
        list_words(
            "jungle, rainforest, tropical forest, amazon, vines and ferns, "
            "lush green jungle, tropical plants, palm jungle"
        ),
        Surface.GROUND,
        "forest",
        build_jungle,
        horizon=0.62,
    ),
)
