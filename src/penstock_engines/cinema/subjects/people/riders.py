"""People who ride on wheels, on a horse, on a broom or in a sleigh."""

import math
from dataclasses import replace

from penstock_engines.cinema.paint.brush import Brush, Colour, Point
from penstock_engines.cinema.subjects.animals.hoofed_animals import DEER, HORSE
from penstock_engines.cinema.subjects.animals.quadruped import draw_quadruped
from penstock_engines.cinema.subjects.gait import knee, wave
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
    subject_of,
)

TYRE: Colour = (48, 46, 54)


STEEL: Colour = (176, 182, 194)


WOOD: Colour = (150, 98, 58)


GOLD: Colour = (246, 200, 84)


def draw_profile(brush: Brush, place: Point, size: float, look: Look, cover: Colour | None = None) -> None:
    """Draw a head in profile with hair, or with a helmet or hat of the `cover` colour."""
    local = brush.moved(place, scale=size)
    local.ellipse((0.0, 0.05), (0.86, 0.95), look.skin)
    local.ellipse((0.86, 0.16), (0.15, 0.13), look.skin)
    local.ellipse((0.5, 0.02), (0.1, 0.13), BLACK)
    local.ribbon([(0.42, 0.52), (0.58, 0.58), (0.74, 0.5)], [0.04, 0.1, 0.04], darken(look.skin, 0.4))
    local.blob(
        [
            (0.75, -0.35),
            (0.2, -0.35),
            (-0.1, 0.0),
            (-0.4, 0.5),
            (-0.85, 0.5),
            (-1.05, -0.1),
            (-0.8, -0.8),
            (-0.1, -1.1),
            (0.6, -0.9),
        ],
        cover or look.hair,
    )


def _spoked(brush: Brush, centre: Point, radius: float, turn: float, colour: Colour) -> None:
    """Draw a thin wheel with many spokes."""
    wheel = brush.moved(centre, degrees=360 * turn)
    ring = [(radius * math.cos(angle / 24 * math.tau), radius * math.sin(angle / 24 * math.tau)) for angle in range(25)]
    wheel.limb(ring, [0.035] * 25, TYRE)
    for index in range(8):
        angle = math.tau * index / 8
        wheel.limb([(0.0, 0.0), (radius * math.cos(angle), radius * math.sin(angle))], [0.008, 0.008], colour)
    wheel.ellipse((0.0, 0.0), (0.03, 0.03), colour)


def draw_cyclist(brush: Brush, phase: float, look: Look) -> None:
    """Draw a cyclist who pedals an upright bicycle."""
    rear, front, pedal = (-0.36, -0.22), (0.4, -0.22), (0.0, -0.22)
    for centre in (rear, front):
        _spoked(brush, centre, 0.205, phase, STEEL)
    angle = math.tau * phase
    feet = [
        (pedal[0] + 0.085 * math.cos(angle + turn), pedal[1] + 0.085 * math.sin(angle + turn))
        for turn in (math.pi, 0.0)
    ]
    saddle, hip, shoulder, grip = (-0.13, -0.52), (-0.12, -0.57), (0.02, -0.83), (0.28, -0.58)

    def draw_leg(foot: Point, paint: Colour, shoe: Colour) -> None:
        brush.limb([pedal, foot], [0.022, 0.022], STEEL)
        bend = knee(hip, foot, 0.235, 0.225, forward=True)
        brush.ribbon([hip, bend, foot], [0.12, 0.09, 0.06], paint)
        brush.limb([(foot[0] - 0.03, foot[1]), (foot[0] + 0.07, foot[1] + 0.01)], [0.045, 0.035], shoe)

    draw_leg(feet[0], darken(look.accent, 0.35), TYRE)
    brush.ribbon([(0.04, -0.8), (0.16, -0.68), grip], [0.07, 0.06, 0.045], darken(look.main, 0.3))
    frame = darken((210, 60, 56), 0.0)
    for line in (
        [rear, pedal, (0.28, -0.48), (-0.1, -0.44), rear],
        [(-0.1, -0.44), pedal],
        [front, (0.3, -0.56)],
        [(-0.1, -0.44), (-0.13, -0.5)],
    ):
        brush.limb(line, [0.026] * len(line), frame)
    brush.limb([(-0.2, -0.515), (-0.06, -0.52)], [0.04, 0.025], TYRE)
    brush.ribbon([(0.3, -0.57), (0.36, -0.58), (0.28, -0.6)], [0.022, 0.022, 0.03], TYRE)
    brush.ellipse(pedal, (0.05, 0.05), STEEL)
    brush.limb([hip, saddle], [0.12, 0.1], look.accent)
    brush.ribbon([hip, (-0.08, -0.7), shoulder], [0.15, 0.17, 0.15], look.main)
    draw_profile(brush, (0.08, -0.93), 0.082, look, look.light)
    draw_leg(feet[1], look.accent, darken(TYRE, 0.0))
    brush.ribbon([shoulder, (0.12, -0.68), grip], [0.075, 0.065, 0.05], look.light)
    brush.ellipse(grip, (0.028, 0.028), look.skin)


