"""Vehicles on the road."""

import math

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
    lighten,
    subject_of,
)

TYRE: Colour = (44, 42, 50)
RIM: Colour = (206, 210, 218)
GLASS: Colour = (172, 214, 232)
LAMP: Colour = (255, 238, 170)
TAIL_LAMP: Colour = (228, 58, 52)


def draw_wheel(brush: Brush, centre: Point, radius: float, turn: float, *, spokes: int = 5, rim: Colour = RIM) -> None:
    """Draw a wheel after `turn` turns. Spokes show that it rolls."""
    wheel = brush.moved(centre, degrees=360 * turn)
    wheel.ellipse((0, 0), (radius, radius), TYRE)
    wheel.ellipse((0, 0), (radius * 0.62, radius * 0.62), rim)
    for index in range(spokes):
        angle = 2 * math.pi * index / spokes
        wheel.limb(
            [(0, 0), (math.cos(angle) * radius * 0.56, math.sin(angle) * radius * 0.56)],
            [radius * 0.16, radius * 0.1],
            darken(rim, 0.45),
        )
    wheel.ellipse((0, 0), (radius * 0.2, radius * 0.2), darken(rim, 0.6))


def _panel(brush: Brush, shape: list[Point], colour: Colour, waist: float) -> None:
    """Draw coachwork, shaded below the waist and lit above it."""
    brush.blob(shape, colour)
    with brush.inside(shape):
        brush.polygon([(-3, waist), (3, waist), (3, 1), (-3, 1)], darken(colour, 0.2))
        brush.polygon([(-3, waist - 0.035), (3, waist - 0.035), (3, waist), (-3, waist)], lighten(colour, 0.35))


def _arches(brush: Brush, places: tuple[float, ...], radius: float) -> None:
    for x in places:
        brush.ellipse((x, -radius * 1.12), (radius * 1.14, radius * 1.1), darken(TYRE, 0.3))


def _wheels(brush: Brush, places: tuple[float, ...], radius: float, phase: float) -> None:
    for x in places:
        draw_wheel(brush, (x, -radius), radius, phase)


def _bounce(brush: Brush, phase: float, amount: float = 0.006) -> Brush:
    return brush.moved((0.0, amount * wave(2 * phase)))


def draw_car(brush: Brush, phase: float, look: Look) -> None:
    """Draw a friendly small car."""
    car = _bounce(brush, phase)
    car.blob(
        [(-0.74, -0.56), (-0.56, -0.86), (-0.28, -0.98), (0.16, -0.98), (0.38, -0.86), (0.62, -0.54), (0.0, -0.48)],
        darken(look.main, 0.1),
    )
    window = [*arc((-0.62, -0.56), (-0.5, -0.91), (-0.2, -0.91)), *arc((0.08, -0.91), (0.32, -0.88), (0.5, -0.56))]
    car.polygon(window, GLASS)
    with car.inside(window, straight=True):
        for x in (0.14, 0.3):
            car.limb([(x + 0.08, -0.95), (x - 0.12, -0.5)], [0.07, 0.07], lighten(GLASS, 0.55))
    car.limb([(-0.08, -0.93), (-0.08, -0.55)], [0.05, 0.06], darken(look.main, 0.1))
    _panel(
        car,
        [
            (-1.04, -0.42),
            (-1.0, -0.56),
            (-0.7, -0.6),
            (0.0, -0.58),
            (0.58, -0.58),
            (0.92, -0.5),
            (1.06, -0.38),
            (1.06, -0.18),
            (0.9, -0.12),
            (-0.9, -0.12),
            (-1.06, -0.18),
        ],
        look.main,
        -0.3,
    )
    _arches(car, (-0.6, 0.6), 0.21)
    car.limb([(-0.08, -0.56), (-0.08, -0.2)], [0.012, 0.012], look.shade)
    car.limb([(-0.02, -0.46), (0.08, -0.46)], [0.03, 0.03], look.shade)
    car.ellipse((0.98, -0.4), (0.06, 0.07), LAMP)
    car.ellipse((-1.0, -0.42), (0.045, 0.07), TAIL_LAMP)
    car.limb([(0.92, -0.16), (1.06, -0.17)], [0.07, 0.06], darken(RIM, 0.2))
    car.limb([(-1.04, -0.17), (-0.92, -0.16)], [0.06, 0.07], darken(RIM, 0.2))
    _wheels(brush, (-0.6, 0.6), 0.21, phase)


