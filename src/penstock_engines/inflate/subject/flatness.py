"""Decides whether a picture shows something flat: a whole scene, a card, writing, or a dial with fine print."""

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.subject.mask import Cutout

RECTANGULAR = 0.93  # of the box around the subject
CONVEX = 0.96  # of the hull around the subject
OVAL = 0.07  # deviation of the area from that of the oval in the box
FINE_PRINT = 0.029  # mean contrast of fine detail; a ball has less
SPECK = 0.02  # of the largest part; dots and commas are smaller
FEWEST_LETTERS, MOST_LETTERS = 4, 2000
LETTERS_IN_LINE = 0.75
FINE = 0.0125  # of the size


def is_flat(cutout: Cutout, light: NDArray[np.float32]) -> bool:
    """Return whether the subject is the whole picture, a rectangle, writing, or an oval full of fine detail."""
    solid = cutout.mask > 0.5
    rows, columns = np.flatnonzero(solid.any(axis=1)), np.flatnonzero(solid.any(axis=0))
    box = (int(rows[-1]) - int(rows[0]) + 1) * (int(columns[-1]) - int(columns[0]) + 1)
    area = int(np.count_nonzero(solid))
    if cutout.source == "frame" or area > RECTANGULAR * box or (cutout.source == "border" and _is_writing(solid)):
        return True
    return abs(area / (np.pi / 4 * box) - 1) < OVAL and _is_convex(solid) and _has_fine_print(solid, light)


def _is_writing(solid: NDArray[np.bool_]) -> bool:
    """Return whether nearly all parts stand in lines, close beside others of their height, as letters do."""
    _, _, stats, centres = cv2.connectedComponentsWithStats(solid.astype(np.uint8), connectivity=8)
    held = stats[1:, cv2.CC_STAT_AREA] > SPECK * stats[1:, cv2.CC_STAT_AREA].max()
    boxes, rows = stats[1:][held].astype(np.float64), centres[1:][held, 1]
    if not FEWEST_LETTERS <= len(boxes) <= MOST_LETTERS:
        return False
    lefts, heights = boxes[:, cv2.CC_STAT_LEFT], boxes[:, cv2.CC_STAT_HEIGHT]
    rights = lefts + boxes[:, cv2.CC_STAT_WIDTH]
    tall = np.minimum(heights[:, None], heights[None])
    alike = np.maximum(heights[:, None], heights[None]) < 2 * tall
    level = np.abs(rows[:, None] - rows[None]) < 0.5 * tall
    close = np.maximum(lefts[None] - rights[:, None], lefts[:, None] - rights[None]) < 0.8 * tall
    beside = alike & level & close
    np.fill_diagonal(beside, val=False)
    return float(beside.any(axis=1).mean()) > LETTERS_IN_LINE


def _is_convex(solid: NDArray[np.bool_]) -> bool:
    hull = cv2.convexHull(cv2.findNonZero(solid.astype(np.uint8)))
    return float(np.count_nonzero(solid)) > CONVEX * cv2.contourArea(hull)


def _has_fine_print(solid: NDArray[np.bool_], light: NDArray[np.float32]) -> bool:
    sigma = max(0.8, FINE * float(np.sqrt(np.count_nonzero(solid))))
    coarse = cv2.GaussianBlur(light, (0, 0), sigma)
    soft = cv2.GaussianBlur(light, (0, 0), 0.2 * sigma)  # a camera's noise is finer than print
    return float(np.abs(soft - coarse)[solid].mean()) > FINE_PRINT
