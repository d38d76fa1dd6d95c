"""Draw the sample picture of the console: a glazed vase on a plain ground, by sphere tracing.

`python tools/console/sample_picture.py` writes `console/public/sample-vase.png`.
"""

from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Numbers: TypeAlias = NDArray[np.float64]

PLACE = Path(__file__).parents[2] / "console" / "public" / "sample-vase.png"
SIDE = 512
SAMPLES = 2
"""Rays per pixel along each side."""
STEPS = 90
WALL = 0.035
EYE = np.array([0.0, 2.05, 6.2])
TARGET = np.array([0.0, 1.02, 0.0])
ZOOM = 3.75
MIDDLE, REACH = np.array([0.0, 1.06, 0.0]), 1.2
"""A sphere around the vase."""
LIGHT = np.array([-0.55, 0.75, 0.62])
GLAZE, CLAY = np.array([0.05, 0.36, 0.42]), np.array([0.80, 0.62, 0.45])
GROUND = np.array([0.955, 0.95, 0.94])
OUTLINE = np.array(
    [
        *(
            (0.0, 0.03),
            (0.40, 0.03),
            (0.46, 0.10),
            (0.60, 0.32),
            (0.72, 0.58),
            (0.76, 0.84),
            (0.72, 1.10),
            (0.58, 1.36),
        ),
        *((0.40, 1.58), (0.30, 1.76), (0.28, 1.90), (0.33, 2.02), (0.43, 2.10)),
    ]
)
"""Radius and height of the wall, from the middle of the foot to the rim."""


def smooth(points: Numbers, parts: int = 6) -> Numbers:
    """Return a Catmull-Rom curve through these points."""
    padded = np.vstack([points[0], points, points[-1]])
    at = np.linspace(0, 1, parts, endpoint=False)[:, None]
    pieces: list[Numbers] = []
    for a, b, c, d in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        pieces.append(
            0.5 * (2 * b + (c - a) * at + (2 * a - 5 * b + 4 * c - d) * at**2 + (3 * b - a - 3 * c + d) * at**3)
        )
    return np.vstack([*pieces, points[-1:]])


PROFILE = smooth(OUTLINE)


def distance(points: Numbers) -> Numbers:
    """Return the distance of points to the wall of the vase."""
    flat = np.stack([np.hypot(points[:, 0], points[:, 2]), points[:, 1]], 1)
    nearest = np.full(len(flat), np.inf)
    for start, end in pairwise(PROFILE):
        along = end - start
        share = np.clip((flat - start) @ along / (along @ along), 0, 1)
        nearest = np.minimum(nearest, np.sum((flat - start - share[:, None] * along) ** 2, 1))
    return np.sqrt(nearest) - WALL


def march(origins: Numbers, directions: Numbers) -> Numbers:
    """Return how far each ray goes until it meets the vase, or infinity."""
    to_middle = MIDDLE - origins
    ahead = np.sum(to_middle * directions, 1)
    misses = np.sum(to_middle**2, 1) - ahead**2 > REACH**2
    far = np.where(misses, np.inf, ahead - REACH)
    active = np.flatnonzero(~misses)
    for _ in range(STEPS):
        gap = distance(origins[active] + far[active, None] * directions[active])
        far[active] += gap * 0.9
        gone = far[active] > 9
        far[active[gone]] = np.inf
        active = active[(gap > 0.0004) & ~gone]
    far[active] = np.inf
    return far


def normals(points: Numbers) -> Numbers:
    """Return the outward direction of the wall at points on it."""
    step = 0.0015
    slope = np.stack([distance(points + step * axis) - distance(points - step * axis) for axis in np.eye(3)], 1)
    return slope / np.linalg.norm(slope, axis=1, keepdims=True)


