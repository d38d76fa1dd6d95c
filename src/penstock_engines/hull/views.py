"""Opens the pictures of a subject's sides, each cut to the subject's outline."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.subject.mask import cut_out
from penstock_engines.inflate.subject.picture import open_picture
from penstock_engines.product import Unable

SIDES: Final = ("front", "left", "back", "right")
OPPOSITE: Final = {"front": "back", "back": "front", "left": "right", "right": "left"}


@dataclass(frozen=True, slots=True)
class View:
    """A picture of one side, red, green, blue, and the outline in it. Both end where the subject ends."""

    colours: NDArray[np.uint8]
    mask: NDArray[np.float32]

    @property
    def ratio(self) -> float:
        """Return width by height of the subject."""
        return self.mask.shape[1] / self.mask.shape[0]

    def mirrored(self) -> "View":
        """Return the view as it would be from the opposite side."""
        return View(np.ascontiguousarray(self.colours[:, ::-1]), np.ascontiguousarray(self.mask[:, ::-1]))

    def outline(self, width: int, height: int) -> NDArray[np.bool_]:
        """Return the outline on a grid."""
        small = cv2.resize(self.mask, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(small) > 0.5


def open_view(path: Path, side: str, weights: Path) -> View:
    """Return the subject in a picture of a side."""
    picture = open_picture(path)
    cutout = cut_out(picture, weights)
    if cutout.source == "frame":
        raise Unable(
            f"No subject could be separated from its background in the picture `{side}`: give pictures with a plain or "
            "a transparent background."
        )
    left, top, width, height = cv2.boundingRect((cutout.mask > 0.5).astype(np.uint8))
    if min(width, height) < 8:
        raise Unable(f"The subject in the picture `{side}` is too small: it has {width} x {height} pixels.")
    part = (slice(top, top + height), slice(left, left + width))
    return View(np.ascontiguousarray(picture[..., :3][part]), np.ascontiguousarray(cutout.mask[part]))


def find(views: Mapping[str, View], side: str) -> View | None:
    """Return a side; where it is missing, the mirrored opposite one."""
    if side in views:
        return views[side]
    other = views.get(OPPOSITE[side])
    return None if other is None else other.mirrored()
