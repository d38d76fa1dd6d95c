"""Land: hills, mountains with facets and snow, and plain gradients that fill a sheet."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.paint.brush import Colour, Picture
from penstock_engines.cinema.paint.layers import Sheet
from penstock_engines.cinema.paint.patterns import Randomness, make_noise, soften

Line = NDArray[np.float32]
"""The y of a ridge at each column of a sheet."""


def paint_hill(
    sheet: Sheet, line: Line, colours: Sequence[Colour], *, reach: float, random: Randomness, grain: float = 10.0
) -> None:
    """Fill below a line with these colours in turn, from the line to `reach` units below it."""
    first = sheet.row(float(line.min()) - 2 / sheet.unit)
    rows = sheet.rows[first:, None]
    below = rows - line[None]
    cover = np.clip(below * (sheet.unit * 255) + 127.5, 0, 255).astype(np.uint8)
    index = below * np.float32(255 / reach)
    index += _speckle(random, below.shape, grain)
    index8 = np.clip(index, 0, 255).astype(np.uint8)
    colour = cv2.applyColorMap(index8, spread_colours(colours))
    _lay(sheet.picture[first:], np.asarray(colour, np.uint8), cover)


def paint_mountains(
    sheet: Sheet,
    line: Line,
    *,
    lit: Colour,
    shadow: Colour,
    foot: Colour,
    random: Randomness,
    snow: tuple[Colour, Colour] | None = None,
    snow_depth: float = 0.1,
    reach: float = 0.4,
) -> None:
    """Fill below a line with facets, lit from the right."""
    first = sheet.row(float(line.min()) - 2 / sheet.unit)
    last = sheet.row(float(line.max()) + reach)
    sheet.picture[last:] = (*foot[::-1], 255)
    below = sheet.rows[first:last, None] - line[None]
    shape = below.shape
    rough = _tile(make_noise(random, 256, 512, (5, 9), 5), shape) - np.float32(0.5)
    calm = np.asarray(cv2.GaussianBlur(line[None], (0, 0), 2 + sheet.unit * 0.006), np.float32)[0]
    slope = np.asarray(np.gradient(calm), np.float32)
    slope /= np.abs(slope).max() + np.float32(1e-6)
    here = np.arange(shape[1], dtype=np.float32)[None]
    shift = (here + rough * np.maximum(below, 0) * np.float32(sheet.unit * 2.4)).astype(np.int32)
    face = slope[np.clip(shift, 0, shape[1] - 1)]
    bright = soften(face + rough * 0.55, -0.16, 0.2)[..., None]
    low, high = _bgr(shadow), _bgr(lit)
    colour = low + (high - low) * bright
    if snow is not None:
        cap = soften(snow_depth - below + rough * snow_depth * 2.2, 0.0, 0.012)[..., None]
        white = _bgr(snow[1]) + (_bgr(snow[0]) - _bgr(snow[1])) * bright
        colour += (white - colour) * cap
    fade = np.clip(below / reach, 0, 1)[..., None] ** 1.3
    colour += (_bgr(foot) - colour) * fade
    colour += random.random((*shape, 1), np.float32) - np.float32(0.5)
    cover = np.clip(below * (sheet.unit * 255) + 127.5, 0, 255).astype(np.uint8)
    _lay(sheet.picture[first:last], np.clip(colour, 0, 255).astype(np.uint8), cover)


def paint_wash(sheet: Sheet, colours: Sequence[Colour], top: float, bottom: float, random: Randomness) -> None:
    """Fill the whole sheet with a gradient between two heights."""
    share = np.clip((sheet.rows - top) / (bottom - top), 0, 1)[:, None] * 255
    height, width = sheet.picture.shape[:2]
    index = np.clip(share + _speckle(random, (height, width), 3.0), 0, 255).astype(np.uint8)
    sheet.picture[..., :3] = cv2.applyColorMap(index, spread_colours(colours))
    sheet.picture[..., 3] = 255


def spread_colours(colours: Sequence[Colour]) -> NDArray[np.uint8]:
    """Return 256 colours that run evenly through the given ones, blue first."""
    stops = np.linspace(0, 255, len(colours))
    channels = [np.interp(np.arange(256), stops, [colour[part] for colour in colours]) for part in (2, 1, 0)]
    return np.round(np.stack(channels, axis=1)).astype(np.uint8)[:, None, :]


def add_glow(sheet: Sheet, centre: tuple[float, float], radius: float, colour: Colour, strength: float = 1.0) -> None:
    """Paint light that adds to the background and covers nothing."""
    x, y = (centre[0] - sheet.left) * sheet.unit, (centre[1] - sheet.top) * sheet.unit
    reach = radius * sheet.unit
    height, width = sheet.picture.shape[:2]
    left, right = max(0, int(x - reach)), min(width, int(x + reach) + 2)
    top, bottom = max(0, int(y - reach)), min(height, int(y + reach) + 2)
    if left >= right or top >= bottom or strength <= 0:
        return
    rows, columns = np.ogrid[top:bottom, left:right]
    near = np.clip(1 - np.hypot(columns - x, rows - y) / reach, 0, 1) ** 2 * strength
    light = (near[..., None] * _bgr(colour)).astype(np.uint8)
    part = sheet.picture[top:bottom, left:right, :3]
    part[:] = cv2.add(np.ascontiguousarray(part), light)


def _bgr(colour: Colour) -> NDArray[np.float32]:
    return np.array(colour[::-1], np.float32)


def _speckle(random: Randomness, shape: tuple[int, ...], amount: float) -> NDArray[np.float32]:
    """Return soft blotches and a fine grain that keeps gradients from banding."""
    soft = make_noise(random, 256, 512, (12, 24), 3) - np.float32(0.5)
    fine = random.random((256, 512), np.float32) - np.float32(0.5)
    return _tile((soft * (amount * 2.4) + fine * (1.6 + amount * 0.3)).astype(np.float32), shape)


def _tile(field: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
    down, across = -(-shape[0] // field.shape[0]), -(-shape[1] // field.shape[1])
    return np.tile(field, (down, across))[: shape[0], : shape[1]]


def _lay(picture: Picture, colour: NDArray[np.uint8], cover: NDArray[np.uint8]) -> None:
    """Lay a colour over a part of a premultiplied picture."""
    over = cv2.merge([colour[..., 0], colour[..., 1], colour[..., 2], np.full_like(cover, 255)])
    weight = cv2.cvtColor(cover, cv2.COLOR_GRAY2BGRA)
    weight[..., 3] = cover
    rest = cv2.multiply(picture, cv2.bitwise_not(weight), scale=1 / 255)
    picture[:] = cv2.add(rest, cv2.multiply(over, weight, scale=1 / 255))
