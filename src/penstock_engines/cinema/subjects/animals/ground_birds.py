"""Birds that stand, walk and swim."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point
from penstock_engines.cinema.subjects.animals.flyer import Beak, draw_beak
from penstock_engines.cinema.subjects.gait import knee, step, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, lighten, subject_of

ORANGE: Colour = (242, 150, 46)


def _eye(brush: Brush, place: Point, size: float) -> None:
    brush.ellipse(place, (size, size), BLACK)
    brush.ellipse((place[0] + size * 0.3, place[1] - size * 0.3), (size * 0.35, size * 0.35), WHITE)


def _stand(brush: Brush, hip: Point, phase: float, colour: Colour, *, reach: float, width: float, toe: float) -> None:
    """Draw a bird's thin leg in its step, with toes."""
    swing = step(phase, reach, reach * 0.35)
    foot = (hip[0] + swing[0], swing[1] - width / 2)
    bend = knee(hip, foot, abs(hip[1]) * 0.52, abs(hip[1]) * 0.52, forward=False)
    brush.limb([hip, bend, foot], [width, width, width], colour)
    brush.limb([(foot[0] - toe * 0.4, foot[1]), (foot[0] + toe, foot[1])], [width, width * 0.8], colour)


def draw_duck(brush: Brush, phase: float, look: Look) -> None:
    """Draw a swimming duck. The waterline is at 0."""
    bob = brush.moved((0.0, 0.02 * wave(phase)), degrees=2 * wave(phase, 0.2))
    hull = [
        (-0.72, -0.36),
        (-0.5, -0.3),
        (-0.1, -0.42),
        (0.24, -0.38),
        (0.5, -0.2),
        (0.46, 0.06),
        (0.1, 0.12),
        (-0.4, 0.1),
        (-0.66, -0.1),
    ]
    bob.blob(hull, look.shade)
    with bob.inside(hull):
        bob.blob([(x * 1.2, y - 0.12) for x, y in hull], look.main)
    bob.ribbon([(0.3, -0.18), (0.4, -0.44), (0.36, -0.7)], [0.34, 0.22, 0.26], look.accent)
    bob.ribbon([(0.28, -0.43), (0.38, -0.4), (0.5, -0.42)], [0.05, 0.06, 0.05], WHITE)
    bob.ellipse((0.4, -0.74), (0.21, 0.19), look.accent)
    draw_beak(bob.moved((0.56, -0.72)), Beak.FLAT, 0.22, ORANGE)
    _eye(bob, (0.47, -0.79), 0.034)
    bob.blob(
        [(-0.5, -0.26), (-0.1, -0.34), (0.2, -0.24), (0.1, -0.02), (-0.3, 0.0), (-0.6, -0.16)], darken(look.main, 0.15)
    )
    bob.blob([(-0.44, -0.12), (-0.1, -0.16), (0.06, -0.08), (-0.2, -0.03)], (74, 118, 190))


def draw_swan(brush: Brush, phase: float, look: Look) -> None:
    """Draw a swimming swan with an S-shaped neck. The waterline is at 0."""
    bob = brush.moved((0.0, 0.012 * wave(phase)))
    hull = [
        (-0.72, -0.34),
        (-0.4, -0.3),
        (0.0, -0.34),
        (0.34, -0.22),
        (0.42, -0.02),
        (0.2, 0.08),
        (-0.4, 0.07),
        (-0.62, -0.1),
    ]
    nod = 0.02 * wave(phase, 0.2)
    bob.ribbon(
        [(0.26, -0.06), (0.44, -0.24), (0.3, -0.5), (0.26, -0.74), (0.38 + nod, -0.9), (0.5 + nod, -0.84)],
        [0.26, 0.17, 0.12, 0.1, 0.11, 0.11],
        look.main,
    )
    bob.ellipse((0.49 + nod, -0.84), (0.09, 0.07), look.main, degrees=20)
    bob.polygon([(0.54 + nod, -0.87), (0.7 + nod, -0.76), (0.52 + nod, -0.78)], ORANGE)
    bob.polygon([(0.52 + nod, -0.88), (0.57 + nod, -0.86), (0.54 + nod, -0.79), (0.5 + nod, -0.81)], BLACK)
    _eye(bob, (0.49 + nod, -0.865), 0.016)
    bob.blob(hull, darken(look.main, 0.14))
    with bob.inside(hull):
        bob.blob([(x * 1.15, y - 0.08) for x, y in hull], look.main)
    lifted = 0.03 * wave(phase, 0.4)
    bob.blob(
        [(-0.8, -0.5 - lifted), (-0.4, -0.5 - lifted), (0.0, -0.4), (0.2, -0.2), (-0.2, -0.06), (-0.56, -0.2)],
        lighten(look.main, 0.5),
    )
    for start, end in (((-0.1, -0.12), (-0.56, -0.26)), ((-0.04, -0.2), (-0.64, -0.36))):
        bob.ribbon(
            [start, ((start[0] + end[0]) / 2, end[1] + 0.12), end], [0.012, 0.02, 0.006], darken(look.main, 0.18)
        )


