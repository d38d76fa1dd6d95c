"""Aircraft: planes, balloons, kites and more."""

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

GLASS: Colour = (120, 178, 214)
METAL: Colour = (170, 176, 190)
BASKET: Colour = (166, 110, 62)


def _shaded(brush: Brush, shape: list[Point], colour: Colour, below: Colour, waist: float) -> None:
    """Draw a hull with a lower part of another colour."""
    brush.blob(shape, colour)
    with brush.inside(shape):
        brush.polygon([(-3, waist), (3, waist), (3, 3), (-3, 3)], below)


def draw_aeroplane(brush: Brush, phase: float, look: Look) -> None:
    """Draw a jet liner."""
    plane = brush.moved((0.0, 0.02 * wave(phase)), degrees=-5 + wave(phase, 0.2))
    plane.polygon([(0.1, -0.08), (-0.3, -0.46), (-0.46, -0.46), (-0.22, -0.06)], darken(look.accent, 0.35))
    plane.polygon([(-0.78, -0.08), (-1.08, -0.56), (-1.3, -0.56), (-1.16, -0.02)], look.main)
    plane.polygon([(-0.96, -0.36), (-1.08, -0.56), (-1.3, -0.56), (-1.24, -0.32)], look.shade)
    body = [
        (1.26, 0.06),
        (1.08, -0.1),
        (0.7, -0.17),
        (-0.6, -0.17),
        (-1.0, -0.13),
        (-1.26, -0.06),
        (-1.0, 0.08),
        (-0.6, 0.17),
        (0.7, 0.19),
        (1.1, 0.16),
    ]
    _shaded(plane, body, look.accent, darken(look.accent, 0.2), 0.08)
    with plane.inside(body):
        plane.polygon([(-2, 0.015), (2, 0.015), (2, 0.06), (-2, 0.06)], look.main)
    plane.polygon([(-0.98, -0.02), (-1.34, 0.06), (-1.36, 0.1), (-0.96, 0.06)], darken(look.accent, 0.3))
    plane.blob([(0.98, -0.1), (1.08, -0.08), (1.16, -0.015), (0.98, -0.02)], darken(GLASS, 0.4))
    for index in range(12):
        plane.ellipse((-0.7 + 0.13 * index, -0.05), (0.028, 0.034), GLASS)
    plane.limb([(0.22, 0.22), (0.46, 0.22)], [0.16, 0.15], look.main)
    plane.ellipse((0.48, 0.22), (0.03, 0.07), BLACK)
    plane.polygon([(0.34, 0.08), (-0.2, 0.5), (-0.4, 0.52), (-0.18, 0.08)], darken(look.accent, 0.14))
    plane.polygon([(0.34, 0.08), (-0.2, 0.5), (-0.26, 0.5), (0.16, 0.08)], lighten(look.accent, 0.4))
    blink = wave(phase) > 0
    plane.ellipse((-0.36, 0.5), (0.025, 0.025), (255, 80, 70) if blink else darken(look.accent, 0.4))


