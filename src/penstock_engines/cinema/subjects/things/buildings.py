"""Buildings to live in, and to be seen from afar."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc
from penstock_engines.cinema.subjects.gait import fade, wave
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

LIT: Colour = (255, 224, 140)


STONE: Colour = (176, 172, 176)


WOOD: Colour = (140, 92, 58)


SMOKE: Colour = (232, 232, 238)


def rectangle(left: float, top: float, right: float, bottom: float) -> list[Point]:
    """Return the four corners."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _window(brush: Brush, x: float, y: float, size: float, *, glass: Colour = LIT, frame: Colour = WHITE) -> None:
    """Draw a square window with a cross of bars."""
    brush.polygon(rectangle(x - size * 1.2, y - size * 1.2, x + size * 1.2, y + size * 1.2), frame)
    brush.polygon(rectangle(x - size, y - size, x + size, y + size), glass)
    brush.limb([(x, y - size), (x, y + size)], [size * 0.2, size * 0.2], frame)
    brush.limb([(x - size, y), (x + size, y)], [size * 0.2, size * 0.2], frame)


def _smoke(brush: Brush, place: Point, phase: float) -> None:
    for index in range(4):
        rise = (phase + index / 4) % 1.0
        size = 0.03 + 0.05 * rise
        brush.ellipse(
            (place[0] + 0.12 * rise + 0.02 * wave(rise), place[1] - 0.28 * rise),
            (size, size * 0.9),
            SMOKE,
            0.75 * fade(rise),
        )


def _flag_on(brush: Brush, foot: Point, high: float, colour: Colour, phase: float) -> None:
    x, y = foot
    brush.limb([foot, (x, y - high)], [0.012, 0.012], darken(WOOD))
    ripple = 0.015 * wave(phase)
    brush.polygon(
        [
            (x, y - high),
            *arc((x, y - high), (x + high * 0.4, y - high + ripple * 2), (x + high * 0.85, y - high * 0.74 - ripple)),
            *arc(
                (x + high * 0.85, y - high * 0.74 - ripple),
                (x + high * 0.4, y - high * 0.5 + ripple * 2),
                (x, y - high * 0.5),
            ),
        ],
        colour,
    )


def draw_house(brush: Brush, phase: float, look: Look) -> None:
    """Draw a cottage with a red roof and a smoking chimney."""
    brush.polygon(rectangle(0.24, -0.98, 0.38, -0.6), darken(look.accent, 0.3))
    _smoke(brush, (0.31, -0.98), phase)
    brush.polygon(rectangle(-0.52, -0.54, 0.52, 0.0), look.main)
    brush.polygon(rectangle(0.2, -0.54, 0.52, 0.0), darken(look.main, 0.1))
    brush.polygon([(-0.3, -0.54), (0.0, -0.82), (0.3, -0.54)], look.main)
    brush.polygon([(-0.66, -0.48), (-0.4, -0.94), (0.4, -0.94), (0.66, -0.48)], look.accent)
    for row, y in enumerate((-0.6, -0.72, -0.84)):
        brush.limb([(-0.6 + 0.07 * row, y), (0.6 - 0.07 * row, y)], [0.012, 0.012], darken(look.accent, 0.18))
    brush.polygon([(-0.66, -0.48), (-0.64, -0.52), (0.64, -0.52), (0.66, -0.48)], darken(look.accent, 0.25))
    brush.polygon([*rectangle(-0.1, -0.26, 0.1, 0.0)], WOOD)
    brush.polygon(
        [*arc((-0.1, -0.26), (-0.1, -0.36), (0.0, -0.36)), *arc((0.0, -0.36), (0.1, -0.36), (0.1, -0.26))], WOOD
    )
    brush.ellipse((0.06, -0.16), (0.016, 0.016), LIT)
    for x in (-0.31, 0.31):
        _window(brush, x, -0.27, 0.095)
        brush.limb([(x - 0.12, -0.13), (x + 0.12, -0.13)], [0.04, 0.04], darken(WOOD, 0.1))
        for index in range(4):
            brush.ellipse((x - 0.1 + 0.066 * index, -0.165), (0.03, 0.028), ((232, 84, 100), (250, 200, 90))[index % 2])


