"""Large ships. The waterline is at 0."""

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.gait import fade, wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Look, darken, lighten
from penstock_engines.cinema.subjects.vehicles.boats import afloat, draw_hull, draw_pennant, rocking

WOOD: Colour = (150, 98, 58)


CANVAS: Colour = (252, 246, 232)


RED: Colour = (214, 66, 56)


GLASS: Colour = (150, 202, 226)


def draw_ship(brush: Brush, phase: float, look: Look) -> None:
    """Draw a liner with funnels and rows of portholes."""
    boat = rocking(brush, phase, 0.8, 0.01)
    for index in range(3):
        smoke = (phase + index / 3) % 1.0
        boat.ellipse(
            (-0.28 - 0.5 * smoke, -0.98 - 0.12 * smoke),
            (0.05 + 0.09 * smoke, 0.04 + 0.07 * smoke),
            (236, 236, 240),
            0.6 * fade(smoke),
        )
    for x in (-0.3, 0.02):
        boat.polygon([(x, -0.62), (x + 0.03, -0.96), (x + 0.19, -0.96), (x + 0.19, -0.62)], look.accent)
        boat.polygon([(x + 0.03, -0.96), (x + 0.19, -0.96), (x + 0.19, -0.88), (x + 0.023, -0.88)], BLACK)
    boat.polygon([(-0.8, -0.3), (-0.74, -0.5), (0.62, -0.5), (0.72, -0.3)], WHITE)
    boat.polygon([(-0.56, -0.48), (-0.52, -0.64), (0.44, -0.64), (0.52, -0.48)], (240, 242, 246))
    for row, (left, right, y) in enumerate(((-0.68, 0.58, -0.41), (-0.46, 0.4, -0.57))):
        count = 12 - 4 * row
        for index in range(count):
            x = left + (right - left) * index / (count - 1)
            boat.polygon(
                [(x - 0.03, y - 0.03), (x + 0.03, y - 0.03), (x + 0.03, y + 0.03), (x - 0.03, y + 0.03)], GLASS
            )
    boat.limb([(0.56, -0.5), (0.56, -0.86)], [0.02, 0.014], (150, 150, 160))
    draw_hull(
        boat,
        [
            (-1.1, -0.34),
            (-0.4, -0.29),
            (0.6, -0.31),
            (1.2, -0.42),
            (1.06, -0.14),
            (0.92, 0.06),
            (0.0, 0.07),
            (-0.9, 0.06),
            (-1.06, -0.1),
        ],
        look.main,
        WHITE,
    )
    for index in range(9):
        boat.ellipse((-0.8 + 0.2 * index, -0.13), (0.022, 0.022), lighten(look.main, 0.7))


def draw_cargo_ship(brush: Brush, phase: float, look: Look) -> None:
    """Draw a long ship stacked with containers."""
    boat = rocking(brush, phase, 0.6, 0.008)
    paints: tuple[Colour, ...] = ((214, 76, 60), (58, 124, 178), (240, 172, 62), (74, 152, 112), (232, 232, 226))
    for column in range(9):
        for row in range(3 if column % 3 else 2):
            x, y = -0.78 + 0.21 * column, -0.42 - 0.13 * row
            paint = paints[(column * 2 + row * 3) % 5]
            boat.polygon([(x, y), (x + 0.2, y), (x + 0.2, y + 0.12), (x, y + 0.12)], paint)
            for line in (0.05, 0.1, 0.15):
                boat.limb([(x + line, y + 0.02), (x + line, y + 0.1)], [0.012, 0.012], darken(paint, 0.16))
    boat.polygon([(-1.18, -0.3), (-1.18, -0.86), (-0.86, -0.86), (-0.82, -0.3)], WHITE)
    boat.polygon([(-1.22, -0.86), (-1.22, -0.97), (-0.78, -0.97), (-0.82, -0.86)], (236, 238, 242))
    boat.polygon([(-1.14, -0.94), (-0.82, -0.94), (-0.84, -0.88), (-1.14, -0.88)], GLASS)
    for y in (-0.74, -0.6, -0.46):
        for x in (-1.1, -1.0, -0.9):
            boat.ellipse((x, y), (0.025, 0.025), GLASS)
    boat.limb([(1.16, -0.34), (1.16, -0.6)], [0.02, 0.015], (150, 150, 160))
    draw_hull(
        boat,
        [
            (-1.36, -0.36),
            (-0.6, -0.31),
            (0.8, -0.31),
            (1.5, -0.44),
            (1.34, -0.14),
            (1.24, 0.06),
            (0.0, 0.07),
            (-1.2, 0.06),
            (-1.32, -0.1),
        ],
        look.main,
        WHITE,
    )


