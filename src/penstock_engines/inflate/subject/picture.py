"""Opens a JPEG, PNG or WebP of any mode as upright red, green, blue and alpha, shrunk to a useful size."""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from penstock_engines.product import Unable

MAX_PIXELS = 6000 * 6000
MAX_KEPT_PIXELS = 1280 * 1280  # the limit of the texture; more would only cost memory and time
MIN_KEPT_SIDE = 256
MIN_SIDE = 8
MAX_STRETCH = 400
FORMATS = ("JPEG", "PNG", "WEBP")


def open_picture(path: Path) -> NDArray[np.uint8]:
    """Return height x width x 4. A picture larger than `MAX_KEPT_PIXELS` is shrunk."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # sides are checked below, before decoding
            with Image.open(path, formats=FORMATS) as image:
                _check_sides(*image.size)
                image.draft("RGB", _kept_size(*image.size))
                image.load()
                upright = ImageOps.exif_transpose(image)
                small = _shrink(_to_eight_bits(upright))
                return np.asarray(_enlarge(small.convert("RGBA")), np.uint8)
    except UnidentifiedImageError as error:
        raise Unable("The file is not a JPEG, PNG or WebP picture.") from error
    except Image.DecompressionBombError as error:
        raise Unable(f"The picture has too many pixels: at most {MAX_PIXELS} are allowed.") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise Unable("The picture is damaged and cannot be opened.") from error


def _check_sides(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Unable(f"The picture has {width} x {height} pixels: at most {MAX_PIXELS} are allowed.")
    if min(width, height) < MIN_SIDE:
        raise Unable(f"The picture has {width} x {height} pixels: each side must have at least {MIN_SIDE}.")
    if max(width, height) > MAX_STRETCH * min(width, height):
        raise Unable(f"The picture is too narrow: one side may be at most {MAX_STRETCH} times the other.")


def _kept_size(width: int, height: int) -> tuple[int, int]:
    scale = min(1.0, (MAX_KEPT_PIXELS / (width * height)) ** 0.5)
    return max(MIN_SIDE, round(width * scale)), max(MIN_SIDE, round(height * scale))


def _shrink(image: Image.Image) -> Image.Image:
    size = _kept_size(*image.size)
    if size == image.size:
        return image
    if image.mode in {"P", "1", "PA"} or "transparency" in image.info:
        image = image.convert("RGBA")  # these modes cannot be averaged
    return image.resize(size, Image.Resampling.BOX, reducing_gap=2.0)


def _enlarge(image: Image.Image) -> Image.Image:
    """Enlarge a tiny picture, whose pixels would show as steps in the silhouette."""
    factor = MIN_KEPT_SIDE / max(image.size)
    if factor <= 1:
        return image
    size = (round(image.width * factor), round(image.height * factor))
    return image.resize(size, Image.Resampling.BICUBIC)


def _to_eight_bits(image: Image.Image) -> Image.Image:
    """Scale 16 bits to 8. Pillow would clip them at 255, and cannot average them."""
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image)
    grey = Image.fromarray(np.clip(values >> 8, 0, 255).astype(np.uint8))
    clear = image.info.get("transparency")
    if clear is None:
        return grey
    return Image.merge("LA", (grey, Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8))))
