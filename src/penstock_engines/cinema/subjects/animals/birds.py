"""Birds in the air."""

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.animals.flyer import Beak, Plumage, draw_flyer
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import (
    BLACK,
    WHITE,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
    plural_too,
    subject_of,
)

ORANGE: Colour = (242, 150, 46)


IN_FLIGHT = (-1.05, -1.25, 1.15, 1.08)


def draw_owl(brush: Brush, phase: float, look: Look) -> None:
    """Draw an owl that flies towards the camera, with round eyes."""
    body = brush.moved((0.0, 0.04 * wave(phase, 0.25)))
    beat, late = wave(phase), wave(phase, -0.08)
    for side in (-1, 1):
        half = body.moved(scale=(side, 1.0))
        half.blob(
            [
                (0.1, -0.16),
                (0.42, -0.2 - 0.3 * beat),
                (0.84, -0.1 - 0.46 * late),
                (0.8, 0.1 - 0.34 * late),
                (0.5, 0.2 - 0.2 * beat),
                (0.1, 0.22),
            ],
            look.shade,
        )
        for index in range(4):
            x = 0.82 - 0.16 * index
            half.limb(
                [(x - 0.12, -0.04 - 0.3 * late), (x, 0.16 + 0.04 * index - (0.4 - 0.08 * index) * late)],
                [0.13, 0.05],
                darken(look.main, 0.4),
            )
        half.blob(
            [
                (0.1, -0.16),
                (0.42, -0.19 - 0.3 * beat),
                (0.74, -0.1 - 0.44 * late),
                (0.46, 0.04 - 0.24 * beat),
                (0.1, 0.12),
            ],
            look.main,
        )
    body.polygon([(-0.14, 0.3), (0.14, 0.3), (0.2, 0.52), (-0.2, 0.52)], look.shade)
    body.blob(
        [(-0.22, -0.3), (0.0, -0.34), (0.22, -0.3), (0.25, 0.1), (0.14, 0.36), (-0.14, 0.36), (-0.25, 0.1)], look.main
    )
    body.blob([(-0.15, 0.0), (0.15, 0.0), (0.15, 0.2), (0.0, 0.34), (-0.15, 0.2)], look.accent)
    for x, y in ((-0.07, 0.08), (0.07, 0.08), (0.0, 0.15), (-0.06, 0.21), (0.06, 0.21)):
        body.ellipse((x, y), (0.025, 0.018), look.main)
    for side in (-1, 1):
        half = body.moved(scale=(side, 1.0))
        half.polygon([(0.08, -0.3), (0.24, -0.44), (0.22, -0.22)], look.main)
        half.ellipse((0.1, -0.16), (0.125, 0.125), look.accent)
        half.ellipse((0.1, -0.16), (0.08, 0.08), (248, 190, 50))
        half.ellipse((0.1, -0.16), (0.045, 0.045), BLACK)
        half.ellipse((0.115, -0.18), (0.014, 0.014), WHITE)
        half.limb([(0.06, 0.36), (0.06, 0.42)], [0.04, 0.05], ORANGE)
    body.polygon([(-0.035, -0.12), (0.035, -0.12), (0.0, -0.02)], ORANGE)


BIRD = Plumage(forked=True, belly=(250, 222, 196), head_size=0.15, length=0.7, depth=0.3, fingers=3, span=0.72)


EAGLE = Plumage(
    length=0.95,
    depth=0.26,
    span=0.92,
    chord=0.54,
    fingers=6,
    head=(250, 246, 236),
    tail_colour=(250, 246, 236),
    beak=Beak.HOOKED,
    beak_length=0.15,
    glide=0.2,
    tail_spread=0.18,
    head_size=0.135,
)


SEAGULL = Plumage(
    belly=(226, 230, 238),
    wing=(176, 188, 204),
    wing_tip=BLACK,
    span=0.9,
    chord=0.36,
    fingers=4,
    length=0.85,
    depth=0.22,
    head_size=0.12,
    glide=0.2,
)


CROW = Plumage(beak_colour=(60, 58, 66), beak_length=0.16, fingers=5, length=0.86)


PARROT = Plumage(
    wing=(44, 110, 200),
    wing_tip=(250, 200, 60),
    tail=0.6,
    tail_spread=0.1,
    tail_colour=(44, 110, 200),
    beak=Beak.HOOKED,
    beak_length=0.15,
    beak_colour=(60, 54, 60),
    head_size=0.15,
    length=0.8,
    depth=0.27,
    fingers=5,
)


DOVE = Plumage(length=0.72, depth=0.27, head_size=0.12, beak_length=0.08, tail_spread=0.22, fingers=4, span=0.74)


GOOSE = Plumage(
    neck=0.26,
    head=(52, 46, 48),
    belly=(226, 216, 204),
    length=0.8,
    depth=0.28,
    head_size=0.1,
    beak=Beak.FLAT,
    beak_colour=(50, 46, 50),
    tail=0.22,
    fingers=4,
)


STORK = Plumage(
    neck=0.3,
    wing_tip=BLACK,
    beak=Beak.LONG,
    beak_length=0.18,
    beak_colour=(228, 76, 52),
    head_size=0.09,
    length=0.75,
    depth=0.24,
    span=0.84,
    fingers=6,
)


HUMMINGBIRD = Plumage(
    length=0.6,
    depth=0.22,
    head_size=0.13,
    beak=Beak.LONG,
    beak_length=0.2,
    beak_colour=BLACK,
    belly=(240, 240, 230),
    span=0.62,
    chord=0.26,
    fingers=3,
    forked=True,
    glide=0.2,
    tail=0.22,
)


def _in_air(plumage: Plumage, size: float, look: Look, *words: str) -> Subject:
    return Subject(
        name=words[0].partition("/")[0],
        words=plural_too(*words),
        habitat=Habitat.AIR,
        motion=Motion.FLY,
        size=size,
        stride=1.2,
        draw=draw_flyer(plumage),
        box=IN_FLIGHT,
        look=look,
    )


BIRDS = (
    _in_air(
        BIRD,
        0.14,
        Look((74, 130, 200)),
        "bird",
        "sparrow",
        "swallow",
        "songbird",
        "bluebird",
        "robin",
        "flock of birds/",
        "flock/",
    ),
    _in_air(
        EAGLE, 0.26, Look((96, 62, 44)), "eagle", "hawk", "falcon", "bird of prey/birds of prey", "condor", "vulture"
    ),
    _in_air(SEAGULL, 0.16, Look((250, 250, 250)), "seagull", "gull", "albatross", "seabird"),
    _in_air(CROW, 0.16, Look((48, 46, 58)), "crow", "raven", "blackbird", "magpie"),
    _in_air(PARROT, 0.18, Look((224, 56, 48)), "parrot", "macaw", "parakeet", "toucan", "cockatoo"),
    _in_air(DOVE, 0.15, Look((250, 248, 246)), "dove", "pigeon"),
    _in_air(GOOSE, 0.2, Look((146, 116, 92)), "goose/geese", "wild goose/wild geese"),
    _in_air(STORK, 0.22, Look((250, 248, 244)), "stork", "heron", "crane", "pelican"),
    _in_air(HUMMINGBIRD, 0.11, Look((34, 158, 110)), "hummingbird", "kingfisher"),
    subject_of(
        draw_owl,
        Habitat.AIR,
        Motion.FLY,
        0.2,
        1.0,
        (-1.0, -0.75, 1.0, 0.7),
        Look((150, 108, 72), (242, 224, 196)),
        "owl",
        "barn owl",
    ),
)
