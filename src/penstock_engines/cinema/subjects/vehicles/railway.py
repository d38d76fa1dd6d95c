"""Vehicles on rails: the steam train, the modern train and the tram."""

import math

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.gait import fade, wave
from penstock_engines.cinema.subjects.subject import (
    BLACK,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
    lighten,
    plural_too,
)
from penstock_engines.cinema.subjects.vehicles.road_vehicles import GLASS, LAMP, draw_wheel

IRON: Colour = (54, 54, 64)
BRASS: Colour = (244, 196, 84)


def _carriage(brush: Brush, left: float, phase: float, look: Look) -> None:
    """Draw a coach 1.7 long with lit windows."""
    coach = brush.moved((left, 0.006 * wave(2 * phase, left)))
    coach.limb([(-0.1, -0.2), (1.8, -0.2)], [0.05, 0.05], IRON)
    coach.polygon([(0.0, -0.2), (0.0, -0.76), (1.7, -0.76), (1.7, -0.2)], look.accent)
    coach.polygon([(0.0, -0.2), (0.0, -0.34), (1.7, -0.34), (1.7, -0.2)], darken(look.accent, 0.22))
    coach.blob([(-0.05, -0.75), (0.1, -0.84), (0.85, -0.86), (1.6, -0.84), (1.75, -0.75)], darken(look.accent, 0.45))
    for index in range(5):
        x = 0.13 + 0.305 * index
        coach.polygon([(x, -0.68), (x + 0.22, -0.68), (x + 0.22, -0.44), (x, -0.44)], LAMP)
        coach.polygon([(x + 0.12, -0.68), (x + 0.18, -0.68), (x + 0.08, -0.44), (x + 0.02, -0.44)], lighten(LAMP, 0.6))
    for x in (0.26, 0.52, 1.18, 1.44):
        draw_wheel(brush, (left + x, -0.11), 0.11, 2 * phase)


def draw_train(brush: Brush, phase: float, look: Look) -> None:
    """Draw a steam engine, its tender and two coaches."""
    _carriage(brush, -3.55, phase, look)
    _carriage(brush, -1.72, phase, look)
    for index in range(7):
        puff = (index + phase) / 7
        size = 0.07 + 0.2 * puff
        brush.ellipse(
            (0.98 - 2.0 * puff, -1.12 - 0.4 * puff + 0.03 * wave(puff * 3)),
            (size * 1.25, size),
            (246, 244, 246),
            0.85 * fade(puff),
        )
    engine = brush.moved((0.0, 0.006 * wave(2 * phase)))
    engine.limb([(0.0, -0.22), (1.4, -0.22)], [0.07, 0.07], IRON)
    engine.polygon([(0.02, -0.22), (0.02, -0.94), (0.44, -0.94), (0.44, -0.22)], look.main)
    engine.polygon([(0.1, -0.86), (0.36, -0.86), (0.36, -0.6), (0.1, -0.6)], GLASS)
    engine.blob([(-0.06, -0.94), (0.02, -1.0), (0.24, -1.03), (0.46, -1.0), (0.52, -0.94)], darken(look.main, 0.4))
    boiler = [(0.4, -0.3), (0.4, -0.72), (1.3, -0.72), (1.38, -0.64), (1.38, -0.38), (1.3, -0.3)]
    engine.polygon(boiler, look.main)
    with engine.inside(boiler, straight=True):
        engine.polygon([(0.4, -0.42), (1.4, -0.42), (1.4, -0.3), (0.4, -0.3)], look.shade)
        engine.polygon([(0.4, -0.68), (1.4, -0.68), (1.4, -0.64), (0.4, -0.64)], look.light)
        for x in (0.62, 0.9, 1.16):
            engine.polygon([(x, -0.8), (x + 0.035, -0.8), (x + 0.035, -0.2), (x, -0.2)], BRASS)
    engine.polygon([(0.93, -0.7), (0.95, -0.9), (0.88, -1.06), (1.12, -1.06), (1.05, -0.9), (1.07, -0.7)], IRON)
    engine.limb([(0.88, -1.06), (1.12, -1.06)], [0.045, 0.045], BRASS)
    engine.ellipse((0.72, -0.74), (0.1, 0.12), BRASS)
    engine.ellipse((1.36, -0.68), (0.06, 0.065), LAMP)
    engine.polygon([(1.36, -0.26), (1.44, -0.26), (1.66, -0.03), (1.3, -0.03)], darken(look.accent, 0.1))
    for x in (1.4, 1.48, 1.56):
        engine.limb([(x - 0.03, -0.2 + (x - 1.4) * 0.6), (x, -0.05)], [0.014, 0.014], IRON)
    for x in (0.22, 0.62):
        draw_wheel(brush, (x, -0.2), 0.2, phase, spokes=8, rim=look.accent)
    for x in (0.98, 1.24):
        draw_wheel(brush, (x, -0.115), 0.115, 2 * phase)
    angle = 2 * math.pi * phase
    shift = (0.11 * math.cos(angle), 0.11 * math.sin(angle))
    brush.limb(
        [(0.22 + shift[0], -0.2 + shift[1]), (0.62 + shift[0], -0.2 + shift[1])], [0.045, 0.045], (190, 194, 204)
    )
    brush.limb([(0.62 + shift[0], -0.2 + shift[1]), (1.04 + shift[0] * 0.5, -0.24)], [0.035, 0.035], (190, 194, 204))


