"""The sky: a gradient with sun or moon, stars that twinkle and clouds that drift."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Moment, View
from penstock_engines.cinema.paint.brush import Colour, mix
from penstock_engines.cinema.paint.layers import Frame, Plane
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.patterns import Randomness, make_noise, soften

HALF = 2
"""Factor by which the soft sky is painted smaller and then enlarged."""


@dataclass(frozen=True, slots=True)
class Bank:
    """A band of clouds, twice as wide as the sky, that loops. It is premultiplied and at half size."""

    picture: NDArray[np.uint8]
    top: int
    width: int
    speed: float


@dataclass(frozen=True, slots=True)
class Stars:
    """Positions, brightness and twinkling of the stars."""

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    colour: NDArray[np.float32]
    rhythm: NDArray[np.float32]
    spread: NDArray[np.float32]


class Sky(Plane):
    """The sky, from the top of the frame to somewhat below the horizon."""

    def __init__(
        self, view: View, light: Light, random: Randomness, *, sun_x: float, stars_everywhere: bool = False
    ) -> None:
        self._view = view
        self._light = light
        rows = view.height if stars_everywhere else min(view.height, view.horizon + view.height // 6)
        self._size = (-(-view.width // HALF), -(-rows // HALF))
        self._sun = (sun_x * view.width, view.horizon * (1 - light.sun_height))
        self._base = self._paint_base(random)
        self._banks = _gather_clouds(view, light, random, self._size)
        self._stars = _scatter_stars(view, light, random, rows)

    @property
    def sun(self) -> tuple[float, float]:
        """The position of sun or moon in the frame."""
        return self._sun

    def draw(self, frame: Frame, moment: Moment) -> None:
        """Compose the half-size sky and enlarge it."""
        rows = min(self._base.shape[0], -(-frame.shape[0] // HALF) + 1)
        small = self._base[:rows].copy()
        for bank in self._banks:
            _drift(small, bank, moment.seconds)
        large = cv2.resize(small, (small.shape[1] * HALF, rows * HALF), interpolation=cv2.INTER_LINEAR)
        height = min(frame.shape[0], rows * HALF)
        cv2.cvtColor(large[:height, : frame.shape[1]], cv2.COLOR_BGRA2BGR, dst=frame[:height])
        if height < frame.shape[0]:
            frame[height:] = self._base[-1, :1, :3]
        self._twinkle(frame, small, moment.seconds)

    def _twinkle(self, frame: Frame, small: NDArray[np.uint8], seconds: float) -> None:
        stars = self._stars
        seen = stars.y < min(frame.shape[0], small.shape[0] * HALF)
        if not seen.any():
            return
        y, x = stars.y[seen], stars.x[seen]
        # The fourth channel holds the share of sky that the clouds leave clear.
        clear = small[y // HALF, x // HALF, 3].astype(np.float32) / 255
        glow = 0.72 + 0.28 * np.sin(seconds * stars.rhythm[seen] + stars.spread[seen])
        lit = frame[y, x] + stars.colour[seen] * (clear**3 * glow)[:, None]
        frame[y, x] = np.minimum(lit, 255).astype(np.uint8)

    def _paint_base(self, random: Randomness) -> NDArray[np.uint8]:
        width, height = self._size
        light, horizon = self._light, self._view.horizon / HALF
        share = np.clip(np.arange(height, dtype=np.float32) / horizon, 0, 1)
        stops = [0, 0.55, 0.9, 1.0]
        colours = [light.zenith, light.middle, mix(light.middle, light.horizon, 0.75), light.horizon]
        columns = [np.interp(share, stops, [colour[part] for colour in colours]) for part in (2, 1, 0)]
        sky = np.repeat(np.stack(columns, axis=1)[:, None, :], width, axis=1).astype(np.float32)
        sky += self._paint_sun(height, width, sky)
        if light.stars > 0.4:
            sky += _paint_galaxy(random, height, width)[..., None] * np.array([46, 32, 34], np.float32) * light.stars
        sky += random.random((height, width, 1), np.float32) - 0.5
        opaque = np.full((height, width, 1), 255, np.float32)
        return np.clip(np.concatenate([sky, opaque], axis=2) + 0.5, 0, 255).astype(np.uint8)

    def _paint_sun(self, height: int, width: int, sky: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a disc and its bloom, to be added to the sky."""
        light = self._light
        x, y = self._sun[0] / HALF, self._sun[1] / HALF
        unit = self._view.unit / HALF
        radius = unit * (0.052 if light.darkness < 0.5 else 0.038)
        rows, columns = np.ogrid[:height, :width]
        distance = np.hypot(columns - x, rows - y).astype(np.float32)
        colour = np.array(light.sun[::-1], np.float32)
        power = light.shine * (1 - 0.55 * light.darkness)
        disc = np.clip(radius - distance + 0.5, 0, 1) * min(1.0, light.shine * 1.2)
        if light.darkness >= 0.5:
            disc *= _paint_moon(rows, columns, x, y, radius)
        beyond = np.maximum(distance - radius, 0)
        bloom = np.exp(-beyond / (unit * 0.34)) * 0.4 + np.exp(-beyond / (unit * 0.07)) * 0.4
        glow = (bloom * power)[..., None] * colour * (1 - sky / 255 * 0.55)
        body = colour if light.darkness >= 0.5 else colour * 0.4 + 153
        added = glow * (1 - disc[..., None]) + disc[..., None] * np.maximum(body - sky, 0)
        return added.astype(np.float32)