def draw_penguin(brush: Brush, phase: float, look: Look) -> None:
    """Draw a penguin that waddles from one foot to the other."""
    for shift, paint in ((0.5, darken(ORANGE)), (0.0, ORANGE)):
        x, y = step(phase + shift, 0.16, 0.05)
        brush.ellipse((x + 0.05, y - 0.03), (0.14, 0.035), paint)
    body = brush.moved((0.0, -0.02), degrees=6 * wave(phase))
    flap = 14 * wave(phase, 0.25)
    body.moved((0.06, -0.62), degrees=-24 - flap).ellipse((0.0, 0.2), (0.07, 0.24), darken(look.main, 0.2))
    body.polygon([(-0.2, -0.12), (-0.34, 0.0), (-0.1, -0.03)], look.main)
    body.blob(
        [
            (0.0, -0.98),
            (0.16, -0.9),
            (0.2, -0.72),
            (0.3, -0.4),
            (0.22, -0.06),
            (-0.02, -0.01),
            (-0.24, -0.08),
            (-0.3, -0.4),
            (-0.18, -0.72),
            (-0.14, -0.9),
        ],
        look.main,
    )
    body.blob([(0.12, -0.7), (0.27, -0.44), (0.22, -0.1), (0.04, -0.04), (-0.06, -0.2), (0.0, -0.55)], look.accent)
    body.ellipse((0.12, -0.82), (0.07, 0.06), look.accent)
    body.blob([(0.07, -0.7), (0.17, -0.72), (0.19, -0.64), (0.08, -0.62)], (250, 200, 80))
    draw_beak(body.moved((0.15, -0.84)), Beak.SHORT, 0.15, ORANGE)
    _eye(body, (0.1, -0.86), 0.022)
    body.moved((-0.1, -0.64), degrees=18 + flap).ellipse((0.0, 0.22), (0.08, 0.26), lighten(look.main, 0.12))


def draw_flamingo(brush: Brush, phase: float, look: Look) -> None:
    """Draw a flamingo that wades on very long legs."""
    for shift, paint in ((0.5, darken(look.main, 0.35)), (0.0, darken(look.main, 0.12))):
        _stand(brush, (-0.02, -0.5), phase + shift, paint, reach=0.2, width=0.025, toe=0.06)
    body = brush.moved((0.0, 0.008 * wave(2 * phase)))
    body.ribbon(
        [(0.1, -0.56), (0.26, -0.64), (0.26, -0.78), (0.14, -0.88), (0.18, -0.98), (0.27, -0.96)],
        [0.16, 0.08, 0.06, 0.055, 0.055, 0.07],
        look.main,
    )
    body.ellipse((0.26, -0.96), (0.055, 0.045), look.main)
    body.ribbon([(0.29, -0.96), (0.36, -0.92), (0.36, -0.86)], [0.05, 0.045, 0.012], WHITE)
    body.ribbon([(0.36, -0.91), (0.37, -0.88), (0.355, -0.85)], [0.04, 0.035, 0.01], BLACK)
    _eye(body, (0.265, -0.97), 0.011)
    body.blob([(-0.36, -0.46), (-0.2, -0.62), (0.04, -0.68), (0.18, -0.58), (0.1, -0.44), (-0.12, -0.42)], look.main)
    body.blob([(-0.34, -0.46), (-0.16, -0.58), (0.06, -0.62), (0.06, -0.5), (-0.14, -0.44)], look.shade)
    body.blob([(-0.36, -0.45), (-0.24, -0.5), (-0.2, -0.44)], BLACK)


