"""Writes pictures: PNG, JPEG or WebP."""

from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SUFFIXES: Final = MappingProxyType({"png": ".png", "jpeg": ".jpg", "webp": ".webp"})
FINE, COARSE = 92, 75
"""Quality of JPEG and WebP: as a rule, and where the caller asks for low quality."""


def write_picture(picture: NDArray[np.uint8], path: Path, *, coarse: bool = False) -> None:
    """Write blue, green and red, or with a premultiplied alpha, in the format of the path's suffix."""
    quality = COARSE if coarse else FINE
    options: dict[str, dict[str, Any]] = {
        ".png": {"compress_level": 6},
        ".jpg": {"quality": quality, "subsampling": 0},
        ".webp": {"quality": quality, "method": 4, "exact": False},
    }
    Image.fromarray(_to_red_first(picture)).save(path, **options[path.suffix])


def _to_red_first(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return red, green, blue and a straight alpha, if there is one."""
    if picture.shape[2] == 3:
        return np.ascontiguousarray(picture[..., ::-1])
    alpha = picture[..., 3:].astype(np.float32)
    plain = picture[..., 2::-1].astype(np.float32) * 255 / np.maximum(alpha, 1)
    return np.concatenate([np.clip(plain, 0, 255), alpha], axis=2).round().astype(np.uint8)