def draw_propeller_plane(brush: Brush, phase: float, look: Look) -> None:
    """Draw a biplane with an open seat."""
    plane = brush.moved((0.0, 0.04 * wave(phase)), degrees=-4 + 2 * wave(phase, 0.25))
    plane.limb([(0.2, 0.1), (0.16, 0.4)], [0.03, 0.03], METAL)
    plane.limb([(0.4, 0.1), (0.24, 0.4)], [0.03, 0.03], METAL)
    plane.ellipse((0.2, 0.42), (0.1, 0.1), BLACK)
    plane.ellipse((0.2, 0.42), (0.045, 0.045), METAL)
    plane.blob([(-0.74, 0.0), (-0.9, -0.34), (-1.06, -0.36), (-1.04, 0.02)], look.accent)
    body = [
        (0.72, 0.0),
        (0.66, -0.18),
        (0.3, -0.22),
        (-0.2, -0.16),
        (-0.8, -0.06),
        (-1.06, 0.0),
        (-0.8, 0.06),
        (-0.2, 0.18),
        (0.3, 0.22),
        (0.66, 0.18),
    ]
    plane.ellipse((-0.08, -0.26), (0.1, 0.11), (196, 140, 96))
    plane.blob(
        [(-0.19, -0.24), (-0.18, -0.36), (-0.06, -0.4), (0.03, -0.32), (-0.06, -0.3), (-0.12, -0.2)], (110, 70, 46)
    )
    plane.limb([(-0.14, -0.28), (0.0, -0.28)], [0.05, 0.06], GLASS)
    plane.ribbon(
        [(-0.14, -0.18), (-0.34, -0.22 + 0.03 * wave(2 * phase)), (-0.5, -0.2 - 0.03 * wave(2 * phase))],
        [0.07, 0.06, 0.05],
        look.accent,
    )
    _shaded(plane, body, look.main, look.shade, 0.04)
    plane.blob([(0.02, -0.2), (0.1, -0.34), (0.14, -0.34), (0.16, -0.2)], GLASS)
    plane.polygon([(-0.84, -0.02), (-1.14, 0.03), (-1.12, 0.07), (-0.8, 0.04)], look.accent)
    plane.ellipse((0.66, 0.0), (0.1, 0.19), METAL)
    plane.limb([(0.22, -0.52), (0.3, 0.14)], [0.022, 0.022], BASKET)
    plane.limb([(0.46, -0.52), (0.46, 0.14)], [0.022, 0.022], BASKET)
    plane.limb([(0.06, -0.54), (0.62, -0.54)], [0.075, 0.06], look.accent)
    plane.limb([(0.06, 0.14), (0.62, 0.14)], [0.08, 0.06], darken(look.accent, 0.1))
    plane.ellipse((0.8, 0.0), (0.05, 0.5), WHITE, 0.35)
    spin = wave(2 * phase)
    plane.limb([(0.8, -0.46 * spin), (0.8, 0.46 * spin)], [0.05, 0.05], BASKET)
    plane.ellipse((0.79, 0.0), (0.06, 0.06), look.accent)


def draw_helicopter(brush: Brush, phase: float, look: Look) -> None:
    """Draw a helicopter that hovers under its rotor."""
    craft = brush.moved((0.0, 0.03 * wave(phase)), degrees=3 + 2 * wave(phase, 0.25))
    craft.polygon([(-0.2, -0.12), (-1.2, -0.12), (-1.2, -0.04), (-0.2, 0.18)], look.main)
    craft.polygon([(-1.08, -0.06), (-1.36, -0.36), (-1.2, -0.36), (-1.0, -0.1)], look.shade)
    tail = craft.moved((-1.2, -0.12), degrees=720 * phase)
    craft.ellipse((-1.2, -0.12), (0.2, 0.2), WHITE, 0.3)
    tail.limb([(0, -0.19), (0, 0.19)], [0.03, 0.03], METAL)
    craft.limb([(0.0, -0.24), (0.0, -0.46)], [0.07, 0.05], METAL)
    body = [
        (0.66, 0.06),
        (0.48, -0.18),
        (0.16, -0.3),
        (-0.2, -0.26),
        (-0.4, -0.06),
        (-0.3, 0.2),
        (0.0, 0.3),
        (0.46, 0.26),
    ]
    _shaded(craft, body, look.main, look.accent, 0.12)
    craft.blob([(0.6, 0.04), (0.44, -0.16), (0.22, -0.22), (0.18, 0.06)], GLASS)
    craft.limb([(0.3, -0.18), (0.42, 0.0)], [0.04, 0.04], lighten(GLASS, 0.5))
    craft.polygon([(-0.08, -0.18), (0.1, -0.18), (0.1, 0.04), (-0.08, 0.04)], GLASS)
    for x in (-0.16, 0.3):
        craft.limb([(x, 0.26), (x, 0.4)], [0.03, 0.03], METAL)
    craft.ribbon([(-0.4, 0.41), (0.3, 0.41), (0.52, 0.34)], [0.04, 0.04, 0.03], METAL)
    craft.ellipse((0.0, -0.46), (1.0, 0.035), WHITE, 0.35)
    spin = wave(2 * phase, 0.06)
    craft.limb([(-0.98 * spin, -0.46), (0.98 * spin, -0.46)], [0.035, 0.035], darken(METAL, 0.4))
    craft.ellipse((0.0, -0.46), (0.06, 0.04), darken(METAL, 0.3))


