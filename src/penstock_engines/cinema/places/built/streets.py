"""Cities and roads."""

import numpy as np

from penstock_engines.cinema.landscape.masonry import WALLS, Builder
from penstock_engines.cinema.landscape.ridges import add_glow, paint_hill
from penstock_engines.cinema.landscape.terrain import LEAVES, add_hills, add_range, fir_planter, tree_planter
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words
from penstock_engines.cinema.script import Time

NEONS: tuple[Colour, ...] = ((255, 60, 150), (60, 220, 255), (170, 90, 255), (255, 170, 60), (90, 255, 170))


def _add_skyline(
    scene: Scene,
    depth: float,
    distance: float,
    size: tuple[float, float],
    wall: Colour,
    *,
    foot: float = 0.02,
    lit: float = 0.5,
    window: Colour = (255, 206, 120),
) -> Sheet:
    """Return a row of towers. The caller lays it."""
    sheet = scene.sheet(depth)
    builder = Builder(sheet, scene.light, scene.random, distance)
    random, x = scene.random, sheet.left - 0.05
    while x < sheet.right:
        width = random.uniform(0.07, 0.15)
        height = random.uniform(*size) * (1 + 0.35 * max(0.0, 0.7 - scene.view.half))
        tone = mix(wall, (150, 120, 120), float(random.random()) * 0.35)
        builder.tower(x, x + width, foot - height, foot + 0.02, tone, lit=lit, window=window)
        if random.random() < 0.3:
            builder.brush.limb(
                [(x + width / 2, foot - height), (x + width / 2, foot - height - 0.07)],
                [0.006, 0.002],
                builder.tone(tone),
            )
            add_glow(sheet, (x + width / 2, foot - height - 0.07), 0.02, (255, 60, 50), scene.light.darkness)
        x += width * random.uniform(0.95, 1.25)
    builder.box(sheet.left, foot, sheet.right, sheet.bottom, builder.tone(mix(wall, (30, 34, 50), 0.3)))
    return sheet


def _add_road(
    scene: Scene, *, top: float, depth: float = 0.5, tar: Colour = (76, 80, 92), verge: Colour | None = None
) -> None:
    """Add a road from left to right, with markings. It shines when wet."""
    light, view = scene.light, scene.view
    sheet = scene.sheet(depth)
    builder = Builder(sheet, light, scene.random)
    line = np.full(sheet.picture.shape[1], top, np.float32)
    shine = mix(light.ground(tar), light.middle, 0.3 * light.wet)
    paint_hill(
        sheet,
        line,
        [shine, light.ground(mix(tar, (20, 24, 36), 0.4))],
        reach=view.bottom - top,
        random=scene.random,
        grain=5,
    )
    builder.box(sheet.left, top, sheet.right, top + 0.012, light.ground(verge or (190, 184, 176)))
    middle = (top + view.bottom) / 2 + 0.012
    for x in np.arange(sheet.left, sheet.right, 0.26):
        sheet.brush.polygon(
            [(x, middle), (x + 0.13, middle), (x + 0.125, middle + 0.012), (x - 0.008, middle + 0.012)],
            light.ground((240, 236, 220)),
        )
    scene.lay(sheet)


def build_street(scene: Scene) -> None:
    """Build a street of shops, with trees and lamps along the pavement."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    scene.lay(_add_skyline(scene, 0.05, 0.75, (0.28, 0.5), (120, 130, 150)))
    row = scene.sheet(0.22)
    builder = Builder(row, light, random, 0.06)
    awnings: tuple[Colour, ...] = ((200, 70, 70), (60, 130, 110), (70, 100, 170), (220, 160, 60))
    x = row.left - 0.1
    while x < row.right:
        width = random.uniform(0.24, 0.36)
        wall = WALLS[int(random.integers(len(WALLS)))]
        builder.shop(x, 0.1, width, random.uniform(0.34, 0.5), wall, awnings[int(random.integers(4))])
        x += width
    builder.box(row.left, 0.1, row.right, row.bottom, builder.roof_tone((170, 166, 164)))
    scene.lay(row)
    walk = scene.sheet(0.3)
    planter = tree_planter(scene, LEAVES, 0.05)
    for x in scene.spots(3, walk.left, walk.right):
        planter(walk.brush, (x, 0.125), 0.3)
        Builder(walk, light, random).lamp_post(x + 0.22, 0.125, 0.26)
    scene.lay(walk, sway=0.003, foot=0.12)
    _add_road(scene, top=0.165, depth=0.42)
    scene.perform(0.14, min(0.3, view.bottom - 0.08))


def build_skyline(scene: Scene) -> None:
    """Build towers across a river."""
    scene.add_sky()
    for depth, distance, size, wall in (
        (0.03, 0.9, (0.2, 0.42), (120, 134, 160)),
        (0.06, 0.55, (0.13, 0.3), (96, 108, 140)),
        (0.1, 0.25, (0.07, 0.18), (86, 90, 116)),
    ):
        scene.lay(_add_skyline(scene, depth, distance, size, wall, foot=0.0, lit=0.6))
    quay = scene.sheet(0.12)
    builder = Builder(quay, scene.light, scene.random, 0.2)
    planter = tree_planter(scene, LEAVES, 0.3)
    for x in scene.spots(26, quay.left, quay.right):
        planter(quay.brush, (x, 0.016), 0.06)
        builder.lamp_post(x + 0.03, 0.014, 0.05)
    builder.box(quay.left, 0.01, quay.right, 0.04, builder.roof_tone((110, 108, 116)))
    scene.lay(quay)
    scene.add_water((24, 64, 92), top=0.036, calm=0.6)
    scene.perform(0.14, 0.25)


def build_neon_city(scene: Scene) -> None:
    """Build a dark street full of signs, mirrored in the wet ground."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    for depth, distance, size in ((0.04, 0.8, (0.4, 0.66)), (0.09, 0.45, (0.34, 0.56))):
        neon = NEONS[int(random.integers(5))]
        scene.lay(
            _add_skyline(scene, depth, distance, size, (52, 50, 86), lit=0.55, window=mix(neon, (255, 255, 255), 0.3))
        )
        scene.add_mist(mix(light.air, NEONS[2], 0.25), top=-0.3, bottom=0.08, strength=0.32, speed=0.02)
    front = _add_skyline(scene, 0.18, 0.08, (0.26, 0.52), (34, 32, 60), foot=0.09, lit=0.35, window=(120, 200, 255))
    _hang_signs(scene, front, 0.09)
    scene.lay(front)
    scene.add_water((30, 26, 52), top=0.1, calm=0.92)
    kerb = scene.sheet(0.2)
    Builder(kerb, light, random).box(kerb.left, 0.092, kerb.right, 0.106, light.shade((90, 90, 120)))
    scene.lay(kerb)
    scene.perform(0.16, min(0.3, view.bottom - 0.08))
    wires = scene.sheet(0.85)
    for drop in (0.05, 0.12):
        points = [
            (x, wires.top + drop + 0.12 * (1 - (x / view.half) ** 2)) for x in np.linspace(wires.left, wires.right, 12)
        ]
        wires.brush.limb(points, [0.006] * 12, light.shade((16, 16, 30)))
    scene.lay(wires)


