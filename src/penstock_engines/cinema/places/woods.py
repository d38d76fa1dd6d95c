"""Woods: green, golden and misty."""

from penstock_engines.cinema.landscape.greenery import clump_blob, paint_bush
from penstock_engines.cinema.landscape.terrain import (
    LEAVES,
    add_beams,
    add_hills,
    add_meadow_front,
    add_range,
    fir_planter,
    make_line,
    make_plant_tones,
    plant_row,
    tree_planter,
)
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words

AUTUMN: tuple[Colour, ...] = ((226, 120, 40), (204, 76, 44), (236, 172, 60), (168, 66, 48))


def _build_wood(scene: Scene, leaves: tuple[Colour, ...], floor: tuple[Colour, Colour]) -> None:
    """Build rows of trees, ever nearer, with beams between them and big trunks in front."""
    light, random = scene.light, scene.random
    scene.add_sky()
    for depth, foot, distance, size in (
        (0.06, 0.03, 0.9, (0.24, 0.4)),
        (0.14, 0.06, 0.55, (0.34, 0.5)),
        (0.24, 0.1, 0.25, (0.44, 0.66)),
    ):
        planter = tree_planter(scene, leaves, distance)
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=0.03,
            wave=0.6,
            distance=distance,
            colours=floor,
            plant=planter,
            count=round(6.5 / size[0]),
            size=size,
        )
        scene.lay(sheet)
        scene.add_mist(light.air, top=-0.14, bottom=0.12, strength=0.2 * light.haze, speed=0.02)
    add_beams(scene, 0.42)
    sheet, line = add_hills(
        scene,
        depth=0.42,
        foot=0.15,
        height=0.05,
        wave=0.7,
        distance=0.12,
        colours=(*floor, mix(floor[1], (10, 20, 20), 0.4)),
        reach=0.3,
    )
    bush = make_plant_tones(scene, leaves[0], 0.15)
    plant_row(
        scene, sheet, line, lambda brush, foot, size: paint_bush(brush, foot, size, bush, random), 12, (0.04, 0.09)
    )
    scene.lay(sheet)
    scene.perform(0.19, 0.3)
    _add_trunks(scene, leaves)
    add_meadow_front(scene, colours=[mix(floor[0], leaves[0], 0.4), leaves[-1]], height=0.075)


def _add_trunks(scene: Scene, leaves: tuple[Colour, ...]) -> None:
    """Frame the picture with two big trunks, and boughs that hang in from above."""
    light, random, view = scene.light, scene.random, scene.view
    sheet = scene.sheet(0.75)
    bark, shadow = light.shade((70, 54, 46)), light.shade((34, 28, 32))
    for x in (-view.half * 0.92, view.half * 0.96):
        foot, wide = view.bottom * 0.96, random.uniform(0.06, 0.085)
        bend = random.uniform(-0.05, 0.05)
        spine = [(x, foot), (x + bend * 0.3, foot - 0.5), (x + bend, sheet.top - 0.05)]
        sheet.brush.limb(spine, [wide * 1.25, wide, wide * 0.8], shadow)
        sheet.brush.limb([(px + wide * 0.16, py) for px, py in spine], [wide * 0.7, wide * 0.5, wide * 0.4], bark)
    scene.lay(sheet)
    sheet = scene.sheet(0.78)
    tones = [make_plant_tones(scene, mix(leaf, (16, 30, 30), 0.35), 0.0) for leaf in leaves]
    for _ in range(round(34 * (sheet.right - sheet.left) / 1.9) + 8):
        x = random.uniform(sheet.left, sheet.right)
        y = sheet.top + random.uniform(0, 0.05) + 0.2 * (abs(x) / view.half) ** 2 * random.uniform(0.3, 1)
        tone = tones[int(random.integers(len(tones)))]
        clump_blob(sheet.brush, (x, y), random.uniform(0.05, 0.09), tone[0], random)
        clump_blob(sheet.brush, (x + 0.01, y - 0.015), random.uniform(0.03, 0.06), tone[1], random)
    scene.lay(sheet, sway=0.006, foot=view.bottom, rhythm=0.7)


def build_forest(scene: Scene) -> None:
    """Build a green wood with sun beams."""
    _build_wood(scene, LEAVES, ((98, 138, 66), (48, 84, 56)))


def build_autumn_forest(scene: Scene) -> None:
    """Build a wood in red and gold."""
    _build_wood(scene, AUTUMN, ((190, 120, 58), (110, 66, 48)))


def build_misty_pines(scene: Scene) -> None:
    """Build ridges of firs that fade into mist."""
    light = scene.light
    scene.add_sky()
    add_range(scene, depth=0.03, height=0.3, wave=0.7, distance=1.1)
    steps = (
        (0.06, 0.0, 0.16, 0.95, (0.06, 0.1), 90),
        (0.12, 0.06, 0.14, 0.7, (0.1, 0.16), 64),
        (0.22, 0.13, 0.12, 0.42, (0.17, 0.26), 40),
        (0.36, 0.2, 0.08, 0.2, (0.27, 0.4), 22),
    )
    for depth, foot, height, distance, size, count in steps:
        planter = fir_planter(scene, (36, 84, 74), distance)
        colours = ((40, 88, 76), (120, 150, 150))
        sheet, _ = add_hills(
            scene,
            depth=depth,
            foot=foot,
            height=height,
            wave=0.8,
            distance=distance,
            colours=colours,
            plant=planter,
            count=count,
            size=size,
        )
        scene.lay(sheet)
        scene.add_mist(
            mix(light.air, light.horizon, 0.5),
            top=foot - 0.1,
            bottom=foot + 0.16,
            strength=0.62,
            speed=0.015 + depth * 0.06,
        )
    ground, _ = add_hills(
        scene, depth=0.6, foot=0.3, height=0.05, wave=0.9, distance=0.05, colours=((62, 92, 70), (26, 46, 48))
    )
    scene.lay(ground)
    scene.perform(0.28, 0.34)
    near = scene.sheet(0.9)
    line = make_line(scene, near, scene.view.bottom + 0.02, 0.03, 0.5)
    plant_row(
        scene, near, line, fir_planter(scene, (20, 46, 48), 0.0), 9, (0.35, 0.62), sink=0.05, gap=0.6 * scene.view.half
    )
    scene.lay(near, sway=0.006, foot=scene.view.bottom)


WOODS_PLACES = (
    Place(
        "forest",
        list_words("forest, woods, woodland, trees, sunlit forest, forest path, oak wood, grove, under the trees"),
        Surface.GROUND,
        "forest",
        build_forest,
        horizon=0.62,
    ),
    Place(
        "autumn forest",
        list_words(
            "autumn forest, fall foliage, autumn leaves, golden october woods, "
            "red and orange trees, maple trees, autumn park, fallen leaves"
        ),
        Surface.GROUND,
        "forest",
        build_autumn_forest,
        horizon=0.62,
    ),
    Place(
        "misty pines",
        list_words(
            "misty pine forest, foggy fir trees, pine forest, taiga, evergreen forest, "
            "spruce trees in mist, mountain forest, conifers, nordic forest"
        ),
        Surface.GROUND,
        "forest",
        build_misty_pines,
        horizon=0.52,
    ),
)
