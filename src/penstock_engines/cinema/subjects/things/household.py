"""Things of a house that the cast does not have as well: piano, gramophone and a steaming cup."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import (
    BLACK,
    Box,
    Draw,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
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


GOLD: Colour = (246, 196, 78)


PAPER: Colour = (252, 246, 230)


def draw_piano(brush: Brush, phase: float, look: Look) -> None:
    """Draw a grand piano with notes that rise from it."""
    for x in (-0.56, 0.1, 0.6):
        brush.polygon([(x - 0.04, -0.34), (x + 0.04, -0.34), (x + 0.025, -0.03), (x - 0.025, -0.03)], look.shade)
        brush.ellipse((x, -0.025), (0.035, 0.025), GOLD)
    brush.polygon([(-0.46, -0.52), (-0.3, -1.0), (0.5, -0.86), (0.74, -0.52)], look.shade)
    brush.polygon([(-0.4, -0.54), (-0.26, -0.94), (0.46, -0.82), (0.66, -0.54)], darken(GOLD, 0.2))
    brush.limb([(0.36, -0.5), (0.3, -0.84)], [0.022, 0.022], look.light)
    brush.blob(
        [(-0.74, -0.5), (-0.3, -0.54), (0.4, -0.54), (0.76, -0.5), (0.78, -0.38), (0.4, -0.32), (-0.74, -0.32)],
        look.main,
    )
    brush.polygon([(-0.86, -0.48), (-0.3, -0.48), (-0.3, -0.41), (-0.86, -0.41)], PAPER)
    for index in range(9):
        pressed = (phase * 9 - index) % 9 < 1
        x = -0.85 + 0.062 * index
        brush.limb([(x, -0.47), (x, -0.42)], [0.006, 0.006], (150, 150, 160))
        if index % 3:
            brush.polygon(
                [
                    (x - 0.015, -0.48),
                    (x + 0.015, -0.48),
                    (x + 0.015, -0.43 if pressed else -0.445),
                    (x - 0.015, -0.43 if pressed else -0.445),
                ],
                BLACK,
            )
    brush.polygon([(-0.88, -0.42), (-0.3, -0.42), (-0.3, -0.34), (-0.88, -0.34)], look.light)
    for index in range(3):
        rise = (phase + index / 3) % 1.0
        note = brush.moved((-0.5 + 0.3 * index + 0.05 * wave(rise), -0.75 - 0.35 * rise))
        note.ellipse((0.0, 0.0), (0.04, 0.03), look.accent, 0.95 * wave(rise / 2), degrees=-20)
        note.limb([(0.035, 0.0), (0.035, -0.13)], [0.014, 0.014], look.accent, 0.95 * wave(rise / 2))


def draw_gramophone(brush: Brush, phase: float, look: Look) -> None:
    """Draw a brass horn over a turning record."""
    brush.polygon([(-0.46, -0.22), (0.46, -0.22), (0.52, 0.0), (-0.52, 0.0)], look.main)
    brush.polygon([(-0.5, -0.07), (0.5, -0.07), (0.52, 0.0), (-0.52, 0.0)], look.shade)
    brush.ellipse((-0.04, -0.25), (0.36, 0.05), (40, 38, 46))
    brush.ellipse((-0.04, -0.255), (0.1, 0.015), look.accent)
    shine = 0.26 * wave(phase)
    brush.limb([(-0.04 + shine * 0.5, -0.25), (-0.04 + shine, -0.25)], [0.012, 0.012], (120, 118, 130))
    brush.ribbon(
        [(0.36, -0.26), (0.46, -0.42), (0.28, -0.5), (0.1, -0.46)], [0.04, 0.045, 0.06, 0.08], darken(GOLD, 0.2)
    )
    brush.polygon(
        [
            *arc((0.14, -0.42), (0.0, -0.5), (-0.1, -0.44)),
            *arc((-0.1, -0.44), (-0.3, -0.34), (-0.5, -0.3)),
            *arc((-0.5, -0.3), (-0.62, -0.7), (-0.3, -0.98)),
            *arc((-0.3, -0.98), (-0.12, -0.72), (0.12, -0.54)),
        ],
        GOLD,
    )
    brush.moved((-0.42, -0.64), degrees=26).ellipse((0.0, 0.0), (0.16, 0.36), darken(GOLD, 0.35))
    brush.moved((-0.44, -0.64), degrees=26).ellipse((0.0, 0.0), (0.11, 0.29), darken(GOLD, 0.6))
    for index in range(2):
        rise = (phase + index / 2) % 1.0
        note = brush.moved((-0.66 - 0.1 * rise, -0.7 - 0.28 * rise), degrees=12 * wave(rise))
        note.ellipse((0.0, 0.0), (0.04, 0.03), look.accent, 0.95 * wave(rise / 2), degrees=-20)
        note.limb([(0.035, 0.0), (0.035, -0.13)], [0.014, 0.014], look.accent, 0.95 * wave(rise / 2))


def _placed(draw: Draw, size: float, box: Box, look: Look, *words: str) -> Subject:
    return subject_of(draw, Habitat.FIXED, Motion.STAND, size, 0.0, box, look, *words)


HOUSEHOLD = (
    _placed(draw_piano, 0.32, (-0.95, -1.25, 0.88, 0.03), Look((48, 46, 58), (232, 90, 90)), "piano", "grand piano"),
    _placed(
        draw_gramophone,
        0.3,
        (-0.9, -1.2, 0.6, 0.03),
        Look((140, 78, 52), (232, 90, 90)),
        "gramophone",
        "record player",
        "phonograph",
    ),
    _placed(
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
)
