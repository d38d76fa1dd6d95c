"""Figures that look like people, such as robots, snowmen, ghosts and monsters, and divers."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc
from penstock_engines.cinema.subjects.gait import fade, knee, step, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, subject_of

COAL: Colour = (44, 42, 50)
CARROT: Colour = (244, 132, 44)
GLOW: Colour = (110, 236, 250)


def _robot_leg(brush: Brush, phase: float, hip: Point, main: Colour, joint: Colour) -> None:
    x, y = step(phase, 0.24, 0.07)
    ahead = hip[0] + x
    foot = (ahead, y - 0.05)
    bend = knee(hip, foot, 0.135, 0.135, forward=True)
    brush.limb([hip, bend, foot], [0.07, 0.065, 0.065], joint)
    brush.ellipse(bend, (0.05, 0.05), darken(main, 0.1))
    sole = [(-0.09, 0.0), (-0.08, -0.08), (0.06, -0.09), (0.14, -0.03), (0.13, 0.0)]
    brush.blob([(ahead + along, y + up) for along, up in sole], main)


def draw_robot(brush: Brush, phase: float, look: Look) -> None:
    """Draw a friendly robot that walks stiffly."""
    joint, far = darken(look.main, 0.5), darken(look.main, 0.35)
    _robot_leg(brush, phase + 0.5, (0.05, -0.3), far, darken(joint, 0.25))
    _robot_leg(brush, phase, (-0.05, -0.3), look.main, joint)
    body = brush.moved((0.0, 0.012 * wave(2 * phase)), degrees=1.5 * wave(phase))
    swing = 24 * wave(phase, 0.25)
    body.moved((0.06, -0.53), degrees=-swing).limb([(0.0, 0.0), (0.02, 0.16), (0.1, 0.26)], [0.07, 0.06, 0.06], far)
    body.blob([(-0.2, -0.58), (0.2, -0.58), (0.23, -0.44), (0.18, -0.27), (-0.18, -0.27), (-0.23, -0.44)], look.main)
    body.blob([(-0.2, -0.58), (-0.1, -0.58), (-0.1, -0.28), (-0.18, -0.27), (-0.23, -0.44)], look.shade)
    body.polygon([(-0.04, -0.5), (0.15, -0.5), (0.15, -0.36), (-0.04, -0.36)], joint)
    for index in range(3):
        lit = (phase * 3 + index) % 3 < 1.5
        body.ellipse((0.01 + 0.05 * index, -0.46), (0.018, 0.018), look.accent if lit else darken(look.accent, 0.5))
    body.limb([(0.0, -0.4), (0.11, -0.4)], [0.025, 0.025], GLOW)
    body.limb([(0.0, -0.58), (0.0, -0.64)], [0.1, 0.1], joint)
    body.limb([(0.0, -0.88), (0.0, -0.97)], [0.022, 0.018], joint)
    body.ellipse((0.0, -0.98), (0.032, 0.032), look.accent if wave(phase) > 0 else darken(look.accent, 0.4))
    head = [(-0.2, -0.87), (0.2, -0.87), (0.24, -0.75), (0.2, -0.63), (-0.2, -0.63), (-0.24, -0.75)]
    body.blob(head, look.main)
    body.ellipse((-0.22, -0.75), (0.035, 0.06), joint)
    body.blob([(-0.06, -0.83), (0.17, -0.83), (0.2, -0.75), (0.17, -0.67), (-0.06, -0.67), (-0.1, -0.75)], (40, 46, 66))
    for x in (0.0, 0.12):
        body.ellipse((x, -0.76), (0.032, 0.036), GLOW)
        body.ellipse((x + 0.01, -0.775), (0.011, 0.011), WHITE)
    body.ribbon([(0.02, -0.705), (0.07, -0.69), (0.12, -0.705)], [0.008, 0.016, 0.008], GLOW)
    near = body.moved((-0.02, -0.53), degrees=swing)
    near.ellipse((0.0, 0.0), (0.065, 0.065), look.shade)
    near.limb([(0.0, 0.0), (0.0, 0.15), (0.08, 0.26)], [0.07, 0.065, 0.065], look.light)
    near.ellipse((0.1, 0.28), (0.055, 0.055), joint)
    near.limb([(0.1, 0.28), (0.18, 0.27)], [0.035, 0.02], joint)
    near.limb([(0.1, 0.28), (0.15, 0.35)], [0.035, 0.02], joint)


def draw_snowman(brush: Brush, phase: float, look: Look) -> None:
    """Draw three balls, a hat, a scarf and a carrot."""
    snow, shade = look.main, darken(look.main, 0.16)
    for y, size in ((-0.22, 0.25), (-0.52, 0.18)):
        brush.ellipse((0.0, y), (size, size * 0.92), shade)
        brush.ellipse((0.03, y - size * 0.1), (size * 0.92, size * 0.8), snow)
    sway = 4 * wave(phase)
    for side in (-1, 1):
        arm = brush.moved((0.15 * side, -0.56), degrees=sway * side)
        arm.limb([(0.0, 0.0), (0.2 * side, -0.1)], [0.024, 0.016], (110, 74, 48))
        for end in ((0.25, -0.18), (0.27, -0.1)):
            arm.limb([(0.17 * side, -0.085), (end[0] * side, end[1])], [0.016, 0.01], (110, 74, 48))
    for y in (-0.57, -0.49, -0.28):
        brush.ellipse((0.05, y), (0.02, 0.02), COAL)
    head = brush.moved((0.0, -0.66), degrees=3 * wave(phase)).moved((0.0, 0.66))
    head.ellipse((0.0, -0.77), (0.14, 0.13), shade)
    head.ellipse((0.02, -0.78), (0.125, 0.115), snow)
    head.limb([(-0.12, -0.675), (0.0, -0.65), (0.12, -0.675)], [0.06, 0.065, 0.06], look.accent)
    head.ribbon(
        [(-0.08, -0.66), (-0.15, -0.56), (-0.14 + 0.02 * wave(2 * phase), -0.46)],
        [0.06, 0.06, 0.07],
        darken(look.accent, 0.15),
    )
    for x in (-0.02, 0.075):
        head.ellipse((x, -0.81), (0.017, 0.02), COAL)
    head.polygon([(0.03, -0.79), (0.2, -0.765), (0.03, -0.745)], CARROT)
    for x, y in ((-0.03, -0.735), (0.0, -0.715), (0.04, -0.71), (0.08, -0.72)):
        head.ellipse((x, y), (0.009, 0.009), COAL)
    head.polygon([(-0.1, -0.88), (-0.09, -1.02), (0.11, -1.02), (0.12, -0.88)], COAL)
    head.limb([(-0.1, -0.9), (0.12, -0.9)], [0.035, 0.035], look.accent)
    head.limb([(-0.17, -0.875), (0.19, -0.875)], [0.03, 0.03], COAL)


def draw_ghost(brush: Brush, phase: float, look: Look) -> None:
    """Draw a ghost that floats and flutters."""
    body = brush.moved((0.0, 0.04 * wave(phase)))
    brush.glow((0.0, 0.0), 0.62, look.main, 0.3)
    hem = [
        (0.36 - 0.12 * index, 0.42 + 0.07 * (1 if index % 2 else -1) + 0.03 * wave(phase, 0.15 * index))
        for index in range(7)
    ]
    body.blob(
        [(0.0, -0.5), (0.2, -0.44), (0.32, -0.22), (0.34, 0.1), *hem, (-0.34, 0.1), (-0.32, -0.22), (-0.2, -0.44)],
        look.main,
        0.94,
    )
    body.blob([(-0.2, -0.42), (-0.08, -0.2), (-0.12, 0.2), (-0.2, 0.36), (-0.34, 0.2), (-0.32, -0.2)], look.shade, 0.3)
    for side in (-1, 1):
        arm = body.moved((0.28 * side, 0.0), degrees=(14 * wave(phase, 0.2) - 10) * side)
        arm.ribbon([(0.0, 0.0), (0.12 * side, -0.02), (0.2 * side, -0.1)], [0.16, 0.13, 0.07], look.main)
    for x in (-0.04, 0.14):
        body.ellipse((x, -0.2), (0.05, 0.075), BLACK)
        body.ellipse((x + 0.015, -0.23), (0.017, 0.022), WHITE)
    body.ellipse((0.05, -0.04), (0.055, 0.07 + 0.015 * wave(phase)), BLACK)
    for x in (-0.14, 0.24):
        body.ellipse((x, -0.1), (0.05, 0.03), look.accent, 0.6)


def draw_monster(brush: Brush, phase: float, look: Look) -> None:
    """Draw a furry, horned, one-eyed and kind monster."""
    for shift, paint in ((0.5, look.shade), (0.0, look.main)):
        x, y = step(phase + shift, 0.2, 0.07)
        brush.limb([(x * 0.4 + 0.06, -0.2), (x + 0.06, y - 0.04)], [0.16, 0.13], paint)
        brush.ellipse((x + 0.1, y - 0.035), (0.13, 0.045), darken(paint, 0.2))
    body = brush.moved((0.0, 0.015 * wave(2 * phase)), degrees=3 * wave(phase))
    body.ribbon([(0.2, -0.5), (0.36, -0.42), (0.42, -0.26 - 0.05 * wave(phase))], [0.12, 0.1, 0.09], look.shade)
    for side in (-1, 1):
        body.ribbon(
            [(0.14 * side, -0.82), (0.24 * side, -0.9), (0.2 * side, -1.0)], [0.1, 0.08, 0.015], (246, 226, 180)
        )
    fur = [(index / 22, 1.0 if index % 2 else 0.93) for index in range(22)]
    edge = [(0.34 * reach * wave(turn), -0.5 - 0.4 * reach * wave(turn, 0.25)) for turn, reach in fur]
    body.blob(edge, look.main)
    body.ellipse((0.05, -0.34), (0.2, 0.2), look.light)
    body.ellipse((0.06, -0.64), (0.15, 0.15), WHITE)
    body.ellipse((0.1, -0.63), (0.08, 0.08), look.accent)
    body.ellipse((0.11, -0.63), (0.045, 0.045), BLACK)
    body.ellipse((0.13, -0.66), (0.017, 0.017), WHITE)
    body.blob([(-0.1, -0.43), (0.06, -0.41), (0.22, -0.44), (0.16, -0.34), (0.05, -0.31), (-0.06, -0.35)], (70, 30, 50))
    for x in (-0.03, 0.06, 0.15):
        body.polygon([(x - 0.03, -0.425), (x + 0.03, -0.425), (x, -0.375)], WHITE)
    body.ribbon([(-0.24, -0.5), (-0.4, -0.42), (-0.44, -0.24 + 0.05 * wave(phase))], [0.13, 0.11, 0.1], look.main)


def draw_diver(brush: Brush, phase: float, look: Look) -> None:
    """Draw a diver who swims with fins, mask and air bottle."""
    kick = wave(phase)
    for side, paint in ((-1, darken(look.main, 0.35)), (1, look.main)):
        drop = 0.12 * kick * side
        brush.ribbon([(-0.2, 0.04), (-0.48, 0.06 + drop * 0.5), (-0.74, 0.05 + drop)], [0.16, 0.12, 0.08], paint)
        brush.moved((-0.74, 0.05 + drop), degrees=60 * drop).blob(
            [(0.06, -0.04), (-0.16, -0.07), (-0.34, 0.0), (-0.32, 0.06), (0.06, 0.04)],
            darken(look.accent, 0.3) if side < 0 else look.accent,
        )
    brush.ribbon([(0.2, 0.04), (0.4, 0.16), (0.62, 0.14)], [0.11, 0.09, 0.07], darken(look.main, 0.35))
    brush.limb([(-0.16, -0.14), (0.2, -0.17)], [0.14, 0.14], look.accent)
    brush.limb([(0.2, -0.17), (0.28, -0.18)], [0.06, 0.05], (120, 124, 134))
    brush.ribbon([(0.3, -0.02), (0.04, 0.0), (-0.22, 0.04)], [0.22, 0.24, 0.2], look.main)
    brush.limb([(0.0, -0.1), (0.04, 0.1)], [0.03, 0.03], look.shade)
    brush.ribbon([(0.26, -0.18), (0.36, -0.3), (0.52, -0.1)], [0.025, 0.025, 0.025], COAL)
    brush.ellipse((0.44, -0.07), (0.13, 0.14), look.skin)
    brush.blob([(0.3, 0.04), (0.3, -0.16), (0.42, -0.23), (0.54, -0.19), (0.4, -0.12), (0.38, 0.06)], look.main)
    brush.blob([(0.44, -0.13), (0.58, -0.13), (0.6, -0.05), (0.56, -0.02), (0.44, -0.03)], (150, 226, 246))
    brush.limb([(0.34, -0.08), (0.44, -0.08)], [0.03, 0.03], COAL)
    brush.ellipse((0.56, 0.02), (0.04, 0.035), COAL)
    brush.ribbon([(0.22, 0.06), (0.34, 0.24), (0.58, 0.26)], [0.12, 0.1, 0.07], look.main)
    for index in range(4):
        rise = (phase + index / 4) % 1.0
        brush.ellipse(
            (0.6 - 0.06 * rise + 0.03 * wave(rise), -0.06 - 0.5 * rise),
            (0.02 + 0.025 * rise, 0.02 + 0.025 * rise),
            (226, 246, 255),
            0.8 * fade(rise),
        )


def draw_submarine(brush: Brush, phase: float, look: Look) -> None:
    """Draw a round submarine with portholes and a periscope."""
    craft = brush.moved((0.0, 0.02 * wave(phase)), degrees=1.5 * wave(phase, 0.2))
    spin = wave(2 * phase)
    craft.limb([(-0.86, 0.05), (-1.02, 0.05)], [0.06, 0.06], (120, 124, 134))
    for side in (-1, 1):
        craft.ellipse((-1.02, 0.05 + 0.14 * spin * side), (0.045, 0.14), look.accent)
    craft.ribbon([(0.08, -0.4), (0.08, -0.56), (0.2, -0.57)], [0.05, 0.05, 0.06], (120, 124, 134))
    craft.ellipse((0.22, -0.57), (0.025, 0.04), (150, 226, 246))
    craft.polygon([(-0.24, -0.24), (-0.2, -0.44), (0.22, -0.44), (0.28, -0.24)], look.shade)
    craft.polygon([(-0.7, -0.06), (-0.96, -0.28), (-1.0, 0.34), (-0.7, 0.12)], look.accent)
    hull = [
        (0.9, 0.04),
        (0.74, -0.18),
        (0.3, -0.3),
        (-0.4, -0.28),
        (-0.8, -0.1),
        (-0.88, 0.06),
        (-0.7, 0.2),
        (-0.3, 0.34),
        (0.3, 0.36),
        (0.74, 0.24),
    ]
    craft.blob(hull, look.main)
    with craft.inside(hull):
        craft.polygon([(-2, 0.16), (2, 0.16), (2, 1), (-2, 1)], look.shade)
        craft.polygon([(-2, -0.22), (2, -0.22), (2, -0.18), (-2, -0.18)], look.light)
    for x in (-0.36, 0.02, 0.4):
        craft.ellipse((x, 0.0), (0.125, 0.125), look.accent)
        craft.ellipse((x, 0.0), (0.09, 0.09), (150, 226, 246))
        craft.ellipse((x - 0.03, -0.03), (0.03, 0.022), WHITE)
    craft.polygon([*arc((0.82, -0.06), (0.93, 0.04), (0.82, 0.16)), (0.76, 0.05)], (255, 240, 170))
    for index in range(4):
        rise = (phase + index / 4) % 1.0
        brush.ellipse(
            (-1.1 - 0.16 * rise, 0.0 - 0.4 * rise + 0.04 * index),
            (0.025 + 0.03 * rise, 0.025 + 0.03 * rise),
            (226, 246, 255),
            0.8 * fade(rise),
        )


FIGURES = (
    subject_of(
        draw_robot,
        Habitat.GROUND,
        Motion.WALK,
        0.34,
        0.4,
        (-0.45, -1.08, 0.5, 0.05),
        Look((120, 168, 200), (250, 150, 60)),
        "robot",
        "android",
        "droid",
        "cyborg",
        "mech",
    ),
    subject_of(
        draw_snowman,
        Habitat.FIXED,
        Motion.STAND,
        0.3,
        0.0,
        (-0.52, -1.12, 0.52, 0.04),
        Look((248, 250, 255), (214, 62, 62)),
        "snowman/snowmen",
    ),
    subject_of(
        draw_ghost,
        Habitat.AIR,
        Motion.HOVER,
        0.28,
        0.4,
        (-0.65, -0.68, 0.65, 0.68),
        Look((246, 248, 255), (250, 170, 180)),
        "ghost",
        "spirit",
        "phantom",
        "spectre",
    ),
    subject_of(
        draw_monster,
        Habitat.GROUND,
        Motion.WALK,
        0.34,
        0.33,
        (-0.56, -1.12, 0.56, 0.05),
        Look((136, 96, 190), (90, 200, 120)),
        "monster",
        "yeti",
        "troll",
        "ogre",
        "beast",
    ),
    subject_of(
        draw_diver,
        Habitat.UNDERWATER,
        Motion.SWIM,
        0.26,
        0.8,
        (-1.15, -0.7, 0.78, 0.45),
        Look((50, 60, 84), (250, 190, 60)),
        "diver",
        "scuba diver",
        "snorkeler",
        "swimmer",
        is_person=True,
    ),
    subject_of(
        draw_submarine,
        Habitat.UNDERWATER,
        Motion.SWIM,
        0.26,
        0.6,
        (-1.4, -0.72, 1.02, 0.48),
        Look((250, 196, 60), (224, 84, 66)),
        "submarine",
        "bathyscaphe",
    ),
)