def draw_cabin(brush: Brush, phase: float, look: Look) -> None:
    """Draw a log cabin under a steep roof."""
    brush.polygon(rectangle(-0.36, -0.98, -0.24, -0.6), STONE)
    _smoke(brush, (-0.3, -0.98), phase)
    for index in range(6):
        y = -0.05 - 0.09 * index
        brush.limb([(-0.48, y), (0.48, y)], [0.095, 0.095], darken(look.main, 0.1 * (index % 2)))
        for x in (-0.5, 0.5):
            brush.ellipse((x, y), (0.045, 0.045), lighten(look.main, 0.3))
    brush.polygon([(-0.46, -0.5), (0.0, -0.88), (0.46, -0.5)], darken(look.main, 0.12))
    for side in (-1, 1):
        brush.limb([(0.0, -0.9), (0.64 * side, -0.42)], [0.1, 0.1], look.accent)
        brush.limb([(0.0, -0.94), (0.64 * side, -0.46)], [0.03, 0.03], lighten(look.accent, 0.3))
    brush.polygon(rectangle(-0.3, -0.36, -0.1, 0.0), darken(look.main, 0.45))
    brush.ellipse((-0.14, -0.17), (0.014, 0.014), LIT)
    brush.glow((0.22, -0.26), 0.24, LIT, 0.5)
    _window(brush, 0.22, -0.26, 0.1, frame=darken(look.main, 0.45))
    _window(brush, 0.0, -0.64, 0.055, frame=darken(look.main, 0.45))


def draw_lighthouse(brush: Brush, phase: float, look: Look) -> None:
    """Draw a striped lighthouse with a turning light."""
    beam = wave(phase)
    reach = 1.0 * beam
    brush.polygon([(0.0, -0.885), (reach, -0.98), (reach, -0.76)], (255, 244, 190), 0.1 + 0.34 * abs(beam))
    brush.polygon(
        [(0.0, -0.885), (-reach * 0.8, -0.95), (-reach * 0.8, -0.8)], (255, 244, 190), 0.05 + 0.16 * abs(beam)
    )
    brush.blob([(-0.34, 0.02), (-0.26, -0.08), (0.0, -0.1), (0.28, -0.07), (0.36, 0.02)], (126, 116, 120))
    tower: list[Point] = [(-0.17, -0.04), (-0.1, -0.78), (0.1, -0.78), (0.17, -0.04)]
    brush.polygon(tower, look.accent)
    with brush.inside(tower, straight=True):
        for y in (-0.7, -0.42, -0.14):
            brush.polygon(rectangle(-0.3, y - 0.07, 0.3, y + 0.07), look.main)
        brush.polygon([(0.03, -0.8), (0.2, -0.8), (0.2, 0.0), (0.05, 0.0)], BLACK, 0.12)
    brush.polygon(
        [*arc((-0.05, -0.04), (-0.05, -0.17), (0.0, -0.17)), *arc((0.0, -0.17), (0.05, -0.17), (0.05, -0.04))],
        darken(WOOD, 0.3),
    )
    for y in (-0.3, -0.56):
        brush.ellipse((0.0, y), (0.026, 0.034), (70, 90, 120))
    brush.polygon(rectangle(-0.145, -0.81, 0.145, -0.775), darken(look.main, 0.3))
    for index in range(5):
        x = -0.13 + 0.065 * index
        brush.limb([(x, -0.81), (x, -0.85)], [0.01, 0.01], darken(look.main, 0.3))
    brush.limb([(-0.135, -0.85), (0.135, -0.85)], [0.012, 0.012], darken(look.main, 0.3))
    brush.polygon(rectangle(-0.075, -0.93, 0.075, -0.81), lighten(LIT, 0.3 + 0.3 * abs(beam)))
    brush.limb([(0.0, -0.93), (0.0, -0.81)], [0.012, 0.012], darken(look.main, 0.3))
    brush.polygon(
        [*arc((-0.1, -0.925), (-0.08, -0.99), (0.0, -1.0)), *arc((0.0, -1.0), (0.08, -0.99), (0.1, -0.925))], look.main
    )
    brush.glow((0.0, -0.88), 0.2, (255, 244, 190), 0.4 + 0.4 * abs(beam))


