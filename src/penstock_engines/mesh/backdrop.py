"""The ground and the background that a model stands before."""

import re
from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.raster import rasterise
from penstock_engines.mesh.solid import Floats, Solid
from penstock_engines.product import Unable

COLOURS: Final = {
    "studio": (0xE6, 0xE9, 0xEE),
    "white": (0xFF, 0xFF, 0xFF),
    "grey": (0x9A, 0xA0, 0xA8),
    "black": (0x0E, 0x0F, 0x12),
}
"""Red, green, blue by name."""
WRITTEN: Final = re.compile(r"#[0-9a-fA-F]{6}")
SHADOW_SIDE: Final = 160
REACH: Final = 1.6
"""Half the side of the ground that the shadow falls on, in radii of the model."""
CONTACT: Final = 0.1
"""Height above the ground, in radii, at which a shadow fades."""
MAX_SHADOW_FACES: Final = 400_000


def read_colour(text: str) -> tuple[int, int, int]:
    """Return red, green, blue of a name or of `#rrggbb`."""
    if WRITTEN.fullmatch(text):
        red, green, blue = bytes.fromhex(text[1:])
        return red, green, blue
    if text not in COLOURS:
        raise Unable(f"The background `{text}` is unknown: use {', '.join(COLOURS)} or `#rrggbb`.")
    return COLOURS[text]


def paint_backdrop(colour: Sequence[int], width: int, height: int, horizon: float) -> NDArray[np.float32]:
    """Return a wall and a ground of one colour, lit from above, in its channels. The horizon is a share."""
    across = np.linspace(-1, 1, width, dtype=np.float32)[None, :] * np.float32(width / height)
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    pool = np.exp(-(np.square(across / 1.15) + np.square((down - np.float32(horizon)) / 0.34)))
    wall = 0.97 - 0.06 * np.square(np.clip((down - 0.35) / 0.65, -1, 1)) - 0.03 * np.square(across)
    light = np.clip(wall + 0.09 * pool, 0, 1.06)
    scene = np.array(colour, np.float32) * light[..., None]
    if max(colour) < 64:  # on a dark ground the pool of light is what shows it
        scene += np.float32(22) * pool[..., None]
    return np.clip(scene, 0, 255).astype(np.float32)


def find_shadow(solid: Solid, points: Floats) -> NDArray[np.float32]:
    """Return how dark the ground is, seen from above. `points` are in radii, with the ground at their lowest."""
    low = float(points[:, 1].min())
    flat = (points[:, [0, 2]] / REACH + 1) * (SHADOW_SIDE / 2)
    step = -(-len(solid.faces) // MAX_SHADOW_FACES)
    faces = solid.faces[::step]
    corners = flat[faces]
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    faces = np.where((area < 0)[:, None], faces, faces[:, ::-1])[np.abs(area) > 1e-6]
    near = np.zeros(SHADOW_SIDE * SHADOW_SIDE, np.float32)
    if len(faces):
        fragments = rasterise(flat[faces], -points[faces, 1], SHADOW_SIDE, SHADOW_SIDE)
        above = -fragments.nearness - low
        near[fragments.pixels] = 0.8 * np.exp(-above / CONTACT) + 0.4 * np.exp(-above / 0.8)
    picture = near.reshape(SHADOW_SIDE, SHADOW_SIDE)
    soft = 0.75 * cv2.GaussianBlur(picture, (0, 0), 1.5) + 0.6 * cv2.GaussianBlur(picture, (0, 0), 7.0)
    # At the edge it fades, so that the square of the ground is not seen.
    away = np.linspace(-1, 1, SHADOW_SIDE)
    fade = np.clip((1 - np.hypot(away[:, None], away[None, :])) / 0.3, 0, 1)
    return (soft * fade).astype(np.float32)