def _paint_moon(
    rows: NDArray[np.int64], columns: NDArray[np.int64], x: float, y: float, radius: float
) -> NDArray[np.float32]:
    """Darken the seas of the moon."""
    shade = np.ones(np.broadcast_shapes(rows.shape, columns.shape), np.float32)
    for right, down, size in ((-0.3, -0.25, 0.35), (0.25, -0.1, 0.26), (-0.05, 0.35, 0.3), (0.4, 0.4, 0.16)):
        near = np.hypot(columns - x - right * radius, rows - y - down * radius) / (size * radius)
        shade -= 0.13 * np.clip(1.4 - near, 0, 1).astype(np.float32)
    return shade


def _paint_galaxy(random: Randomness, height: int, width: int) -> NDArray[np.float32]:
    """Return a faint slanting band."""
    dust = make_noise(random, height, width, (4, 6), 4)
    rows, columns = np.ogrid[:height, :width]
    across = (rows - height * 0.45 + (columns - width / 2) * 0.45) / (height * 0.24)
    return (np.exp(-(across**2)) * soften(dust, 0.25, 0.9)).astype(np.float32)


def _scatter_stars(view: View, light: Light, random: Randomness, rows: int) -> Stars:
    """Return stars of one pixel each. The bright ones are a small cross."""
    count = round(420 * light.stars * view.width * view.height / (1280 * 720))
    scale = max(1, round(view.unit / 720))
    x = random.integers(2, view.width - 2 - scale, count)
    y = (random.random(count) ** 1.25 * (rows - 4 - scale)).astype(np.int64) + 2
    power = (random.random(count) ** 3 * 200 + 40).astype(np.float32) * min(1.0, light.stars + 0.2)
    rhythm = random.uniform(1.5, 5, count).astype(np.float32)
    spread = random.uniform(0, 6.28, count).astype(np.float32)
    hue = np.stack([random.uniform(0.85, 1, count), np.full(count, 0.92), random.uniform(0.75, 1, count)], axis=1)
    parts: list[tuple[NDArray[np.bool_], int, int, float]] = [(power > 0, 0, 0, 1.0)]
    parts += [(power > 0, right, down, 1.0) for right, down in ((1, 0), (0, 1), (1, 1)) if scale > 1]
    parts += [(power > 120, right * scale, down * scale, 0.4) for right, down in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    masks = [part[0] for part in parts]
    return Stars(
        np.concatenate([x[mask] + part[1] for mask, part in zip(masks, parts, strict=True)]),
        np.concatenate([y[mask] + part[2] for mask, part in zip(masks, parts, strict=True)]),
        np.concatenate([hue[m] * power[m][:, None] * part[3] for m, part in zip(masks, parts, strict=True)]).astype(
            np.float32
        ),
        np.concatenate([rhythm[mask] for mask in masks]),
        np.concatenate([spread[mask] for mask in masks]),
    )


def _gather_clouds(view: View, light: Light, random: Randomness, size: tuple[int, int]) -> list[Bank]:
    """Return high thin clouds and low thick ones."""
    if light.clouds <= 0:
        return []
    width, height = size[0], min(size[1], view.horizon // HALF)
    lit = mix(mix(light.horizon, (255, 255, 255), 0.55 * (1 - light.darkness)), light.sun, 0.35 * light.shine)
    dark = mix(light.middle, light.zenith, 0.35)
    grey = mix(dark, light.key, 0.15)
    tall, wide = height / view.unit * HALF, width / view.unit * HALF * 2
    coarse, fine = (round(tall / 0.19), round(wide / 0.55)), (round(tall / 0.14), round(wide / 0.3))
    high = _paint_bank(random, (height, width), light.clouds * 0.55, coarse, mix(lit, light.middle, 0.3), grey)
    low = _paint_bank(random, (height, width), light.clouds, fine, lit, grey)
    speed = view.unit / HALF * light.wind
    return [Bank(high, 0, width, speed * 0.006), Bank(low, 0, width, speed * 0.014)]


def _paint_bank(
    random: Randomness, size: tuple[int, int], amount: float, cells: tuple[int, int], lit: Colour, shadow: Colour
) -> NDArray[np.uint8]:
    height, width = size
    field = make_noise(random, height, width * 2, cells, 6)
    # Clouds flatten towards the horizon.
    rows = np.linspace(0, 1, height, dtype=np.float32)
    source = rows**1.6 * (height - 1) * 0.999
    field = np.ascontiguousarray(
        cv2.remap(
            field,
            np.tile(np.arange(width * 2, dtype=np.float32), (height, 1)),
            np.tile(source[:, None], (1, width * 2)),
            cv2.INTER_LINEAR,
        ),
        np.float32,
    )
    edge = np.float32(np.quantile(field, 1 - amount * 0.75))
    cover = soften(field, float(edge), float(edge) + 0.16)
    lift = max(2, height // 40)
    bright = np.clip(0.62 + (field - np.roll(field, (lift, lift), axis=(0, 1))) * 5 - (field - edge) * 0.9, 0, 1)
    cover *= np.interp(rows, [0, 0.75, 1], [0.95, 0.85, 0.0])[:, None].astype(np.float32)
    low, high = np.array(shadow[::-1], np.float32), np.array(lit[::-1], np.float32)
    colour = low + (high - low) * bright[..., None]
    picture = np.concatenate([colour * cover[..., None], cover[..., None] * 255], axis=2)
    picture += random.random((height, width * 2, 1), np.float32) - 0.5
    whole = np.clip(picture + 0.5, 0, 255).astype(np.uint8)
    return np.concatenate([whole, whole[:, : width + 2]], axis=1)


def _drift(small: NDArray[np.uint8], bank: Bank, seconds: float) -> None:
    """Lay a moved bank over the half-size sky, and update the clear share in its fourth channel."""
    rows = min(small.shape[0] - bank.top, bank.picture.shape[0])
    offset = (bank.width * 2 - seconds * bank.speed) % (bank.width * 2)
    whole = math.floor(offset)
    part = bank.picture[:rows, whole : whole + bank.width + 1]
    turn = np.array([[1, 0, whole - offset], [0, 1, 0]], np.float32)
    moved = cv2.warpAffine(part, turn, (bank.width, rows), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    rest = cv2.cvtColor(cv2.bitwise_not(np.ascontiguousarray(moved[..., 3])), cv2.COLOR_GRAY2BGRA)
    rest[..., 3] = 255 - moved[..., 3]
    target = small[bank.top : bank.top + rows]
    cv2.multiply(target, rest, dst=target, scale=1 / 255)
    moved[..., 3] = 0
    cv2.add(target, moved, dst=target)
