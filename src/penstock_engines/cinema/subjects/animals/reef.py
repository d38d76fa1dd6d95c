"""Creatures of the reef and the shore."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.subjects.gait import step, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, lighten, subject_of


def _eye(brush: Brush, place: Point, size: float) -> None:
    brush.ellipse(place, (size, size), WHITE)
    brush.ellipse((place[0] + size * 0.25, place[1]), (size * 0.62, size * 0.62), BLACK)
    brush.ellipse((place[0] + size * 0.42, place[1] - size * 0.25), (size * 0.2, size * 0.2), WHITE)


def draw_jellyfish(brush: Brush, phase: float, look: Look) -> None:
    """Draw a bell that opens and closes, with trailing arms."""
    pulse = wave(phase)
    wide, high = 0.36 + 0.05 * pulse, 0.42 - 0.05 * pulse
    for index in range(7):
        x = (index - 3) / 3 * wide * 0.8
        points = [
            (x * (1 - 0.1 * depth) + 0.05 * wave(phase, -0.16 * depth + 0.1 * index) * depth, -0.02 + 0.14 * depth)
            for depth in range(5)
        ]
        brush.ribbon(points, [0.03, 0.026, 0.022, 0.016, 0.006], mix(look.main, WHITE, 0.25), 0.75)
    for index, x in enumerate((-0.1, 0.06, 0.16)):
        points = [
            (x + 0.04 * wave(phase, -0.2 * depth + 0.3 * index) * depth, -0.04 + 0.11 * depth) for depth in range(4)
        ]
        brush.ribbon(points, [0.1, 0.11, 0.08, 0.02], look.accent, 0.8)
    bell = [
        (-wide, 0.0),
        (-wide * 0.94, -high * 0.55),
        (-wide * 0.5, -high * 0.95),
        (0.0, -high * 1.06),
        (wide * 0.5, -high * 0.95),
        (wide * 0.94, -high * 0.55),
        (wide, 0.0),
        (wide * 0.5, 0.07),
        (0.0, 0.02),
        (-wide * 0.5, 0.07),
    ]
    brush.blob(bell, look.main, 0.9)
    brush.blob([(x * 0.72, y * 0.8 - 0.04) for x, y in bell], look.light, 0.5)
    brush.ellipse((-wide * 0.4, -high * 0.68), (0.09, 0.05), WHITE, 0.6, degrees=-30)


def draw_octopus(brush: Brush, phase: float, look: Look) -> None:
    """Draw a round head over eight curling arms."""
    for index in range(8):
        side = (index - 3.5) / 3.5
        curl = 0.06 * wave(phase, 0.13 * index)
        paint = look.shade if index % 2 else look.main
        brush.ribbon(
            [
                (side * 0.16, 0.05),
                (side * 0.34, 0.22),
                (side * 0.5 + curl, 0.38),
                (side * 0.62 + curl, 0.44 + curl),
                (side * 0.74 + curl * 1.5, 0.34 + curl),
            ],
            [0.17, 0.13, 0.1, 0.07, 0.03],
            paint,
        )
    breath = 0.012 * wave(phase, 0.2)
    head = [
        (0.0, -0.56 - breath),
        (0.26, -0.46),
        (0.34 + breath, -0.2),
        (0.24, 0.06),
        (0.0, 0.14),
        (-0.24, 0.06),
        (-0.34 - breath, -0.2),
        (-0.26, -0.46),
    ]
    brush.blob(head, look.main)
    brush.ellipse((-0.12, -0.38), (0.12, 0.08), look.light, degrees=-30)
    for x in (-0.11, 0.13):
        _eye(brush, (x, -0.1), 0.085)
    brush.ribbon([(-0.06, 0.04), (0.02, 0.07), (0.1, 0.03)], [0.01, 0.022, 0.01], look.shade)


def draw_turtle(brush: Brush, phase: float, look: Look) -> None:
    """Draw a turtle that rows with its flippers."""
    row = 34 * wave(phase)
    skin = look.accent
    brush.moved((0.2, 0.1), degrees=-20 + row * 0.8).blob(
        [(0.1, 0.0), (-0.1, 0.34), (-0.3, 0.5), (-0.2, 0.1)], darken(skin)
    )
    brush.moved((-0.5, 0.12), degrees=20 - row * 0.5).blob(
        [(0.1, -0.06), (-0.3, 0.06), (-0.32, 0.2), (0.06, 0.1)], skin
    )
    brush.ribbon([(0.4, 0.02), (0.66, -0.06), (0.78, -0.1)], [0.24, 0.2, 0.24], skin)
    brush.ellipse((0.82, -0.12), (0.18, 0.14), skin, degrees=-8)
    _eye(brush, (0.86, -0.16), 0.045)
    brush.ribbon([(0.98, -0.08), (0.9, -0.05), (0.84, -0.06)], [0.008, 0.014, 0.006], darken(skin, 0.4))
    shell = [
        (-0.72, 0.12),
        (-0.54, -0.22),
        (-0.1, -0.42),
        (0.3, -0.3),
        (0.54, 0.04),
        (0.46, 0.18),
        (-0.1, 0.24),
        (-0.6, 0.22),
    ]
    brush.blob([(x, y + 0.06) for x, y in shell], lighten(skin, 0.4))
    brush.blob(shell, look.main)
    with brush.inside(shell):
        for x, y, size in (
            (-0.1, -0.14, 0.17),
            (0.22, -0.08, 0.14),
            (-0.42, -0.04, 0.15),
            (0.06, 0.16, 0.13),
            (-0.26, 0.2, 0.13),
            (0.4, 0.12, 0.1),
            (-0.6, 0.16, 0.08),
        ):
            hexagon = [
                (x + size * 0.9 * math.cos(math.pi * turn / 3), y + size * 0.9 * math.sin(math.pi * turn / 3))
                for turn in range(6)
            ]
            brush.polygon(hexagon, look.shade)
    brush.moved((0.3, 0.14), degrees=row).blob(
        [(0.12, -0.06), (0.0, 0.34), (-0.22, 0.58), (-0.3, 0.5), (-0.14, 0.02)], skin
    )


def draw_seahorse(brush: Brush, phase: float, look: Look) -> None:
    """Draw an upright seahorse with a curled tail."""
    sway = 0.02 * wave(phase)
    fin = brush.moved((-0.2, -0.06), degrees=16 * wave(3 * phase))
    fin.blob([(0.06, -0.1), (-0.14, -0.12), (-0.18, 0.04), (-0.08, 0.14), (0.06, 0.08)], look.accent)
    spine: list[Point] = [
        (0.02, -0.36),
        (-0.1, -0.16),
        (-0.04, 0.08),
        (0.02 + sway, 0.28),
        (-0.06 + sway, 0.44),
        (-0.2 + sway, 0.44),
        (-0.2 + sway, 0.32),
        (-0.12 + sway, 0.34),
    ]
    brush.ribbon(spine, [0.16, 0.28, 0.26, 0.14, 0.1, 0.075, 0.055, 0.03], look.main)
    for index in range(5):
        y = -0.2 + 0.09 * index
        brush.ribbon([(-0.04, y), (0.04, y + 0.02), (0.1 - 0.01 * index, y)], [0.01, 0.022, 0.01], look.shade)
    for x, y in ((-0.12, -0.5), (-0.04, -0.56), (0.05, -0.56)):
        brush.ellipse((x, y), (0.045, 0.06), look.accent)
    brush.ellipse((0.02, -0.42), (0.14, 0.13), look.main)
    brush.limb([(0.08, -0.38), (0.3, -0.32)], [0.11, 0.065], look.main)
    brush.ellipse((0.3, -0.32), (0.03, 0.045), look.shade)
    _eye(brush, (0.06, -0.44), 0.045)


def draw_crab(brush: Brush, phase: float, look: Look) -> None:
    """Draw a crab that runs sideways and waves its claws."""
    for side in (-1, 1):
        half = brush.moved(scale=(side, 1.0))
        for index in range(3):
            lift = step(phase + 0.33 * index + (0.5 if side < 0 else 0.0), 0.1, 0.08)
            foot = (0.5 + 0.16 * index + lift[0] * side, -0.02 + lift[1])
            half.limb(
                [(0.26, -0.26), (0.42 + 0.14 * index, -0.34 + 0.05 * index), foot], [0.09, 0.075, 0.03], look.shade
            )
        arm = half.moved((0.38, -0.4), degrees=8 * wave(phase, 0.25 * side))
        arm.ribbon([(0, 0), (0.2, -0.1), (0.24, -0.24)], [0.1, 0.1, 0.1], look.main)
        snap = 10 + 10 * wave(2 * phase)
        arm.moved((0.24, -0.26), degrees=snap - 10).blob(
            [(-0.08, 0.04), (-0.02, -0.2), (0.14, -0.36), (0.2, -0.3), (0.1, -0.1), (0.08, 0.06)], look.main
        )
        arm.moved((0.24, -0.26), degrees=-snap).blob(
            [(-0.1, 0.04), (-0.14, -0.18), (-0.06, -0.32), (0.0, -0.14), (0.04, 0.04)], look.main
        )
        half.limb([(0.12, -0.5), (0.14, -0.68)], [0.05, 0.04], look.main)
        _eye(half, (0.14, -0.72), 0.065)
    body = [
        (-0.46, -0.34),
        (-0.3, -0.52),
        (0.0, -0.58),
        (0.3, -0.52),
        (0.46, -0.34),
        (0.26, -0.14),
        (0.0, -0.1),
        (-0.26, -0.14),
    ]
    brush.blob(body, look.shade)
    with brush.inside(body):
        brush.blob([(x, y - 0.08) for x, y in body], look.main)
        brush.ellipse((-0.12, -0.5), (0.16, 0.05), look.light)
    brush.ribbon([(-0.1, -0.26), (0.0, -0.22), (0.1, -0.26)], [0.012, 0.024, 0.012], darken(look.main, 0.5))


CORAL: Colour = (240, 110, 90)


DEEP = Habitat.UNDERWATER


REEF = (
    subject_of(
        draw_jellyfish,
        DEEP,
        Motion.DRIFT,
        0.26,
        0.2,
        (-0.65, -0.6, 0.65, 0.68),
        Look((196, 120, 220), (250, 170, 220)),
        "jellyfish/",
        "medusa",
    ),
    subject_of(
        draw_octopus,
        DEEP,
        Motion.SWIM,
        0.28,
        0.4,
        (-0.95, -0.68, 0.95, 0.62),
        Look((214, 92, 110)),
        "octopus",
        "squid",
        "kraken",
    ),
    subject_of(
        draw_turtle,
        DEEP,
        Motion.SWIM,
        0.22,
        0.7,
        (-1.05, -0.6, 1.1, 0.85),
        Look((92, 140, 84), (150, 176, 110)),
        "turtle",
        "sea turtle",
        "tortoise",
    ),
    subject_of(
        draw_seahorse,
        DEEP,
        Motion.DRIFT,
        0.18,
        0.2,
        (-0.5, -0.72, 0.45, 0.58),
        Look((246, 170, 70), (236, 110, 80)),
        "seahorse",
    ),
    subject_of(
        draw_crab,
        Habitat.GROUND,
        Motion.WALK,
        0.13,
        0.17,
        (-1.05, -1.15, 1.05, 0.06),
        Look((226, 76, 56)),
        "crab",
        "lobster",
        "crayfish/",
    ),
)
