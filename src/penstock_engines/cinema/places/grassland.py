"""Open land with grass."""

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.landscape.masonry import Builder
from penstock_engines.cinema.landscape.terrain import (
    LEAVES,
    Planter,
    add_hills,
    add_meadow_front,
    add_range,
    make_plant_tones,
    tree_planter,
)
from penstock_engines.cinema.paint.brush import Brush, Point
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_meadow(scene: Scene) -> None:
    """Build rolling green hills with flowers up to the camera."""
    scene.add_sky()
    add_range(scene, depth=0.03, height=0.16, wave=0.6, distance=1.0, lit=(140, 160, 170), shadow=(90, 116, 150))
    trees = tree_planter(scene, LEAVES, 0.6)
    for depth, foot, height, distance, colours, count, size in (
        (0.08, 0.03, 0.07, 0.75, ((120, 170, 90), (150, 190, 110)), 26, (0.04, 0.08)),
        (0.18, 0.09, 0.07, 0.45, ((126, 186, 82), (90, 150, 76)), 5, (0.12, 0.2)),
        (0.4, 0.17, 0.06, 0.18, ((140, 196, 84), (74, 140, 66)), 0, (0.1, 0.2)),
    ):
        planter = trees if distance > 0.6 else tree_planter(scene, LEAVES, distance)
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=height,
            wave=0.9,
            distance=distance,
            colours=colours,
            plant=planter,
            count=count,
            size=size,
        )
        _sprinkle(scene, sheet.brush, (sheet.left, sheet.right), (foot, foot + 0.14), distance)
        scene.lay(sheet)
    scene.perform(0.17, 0.29)
    petals = ((232, 70, 80), (250, 214, 80), (236, 130, 190), (250, 250, 245), (128, 104, 220))
    add_meadow_front(scene, colours=((82, 150, 62), (120, 184, 76)), flowers=petals, height=0.12)


def _sprinkle(
    scene: Scene, brush: Brush, span: tuple[float, float], rows: tuple[float, float], distance: float
) -> None:
    """Paint far flowers as dots of colour."""
    petals = ((232, 70, 80), (250, 214, 80), (236, 130, 190), (250, 250, 245))
    size = 0.006 * (1.15 - distance)
    for number in range(round(150 * (span[1] - span[0]) / 1.9)):
        x, y = scene.random.uniform(*span), scene.random.uniform(*rows)
        brush.ellipse((x, y), (size, size * 0.6), scene.light.ground(petals[number % 4], distance))


def build_savanna(scene: Scene) -> None:
    """Build golden grass and flat-topped acacias."""
    scene.add_sky()
    add_range(scene, depth=0.03, height=0.12, wave=0.8, distance=0.95, lit=(170, 140, 130), shadow=(120, 96, 120))
    for depth, foot, distance, count, size in ((0.08, 0.02, 0.7, 16, (0.06, 0.11)), (0.2, 0.07, 0.36, 5, (0.2, 0.32))):
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.02,
            wave=0.8,
            distance=distance,
            colours=((214, 176, 92), (196, 144, 72)),
            plant=_acacia_planter(scene, distance),
            count=count,
            size=size,
        )
        scene.lay(sheet)
    sheet, _ = add_hills(
        scene, depth=0.42, foot=0.15, height=0.04, wave=1.1, distance=0.1, colours=((222, 178, 90), (176, 122, 60))
    )
    scene.lay(sheet)
    scene.perform(0.16, 0.28)
    add_meadow_front(scene, colours=((190, 140, 62), (226, 184, 96)), height=0.13)


def _acacia_planter(scene: Scene, distance: float) -> Planter:
    tones = make_plant_tones(scene, (104, 126, 62), distance)
    trunk = scene.light.shade((74, 52, 44), distance)

    def plant(brush: Brush, foot: Point, height: float) -> None:
        x, y = foot
        fork = (x + height * 0.05, y - height * 0.45)
        brush.limb([(x, y), fork], [height * 0.08, height * 0.05], trunk)
        for side in (-0.42, -0.16, 0.18, 0.45):
            brush.limb([fork, (x + side * height, y - height * 0.82)], [height * 0.04, height * 0.014], trunk)
        for tone, lift, wide in ((0, 0.0, 1.0), (1, 0.04, 0.86), (2, 0.075, 0.5)):
            for side in (-0.5, -0.2, 0.12, 0.42):
                centre = (
                    x + side * height * wide + height * 0.04 * tone,
                    y - height * (0.86 + lift) - 0.04 * height * (side == -0.2),
                )
                brush.ellipse(centre, (height * 0.34 * wide, height * 0.075 * wide), tones[tone])

    return plant