def _hang_signs(scene: Scene, sheet: Sheet, foot: float) -> None:
    random = scene.random
    shine = 0.35 + 0.65 * scene.light.darkness
    for x in scene.spots(round(15 * scene.view.half / 0.9) + 3, sheet.left, sheet.right):
        neon = NEONS[int(random.integers(len(NEONS)))]
        wide, high = (0.03, random.uniform(0.12, 0.22)) if random.random() < 0.6 else (random.uniform(0.1, 0.18), 0.045)
        y = foot - random.uniform(0.1, 0.26)
        tone = mix((40, 36, 60), neon, shine)
        sheet.brush.polygon([(x, y - high), (x + wide, y - high), (x + wide, y), (x, y)], mix(tone, (10, 8, 24), 0.78))
        for edge in (
            [(x, y - high), (x + wide, y - high)],
            [(x, y), (x + wide, y)],
            [(x, y - high), (x, y)],
            [(x + wide, y - high), (x + wide, y)],
        ):
            sheet.brush.limb(edge, [0.005, 0.005], tone)
        strokes = max(2, round(max(wide, high) / 0.034))
        for stroke in range(strokes):
            cx, cy = (
                (x + wide / 2, y - high * (stroke + 0.5) / strokes)
                if high > wide
                else (x + wide * (stroke + 0.5) / strokes, y - high / 2)
            )
            glyph = random.uniform(-0.009, 0.009, (4, 2))
            sheet.brush.limb(
                [(cx + right, cy + down) for right, down in glyph], [0.004] * 4, mix(tone, (255, 255, 255), 0.4)
            )
        add_glow(sheet, (x + wide / 2, y - high / 2), max(wide, high) * 1.3, neon, 0.5 * shine)


def build_highway(scene: Scene) -> None:
    """Build a wide road through open country."""
    scene.add_sky()
    light, random = scene.light, scene.random
    add_range(scene, depth=0.03, height=0.28, wave=0.7, distance=0.9, lit=(176, 130, 112), shadow=(104, 84, 116))
    for depth, foot, distance, count, size in (
        (0.08, 0.03, 0.65, 40, (0.03, 0.06)),
        (0.2, 0.08, 0.3, 12, (0.09, 0.15)),
    ):
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.05,
            wave=0.9,
            distance=distance,
            colours=((190, 172, 104), (160, 150, 90)),
            plant=fir_planter(scene, (84, 118, 78), distance),
            count=count,
            size=size,
        )
        scene.lay(sheet)
    _add_road(scene, top=0.125, depth=0.45, tar=(84, 86, 96))
    rail = scene.sheet(0.4)
    builder = Builder(rail, light, random)
    for x in np.arange(rail.left, rail.right, 0.12):
        builder.box(x, 0.088, x + 0.01, 0.128, builder.tone((150, 154, 160)))
    builder.box(rail.left, 0.088, rail.right, 0.102, builder.roof_tone((206, 210, 214)))
    scene.lay(rail)
    scene.perform(0.19, 0.3)


STREETS_PLACES = (
    Place(
        "city street",
        list_words(
            "city street, street, downtown, shopping street, sidewalk, "
            "town street, avenue, cafe terrace, urban street, traffic"
        ),
        Surface.ROAD,
        "city",
        build_street,
        horizon=0.58,
    ),
    Place(
        "city skyline",
        list_words(
            "city skyline, skyscrapers, metropolis, city lights, new york, tokyo, "
            "big city, high-rise buildings, riverside city, manhattan"
        ),
        Surface.WATER,
        "city",
        build_skyline,
        horizon=0.6,
    ),
    Place(
        "neon city",
        list_words(
            "neon city, cyberpunk city, futuristic city, neon signs, rainy neon street, "
            "blade runner, night city with neon lights, sci-fi city, synthwave"
        ),
        Surface.ROAD,
        "city",
        build_neon_city,
        default_time=Time.NIGHT,
        horizon=0.58,
    ),
    Place(
        "highway",
        list_words("highway, road, motorway, race track, racing road, open road, road trip, driving, asphalt, freeway"),
        Surface.ROAD,
        "wind",
        build_highway,
        horizon=0.58,
    ),
)
