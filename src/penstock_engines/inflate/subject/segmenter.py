"""Finds the salient object of a picture with a small neural network, the light version of U2-Net."""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

MODEL = "u2netp.onnx"
SIDE = 320
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
SMALLEST_SHARE = 0.004  # of the picture; a smaller subject is noise
LARGEST_SHARE = 0.92  # a larger one leaves nothing to cut away
MARGIN = 0.3  # added around the picture for the second look, as a share of its sides
SHARP = 0.03  # of the subject's area may be uncertain in a mask that needs no second look
AGREEMENT = 0.72  # overlap of both looks, of their union
HALF = 0.5  # of a side
STANDING = 0.1  # of the frame's lower side; a portrait that spans the frame covers more of it


def segment(colours: NDArray[np.uint8], model: Path) -> NDArray[np.float32]:
    """Return each pixel's share in the subject, 0 to 1."""
    network = _load(model)
    small = cv2.resize(colours, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    scaled = (small / max(1.0, float(small.max())) - MEAN) / DEVIATION
    network.setInput(np.ascontiguousarray(scaled.transpose(2, 0, 1)[None]))
    found = np.asarray(network.forward(network.getUnconnectedOutLayersNames()[0]), np.float32)[0, 0]
    return _refine(found, colours)


@cache
def _load(model: Path) -> cv2.dnn.Net:
    return cv2.dnn.readNetFromONNX(os.fspath(model), cv2.dnn.ENGINE_CLASSIC)  # the fastest engine here, by half


def is_single_subject(found: NDArray[np.float32], colours: NDArray[np.uint8], model: Path) -> bool:
    """Return whether a second look finds the same subject.

    The second look is from farther away, with mirrored surroundings. A thing is found again. In a landscape, a room
    or a texture, where nothing stands out, another part is found, or none. A clear outline needs no second look.
    """
    solid = found > 0.5
    if _is_ground(solid):
        return False
    unsure = np.count_nonzero((found > 0.25) & (found < 0.75))
    if bool(unsure < SHARP * np.count_nonzero(solid)):
        return True
    height, width = found.shape
    down, right = round(MARGIN * height), round(MARGIN * width)
    wider = cv2.copyMakeBorder(colours, down, down, right, right, borderType=cv2.BORDER_REFLECT)
    around = segment(wider.astype(np.uint8, copy=False), model)
    again = around[down : down + height, right : right + width] > 0.5
    overlap = np.count_nonzero(solid & again) / max(1, np.count_nonzero(solid | again))
    return bool(overlap > AGREEMENT)


def _is_ground(solid: NDArray[np.bool_]) -> bool:
    """Return whether the mask is a band from side to side, such as a range of hills, or fills a corner, as a slope."""
    sides = (solid[:, :2].any(axis=1), solid[:2].any(axis=0), solid[:, -2:].any(axis=1), solid[-2:].any(axis=0))
    left, top, right, bottom = (float(side.mean()) for side in sides)
    band = min(left, right) > 0 and bottom < STANDING
    return band or (max(left, right) > HALF and max(top, bottom) > HALF)


def is_convincing(found: NDArray[np.float32]) -> bool:
    """Return whether the mask has a clear subject, neither a speck nor everything."""
    sure, unsure = float(np.mean(found > 0.5)), float(np.mean((found > 0.25) & (found < 0.75)))
    return SMALLEST_SHARE < sure < LARGEST_SHARE and unsure < 0.6 * sure


def _refine(found: NDArray[np.float32], colours: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Align the coarse outline with the edges of the picture by a guided filter."""
    height, width = colours.shape[:2]
    light = cv2.cvtColor(colours, cv2.COLOR_RGB2GRAY).astype(np.float32) / np.float32(255)
    mask = cv2.resize(found, (width, height), interpolation=cv2.INTER_CUBIC)
    window = (13, 13)
    light_mean, mask_mean = cv2.blur(light, window), cv2.blur(mask, window)
    spread = cv2.blur(light * light, window) - light_mean * light_mean
    slope = (cv2.blur(light * mask, window) - light_mean * mask_mean) / (spread + 0.002)
    offset = mask_mean - slope * light_mean
    guided = cv2.blur(slope, window) * light + cv2.blur(offset, window)
    return np.clip(guided + mask - 0.5, 0, 1).astype(np.float32, copy=False)  # their mean, with a harder edge