def draw_hot_air_balloon(brush: Brush, phase: float, look: Look) -> None:
    """Draw a striped balloon with a basket and a flame."""
    craft = brush.moved((0.0, 0.01 * wave(phase)), degrees=2 * wave(phase, 0.2))
    for x in (-0.1, 0.1):
        craft.limb([(x * 1.3, 0.14), (x * 0.8, 0.36)], [0.008, 0.008], darken(BASKET, 0.4))
    flame = 0.05 + 0.02 * wave(3 * phase)
    craft.glow((0.0, 0.22), 0.16, (255, 200, 90), 0.8)
    craft.blob(
        [(-0.03, 0.27), (-0.015, 0.25 - flame), (0.0, 0.22 - flame), (0.015, 0.25 - flame), (0.03, 0.27)],
        (255, 176, 60),
    )
    half = [*arc((0.0, -0.5), (0.44, -0.5), (0.42, -0.14)), *arc((0.42, -0.14), (0.38, 0.04), (0.13, 0.18))]
    outline = half + [(-x, y) for x, y in reversed(half)]
    craft.polygon(outline, look.main)
    with craft.inside(outline, straight=True):
        for scale, paint in ((0.74, look.accent), (0.46, look.main), (0.17, look.accent)):
            craft.polygon([(x * scale, y) for x, y in outline], paint)
        craft.polygon([*arc((0.1, -0.5), (0.36, -0.2), (0.02, 0.2)), (0.6, 0.2), (0.6, -0.6)], BLACK, 0.1)
        craft.ellipse((-0.2, -0.3), (0.06, 0.13), WHITE, 0.35, degrees=24)
    craft.limb([(-0.13, 0.18), (0.13, 0.18)], [0.04, 0.04], look.shade)
    craft.polygon([(-0.1, 0.36), (0.1, 0.36), (0.085, 0.5), (-0.085, 0.5)], BASKET)
    craft.limb([(-0.105, 0.36), (0.105, 0.36)], [0.03, 0.03], darken(BASKET, 0.3))
    for y in (0.41, 0.46):
        craft.limb([(-0.085, y), (0.085, y)], [0.01, 0.01], darken(BASKET, 0.22))


def draw_airship(brush: Brush, phase: float, look: Look) -> None:
    """Draw a zeppelin."""
    craft = brush.moved((0.0, 0.02 * wave(phase)), degrees=-2 + wave(phase, 0.2))
    for points in (
        [(-0.8, -0.2), (-1.2, -0.52), (-1.34, -0.46), (-1.1, -0.02)],
        [(-0.8, 0.1), (-1.2, 0.36), (-1.34, 0.3), (-1.1, -0.08)],
    ):
        craft.blob(points, look.accent)
    craft.limb([(-0.1, 0.34), (0.44, 0.34)], [0.17, 0.17], darken(look.main, 0.45))
    for index in range(4):
        craft.ellipse((-0.1 + 0.16 * index, 0.345), (0.045, 0.04), (255, 236, 170))
    hull = [
        (1.2, -0.06),
        (0.9, -0.32),
        (0.3, -0.46),
        (-0.4, -0.4),
        (-1.0, -0.2),
        (-1.2, -0.08),
        (-1.0, 0.06),
        (-0.4, 0.24),
        (0.3, 0.3),
        (0.9, 0.18),
    ]
    craft.blob(hull, look.main)
    with craft.inside(hull):
        craft.blob([(-1.4, -0.04), (0.0, 0.06), (1.4, -0.06), (1.2, 0.5), (-1.2, 0.5)], look.shade)
        craft.blob([(-1.0, -0.3), (0.2, -0.38), (1.0, -0.26), (0.2, -0.3)], look.light)
        for x in (-0.6, 0.0, 0.6):
            craft.ribbon([(x, -0.6), (x + 0.06, -0.08), (x, 0.5)], [0.012, 0.012, 0.012], look.shade)
        craft.polygon([(-2, -0.14), (2, -0.14), (2, -0.03), (-2, -0.03)], look.accent)
    craft.polygon([(-0.86, -0.12), (-1.3, -0.14), (-1.34, -0.02), (-0.9, -0.04)], darken(look.accent, 0.2))
    spin = wave(2 * phase)
    craft.limb([(-0.26, 0.34 - 0.1 * spin), (-0.26, 0.34 + 0.1 * spin)], [0.03, 0.03], METAL)


def draw_kite(brush: Brush, phase: float, look: Look) -> None:
    """Draw a kite whose tail dances."""
    kite = brush.moved((0.1, -0.1), degrees=24 + 6 * wave(phase))
    tail: list[Point] = [(0.0 + 0.035 * wave(phase, -0.2 * index) * index, 0.3 + 0.14 * index) for index in range(6)]
    kite.ribbon(tail, [0.018] * 6, darken(look.accent, 0.2))
    for index, (x, y) in enumerate(tail[1:]):
        paint = look.main if index % 2 else look.accent
        kite.polygon([(x - 0.08, y - 0.05), (x, y), (x - 0.08, y + 0.05)], paint)
        kite.polygon([(x + 0.08, y - 0.05), (x, y), (x + 0.08, y + 0.05)], paint)
    kite.polygon([(0.0, -0.42), (0.3, -0.1), (0.0, 0.32), (-0.3, -0.1)], look.main)
    kite.polygon([(0.0, -0.42), (0.3, -0.1), (0.0, -0.1)], look.accent)
    kite.polygon([(0.0, 0.32), (-0.3, -0.1), (0.0, -0.1)], look.accent)
    kite.limb([(0.0, -0.42), (0.0, 0.32)], [0.014, 0.014], WHITE)
    kite.limb([(-0.3, -0.1), (0.3, -0.1)], [0.014, 0.014], WHITE)


