"""A picture with depth: its subject stands before a ground that comes nearer towards the lower edge."""

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Shot
from penstock_engines.cinema.paint.layers import blend, take_apart
from penstock_engines.still.framing import Framed

FARTHEST, NEAREST = 0.12, 0.6
"""Depth of the ground at the upper and at the lower edge. 0 is infinity, 1 near."""
SUBJECT, ROUND = 0.62, 0.14
"""Depth of the subject's outline, and how much nearer its middle is."""
FILL_SIDE = 160
"""Longer side at which the ground behind the subject is filled in. It is soft anyway."""


class Relief:
    """A picture that can be seen from slightly different places."""

    def __init__(self, framed: Framed, *, has_subject: bool) -> None:
        self._height, self._width = framed.mask.shape
        rows = np.linspace(0, 1, self._height, dtype=np.float32)
        self._ground_depth = (FARTHEST + (NEAREST - FARTHEST) * rows**1.3)[:, None]
        self._x = np.arange(self._width, dtype=np.float32)[None] - np.float32((self._width - 1) / 2)
        self._y = np.arange(self._height, dtype=np.float32)[:, None] - np.float32((self._height - 1) / 2)
        self._ground = framed.picture
        self._subject: NDArray[np.uint8] | None = None
        if has_subject:
            cover = np.clip(framed.mask, 0, 1)
            self._ground = _fill(framed.picture, cover)
            colours = framed.picture * cover[..., None]
            self._subject = np.concatenate([colours, cover[..., None] * 255], axis=2).round().astype(np.uint8)
            self._subject_depth = _bulge(cover)
            left, top, wide, tall = cv2.boundingRect((cover > 0.004).astype(np.uint8))
            self._box = (left, top, left + wide, top + tall)

    def see(self, shot: Shot) -> NDArray[np.uint8]:
        """Return the picture as a camera sees it. The shot (0, 0, 0) shows the picture itself."""
        picture = self._move(self._ground, self._ground_depth, shot, cv2.BORDER_REFLECT_101)
        if self._subject is None:
            return picture
        part = self._find_part(shot)
        moved = self._move(self._subject, self._subject_depth, shot, cv2.BORDER_REPLICATE, part)
        blend(picture[part], *take_apart(moved))
        return picture

    def _find_part(self, shot: Shot) -> tuple[slice, slice]:
        """Return the rows and columns where the subject can be seen from a position."""
        left, top, right, bottom = self._box
        unit, reach = min(self._height, self._width * 4 / 3), SUBJECT + ROUND
        scale = self._find_scale(shot) * (1 + abs(shot.near) * reach)
        aside, down = abs(shot.right) * unit * reach * scale + 2, abs(shot.up) * unit * reach * scale + 2
        half_x, half_y = self._width / 2, self._height / 2
        first, last = (
            half_x + min(left - half_x, (left - half_x) * scale),
            half_x + max(right - half_x, (right - half_x) * scale),
        )
        high, low = (
            half_y + min(top - half_y, (top - half_y) * scale),
            half_y + max(bottom - half_y, (bottom - half_y) * scale),
        )
        return (
            slice(max(0, int(high - down)), min(self._height, int(low + down) + 1)),
            slice(max(0, int(first - aside)), min(self._width, int(last + aside) + 1)),
        )

    def _find_scale(self, shot: Shot) -> float:
        """Return how much nearer a camera comes that moves aside, so that it never sees beyond the edges."""
        unit = min(self._height, self._width * 4 / 3)
        return 1 + 2 * NEAREST * max(abs(shot.right) * unit / self._width, abs(shot.up) * unit / self._height)

    def _move(
        self,
        picture: NDArray[np.uint8],
        depth: NDArray[np.float32],
        shot: Shot,
        border: int,
        part: tuple[slice, slice] = (slice(None), slice(None)),
    ) -> NDArray[np.uint8]:
        rows, columns = part
        near = depth[rows, columns if depth.shape[1] > 1 else slice(None)]
        unit = np.float32(min(self._height, self._width * 4 / 3))
        factor = 1 / (np.float32(self._find_scale(shot)) * (1 + np.float32(shot.near) * near))
        x = (self._x[:, columns] + np.float32(shot.right) * unit * near) * factor + np.float32((self._width - 1) / 2)
        y = (self._y[rows] - np.float32(shot.up) * unit * near) * factor + np.float32((self._height - 1) / 2)
        whole = (self._y[rows].shape[0], self._x[:, columns].shape[1])
        across, down = np.ascontiguousarray(np.broadcast_to(x, whole)), np.ascontiguousarray(np.broadcast_to(y, whole))
        return np.asarray(cv2.remap(picture, across, down, cv2.INTER_LINEAR, borderMode=border), np.uint8)


def _fill(picture: NDArray[np.uint8], cover: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the picture with its surroundings drawn on, softly, behind the subject."""
    height, width = cover.shape
    reach = max(3, round(0.02 * max(height, width))) | 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (reach, reach))
    hidden = np.asarray(cv2.dilate((cover > 0.02).astype(np.uint8) * 255, disc), np.uint8)
    scale = FILL_SIDE / max(height, width)
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    small, hole = cv2.resize(picture, size, interpolation=cv2.INTER_AREA), cv2.resize(hidden, size)
    filled = cv2.inpaint(small, (hole > 0).astype(np.uint8), 4, cv2.INPAINT_TELEA)
    filled = np.where(hole[..., None] > 0, cv2.GaussianBlur(filled, (0, 0), 2.0), filled)
    large = cv2.resize(filled.astype(np.uint8), (width, height), interpolation=cv2.INTER_CUBIC)
    soft = cv2.GaussianBlur(hidden, (0, 0), reach / 3).astype(np.float32)[..., None] / 255
    soft = np.maximum(soft, (hidden[..., None] > 0) * np.float32(0.999) * (cover[..., None] > 0.02))
    return (picture * (1 - soft) + large * soft).round().clip(0, 255).astype(np.uint8)


def _bulge(cover: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the depth of a subject that is nearest in its middle, smooth also beyond its outline."""
    small = cv2.resize(cover, (160, 160), interpolation=cv2.INTER_AREA)
    inside = cv2.distanceTransform((small > 0.5).astype(np.uint8), cv2.DIST_L2, 3)
    high = np.sqrt(inside / max(1.0, float(inside.max())))
    soft = cv2.GaussianBlur(high, (0, 0), 6)
    size = (cover.shape[1], cover.shape[0])
    return (SUBJECT + ROUND * cv2.resize(soft, size, interpolation=cv2.INTER_LINEAR)).astype(np.float32)
