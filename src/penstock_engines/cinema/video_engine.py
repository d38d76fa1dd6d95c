"""Makes a clip from a prompt: reads it, draws its frames on all cores, and encodes them with sound."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.film import Film
from penstock_engines.cinema.narration import narrate, split_prompt
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.reading import read_prompt
from penstock_engines.cinema.script import Script
from penstock_engines.cinema.sound import make_ambience
from penstock_engines.cinema.stage import Stage
from penstock_engines.processors import count_processors
from penstock_engines.product import Product, ReportProgress

FPS = 24
POSTER = 0.4  # the preview's position in the clip
MAX_WORKERS = 16  # the encoder keeps up with no more, and each takes memory
AHEAD = 2  # frames that wait for the encoder, beyond those in the making
NATURE = "Drawn by the built-in engine: an illustrated animation, not a photographic video."


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoWish:
    """A request for a clip."""

    prompt: str
    width: int
    height: int
    seconds: float
    lossless: bool
    people: bool
    """False if no people may be seen."""


def make_video(wish: VideoWish, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write `video.mp4` and `preview.png` into the folder. Report progress after every frame."""
    cv2.setNumThreads(1)  # frames run in parallel instead
    spoken = split_prompt(wish.prompt)
    reading = read_prompt(spoken.prompt, people=wish.people, weights=weights)
    script, frames = reading.script, max(1, round(wish.seconds * FPS))
    video, preview = folder / "video.mp4", folder / "preview.png"
    workers = min(count_processors(), MAX_WORKERS)
    with ThreadPoolExecutor(workers) as pool:
        sounding = pool.submit(_make_sound, spoken.text, script, wish.seconds, reading.seed)
        stage = Stage(script, wish.width, wish.height, frames, FPS)
        sound, warnings = sounding.result()
        with Film(video, wish.width, wish.height, FPS, sound, lossless=wish.lossless) as film:
            for index, frame in enumerate(_draw_frames(stage, frames, pool, workers + AHEAD)):
                film.add(frame)
                if index == int(frames * POSTER):
                    preview.write_bytes(cv2.imencode(".png", frame)[1].tobytes())
                report((index + 1) / frames)
    return Product(video, preview, reading.seed, (NATURE, *reading.warnings, *warnings))


def _make_sound(text: str, script: Script, seconds: float, seed: int) -> tuple[NDArray[np.float32], Sequence[str]]:
    """Return the sound of the place with the narration, if there is one, and warnings."""
    place = make_ambience(PLACES[script.place].sound, script, seconds, seed)
    return narrate(text, place) if text else (place, ())


def _draw_frames(stage: Stage, frames: int, pool: Executor, window: int) -> Iterator[NDArray[np.uint8]]:
    """Yield all frames in order, with at most `window` of them in memory."""
    waiting = deque(pool.submit(stage.frame, index) for index in range(min(window, frames)))
    for following in range(window, frames + window):
        if not waiting:
            return
        yield waiting.popleft().result()
        if following < frames:
            waiting.append(pool.submit(stage.frame, following))
