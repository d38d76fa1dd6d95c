"""Drawn pictures of round things, of furniture, of signs and of landscapes."""

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

CLEAR = (0, 0, 0, 0)


def shade(image: Image.Image, axis: float, radius: float) -> Image.Image:
    """Light a drawing from the left, as a round body is lit: the right side is dark."""
    pixels = np.asarray(image).astype(np.float32)
    across = np.clip((np.arange(image.width) - axis) / radius, -1, 1)
    light = 0.55 + 0.45 * np.clip(np.cos(across * 1.2 + 0.5), 0, 1)
    pixels[..., :3] *= light[None, :, None]
    return Image.fromarray(pixels.astype(np.uint8))


def draw_mug(side: int = 240) -> Image.Image:
    """A shaded mug: the body from 0.15 to 0.65 of the width, and a handle on the right."""
    image = Image.new("RGBA", (side, side), CLEAR)
    draw = ImageDraw.Draw(image)
    draw.arc([side * box for box in (0.5, 0.32, 0.86, 0.7)], 0, 360, fill=(90, 140, 200, 255), width=round(side * 0.06))
    draw.rounded_rectangle([side * box for box in (0.15, 0.18, 0.65, 0.88)], side * 0.05, fill=(90, 140, 200, 255))
    return shade(image, side * 0.4, side * 0.25)


def draw_vase(side: int = 240) -> Image.Image:
    """A shaded vase with a foot, a belly, a neck and a lip."""
    image = Image.new("RGBA", (side, side), CLEAR)
    rows = np.linspace(0, 1, 60)
    radius = 0.14 + 0.14 * np.exp(-(((rows - 0.6) / 0.2) ** 2)) + 0.05 * np.exp(-((rows / 0.06) ** 2))
    left = [(side * (0.5 - wide), side * (0.1 + 0.8 * row)) for row, wide in zip(rows, radius, strict=True)]
    right = [(side - x, y) for x, y in reversed(left)]
    ImageDraw.Draw(image).polygon([*left, *right], fill=(190, 120, 70, 255))
    return shade(image, side * 0.5, side * 0.28)


def draw_chair(side: int = 240) -> Image.Image:
    """A chair from the front: backrest, posts, seat, two legs."""
    return _draw_boards(
        side,
        (0.27, 0.08, 0.73, 0.28),
        (0.32, 0.28, 0.38, 0.5),
        (0.62, 0.28, 0.68, 0.5),
        (0.22, 0.5, 0.78, 0.62),
        (0.24, 0.62, 0.31, 0.94),
        (0.69, 0.62, 0.76, 0.94),
    )


def draw_table(side: int = 240) -> Image.Image:
    return _draw_boards(side, (0.05, 0.3, 0.95, 0.4), (0.1, 0.4, 0.17, 0.85), (0.83, 0.4, 0.9, 0.85))


def _draw_boards(side: int, *boards: tuple[float, float, float, float]) -> Image.Image:
    image = Image.new("RGBA", (side, side), CLEAR)
    for board in boards:
        ImageDraw.Draw(image).rectangle([side * edge for edge in board], fill=(140, 90, 50, 255))
    return image


def draw_sign(width: int = 320, height: int = 200) -> Image.Image:
    """White letters on a dark plate that fills the picture."""
    image = Image.new("RGB", (width, height), (30, 50, 100))
    ImageDraw.Draw(image).text((width / 2, height / 2), "STOP 7F", "white", ImageFont.load_default(70), anchor="mm")
    return image


def draw_label(image: Image.Image, axis: float) -> Image.Image:
    """Write on a body."""
    place = (axis * image.width, 0.55 * image.height)
    ImageDraw.Draw(image).text(place, "F7L", "white", ImageFont.load_default(image.height // 6), anchor="mm")
    return image


def draw_hills(seed: int, width: int = 480, height: int = 320) -> Image.Image:
    """Ranges of hills under a sky, each darker than the one behind it."""
    random = np.random.default_rng(seed)
    rows = np.arange(height)[:, None]
    sky = np.linspace(0, 1, height)[:, None, None] * np.array([60, 50, 30]) + np.array([120, 160, 210])
    picture = np.broadcast_to(sky, (height, width, 3)).astype(np.float32).copy()
    count, first = int(random.integers(2, 5)), random.uniform(0.3, 0.45)
    for number in range(count):
        share = number / count
        line = (first + number * (1 - first) / (count + 0.5) - 0.09 * _draw_ridge(random, width)) * height
        colour = np.array([150, 160, 180]) * (1 - share) + random.uniform(20, 70, 3) * share
        grain = random.normal(0, 1, (height, width)).astype(np.float32)
        grain = cv2.GaussianBlur(grain, (0, 0), 1.5 + number)[..., None] * 60
        picture = np.where((rows > line)[..., None], colour + grain, picture)
    return Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))


def _draw_ridge(random: np.random.Generator, width: int) -> np.ndarray:
    places, ridge = np.linspace(0, 1, width), np.zeros(width)
    for octave in range(6):
        turns = 2.0 ** (octave + 1) * places * random.uniform(0.7, 1.3) + random.uniform()
        ridge += 0.5**octave * np.sin(2 * np.pi * turns)
    return ridge / 2
