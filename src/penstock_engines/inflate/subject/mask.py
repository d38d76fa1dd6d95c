"""Finds the subject of a picture by alpha, by the segmenter or by the border's colour, else takes all of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.subject.parts import clean, smooth_outline
from penstock_engines.inflate.subject.segmenter import MODEL, is_convincing, is_single_subject, segment
from penstock_engines.product import Unable

Source: TypeAlias = Literal["alpha", "segmenter", "border", "frame"]
SMALLEST_SHARE = 0.004  # of the picture; a smaller subject is noise
LARGEST_SHARE = 0.92  # a larger one leaves nothing to cut away
WORKING_SIDE = 640  # pixels


@dataclass(frozen=True, slots=True)
class Cutout:
    """Each pixel's share in the subject, 0 to 1, and the method that found it."""

    mask: NDArray[np.float32]
    source: Source
    segmented: bool
    """False if the segmenter's weights are missing."""


def cut_out(picture: NDArray[np.uint8], weights: Path) -> Cutout:
    """Find the subject by the best available method."""
    alpha = picture[..., 3]
    solid = float(np.mean(alpha >= 128))
    if solid < 0.0005:
        raise Unable("The picture is fully transparent.")
    if solid < 0.98:
        return Cutout(clean(alpha.astype(np.float32) / np.float32(255), specks=0.002), "alpha", segmented=True)
    found = _look_closely(_shrink(picture[..., :3]), weights / MODEL)
    size = (alpha.shape[1], alpha.shape[0])
    mask = cv2.resize(found.mask, size, interpolation=cv2.INTER_LINEAR).astype(np.float32, copy=False)
    return Cutout(mask, found.source, found.segmented)


def _shrink(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Shrink the picture to the size at which outlines are found. More pixels make none more exact."""
    height, width = colours.shape[:2]
    scale = min(1.0, WORKING_SIDE / max(height, width))
    size = (max(8, round(width * scale)), max(8, round(height * scale)))
    return cv2.resize(colours, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def _look_closely(colours: NDArray[np.uint8], model: Path) -> Cutout:
    everything = np.ones(colours.shape[:2], np.float32)
    if _is_plain(colours):
        return Cutout(everything, "frame", segmented=True)
    found = segment(colours, model) if model.is_file() else None
    flooded = _flood_border(colours, found)
    # On a drawing the border's colour gives the exact outline. On a photograph the segmenter is better.
    if flooded is not None and (found is None or not is_convincing(found) or _is_drawing(colours)):
        return Cutout(clean(flooded, specks=0.01), "border", found is not None)
    if found is not None and is_convincing(found) and is_single_subject(found, colours, model):
        mask = clean(smooth_outline(found), specks=0.05)
        return Cutout(_fill_foreign_holes(mask, colours), "segmenter", segmented=True)
    return Cutout(everything, "frame", found is not None)


def find_border_colour(colours: NDArray[np.uint8]) -> NDArray[np.float32] | None:
    """Return the one colour of (nearly) all of the picture's border, or None."""
    edge = np.concatenate([colours[0], colours[-1], colours[:, 0], colours[:, -1]]).astype(np.float32)
    middle = np.median(edge, axis=0)
    near = np.abs(edge - middle).max(axis=1) < 24
    return middle.astype(np.float32) if float(near.mean()) > 0.9 else None


def _is_plain(colours: NDArray[np.uint8]) -> bool:
    return int(np.ptp(cv2.resize(colours, (64, 64), interpolation=cv2.INTER_AREA), axis=(0, 1)).max()) < 8


def _is_drawing(colours: NDArray[np.uint8]) -> bool:
    """Return whether few colours make up nearly all of it."""
    coarse = (colours >> 4).astype(np.int64) @ np.array([256, 16, 1])
    counts = np.sort(np.bincount(coarse.ravel(), minlength=4096))[::-1]
    return float(counts[:10].sum()) > 0.93 * coarse.size


def _flood_border(colours: NDArray[np.uint8], found: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Return everything that the border's colour does not connect to the border.

    Enclosed areas of that colour may be holes or white eyes. The segmenter decides, or else their size.
    """
    colour = find_border_colour(colours)
    if colour is None:
        return None
    away = np.abs(colours.astype(np.float32) - colour).max(axis=2)
    like = np.pad((away < 30).astype(np.uint8), 1, constant_values=1)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(like, connectivity=4)
    areas = stats[:, cv2.CC_STAT_AREA]
    if found is None:
        open_places = areas > 0.02 * np.count_nonzero(like == 0)
    else:
        doubt = np.bincount(labels[1:-1, 1:-1].ravel(), 1 - found.ravel(), minlength=count)
        open_places = doubt > 0.5 * areas
    open_places[0], open_places[labels[0, 0]] = False, True
    mask = (~open_places[labels[1:-1, 1:-1].astype(np.int32)]).astype(np.float32)
    soft = cv2.GaussianBlur(mask, (0, 0), 0.8).astype(np.float32, copy=False)
    return soft if SMALLEST_SHARE < float(mask.mean()) < LARGEST_SHARE else None


def _fill_foreign_holes(mask: NDArray[np.float32], colours: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Fill holes that show something else than the background, such as a dark eye or a button."""
    outside = (mask < 0.3).astype(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(outside, connectivity=4)
    if count < 3:
        return mask
    largest = int(np.argmax(stats[1:, cv2.CC_STAT_AREA])) + 1
    ground = colours[labels == largest][::16].astype(np.float32)
    filled = mask.copy()
    for number in range(1, count):
        if number == largest or stats[number, cv2.CC_STAT_AREA] > 0.04 * np.count_nonzero(mask > 0.5):
            continue
        hole = labels == number
        away = np.abs(colours[hole].mean(axis=0) - ground.mean(axis=0)) / (ground.std(axis=0) + 15)
        if float(away.max()) > 1.5:
            filled[cv2.dilate(hole.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0] = 1
    return filled