def draw_paper_plane(brush: Brush, phase: float, look: Look) -> None:
    """Draw a folded dart that glides."""
    dart = brush.moved((0.0, 0.06 * wave(phase)), degrees=-10 + 8 * wave(phase, 0.25))
    dart.polygon([(0.9, -0.08), (-0.8, -0.5), (-0.42, -0.1)], lighten(look.main, 0.4))
    dart.polygon([(0.9, -0.08), (-0.42, -0.1), (-0.5, 0.34), (-0.18, 0.02)], darken(look.main, 0.32))
    dart.polygon([(0.9, -0.08), (-0.18, 0.02), (-0.5, 0.34), (-0.22, 0.16)], darken(look.main, 0.2))
    dart.polygon([(0.9, -0.08), (-0.72, 0.12), (-0.26, -0.02)], look.main)
    dart.polygon([(0.9, -0.08), (-0.26, -0.02), (-0.8, 0.16), (-0.2, 0.22)], darken(look.main, 0.08))


def draw_drone(brush: Brush, phase: float, look: Look) -> None:
    """Draw four rotors and a camera."""
    craft = brush.moved((0.0, 0.04 * wave(phase)), degrees=3 * wave(phase, 0.25))
    spin = wave(2 * phase)
    for x, y, dim in ((-0.62, -0.28, 0.3), (0.62, -0.28, 0.3), (-0.82, -0.14, 0.0), (0.82, -0.14, 0.0)):
        craft.limb([(0.0, 0.0), (x, y + 0.08)], [0.12, 0.07], darken(look.main, dim + 0.1))
        craft.limb([(x, y + 0.12), (x, y - 0.04)], [0.1, 0.07], darken(look.main, dim + 0.3))
        craft.ellipse((x, y - 0.07), (0.36, 0.045), WHITE, 0.4)
        craft.limb([(x - 0.35 * spin, y - 0.07), (x + 0.35 * spin, y - 0.07)], [0.03, 0.03], (70, 72, 84))
    craft.blob([(0.38, -0.02), (0.24, -0.17), (-0.24, -0.17), (-0.38, -0.02), (-0.24, 0.12), (0.24, 0.12)], look.main)
    craft.ellipse((-0.06, -0.1), (0.2, 0.035), look.light)
    craft.ribbon([(-0.34, 0.06), (-0.4, 0.26), (-0.46, 0.32)], [0.045, 0.04, 0.04], (70, 72, 84))
    craft.ribbon([(0.34, 0.06), (0.4, 0.26), (0.46, 0.32)], [0.045, 0.04, 0.04], (70, 72, 84))
    craft.ellipse((0.06, 0.17), (0.13, 0.12), (54, 56, 68))
    craft.ellipse((0.1, 0.17), (0.07, 0.07), GLASS)
    craft.ellipse((0.12, 0.15), (0.022, 0.022), WHITE)
    craft.ellipse((-0.3, -0.02), (0.03, 0.03), (120, 255, 140) if wave(phase) > 0 else (40, 110, 60))


