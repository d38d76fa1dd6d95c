"""Food and drink, and the pumpkin."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc, mix
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import (
    BLACK,
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

STEAM: Colour = (246, 246, 250)


def _steam(brush: Brush, places: tuple[Point, ...], phase: float) -> None:
    """Draw curls that rise and fade."""
    for index, (x, y) in enumerate(places):
        rise = (phase + index / len(places)) % 1.0
        line: list[Point] = [
            (x + 0.05 * wave(phase, 0.25 * step + 0.3 * index), y - 0.12 * step - 0.14 * rise) for step in range(4)
        ]
        brush.ribbon(line, [0.02, 0.055, 0.05, 0.01], STEAM, 0.75 * wave(rise / 2))


def draw_coffee(brush: Brush, phase: float, look: Look) -> None:
    """Draw a steaming cup on its saucer."""
    _steam(brush, ((-0.16, -0.66), (0.04, -0.7), (0.22, -0.66)), phase)
    brush.ellipse((0.0, -0.05), (0.62, 0.07), darken(look.main, 0.2))
    brush.ellipse((0.0, -0.075), (0.62, 0.06), look.light)
    brush.ribbon([(0.36, -0.5), (0.58, -0.5), (0.58, -0.3), (0.32, -0.24)], [0.07, 0.07, 0.07, 0.06], look.shade)
    brush.polygon(
        [
            (-0.42, -0.6),
            *arc((-0.42, -0.6), (-0.4, -0.08), (-0.16, -0.08)),
            *arc((0.16, -0.08), (0.4, -0.08), (0.42, -0.6)),
        ],
        look.main,
    )
    brush.polygon(
        [(0.14, -0.6), *arc((0.14, -0.6), (0.14, -0.2), (0.0, -0.08)), *arc((0.16, -0.08), (0.4, -0.08), (0.42, -0.6))],
        darken(look.main, 0.12),
    )
    brush.ellipse((0.0, -0.6), (0.42, 0.075), look.light)
    brush.ellipse((0.0, -0.595), (0.36, 0.058), (104, 62, 40))
    brush.ellipse((-0.06, -0.6), (0.16, 0.024), (196, 146, 100))
    brush.blob([(0.0, -0.42), (0.07, -0.47), (0.12, -0.4), (0.0, -0.26), (-0.12, -0.4), (-0.07, -0.47)], look.accent)


def draw_teapot(brush: Brush, phase: float, look: Look) -> None:
    """Draw a teapot that steams from its spout, with a trembling lid."""
    _steam(brush, ((0.74, -0.68), (0.8, -0.74)), phase)
    brush.ribbon([(-0.36, -0.6), (-0.7, -0.62), (-0.72, -0.3), (-0.4, -0.2)], [0.08, 0.08, 0.08, 0.08], look.shade)
    brush.ribbon([(0.36, -0.24), (0.56, -0.32), (0.62, -0.56), (0.76, -0.64)], [0.22, 0.15, 0.1, 0.09], look.main)
    body = [
        (-0.3, -0.74),
        (0.3, -0.74),
        (0.5, -0.46),
        (0.44, -0.16),
        (0.22, -0.02),
        (-0.22, -0.02),
        (-0.44, -0.16),
        (-0.5, -0.46),
    ]
    brush.blob(body, look.main)
    with brush.inside(body):
        brush.ellipse((0.06, 0.06), (0.6, 0.22), look.shade)
        brush.ellipse((-0.24, -0.58), (0.1, 0.16), look.light, degrees=24)
    for x, y in ((-0.14, -0.36), (0.1, -0.42), (0.26, -0.3), (0.0, -0.24)):
        for tilt in range(5):
            brush.moved((x, y), degrees=72 * tilt).ellipse((0.0, -0.035), (0.022, 0.03), look.accent)
        brush.ellipse((x, y), (0.018, 0.018), (252, 206, 84))
    lid = brush.moved((0.0, -0.012 * abs(wave(3 * phase))), degrees=1.5 * wave(3 * phase))
    lid.polygon(
        [*arc((-0.3, -0.74), (-0.22, -0.88), (0.0, -0.88)), *arc((0.0, -0.88), (0.22, -0.88), (0.3, -0.74))], look.light
    )
    lid.ellipse((0.0, -0.91), (0.065, 0.06), look.shade)


def draw_cake(brush: Brush, phase: float, look: Look) -> None:
    """Draw two tiers and burning candles."""
    brush.ellipse((0.0, -0.03), (0.66, 0.05), (226, 228, 236))
    for wide, low, high in ((0.54, -0.04, 0.3), (0.36, -0.34, 0.24)):
        brush.polygon([(-wide, low - high), (wide, low - high), (wide, low), (-wide, low)], look.main)
        brush.polygon(
            [(wide * 0.3, low - high), (wide, low - high), (wide, low), (wide * 0.3, low)], darken(look.main, 0.08)
        )
        brush.polygon(
            [
                (-wide, low - high * 0.45),
                (wide, low - high * 0.45),
                (wide, low - high * 0.33),
                (-wide, low - high * 0.33),
            ],
            (200, 120, 80),
        )
        brush.limb([(-wide, low - high), (wide, low - high)], [0.08, 0.08], look.accent)
        for index in range(6):
            x = -wide + wide * 2 * (index + 0.5) / 6
            drop = 0.06 + 0.045 * (index % 2)
            brush.limb([(x, low - high), (x, low - high + drop)], [0.085, 0.07], look.accent)
    for index, x in enumerate((-0.22, -0.07, 0.08, 0.23)):
        paint = ((90, 160, 230), (250, 206, 90), (120, 200, 130), (236, 110, 150))[index]
        brush.limb([(x, -0.62), (x, -0.8)], [0.035, 0.035], paint)
        tall = 0.1 + 0.014 * wave(3 * phase, 0.25 * index)
        lean = 0.015 * wave(2 * phase, 0.2 * index)
        brush.glow((x, -0.88), 0.14, (255, 210, 110), 0.6)
        brush.blob([(x, -0.81), (x + 0.03, -0.85), (x + lean, -0.82 - tall), (x - 0.03, -0.85)], (255, 190, 70))
    for index in range(5):
        brush.ellipse((-0.43 + 0.215 * index, -0.12), (0.03, 0.03), (226, 60, 76))


def draw_pizza(brush: Brush, phase: float, look: Look) -> None:
    """Draw a steaming slice with melting cheese."""
    _steam(brush, ((-0.2, -0.82), (0.06, -0.86), (0.28, -0.8)), phase)
    brush.polygon([(-0.62, -0.66), (0.62, -0.66), (0.04, 0.0), (-0.04, 0.0)], look.main)
    brush.polygon([(0.3, -0.66), (0.62, -0.66), (0.04, 0.0)], darken(look.main, 0.1))
    for x, y, long in ((-0.34, -0.34, 0.12), (0.12, -0.12, 0.1), (0.32, -0.34, 0.07)):
        drip = long * (1 + 0.16 * wave(phase, x))
        brush.limb([(x, y), (x, y + drip)], [0.08, 0.05], look.main)
    for x, y, size in ((-0.26, -0.52, 0.1), (0.18, -0.5, 0.105), (-0.02, -0.26, 0.09)):
        brush.ellipse((x, y), (size, size * 0.9), look.accent)
        brush.ellipse((x - 0.02, y - 0.02), (size * 0.6, size * 0.5), lighten(look.accent, 0.2))
    for x, y in ((-0.04, -0.46), (0.12, -0.34), (-0.16, -0.36)):
        brush.ellipse((x, y), (0.05, 0.022), (84, 150, 76), degrees=40)
    brush.limb([(-0.64, -0.68), (0.0, -0.74), (0.64, -0.68)], [0.15, 0.17, 0.15], (214, 150, 84))
    brush.limb([(-0.6, -0.71), (0.0, -0.77), (0.6, -0.71)], [0.05, 0.06, 0.05], (236, 184, 120))


def draw_apple(brush: Brush, phase: float, look: Look) -> None:
    """Draw a shining apple with a leaf that moves."""
    body = brush.moved(degrees=2.5 * wave(phase))
    shape = [
        (0.0, -0.74),
        (0.18, -0.82),
        (0.4, -0.72),
        (0.46, -0.44),
        (0.34, -0.12),
        (0.14, 0.0),
        (0.0, -0.03),
        (-0.14, 0.0),
        (-0.34, -0.12),
        (-0.46, -0.44),
        (-0.4, -0.72),
        (-0.18, -0.82),
    ]
    body.blob(shape, look.main)
    with body.inside(shape):
        body.polygon([*arc((0.3, -0.9), (0.34, -0.2), (-0.3, 0.02)), (0.6, 0.1), (0.6, -0.9)], look.shade)
        body.ellipse((-0.24, -0.58), (0.07, 0.13), look.light, degrees=24)
    body.ribbon([(0.0, -0.7), (0.02, -0.84), (0.08, -0.96)], [0.04, 0.045, 0.055], (110, 74, 46))
    leaf = body.moved((0.04, -0.84), degrees=10 * wave(phase, 0.2))
    leaf.polygon(
        [*arc((0.0, 0.0), (0.1, -0.2), (0.34, -0.16)), *arc((0.34, -0.16), (0.22, 0.06), (0.0, 0.0))], look.accent
    )


def draw_pumpkin(brush: Brush, phase: float, look: Look) -> None:
    """Draw a carved pumpkin with a flickering light inside."""
    light: Colour = mix((255, 150, 50), (255, 236, 150), 0.5 + 0.5 * wave(3 * phase))
    brush.glow((0.0, -0.4), 0.8, (255, 190, 80), 0.3 + 0.08 * wave(3 * phase))
    brush.ribbon([(0.0, -0.72), (0.02, -0.86), (0.14, -0.96)], [0.14, 0.1, 0.09], (92, 132, 70))
    for x, wide, paint in (
        (-0.36, 0.24, look.shade),
        (0.36, 0.24, look.shade),
        (-0.2, 0.25, look.main),
        (0.2, 0.25, look.main),
        (0.0, 0.22, look.light),
    ):
        brush.ellipse((x, -0.39), (wide, 0.39 if abs(x) < 0.3 else 0.35), paint)
    for side in (-1, 1):
        brush.polygon([(0.1 * side, -0.4), (0.2 * side, -0.6), (0.32 * side, -0.4)], BLACK)
        brush.polygon([(0.14 * side, -0.42), (0.2 * side, -0.54), (0.28 * side, -0.42)], light)
    brush.polygon([(-0.05, -0.3), (0.0, -0.4), (0.05, -0.3)], light)
    mouth = [*arc((-0.38, -0.28), (0.0, -0.12), (0.38, -0.28)), *arc((0.38, -0.28), (0.0, 0.08), (-0.38, -0.28))]
    brush.polygon(mouth, BLACK)
    with brush.inside(mouth, straight=True):
        brush.polygon([(x, y + 0.025) for x, y in mouth], light)
        for x in (-0.16, 0.06):
            brush.polygon([(x, -0.3), (x + 0.1, -0.3), (x + 0.1, -0.15), (x, -0.15)], look.main)
        brush.polygon([(-0.06, -0.12), (0.04, -0.12), (0.04, 0.0), (-0.06, 0.0)], look.main)


def draw_ice_cream(brush: Brush, phase: float, look: Look) -> None:
    """Draw three scoops in a rocking cone, with one drop that runs down."""
    brush = brush.moved(degrees=3 * wave(phase))
    brush.polygon([(-0.22, -0.52), (0.22, -0.52), (0.0, 0.0)], (226, 166, 96))
    cone: list[Point] = [(-0.22, -0.52), (0.22, -0.52), (0.0, 0.0)]
    with brush.inside(cone, straight=True):
        for shift in (-0.3, -0.15, 0.0, 0.15, 0.3):
            brush.limb([(shift - 0.2, -0.56), (shift + 0.2, 0.0)], [0.014, 0.014], (190, 126, 66))
            brush.limb([(shift + 0.2, -0.56), (shift - 0.2, 0.0)], [0.014, 0.014], (190, 126, 66))
    for x, y, paint in ((-0.14, -0.6, (250, 236, 206)), (0.14, -0.6, look.accent), (0.0, -0.76, look.main)):
        brush.ellipse((x, y), (0.19, 0.18), paint)
        brush.ellipse((x + 0.05, y + 0.05), (0.13, 0.11), darken(paint, 0.08))
        brush.ellipse((x - 0.06, y - 0.07), (0.05, 0.035), lighten(paint, 0.6))
    brush.limb([(-0.24, -0.5), (0.24, -0.5)], [0.06, 0.06], (206, 142, 76))
    brush.ellipse((0.12, -0.44 + 0.24 * phase), (0.03, 0.045), look.accent, 0.95 * wave(phase / 2))
    brush.ellipse((0.02, -0.95), (0.05, 0.05), (214, 44, 60))
    brush.ribbon([(0.02, -0.98), (0.06, -1.04), (0.12, -1.05)], [0.012, 0.012, 0.01], (96, 132, 70))


def _treat(draw: Draw, size: float, box: Box, look: Look, *words: str) -> Subject:
    return subject_of(draw, Habitat.FIXED, Motion.STAND, size, 0.0, box, look, *words)


FOOD = (
    _treat(
        draw_coffee,
        0.24,
        (-0.7, -1.28, 0.7, 0.04),
        Look((246, 246, 250), (214, 84, 80)),
        "coffee cup",
        "coffee",
        "cup of coffee/cups of coffee",
        "cup of tea/cups of tea",
        "mug",
        "espresso",
        "latte",
    ),
    _treat(draw_teapot, 0.24, (-0.85, -1.28, 0.95, 0.03), Look((92, 150, 190), WHITE), "teapot", "tea pot", "kettle"),
    _treat(
        draw_cake,
        0.28,
        (-0.72, -1.05, 0.72, 0.04),
        Look((252, 232, 200), (244, 150, 180)),
        "cake",
        "birthday cake",
        "cupcake",
        "wedding cake",
    ),
    _treat(
        draw_pizza,
        0.22,
        (-0.76, -1.45, 0.76, 0.06),
        Look((252, 206, 96), (206, 62, 52)),
        "pizza",
        "slice of pizza/slices of pizza",
        "burger",
        "hamburger",
    ),
    _treat(
        draw_apple,
        0.18,
        (-0.55, -1.1, 0.55, 0.05),
        Look((216, 50, 52), (104, 170, 80)),
        "apple",
        "red apple",
        "fruit",
        "peach",
        "cherry",
    ),
    _treat(
        draw_pumpkin,
        0.22,
        (-0.85, -1.15, 0.85, 0.35),
        Look((242, 138, 46)),
        "pumpkin",
        "jack-o'-lantern",
        "halloween pumpkin",
    ),
    _treat(
        draw_ice_cream,
        0.24,
        (-0.42, -1.12, 0.42, 0.03),
        Look((248, 170, 190), (126, 84, 60)),
        "ice cream",
        "ice cream cone",
        "gelato",
    ),
)
