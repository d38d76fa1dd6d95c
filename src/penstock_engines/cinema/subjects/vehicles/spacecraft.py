"""Spacecraft and others in space: rockets, satellites, astronauts, visitors."""

from penstock_engines.cinema.paint.brush import Brush, Colour, arc
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, lighten, subject_of

METAL: Colour = (190, 196, 210)
PANEL: Colour = (44, 72, 150)
GOLD: Colour = (244, 190, 84)


def draw_rocket(brush: Brush, phase: float, look: Look) -> None:
    """Draw a rocket that flies upward to the right on its flame."""
    rocket = brush.moved((0.008 * wave(3 * phase), 0.0), degrees=24)
    flicker = 0.05 * wave(3 * phase) + 0.02 * wave(5 * phase)
    rocket.glow((0.0, 0.42), 0.34, (255, 170, 60), 0.7)
    for wide, long, paint in (
        (0.11, 0.36, (250, 110, 40)),
        (0.08, 0.27, (255, 180, 50)),
        (0.045, 0.17, (255, 240, 170)),
    ):
        rocket.polygon(
            [
                *arc((-wide, 0.3), (-wide * 1.3, 0.3 + long * 0.5), (0.0, 0.3 + long + flicker)),
                *arc((0.0, 0.3 + long + flicker), (wide * 1.3, 0.3 + long * 0.5), (wide, 0.3)),
            ],
            paint,
        )
    for side in (-1, 1):
        half = rocket.moved(scale=(side, 1.0))
        half.polygon(
            [
                (0.12, 0.04),
                *arc((0.12, 0.04), (0.29, 0.14), (0.27, 0.38)),
                *arc((0.27, 0.38), (0.2, 0.26), (0.1, 0.28)),
            ],
            look.main if side < 0 else look.shade,
        )
    rocket.polygon([(-0.09, 0.26), (0.09, 0.26), (0.07, 0.33), (-0.07, 0.33)], (90, 94, 108))
    half_hull = [*arc((0.0, -0.5), (0.16, -0.34), (0.165, -0.04)), *arc((0.165, -0.04), (0.16, 0.16), (0.1, 0.28))]
    hull = half_hull + [(-x, y) for x, y in reversed(half_hull)]
    rocket.polygon(hull, look.accent)
    with rocket.inside(hull, straight=True):
        rocket.polygon([(-0.3, -0.6), (0.3, -0.6), (0.3, -0.27), (-0.3, -0.27)], look.main)
        rocket.polygon([(-0.3, 0.18), (0.3, 0.18), (0.3, 0.24), (-0.3, 0.24)], look.main)
        rocket.polygon([*arc((0.02, -0.52), (0.12, -0.1), (0.05, 0.3)), (0.3, 0.3), (0.3, -0.52)], BLACK, 0.13)
    rocket.ellipse((0.0, -0.1), (0.09, 0.09), look.shade)
    rocket.ellipse((0.0, -0.1), (0.065, 0.065), (130, 206, 240))
    rocket.ellipse((-0.022, -0.122), (0.022, 0.018), WHITE)
    rocket.limb([(0.0, 0.14), (0.0, 0.36)], [0.04, 0.03], look.main)


def draw_space_station(brush: Brush, phase: float, look: Look) -> None:
    """Draw modules on a long truss between great panels."""
    craft = brush.moved(degrees=-8 + 2 * wave(phase))
    craft.limb([(-1.2, 0.0), (1.2, 0.0)], [0.06, 0.06], METAL)
    for x in (-1.1, -0.78, 0.78, 1.1):
        for side in (-1, 1):
            tilt = craft.moved((x, 0.0), scale=(1.0, side))
            tilt.polygon([(-0.12, 0.06), (0.12, 0.06), (0.12, 0.48), (-0.12, 0.48)], GOLD)
            for row in range(4):
                for column in (-0.1, 0.01):
                    y = 0.08 + 0.1 * row
                    tilt.polygon(
                        [(column, y), (column + 0.09, y), (column + 0.09, y + 0.085), (column, y + 0.085)],
                        lighten(PANEL, 0.12 + 0.1 * wave(phase, x)),
                    )
    for start, end, wide in (((-0.5, 0.0), (0.5, 0.0), 0.24), ((0.0, -0.4), (0.0, 0.34), 0.2)):
        craft.limb([start, end], [wide, wide], look.main)
    craft.limb([(-0.5, 0.08), (0.5, 0.08)], [0.08, 0.08], look.shade)
    for x in (-0.36, 0.34):
        craft.limb([(x, -0.12), (x, 0.12)], [0.03, 0.03], look.shade)
    for x, y in ((-0.22, 0.0), (0.22, 0.0), (0.0, -0.3), (0.0, 0.2)):
        craft.ellipse((x, y), (0.045, 0.045), (150, 214, 246))
    craft.ellipse((0.0, -0.44), (0.14, 0.05), METAL)
    craft.ellipse((0.5, 0.0), (0.04, 0.1), look.shade)
    craft.ellipse((0.0, 0.4), (0.022, 0.022), (255, 80, 70) if wave(phase) > 0 else (130, 40, 40))