def draw_parachutist(brush: Brush, phase: float, look: Look) -> None:
    """Draw a person under a striped parachute."""
    swing = brush.moved((0.0, -0.4), degrees=6 * wave(phase)).moved((0.0, 0.4))
    for x in (-0.42, -0.16, 0.16, 0.42):
        swing.limb([(x, -0.12), (0.0, 0.24)], [0.008, 0.008], (90, 90, 100))
    canopy = [
        *arc((-0.5, -0.1), (-0.44, -0.52), (0.0, -0.52)),
        *arc((0.0, -0.52), (0.44, -0.52), (0.5, -0.1)),
        *arc((0.5, -0.1), (0.4, -0.2), (0.25, -0.1)),
        *arc((0.25, -0.1), (0.13, -0.2), (0.0, -0.1)),
        *arc((0.0, -0.1), (-0.13, -0.2), (-0.25, -0.1)),
        *arc((-0.25, -0.1), (-0.4, -0.2), (-0.5, -0.1)),
    ]
    swing.polygon(canopy, look.main)
    with swing.inside(canopy, straight=True):
        swing.polygon(
            [*arc((0.0, -0.54), (-0.26, -0.46), (-0.26, 0.0)), *arc((0.0, 0.0), (0.0, -0.3), (0.0, -0.54))], look.accent
        )
        swing.polygon(
            [*arc((0.0, -0.54), (0.5, -0.52), (0.5, 0.0)), (0.26, 0.0), *arc((0.26, 0.0), (0.26, -0.46), (0.0, -0.54))],
            look.accent,
        )
    kick = 0.03 * wave(phase, 0.25)
    for x, paint in ((-0.03 - kick, darken(look.shade, 0.3)), (0.03 + kick, look.shade)):
        swing.ribbon([(0.0, 0.34), (x, 0.42), (x * 1.6, 0.5)], [0.07, 0.055, 0.05], paint)
    for side in (-1, 1):
        swing.ribbon([(0.0, 0.25), (0.07 * side, 0.22), (0.06 * side, 0.14)], [0.05, 0.045, 0.035], look.shade)
    swing.limb([(0.0, 0.24), (0.0, 0.36)], [0.11, 0.09], look.shade)
    swing.ellipse((0.0, 0.15), (0.052, 0.058), look.skin)
    swing.blob([(-0.06, 0.15), (-0.05, 0.08), (0.0, 0.07), (0.05, 0.08), (0.06, 0.15), (0.0, 0.12)], look.accent)


def _craft(
    draw: Draw, motion: Motion, size: float, stride: float, box: Box, look: Look, *words: str, is_person: bool = False
) -> Subject:
    return subject_of(draw, Habitat.AIR, motion, size, stride, box, look, *words, is_person=is_person)


AIRCRAFT = (
    _craft(
        draw_aeroplane,
        Motion.FLY,
        0.22,
        1.6,
        (-1.5, -0.75, 1.4, 0.72),
        Look((44, 110, 190), (246, 248, 252)),
        "aeroplane",
        "airplane",
        "plane",
        "jet",
        "airliner",
        "aircraft/",
        "fighter jet",
    ),
    _craft(
        draw_propeller_plane,
        Motion.FLY,
        0.24,
        1.4,
        (-1.25, -0.75, 1.0, 0.65),
        Look((222, 66, 54), (250, 214, 110)),
        "propeller plane",
        "biplane",
        "seaplane",
        "glider",
    ),
    _craft(
        draw_helicopter,
        Motion.HOVER,
        0.24,
        1.0,
        (-1.55, -0.65, 1.15, 0.58),
        Look((228, 76, 60), (250, 236, 214)),
        "helicopter",
        "chopper",
    ),
    _craft(
        draw_hot_air_balloon,
        Motion.DRIFT,
        0.42,
        0.15,
        (-0.48, -0.58, 0.48, 0.58),
        Look((230, 72, 62), (252, 214, 108)),
        "hot-air balloon",
        "hot air balloon",
        "air balloon",
    ),
    _craft(
        draw_airship,
        Motion.DRIFT,
        0.26,
        0.4,
        (-1.5, -0.68, 1.32, 0.55),
        Look((222, 214, 200), (190, 70, 62)),
        "airship",
        "zeppelin",
        "blimp",
    ),
    _craft(
        draw_kite,
        Motion.DRIFT,
        0.3,
        0.1,
        (-0.85, -0.65, 0.7, 0.98),
        Look((236, 84, 70), (252, 208, 84)),
        "kite",
        "paper kite",
    ),
    _craft(
        draw_paper_plane,
        Motion.FLY,
        0.16,
        1.2,
        (-1.0, -0.75, 1.02, 0.6),
        Look((246, 248, 252)),
        "paper plane",
        "paper airplane",
        "paper aeroplane",
    ),
    _craft(draw_drone, Motion.HOVER, 0.14, 0.8, (-1.25, -0.5, 1.25, 0.5), Look((226, 230, 238)), "drone", "quadcopter"),
    _craft(
        draw_parachutist,
        Motion.DRIFT,
        0.36,
        0.1,
        (-0.62, -0.6, 0.62, 0.6),
        Look((234, 92, 64), (250, 244, 230)),
        "parachutist",
        "skydiver",
        "paraglider",
        "parachute",
        is_person=True,
    ),
)
