"""How legs go: where a foot is at a phase of its step, and where the knee is then."""

import math

from penstock_engines.cinema.paint.brush import Point


def wave(phase: float, shift: float = 0.0) -> float:
    """From -1 to 1 and back once in a loop, 0 at its start."""
    return math.sin(2 * math.pi * (phase + shift))


def wing_lift(phase: float, side: int, glide: float = 0.15) -> float:
    """How high a wing is, from 1 to -1: near at side 1, far at -1. We look a little from above, so they differ."""
    high = glide + wave(phase) * (1 - glide)
    return high - 0.42 * side * math.sqrt(max(0.0, 1 - high * high))


def fade(share: float) -> float:
    """How much is seen of a puff or spark of this age: it comes quickly and goes slowly."""
    return min(1.0, 8 * share) * (1 - share)


def step(phase: float, reach: float, lift: float, *, ground_share: float = 0.6) -> Point:
    """A foot under its hip: it rests on the ground while it moves back, then swings forward through the air."""
    phase %= 1.0
    if phase < ground_share:
        return reach * (0.5 - phase / ground_share), 0.0
    swing = (phase - ground_share) / (1 - ground_share)
    return reach * (-0.5 + (1 - math.cos(math.pi * swing)) / 2), -lift * math.sin(math.pi * swing)


def knee(hip: Point, foot: Point, upper: float, lower: float, *, forward: bool) -> Point:
    """The joint between two bones; a leg that would be too long for them is stretched."""
    across, down = foot[0] - hip[0], foot[1] - hip[1]
    distance = max(math.hypot(across, down), 1e-6)
    share = (upper**2 - lower**2 + distance**2) / (2 * distance**2)
    bend = math.sqrt(max(upper**2 - (share * distance) ** 2, 0.0)) / distance
    if not forward:
        bend = -bend
    return hip[0] + across * share + down * bend, hip[1] + down * share - across * bend
