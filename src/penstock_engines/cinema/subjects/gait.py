"""The movement of legs and wings: the position of a foot at a phase of its step, and of the knee."""

import math

from penstock_engines.cinema.paint.brush import Point


def wave(phase: float, shift: float = 0.0) -> float:
    """Return a value that goes from -1 to 1 and back once in a loop, 0 at its start."""
    return math.sin(2 * math.pi * (phase + shift))


def wing_lift(phase: float, side: int, glide: float = 0.15) -> float:
    """Return a wing's height, from 1 to -1. Near (side 1) and far (-1) differ, as we look from slightly above."""
    high = glide + wave(phase) * (1 - glide)
    return high - 0.42 * side * math.sqrt(max(0.0, 1 - high * high))


def fade(share: float) -> float:
    """Return the visibility of a puff or spark of this age, which appears quickly and fades slowly."""
    return min(1.0, 8 * share) * (1 - share)


def step(phase: float, reach: float, lift: float, *, ground_share: float = 0.6) -> Point:
    """Return a foot's position under its hip: it moves back on the ground, then swings forward through the air."""
    phase %= 1.0
    if phase < ground_share:
        return reach * (0.5 - phase / ground_share), 0.0
    swing = (phase - ground_share) / (1 - ground_share)
    return reach * (-0.5 + (1 - math.cos(math.pi * swing)) / 2), -lift * math.sin(math.pi * swing)


def knee(hip: Point, foot: Point, upper: float, lower: float, *, forward: bool) -> Point:
    """Return the joint between two bones. A leg that is too long for them is stretched."""
    across, down = foot[0] - hip[0], foot[1] - hip[1]
    distance = max(math.hypot(across, down), 1e-6)
    share = (upper**2 - lower**2 + distance**2) / (2 * distance**2)
    bend = math.sqrt(max(upper**2 - (share * distance) ** 2, 0.0)) / distance
    if not forward:
        bend = -bend
    return hip[0] + across * share + down * bend, hip[1] + down * share - across * bend
