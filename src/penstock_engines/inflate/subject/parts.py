"""Cleans a mask of small parts, small holes and wisps."""

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.product import Unable


def clean(mask: NDArray[np.float32], specks: float) -> NDArray[np.float32]:
    """Drop parts that are small beside the largest, and fill holes that are small beside the subject."""
    inside = (mask > 0.5).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(inside, connectivity=8)
    areas = stats[:, cv2.CC_STAT_AREA].astype(np.float64)
    if len(areas) < 2:
        raise Unable("The picture shows no solid subject.")
    kept = areas >= specks * areas[1:].max()
    kept[0] = False
    near_kept = cv2.dilate(kept[labels].astype(np.uint8), np.ones((5, 5), np.uint8))
    cleaned = mask * near_kept
    _, labels, stats, _ = cv2.connectedComponentsWithStats((cleaned <= 0.5).astype(np.uint8), connectivity=4)
    small = stats[:, cv2.CC_STAT_AREA] < 0.003 * areas[1:][kept[1:]].sum()
    small[0] = False
    return np.maximum(cleaned, small[labels].astype(np.float32))


def smooth_outline(mask: NDArray[np.float32]) -> NDArray[np.float32]:
    """Remove wisps and notches. The segmenter sees no hairs, so they are uncertainty."""
    width = 0.01 * float(np.sqrt(np.count_nonzero(mask > 0.5)))
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (round(width) | 1, round(width) | 1))
    opened = cv2.morphologyEx(mask, cv2.MORPH_OPEN, disc)
    closed = cv2.morphologyEx(opened, cv2.MORPH_CLOSE, disc)
    soft = cv2.GaussianBlur(closed, (0, 0), 0.4 * width + 0.5, borderType=cv2.BORDER_REPLICATE).astype(np.float32)
    # A subject of nothing but wisps stays as it was found.
    return soft if np.count_nonzero(soft > 0.5) > 0.7 * np.count_nonzero(mask > 0.5) else mask


def keep_parts(mask: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Drop the smallest parts and fill the smallest holes, until at most so many of both are left."""
    solid = np.pad(mask > 0.5, 1).astype(np.uint8)
    parts = _list_areas(solid, connectivity=8)
    holes = _list_areas(1 - solid, connectivity=4)
    holes[1][holes[0][0, 0]] = -1  # the surroundings are no hole
    sizes = np.sort(np.concatenate([areas[areas > 0] for _, areas in (parts, holes)]))[::-1]
    if len(sizes) <= most:
        return mask
    least = max(1.0, float(sizes[most - 1]))
    least = min(least, float(parts[1].max()))  # one part stays, whatever the size of the holes
    dropped, filled = ((areas > 0) & (areas < least) for _, areas in (parts, holes))
    kept = np.where(dropped[parts[0]], 0, np.pad(mask, 1))
    return np.where(filled[holes[0]], 1, kept)[1:-1, 1:-1].astype(np.float32)


def _list_areas(solid: NDArray[np.uint8], connectivity: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the number of each pixel's part (0 outside), and each part's area."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(solid, connectivity=connectivity)
    areas = stats[:, cv2.CC_STAT_AREA].astype(np.float64)
    areas[0] = 0
    return labels.astype(np.int32), areas
