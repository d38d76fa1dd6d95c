"""Places at the sea."""

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.landscape.greenery import paint_bush, paint_palm
from penstock_engines.cinema.landscape.masonry import Builder
from penstock_engines.cinema.landscape.ridges import paint_hill
from penstock_engines.cinema.landscape.terrain import Planter, add_range, make_plant_tones
from penstock_engines.cinema.paint.brush import Colour, Point
from penstock_engines.cinema.paint.patterns import wander
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def palm_planter(scene: Scene, distance: float) -> Planter:
    """Return a painter of palms, as seen from a distance."""
    tones = make_plant_tones(scene, (60, 148, 76), distance)
    trunk = scene.light.shade((142, 104, 74), distance)
    return lambda brush, foot, height: paint_palm(brush, foot, height, tones, trunk, scene.random)


def build_sea(scene: Scene) -> None:
    """Build an open sea with a far coast."""
    scene.add_sky()
    light, random = scene.light, scene.random
    far = scene.sheet(0.04)
    line = (0.004 - 0.035 * (wander(random, far.columns, 0.7, 4) - 0.35).clip(0)).astype(np.float32)
    paint_hill(
        far, line, [light.shade((70, 96, 120), 0.9), light.shade((84, 110, 130), 1.0)], reach=0.05, random=random
    )
    scene.lay(far)
    scene.add_water((14, 74, 104), calm=0.25)
    scene.perform(0.12, 0.22)


def build_beach(scene: Scene) -> None:
    """Build sand, surf that comes and goes, and palms at the side."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    head = scene.sheet(0.04)
    slope = np.clip(0.1 - head.columns, 0, 2) ** 0.7
    line = (0.006 - slope * (0.07 + 0.03 * wander(random, head.columns, 0.3, 4))).astype(np.float32)
    paint_hill(
        head, line, [light.ground((96, 140, 120), 0.8), light.ground((120, 160, 140), 0.9)], reach=0.08, random=random
    )
    scene.lay(head)
    scene.add_water((20, 138, 160), calm=0.35)
    edge = 0.42 * view.bottom
    for depth, drop, bob, rhythm, opacity in ((0.3, 0.0, 0.012, 0.9, 0.75), (0.34, 0.025, 0.016, 0.75, 0.95)):
        foam = scene.sheet(depth)
        shore = _shore_line(foam.columns, edge - 0.03 + drop)
        foam.brush.polygon(
            _ribbon(foam.columns, shore, 0.02 + 0.006 * wander(random, foam.columns, 0.12)),
            light.shade((250, 252, 255)),
            opacity,
        )
        scene.lay(foam, bob=bob, rhythm=rhythm)
    sand = scene.sheet(0.4)
    line = _shore_line(sand.columns, edge + 0.02)
    sands = [(150, 126, 106), (206, 176, 130), (240, 212, 160), (246, 222, 174), (222, 190, 140)]
    paint_hill(sand, line, [light.ground(tone) for tone in sands], reach=0.34, random=random, grain=8)
    scene.lay(sand)
    scene.perform(edge + 0.09, view.bottom - 0.09)
    near = scene.sheet(0.8)
    side = -view.half * 0.86
    for x, tall in ((side, 0.72), (side - 0.12, 0.55)):
        palm_planter(scene, 0.0)(near.brush, (x, view.bottom + 0.02), tall)
    paint_bush(near.brush, (side - 0.05, view.bottom + 0.02), 0.16, make_plant_tones(scene, (70, 140, 70), 0.0), random)
    scene.lay(near, sway=0.012, foot=view.bottom, rhythm=0.8)


def _shore_line(columns: NDArray[np.float32], middle: float) -> NDArray[np.float32]:
    return (middle + 0.035 * np.sin(columns * 2.4 + 0.6) - 0.03 * columns).astype(np.float32)


def _ribbon(columns: NDArray[np.float32], line: NDArray[np.float32], width: NDArray[np.float32]) -> list[Point]:
    step = slice(None, None, 12)
    upper = list(zip(columns[step].tolist(), line[step].tolist(), strict=True))
    lower = list(zip(columns[step].tolist(), (line + np.abs(width))[step].tolist(), strict=True))
    return [*upper, *reversed(lower)]


def build_island(scene: Scene) -> None:
    """Build a small island with palms in turquoise water."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    scene.add_water((16, 160, 172), calm=0.55)
    far = scene.sheet(0.1)
    middle = -0.3 * view.half
    hump = np.exp(-(((far.columns - middle) / 0.3) ** 2)).astype(np.float32)
    green = (0.05 - 0.22 * hump * (1 + 0.25 * wander(random, far.columns, 0.25, 3))).astype(np.float32)
    paint_hill(
        far,
        green,
        [light.ground((70, 140, 84), 0.3), light.ground((44, 106, 76), 0.3)],
        reach=0.2,
        random=random,
        grain=24,
    )
    far.picture[far.row(0.03) :] = 0
    wide = np.exp(-(((far.columns - middle) / 0.42) ** 2)).astype(np.float32)
    sand = np.where(wide > 0.1, 0.042 - 0.03 * wide, 9).astype(np.float32)
    for x, tall in (
        (middle - 0.3, 0.16),
        (middle - 0.22, 0.22),
        (middle + 0.2, 0.24),
        (middle + 0.3, 0.17),
        (middle + 0.05, 0.2),
    ):
        palm_planter(scene, 0.25)(far.brush, (x, 0.03), tall)
    paint_hill(
        far, sand, [light.ground((246, 224, 170), 0.2), light.ground((214, 184, 138), 0.2)], reach=0.04, random=random
    )
    far.picture[far.row(0.045) :] = 0
    far.brush.ellipse((middle, 0.047), (0.62, 0.007), light.shade((240, 250, 250)), 0.6)
    scene.lay(far)
    scene.perform(0.12, 0.24)
    near = scene.sheet(0.9)
    palm_planter(scene, 0.0)(near.brush, (view.half * 1.02, view.bottom + 0.06), 0.9)
    scene.lay(near, sway=0.012, foot=view.bottom, rhythm=0.8)


