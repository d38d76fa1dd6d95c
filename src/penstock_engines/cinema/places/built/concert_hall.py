"""A stage with lights and a crowd."""

import numpy as np

from penstock_engines.cinema.landscape.masonry import Builder
from penstock_engines.cinema.landscape.ridges import paint_hill
from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_spotlights
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words
from penstock_engines.cinema.script import Time


def build_concert(scene: Scene) -> None:
    """Build a stage with moving lights before a cheering crowd."""
    scene.outdoors = False
    light, random, view = scene.light, scene.random, scene.view
    tint = scene.script.tint or (150, 60, 200)
    back = scene.sheet(0.05)
    dark = mix(mix(tint, (8, 6, 24), 0.86), light.zenith, 0.1)
    everywhere = np.full(back.picture.shape[1], back.top - 0.01, np.float32)
    paint_hill(
        back,
        everywhere,
        [mix(dark, (0, 0, 0), 0.4), dark, mix(dark, tint, 0.3)],
        reach=0.1 - back.top,
        random=random,
        grain=3,
    )
    builder = Builder(back, light, random)
    for x in np.arange(-1.3, 1.3, 0.1):
        builder.box(x, view.top * 0.8, x + 0.085, -0.02, mix(dark, tint, 0.1 + 0.22 * float(random.random())))
    for y in (view.top * 0.92, view.top * 0.8):
        builder.box(back.left, y, back.right, y + 0.012, (70, 70, 90))
    for x in np.arange(back.left, back.right, 0.06):
        back.brush.limb(
            [(x, view.top * 0.92), (x + 0.03, view.top * 0.8), (x + 0.06, view.top * 0.92)], [0.004] * 3, (60, 60, 80)
        )
    floor = np.full(back.picture.shape[1], 0.08, np.float32)
    paint_hill(back, floor, [(96, 66, 96), (40, 26, 52), (16, 10, 24)], reach=0.22, random=random, grain=4)
    for side in (-0.86, 0.7):
        for row in range(4):
            builder.box(
                side * view.half, -0.24 + 0.08 * row, side * view.half + 0.13, -0.166 + 0.08 * row, (24, 22, 34)
            )
            back.brush.ellipse((side * view.half + 0.065, -0.203 + 0.08 * row), (0.03, 0.03), (52, 50, 66))
    scene.lay(back)
    hues: tuple[Colour, ...] = ((255, 70, 130), (80, 140, 255), (255, 190, 80), (150, 90, 255), (70, 230, 200))
    lamps = tuple(
        (float(x), view.top * 0.8, mix((0, 0, 0), hues[number % 5], 0.8))
        for number, x in enumerate(np.linspace(-0.8, 0.8, 7) * view.half)
    )
    scene.add(SoftLight(view, paint_spotlights(lamps, 0.14), coarse=6, depth=0.05))
    scene.perform(0.14, 0.2)
    _gather_crowd(scene)


def _gather_crowd(scene: Scene) -> None:
    """Add two bouncing rows of people, seen from behind."""
    random, view = scene.random, scene.view
    for depth, line, tone in ((0.6, 0.3, (30, 18, 44)), (0.85, 0.37, (14, 9, 24))):
        crowd = scene.sheet(depth)
        foot, size = view.bottom - 0.4 + line, 0.034 * (0.6 + depth * 0.6)
        for x in scene.spots(round(30 * view.half / depth), crowd.left, crowd.right):
            _paint_fan(crowd.brush, (x, foot + float(random.uniform(0, 0.02))), size, tone, float(random.random()))
        scene.lay(crowd, bob=0.006, rhythm=5.2 + depth)


def _paint_fan(brush: Brush, head: Point, size: float, tone: Colour, chance: float) -> None:
    """Paint head and shoulders, and sometimes a raised arm."""
    x, y = head
    brush.blob(
        [
            (x - size * 1.5, y + size * 9),
            (x - size * 1.5, y + size * 1.8),
            (x, y + size * 1.1),
            (x + size * 1.5, y + size * 1.8),
            (x + size * 1.5, y + size * 9),
        ],
        tone,
    )
    brush.ellipse(head, (size * 0.78, size), tone)
    if chance < 0.45:
        side = 1 if chance < 0.22 else -1
        brush.limb(
            [
                (x + side * size * 1.2, y + size * 2.2),
                (x + side * size * 1.7, y),
                (x + side * size * 1.4, y - size * 2.4),
            ],
            [size * 0.7, size * 0.55, size * 0.45],
            tone,
        )
        brush.ellipse((x + side * size * 1.4, y - size * 2.7), (size * 0.36, size * 0.42), tone)


CONCERT_HALL_PLACES = (
    Place(
        "concert",
        list_words(
            "concert, stage, music festival, spotlights, theatre stage, rock show, "
            "dance floor, disco, crowd cheering, party, nightclub"
        ),
        Surface.INDOOR,
        "crowd",
        build_concert,
        default_time=Time.NIGHT,
        horizon=0.58,
    ),
)