def draw_pirate_ship(brush: Brush, phase: float, look: Look) -> None:
    """Draw three masts, square sails and a black flag."""
    boat = rocking(brush, phase, 1.6)
    puff = 0.02 * wave(phase, 0.15)
    for x, high in ((-0.4, 0.72), (0.06, 0.86), (0.46, 0.68)):
        boat.limb([(x, -0.2), (x, -high - 0.1)], [0.035, 0.02], darken(WOOD))
        for top, bottom, wide in ((high + 0.06, high * 0.7, 0.17), (high * 0.68, 0.3, 0.22)):
            sail = [
                (x - wide, -top),
                (x + wide, -top),
                (x + wide * 1.16 + puff, -(top + bottom) / 2),
                (x + wide, -bottom),
                (x, -bottom - 0.03),
                (x - wide, -bottom),
                (x - wide * 0.82 + puff, -(top + bottom) / 2),
            ]
            boat.blob(sail, look.accent)
            boat.blob([(px * 0.4 + (x + wide) * 0.6, py) for px, py in sail], darken(look.accent, 0.12))
            boat.limb([(x - wide, -top), (x + wide, -top)], [0.022, 0.022], WOOD)
    boat.limb([(0.8, -0.26), (1.16, -0.44)], [0.04, 0.016], darken(WOOD))
    boat.polygon([(0.5, -0.74), (1.1, -0.42), (0.62, -0.34)], darken(look.accent, 0.08))
    draw_pennant(boat, (0.06, -0.96), 0.15, BLACK, 2 * phase)
    boat.ellipse((-0.01, -1.085), (0.022, 0.022), WHITE)
    boat.limb([(-0.04, -1.045), (0.02, -1.055)], [0.01, 0.01], WHITE)
    hull = [
        (-0.92, -0.46),
        (-0.6, -0.42),
        (-0.5, -0.24),
        (0.4, -0.22),
        (0.7, -0.28),
        (1.0, -0.32),
        (0.82, -0.06),
        (0.6, 0.08),
        (-0.6, 0.08),
        (-0.84, -0.1),
    ]
    draw_hull(boat, hull, look.main)
    with boat.inside(hull):
        for y in (-0.2, -0.12):
            boat.limb([(-1, y - 0.02), (1, y)], [0.014, 0.014], darken(look.main, 0.3))
    for x in (-0.36, -0.12, 0.12, 0.36):
        boat.ellipse((x, -0.15), (0.035, 0.035), BLACK)
    boat.polygon([(-0.8, -0.38), (-0.66, -0.37), (-0.67, -0.27), (-0.79, -0.28)], (250, 206, 96))


def draw_yacht(brush: Brush, phase: float, look: Look) -> None:
    """Draw a sleek motor yacht that throws up spray."""
    boat = brush.moved((0.0, 0.02 * wave(phase)), degrees=-3 + 1.4 * wave(phase, 0.2))
    boat.polygon([(-0.62, -0.4), (-0.5, -0.72), (0.1, -0.72), (0.4, -0.4)], WHITE)
    boat.polygon([(-0.44, -0.68), (0.06, -0.68), (0.24, -0.5), (-0.48, -0.5)], darken(GLASS, 0.4))
    boat.polygon([(-0.44, -0.76), (-0.36, -0.96), (-0.12, -0.96), (0.06, -0.74)], WHITE)
    boat.polygon([(-0.62, -0.76), (-0.6, -0.71), (0.18, -0.71), (0.12, -0.76)], look.accent)
    hull = [
        (-1.1, -0.36),
        (-0.5, -0.38),
        (0.4, -0.42),
        (1.3, -0.5),
        (1.0, -0.16),
        (0.7, 0.06),
        (-0.6, 0.07),
        (-1.04, 0.04),
    ]
    boat.blob(hull, WHITE)
    with boat.inside(hull):
        boat.blob([(-1.3, -0.14), (0.2, -0.2), (1.4, -0.46), (1.0, 0.3), (-1.3, 0.3)], look.main)
    for index in range(5):
        boat.polygon(
            [
                (-0.6 + 0.2 * index, -0.32),
                (-0.46 + 0.2 * index, -0.325),
                (-0.47 + 0.2 * index, -0.27),
                (-0.61 + 0.2 * index, -0.265),
            ],
            darken(GLASS, 0.35),
        )
    for index in range(4):
        drop = (phase + index / 4) % 1.0
        brush.ellipse(
            (0.74 - 1.5 * drop, 0.06 - 0.05 * wave(drop / 2)),
            (0.2 - 0.08 * drop, 0.06 - 0.03 * drop),
            WHITE,
            0.9 * fade(drop),
        )


SHIPS = (
    afloat(
        draw_ship,
        0.34,
        0.4,
        (-1.2, -1.32, 1.28, 0.16),
        Look((48, 62, 98), RED),
        "ship",
        "cruise ship",
        "ocean liner",
        "ferry",
        "steamboat",
        "steamer",
    ),
    afloat(
        draw_cargo_ship,
        0.28,
        0.4,
        (-1.5, -1.06, 1.6, 0.14),
        Look((170, 60, 54)),
        "cargo ship",
        "container ship",
        "freighter",
        "tanker",
        "barge",
    ),
    afloat(
        draw_pirate_ship,
        0.44,
        0.35,
        (-1.05, -1.25, 1.3, 0.16),
        Look((128, 78, 46), CANVAS),
        "pirate ship",
        "galleon",
        "tall ship",
        "viking ship",
        "longship",
        "caravel",
        "schooner",
        "frigate",
    ),
    afloat(
        draw_yacht,
        0.2,
        1.0,
        (-1.25, -1.15, 1.45, 0.2),
        Look((40, 70, 130), (226, 176, 90)),
        "yacht",
        "speedboat",
        "motorboat",
    ),
)
