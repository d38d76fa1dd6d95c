"""A cave."""

import math

import numpy as np

from penstock_engines.cinema.landscape.ridges import add_glow, paint_hill
from penstock_engines.cinema.landscape.terrain import make_line
from penstock_engines.cinema.paint.brush import Colour, Point, mix
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.patterns import Randomness, wander
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_beams
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_cave(scene: Scene) -> None:
    """Build a cave of glowing crystals, with an opening to the outside light."""
    scene.outdoors = False
    light, random, view = scene.light, scene.random, scene.view
    scene.add_sky(sun_x=0.5)
    for depth, open_width, share in ((0.06, 0.34, 0.45), (0.14, 0.5, 0.25), (0.26, 0.72, 0.08)):
        sheet = scene.sheet(depth)
        stone = [mix((70, 62, 104), light.air, share * 0.4), mix((30, 26, 56), light.air, share * 0.25)]
        paint_hill(sheet, make_line(scene, sheet, 0.06 + depth * 0.55, 0.05, 0.3), stone, reach=0.25, random=random)
        _paint_cave_wall(scene, sheet, open_width * max(0.6, view.half), mix(stone[0], stone[1], 0.5))
        for x in scene.spots(round(12 * view.half), sheet.left, sheet.right):
            glow = ((90, 220, 255), (190, 120, 255), (255, 120, 210))[int(random.integers(3))]
            _paint_crystal(
                sheet, (x, 0.075 + depth * 0.55), random.uniform(0.06, 0.12) * (0.6 + depth * 2.2), glow, random
            )
        scene.lay(sheet)
    ground = scene.sheet(0.5)
    paint_hill(
        ground, make_line(scene, ground, 0.26, 0.03, 0.8), [(64, 56, 92), (26, 22, 46)], reach=0.2, random=random
    )
    scene.lay(ground)
    scene.perform(0.25, 0.33)
    scene.add(
        SoftLight(
            view,
            paint_beams(
                (0.0, view.top * 1.1), mix(light.sun, light.horizon, 0.4), 0.35 * (0.3 + light.shine), random, 1.5
            ),
        )
    )
    near = scene.sheet(0.95)
    _paint_cave_wall(scene, near, view.half * 1.02, (14, 11, 26))
    scene.lay(near)


def _paint_cave_wall(scene: Scene, sheet: Sheet, open_width: float, colour: Colour) -> None:
    """Paint rock all around an opening, with stalactites."""
    random, view = scene.random, scene.view
    turns = np.linspace(math.pi, 2 * math.pi, 60)
    rough = 1 + 0.16 * wander(random, turns.astype(np.float32), 0.5, 4)
    high = -view.top * (0.62 + 0.3 * open_width / view.half)
    arch = [
        (math.cos(turn) * open_width * r, 0.12 + math.sin(turn) * high * r)
        for turn, r in zip(turns, rough.tolist(), strict=True)
    ]
    outer = [
        (sheet.right + 0.2, 0.5),
        (sheet.right + 0.2, sheet.top - 0.2),
        (sheet.left - 0.2, sheet.top - 0.2),
        (sheet.left - 0.2, 0.5),
    ]
    sheet.brush.polygon([(arch[0][0] - 0.06, 0.6), *arch, (arch[-1][0] + 0.06, 0.6), *outer], colour)
    for x, y in arch[8:-8:4]:
        long = random.uniform(0.04, 0.13)
        sheet.brush.polygon([(x - 0.022, y - 0.03), (x + 0.022, y - 0.03), (x + 0.004, y + long)], colour)


def _paint_crystal(sheet: Sheet, foot: Point, size: float, colour: Colour, random: Randomness) -> None:
    add_glow(sheet, (foot[0], foot[1] - size * 0.5), size * 1.6, colour, 0.42)
    for turn in random.uniform(-0.7, 0.7, 4):
        tall, wide = size * random.uniform(0.6, 1.1), size * 0.1
        up, out = (math.sin(turn), -math.cos(turn)), (math.cos(turn), math.sin(turn))
        shoulder = (foot[0] + up[0] * tall * 0.78, foot[1] + up[1] * tall * 0.78)
        tip = (foot[0] + up[0] * tall, foot[1] + up[1] * tall)
        left = [(point[0] - out[0] * wide, point[1] - out[1] * wide) for point in (foot, shoulder)]
        right = [(point[0] + out[0] * wide, point[1] + out[1] * wide) for point in (foot, shoulder)]
        sheet.brush.polygon([*left, tip, foot], mix(colour, (255, 255, 255), 0.35))
        sheet.brush.polygon([foot, tip, right[1], right[0]], mix(colour, (40, 20, 110), 0.4))


UNDERGROUND_PLACES = (
    Place(
        "cave",
        list_words("cave, crystal cave, cavern, grotto, underground, glowing crystals, stalactites, mine, dungeon"),
        Surface.GROUND,
        "cave",
        build_cave,
        horizon=0.58,
    ),
)