def draw_windmill(brush: Brush, phase: float, look: Look) -> None:
    """Draw a tower mill. A quarter turn of its sails is a loop."""
    brush.polygon([(-0.24, 0.0), (-0.14, -0.6), (0.14, -0.6), (0.24, 0.0)], look.main)
    brush.polygon([(0.06, 0.0), (0.04, -0.6), (0.14, -0.6), (0.24, 0.0)], darken(look.main, 0.14))
    brush.polygon(
        [*arc((-0.17, -0.59), (-0.14, -0.8), (0.0, -0.8)), *arc((0.0, -0.8), (0.14, -0.8), (0.17, -0.59))], look.accent
    )
    brush.polygon(rectangle(-0.07, -0.2, 0.07, 0.0), WOOD)
    _window(brush, 0.0, -0.38, 0.042)
    brush.limb([(-0.27, -0.27), (0.27, -0.27)], [0.03, 0.03], WOOD)
    for x in (-0.24, -0.12, 0.12, 0.24):
        brush.limb([(x, -0.27), (x, -0.33)], [0.012, 0.012], WOOD)
    for index in range(4):
        sail = brush.moved((0.0, -0.66), degrees=90 * (phase + index) + 20)
        sail.limb([(0.0, 0.0), (0.0, -0.48)], [0.03, 0.02], darken(WOOD, 0.2))
        sail.polygon(rectangle(0.01, -0.47, 0.12, -0.12), (250, 244, 230))
        for y in (-0.2, -0.29, -0.38):
            sail.limb([(0.0, y), (0.12, y)], [0.01, 0.01], WOOD)
        sail.limb([(0.065, -0.47), (0.065, -0.12)], [0.01, 0.01], WOOD)
    brush.ellipse((0.0, -0.66), (0.04, 0.04), darken(WOOD, 0.3))


def _battlements(brush: Brush, left: float, right: float, y: float, colour: Colour, count: int) -> None:
    step = (right - left) / (2 * count - 1)
    for index in range(count):
        x = left + 2 * step * index
        brush.polygon(rectangle(x, y - 0.06, x + step, y + 0.01), colour)


def draw_castle(brush: Brush, phase: float, look: Look) -> None:
    """Draw towers with pointed roofs and flags."""
    for x, top, wide in ((-0.28, -0.66, 0.1), (0.28, -0.66, 0.1), (0.0, -0.74, 0.13)):
        brush.polygon(rectangle(x - wide, top, x + wide, 0.0), darken(look.main, 0.14))
        brush.polygon([(x - wide * 1.3, top), (x, top - wide * 2.1), (x + wide * 1.3, top)], look.accent)
        brush.polygon([(x, top), (x, top - wide * 2.1), (x + wide * 1.3, top)], darken(look.accent, 0.2))
        brush.polygon(
            [
                *arc((x - 0.03, top + 0.17), (x - 0.03, top + 0.06), (x, top + 0.06)),
                *arc((x, top + 0.06), (x + 0.03, top + 0.06), (x + 0.03, top + 0.17)),
            ],
            LIT,
        )
        _flag_on(brush, (x, top - wide * 2.0), 0.12, look.accent, 2 * phase)
    brush.polygon(rectangle(-0.44, -0.42, 0.44, 0.0), look.main)
    _battlements(brush, -0.44, 0.44, -0.42, look.main, 7)
    for x in (-0.52, 0.52):
        brush.polygon(rectangle(x - 0.13, -0.56, x + 0.13, 0.0), lighten(look.main, 0.1))
        brush.polygon(rectangle(x + 0.04, -0.56, x + 0.13, 0.0), darken(look.main, 0.1))
        _battlements(brush, x - 0.15, x + 0.15, -0.56, lighten(look.main, 0.1), 4)
        brush.polygon(rectangle(x - 0.15, -0.57, x + 0.15, -0.53), darken(look.main, 0.12))
        brush.limb([(x, -0.4), (x, -0.33)], [0.035, 0.035], darken(look.main, 0.6))
    for x, y in ((-0.3, -0.3), (0.26, -0.34), (-0.22, -0.12), (0.32, -0.16), (0.16, -0.36)):
        brush.limb([(x, y), (x + 0.05, y)], [0.025, 0.025], darken(look.main, 0.14))
    brush.polygon(
        [
            (-0.12, 0.0),
            *arc((-0.12, -0.16), (-0.12, -0.3), (0.0, -0.3)),
            *arc((0.0, -0.3), (0.12, -0.3), (0.12, -0.16)),
            (0.12, 0.0),
        ],
        darken(WOOD, 0.35),
    )
    for x in (-0.06, 0.0, 0.06):
        brush.limb([(x, -0.25), (x, 0.0)], [0.012, 0.012], darken(WOOD, 0.6))


