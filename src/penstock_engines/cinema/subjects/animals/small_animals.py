"""Small animals with a body plan of their own, and the kangaroo."""

import math

from penstock_engines.cinema.paint.brush import Brush, Point
from penstock_engines.cinema.subjects.gait import knee, step, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, subject_of


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


def draw_snail(brush: Brush, phase: float, look: Look) -> None:
    """Draw a snail that glides under its spiral shell."""
    slide = 0.04 * wave(phase)
    foot = [
        (-0.8 - slide, 0.0),
        (-0.5, -0.14),
        (0.2, -0.16),
        (0.5, -0.3),
        (0.58, -0.52),
        (0.76, -0.54),
        (0.84 + slide, -0.36),
        (0.76 + slide, -0.06),
        (0.6 + slide, 0.0),
    ]
    for x, lean in ((0.62, -0.06), (0.76, 0.08)):
        tip = (x + lean + 0.03 * wave(phase, 0.2), -0.86)
        brush.ribbon([(x, -0.5), (x + lean * 0.4, -0.7), tip], [0.05, 0.04, 0.035], look.accent)
        brush.ellipse(tip, (0.05, 0.05), look.accent)
        _eye(brush, tip, 0.026)
    brush.blob(foot, look.accent)
    brush.blob(
        [(-0.8 - slide, 0.0), (-0.4, -0.07), (0.4, -0.08), (0.76 + slide, -0.05), (0.6 + slide, 0.0)],
        darken(look.accent, 0.16),
    )
    brush.ribbon([(0.78, -0.32), (0.72, -0.27), (0.64, -0.29)], [0.008, 0.018, 0.008], darken(look.accent, 0.45))
    shell = brush.moved((-0.08, -0.48), degrees=3 * wave(phase))
    shell.ellipse((0.0, 0.0), (0.46, 0.43), look.main)
    spiral: list[Point] = [
        ((0.4 - 0.032 * index) * math.cos(0.75 * index + 0.4), (0.37 - 0.03 * index) * math.sin(0.75 * index + 0.4))
        for index in range(13)
    ]
    shell.ribbon(
        spiral, [0.1, 0.095, 0.09, 0.085, 0.08, 0.075, 0.07, 0.065, 0.06, 0.055, 0.05, 0.045, 0.02], look.shade
    )
    shell.ellipse((-0.16, -0.26), (0.1, 0.05), look.light, degrees=-30)


def draw_hedgehog(brush: Brush, phase: float, look: Look) -> None:
    """Draw a ball of spines with a pointed nose."""
    for x, shift in ((-0.3, 0.0), (0.26, 0.5), (-0.2, 0.5), (0.34, 0.0)):
        ahead, lift = step(phase + shift, 0.16, 0.06)
        brush.limb([(x, -0.2), (x + ahead, -0.05 + lift)], [0.14, 0.11], darken(look.accent, 0.3))
    brush.blob(
        [
            (0.3, -0.66),
            (0.54, -0.5),
            (0.88, -0.28),
            (0.84, -0.2),
            (0.56, -0.1),
            (0.1, -0.08),
            (-0.3, -0.12),
            (0.0, -0.5),
        ],
        look.accent,
    )
    for ring, (reach, paint) in enumerate(((0.6, look.shade), (0.52, look.main), (0.4, look.light))):
        for index in range(12 - ring):
            spine = brush.moved((-0.1, -0.34), degrees=-118 + 15 * index + 7 * ring + 2 * wave(phase, 0.1 * index))
            spine.polygon([(-0.1, -0.18), (0.1, -0.18), (0.0, -reach - 0.04)], paint)
    brush.ellipse((-0.12, -0.34), (0.36, 0.3), look.main)
    for x, y in ((-0.3, -0.44), (-0.1, -0.5), (0.06, -0.4), (-0.2, -0.28), (0.0, -0.24), (-0.36, -0.28)):
        brush.polygon([(x - 0.05, y + 0.07), (x + 0.05, y + 0.07), (x - 0.04, y - 0.09)], look.shade)
    brush.ellipse((0.34, -0.52), (0.09, 0.1), darken(look.accent, 0.2))
    brush.ellipse((0.89, -0.26), (0.06, 0.055), BLACK)
    _eye(brush, (0.58, -0.36), 0.045)
    brush.ellipse((0.5, -0.22), (0.07, 0.04), (240, 140, 130), 0.5)


def draw_spider(brush: Brush, phase: float, look: Look) -> None:
    """Draw eight legs and a round body."""
    for side in (-1, 1):
        half = brush.moved(scale=(side, 1.0))
        for index in range(4):
            ahead, lift = step(phase + 0.25 * index + (0.5 if side < 0 else 0.0), 0.1, 0.1)
            foot = (0.34 + 0.2 * index + ahead * side, -0.02 + lift)
            half.limb(
                [(0.1, -0.4), (0.26 + 0.14 * index, -0.78 + 0.09 * index), foot], [0.07, 0.055, 0.025], look.shade
            )
    body = brush.moved((0.0, 0.02 * wave(2 * phase)))
    body.ellipse((-0.06, -0.52), (0.36, 0.32), look.main)
    body.ellipse((-0.16, -0.66), (0.12, 0.06), look.light, degrees=-24)
    body.polygon([(-0.12, -0.62), (0.0, -0.62), (-0.06, -0.52)], look.accent)
    body.polygon([(-0.12, -0.42), (0.0, -0.42), (-0.06, -0.52)], look.accent)
    body.ellipse((0.2, -0.36), (0.22, 0.2), look.main)
    for x, size in ((0.16, 0.075), (0.32, 0.065)):
        body.ellipse((x, -0.4), (size, size), WHITE)
        body.ellipse((x + 0.02, -0.39), (size * 0.55, size * 0.55), BLACK)
    body.ribbon([(0.14, -0.26), (0.22, -0.23), (0.3, -0.26)], [0.008, 0.02, 0.008], WHITE)


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
    subject_of(
        draw_snail,
        Habitat.GROUND,
        Motion.WALK,
        0.12,
        0.15,
        (-0.95, -1.0, 1.0, 0.04),
        Look((206, 124, 70), (236, 206, 160)),
        "snail",
        "slug",
    ),
    subject_of(
        draw_hedgehog,
        Habitat.GROUND,
        Motion.WALK,
        0.13,
        0.27,
        (-0.8, -1.02, 1.0, 0.05),
        Look((122, 88, 66), (240, 208, 168)),
        "hedgehog",
        "porcupine",
    ),
    subject_of(
        draw_spider,
        Habitat.GROUND,
        Motion.WALK,
        0.13,
        0.2,
        (-1.15, -0.95, 1.15, 0.06),
        Look((70, 62, 84), (228, 66, 60)),
        "spider",
        "tarantula",
    ),
)
