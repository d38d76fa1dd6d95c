"""People who glide on a board, on skis or on a sled."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point
from penstock_engines.cinema.subjects.gait import fade, knee, wave
from penstock_engines.cinema.subjects.people.riders import draw_profile, riding
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken

TYRE: Colour = (48, 46, 54)


STEEL: Colour = (176, 182, 194)


WOOD: Colour = (150, 98, 58)


def _figure(
    brush: Brush,
    look: Look,
    *,
    hip: Point,
    feet: tuple[Point, Point],
    shoulder: Point,
    hands: tuple[Point, Point],
    cover: Colour | None = None,
) -> None:
    """Draw a person in any pose: far limbs, trunk, head, near limbs."""
    for index, forward in ((0, True), (1, True)):
        paint = darken(look.accent, 0.35) if index == 0 else look.accent
        foot = feet[index]
        bend = knee(hip, foot, 0.2, 0.2, forward=forward)
        brush.ribbon([hip, bend, foot], [0.12, 0.095, 0.07], paint)
        brush.limb([(foot[0] - 0.03, foot[1] + 0.015), (foot[0] + 0.08, foot[1] + 0.02)], [0.06, 0.045], BLACK)
    for index in (0, 1):
        hand = hands[index]
        bend = knee(shoulder, hand, 0.15, 0.15, forward=False)
        paint = darken(look.main, 0.3) if index == 0 else look.light
        if index == 1:
            brush.ribbon(
                [hip, ((hip[0] + shoulder[0]) / 2 - 0.01, (hip[1] + shoulder[1]) / 2), shoulder],
                [0.14, 0.17, 0.15],
                look.main,
            )
            draw_profile(brush, (shoulder[0] + 0.05, shoulder[1] - 0.14), 0.095, look, cover)
        brush.ribbon([shoulder, bend, hand], [0.08, 0.07, 0.05], paint)
        brush.ellipse(hand, (0.03, 0.03), look.skin)


def draw_skateboarder(brush: Brush, phase: float, look: Look) -> None:
    """Draw a skateboarder who rolls with bent knees."""
    dip = 0.025 * wave(phase)
    for x in (-0.2, 0.2):
        wheel = brush.moved((x, -0.04), degrees=720 * phase)
        wheel.ellipse((0, 0), (0.04, 0.04), (250, 240, 220))
        wheel.limb([(-0.03, 0), (0.03, 0)], [0.012, 0.012], TYRE)
    brush.ribbon(
        [(-0.36, -0.14), (-0.26, -0.095), (0.26, -0.095), (0.37, -0.15)], [0.03, 0.035, 0.035, 0.03], (226, 76, 62)
    )
    _figure(
        brush,
        look,
        hip=(-0.04, -0.42 + dip),
        feet=((0.2, -0.15), (-0.18, -0.15)),
        shoulder=(0.04, -0.7 + dip),
        hands=((0.3, -0.62 - dip), (-0.22, -0.6 + 2 * dip)),
        cover=(60, 130, 190),
    )


def draw_skier(brush: Brush, phase: float, look: Look) -> None:
    """Draw a skier who glides with poles and throws up snow."""
    dip = 0.025 * wave(phase)
    for index in range(5):
        drift = (phase + index / 5) % 1.0
        brush.ellipse(
            (-0.3 - 0.4 * drift, -0.04 - 0.12 * wave(drift / 2)),
            (0.03 + 0.05 * drift, 0.03 + 0.03 * drift),
            WHITE,
            0.9 * fade(drift),
        )
    for x, paint in ((0.05, darken(look.main, 0.4)), (0.0, (250, 190, 60))):
        brush.ribbon([(-0.5 + x, -0.02), (0.4 + x, -0.02), (0.56 + x, -0.09)], [0.025, 0.028, 0.02], paint)
    brush.limb([(0.28, -0.52 - dip), (-0.12, -0.1 - dip)], [0.016, 0.014], STEEL)
    _figure(
        brush,
        look,
        hip=(-0.1, -0.42 + dip),
        feet=((0.08, -0.07), (0.0, -0.07)),
        shoulder=(0.08, -0.68 + dip),
        hands=((0.28, -0.54 - dip), (0.2, -0.48 - dip)),
        cover=(226, 70, 66),
    )
    brush.limb([(0.2, -0.5 - dip), (-0.22, -0.06 - dip)], [0.018, 0.014], STEEL)
    brush.limb([(0.1, -0.83 + dip), (0.21, -0.83 + dip)], [0.05, 0.045], (60, 60, 76))


def draw_sled(brush: Brush, phase: float, look: Look) -> None:
    """Draw a child on a wooden sled."""
    body = brush.moved((0.0, 0.012 * wave(phase)), degrees=2 * wave(phase, 0.2))
    for index in range(4):
        drift = (phase + index / 4) % 1.0
        brush.ellipse(
            (-0.46 - 0.4 * drift, -0.03 - 0.1 * wave(drift / 2)),
            (0.03 + 0.05 * drift, 0.03 + 0.03 * drift),
            WHITE,
            0.9 * fade(drift),
        )
    body.ribbon([(-0.5, -0.02), (0.44, -0.02), (0.62, -0.1), (0.62, -0.24), (0.52, -0.26)], [0.035] * 5, (200, 60, 54))
    for x in (-0.36, 0.3):
        body.limb([(x, -0.02), (x, -0.16)], [0.03, 0.03], WOOD)
    body.limb([(-0.5, -0.17), (0.44, -0.17)], [0.06, 0.06], WOOD)
    body.ribbon([(-0.18, -0.26), (0.16, -0.36), (0.4, -0.24)], [0.2, 0.15, 0.12], look.accent)
    body.limb([(0.4, -0.26), (0.44, -0.36)], [0.12, 0.09], BLACK)
    body.ribbon([(-0.18, -0.28), (-0.2, -0.46), (-0.14, -0.62)], [0.24, 0.27, 0.2], look.main)
    draw_profile(body, (-0.08, -0.78), 0.155, look, (60, 130, 190))
    body.ellipse((-0.12, -0.97), (0.055, 0.055), WHITE)
    flow = 0.03 * wave(2 * phase)
    body.ribbon([(-0.16, -0.62), (-0.36, -0.64 + flow), (-0.56, -0.6 - flow)], [0.08, 0.07, 0.06], (250, 200, 70))
    body.ribbon([(-0.12, -0.56), (0.04, -0.42), (0.24, -0.44)], [0.11, 0.1, 0.08], look.light)
    body.ribbon([(0.24, -0.44), (0.42, -0.34), (0.56, -0.25)], [0.014, 0.014, 0.014], WOOD)


GLIDERS = (
    riding(
        draw_skateboarder,
        Habitat.ROAD,
        Motion.DRIVE,
        0.32,
        0.8,
        (-0.55, -1.02, 0.55, 0.05),
        Look((250, 180, 70), (70, 84, 120)),
        "skateboarder",
        "skater",
        "skateboard",
        "rollerskater",
    ),
    riding(
        draw_skier,
        Habitat.GROUND,
        Motion.DRIVE,
        0.32,
        1.0,
        (-0.85, -1.02, 0.75, 0.05),
        Look((60, 130, 200), (50, 56, 80)),
        "skier",
        "snowboarder",
        "snowboard",
    ),
    riding(
        draw_sled,
        Habitat.GROUND,
        Motion.DRIVE,
        0.22,
        1.0,
        (-1.0, -1.12, 0.75, 0.05),
        Look((220, 80, 90), (70, 84, 120)),
        "sled",
        "sledge",
        "toboggan",
        "child on a sled/",
    ),
)
