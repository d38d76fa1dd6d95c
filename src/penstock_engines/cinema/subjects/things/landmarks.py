"""Things that people gather around: tents and fires, fountains and statues."""

from penstock_engines.cinema.paint.brush import Brush, Colour, arc
from penstock_engines.cinema.subjects.gait import fade, wave
from penstock_engines.cinema.subjects.subject import WHITE, Look, darken, lighten
from penstock_engines.cinema.subjects.things.buildings import built, rectangle

LIT: Colour = (255, 224, 140)


STONE: Colour = (176, 172, 176)


WOOD: Colour = (140, 92, 58)


def draw_tent(brush: Brush, phase: float, look: Look) -> None:
    """Draw a tent lit from inside."""
    flap = 0.06 * wave(phase)
    lamp = lighten(LIT, 0.25 + 0.2 * wave(2 * phase))
    brush.polygon([(0.0, -0.98), (0.3, -0.9), (1.0, 0.0), (0.6, 0.0)], look.shade)
    brush.polygon([(0.0, -0.98), (0.6, 0.0), (-0.6, 0.0)], look.main)
    brush.polygon([(0.0, -0.8), (0.26, 0.0), (-0.26, 0.0)], lamp)
    brush.polygon([(0.0, -0.8), (0.1, 0.0), (-0.1, 0.0)], lighten(lamp, 0.4))
    brush.polygon([(0.0, -0.8), *arc((0.26, 0.0), (0.2 + flap, -0.3), (0.0, -0.8)), (0.36 + flap, -0.2)], look.light)
    brush.polygon([(0.0, -0.8), *arc((-0.26, 0.0), (-0.2 - flap, -0.3), (0.0, -0.8)), (-0.36 - flap, -0.2)], look.light)
    for start, end in (((-0.3, -0.5), (-0.86, -0.0)), ((0.66, -0.44), (1.14, 0.0))):
        brush.limb([start, end], [0.012, 0.012], (230, 220, 200))


def _flame(brush: Brush, phase: float, shift: float, wide: float, high: float, colour: Colour) -> None:
    """Draw one tongue of fire over (0, 0)."""
    lean = wide * 0.7 * wave(2 * phase, shift)
    tall = high * (1 + 0.12 * wave(3 * phase, shift))
    brush.blob(
        [
            (-wide * 0.7, 0.0),
            (-wide, -tall * 0.28),
            (-wide * 0.5 + lean * 0.4, -tall * 0.62),
            (lean, -tall),
            (wide * 0.5 + lean * 0.2, -tall * 0.55),
            (wide, -tall * 0.26),
            (wide * 0.7, 0.0),
        ],
        colour,
    )


def draw_campfire(brush: Brush, phase: float, look: Look) -> None:
    """Draw logs, flames and sparks."""
    brush.glow((0.0, -0.3), 0.85, (255, 150, 50), 0.5 + 0.08 * wave(3 * phase))
    for x in (-0.44, -0.24, 0.0, 0.24, 0.44):
        brush.ellipse((x, -0.03), (0.11, 0.07), darken(STONE, 0.2 if x else 0.3))
    for points in ([(-0.4, -0.06), (0.24, -0.18)], [(0.4, -0.06), (-0.24, -0.18)]):
        brush.limb(points, [0.13, 0.12], WOOD)
        brush.ellipse(points[0], (0.065, 0.065), lighten(WOOD, 0.4))
        brush.ellipse(points[0], (0.035, 0.035), WOOD)
    fire = brush.moved((0.0, -0.12))
    _flame(fire.moved((-0.16, 0.0)), phase, 0.3, 0.13, 0.42, look.main)
    _flame(fire.moved((0.17, 0.0)), phase, 0.6, 0.13, 0.46, look.main)
    _flame(fire, phase, 0.0, 0.27, 0.8, look.main)
    _flame(fire, phase, 0.1, 0.2, 0.56, look.accent)
    _flame(fire, phase, 0.2, 0.11, 0.34, lighten(look.accent, 0.65))
    for index in range(6):
        rise = (phase + index / 6) % 1.0
        x = 0.26 * wave(index * 0.37) + 0.06 * wave(rise, index * 0.2)
        brush.ellipse((x, -0.5 - 0.52 * rise), (0.016, 0.016), lighten(look.accent, 0.3), 0.98 * fade(rise))
    brush.limb([(-0.28, -0.08), (0.3, -0.07)], [0.09, 0.085], darken(WOOD, 0.3))