def draw_motorbike(brush: Brush, phase: float, look: Look) -> None:
    """Draw a motorbike and its rider."""
    for x in (-0.44, 0.48):
        wheel = brush.moved((x, -0.22), degrees=360 * phase)
        wheel.ellipse((0, 0), (0.22, 0.22), TYRE)
        wheel.ellipse((0, 0), (0.14, 0.14), STEEL)
        for index in range(5):
            turn = math.tau * index / 5
            wheel.limb([(0, 0), (0.13 * math.cos(turn), 0.13 * math.sin(turn))], [0.04, 0.025], darken(STEEL, 0.5))
    bike = brush.moved((0.0, 0.006 * wave(2 * phase)))
    bike.limb([(0.48, -0.22), (0.3, -0.58)], [0.045, 0.05], STEEL)
    bike.ribbon([(-0.3, -0.2), (-0.5, -0.16), (-0.66, -0.2)], [0.05, 0.06, 0.08], STEEL)
    bike.blob([(-0.2, -0.16), (-0.22, -0.36), (0.16, -0.38), (0.2, -0.18), (0.0, -0.12)], darken(STEEL, 0.45))
    bike.blob(
        [
            (-0.64, -0.52),
            (-0.3, -0.44),
            (-0.06, -0.5),
            (0.16, -0.6),
            (0.34, -0.58),
            (0.36, -0.46),
            (0.16, -0.34),
            (-0.3, -0.32),
        ],
        look.main,
    )
    bike.blob([(-0.56, -0.52), (-0.2, -0.5), (-0.1, -0.44), (-0.4, -0.42)], TYRE)
    bike.blob([(0.3, -0.66), (0.44, -0.56), (0.42, -0.46), (0.32, -0.48)], look.main)
    bike.ellipse((0.43, -0.52), (0.035, 0.05), (255, 238, 170))
    bike.blob([(0.3, -0.22), (0.36, -0.44), (0.58, -0.46), (0.72, -0.28), (0.6, -0.38), (0.42, -0.36)], look.shade)
    rider = bike.moved((0.0, 0.0))
    rider.ribbon([(-0.22, -0.5), (0.06, -0.46), (-0.02, -0.2)], [0.15, 0.12, 0.08], look.accent)
    rider.limb([(-0.03, -0.17), (0.07, -0.16)], [0.06, 0.045], BLACK)
    rider.ribbon([(-0.22, -0.5), (-0.14, -0.68), (-0.02, -0.8)], [0.17, 0.19, 0.15], darken(look.accent, 0.3))
    rider.ellipse((0.06, -0.9), (0.11, 0.105), look.main)
    rider.blob([(0.06, -0.94), (0.16, -0.93), (0.17, -0.85), (0.06, -0.85)], (40, 46, 60))
    rider.limb([(0.08, -0.92), (0.13, -0.92)], [0.012, 0.012], (150, 190, 220))
    rider.ribbon([(-0.02, -0.78), (0.12, -0.64), (0.3, -0.64)], [0.085, 0.075, 0.055], darken(look.accent, 0.2))
    rider.ellipse((0.3, -0.64), (0.035, 0.035), BLACK)


