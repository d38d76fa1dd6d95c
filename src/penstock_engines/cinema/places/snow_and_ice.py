"""Snow, ice and the sky above the clouds."""

import math

import numpy as np

from penstock_engines.cinema.landscape.ridges import paint_hill
from penstock_engines.cinema.landscape.terrain import add_hills, add_range, fir_planter, make_peaks, paint_rocks
from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.patterns import Randomness, wander
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_aurora
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_snowy_mountains(scene: Scene) -> None:
    """Build high white peaks over a snowfield with firs."""
    scene.add_sky()
    add_range(scene, depth=0.03, height=0.46, wave=0.75, distance=0.85, snow=0.3, foot=0.0)
    add_range(scene, depth=0.07, height=0.3, wave=0.6, distance=0.5, snow=0.2, foot=0.03)
    snow = ((240, 246, 254), (186, 206, 236))
    for depth, foot, distance, count, size in (
        (0.14, 0.07, 0.45, 60, (0.06, 0.12)),
        (0.28, 0.14, 0.2, 22, (0.14, 0.26)),
    ):
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.06,
            wave=0.8,
            distance=distance,
            colours=snow,
            plant=fir_planter(scene, (70, 108, 116), distance),
            count=count,
            size=size,
            grain=5,
        )
        scene.lay(sheet)
    sheet, _ = add_hills(
        scene,
        depth=0.5,
        foot=0.2,
        height=0.06,
        wave=1.2,
        distance=0.0,
        colours=((246, 250, 255), (196, 214, 240), (160, 186, 226)),
        grain=5,
    )
    scene.lay(sheet)
    scene.perform(0.21, 0.31)
    near, _ = add_hills(
        scene,
        depth=0.95,
        foot=scene.view.bottom + 0.01,
        height=0.06,
        wave=0.7,
        distance=0.0,
        colours=((214, 228, 248), (150, 178, 222)),
        plant=fir_planter(scene, (40, 74, 84), 0.0),
        count=3,
        size=(0.2, 0.34),
        grain=5,
    )
    scene.lay(near)


def build_arctic(scene: Scene) -> None:
    """Build ice floes and bergs, at night under an aurora."""
    light, random, view = scene.light, scene.random, scene.view
    scene.add_sky()
    glow = light.stars
    if glow > 0.05:
        scene.add(SoftLight(view, paint_aurora(random, 0.9 * min(1.0, glow * 1.2)), coarse=4, bottom=0.02))
    for depth, height, wave in ((0.03, 0.14, 0.5), (0.06, 0.1, 0.3)):
        sheet = scene.sheet(depth)
        ice = ((232, 244, 255), (120, 164, 210), (170, 206, 236))
        paint_rocks(scene, sheet, make_peaks(scene, sheet, 0.012, height, wave), ice, 0.3, reach=0.2)
        scene.lay(sheet)
    scene.add_water((20, 92, 124), top=0.01, calm=0.8)
    floes = scene.sheet(0.2)
    for y in (0.04, 0.07, 0.11):
        for x in scene.spots(round(5 * view.half) + 1, floes.left, floes.right):
            _paint_floe(
                floes.brush,
                (x, y),
                random.uniform(0.05, 0.11) * (0.5 + y * 8),
                light.shade((240, 248, 255)),
                light.shade((130, 180, 220)),
                random,
            )
    scene.lay(floes, bob=0.002, rhythm=0.8)
    shelf, _ = add_hills(
        scene,
        depth=0.5,
        foot=0.21,
        height=0.035,
        wave=0.7,
        distance=0.0,
        colours=((246, 250, 255), (196, 220, 246), (150, 190, 230)),
        grain=5,
    )
    scene.lay(shelf)
    scene.perform(0.22, 0.31)


def _paint_floe(brush: Brush, centre: Point, size: float, top: Colour, side: Colour, random: Randomness) -> None:
    turns = np.linspace(0, 2 * math.pi, 9, endpoint=False)
    rim = [
        (centre[0] + math.cos(t) * size * random.uniform(0.8, 1.15), centre[1] + math.sin(t) * size * 0.17)
        for t in turns
    ]
    brush.polygon([(x, y + size * 0.07) for x, y in rim], side)
    brush.polygon(rim, top)


def build_above_clouds(scene: Scene) -> None:
    """Build a sea of clouds from high up."""
    light, random, view = scene.light, scene.random, scene.view
    scene.add_sky()
    white = mix(mix(light.horizon, (255, 255, 255), 0.65 * (1 - light.darkness)), light.sun, 0.25 * light.shine)
    for number, (depth, foot) in enumerate(
        ((0.04, 0.0), (0.08, 0.05), (0.16, 0.12), (0.3, 0.2), (0.55, 0.3), (0.95, 0.42))
    ):
        if number == 4:
            scene.perform(-0.1, 0.2)
        sheet = scene.sheet(depth)
        size = 0.03 + 0.12 * depth
        line = (
            foot * view.bottom / 0.4
            - size * (np.abs(wander(random, sheet.columns, 0.16 + depth * 0.5, 4, 0.5)) * 1.6 - 0.5)
        ).astype(np.float32)
        share = 0.75 - 0.13 * number
        top, low = mix(white, light.air, share * 0.6), mix(mix(light.middle, white, 0.35), light.air, share * 0.4)
        paint_hill(
            sheet,
            line,
            [top, mix(top, low, 0.6), low, mix(low, top, 0.3)],
            reach=0.12 + 0.3 * depth,
            random=random,
            grain=26,
        )
        scene.lay(sheet)
        if number < 4:
            scene.add_mist(
                white,
                top=foot - 0.02,
                bottom=foot + 0.14,
                strength=0.5,
                speed=0.02 + depth * 0.1,
                even=0.1,
            )


SNOW_AND_ICE_PLACES = (
    Place(
        "snowy mountains",
        list_words(
            "snowy mountains, alps, snow covered peaks, mountain summit, winter mountains, "
            "himalaya, ski slope, snowfield, winter landscape, mountains, snow"
        ),
        Surface.GROUND,
        "wind",
        build_snowy_mountains,
        horizon=0.6,
    ),
    Place(
        "arctic",
        list_words(
            "arctic, antarctica, ice floes, north pole, south pole, glacier, "
            "iceberg, northern lights, aurora, polar night, frozen sea"
        ),
        Surface.GROUND,
        "wind",
        build_arctic,
        horizon=0.56,
    ),
    Place(
        "above the clouds",
        list_words(
            "above the clouds, sky, sea of clouds, cloudscape, in the air, "
            "flying through the sky, heaven, high altitude, blue sky, clouds"
        ),
        Surface.SKY,
        "wind",
        build_above_clouds,
        horizon=0.56,
    ),
)
