"""Light alone, for a prompt that names no place."""

from penstock_engines.cinema.landscape.ridges import add_glow, paint_wash
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.soft_light import SoftLight, paint_ribbons
from penstock_engines.cinema.scene import Place, Scene, Surface, list_words


def build_abstract(scene: Scene) -> None:
    """Build ribbons of light that flow through each other."""
    scene.outdoors = False
    light, random, view = scene.light, scene.random, scene.view
    back = scene.sheet(0.0)
    tint = scene.script.tint
    base = mix(light.zenith, (14, 8, 40), 0.78)
    glow = mix(light.middle, (44, 18, 96), 0.6)
    paint_wash(back, [base, mix(base, glow, 0.7), glow, mix(light.horizon, glow, 0.75)], back.top, back.bottom, random)
    scene.lay(back)
    hues: tuple[Colour, ...] = (
        (255, 96, 140),
        (90, 150, 255),
        (255, 190, 90),
        (150, 90, 255),
        (80, 230, 210),
        (255, 120, 220),
    )
    if tint is not None:
        hues = tuple(mix(hue, tint, 0.6) for hue in hues)
    shown = tuple(mix((0, 0, 0), hue, 0.66 - 0.1 * (1 - light.darkness)) for hue in hues)
    scene.add(SoftLight(view, paint_ribbons(shown, random), coarse=5))
    beads = scene.sheet(0.5)
    for number in range(round(26 * view.half)):
        point = (random.uniform(beads.left, beads.right), random.uniform(beads.top, beads.bottom))
        add_glow(beads, point, random.uniform(0.01, 0.06), hues[number % 6], random.uniform(0.1, 0.35))
    scene.lay(beads, bob=0.01, rhythm=0.5)
    scene.perform(0.05, 0.2)


DREAMLAND_PLACES = (
    Place(
        "abstract",
        list_words(
            "abstract, flowing light, colourful shapes, patterns, ribbons of light, "
            "dreamlike colours, psychedelic, gradient background, music visualisation"
        ),
        Surface.SKY,
        "space",
        build_abstract,
        horizon=0.5,
    ),
)
