"""Small soft shapes in a frame: many dots at once, single pictures at subpixel positions, pools of light."""

import math
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.paint.brush import Colour, Picture
from penstock_engines.cinema.paint.layers import Frame, blend, take_apart

Numbers = NDArray[np.float32]
REACHES = (-1, 1, 2, 3, 5, 8, 12, 18, 25, 32)
"""Upper radii in pixels of the groups in which dots are drawn together."""
_ramp = np.linspace(-1, 1, 65, dtype=np.float32)
SPOT = np.clip(1 - np.hypot(_ramp[:, None], _ramp[None]), 0, 1) ** 2
"""Light that fades out from the middle of a small square."""


def splat(
    frame: Frame,
    x: Numbers,
    y: Numbers,
    radius: Numbers,
    colour: NDArray[np.float32],
    strength: Numbers,
    *,
    soft: float = 0.5,
    flat: float = 1.0,
    adds: bool = False,
) -> None:
    """Draw round dots (flat ones if `flat` < 1) of red, green, blue, over the frame or added to it."""
    for low, reach in pairwise(REACHES):
        chosen = (radius > low) & (radius <= reach) & (strength > 0.01)
        if chosen.any():
            parts = (x[chosen], y[chosen], radius[chosen], colour[chosen], strength[chosen])
            _splat_alike(frame, *parts, reach, soft, flat, adds=adds)


def _splat_alike(
    frame: Frame,
    x: Numbers,
    y: Numbers,
    radius: Numbers,
    colour: NDArray[np.float32],
    strength: Numbers,
    reach: int,
    soft: float,
    flat: float,
    *,
    adds: bool,
) -> None:
    height, width = frame.shape[:2]
    lines = math.ceil(reach * flat) + 1
    columns = np.floor(x).astype(np.int64)[:, None, None] + np.arange(-reach - 1, reach + 2)[None, None, :]
    rows = np.floor(y).astype(np.int64)[:, None, None] + np.arange(-lines, lines + 1)[None, :, None]
    away = np.hypot(columns - x[:, None, None], (rows - y[:, None, None]) / flat)
    edge = np.maximum(radius * soft, 0.7)[:, None, None]
    cover = np.clip((radius[:, None, None] + 0.35 - away) / edge, 0, 1) * strength[:, None, None]
    seen = (cover > 0.02) & (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    which, down, across = np.nonzero(seen)
    target = (rows[which, down, 0], columns[which, 0, across])
    share = cover[seen][:, None].astype(np.float32)
    paint = colour[which][:, ::-1]
    under = frame[target].astype(np.float32)
    mixed = np.minimum(under + paint * share, 255) if adds else under + (paint - under) * share
    frame[target] = mixed.astype(np.uint8)


def shine(frame: Frame, x: float, y: float, radius: float, colour: Colour, strength: float) -> None:
    """Add a pool of light."""
    size = max(2, round(radius * 2))
    left, top = round(x - radius), round(y - radius)
    first, last = max(0, top), min(frame.shape[0], top + size)
    start, end = max(0, left), min(frame.shape[1], left + size)
    if first >= last or start >= end or strength <= 0.01:
        return
    tone = np.array(colour[::-1], np.float32) * np.float32(strength)
    spot = np.clip(SPOT[..., None] * tone, 0, 255).astype(np.uint8)
    large = cv2.resize(spot, (size, size), interpolation=cv2.INTER_LINEAR)
    part = frame[first:last, start:end]
    cv2.add(part, large[first - top : last - top, start - left : end - left], dst=part)


def place_picture(
    picture: Picture,
    anchor: tuple[float, float],
    x: float,
    y: float,
    *,
    scale: float = 1.0,
    degrees: float = 0.0,
    flips: bool = False,
) -> tuple[Picture, int, int]:
    """Return a picture turned, scaled and moved so that its anchor falls on a point, and its corner in the frame."""
    turn = math.radians(degrees)
    across = -scale if flips else scale
    matrix = np.array(
        [[across * math.cos(turn), scale * math.sin(turn)], [-across * math.sin(turn), scale * math.cos(turn)]]
    )
    height, width = picture.shape[:2]
    corners = np.array([(0, 0), (width, 0), (0, height), (width, height)], np.float64) - np.array(anchor)
    spread = corners @ matrix.T + (x, y)
    left, top = (int(edge) for edge in np.floor(spread.min(axis=0)) - 1)
    right, bottom = (int(edge) for edge in np.ceil(spread.max(axis=0)) + 1)
    shift = np.array([x - left, y - top]) - matrix @ np.array(anchor)
    whole = np.concatenate([matrix, shift[:, None]], axis=1)
    flags = cv2.INTER_AREA if scale < 0.5 else cv2.INTER_LINEAR
    return np.asarray(cv2.warpAffine(picture, whole, (right - left, bottom - top), flags=flags), np.uint8), left, top


def lay_picture(frame: Frame, picture: Picture, left: int, top: int) -> None:
    """Lay a small picture over a frame at a whole pixel, cut at the frame's edges."""
    height, width = frame.shape[:2]
    x, y = max(0, left), max(0, top)
    right, bottom = min(width, left + picture.shape[1]), min(height, top + picture.shape[0])
    if x >= right or y >= bottom:
        return
    part = picture[y - top : bottom - top, x - left : right - left]
    blend(frame[y:bottom, x:right], *take_apart(part))