def draw_astronaut(brush: Brush, phase: float, look: Look) -> None:
    """Draw an untethered astronaut who floats and waves."""
    body = brush.moved((0.0, 0.02 * wave(phase)), degrees=-8 + 6 * wave(phase, 0.2))
    suit, shade = look.main, darken(look.main, 0.22)
    body.blob([(-0.24, -0.2), (-0.12, -0.24), (-0.12, 0.14), (-0.25, 0.12), (-0.28, -0.04)], darken(look.main, 0.4))
    kick = 0.04 * wave(phase, 0.4)
    body.ribbon([(0.06, 0.12), (0.12 + kick, 0.28), (0.06 + kick, 0.44)], [0.17, 0.15, 0.13], shade)
    body.ellipse((0.08 + kick, 0.45), (0.09, 0.06), darken(shade, 0.3))
    body.ribbon([(-0.06, 0.12), (-0.12 - kick, 0.28), (-0.2 - kick, 0.4)], [0.18, 0.16, 0.14], suit)
    body.ellipse((-0.2 - kick, 0.42), (0.095, 0.065), shade)
    body.ribbon([(0.12, -0.12), (0.3, -0.14), (0.4, -0.3 - 0.05 * wave(2 * phase))], [0.14, 0.12, 0.1], shade)
    body.ellipse((0.41, -0.33 - 0.05 * wave(2 * phase)), (0.06, 0.06), look.accent)
    body.blob([(-0.15, -0.2), (0.15, -0.2), (0.18, -0.02), (0.13, 0.17), (-0.13, 0.17), (-0.18, -0.02)], suit)
    body.polygon([(-0.02, -0.06), (0.12, -0.06), (0.12, 0.05), (-0.02, 0.05)], shade)
    for x, paint in ((0.01, (232, 76, 64)), (0.05, (90, 190, 110)), (0.09, (80, 140, 220))):
        body.ellipse((x, -0.005), (0.015, 0.015), paint)
    body.limb([(-0.15, 0.1), (0.15, 0.1)], [0.03, 0.03], look.accent)
    body.ribbon([(-0.13, -0.12), (-0.28, 0.0), (-0.36, 0.12 + kick)], [0.14, 0.12, 0.1], suit)
    body.ellipse((-0.37, 0.14 + kick), (0.06, 0.06), look.accent)
    body.ellipse((0.0, -0.33), (0.2, 0.19), suit)
    body.blob(
        [(-0.08, -0.42), (0.08, -0.45), (0.18, -0.36), (0.16, -0.24), (0.04, -0.2), (-0.09, -0.25)], (52, 66, 110)
    )
    body.blob([(-0.05, -0.4), (0.06, -0.425), (0.11, -0.38), (0.0, -0.34)], (130, 170, 230))
    body.ellipse((-0.15, -0.32), (0.035, 0.06), look.accent)


def draw_alien(brush: Brush, phase: float, look: Look) -> None:
    """Draw a green alien with great eyes who waves."""
    body = brush.moved(degrees=3 * wave(phase))
    for side in (-1, 1):
        brush.limb([(0.07 * side, -0.2), (0.08 * side, -0.03)], [0.09, 0.075], look.shade)
        brush.ellipse((0.1 * side, -0.025), (0.08, 0.03), look.shade)
        body.ribbon(
            [
                (0.1 * side, -0.4),
                (0.24 * side, -0.36),
                ((0.3 + 0.03 * wave(2 * phase)) * side, -0.52 if side > 0 else -0.22),
            ],
            [0.07, 0.06, 0.05],
            look.main,
        )
        tip = (0.16 * side + 0.02 * wave(phase, 0.2), -0.98)
        body.ribbon([(0.08 * side, -0.8), (0.12 * side, -0.9), tip], [0.022, 0.02, 0.018], look.shade)
        body.ellipse(tip, (0.035, 0.035), look.accent)
    body.blob([(-0.1, -0.46), (0.1, -0.46), (0.15, -0.3), (0.1, -0.15), (-0.1, -0.15), (-0.15, -0.3)], look.main)
    body.ellipse((0.0, -0.28), (0.075, 0.1), look.light)
    body.blob(
        [
            (0.0, -0.88),
            (0.2, -0.82),
            (0.28, -0.66),
            (0.18, -0.5),
            (0.0, -0.43),
            (-0.18, -0.5),
            (-0.28, -0.66),
            (-0.2, -0.82),
        ],
        look.main,
    )
    for side in (-1, 1):
        body.ellipse((0.11 * side + 0.02, -0.65), (0.075, 0.105), BLACK, degrees=-20.0 * side)
        body.ellipse((0.11 * side + 0.045, -0.69), (0.024, 0.03), WHITE)
    body.ribbon([(-0.04, -0.5), (0.02, -0.485), (0.08, -0.505)], [0.008, 0.018, 0.008], look.shade)


SPACECRAFT = (
    subject_of(
        draw_rocket,
        Habitat.SPACE,
        Motion.CLIMB,
        0.36,
        1.4,
        (-0.55, -0.6, 0.45, 0.85),
        Look((226, 70, 62), (246, 246, 250)),
        "rocket",
        "spaceship",
        "spacecraft/",
        "space shuttle",
        "starship",
        "missile",
    ),
    subject_of(
        draw_space_station,
        Habitat.SPACE,
        Motion.DRIFT,
        0.34,
        0.2,
        (-1.4, -0.75, 1.4, 0.75),
        Look((232, 236, 242)),
        "space station",
        "orbital station",
    ),
    subject_of(
        draw_astronaut,
        Habitat.SPACE,
        Motion.DRIFT,
        0.34,
        0.2,
        (-0.62, -0.68, 0.62, 0.66),
        Look((240, 242, 248), (240, 140, 60)),
        "astronaut",
        "cosmonaut",
        "spaceman/spacemen",
        "spacewalker",
        is_person=True,
    ),
    subject_of(
        draw_alien,
        Habitat.FIXED,
        Motion.STAND,
        0.3,
        0.0,
        (-0.5, -1.12, 0.5, 0.05),
        Look((120, 200, 100), (250, 210, 80)),
        "alien",
        "extraterrestrial",
        "martian",
    ),
)