def draw_bullet_train(brush: Brush, phase: float, look: Look) -> None:
    """Draw a modern train with a long nose."""
    train = brush.moved((0.0, 0.004 * wave(2 * phase)))
    train.polygon([(-3.5, -0.14), (1.4, -0.14), (1.4, -0.06), (-3.5, -0.06)], IRON)
    shape = [
        (-3.6, -0.12),
        (-3.6, -0.96),
        (0.5, -0.96),
        (0.95, -0.9),
        (1.4, -0.66),
        (1.78, -0.32),
        (1.84, -0.2),
        (1.72, -0.12),
    ]
    train.polygon(shape, look.accent)
    with train.inside(shape, straight=True):
        train.polygon([(-4, -0.34), (2, -0.34), (2, 0), (-4, 0)], look.main)
        train.polygon([(-4, -0.4), (2, -0.4), (2, -0.37), (-4, -0.37)], look.main)
        train.polygon([(-4, -0.98), (2, -0.98), (2, -0.9), (-4, -0.9)], darken(look.accent, 0.12))
    train.polygon([(0.86, -0.8), (1.08, -0.74), (1.36, -0.56), (0.86, -0.56)], darken(GLASS, 0.5))
    for index in range(13):
        x = -3.4 + 0.31 * index
        if index not in {6, 12}:
            train.polygon([(x, -0.78), (x + 0.22, -0.78), (x + 0.22, -0.54), (x, -0.54)], darken(GLASS, 0.35))
    for x in (-1.52, 0.36):
        train.polygon([(x, -0.82), (x + 0.2, -0.82), (x + 0.2, -0.16), (x, -0.16)], darken(look.accent, 0.16))
    train.limb([(-1.58, -0.96), (-1.58, -0.12)], [0.03, 0.03], darken(look.accent, 0.35))
    train.ellipse((1.56, -0.38), (0.07, 0.03), LAMP, degrees=36)
    for x in (-3.2, -2.9, -1.95, -1.2, -0.1, 0.9, 1.2):
        draw_wheel(brush, (x, -0.08), 0.08, 2 * phase)


def draw_tram(brush: Brush, phase: float, look: Look) -> None:
    """Draw a city tram under its wire."""
    tram = brush.moved((0.0, 0.005 * wave(2 * phase)))
    tram.limb([(-0.2, -0.82), (0.04, -0.92), (-0.12, -1.02)], [0.022, 0.02, 0.016], IRON)
    tram.limb([(-0.26, -1.02), (0.04, -1.02)], [0.02, 0.02], IRON)
    tram.polygon([(-0.9, -0.16), (0.9, -0.16), (0.8, -0.07), (-0.8, -0.07)], IRON)
    body = [
        (-1.06, -0.14),
        (-1.1, -0.5),
        (-1.0, -0.8),
        (-0.6, -0.84),
        (0.6, -0.84),
        (1.0, -0.8),
        (1.1, -0.5),
        (1.06, -0.14),
        (0.0, -0.12),
    ]
    tram.blob(body, look.accent)
    with tram.inside(body):
        tram.polygon([(-2, -0.4), (2, -0.4), (2, 0), (-2, 0)], look.main)
        tram.polygon([(-2, -0.22), (2, -0.22), (2, 0), (-2, 0)], look.shade)
        tram.polygon([(-2, -1), (2, -1), (2, -0.76), (-2, -0.76)], look.main)
    for index in range(6):
        x = -0.94 + 0.32 * index
        tram.polygon([(x, -0.7), (x + 0.27, -0.7), (x + 0.27, -0.46), (x, -0.46)], GLASS)
        tram.polygon([(x + 0.14, -0.7), (x + 0.21, -0.7), (x + 0.1, -0.46), (x + 0.03, -0.46)], lighten(GLASS, 0.5))
    tram.ellipse((1.05, -0.3), (0.04, 0.055), LAMP)
    tram.polygon([(-0.3, -0.83), (0.3, -0.83), (0.24, -0.9), (-0.24, -0.9)], darken(look.main, 0.3))
    for x in (-0.62, -0.34, 0.34, 0.62):
        draw_wheel(brush, (x, -0.1), 0.1, 2 * phase)
    tram.limb([(0.98, -0.08), (1.12, -0.08)], [0.05, 0.05], BLACK)


RAILWAY = (
    Subject(
        name="train",
        words=plural_too("train", "locomotive", "steam train", "steam engine", "steam locomotive"),
        habitat=Habitat.RAIL,
        motion=Motion.DRIVE,
        size=0.26,
        stride=1.26,
        draw=draw_train,
        box=(-3.85, -1.85, 1.75, 0.05),
        look=Look((58, 110, 84), (196, 62, 54)),
    ),
    Subject(
        name="bullet train",
        words=plural_too("bullet train", "high-speed train", "express train", "subway", "metro", "monorail"),
        habitat=Habitat.RAIL,
        motion=Motion.DRIVE,
        size=0.22,
        stride=1.0,
        draw=draw_bullet_train,
        box=(-3.62, -1.04, 1.92, 0.05),
        look=Look((44, 96, 180), (246, 248, 252)),
    ),
    Subject(
        name="tram",
        words=plural_too("tram", "streetcar", "trolley", "cable car"),
        habitat=Habitat.RAIL,
        motion=Motion.DRIVE,
        size=0.28,
        stride=1.26,
        draw=draw_tram,
        box=(-1.2, -1.1, 1.2, 0.05),
        look=Look((206, 58, 52), (250, 240, 220)),
    ),
)
