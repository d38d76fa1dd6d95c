"""Things that lie, stand or hang: lanterns, toys, treasures."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc
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

GOLD: Colour = (246, 196, 78)


LIT: Colour = (255, 226, 140)


WOOD: Colour = (146, 94, 58)


STEEL: Colour = (176, 182, 194)


PAPER: Colour = (252, 246, 230)


def draw_lantern(brush: Brush, phase: float, look: Look) -> None:
    """Draw a paper lantern that hangs and glows."""
    swing = brush.moved((0.0, -1.0), degrees=4 * wave(phase)).moved((0.0, 1.0))
    swing.glow((0.0, -0.5), 0.72, LIT, 0.5 + 0.06 * wave(2 * phase))
    swing.limb([(0.0, -1.0), (0.0, -0.86)], [0.02, 0.02], darken(WOOD))
    swing.blob(
        [
            (0.0, -0.84),
            (0.26, -0.76),
            (0.36, -0.52),
            (0.26, -0.28),
            (0.0, -0.2),
            (-0.26, -0.28),
            (-0.36, -0.52),
            (-0.26, -0.76),
        ],
        look.main,
    )
    for wide, tone in ((0.24, look.light), (0.1, lighten(look.main, 0.55))):
        swing.blob(
            [
                (0.0, -0.83),
                (wide * 0.8, -0.74),
                (wide, -0.52),
                (wide * 0.8, -0.3),
                (0.0, -0.21),
                (-wide * 0.8, -0.3),
                (-wide, -0.52),
                (-wide * 0.8, -0.74),
            ],
            tone,
        )
    for y, wide in ((-0.68, 0.31), (-0.52, 0.35), (-0.36, 0.31)):
        swing.ribbon([(-wide, y), (0.0, y + 0.03), (wide, y)], [0.012, 0.012, 0.012], look.shade)
    for y in (-0.84, -0.2):
        swing.limb([(-0.14, y), (0.14, y)], [0.06, 0.06], GOLD)
    for x in (-0.06, 0.0, 0.06):
        swing.ribbon(
            [(x, -0.17), (x, -0.1), (x * 1.3 + 0.02 * wave(phase, 0.2), -0.02)], [0.022, 0.022, 0.016], look.shade
        )


def draw_candle(brush: Brush, phase: float, look: Look) -> None:
    """Draw a candle that flickers in its holder."""
    lean, tall = 0.03 * wave(2 * phase), 0.26 + 0.025 * wave(3 * phase)
    brush.glow((0.0, -0.84), 0.46, (255, 200, 90), 0.6 + 0.06 * wave(3 * phase))
    brush.ellipse((0.0, -0.06), (0.4, 0.06), darken(GOLD, 0.3))
    brush.ellipse((0.0, -0.09), (0.4, 0.06), GOLD)
    brush.ribbon(
        [(0.36, -0.1), (0.5, -0.16), (0.46, -0.26), (0.36, -0.22)], [0.045, 0.04, 0.04, 0.03], darken(GOLD, 0.15)
    )
    brush.polygon([(-0.16, -0.1), (-0.16, -0.64), (0.16, -0.64), (0.16, -0.1)], look.main)
    brush.polygon([(0.05, -0.1), (0.05, -0.64), (0.16, -0.64), (0.16, -0.1)], darken(look.main, 0.12))
    brush.ellipse((0.0, -0.64), (0.16, 0.035), lighten(look.main, 0.6))
    brush.limb([(-0.12, -0.62), (-0.12, -0.46)], [0.06, 0.06], lighten(look.main, 0.4))
    brush.limb([(0.0, -0.64), (0.0, -0.71)], [0.016, 0.016], BLACK)
    for wide, high, paint in (
        (0.085, tall, (255, 150, 50)),
        (0.055, tall * 0.72, (255, 214, 96)),
        (0.03, tall * 0.42, (255, 250, 220)),
    ):
        brush.blob(
            [
                (0.0, -0.68),
                (wide, -0.72 - high * 0.2),
                (wide * 0.5 + lean * 0.6, -0.68 - high * 0.65),
                (lean, -0.68 - high),
                (-wide * 0.5 + lean * 0.4, -0.68 - high * 0.6),
                (-wide, -0.72 - high * 0.2),
            ],
            paint,
        )


def draw_balloon(brush: Brush, phase: float, look: Look) -> None:
    """Draw a bunch of three on strings."""
    for index, (x, y, paint) in enumerate(
        ((-0.2, -0.2, look.accent), (0.2, -0.16, lighten(look.main, 0.45)), (0.0, -0.3, look.main))
    ):
        sway = 0.03 * wave(phase, 0.2 * index)
        brush.ribbon([(0.0, 0.5), (x * 0.3, 0.25), (x + sway, y + 0.2)], [0.008, 0.008, 0.008], WHITE)
        balloon = brush.moved((x + sway, y), degrees=x * 40)
        balloon.polygon([(-0.025, 0.22), (0.025, 0.22), (0.0, 0.18)], darken(paint))
        balloon.blob(
            [
                (0.0, -0.22),
                (0.15, -0.16),
                (0.18, 0.0),
                (0.1, 0.14),
                (0.0, 0.2),
                (-0.1, 0.14),
                (-0.18, 0.0),
                (-0.15, -0.16),
            ],
            paint,
        )
        balloon.blob([(0.16, -0.08), (0.17, 0.02), (0.09, 0.14), (0.0, 0.19), (0.1, 0.06)], darken(paint, 0.16))
        balloon.ellipse((-0.08, -0.1), (0.03, 0.05), WHITE, 0.6, degrees=24)


def draw_ball(brush: Brush, phase: float, look: Look) -> None:
    """Draw a rolling ball of three colours."""
    brush.ellipse((0.0, -0.5), (0.5, 0.5), PAPER)
    ball = brush.moved((0.0, -0.5), degrees=360 * phase)
    paints = (look.main, PAPER, look.accent, PAPER, (252, 206, 84), PAPER)
    for index, paint in enumerate(paints):
        start, end = math.tau * index / 6, math.tau * (index + 1) / 6
        rim: list[Point] = [
            (0.49 * math.cos(start + (end - start) * share / 6), 0.49 * math.sin(start + (end - start) * share / 6))
            for share in range(7)
        ]
        bow = (0.26 * math.cos(start - 0.25), 0.26 * math.sin(start - 0.25))
        back = (0.26 * math.cos(end - 0.25), 0.26 * math.sin(end - 0.25))
        ball.polygon([*arc((0.0, 0.0), bow, rim[0]), *rim, *arc(rim[-1], back, (0.0, 0.0))], paint)
    ball.ellipse((0.0, 0.0), (0.08, 0.08), PAPER)
    brush.ellipse((-0.17, -0.72), (0.12, 0.07), WHITE, 0.6, degrees=-36)
    brush.polygon(
        [
            *arc((-0.3, -0.1), (0.1, -0.08), (0.44, -0.66)),
            *arc((0.5, -0.5), (0.5, -0.02), (0.0, 0.0)),
            *arc((0.0, 0.0), (-0.2, 0.0), (-0.3, -0.1)),
        ],
        BLACK,
        0.14,
    )


def draw_gift(brush: Brush, phase: float, look: Look) -> None:
    """Draw a present with a bow and a lid that jumps a little."""
    hop = 0.03 * max(0.0, wave(2 * phase))
    brush.polygon([(-0.42, -0.52), (0.42, -0.52), (0.4, 0.0), (-0.4, 0.0)], look.main)
    brush.polygon([(0.16, -0.52), (0.42, -0.52), (0.4, 0.0), (0.16, 0.0)], look.shade)
    brush.polygon([(-0.09, -0.52), (0.09, -0.52), (0.09, 0.0), (-0.09, 0.0)], look.accent)
    lid = brush.moved((0.0, -hop), degrees=2 * wave(phase))
    lid.polygon([(-0.48, -0.7), (0.48, -0.7), (0.48, -0.5), (-0.48, -0.5)], look.light)
    lid.polygon([(-0.1, -0.7), (0.1, -0.7), (0.1, -0.5), (-0.1, -0.5)], look.accent)
    for side in (-1, 1):
        lid.blob(
            [(0.0, -0.72), (0.12 * side, -0.9), (0.3 * side, -0.96), (0.34 * side, -0.82), (0.18 * side, -0.72)],
            look.accent,
        )
        lid.blob(
            [
                (0.02 * side, -0.74),
                (0.14 * side, -0.84),
                (0.26 * side, -0.88),
                (0.24 * side, -0.8),
                (0.14 * side, -0.75),
            ],
            darken(look.accent, 0.25),
        )
    lid.ellipse((0.0, -0.74), (0.07, 0.06), darken(look.accent, 0.1))


def draw_sparkle(brush: Brush, place: Point, size: float, strength: float) -> None:
    """Draw a white star of four points, with a size from 0 to 1."""
    star = brush.moved(place, scale=size * max(strength, 0.01))
    star.polygon(
        [(0.0, -1.0), (0.18, -0.18), (1.0, 0.0), (0.18, 0.18), (0.0, 1.0), (-0.18, 0.18), (-1.0, 0.0), (-0.18, -0.18)],
        WHITE,
    )


def draw_crown(brush: Brush, phase: float, look: Look) -> None:
    """Draw a golden crown with sparkling stones."""
    brush.polygon(
        [(-0.62, -0.86), (-0.34, -0.46), (0.0, -0.98), (0.34, -0.46), (0.62, -0.86), (0.5, -0.14), (-0.5, -0.14)],
        look.main,
    )
    brush.polygon([(0.0, -0.98), (0.34, -0.46), (0.62, -0.86), (0.5, -0.14), (0.0, -0.14)], darken(look.main, 0.12))
    brush.limb([(-0.48, -0.09), (0.0, -0.04), (0.48, -0.09)], [0.16, 0.17, 0.16], look.light)
    for x, y in ((-0.62, -0.88), (0.0, -1.0), (0.62, -0.88)):
        brush.ellipse((x, y), (0.065, 0.065), look.light)
    for x, y, paint in (
        (-0.3, -0.08, (90, 150, 230)),
        (0.0, -0.05, look.accent),
        (0.3, -0.08, (90, 190, 120)),
        (0.0, -0.44, look.accent),
    ):
        brush.ellipse((x, y), (0.06, 0.06), paint)
        brush.ellipse((x - 0.018, y - 0.02), (0.018, 0.018), WHITE)
    draw_sparkle(brush, (0.36, -0.62), 0.12, max(0.0, wave(phase)))
    draw_sparkle(brush, (-0.44, -0.4), 0.1, max(0.0, wave(phase, 0.5)))


def draw_diamond(brush: Brush, phase: float, look: Look) -> None:
    """Draw a cut and sparkling diamond."""
    brush.glow((0.0, -0.5), 0.75, look.light, 0.35)
    brush.polygon([(-0.36, -0.92), (0.36, -0.92), (0.62, -0.62), (0.0, 0.0), (-0.62, -0.62)], look.main)
    for points, share in (
        ([(-0.62, -0.62), (-0.36, -0.92), (-0.24, -0.62)], 0.35),
        ([(-0.36, -0.92), (0.0, -0.92), (-0.24, -0.62)], 0.6),
        ([(0.0, -0.92), (0.24, -0.62), (-0.24, -0.62)], 0.3),
        ([(-0.24, -0.62), (0.24, -0.62), (0.0, 0.0)], 0.45),
        ([(-0.62, -0.62), (-0.24, -0.62), (0.0, 0.0)], 0.2),
    ):
        brush.polygon(points, lighten(look.main, share + 0.16 * wave(phase, share)))
    brush.polygon([(0.24, -0.62), (0.62, -0.62), (0.0, 0.0)], look.shade)
    brush.polygon([(0.36, -0.92), (0.62, -0.62), (0.24, -0.62)], darken(look.main, 0.14))
    draw_sparkle(brush, (-0.3, -0.78), 0.17, max(0.0, wave(phase)))
    draw_sparkle(brush, (0.36, -0.4), 0.13, max(0.0, wave(phase, 0.5)))


def placed(
    draw: Draw,
    size: float,
    box: Box,
    look: Look,
    *words: str,
    habitat: Habitat = Habitat.FIXED,
    motion: Motion = Motion.STAND,
    stride: float = 0.0,
) -> Subject:
    """Return a subject that is a thing."""
    return subject_of(draw, habitat, motion, size, stride, box, look, *words)


SMALL_THINGS = (
    placed(
        draw_lantern,
        0.26,
        (-0.75, -1.1, 0.75, 0.2),
        Look((226, 70, 56)),
        "lantern",
        "paper lantern",
        "sky lantern",
        "lamp",
        motion=Motion.SWAY,
    ),
    placed(draw_candle, 0.2, (-0.56, -1.3, 0.58, 0.03), Look((250, 240, 220)), "candle", "candlelight/"),
    placed(
        draw_balloon,
        0.34,
        (-0.52, -0.62, 0.52, 0.56),
        Look((230, 66, 66), (80, 140, 220)),
        "balloon",
        "party balloon",
        "bunch of balloons/",
        habitat=Habitat.AIR,
        motion=Motion.DRIFT,
        stride=0.1,
    ),
    placed(
        draw_ball,
        0.13,
        (-0.55, -1.06, 0.55, 0.05),
        Look((226, 70, 66), (70, 130, 210)),
        "ball",
        "beach ball",
        "football",
        "basketball",
        habitat=Habitat.GROUND,
        motion=Motion.HOP,
        stride=3.14,
    ),
    placed(
        draw_gift,
        0.2,
        (-0.56, -1.1, 0.56, 0.03),
        Look((212, 62, 72), (250, 206, 90)),
        "gift",
        "gift box",
        "treasure chest",
    ),
    placed(draw_crown, 0.2, (-0.75, -1.12, 0.75, 0.1), Look(GOLD, (220, 56, 80)), "crown", "tiara"),
    placed(
        draw_diamond,
        0.2,
        (-0.8, -1.25, 0.8, 0.25),
        Look((96, 190, 236)),
        "diamond",
        "gem",
        "jewel",
        "gemstone",
    ),
)
