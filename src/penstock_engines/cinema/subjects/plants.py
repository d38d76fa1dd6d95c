"""Plants: trees, flowers, mushrooms."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc, mix
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import (
    WHITE,
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


def draw_christmas_tree(brush: Brush, phase: float, look: Look) -> None:
    """Draw a fir with balls, lights, a star and presents."""
    draw_pine(brush, phase, look)
    paints: tuple[Colour, ...] = ((228, 62, 62), (250, 204, 84), (90, 150, 230), (240, 120, 180))
    for index, (x, y) in enumerate(
        (
            (-0.18, -0.15),
            (0.02, -0.17),
            (0.2, -0.14),
            (-0.1, -0.33),
            (0.12, -0.35),
            (-0.14, -0.5),
            (0.05, -0.53),
            (-0.03, -0.7),
            (0.08, -0.72),
        )
    ):
        bright = 0.5 + 0.5 * wave(phase, index / 3)
        brush.glow((x, y), 0.07, paints[index % 4], 0.7 * bright)
        brush.ellipse((x, y), (0.026, 0.026), lighten(paints[index % 4], 0.4 * bright))
    star = [
        (
            math.sin(math.tau * index / 10) * (0.075 if index % 2 == 0 else 0.032),
            -0.985 - math.cos(math.tau * index / 10) * (0.075 if index % 2 == 0 else 0.032),
        )
        for index in range(10)
    ]
    brush.glow((0.0, -0.985), 0.17, (255, 230, 140), 0.7)
    brush.polygon(star, (255, 214, 80))
    for x, wide, high, paint, bow in ((-0.26, 0.1, 0.12, paints[0], WHITE), (0.24, 0.12, 0.1, paints[2], paints[1])):
        brush.polygon([(x - wide, -high), (x + wide, -high), (x + wide, 0.0), (x - wide, 0.0)], paint)
        brush.limb([(x, -high), (x, 0.0)], [0.03, 0.03], bow)


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


def draw_cactus(brush: Brush, phase: float, look: Look) -> None:
    """Draw a cactus with two arms and a flower."""
    body = brush.moved(degrees=1.2 * wave(phase))
    for points in ([(0.0, -0.3), (-0.24, -0.34), (-0.26, -0.6)], [(0.0, -0.42), (0.22, -0.46), (0.24, -0.72)]):
        body.ribbon(points, [0.12, 0.13, 0.12], look.shade)
        body.ribbon([(x + 0.01, y) for x, y in points], [0.07, 0.08, 0.07], look.main)
    body.limb([(0.0, 0.0), (0.0, -0.86)], [0.22, 0.2], look.main)
    for x in (-0.06, 0.0, 0.06):
        body.limb([(x, -0.04), (x * 0.9, -0.88)], [0.014, 0.014], look.shade)
    for x, y in ((-0.03, -0.2), (0.03, -0.34), (-0.03, -0.5), (0.03, -0.66), (-0.03, -0.78)):
        body.limb([(x - 0.015, y), (x + 0.015, y - 0.01)], [0.008, 0.008], WHITE)
    for tilt in (-40, 0, 40):
        body.moved((0.0, -0.95), degrees=tilt).ellipse((0.0, -0.04), (0.028, 0.05), look.accent)


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


def draw_sunflower(brush: Brush, phase: float, look: Look) -> None:
    """Draw many yellow petals around a dark face."""
    head = _stem(brush, phase)
    for ring, paint in enumerate((look.shade, look.main)):
        for index in range(16):
            head.moved(degrees=22.5 * index + 11 * ring).blob(
                [(0.0, -0.1), (0.045, -0.2), (0.0, -0.31 + 0.03 * ring), (-0.045, -0.2)], paint
            )
    head.ellipse((0.0, 0.0), (0.165, 0.165), (92, 58, 38))
    head.ellipse((0.0, 0.0), (0.12, 0.12), (118, 76, 46))
    for index in range(14):
        turn, reach = index * 2.4, 0.03 * math.sqrt(index)
        head.ellipse((reach * math.cos(turn), reach * math.sin(turn)), (0.012, 0.012), (66, 42, 30))


def draw_rose(brush: Brush, phase: float, look: Look) -> None:
    """Draw one red rose."""
    head = _stem(brush, phase)
    for side in (-1, 1):
        head.polygon([*arc((0.0, 0.08), (0.14 * side, 0.12), (0.2 * side, 0.0)), (0.0, -0.02)], STEM)
    head.blob(
        [(-0.2, -0.14), (-0.08, -0.26), (0.08, -0.26), (0.2, -0.14), (0.17, 0.02), (0.0, 0.1), (-0.17, 0.02)],
        look.shade,
    )
    head.blob([(-0.22, -0.1), (-0.06, -0.04), (0.02, 0.1), (-0.1, 0.1), (-0.2, 0.02)], look.main)
    head.blob([(0.22, -0.1), (0.06, -0.04), (-0.02, 0.1), (0.1, 0.1), (0.2, 0.02)], lighten(look.main, 0.12))
    head.blob([(-0.14, -0.18), (0.0, -0.24), (0.14, -0.18), (0.1, -0.06), (0.0, 0.0), (-0.1, -0.06)], look.main)
    head.ribbon(
        [(-0.06, -0.16), (0.02, -0.19), (0.06, -0.14), (0.0, -0.1), (-0.03, -0.13)],
        [0.012, 0.024, 0.024, 0.02, 0.01],
        darken(look.main, 0.4),
    )


def draw_mushroom(brush: Brush, phase: float, look: Look) -> None:
    """Draw a spotted cap on a white stem."""
    body = brush.moved(degrees=1.5 * wave(phase), scale=(1.0, 1.0 + 0.02 * wave(phase, 0.25)))
    body.polygon(
        [*arc((-0.2, 0.0), (-0.12, -0.2), (-0.13, -0.45)), *arc((0.13, -0.45), (0.12, -0.2), (0.2, 0.0))],
        (250, 240, 224),
    )
    body.polygon(
        [*arc((0.06, 0.0), (0.04, -0.2), (0.04, -0.45)), *arc((0.13, -0.45), (0.12, -0.2), (0.2, 0.0))], (226, 208, 188)
    )
    body.ellipse((0.0, -0.43), (0.3, 0.08), (240, 222, 200))
    cap = [
        *arc((-0.5, -0.4), (-0.48, -0.98), (0.0, -0.98)),
        *arc((0.0, -0.98), (0.48, -0.98), (0.5, -0.4)),
        *arc((0.5, -0.4), (0.0, -0.54), (-0.5, -0.4)),
    ]
    body.polygon(cap, look.main)
    with body.inside(cap, straight=True):
        body.polygon(
            [*arc((0.5, -0.3), (0.1, -0.56), (-0.5, -0.3)), *arc((-0.5, -0.44), (0.1, -0.66), (0.5, -0.56))], look.shade
        )
        for x, y, size in (
            (-0.22, -0.72, 0.09),
            (0.06, -0.85, 0.07),
            (0.24, -0.66, 0.085),
            (-0.02, -0.62, 0.06),
            (-0.4, -0.54, 0.06),
            (0.42, -0.5, 0.05),
        ):
            body.ellipse((x, y), (size, size * 0.85), look.accent)


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
    _plant(
        draw_christmas_tree, 0.5, (-0.46, -1.18, 0.46, 0.03), Look((44, 120, 80)), "christmas tree", "decorated tree"
    ),
    _plant(draw_palm, 0.5, (-0.45, -1.15, 0.72, 0.03), Look((74, 164, 96)), "palm", "palm tree", "coconut tree"),
    _plant(
        draw_cactus,
        0.34,
        (-0.42, -1.1, 0.42, 0.03),
        Look((84, 156, 96), (244, 110, 150)),
        "cactus/cacti",
        "saguaro",
        "cactuses/",
    ),
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
    _plant(
        draw_sunflower,
        0.32,
        (-0.48, -1.12, 0.48, 0.03),
        Look((252, 196, 48)),
        "sunflower",
    ),
    _plant(draw_rose, 0.24, (-0.42, -1.08, 0.42, 0.03), Look((220, 48, 66)), "rose", "red rose"),
    _plant(
        draw_mushroom, 0.2, (-0.58, -1.08, 0.58, 0.03), Look((222, 58, 52), (252, 246, 236)), "mushroom", "toadstool"
    ),
)
