"""Plants: trees, flowers, mushrooms."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc, mix
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import (
    Box,
    Draw,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
    lighten,
    subject_of,
)

BARK: Colour = (122, 82, 54)
LEAF: Colour = (84, 160, 84)
STEM: Colour = (76, 146, 76)


def _crown(brush: Brush, phase: float, colour: Colour, bumps: tuple[tuple[float, float, float], ...]) -> None:
    """Draw a cloud of leaves, dark below and lit above."""
    for tone, drop, shrink in (
        (darken(colour, 0.22), 0.03, 1.0),
        (colour, -0.01, 0.94),
        (lighten(colour, 0.2), -0.05, 0.6),
    ):
        for index, (x, y, size) in enumerate(bumps):
            sway = 0.012 * wave(phase, 0.13 * index) * (-y)
            brush.ellipse((x + sway, y + drop), (size * shrink, size * shrink * 0.92), tone)


def draw_tree(brush: Brush, phase: float, look: Look) -> None:
    """Draw a broad leafy tree."""
    brush.polygon(
        [*arc((-0.1, 0.0), (-0.04, -0.05), (-0.035, -0.44)), *arc((0.035, -0.44), (0.04, -0.05), (0.12, 0.0))], BARK
    )
    brush.polygon(
        [*arc((0.02, 0.0), (0.02, -0.05), (0.012, -0.44)), *arc((0.035, -0.44), (0.04, -0.05), (0.12, 0.0))],
        darken(BARK),
    )
    brush.limb([(0.0, -0.3), (-0.14, -0.46)], [0.04, 0.025], BARK)
    brush.limb([(0.01, -0.34), (0.15, -0.5)], [0.04, 0.025], darken(BARK))
    _crown(
        brush,
        phase,
        look.main,
        (
            (-0.24, -0.48, 0.16),
            (0.24, -0.5, 0.16),
            (0.0, -0.5, 0.18),
            (-0.26, -0.64, 0.16),
            (0.26, -0.66, 0.16),
            (-0.1, -0.78, 0.18),
            (0.12, -0.78, 0.17),
        ),
    )


def draw_cherry_tree(brush: Brush, phase: float, look: Look) -> None:
    """Draw a cherry tree in blossom, with falling petals."""
    brush.ribbon(
        [(0.02, 0.0), (-0.03, -0.2), (0.03, -0.36), (0.0, -0.5)], [0.13, 0.085, 0.075, 0.05], darken(BARK, 0.25)
    )
    for end, width in (((-0.26, -0.56), 0.05), ((0.28, -0.54), 0.05)):
        brush.ribbon([(0.02, -0.32), (end[0] * 0.5, -0.42), end], [0.06, width, 0.03], darken(BARK, 0.25))
    _crown(
        brush,
        phase,
        look.main,
        (
            (-0.32, -0.56, 0.14),
            (0.32, -0.55, 0.14),
            (-0.14, -0.6, 0.15),
            (0.13, -0.6, 0.15),
            (-0.26, -0.72, 0.14),
            (0.26, -0.72, 0.14),
            (0.0, -0.8, 0.16),
        ),
    )
    for index in range(5):
        fall = (phase + index / 5) % 1.0
        brush.ellipse(
            (-0.34 + 0.17 * index + 0.06 * wave(fall), -0.5 + 0.5 * fall),
            (0.018, 0.012),
            look.light,
            0.98 * wave(fall / 2),
            degrees=360 * fall,
        )


def draw_pine(brush: Brush, phase: float, look: Look) -> None:
    """Draw a fir in layers."""
    brush.polygon([(-0.045, 0.0), (-0.035, -0.2), (0.035, -0.2), (0.045, 0.0)], BARK)
    for index in range(4):
        low, wide = -0.12 - 0.2 * index, 0.32 - 0.066 * index
        top = low - 0.34 + 0.02 * index
        sway = 0.008 * wave(phase) * (index + 1)
        tip = (sway * 1.4, top)
        outline: list[Point] = [
            tip,
            *arc((wide * 0.5 + sway, low - 0.1), (wide * 0.7, low - 0.03), (wide + sway, low)),
            *arc((wide + sway, low), (0.0, low + 0.07), (-wide + sway, low)),
            *arc((-wide + sway, low), (-wide * 0.7, low - 0.03), (-wide * 0.5 + sway, low - 0.1)),
        ]
        brush.polygon(outline, mix(look.shade, look.main, 0.5 + index * 0.15))
        brush.polygon(
            [
                tip,
                *arc((wide * 0.5 + sway, low - 0.1), (wide * 0.7, low - 0.03), (wide + sway, low)),
                *arc((wide + sway, low), (wide * 0.5, low + 0.03), (wide * 0.1, low + 0.03)),
            ],
            darken(look.main, 0.3),
        )


def draw_palm(brush: Brush, phase: float, look: Look) -> None:
    """Draw a leaning palm with fronds in the wind."""
    sway = 0.02 * wave(phase)
    top: Point = (0.12 + sway, -0.76)
    brush.ribbon(
        [(-0.08, 0.0), (-0.05, -0.3), (0.02 + sway * 0.5, -0.55), top], [0.1, 0.07, 0.055, 0.05], (168, 122, 78)
    )
    for index in range(6):
        y = -0.08 - 0.11 * index
        x = -0.07 + 0.035 * index * index / 6 + sway * index / 6
        brush.ribbon([(x - 0.03, y), (x, y + 0.015), (x + 0.03, y)], [0.008, 0.014, 0.008], (130, 90, 58))
    for index, (angle, length) in enumerate(
        ((-172, 0.4), (-140, 0.42), (-104, 0.34), (-66, 0.36), (-32, 0.42), (4, 0.42))
    ):
        turn = math.radians(angle + 4 * wave(phase, 0.12 * index))
        end: Point = (top[0] + length * math.cos(turn), top[1] + length * math.sin(turn) * 0.62 + 0.16)
        bend: Point = (top[0] + length * 0.6 * math.cos(turn), top[1] + length * 0.6 * math.sin(turn) - 0.06)
        paint = look.main if index % 2 else look.shade
        brush.polygon([*arc(top, (bend[0], bend[1] - 0.05), end), *arc(end, (bend[0], bend[1] + 0.09), top)], paint)
    for x, y in ((-0.03, 0.03), (0.04, 0.04), (0.01, 0.06)):
        brush.ellipse((top[0] + x, top[1] + y), (0.03, 0.03), darken(BARK, 0.15))


def _stem(brush: Brush, phase: float) -> Brush:
    """Draw a stem with two leaves. Return a brush at its swaying top."""
    sway = 0.03 * wave(phase)
    brush.ribbon([(0.0, 0.0), (-0.02, -0.3), (sway, -0.68)], [0.045, 0.04, 0.035], STEM)
    for side, y in ((-1, -0.18), (1, -0.3)):
        brush.polygon(
            [
                *arc((-0.01, y), (0.14 * side, y - 0.2), (0.3 * side, y - 0.16 + sway)),
                *arc((0.3 * side, y - 0.16 + sway), (0.16 * side, y + 0.04), (-0.01, y)),
            ],
            STEM if side > 0 else darken(STEM, 0.18),
        )
    return brush.moved((sway, -0.7), degrees=60 * sway)


def draw_flower(brush: Brush, phase: float, look: Look) -> None:
    """Draw a daisy-like flower that sways."""
    head = _stem(brush, phase)
    for ring, (reach, paint) in enumerate(((0.19, look.shade), (0.165, look.main))):
        for index in range(8):
            petal = head.moved(degrees=45 * index + 22.5 * ring)
            petal.ellipse((0.0, -reach), (0.085, 0.125), paint)
            petal.ellipse((0.0, -reach * 0.75), (0.02, 0.07), look.shade if ring else darken(look.shade, 0.1))
    head.ellipse((0.0, 0.0), (0.11, 0.11), darken(look.accent, 0.12))
    head.ellipse((-0.01, -0.015), (0.09, 0.085), look.accent)


def _plant(draw: Draw, size: float, box: Box, look: Look, *words: str) -> Subject:
    return subject_of(draw, Habitat.FIXED, Motion.SWAY, size, 0.0, box, look, *words)


PLANTS = (
    _plant(
        draw_tree,
        0.5,
        (-0.5, -1.05, 0.5, 0.03),
        Look(LEAF),
        "tree",
        "oak",
        "maple",
        "willow",
        "lone tree",
        "apple tree",
        "birch",
        "bonsai/",
    ),
    _plant(
        draw_cherry_tree,
        0.48,
        (-0.55, -1.05, 0.55, 0.03),
        Look((248, 172, 196)),
        "cherry tree",
        "cherry blossom",
        "sakura/",
        "blossom tree",
        "cherry blossom tree",
    ),
    _plant(
        draw_pine,
        0.5,
        (-0.42, -1.1, 0.42, 0.03),
        Look((52, 116, 88)),
        "pine",
        "fir",
        "pine tree",
        "spruce",
        "conifer",
        "fir tree",
    ),
    _plant(draw_palm, 0.5, (-0.45, -1.15, 0.72, 0.03), Look((74, 164, 96)), "palm", "palm tree", "coconut tree"),
    _plant(
        draw_flower,
        0.24,
        (-0.45, -1.1, 0.45, 0.03),
        Look((240, 110, 150), (252, 206, 84)),
        "flower",
        "daisy",
        "tulip",
        "lotus/",
        "blossom",
        "wildflower",
        "poppy",
        "lily",
        "orchid",
        "dandelion",
    ),
)
