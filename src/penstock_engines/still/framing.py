"""Cuts a picture to the size of a film, around its subject."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

MOSTLY = 0.98
"""Share of a picture that is opaque, below which its subject counts as cut out."""


@dataclass(frozen=True, slots=True)
class Framed:
    """A picture in the size of a film: blue, green, red, and each pixel's share in the subject."""

    picture: NDArray[np.uint8]
    mask: NDArray[np.float32]


def choose_size(picture: NDArray[np.uint8], short_side: int) -> tuple[int, int]:
    """Return an even width and height with the picture's ratio, which is limited to what players show well."""
    height, width = picture.shape[:2]
    ratio = min(21 / 9, max(9 / 21, width / height))
    if ratio >= 1:
        return round(short_side * ratio / 2) * 2, short_side
    return short_side, round(short_side / ratio / 2) * 2


def frame(picture: NDArray[np.uint8], mask: NDArray[np.float32], width: int, height: int) -> Framed:
    """Cut a picture (red, green, blue, alpha) to a ratio with its subject inside, and scale it."""
    if float(np.mean(picture[..., 3] >= 128)) < MOSTLY:
        picture, mask = _widen(picture, mask, width / height)
    opaque = _lay_on_ground(picture)
    left, top, wide, tall = _choose_window(mask, width / height)
    size = (width, height)
    part = np.ascontiguousarray(opaque[top : top + tall, left : left + wide])
    shrinks = wide > width
    scaled = cv2.resize(part, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
    share = cv2.resize(mask[top : top + tall, left : left + wide], size, interpolation=cv2.INTER_LINEAR)
    return Framed(np.asarray(scaled, np.uint8), np.asarray(share, np.float32))


def _widen(
    picture: NDArray[np.uint8], mask: NDArray[np.float32], ratio: float
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Add clear ground around a cut-out subject, until the picture has a ratio."""
    height, width = mask.shape
    across, down = max(0, round(height * ratio) - width), max(0, round(width / ratio) - height)
    sides = ((down // 2, down - down // 2), (across // 2, across - across // 2))
    return np.pad(picture, (*sides, (0, 0))), np.pad(mask, sides)


def _lay_on_ground(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return blue, green, red. What is transparent becomes a soft grey that is darker below."""
    cover = picture[..., 3:].astype(np.float32) / 255
    ground = np.linspace(236, 196, picture.shape[0], dtype=np.float32)[:, None, None]
    return (picture[..., 2::-1] * cover + ground * (1 - cover)).round().astype(np.uint8)


def _choose_window(mask: NDArray[np.float32], ratio: float) -> tuple[int, int, int, int]:
    """Return left, top, width and height of the largest part with a ratio, around the middle of the subject."""
    height, width = mask.shape
    wide, tall = min(width, round(height * ratio)), min(height, round(width / ratio))
    moments = cv2.moments(mask)
    weight = moments["m00"]
    x, y = (moments["m10"] / weight, moments["m01"] / weight) if weight > 0 else (width / 2, height / 2)
    left, top = round(x - wide / 2), round(y - tall / 2)
    return min(max(0, left), width - wide), min(max(0, top), height - tall), max(1, wide), max(1, tall)