def draw_sports_car(brush: Brush, phase: float, look: Look) -> None:
    """Draw a low and fast car."""
    car = _bounce(brush, phase, 0.005)
    car.polygon([(-1.5, -0.96), (-1.16, -0.96), (-1.16, -0.88), (-1.5, -0.88)], look.shade)
    car.limb([(-1.34, -0.9), (-1.26, -0.66)], [0.05, 0.06], darken(look.main, 0.5))
    car.blob([(-0.96, -0.64), (-0.5, -0.94), (-0.14, -0.99), (0.22, -0.9), (0.68, -0.58), (0.0, -0.52)], BLACK)
    window = [*arc((-0.78, -0.62), (-0.5, -0.92), (-0.14, -0.93)), *arc((-0.14, -0.93), (0.2, -0.9), (0.56, -0.58))]
    car.polygon(window, darken(GLASS, 0.2))
    with car.inside(window, straight=True):
        car.limb([(0.3, -0.95), (0.08, -0.5)], [0.1, 0.1], lighten(GLASS, 0.2))
    car.limb([(-0.28, -0.95), (-0.34, -0.6)], [0.06, 0.09], BLACK)
    _panel(
        car,
        [
            (-1.5, -0.5),
            (-1.4, -0.7),
            (-0.9, -0.7),
            (-0.2, -0.6),
            (0.6, -0.6),
            (1.2, -0.48),
            (1.6, -0.28),
            (1.6, -0.16),
            (1.3, -0.12),
            (-1.3, -0.12),
            (-1.5, -0.2),
        ],
        look.main,
        -0.28,
    )
    _arches(car, (-0.96, 0.96), 0.26)
    car.blob([(1.2, -0.44), (1.46, -0.34), (1.42, -0.29), (1.16, -0.36)], LAMP)
    car.limb([(-1.46, -0.5), (-1.36, -0.5)], [0.08, 0.06], TAIL_LAMP)
    car.polygon([(-0.56, -0.46), (-0.3, -0.42), (-0.36, -0.3), (-0.56, -0.34)], darken(look.main, 0.5))
    _wheels(brush, (-0.96, 0.96), 0.26, phase)


def draw_taxi(brush: Brush, phase: float, look: Look) -> None:
    """Draw a yellow cab."""
    draw_car(brush, phase, look)
    car = _bounce(brush, phase)
    car.polygon([(-0.2, -0.98), (-0.16, -1.1), (0.06, -1.1), (0.1, -0.98)], LAMP)
    for index in range(16):
        x, row = -0.92 + 0.12 * index, index % 2
        if abs(abs(x) - 0.58) > 0.2:
            car.polygon(
                [
                    (x, -0.38 + 0.05 * row),
                    (x + 0.12, -0.38 + 0.05 * row),
                    (x + 0.12, -0.33 + 0.05 * row),
                    (x, -0.33 + 0.05 * row),
                ],
                BLACK,
            )


def draw_bus(brush: Brush, phase: float, look: Look) -> None:
    """Draw a long bus with many windows."""
    bus = _bounce(brush, phase)
    shape = [
        (-1.3, -0.16),
        (-1.34, -0.6),
        (-1.28, -0.92),
        (-0.9, -0.99),
        (0.9, -0.99),
        (1.24, -0.92),
        (1.34, -0.5),
        (1.32, -0.16),
        (0.0, -0.1),
    ]
    _panel(bus, shape, look.main, -0.36)
    for index in range(6):
        x = -1.14 + 0.335 * index
        bus.polygon([(x, -0.84), (x + 0.27, -0.84), (x + 0.27, -0.52), (x, -0.52)], GLASS)
        bus.polygon([(x + 0.16, -0.84), (x + 0.24, -0.84), (x + 0.1, -0.52), (x + 0.02, -0.52)], lighten(GLASS, 0.5))
    bus.blob([(0.9, -0.84), (1.16, -0.84), (1.26, -0.52), (0.9, -0.5)], GLASS)
    bus.polygon([(0.56, -0.86), (0.8, -0.86), (0.8, -0.14), (0.56, -0.14)], darken(look.main, 0.25))
    bus.polygon([(0.59, -0.82), (0.77, -0.82), (0.77, -0.3), (0.59, -0.3)], GLASS)
    _arches(bus, (-0.8, 0.98), 0.18)
    bus.ellipse((1.29, -0.3), (0.035, 0.06), LAMP)
    bus.ellipse((-1.3, -0.4), (0.03, 0.06), TAIL_LAMP)
    _wheels(brush, (-0.8, 0.98), 0.18, phase)