def build_farm(scene: Scene) -> None:
    """Build striped fields, a red barn and a windmill."""
    scene.add_sky()
    for number, (depth, foot, distance, colours) in enumerate(
        (
            (0.04, 0.02, 0.9, ((150, 180, 120), (170, 190, 120))),
            (0.09, 0.06, 0.62, ((206, 190, 96), (150, 176, 90))),
            (0.17, 0.11, 0.36, ((126, 176, 84), (196, 178, 88))),
            (0.34, 0.18, 0.14, ((156, 192, 86), (96, 150, 74))),
        )
    ):
        sheet, line = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.07,
            wave=1.1,
            distance=distance,
            colours=colours,
            plant=tree_planter(scene, LEAVES, distance),
            count=(40, 14, 5, 0)[number],
            size=(0.03 + 0.35 * depth, 0.05 + 0.6 * depth),
        )
        _plough(scene, sheet, line, distance)
        if number == 2:
            _build_barn(scene, sheet, line)
        scene.lay(sheet)
    scene.perform(0.19, 0.3)
    add_meadow_front(scene, colours=((214, 176, 80), (236, 204, 110)), flowers=((250, 196, 50),), height=0.12)


def _plough(scene: Scene, sheet: Sheet, line: NDArray[np.float32], distance: float) -> None:
    """Paint furrows that converge towards the ridge."""
    if distance > 0.8:
        return
    dark = scene.light.ground((112, 130, 66), distance)
    for start in np.arange(sheet.left * 2.4, sheet.right * 2.4, 0.1 + 0.25 * (1 - distance)):
        middle = start * 0.5
        if not sheet.left < middle < sheet.right:
            continue
        y = float(line[min(len(line) - 1, sheet.column(middle))])
        wide = 0.02 * (1.2 - distance)
        sheet.brush.polygon([(middle, y + 0.004), (start + wide, y + 0.3), (start - wide, y + 0.3)], dark, 0.22)


def _build_barn(scene: Scene, sheet: Sheet, line: NDArray[np.float32]) -> None:
    builder = Builder(sheet, scene.light, scene.random, 0.25)
    x = -0.42 * scene.view.half
    y = float(line[sheet.column(x)]) + 0.03
    builder.house(x, y, 0.2, 0.1, (186, 62, 54), (120, 110, 112))
    builder.box(x - 0.06, y - 0.17, x - 0.01, y, builder.tone((206, 206, 204)))
    builder.brush.ellipse((x - 0.035, y - 0.17), (0.025, 0.03), builder.roof_tone((150, 156, 164)))
    mill = (0.5 * scene.view.half, float(line[sheet.column(0.5 * scene.view.half)]) + 0.02)
    builder.brush.polygon(
        [
            (mill[0] - 0.035, mill[1]),
            (mill[0] - 0.02, mill[1] - 0.17),
            (mill[0] + 0.02, mill[1] - 0.17),
            (mill[0] + 0.035, mill[1]),
        ],
        builder.tone((238, 232, 220)),
    )
    builder.brush.polygon(
        [(mill[0] - 0.026, mill[1] - 0.17), (mill[0], mill[1] - 0.21), (mill[0] + 0.026, mill[1] - 0.17)],
        builder.roof_tone((150, 84, 70)),
    )
    for turn in (0.4, 1.97, 3.54, 5.11):
        tip = (mill[0] + 0.12 * np.cos(turn), mill[1] - 0.175 + 0.12 * np.sin(turn))
        builder.brush.limb([(mill[0], mill[1] - 0.175), tip], [0.006, 0.022], builder.tone((214, 204, 188)))


GRASSLAND_PLACES = (
    Place(
        "flower meadow",
        list_words(
            "meadow, flower meadow, wildflowers, grassy hill, grassland, "
            "spring meadow, field of flowers, prairie, grass, green hills"
        ),
        Surface.GROUND,
        "meadow",
        build_meadow,
        horizon=0.56,
    ),
    Place(
        "savanna",
        list_words(
            "savanna, african plains, safari, acacia trees, serengeti, golden grassland, dry plains, africa, steppe"
        ),
        Surface.GROUND,
        "meadow",
        build_savanna,
        horizon=0.6,
    ),
    Place(
        "farm",
        list_words(
            "farm, rolling fields, farmland, barn, wheat field, countryside, crops, harvest, windmill, rural fields"
        ),
        Surface.GROUND,
        "meadow",
        build_farm,
        horizon=0.54,
    ),
)
