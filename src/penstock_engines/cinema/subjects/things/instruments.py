"""Musical instruments, clock, telescope and book."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour, arc
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, Look, darken, lighten
from penstock_engines.cinema.subjects.things.small_things import draw_sparkle, placed

GOLD: Colour = (246, 196, 78)


LIT: Colour = (255, 226, 140)


WOOD: Colour = (146, 94, 58)


STEEL: Colour = (176, 182, 194)


PAPER: Colour = (252, 246, 230)


def draw_clock(brush: Brush, phase: float, look: Look) -> None:
    """Draw a clock whose large hand goes round and whose bells ring."""
    shake = brush.moved((0.006 * wave(6 * phase), 0.0))
    for side in (-1, 1):
        shake.limb([(0.2 * side, -0.12), (0.3 * side, 0.0)], [0.07, 0.06], darken(look.main, 0.35))
        bell = shake.moved((0.24 * side, -0.86), degrees=36.0 * side)
        bell.polygon(
            [*arc((-0.16, 0.04), (-0.14, -0.16), (0.0, -0.16)), *arc((0.0, -0.16), (0.14, -0.16), (0.16, 0.04))], GOLD
        )
    shake.limb([(0.0, -0.86), (0.08 * wave(3 * phase), -0.99)], [0.03, 0.06], darken(GOLD, 0.4))
    shake.ellipse((0.0, -0.48), (0.42, 0.42), look.main)
    shake.ellipse((0.0, -0.48), (0.35, 0.35), darken(PAPER, 0.1))
    shake.ellipse((0.01, -0.47), (0.335, 0.335), PAPER)
    for index in range(12):
        tick = shake.moved((0.0, -0.48), degrees=30 * index)
        tick.limb([(0.0, -0.3), (0.0, -0.27 if index % 3 else -0.24)], [0.018, 0.018], (70, 66, 80))
    shake.moved((0.0, -0.48), degrees=300 + 30 * math.floor(phase)).limb(
        [(0.0, 0.03), (0.0, -0.17)], [0.035, 0.025], (70, 66, 80)
    )
    shake.moved((0.0, -0.48), degrees=360 * phase).limb([(0.0, 0.05), (0.0, -0.26)], [0.025, 0.016], look.shade)
    shake.ellipse((0.0, -0.48), (0.03, 0.03), (70, 66, 80))


def draw_guitar(brush: Brush, phase: float, look: Look) -> None:
    """Draw a leaning guitar with a trembling string."""
    body = brush.moved((0.0, -0.02), degrees=10 + wave(phase))
    body.polygon([(-0.035, -0.4), (-0.028, -0.88), (0.028, -0.88), (0.035, -0.4)], darken(WOOD, 0.4))
    body.polygon([(-0.045, -0.86), (-0.055, -1.0), (0.055, -1.0), (0.045, -0.86)], darken(WOOD, 0.2))
    for side in (-1, 1):
        for y in (-0.96, -0.91):
            body.ellipse((0.07 * side, y), (0.016, 0.014), STEEL)
    outline = [
        (-0.14, -0.5),
        (0.14, -0.5),
        (0.16, -0.4),
        (0.13, -0.32),
        (0.22, -0.18),
        (0.2, -0.04),
        (0.0, 0.01),
        (-0.2, -0.04),
        (-0.22, -0.18),
        (-0.13, -0.32),
        (-0.16, -0.4),
    ]
    body.blob([(x * 1.06, y) for x, y in outline], look.shade)
    body.blob([(x - 0.005, y - 0.008) for x, y in outline], look.main)
    body.ellipse((0.0, -0.32), (0.07, 0.07), look.light)
    body.ellipse((0.0, -0.32), (0.056, 0.056), darken(look.main, 0.65))
    body.limb([(-0.06, -0.12), (0.06, -0.12)], [0.025, 0.025], darken(look.main, 0.6))
    for index in range(4):
        x = -0.024 + 0.016 * index
        hum = 0.006 * wave(4 * phase, 0.25 * index)
        body.ribbon([(x, -0.92), (x + hum, -0.5), (x * 1.2, -0.12)], [0.005, 0.005, 0.005], PAPER)


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


def draw_telescope(brush: Brush, phase: float, look: Look) -> None:
    """Draw a telescope on three legs that follows a star."""
    for x in (-0.3, 0.3, 0.04):
        brush.limb([(0.0, -0.5), (x, 0.0)], [0.05, 0.035], darken(WOOD, 0.3 if x == 0.04 else 0.0))
    brush.ellipse((0.0, -0.5), (0.06, 0.06), STEEL)
    tube = brush.moved((0.0, -0.54), degrees=-34 + 4 * wave(phase))
    tube.polygon([(-0.36, -0.06), (0.1, -0.08), (0.1, 0.08), (-0.36, 0.06)], look.main)
    tube.polygon([(0.08, -0.1), (0.6, -0.13), (0.6, 0.13), (0.08, 0.1)], look.light)
    tube.polygon([(0.08, 0.03), (0.6, 0.04), (0.6, 0.13), (0.08, 0.1)], look.main)
    for x, high in ((0.1, 0.11), (0.58, 0.145), (-0.34, 0.075)):
        tube.limb([(x, -high), (x, high)], [0.05, 0.05], GOLD)
    tube.polygon([(-0.36, -0.045), (-0.46, -0.03), (-0.46, 0.03), (-0.36, 0.045)], BLACK)
    tube.ellipse((0.61, 0.0), (0.03, 0.12), (160, 214, 244))
    draw_sparkle(brush, (0.62, -1.02), 0.09, 0.55 + 0.45 * wave(phase))


def draw_book(brush: Brush, phase: float, look: Look) -> None:
    """Draw an open book with a page that turns."""
    brush.polygon([(-0.98, -0.12), (-0.9, -0.7), (0.9, -0.7), (0.98, -0.12), (0.0, -0.02)], look.main)
    for side in (-1, 1):
        half = brush.moved(scale=(side, 1.0))
        half.polygon(
            [
                *arc((0.0, -0.68), (0.36, -0.86), (0.84, -0.74)),
                (0.9, -0.18),
                *arc((0.9, -0.18), (0.4, -0.28), (0.0, -0.1)),
            ],
            PAPER if side > 0 else darken(PAPER, 0.07),
        )
        for index in range(5):
            y = -0.62 + 0.085 * index
            half.ribbon([(0.12, y + 0.03), (0.4, y - 0.045), (0.76, y - 0.005)], [0.016, 0.016, 0.016], (176, 168, 160))
    turn = math.cos(math.pi * phase)
    lift = 0.3 * math.sin(math.pi * phase)
    brush.polygon(
        [
            *arc((0.0, -0.68), (0.36 * turn, -0.84 - lift), (0.84 * turn, -0.74 - lift)),
            (0.9 * turn, -0.18 - lift),
            *arc((0.9 * turn, -0.18 - lift), (0.4 * turn, -0.28 - lift), (0.0, -0.1)),
        ],
        lighten(PAPER, 0.5),
        0.98 * min(1.0, 4 * math.sin(math.pi * phase)),
    )


INSTRUMENTS = (
    placed(draw_clock, 0.26, (-0.5, -1.08, 0.5, 0.04), Look((214, 72, 62)), "clock", "alarm clock", "hourglass"),
    placed(draw_guitar, 0.34, (-0.34, -1.1, 0.42, 0.06), Look((214, 138, 70)), "guitar", "violin", "cello", "ukulele"),
    placed(draw_piano, 0.32, (-0.95, -1.25, 0.88, 0.03), Look((48, 46, 58), (232, 90, 90)), "piano", "grand piano"),
    placed(
        draw_gramophone,
        0.3,
        (-0.9, -1.2, 0.6, 0.03),
        Look((140, 78, 52), (232, 90, 90)),
        "gramophone",
        "record player",
        "phonograph",
    ),
    placed(draw_telescope, 0.32, (-0.62, -1.15, 0.75, 0.04), Look((60, 92, 150)), "telescope", "spyglass"),
    placed(draw_book, 0.18, (-1.05, -1.15, 1.05, 0.03), Look((160, 60, 70)), "book", "open book", "magic book"),
)