def draw_fountain(brush: Brush, phase: float, _look: Look) -> None:
    """Draw two basins and falling water."""
    water: Colour = (160, 216, 244)
    stone, dark = _look.main, _look.shade
    for side in (-1, 1):
        for reach, high, base in ((0.16, 0.2, -0.68), (0.3, 0.16, -0.66), (0.42, 0.22, -0.4)):
            low = -0.62 if base < -0.5 and reach < 0.2 else -0.16
            brush.ribbon(
                arc(
                    (0.02 * side if base < -0.5 else 0.26 * side, base),
                    (reach * 0.8 * side, base - high * 1.5),
                    (reach * 1.1 * side, low),
                ),
                [0.022] * 11,
                water,
                0.85,
            )
    for index in range(10):
        fall = (phase + index / 10) % 1.0
        side = 1 if index % 2 else -1
        x = side * (0.04 + 0.36 * fall)
        brush.ellipse((x, -0.74 - 0.2 * wave(fall / 2) + 0.56 * fall * fall), (0.02, 0.026), WHITE, 0.9)
    brush.limb([(0.0, -0.7), (0.0, -0.94 - 0.03 * wave(2 * phase))], [0.05, 0.02], water)
    brush.polygon([(-0.06, -0.6), (0.06, -0.6), (0.05, -0.72), (-0.05, -0.72)], stone)
    brush.polygon([(-0.07, -0.1), (-0.045, -0.5), (0.045, -0.5), (0.07, -0.1)], dark)
    brush.polygon(
        [*arc((-0.3, -0.58), (-0.22, -0.46), (-0.05, -0.45)), *arc((0.05, -0.45), (0.22, -0.46), (0.3, -0.58))], stone
    )
    brush.ellipse((0.0, -0.58), (0.3, 0.035), water)
    brush.polygon([(-0.6, -0.24), (0.6, -0.24), (0.54, 0.0), (-0.54, 0.0)], stone)
    brush.polygon([(-0.56, -0.1), (0.56, -0.1), (0.54, 0.0), (-0.54, 0.0)], dark)
    brush.ellipse((0.0, -0.24), (0.6, 0.055), lighten(stone, 0.3))
    brush.ellipse((0.0, -0.235), (0.54, 0.042), water)
    for index in range(3):
        ring = (phase + index / 3) % 1.0
        brush.ellipse(
            (0.38 * (-1 if index % 2 else 1), -0.235), (0.04 + 0.1 * ring, 0.01 + 0.014 * ring), WHITE, 0.6 * fade(ring)
        )


def draw_statue(brush: Brush, phase: float, look: Look) -> None:
    """Draw a figure with a torch on a pedestal."""
    brush.polygon(rectangle(-0.24, -0.08, 0.24, 0.0), look.shade)
    brush.polygon(rectangle(-0.18, -0.28, 0.18, -0.08), look.main)
    brush.polygon(rectangle(0.06, -0.28, 0.18, -0.08), look.shade)
    brush.polygon(rectangle(-0.21, -0.32, 0.21, -0.28), look.light)
    brush.blob([(-0.1, -0.66), (0.08, -0.67), (0.11, -0.5), (0.15, -0.32), (-0.15, -0.32), (-0.12, -0.5)], look.main)
    for x in (-0.06, 0.0, 0.06):
        brush.ribbon([(x * 0.5, -0.6), (x, -0.46), (x * 1.4, -0.33)], [0.008, 0.014, 0.012], look.shade)
    brush.ribbon([(-0.06, -0.62), (-0.14, -0.54), (-0.04, -0.48)], [0.06, 0.05, 0.04], look.shade)
    brush.polygon([(-0.06, -0.54), (0.04, -0.52), (0.02, -0.42), (-0.08, -0.44)], look.light)
    brush.limb([(0.0, -0.66), (0.0, -0.71)], [0.05, 0.05], look.shade)
    brush.ellipse((0.01, -0.76), (0.055, 0.065), look.main)
    for index in range(5):
        brush.moved((0.0, -0.78), degrees=-60 + 30 * index).polygon(
            [(-0.012, -0.05), (0.012, -0.05), (0.0, -0.12)], look.light
        )
    brush.ribbon([(0.06, -0.62), (0.15, -0.74), (0.17, -0.88)], [0.06, 0.05, 0.04], look.main)
    brush.polygon([(0.14, -0.88), (0.2, -0.88), (0.185, -0.94), (0.155, -0.94)], look.shade)
    brush.glow((0.17, -0.99), 0.12, (255, 190, 80), 0.5)
    _flame(brush.moved((0.17, -0.935)), phase, 0.0, 0.03, 0.09, look.accent)


LANDMARKS = (
    built(draw_tent, 0.26, (-0.92, -1.02, 1.2, 0.03), Look((240, 130, 60)), "tent", "camp", "campsite", "yurt"),
    built(
        draw_campfire,
        0.24,
        (-0.9, -1.2, 0.9, 0.2),
        Look((244, 96, 40), (255, 184, 56)),
        "campfire",
        "bonfire",
        "fire",
        "flame",
        "camp fire",
        "fireplace",
    ),
    built(draw_fountain, 0.36, (-0.68, -1.08, 0.68, 0.03), Look((206, 200, 194)), "fountain", "water fountain"),
    built(
        draw_statue,
        0.5,
        (-0.32, -1.15, 0.36, 0.02),
        Look((122, 172, 150), (255, 190, 80)),
        "statue",
        "monument",
        "sculpture",
    ),
)
