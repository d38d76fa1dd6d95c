"""Frogs, snakes, crocodiles and dinosaurs."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc
from penstock_engines.cinema.subjects.gait import knee, step, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, lighten, subject_of


def draw_frog(brush: Brush, phase: float, look: Look) -> None:
    """Draw a frog that leaps from its long legs."""
    hop = math.sin(math.pi * phase) ** 2
    stretch = 0.34 * hop
    body = brush.moved((0.0, -0.34 * hop), degrees=-12 * wave(phase, 0.1))
    bend, foot = (-0.29 + 0.1 * hop, -0.4 + 0.26 * hop), (-0.11 - stretch, -0.05 + 0.2 * hop)
    body.ribbon([(-0.25, -0.22), bend, foot], [0.22, 0.15, 0.08], look.shade)
    body.blob(
        [
            (0.46, -0.5),
            (0.28, -0.7),
            (0.0, -0.66),
            (-0.36, -0.4),
            (-0.46, -0.16),
            (-0.1, -0.05),
            (0.3, -0.1),
            (0.5, -0.3),
        ],
        look.main,
    )
    body.blob([(0.48, -0.32), (0.26, -0.3), (0.0, -0.16), (-0.1, -0.05), (0.3, -0.1)], look.accent)
    for x, y in ((-0.16, -0.44), (0.0, -0.54), (-0.26, -0.3)):
        body.ellipse((x, y), (0.045, 0.035), look.shade)
    body.ribbon([(0.52, -0.38), (0.36, -0.34), (0.22, -0.38)], [0.012, 0.026, 0.01], darken(look.main, 0.5))
    body.ellipse((0.26, -0.72), (0.13, 0.13), look.main)
    body.ellipse((0.28, -0.74), (0.09, 0.09), WHITE)
    body.ellipse((0.3, -0.74), (0.05, 0.065), BLACK)
    body.ribbon(
        [(-0.3, -0.22), (-0.36 + 0.1 * hop, -0.42 + 0.26 * hop), (-0.14 - stretch, -0.05 + 0.2 * hop)],
        [0.26, 0.17, 0.08],
        look.light,
    )
    body.limb([(-0.2 - stretch, -0.035 + 0.2 * hop), (0.04 - stretch, -0.035 + 0.2 * hop)], [0.07, 0.05], look.light)
    body.ribbon([(0.26, -0.2), (0.34, -0.1), (0.32 + 0.1 * hop, -0.04)], [0.12, 0.08, 0.06], look.light)
    body.limb([(0.3 + 0.1 * hop, -0.03), (0.44 + 0.1 * hop, -0.03)], [0.055, 0.04], look.light)


def draw_snake(brush: Brush, phase: float, look: Look) -> None:
    """Draw a snake that winds along the ground, head up."""
    body: list[Point] = [(-1.3 + 0.17 * index, -0.2 - 0.09 * wave(phase, 0.16 * index)) for index in range(11)]
    neck: list[Point] = [(0.58, -0.3), (0.62, -0.58), (0.7, -0.8)]
    widths = [0.03, 0.09, 0.14, 0.18, 0.2, 0.22, 0.22, 0.22, 0.22, 0.21, 0.2]
    brush.ribbon([*body, *neck], [*widths, 0.2, 0.18, 0.18], look.main)
    for index in range(1, 10):
        brush.ellipse(body[index], (0.05, widths[index] * 0.3), look.accent)
    brush.ribbon([(0.62, -0.24), (0.68, -0.56), (0.76, -0.72)], [0.05, 0.07, 0.05], look.light)
    flick = 0.1 + 0.08 * wave(3 * phase)
    brush.ribbon([(0.9, -0.8), (0.96 + flick, -0.79)], [0.02, 0.016], (222, 60, 70))
    for side in (-1, 1):
        brush.limb([(0.95 + flick, -0.79), (1.02 + flick, -0.79 + 0.05 * side)], [0.014, 0.01], (222, 60, 70))
    brush.blob([(0.58, -0.88), (0.74, -0.97), (0.92, -0.88), (0.96, -0.79), (0.84, -0.73), (0.64, -0.73)], look.main)
    brush.ellipse((0.78, -0.87), (0.045, 0.045), (250, 220, 90))
    brush.ellipse((0.79, -0.87), (0.016, 0.036), BLACK)


def draw_crocodile(brush: Brush, phase: float, look: Look) -> None:
    """Draw a long and low crocodile with many teeth."""
    for x, shift in ((-0.42, 0.5), (0.5, 0.0)):
        ahead, lift = step(phase + shift, 0.24, 0.08)
        brush.ribbon(
            [(x + 0.06, -0.32), (x + 0.02 + ahead, -0.2), (x + 0.06 + ahead, -0.05 + lift)],
            [0.22, 0.16, 0.1],
            darken(look.main, 0.42),
        )
    sway = [0.05 * wave(phase, -0.12 * index) * index for index in range(4)]
    tail: list[Point] = [
        (-0.6, -0.36),
        (-1.0, -0.3 + sway[1] * 0.5),
        (-1.4, -0.2 + sway[2] * 0.5),
        (-1.8, -0.24 + sway[3]),
    ]
    brush.ribbon(tail, [0.46, 0.3, 0.17, 0.03], look.main)
    body = [
        (-0.8, -0.5),
        (-0.2, -0.68),
        (0.5, -0.62),
        (0.86, -0.5),
        (0.8, -0.22),
        (0.3, -0.12),
        (-0.3, -0.12),
        (-0.8, -0.22),
    ]
    brush.blob(body, look.main)
    with brush.inside(body):
        brush.blob([(-1.0, -0.2), (0.2, -0.28), (1.0, -0.24), (0.6, 0.1), (-0.8, 0.1)], look.accent)
    for index in range(11):
        x = -1.5 + 0.2 * index
        y = -0.28 - 0.16 * max(0.0, (x + 1.5) / 1.0) if x < -0.6 else -0.5 - 0.13 * math.sin(math.pi * (x + 0.8) / 1.5)
        brush.polygon([(x - 0.09, y + 0.04), (x - 0.02, y - 0.12), (x + 0.09, y + 0.04)], look.shade)
    _crocodile_head(brush, 5 + 5 * wave(phase), look)
    for x, shift in ((-0.5, 0.0), (0.4, 0.5)):
        ahead, lift = step(phase + shift, 0.24, 0.08)
        brush.ribbon([(x, -0.32), (x - 0.06 + ahead, -0.2), (x + ahead, -0.05 + lift)], [0.26, 0.18, 0.11], look.light)
        brush.limb([(x + ahead, -0.04 + lift), (x + 0.13 + ahead, -0.035 + lift)], [0.09, 0.06], look.light)


def _crocodile_head(brush: Brush, gape: float, look: Look) -> None:
    jaw = brush.moved((0.8, -0.36), degrees=gape * 0.6)
    jaw.blob([(-0.1, -0.04), (0.3, -0.04), (0.84, -0.05), (0.86, 0.04), (0.3, 0.1), (-0.1, 0.12)], look.shade)
    for index in range(5):
        x = 0.24 + 0.13 * index
        jaw.polygon([(x, -0.04), (x + 0.08, -0.04), (x + 0.04, -0.12)], WHITE)
    head = brush.moved((0.8, -0.42), degrees=-gape)
    head.blob(
        [
            (-0.2, -0.2),
            (0.06, -0.26),
            (0.3, -0.14),
            (0.74, -0.12),
            (0.94, -0.1),
            (0.96, 0.02),
            (0.4, 0.05),
            (-0.1, 0.14),
        ],
        look.main,
    )
    for index in range(6):
        x = 0.24 + 0.12 * index
        head.polygon([(x, 0.03), (x + 0.08, 0.02), (x + 0.04, 0.11)], WHITE)
    head.ellipse((0.1, -0.23), (0.085, 0.085), look.main)
    head.ellipse((0.12, -0.24), (0.055, 0.055), (250, 220, 90))
    head.ellipse((0.13, -0.24), (0.02, 0.05), BLACK)
    head.ellipse((0.88, -0.1), (0.025, 0.02), look.shade)


def _tyrannosaur_leg(brush: Brush, phase: float, hip: Point, paint: Colour) -> None:
    ahead, lift = step(phase, 0.34, 0.1)
    foot: Point = (hip[0] + 0.02 + ahead, -0.04 + lift)
    ankle: Point = (foot[0] - 0.1, foot[1] - 0.12)
    bend = knee(hip, ankle, 0.22, 0.2, forward=True)
    brush.ribbon([hip, bend, ankle, foot], [0.26, 0.16, 0.08, 0.07], paint)
    brush.limb([(foot[0] - 0.04, foot[1] + 0.01), (foot[0] + 0.13, foot[1] + 0.015)], [0.07, 0.05], paint)


def draw_tyrannosaur(brush: Brush, phase: float, look: Look) -> None:
    """Draw a tyrannosaur that strides on two legs, jaws open."""
    bob = brush.moved((0.0, 0.015 * wave(2 * phase)), degrees=1.5 * wave(phase))

    _tyrannosaur_leg(brush, phase + 0.5, (-0.06, -0.44), darken(look.main, 0.4))
    sway = 0.04 * wave(phase)
    bob.ribbon(
        [(-0.1, -0.5), (-0.42, -0.5), (-0.74, -0.5 + sway), (-1.0, -0.58 + 2 * sway)],
        [0.34, 0.22, 0.11, 0.02],
        look.main,
    )
    body = [
        (-0.26, -0.6),
        (0.0, -0.68),
        (0.24, -0.78),
        (0.38, -0.84),
        (0.42, -0.7),
        (0.3, -0.5),
        (0.12, -0.34),
        (-0.14, -0.32),
        (-0.3, -0.42),
    ]
    bob.blob(body, look.main)
    with bob.inside(body):
        bob.blob([(0.5, -0.7), (0.3, -0.6), (0.06, -0.44), (-0.3, -0.36), (0.0, -0.2), (0.4, -0.4)], look.accent)
    for x, y in ((-0.36, -0.58), (-0.16, -0.62), (0.02, -0.66)):
        bob.ribbon([(x, y - 0.02), (x + 0.02, y + 0.06), (x + 0.05, y + 0.12)], [0.04, 0.035, 0.008], look.shade)
    bob.ribbon([(0.26, -0.54), (0.36, -0.48), (0.4, -0.53)], [0.07, 0.05, 0.03], look.shade)
    gape = 7 + 6 * wave(phase, 0.2)
    bob.moved((0.4, -0.8), degrees=gape).blob(
        [(-0.06, 0.0), (0.12, 0.02), (0.34, 0.0), (0.33, 0.06), (0.1, 0.11), (-0.06, 0.08)], look.shade
    )
    bob.ribbon([(0.22, -0.68), (0.34, -0.82), (0.42, -0.86)], [0.3, 0.24, 0.2], look.main)
    _tyrannosaur_head(bob.moved((0.42, -0.87), degrees=-gape * 0.5), look)
    _tyrannosaur_leg(brush, phase, (-0.1, -0.44), lighten(look.main, 0.08))


def _tyrannosaur_head(brush: Brush, look: Look) -> None:
    for x in (0.08, 0.16, 0.24, 0.32):
        brush.polygon([(x - 0.03, 0.05), (x + 0.03, 0.05), (x, 0.12)], WHITE)
    brush.blob(
        [
            (-0.12, 0.0),
            (-0.06, -0.11),
            (0.1, -0.12),
            (0.26, -0.09),
            (0.39, -0.06),
            (0.41, 0.03),
            (0.36, 0.07),
            (0.0, 0.08),
        ],
        look.main,
    )
    brush.ellipse((0.34, -0.05), (0.018, 0.014), look.shade)
    brush.ellipse((0.08, -0.06), (0.03, 0.028), (250, 220, 90))
    brush.ellipse((0.085, -0.06), (0.011, 0.024), BLACK)
    brush.polygon([*arc((0.02, -0.12), (0.08, -0.1), (0.13, -0.075)), (0.04, -0.08)], look.shade)


REPTILES = (
    subject_of(
        draw_frog,
        Habitat.GROUND,
        Motion.HOP,
        0.13,
        1.4,
        (-0.95, -1.3, 0.85, 0.06),
        Look((104, 182, 74), (226, 236, 176)),
        "frog",
        "toad",
    ),
    subject_of(
        draw_snake,
        Habitat.GROUND,
        Motion.WALK,
        0.18,
        0.5,
        (-1.4, -1.05, 1.3, 0.06),
        Look((92, 160, 84), (240, 204, 84)),
        "snake",
        "serpent",
        "cobra",
        "worm",
    ),
    subject_of(
        draw_crocodile,
        Habitat.GROUND,
        Motion.WALK,
        0.18,
        0.4,
        (-1.95, -0.95, 1.85, 0.05),
        Look((98, 150, 84), (220, 222, 160)),
        "crocodile",
        "alligator",
        "lizard",
        "gecko",
        "iguana",
        "komodo dragon",
    ),
    subject_of(
        draw_tyrannosaur,
        Habitat.GROUND,
        Motion.WALK,
        0.46,
        0.57,
        (-1.1, -1.12, 0.92, 0.05),
        Look((92, 150, 98), (226, 224, 160)),
        "tyrannosaurus",
        "t-rex",
        "tyrannosaurus rex",
        "raptor",
        "velociraptor",
        "godzilla",
    ),
)