def draw_horse_rider(brush: Brush, phase: float, look: Look) -> None:
    """Draw a person on a galloping horse."""
    scaled = brush.moved(scale=0.8)
    draw_quadruped(HORSE)(scaled, phase, Look((146, 92, 54), (60, 36, 30)))
    rise = 0.024 * wave(phase, 0.05)
    body = brush.moved((-0.02, rise), degrees=8)
    body.blob([(-0.16, -0.6), (0.12, -0.6), (0.14, -0.44), (-0.12, -0.42)], (120, 40, 46))
    body.ribbon([(0.0, -0.62), (0.12, -0.5), (0.04, -0.3)], [0.13, 0.1, 0.07], look.accent)
    body.limb([(0.02, -0.28), (0.11, -0.27)], [0.055, 0.045], BLACK)
    body.ribbon([(0.0, -0.6), (-0.02, -0.74), (0.0, -0.84)], [0.14, 0.16, 0.14], look.main)
    draw_profile(body, (0.04, -0.95), 0.075, look)
    body.limb([(-0.07, -0.99), (0.17, -0.97)], [0.025, 0.025], WOOD)
    body.blob([(-0.03, -0.99), (-0.02, -1.06), (0.05, -1.07), (0.12, -1.04), (0.12, -0.98)], WOOD)
    body.ribbon([(0.0, -0.82), (0.08, -0.72), (0.2, -0.71)], [0.07, 0.06, 0.045], look.light)
    body.ribbon([(0.2, -0.71), (0.34, -0.72), (0.48, -0.74)], [0.012, 0.012, 0.012], (70, 46, 36))


def draw_witch(brush: Brush, phase: float, look: Look) -> None:
    """Draw a witch who flies on a broom."""
    body = brush.moved((0.0, 0.04 * wave(phase)), degrees=-8 + 3 * wave(phase, 0.2))
    body.limb([(-0.5, 0.16), (0.72, 0.1)], [0.04, 0.03], WOOD)
    for index in range(6):
        body.ribbon(
            [(-0.46, 0.16), (-0.66, 0.08 + 0.03 * index), (-0.94, 0.03 + 0.055 * index)],
            [0.06, 0.07, 0.015],
            darken((226, 176, 80), 0.08 * (index % 3)),
        )
    body.limb([(-0.5, 0.11), (-0.5, 0.22)], [0.04, 0.04], (170, 60, 60))
    flow = 0.04 * wave(2 * phase)
    body.blob(
        [
            (0.08, -0.22),
            (-0.16, -0.16),
            (-0.5, -0.1 + flow),
            (-0.7, 0.02 - flow),
            (-0.4, 0.1),
            (-0.1, 0.16),
            (0.12, 0.12),
        ],
        look.shade,
    )
    body.ribbon([(-0.02, 0.08), (0.22, 0.1), (0.2, 0.3)], [0.18, 0.13, 0.07], look.main)
    body.ribbon([(0.19, 0.3), (0.25, 0.37), (0.33, 0.33)], [0.06, 0.06, 0.02], BLACK)
    body.ribbon([(-0.02, 0.08), (0.02, -0.08), (0.1, -0.2)], [0.2, 0.19, 0.14], look.main)
    for index in range(4):
        body.ribbon(
            [(0.12, -0.36), (-0.06, -0.3 + 0.04 * index + flow), (-0.24, -0.28 + 0.07 * index + flow)],
            [0.1, 0.08, 0.015],
            look.hair,
        )
    draw_profile(body, (0.16, -0.34), 0.1, look)
    body.limb([(-0.02, -0.4), (0.34, -0.38)], [0.04, 0.03], BLACK)
    body.blob([(0.04, -0.4), (0.08, -0.54), (0.0, -0.66), (0.06, -0.68), (0.18, -0.54), (0.28, -0.4)], BLACK)
    body.limb([(0.06, -0.43), (0.27, -0.415)], [0.035, 0.035], look.accent)
    body.ribbon([(0.1, -0.18), (0.24, -0.04), (0.4, 0.1)], [0.09, 0.08, 0.05], look.light)
    body.ellipse((0.41, 0.11), (0.035, 0.035), look.skin)


