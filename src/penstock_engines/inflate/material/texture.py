"""Paints the atlas: the photograph on the front, the colours of the rim on the back."""

from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.material.uv_charts import Window

Pixels = TypeVar("Pixels", NDArray[np.uint8], NDArray[np.float32])
SMALLEST, LARGEST = 64, 1024
SMOOTH_SIDE = 96  # the back is smooth, so it is computed small
SWEEPS = 24


def size_chart(window: Window) -> tuple[int, int]:
    """Return width and height of one chart in pixels: the powers of two nearest to the picture's size."""
    width, height = (2 ** round(np.log2(np.clip(side, SMALLEST, LARGEST))) for side in (window.width, window.height))
    return width, height


def cut_window(values: Pixels, window: Window, size: tuple[int, int]) -> Pixels:
    """Return the window of a picture at the chart's size."""
    width, height = size
    across, down = window.width / width, window.height / height
    reach = (round(across) | 1, round(down) | 1) if max(across, down) > 1.4 else (1, 1)
    matrix = np.array([[across, 0, window.left + across / 2 - 0.5], [0, down, window.top + down / 2 - 0.5]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    cut = cv2.warpAffine(cv2.blur(values, reach), matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return cast("Pixels", cut)


def paint_front(colours: NDArray[np.uint8], mask: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the photograph, its colours extended beyond the silhouette and softened along it.

    Pixels at the silhouette are mixed with the background, so colours from further in replace them.
    At the steep sides few pixels cover much surface, and every speck would become a streak.
    """
    side = float(np.sqrt(mask.size))
    depth = cv2.distanceTransform((mask > 0.6).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    sure = depth > min(0.008 * side + 1.5, 0.5 * float(depth.max()))
    extended = extend(colours, sure)
    soft = blur_wide(extended, 0.014 * side)
    share = np.clip(depth * np.float32(1 / (0.035 * side)), 0, 1)
    share = share * share * (3 - 2 * share)
    return cv2.blendLinear(extended, soft, share, 1 - share).astype(np.uint8)


def paint_back(front: NDArray[np.uint8], mask: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the rim's colours, blended towards the middle."""
    height, width = mask.shape
    scale = min(1.0, SMOOTH_SIDE / max(height, width))
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    small = cv2.resize(front, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    inside = (cv2.resize(mask, size, interpolation=cv2.INTER_AREA) > 0.5).astype(np.uint8)
    flowing = _diffuse(small, cv2.erode(inside, np.ones((3, 3), np.uint8)) > 0)
    smooth = cv2.resize(flowing, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(smooth + 0.5, 0, 255).astype(np.uint8)


def extend(colours: NDArray[np.uint8], known: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Give each unknown pixel the colour of the nearest known one."""
    if not known.any():
        return colours
    _, labels = cv2.distanceTransformWithLabels(
        (~known).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    numbers = labels.astype(np.int64)
    source = np.zeros(int(numbers.max()) + 1, np.int64)
    source[numbers[known]] = np.flatnonzero(known)
    return colours.reshape(-1, colours.shape[-1])[source[numbers]]


def blur_wide(values: Pixels, sigma: float) -> Pixels:
    """Blur by a Gaussian. A wide blur works on a smaller picture, without visible difference."""
    height, width = values.shape[:2]
    factor = max(1, int(sigma / 2.5))
    if factor == 1:
        return cast("Pixels", cv2.GaussianBlur(values, (0, 0), sigma))
    size = (max(1, width // factor), max(1, height // factor))
    small = cv2.GaussianBlur(cv2.resize(values, size, interpolation=cv2.INTER_AREA), (0, 0), sigma / factor)
    return cast("Pixels", cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR))


def _diffuse(colours: NDArray[np.float32], unknown: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Fill unknown pixels as smoothly as possible, coarse grids first."""
    rows, columns = unknown.shape
    weight = (~unknown).astype(np.float32)
    if min(rows, columns) <= 6 or not unknown.any():
        mean = (colours * weight[..., None]).sum(axis=(0, 1)) / max(1.0, float(weight.sum()))
        return np.where(unknown[..., None], mean, colours).astype(np.float32)
    size = ((columns + 1) // 2, (rows + 1) // 2)
    share = cv2.resize(weight, size, interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(colours * weight[..., None], size, interpolation=cv2.INTER_AREA)
    coarse /= np.maximum(share, 1e-3)[..., None]
    start = cv2.resize(_diffuse(coarse, share < 0.3), (columns, rows), interpolation=cv2.INTER_LINEAR)
    field = np.where(unknown[..., None], start, colours).astype(np.float32)
    for _ in range(SWEEPS):
        field = np.where(unknown[..., None], cv2.blur(field, (3, 3), borderType=cv2.BORDER_REPLICATE), colours)
    return field