def draw_chicken(brush: Brush, phase: float, look: Look) -> None:
    """Draw a chicken that walks head first."""
    for shift, paint in ((0.5, darken(ORANGE)), (0.0, ORANGE)):
        _stand(brush, (-0.04, -0.3), phase + shift, paint, reach=0.22, width=0.04, toe=0.1)
    poke = 0.04 * wave(2 * phase)
    for index, rise in enumerate((-0.98, -0.88, -0.76)):
        brush.ribbon(
            [(-0.3, -0.45), (-0.52, rise + 0.2), (-0.6 - 0.04 * index, rise)],
            [0.2, 0.16, 0.05],
            darken(look.accent, 0.1 * index),
        )
    body = [
        (-0.44, -0.66),
        (-0.16, -0.52),
        (0.1, -0.62),
        (0.24 + poke, -0.92),
        (0.36 + poke, -0.9),
        (0.4, -0.6),
        (0.32, -0.34),
        (0.0, -0.2),
        (-0.34, -0.32),
    ]
    brush.blob(body, look.shade)
    with brush.inside(body):
        brush.blob([(x * 1.1, y - 0.08) for x, y in body], look.main)
    head = brush.moved((0.3 + poke, -0.88))
    for x, y in ((-0.07, -0.12), (0.0, -0.15), (0.07, -0.11)):
        head.ellipse((x, y), (0.055, 0.06), (216, 52, 48))
    head.ellipse((0, 0), (0.13, 0.13), look.main)
    head.ellipse((0.12, 0.12), (0.04, 0.07), (216, 52, 48))
    draw_beak(head.moved((0.11, 0.0)), Beak.SHORT, 0.11, ORANGE)
    _eye(head, (0.05, -0.03), 0.022)
    brush.blob([(-0.3, -0.5), (0.0, -0.5), (0.14, -0.42), (-0.02, -0.3), (-0.26, -0.36)], darken(look.main, 0.16))


def draw_peacock(brush: Brush, phase: float, look: Look) -> None:
    """Draw a peacock before its open fan."""
    sway = 2 * wave(phase)
    fan = brush.moved((-0.08, -0.3), degrees=sway)
    count = 11
    for ring, (reach, size) in enumerate(((0.68, 0.105), (0.47, 0.09))):
        for index in range(count - 2 * ring):
            local = fan.moved(degrees=-100 + 186 * index / (count - 1 - 2 * ring))
            local.limb([(0, 0), (0, -reach)], [0.05, 0.12], darken((40, 140, 104), 0.12 * ring))
            local.ellipse((0, -reach), (size * 0.85, size * 1.1), (52, 166, 116))
            local.ellipse((0, -reach - 0.01), (size * 0.5, size * 0.62), (240, 190, 70))
            local.ellipse((0, -reach), (size * 0.32, size * 0.38), (36, 60, 150))
    for x in (-0.04, 0.05):
        brush.limb([(x, -0.22), (x, -0.01), (x + 0.06, -0.01)], [0.025, 0.02, 0.018], (150, 120, 90))
    brush.blob(
        [
            (-0.2, -0.3),
            (-0.04, -0.44),
            (0.1, -0.6),
            (0.14, -0.74),
            (0.22, -0.72),
            (0.22, -0.5),
            (0.18, -0.3),
            (0.0, -0.18),
            (-0.16, -0.2),
        ],
        look.main,
    )
    nod = brush.moved((0.18, -0.74 + 0.01 * wave(2 * phase)))
    for tilt in (-24, 0, 24):
        crest = nod.moved(degrees=tilt)
        crest.limb([(0, -0.04), (0, -0.15)], [0.012, 0.012], look.main)
        crest.ellipse((0, -0.16), (0.02, 0.02), look.light)
    nod.ellipse((0, 0), (0.075, 0.07), look.main)
    draw_beak(nod.moved((0.06, 0.01)), Beak.SHORT, 0.08, (210, 200, 190))
    nod.ellipse((0.02, -0.01), (0.03, 0.022), WHITE)
    _eye(nod, (0.025, -0.01), 0.014)


GROUND_BIRDS = (
    subject_of(
        draw_duck,
        Habitat.WATER,
        Motion.FLOAT,
        0.12,
        0.5,
        (-0.85, -1.05, 0.9, 0.2),
        Look((178, 160, 140), (34, 116, 84)),
        "duck",
        "mallard",
        "duckling",
    ),
    subject_of(
        draw_swan, Habitat.WATER, Motion.FLOAT, 0.2, 0.4, (-0.95, -1.05, 0.8, 0.15), Look((246, 246, 250)), "swan"
    ),
    subject_of(
        draw_penguin, Habitat.GROUND, Motion.WALK, 0.2, 0.27, (-0.5, -1.08, 0.5, 0.06), Look((42, 48, 66)), "penguin"
    ),
    subject_of(
        draw_flamingo,
        Habitat.GROUND,
        Motion.WALK,
        0.3,
        0.33,
        (-0.5, -1.06, 0.5, 0.04),
        Look((246, 140, 160)),
        "flamingo",
    ),
    subject_of(
        draw_chicken,
        Habitat.GROUND,
        Motion.WALK,
        0.16,
        0.36,
        (-0.8, -1.15, 0.65, 0.06),
        Look((250, 244, 232), (196, 96, 44)),
        "chicken",
        "hen",
        "rooster",
        "cockerel",
        "turkey",
    ),
    subject_of(
        draw_peacock,
        Habitat.FIXED,
        Motion.STAND,
        0.32,
        0.0,
        (-0.98, -1.15, 0.85, 0.05),
        Look((36, 92, 180)),
        "peacock",
        "peafowl",
    ),
)