def draw_santa(brush: Brush, phase: float, look: Look) -> None:
    """Draw a sleigh drawn by a reindeer through the air."""
    body = brush.moved((0.0, 0.03 * wave(phase)), degrees=-7 + wave(phase, 0.2))
    draw_quadruped(replace(DEER, reach=0.5, lift=0.16))(
        body.moved((0.86, 0.42), scale=0.72), phase, Look((160, 104, 64))
    )
    body.ribbon([(0.05, 0.0), (0.5, 0.1), (1.06, 0.02)], [0.018, 0.018, 0.018], (110, 60, 40))
    sleigh = body.moved((-0.4, 0.42))
    sleigh.ribbon([(-0.62, -0.03), (0.3, -0.03), (0.54, -0.12), (0.52, -0.26)], [0.035] * 4, GOLD)
    for x in (-0.36, 0.16):
        sleigh.limb([(x, -0.04), (x, -0.18)], [0.03, 0.03], GOLD)
    sleigh.blob(
        [(-0.56, -0.24), (-0.62, -0.52), (-0.48, -0.78), (-0.24, -0.74), (-0.16, -0.52), (-0.3, -0.3)], (150, 100, 60)
    )
    for x, y, paint in ((-0.5, -0.74, (90, 170, 110)), (-0.32, -0.78, (240, 200, 90))):
        sleigh.polygon([(x - 0.07, y - 0.08), (x + 0.07, y - 0.08), (x + 0.07, y + 0.06), (x - 0.07, y + 0.06)], paint)
    sleigh.ribbon([(0.02, -0.3), (0.04, -0.46), (0.06, -0.6)], [0.3, 0.32, 0.22], look.main)
    sleigh.limb([(-0.1, -0.38), (0.18, -0.38)], [0.05, 0.05], BLACK)
    draw_profile(sleigh, (0.1, -0.72), 0.12, look, look.main)
    sleigh.blob([(0.06, -0.7), (0.2, -0.66), (0.22, -0.56), (0.1, -0.48), (0.02, -0.58)], WHITE)
    sleigh.limb([(0.0, -0.79), (0.19, -0.77)], [0.05, 0.05], WHITE)
    sleigh.ribbon(
        [(0.06, -0.82), (-0.06, -0.88), (-0.14, -0.78 + 0.02 * wave(2 * phase))], [0.12, 0.08, 0.03], look.main
    )
    sleigh.ellipse((-0.14, -0.77 + 0.02 * wave(2 * phase)), (0.04, 0.04), WHITE)
    sleigh.blob(
        [
            (-0.64, -0.44),
            (-0.4, -0.34),
            (0.0, -0.34),
            (0.3, -0.4),
            (0.48, -0.5),
            (0.56, -0.4),
            (0.4, -0.18),
            (0.1, -0.1),
            (-0.4, -0.1),
            (-0.6, -0.2),
        ],
        look.shade,
    )
    sleigh.ribbon([(-0.64, -0.44), (-0.4, -0.34), (0.0, -0.34), (0.3, -0.4), (0.48, -0.5)], [0.03] * 5, GOLD)
    sleigh.ribbon([(0.08, -0.58), (0.2, -0.5), (0.34, -0.54)], [0.1, 0.09, 0.07], look.light)


def riding(
    draw: Draw, habitat: Habitat, motion: Motion, size: float, stride: float, box: Box, look: Look, *words: str
) -> Subject:
    """Return a person on the move."""
    return subject_of(draw, habitat, motion, size, stride, box, look, *words, is_person=True)


RIDERS = (
    riding(
        draw_cyclist,
        Habitat.ROAD,
        Motion.DRIVE,
        0.34,
        1.29,
        (-0.7, -1.08, 0.72, 0.05),
        Look((60, 150, 130), (62, 70, 100)),
        "cyclist",
        "bicycle",
        "bike",
        "bicyclist",
        "person on a bicycle/",
    ),
    riding(
        draw_motorbike,
        Habitat.ROAD,
        Motion.DRIVE,
        0.3,
        1.38,
        (-0.8, -1.08, 0.85, 0.05),
        Look((214, 56, 50), (70, 72, 88)),
        "motorbike",
        "motorcycle",
        "motorcyclist",
        "biker",
        "scooter",
    ),
    riding(
        draw_horse_rider,
        Habitat.GROUND,
        Motion.RUN,
        0.42,
        1.24,
        (-0.85, -1.18, 0.75, 0.05),
        Look((70, 110, 160), (92, 74, 66)),
        "horse rider",
        "rider",
        "horseman/horsemen",
        "jockey",
        "knight on horseback/",
        "cowboy on a horse/",
    ),
    riding(
        draw_witch,
        Habitat.AIR,
        Motion.FLY,
        0.3,
        1.0,
        (-1.1, -0.85, 0.88, 0.55),
        Look((98, 70, 150), (250, 170, 60), (180, 214, 150), (200, 90, 50)),
        "witch",
        "witch on a broom/",
        "broomstick",
    ),
    riding(
        draw_santa,
        Habitat.AIR,
        Motion.FLY,
        0.34,
        0.9,
        (-1.2, -0.75, 1.5, 0.75),
        Look((214, 48, 50), WHITE),
        "santa",
        "santa claus",
        "sleigh",
        "father christmas",
    ),
)
