"""Lakes, rivers and falls."""

from typing import NamedTuple

import cv2
import numpy as np

from penstock_engines.cinema.landscape.ridges import paint_mountains
from penstock_engines.cinema.landscape.terrain import (
    add_hills,
    add_meadow_front,
    add_range,
    fir_planter,
    tree_planter,
)
from penstock_engines.cinema.landscape.waterfall import Cascade
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.patterns import soften, wander
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_lake(scene: Scene) -> None:
    """Build snowy peaks and firs around a still lake."""
    scene.add_sky()
    add_range(scene, depth=0.03, height=0.36, wave=0.62, distance=0.85, snow=0.2)
    add_range(scene, depth=0.06, height=0.22, wave=0.5, distance=0.55)
    shore, _ = add_hills(
        scene,
        depth=0.1,
        foot=0.012,
        height=0.06,
        wave=0.5,
        distance=0.4,
        colours=((66, 108, 82), (44, 82, 70)),
        reach=0.07,
        plant=fir_planter(scene, (44, 92, 74), 0.35),
        count=80,
        size=(0.05, 0.11),
    )
    scene.lay(shore)
    scene.add_water((26, 84, 104), top=0.012, calm=0.8)
    scene.perform(0.12, 0.24)
    add_meadow_front(scene, colours=((60, 110, 62), (98, 150, 74)), height=0.09)


def build_river(scene: Scene) -> None:
    """Build a river that winds between green banks."""
    scene.add_sky()
    light, view = scene.light, scene.view
    add_range(scene, depth=0.03, height=0.28, wave=0.7, distance=0.9, snow=0.1)
    trees = ((84, 146, 76), (60, 120, 74), (116, 166, 82))
    far, _ = add_hills(
        scene,
        depth=0.08,
        foot=0.015,
        height=0.09,
        wave=0.7,
        distance=0.55,
        colours=((110, 164, 92), (84, 140, 84)),
        plant=tree_planter(scene, trees, 0.55),
        count=40,
        size=(0.04, 0.08),
    )
    scene.lay(far)
    scene.add_water((34, 110, 124), top=0.018, calm=0.85)
    meadow, _ = add_hills(
        scene,
        depth=0.3,
        foot=0.03,
        height=0.012,
        wave=0.6,
        distance=0.2,
        colours=((126, 178, 92), (134, 190, 88), (84, 142, 72)),
        reach=0.36,
    )
    planter = tree_planter(scene, trees, 0.2)
    for x in (-0.95, -0.7, 0.62, 0.88, -0.4):
        planter(meadow.brush, (x * view.half, 0.05 + 0.03 * abs(x)), 0.14 + 0.14 * abs(x))
    _dig_river(meadow, light.ground((150, 128, 92), 0.15), 0.006)
    _dig_river(meadow, None, 0.0)
    scene.lay(meadow)
    scene.last_depth = None
    scene.perform(0.2, 0.28)
    add_meadow_front(
        scene, colours=((76, 136, 62), (116, 170, 76)), flowers=((250, 250, 245), (250, 214, 80)), height=0.09
    )


def _dig_river(sheet: Sheet, bed: Colour | None, wider: float) -> None:
    """Paint a winding bed that widens towards the camera. Without a colour, cut it out to show the water."""
    downs = np.linspace(0.022, sheet.bottom + 0.02, 40)
    middles = 0.16 * np.sin(5.2 / (downs + 0.14)) * np.exp(-downs * 2)
    widths = 0.02 + 2.3 * downs**1.15 + wider * (1 + 6 * downs)
    left = np.stack([middles - widths, downs], axis=1)
    right = np.stack([middles + widths, downs], axis=1)[::-1]
    corners = (np.concatenate([left, right]) - (sheet.left, sheet.top)) * sheet.unit * 16
    paint = (0, 0, 0, 0) if bed is None else (*bed[::-1], 255)
    cv2.fillPoly(sheet.picture, [np.round(corners).astype(np.int32)], paint, cv2.LINE_AA, 4)


class Rocks(NamedTuple):
    """The tones of a cliff."""

    lit: Colour
    shadow: Colour
    foot: Colour


def build_waterfall(scene: Scene) -> None:
    """Build a white fall between green cliffs."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    add_range(scene, depth=0.03, height=0.3, wave=0.6, distance=0.95)
    wall = scene.sheet(0.1)
    tall = 0.36 if view.half > 0.5 else 0.55
    rim = (0.04 - tall * (1 - 0.1 * wander(random, wall.columns, 0.5))).astype(np.float32)
    rocks = Rocks(light.ground((128, 122, 116), 0.3), light.ground((58, 66, 76), 0.3), light.ground((60, 90, 80), 0.3))
    paint_mountains(
        wall,
        rim,
        random=random,
        reach=0.7,
        snow=(light.ground((104, 160, 84), 0.25), light.ground((60, 116, 72), 0.25)),
        snow_depth=0.05,
        lit=rocks.lit,
        shadow=rocks.shadow,
        foot=rocks.foot,
    )
    scene.lay(wall)
    scene.add(Cascade(scene.lens, light, random, depth=0.11, top=0.03 - tall, bottom=0.07, width=0.2))
    _add_cliffs(scene, tall + 0.14, rocks)
    scene.add_water((30, 120, 130), top=0.06, calm=0.6)
    scene.add_mist(
        mix(light.horizon, (255, 255, 255), 0.5 * (1 - light.darkness)),
        top=-0.06,
        bottom=0.14,
        strength=0.5,
        speed=0.04,
    )
    scene.perform(0.15, 0.26)
    add_meadow_front(scene, colours=((56, 110, 62), (90, 150, 70)), height=0.11)


def _add_cliffs(scene: Scene, tall: float, rocks: Rocks) -> None:
    """Add mossy cliffs to the left and to the right of the fall."""
    light, random = scene.light, scene.random
    moss = (light.ground((112, 172, 84), 0.1), light.ground((56, 112, 66), 0.1))
    for depth, side in ((0.16, -1), (0.2, 1)):
        cliff = scene.sheet(depth)
        across = cliff.columns * side / np.float32(scene.view.half)
        rough = 0.05 * wander(random, cliff.columns, 0.2)
        rise = soften((across - 0.2 + rough).astype(np.float32), 0, 0.22) * (1 + 0.2 * across)
        line = np.where(across < 0.14, 9, 0.06 - tall * rise).astype(np.float32)
        paint_mountains(
            cliff,
            line,
            lit=rocks.lit,
            shadow=rocks.shadow,
            foot=rocks.foot,
            random=random,
            reach=0.8,
            snow=moss,
            snow_depth=0.045,
        )
        cliff.picture[cliff.row(0.09) :] = 0
        cliff.picture[:, line > 5] = 0
        scene.lay(cliff)


INLAND_WATER_PLACES = (
    Place(
        "mountain lake",
        list_words("mountain lake, lake, calm lake, still water, pond, alpine lake, fjord, lake reflection, lakeside"),
        Surface.WATER,
        "meadow",
        build_lake,
        horizon=0.58,
    ),
    Place(
        "river valley",
        list_words("river, river valley, stream, creek, riverbank, winding river, valley, brook, canoe trip"),
        Surface.WATER,
        "meadow",
        build_river,
        horizon=0.5,
    ),
    Place(
        "waterfall",
        list_words(
            "waterfall, cascade, waterfalls in the jungle, falling water, cliff waterfall, niagara, iguazu, plunge pool"
        ),
        Surface.WATER,
        "sea",
        build_waterfall,
        horizon=0.56,
    ),
)
