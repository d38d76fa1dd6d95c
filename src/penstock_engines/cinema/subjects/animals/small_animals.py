"""Small animals with a body plan of their own, and the kangaroo."""

import math

from penstock_engines.cinema.paint.brush import Brush, Point
from penstock_engines.cinema.subjects.gait import knee, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, subject_of


def _eye(brush: Brush, place: Point, size: float) -> None:
    brush.ellipse(place, (size, size), BLACK)
    brush.ellipse((place[0] + size * 0.3, place[1] - size * 0.3), (size * 0.35, size * 0.35), WHITE)


def draw_kangaroo(brush: Brush, phase: float, look: Look) -> None:
    """Draw a kangaroo that hops with a joey in its pouch."""
    hop = math.sin(math.pi * phase) ** 2
    body = brush.moved((0.0, -0.2 * hop), degrees=5 - 7 * wave(phase, 0.1))
    reach = 0.12 * wave(phase, 0.6)
    tail_end = -0.02 - 0.16 * hop
    body.ribbon(
        [(-0.16, -0.34), (-0.42, -0.22), (-0.66, -0.14 + tail_end), (-0.84, -0.12 + tail_end * 2)],
        [0.22, 0.14, 0.09, 0.04],
        look.shade,
    )
    body.ribbon([(0.2, -0.58), (0.32, -0.5), (0.38, -0.56)], [0.07, 0.055, 0.045], look.shade)
    body.ribbon([(-0.08, -0.32), (-0.02, -0.44), (0.14, -0.62), (0.24, -0.76)], [0.36, 0.36, 0.24, 0.14], look.main)
    body.blob([(0.1, -0.58), (0.18, -0.44), (0.12, -0.26), (0.0, -0.2), (0.0, -0.36)], look.accent)
    body.ellipse((0.13, -0.4), (0.055, 0.05), look.light)
    body.ellipse((0.155, -0.41), (0.01, 0.012), BLACK)
    for tilt in (-26, 0):
        body.moved((0.26, -0.86), degrees=tilt).ellipse((0.0, -0.1), (0.035, 0.11), look.main if tilt else look.shade)
    body.limb([(0.28, -0.82), (0.4, -0.77)], [0.16, 0.085], look.main)
    body.ellipse((0.43, -0.78), (0.022, 0.02), BLACK)
    _eye(body, (0.31, -0.84), 0.02)
    hip: Point = (-0.1, -0.3 - 0.2 * hop)
    foot: Point = (0.06 + reach, -0.035 - 0.26 * hop)
    bend = knee(hip, (foot[0] - 0.14, foot[1] - 0.04), 0.22, 0.22, forward=True)
    brush.ribbon([hip, bend, (foot[0] - 0.14, foot[1] - 0.04)], [0.28, 0.17, 0.07], look.light)
    brush.limb([(foot[0] - 0.16, foot[1]), (foot[0] + 0.12, foot[1])], [0.065, 0.05], look.main)
    body.ribbon([(0.16, -0.58), (0.26, -0.46), (0.34, -0.5)], [0.08, 0.06, 0.05], look.light)


SMALL_ANIMALS = (
    subject_of(
        draw_kangaroo,
        Habitat.GROUND,
        Motion.HOP,
        0.32,
        0.9,
        (-1.05, -1.35, 0.72, 0.06),
        Look((190, 130, 84), (238, 206, 164)),
        "kangaroo",
        "wallaby",
    ),
)
