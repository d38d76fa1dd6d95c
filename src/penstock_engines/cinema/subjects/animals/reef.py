"""Creatures of the reef and the shore."""

import math

from penstock_engines.cinema.paint.brush import Brush, Point
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, lighten, subject_of


def _eye(brush: Brush, place: Point, size: float) -> None:
    brush.ellipse(place, (size, size), WHITE)
    brush.ellipse((place[0] + size * 0.25, place[1]), (size * 0.62, size * 0.62), BLACK)
    brush.ellipse((place[0] + size * 0.42, place[1] - size * 0.25), (size * 0.2, size * 0.2), WHITE)


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


DEEP = Habitat.UNDERWATER


REEF = (
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
)