def build_harbour(scene: Scene) -> None:
    """Build coloured houses along a quay, masts before them, and a pier."""
    scene.add_sky()
    light, random, view = scene.light, scene.random, scene.view
    add_range(scene, depth=0.03, height=0.2, wave=0.8, distance=0.9, lit=(120, 150, 130), shadow=(80, 110, 120))
    town = scene.sheet(0.09)
    builder = Builder(town, light, random, 0.25)
    walls: tuple[Colour, ...] = (
        (228, 120, 96),
        (240, 200, 120),
        (130, 170, 190),
        (236, 226, 206),
        (196, 110, 110),
        (150, 180, 140),
    )
    x = town.left
    while x < town.right:
        width = random.uniform(0.08, 0.12)
        builder.house(x, 0.012, width, random.uniform(0.07, 0.15), walls[int(random.integers(6))], (164, 84, 66))
        x += width * 1.02
    builder.box(town.left, 0.008, town.right, 0.03, builder.roof_tone((120, 112, 110)))
    for x in scene.spots(7, town.left, town.right):
        builder.lamp_post(x, 0.01, 0.06)
    scene.lay(town)
    scene.add_water((20, 84, 104), top=0.028, calm=0.75)
    boats = scene.sheet(0.16)
    for x in scene.spots(6, boats.left, boats.right):
        _moor(Builder(boats, light, random, 0.1), x, 0.06 + random.uniform(0, 0.012), random.uniform(0.16, 0.24))
    scene.lay(boats, bob=0.002, rhythm=1.4)
    scene.perform(0.15, 0.27)
    pier = scene.sheet(0.9)
    build = Builder(pier, light, random)
    deck, foot = view.bottom - 0.075, view.bottom + 0.1
    for x in np.arange(-view.half * 1.3, -view.half * 0.2, 0.14):
        build.box(x, deck - 0.05, x + 0.025, foot, build.tone((70, 52, 44)))
    build.box(pier.left, deck, -view.half * 0.15, deck + 0.03, build.roof_tone((132, 98, 72)))
    build.box(pier.left, deck + 0.03, -view.half * 0.15, deck + 0.045, build.tone((78, 56, 46)))
    build.lamp_post(-view.half * 0.72, deck, 0.3)
    scene.lay(pier)


def _moor(builder: Builder, x: float, foot: float, height: float) -> None:
    hull = builder.tone(((236, 238, 240), (60, 96, 140), (180, 60, 56))[int(builder.random.integers(3))])
    builder.brush.limb([(x, foot - 0.02), (x, foot - height)], [0.006, 0.003], builder.tone((120, 96, 80)))
    builder.brush.limb(
        [(x, foot - 0.035), (x + height * 0.4, foot - 0.045)], [0.008, 0.006], builder.tone((220, 214, 200))
    )
    builder.brush.polygon(
        [(x - 0.07, foot - 0.026), (x + 0.09, foot - 0.03), (x + 0.066, foot), (x - 0.058, foot)], hull
    )
    builder.box(x - 0.03, foot - 0.045, x + 0.02, foot - 0.026, builder.tone((240, 236, 226)))
    builder.brush.ellipse((x, foot), (0.07, 0.004), builder.light.shade((210, 230, 240)), 0.4)


SHORES_PLACES = (
    Place(
        "open sea",
        list_words(
            "open sea, ocean, sea, waves, high seas, sailing on the water, atlantic, pacific, out at sea, ocean horizon"
        ),
        Surface.WATER,
        "sea",
        build_sea,
        horizon=0.54,
    ),
    Place(
        "beach",
        list_words(
            "beach, seashore, sandy shore, coast, seaside, surf, sand and waves, shoreline, holiday beach, coastline"
        ),
        Surface.GROUND,
        "sea",
        build_beach,
        horizon=0.5,
    ),
    Place(
        "tropical island",
        list_words(
            "tropical island, palm trees, lagoon, caribbean, maldives, hawaii, "
            "desert island, turquoise water, paradise island"
        ),
        Surface.WATER,
        "sea",
        build_island,
        horizon=0.52,
    ),
    Place(
        "harbour",
        list_words("harbour, harbor, port, marina, fishing village, docks, quay, pier, boats in the bay"),
        Surface.WATER,
        "sea",
        build_harbour,
        horizon=0.54,
    ),
)