def draw_truck(brush: Brush, phase: float, look: Look) -> None:
    """Draw a lorry with its trailer."""
    truck = _bounce(brush, phase)
    truck.polygon([(-1.4, -0.2), (1.2, -0.2), (1.2, -0.13), (-1.4, -0.13)], TYRE)
    truck.polygon([(-1.46, -0.24), (-1.46, -0.99), (0.42, -0.99), (0.42, -0.24)], look.accent)
    truck.polygon([(-1.46, -0.36), (-1.46, -0.24), (0.42, -0.24), (0.42, -0.36)], darken(look.accent, 0.16))
    truck.polygon([(-1.46, -0.66), (0.42, -0.66), (0.42, -0.56), (-1.46, -0.56)], look.main)
    cab = [
        (0.5, -0.18),
        (0.49, -0.8),
        (0.58, -0.86),
        (0.9, -0.84),
        (1.04, -0.6),
        (1.2, -0.5),
        (1.26, -0.2),
        (0.9, -0.15),
    ]
    _panel(truck, cab, look.main, -0.34)
    truck.blob([(0.7, -0.54), (0.7, -0.77), (0.88, -0.76), (0.99, -0.54)], GLASS)
    truck.limb([(0.55, -0.8), (0.55, -1.0)], [0.04, 0.04], RIM)
    truck.ellipse((1.2, -0.32), (0.045, 0.05), LAMP)
    _wheels(brush, (-1.12, -0.76, 0.62, 0.98), 0.165, phase)


def draw_tractor(brush: Brush, phase: float, look: Look) -> None:
    """Draw one great wheel and one small."""
    body = _bounce(brush, phase, 0.01)
    body.limb([(0.42, -0.5), (0.42, -0.92)], [0.06, 0.05], TYRE)
    puff = phase
    body.ellipse(
        (0.38 - 0.2 * puff, -0.98 - 0.16 * puff),
        (0.04 + 0.07 * puff, 0.04 + 0.06 * puff),
        (120, 116, 122),
        0.5 * (1 - puff) * wave(puff / 2),
    )
    body.polygon([(-0.5, -0.5), (-0.44, -0.96), (0.04, -0.96), (0.1, -0.5)], darken(look.main, 0.3))
    body.polygon([(-0.4, -0.52), (-0.36, -0.88), (-0.02, -0.88), (0.03, -0.52)], GLASS)
    body.limb([(-0.52, -0.97), (0.1, -0.97)], [0.06, 0.06], look.main)
    _panel(
        body,
        [(-0.5, -0.26), (-0.46, -0.52), (0.1, -0.58), (0.62, -0.58), (0.76, -0.5), (0.78, -0.28), (0.2, -0.22)],
        look.main,
        -0.36,
    )
    body.ellipse((0.75, -0.46), (0.035, 0.05), LAMP)
    body.blob(
        [(-0.82, -0.5), (-0.62, -0.72), (-0.3, -0.74), (-0.06, -0.52), (-0.14, -0.5), (-0.4, -0.64), (-0.7, -0.48)],
        look.main,
    )
    draw_wheel(brush, (-0.42, -0.33), 0.33, phase * 1, spokes=6, rim=look.accent)
    for index in range(12):
        lug = brush.moved((-0.42, -0.33), degrees=360 * phase + 30 * index)
        lug.limb([(0.27, 0.0), (0.33, 0.0)], [0.06, 0.05], lighten(TYRE, 0.12))
    draw_wheel(brush, (0.56, -0.19), 0.19, phase * 2, rim=look.accent)


def _vehicle(draw: Draw, size: float, stride: float, box: Box, look: Look, *words: str) -> Subject:
    return subject_of(draw, Habitat.ROAD, Motion.DRIVE, size, stride, box, look, *words)


VEHICLES = (
    _vehicle(
        draw_car,
        0.2,
        1.32,
        (-1.15, -1.05, 1.15, 0.05),
        Look((226, 70, 62)),
        "car",
        "automobile",
        "sedan",
        "vehicle",
        "beetle car",
        "vintage car",
    ),
    _vehicle(
        draw_sports_car,
        0.15,
        1.63,
        (-1.6, -1.06, 1.7, 0.05),
        Look((232, 52, 44)),
        "sports car",
        "race car",
        "racing car",
        "supercar",
        "ferrari",
        "convertible",
    ),
    _vehicle(
        draw_bus,
        0.28,
        1.13,
        (-1.47, -1.05, 1.47, 0.05),
        Look((244, 178, 52)),
        "bus",
        "school bus",
        "coach",
        "double-decker",
    ),
    _vehicle(
        draw_truck,
        0.28,
        1.04,
        (-1.54, -1.08, 1.34, 0.05),
        Look((54, 112, 184), (240, 240, 240)),
        "truck",
        "lorry",
        "van",
        "pickup",
        "fire engine",
    ),
    _vehicle(draw_taxi, 0.2, 1.32, (-1.15, -1.16, 1.15, 0.05), Look((250, 200, 46)), "taxi", "cab", "yellow cab"),
    _vehicle(
        draw_tractor,
        0.26,
        2.07,
        (-0.9, -1.3, 0.95, 0.05),
        Look((64, 148, 72), (246, 206, 66)),
        "tractor",
        "combine harvester",
    ),
)