def rays() -> Numbers:
    """Return the directions of all rays of the camera, row by row."""
    forward = TARGET - EYE
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    count = SIDE * SAMPLES
    across = (np.arange(count) + 0.5) / count * 2 - 1
    x, y = np.meshgrid(across, -across)
    found = ZOOM * forward + x.reshape(-1, 1) * right + y.reshape(-1, 1) * up
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def sky(directions: Numbers) -> Numbers:
    """Return the light of the studio from these directions: a bright window at the upper left, a soft dome."""
    dome = 0.28 + 0.30 * np.clip(directions[:, 1], 0, 1)
    across, up = (directions[:, 0] + 0.55) / 0.26, (directions[:, 1] - 0.48) / 0.30
    window = np.exp(-(across**4) - up**4) * (directions[:, 2] > 0)
    strip = np.exp(-(((directions[:, 0] - 0.80) / 0.10) ** 2)) * (directions[:, 2] > -0.4)
    return dome + 1.9 * window + 0.5 * strip


def shade_vase(points: Numbers, directions: Numbers) -> Numbers:
    """Return the colours of points of the vase: glazed down to a wavy line, bare clay below, dark inside."""
    outward = normals(points)
    light = LIGHT / np.linalg.norm(LIGHT)
    angle = np.arctan2(points[:, 0], points[:, 2])
    line = 0.50 + 0.05 * np.sin(5 * angle + 0.6) + 0.035 * np.sin(11 * angle + 2)
    glazed = 1 / (1 + np.exp((line - points[:, 1]) * 90))
    thick = np.clip((points[:, 1] - 0.5) / 1.6, 0, 1)[:, None]
    glaze = GLAZE * (1 - 0.35 * thick) + np.array([0.18, 0.42, 0.38]) * 0.35 * thick
    ring = 1 + 0.02 * np.sin(points[:, 1] * 70)
    base = np.where(glazed[:, None] > 0.5, glaze, CLAY * ring[:, None])
    lit = np.clip(outward @ light, 0, 1)
    ambient = 0.42 + 0.16 * outward[:, 1]
    inside = (np.sum(outward[:, [0, 2]] * points[:, [0, 2]], 1) < 0) & (points[:, 1] > 0.2)
    depth = np.where(inside, np.clip(1 - (2.12 - points[:, 1]) * 2.2, 0.05, 1), 1.0)
    near_ground = 0.55 + 0.45 * np.clip(points[:, 1] / 0.45, 0, 1)
    colour = base * (ambient * near_ground + 0.75 * lit)[:, None] * depth[:, None]
    facing = np.sum(-directions * outward, 1)
    mirrored = directions + 2 * facing[:, None] * outward
    share = (0.05 + 0.75 * (1 - np.clip(facing, 0, 1)) ** 5) * glazed * depth
    return colour + (share * sky(mirrored))[:, None]


def shade_ground(points: Numbers) -> Numbers:
    """Return the colours of the ground, dark under the vase. A cast shadow would be cut out as a part of it."""
    away = np.hypot(points[:, 0], points[:, 2])
    contact = 0.30 * np.exp(-(np.clip(away - 0.40, 0, None) ** 2) / 0.012)
    return GROUND * (1 - contact)[:, None]


def draw() -> Image.Image:
    """Return the picture."""
    directions = rays()
    origins = np.broadcast_to(EYE, directions.shape)
    far = march(origins, directions)
    colours = np.broadcast_to(GROUND, directions.shape).copy()
    falls = directions[:, 1] < 0
    reach = np.where(falls, -EYE[1] / np.where(falls, directions[:, 1], -1), np.inf)
    ground = np.isinf(far) & (reach < 14)
    colours[ground] = shade_ground(origins[ground] + reach[ground, None] * directions[ground])
    met = np.isfinite(far)
    colours[met] = shade_vase(origins[met] + far[met, None] * directions[met], directions[met])
    side = SIDE * SAMPLES
    square = np.clip(colours, 0, 1).reshape(side, side, 3) ** (1 / 1.25)
    pixels = square.reshape(SIDE, SAMPLES, SIDE, SAMPLES, 3).mean((1, 3))
    return Image.fromarray((pixels * 255 + 0.5).astype(np.uint8), "RGB")


if __name__ == "__main__":
    draw().save(PLACE, optimize=True)
    print(f"{PLACE.name}: {PLACE.stat().st_size} bytes")
