"""Villages, castles and the railway between them."""

import numpy as np

from penstock_engines.cinema.landscape.masonry import WALLS, Builder
from penstock_engines.cinema.landscape.ridges import paint_hill
from penstock_engines.cinema.landscape.terrain import (
    LEAVES,
    add_hills,
    add_meadow_front,
    add_range,
    fir_planter,
    tree_planter,
)
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_village(scene: Scene) -> None:
    """Build cottages and a church among trees and hills."""
    scene.add_sky()
    light, random = scene.light, scene.random
    add_range(scene, depth=0.03, height=0.2, wave=0.7, distance=0.95)
    for depth, foot, distance, count, size in (
        (0.07, 0.03, 0.7, 36, (0.04, 0.07)),
        (0.14, 0.08, 0.42, 14, (0.08, 0.14)),
    ):
        sheet, line = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.08,
            wave=0.8,
            distance=distance,
            colours=((130, 180, 96), (100, 154, 86)),
            plant=tree_planter(scene, LEAVES, distance),
            count=count,
            size=size,
        )
        builder = Builder(sheet, light, random, distance)
        for x in scene.spots(round(9 * scene.view.half) + 1, sheet.left, sheet.right):
            width = size[1] * random.uniform(0.8, 1.1)
            y = float(line[min(len(line) - 1, sheet.column(x + width / 2))]) + 0.02
            builder.house(x, y, width, width * 0.55, WALLS[int(random.integers(6))], (176, 84, 64))
        if depth < 0.1:
            x = 0.3 * scene.view.half
            y = float(line[sheet.column(x)]) + 0.02
            builder.keep(x, y, 0.035, 0.13, (226, 218, 204), (110, 80, 90))
            builder.house(x + 0.033, y, 0.09, 0.05, (226, 218, 204), (150, 84, 72))
        scene.lay(sheet)
    near, line = add_hills(
        scene, depth=0.36, foot=0.17, height=0.05, wave=1.0, distance=0.12, colours=((142, 192, 92), (88, 146, 74))
    )
    path = scene.light.ground((214, 186, 140), 0.1)
    near.brush.blob([(0.05, 0.14), (0.09, 0.14), (0.02, 0.22), (0.3, 0.6), (-0.25, 0.6), (-0.1, 0.24)], path)
    builder = Builder(near, light, random, 0.08)
    for x, width in ((-scene.view.half * 0.85, 0.24), (scene.view.half * 0.5, 0.28)):
        builder.house(x, 0.17, width, width * 0.52, WALLS[int(random.integers(6))], (166, 76, 60))
        tree_planter(scene, LEAVES, 0.08)(near.brush, (x + width * 1.3, 0.175), 0.26)
    scene.lay(near)
    scene.perform(0.2, 0.3)
    add_meadow_front(
        scene, colours=((86, 148, 64), (122, 176, 76)), flowers=((250, 250, 245), (232, 70, 80)), height=0.08
    )


def build_castle(scene: Scene) -> None:
    """Build a castle on its hill over an old town."""
    scene.add_sky()
    light, random = scene.light, scene.random
    add_range(scene, depth=0.03, height=0.22, wave=0.6, distance=0.95)
    sheet, _ = add_hills(
        scene,
        depth=0.07,
        foot=0.02,
        height=0.06,
        wave=0.6,
        distance=0.7,
        colours=((96, 140, 96), (120, 160, 120)),
        plant=fir_planter(scene, (60, 110, 84), 0.7),
        count=60,
        size=(0.04, 0.08),
    )
    scene.lay(sheet)
    _raise_castle(scene)
    town, line = add_hills(
        scene, depth=0.24, foot=0.15, height=0.04, wave=0.8, distance=0.15, colours=((126, 172, 88), (84, 134, 74))
    )
    builder = Builder(town, light, random, 0.12)
    for x in scene.spots(round(9 * scene.view.half) + 2, town.left, town.right):
        width = random.uniform(0.11, 0.15)
        builder.house(
            x,
            float(line[min(len(line) - 1, town.column(x))]) + 0.03,
            width,
            width * random.uniform(0.5, 0.9),
            WALLS[int(random.integers(6))],
            (178, 92, 66),
        )
    scene.lay(town)
    near, _ = add_hills(
        scene, depth=0.42, foot=0.22, height=0.03, wave=1.0, distance=0.05, colours=((136, 182, 90), (80, 132, 70))
    )
    scene.lay(near)
    scene.perform(0.22, 0.31)
    add_meadow_front(scene, colours=((80, 140, 62), (116, 168, 74)), height=0.07)