def draw_tower(brush: Brush, phase: float, look: Look) -> None:
    """Draw a pagoda of five roofs with lanterns."""
    for index in range(5):
        low = -0.05 - 0.18 * index
        wide = 0.22 - 0.03 * index
        brush.polygon(rectangle(-wide, low - 0.12, wide, low), look.main)
        for x in (-wide * 0.55, 0.0, wide * 0.55):
            brush.polygon(rectangle(x - 0.03, low - 0.1, x + 0.03, low - 0.01), LIT)
        brush.polygon(
            [
                *arc((-wide - 0.14, low - 0.14), (-wide * 0.6, low - 0.13), (-wide * 0.7, low - 0.2)),
                *arc((wide * 0.7, low - 0.2), (wide * 0.6, low - 0.13), (wide + 0.14, low - 0.14)),
                *arc((wide + 0.14, low - 0.14), (0.0, low - 0.08), (-wide - 0.14, low - 0.14)),
            ],
            look.accent,
        )
        for side in (-1, 1):
            swing = 0.01 * wave(phase, 0.2 * index)
            brush.ellipse(((wide + 0.11) * side + swing, low - 0.095), (0.018, 0.024), (240, 90, 60))
    brush.polygon(rectangle(-0.3, -0.05, 0.3, 0.0), STONE)
    brush.limb([(0.0, -0.95), (0.0, -1.04)], [0.025, 0.012], (240, 196, 84))
    brush.polygon(
        [*arc((-0.05, 0.0), (-0.05, -0.13), (0.0, -0.13)), *arc((0.0, -0.13), (0.05, -0.13), (0.05, 0.0))],
        darken(look.main, 0.5),
    )


def built(draw: Draw, size: float, box: Box, look: Look, *words: str) -> Subject:
    """Return a subject that stands where it was built."""
    return subject_of(draw, Habitat.FIXED, Motion.STAND, size, 0.0, box, look, *words)


BUILDINGS = (
    built(
        draw_house,
        0.4,
        (-0.72, -1.32, 0.72, 0.03),
        Look((250, 236, 210), (204, 84, 66)),
        "house",
        "cottage",
        "farmhouse",
        "barn",
        "villa",
    ),
    built(
        draw_cabin,
        0.36,
        (-0.74, -1.32, 0.74, 0.04),
        Look((160, 106, 66), (92, 70, 66)),
        "cabin",
        "log cabin",
        "hut",
        "lodge",
        "chalet",
        "shack",
    ),
    built(
        draw_lighthouse, 0.62, (-1.05, -1.1, 1.05, 0.04), Look((216, 62, 56), (250, 248, 242)), "lighthouse", "beacon"
    ),
    built(
        draw_windmill,
        0.56,
        (-0.55, -1.22, 0.55, 0.02),
        Look((244, 232, 212), (150, 78, 60)),
        "windmill",
        "mill",
        "wind turbine",
    ),
    built(
        draw_castle,
        0.56,
        (-0.72, -1.18, 0.72, 0.02),
        Look((206, 198, 196), (88, 100, 170)),
        "castle",
        "fortress",
        "palace",
        "citadel",
    ),
    built(
        draw_tower,
        0.62,
        (-0.4, -1.1, 0.4, 0.02),
        Look((206, 72, 58), (70, 78, 92)),
        "tower",
        "pagoda",
        "temple",
        "shrine",
    ),
)
