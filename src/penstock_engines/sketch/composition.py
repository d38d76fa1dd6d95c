"""Draws one picture: the stage at the middle of a clip, where every subject is at its place."""

import math
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.script import Camera, Script, Time
from penstock_engines.cinema.stage import Stage

FRAMES, FPS = 144, 24
MIDDLE = FRAMES // 2
FINE_SIDE = 512
"""Shorter side from which a picture is drawn in its own size. A smaller one is drawn larger and shrunk."""
LARGEST_SIDE = 2048
NARROWEST = 3
"""Height of the narrowest picture that the stage can play, in widths."""
HOURS = (Time.DAY, Time.SUNSET, Time.DAY, Time.DAWN)


def is_narrow(width: int, height: int) -> bool:
    """Return whether a picture of this size is the middle of a wider one."""
    return width * NARROWEST < height


def paint(script: Script, width: int, height: int, *, finer: int = 1) -> NDArray[np.uint8]:
    """Return a picture: blue, green, red. `finer` draws it larger first, for finer edges."""
    if max(width, height) > LARGEST_SIDE:
        scale = LARGEST_SIDE / max(width, height)
        drawn = paint(script, max(1, round(width * scale)), max(1, round(height * scale)))
        return np.asarray(cv2.resize(drawn, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)
    if is_narrow(width, height):
        wide = math.ceil(height / NARROWEST)
        left = (wide - width) // 2
        return np.ascontiguousarray(paint(script, wide, height, finer=finer)[:, left : left + width])
    factor = max(finer if max(width, height) * finer <= LARGEST_SIDE else 1, math.ceil(FINE_SIDE / min(width, height)))
    factor = max(1, min(factor, LARGEST_SIDE // max(width, height)))
    stage = Stage(replace(script, camera=Camera.STILL, still=True), width * factor, height * factor, FRAMES, FPS)
    frame = stage.frame(MIDDLE)
    if factor == 1:
        return frame
    return np.asarray(cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def vary(script: Script, seed: int, *, hour: bool) -> Script:
    """Return the script of another composition. Its hour changes, too, if the prompt names none."""
    time = HOURS[seed % len(HOURS)] if hour else script.time
    return replace(script, seed=seed, time=time)