def _raise_castle(scene: Scene) -> None:
    """Paint towers and a wall on a hill of their own."""
    light, random = scene.light, scene.random
    hill = scene.sheet(0.12)
    middle = 0.12 * scene.view.half
    line = (0.07 - 0.17 * np.exp(-(((hill.columns - middle) / 0.42) ** 2))).astype(np.float32)
    builder = Builder(hill, light, random, 0.3)
    stone: Colour = (196, 184, 172)
    for x, width, height, roofed in (
        (-0.3, 0.07, 0.2, True),
        (-0.13, 0.06, 0.32, True),
        (0.02, 0.1, 0.25, False),
        (0.16, 0.06, 0.38, True),
        (0.29, 0.07, 0.19, True),
    ):
        builder.keep(middle + x, -0.04, width, height, stone, (86, 96, 140) if roofed else None)
    builder.box(middle - 0.28, -0.16, middle + 0.33, 0.0, builder.tone(mix(stone, (150, 140, 150), 0.4)))
    for x in np.arange(middle - 0.28, middle + 0.32, 0.03):
        builder.box(x, -0.175, x + 0.017, -0.155, builder.roof_tone(mix(stone, (150, 140, 150), 0.4)))
    builder.brush.ellipse((middle + 0.07, -0.06), (0.03, 0.05), builder.tone((60, 48, 52)))
    paint_hill(
        hill, line, [light.ground((112, 156, 90), 0.3), light.ground((70, 116, 78), 0.25)], reach=0.2, random=random
    )
    scene.lay(hill)


def build_railway(scene: Scene) -> None:
    """Build rails and telegraph poles through fields."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    add_range(scene, depth=0.03, height=0.2, wave=0.7, distance=0.95, snow=0.07)
    for depth, foot, distance, colours, count in (
        (0.07, 0.03, 0.7, ((150, 186, 100), (196, 190, 110)), 34),
        (0.16, 0.09, 0.4, ((196, 186, 96), (130, 172, 88)), 8),
    ):
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.06,
            wave=0.9,
            distance=distance,
            colours=colours,
            plant=tree_planter(scene, LEAVES, distance),
            count=count,
            size=(0.06 + depth * 0.3, 0.09 + depth * 0.5),
        )
        scene.lay(sheet)
    bank = scene.sheet(0.4)
    builder = Builder(bank, light, random)
    top = 0.17
    for x in np.arange(bank.left, bank.right, 0.62):
        builder.brush.limb([(x, top), (x, top - 0.34)], [0.014, 0.01], builder.tone((92, 72, 60)))
        builder.box(x - 0.05, top - 0.32, x + 0.05, top - 0.308, builder.tone((92, 72, 60)))
        for lift in (0.318, 0.3):
            wire = [
                (x + 0.62 * share, top - lift + 0.045 * (1 - (2 * share - 1) ** 2)) for share in np.linspace(0, 1, 9)
            ]
            builder.brush.limb(wire, [0.0028] * 9, builder.tone((60, 60, 70)))
    line = np.full(bank.picture.shape[1], top, np.float32)
    stones = [(150, 140, 134), (122, 112, 110), (110, 140, 76), (84, 122, 66)]
    paint_hill(bank, line, [light.ground(stone) for stone in stones], reach=0.13, random=random, grain=30)
    for x in np.arange(bank.left, bank.right, 0.045):
        bank.brush.polygon(
            [(x, top + 0.018), (x + 0.022, top + 0.018), (x + 0.018, top + 0.062), (x - 0.01, top + 0.062)],
            builder.roof_tone((98, 74, 60)),
        )
    for y, tall in ((top + 0.022, 0.006), (top + 0.05, 0.008)):
        builder.box(bank.left, y, bank.right, y + tall, builder.tone((96, 92, 96)))
        builder.box(bank.left, y, bank.right, y + tall * 0.4, builder.roof_tone((214, 218, 224)))
    scene.lay(bank)
    scene.perform(top + 0.05, min(top + 0.13, view.bottom - 0.06))
    add_meadow_front(scene, colours=((90, 146, 64), (150, 180, 80)), flowers=((232, 70, 80),), height=0.085)


SETTLEMENTS_PLACES = (
    Place(
        "village",
        list_words(
            "village, cottages, small town, countryside village, hamlet, "
            "country houses, church and houses, rural village, farmhouse"
        ),
        Surface.GROUND,
        "meadow",
        build_village,
        horizon=0.56,
    ),
    Place(
        "castle",
        list_words(
            "castle, old town, medieval castle, fortress, fairy tale castle, "
            "palace, kingdom, medieval town, towers and walls"
        ),
        Surface.GROUND,
        "wind",
        build_castle,
        horizon=0.58,
    ),
    Place(
        "railway",
        list_words(
            "railway, train tracks, railroad, rails, train journey, railway line, train station, locomotive country"
        ),
        Surface.GROUND,
        "wind",
        build_railway,
        horizon=0.56,
    ),
)
