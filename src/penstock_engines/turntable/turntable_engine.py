"""Makes a film of a 3D model that turns once around."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.film import SAMPLES, Film
from penstock_engines.cinema.script import Script
from penstock_engines.cinema.sound import make_ambience
from penstock_engines.mesh.reading.opening import open_solid
from penstock_engines.mesh.render import Renderer
from penstock_engines.mesh.simplifying import simplify
from penstock_engines.processors import count_processors
from penstock_engines.product import Product, ReportProgress

FPS = 24
MAX_WORKERS = 8
AHEAD = 2
START = 30.0
"""Angle of the first frame: the front, a little from the side."""
MAX_DRAWN, FEWER = 300_000, 150_000
"""Faces from which a model is reduced before it is drawn, and the number that it then has."""
SEED = 7
"""Of the sound. It is the same for all films of one length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurntableWish:
    """A request for a film of a model."""

    mesh: Path
    width: int
    height: int
    seconds: float
    background: str
    sound: bool


def make_turntable(wish: TurntableWish, folder: Path, report: ReportProgress) -> Product:
    """Write `video.mp4` and `preview.png` into the folder. Report progress after every frame."""
    cv2.setNumThreads(1)  # frames run in parallel instead
    solid = open_solid(wish.mesh)
    warnings = list(solid.warnings)
    if len(solid.faces) > MAX_DRAWN:
        report(0.02)
        solid = simplify(solid, FEWER)
        warnings.append(f"The model was reduced to {len(solid.faces)} faces for the film.")
    frames = max(2, round(wish.seconds * FPS))
    renderer = Renderer(solid, wish.width, wish.height, background=wish.background)
    report(0.05)
    video, preview = folder / "video.mp4", folder / "preview.png"
    workers = min(count_processors(), MAX_WORKERS)
    with (
        ThreadPoolExecutor(workers) as pool,
        Film(video, wish.width, wish.height, FPS, _make_sound(wish), lossless=False) as film,
    ):
        for index, frame in enumerate(_draw_frames(renderer, frames, pool, workers + AHEAD)):
            film.add(frame)
            if index == 0:
                preview.write_bytes(cv2.imencode(".png", frame)[1].tobytes())
            report(0.05 + 0.95 * (index + 1) / frames)
    return Product(video, preview, SEED, tuple(warnings))


def _make_sound(wish: TurntableWish) -> NDArray[np.float32]:
    if not wish.sound:
        return np.zeros((round(wish.seconds * SAMPLES) + SAMPLES, 2), np.float32)
    return make_ambience("pad", Script(place="studio"), wish.seconds, SEED)


def _draw_frames(renderer: Renderer, frames: int, pool: Executor, window: int) -> Iterator[NDArray[np.uint8]]:
    """Yield all frames in order, with at most `window` of them in memory."""

    def draw(index: int) -> NDArray[np.uint8]:
        return renderer.draw(START + 360 * index / frames)

    waiting = deque(pool.submit(draw, index) for index in range(min(window, frames)))
    for following in range(window, frames + window):
        if not waiting:
            return
        yield waiting.popleft().result()
        if following < frames:
            waiting.append(pool.submit(draw, following))
