"""Makes a film of one picture, or of two: a camera moves over their relief, with weather before it, and sound."""

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Lens, Moment, Shot, View
from penstock_engines.cinema.film import SAMPLES, Film
from penstock_engines.cinema.landscape.particles import add_particles
from penstock_engines.cinema.landscape.weather import add_weather
from penstock_engines.cinema.paint.layers import Plane
from penstock_engines.cinema.paint.light import make_light
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.reading import Reading, read_prompt
from penstock_engines.cinema.scene import Scene
from penstock_engines.cinema.script import Camera, Particles
from penstock_engines.cinema.sound import make_ambience
from penstock_engines.inflate.subject.mask import cut_out
from penstock_engines.inflate.subject.picture import open_picture
from penstock_engines.processors import count_processors
from penstock_engines.product import Product, ReportProgress, Unable
from penstock_engines.still.framing import choose_size, frame
from penstock_engines.still.relief import Relief

FPS = 24
MAX_WORKERS = 8
AHEAD = 2
PREVIEW = 0.4
NATURE = "Made by the built-in engine: a camera moves over the picture. Nothing in the picture moves by itself."
FLAT = "No subject could be separated from its background: the picture has depth from top to bottom only."
DISSOLVE = "The first frame dissolves into the last one while the camera moves."
ORBITS = ("orbit", "arc shot", "circles around", "circling", "rotates around", "revolves", "parallax")

# The farthest position of each movement: right, up, near. The film begins or ends with the picture itself.
AIMS: dict[Camera, Shot] = {
    Camera.STILL: Shot(0.0, 0.0, 0.02),
    Camera.PAN_LEFT: Shot(-0.1, 0.0, 0.06),
    Camera.PAN_RIGHT: Shot(0.1, 0.0, 0.06),
    Camera.PUSH_IN: Shot(0.0, 0.0, 0.34),
    Camera.PULL_OUT: Shot(0.0, 0.0, 0.34),
    Camera.RISE: Shot(0.0, 0.09, 0.05),
    Camera.DESCEND: Shot(0.0, -0.09, 0.05),
}
FREE_CAMERAS = (Camera.PUSH_IN, Camera.PAN_RIGHT, Camera.PAN_LEFT, Camera.RISE, Camera.PULL_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StillWish:
    """A request for a film of one picture, or of a first and a last one."""

    first: Path | None
    last: Path | None
    prompt: str
    size: tuple[int, int] | None
    """Width and height. None takes the picture's own ratio."""
    short_side: int
    seconds: float
    seed: int | None
    sound: bool


class Journey:
    """The camera's position at each share of a film."""

    def __init__(self, camera: Camera, *, orbits: bool, ends: bool) -> None:
        self._aim, self._orbits = AIMS[camera], orbits
        self._backwards = ends or camera is Camera.PULL_OUT

    def look(self, share: float) -> Shot:
        """Return the position: no movement at the first frame, or at the last one where that one is given."""
        progress = 1 - share if self._backwards else share
        eased = 0.5 * progress * progress * (3 - 2 * progress) + 0.5 * progress
        if self._orbits:
            angle = 2 * math.pi * progress
            return Shot(0.09 * math.sin(angle), 0.02 * math.sin(2 * angle), 0.1 * (1 - math.cos(angle)) / 2)
        return Shot(self._aim.right * eased, self._aim.up * eased, self._aim.near * eased)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Everything that is prepared once for a film. `draw` only moves and blends it."""

    reliefs: tuple[tuple[Relief, Journey], ...]
    lens: Lens
    planes: tuple[Plane, ...]
    frames: int

    def draw(self, index: int) -> NDArray[np.uint8]:
        """Return a frame: blue, green, red."""
        share = index / max(1, self.frames - 1)
        pictures = [relief.see(journey.look(share)) for relief, journey in self.reliefs]
        picture = pictures[0]
        if len(pictures) > 1:
            mixed = min(1.0, max(0.0, (share - 0.3) / 0.4))
            eased = mixed * mixed * (3 - 2 * mixed)
            picture = np.asarray(cv2.addWeighted(pictures[0], 1 - eased, pictures[1], eased, 0), np.uint8)
        moment = replace_shot(self.lens.look(index))
        for plane in self.planes:
            plane.draw(picture, moment)
        return picture


def replace_shot(moment: Moment) -> Moment:
    """Return a moment whose camera stands still, as weather falls before the camera."""
    return replace(moment, shot=Shot(0.0, 0.0, 0.0))


def make_still_film(wish: StillWish, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write `video.mp4` and `preview.png` into the folder. Report progress after every frame."""
    cv2.setNumThreads(1)  # frames run in parallel instead
    reading = _read(wish, weights)
    frames = max(2, round(wish.seconds * FPS))
    size, sequence, warnings = _prepare(wish, reading, frames, weights)
    report(0.05)
    video, preview = folder / "video.mp4", folder / "preview.png"
    workers = min(count_processors(), MAX_WORKERS)
    with (
        ThreadPoolExecutor(workers) as pool,
        Film(video, *size, FPS, _make_sound(wish, reading), lossless=False) as film,
    ):
        for index, picture in enumerate(_draw_frames(sequence, pool, workers + AHEAD)):
            film.add(picture)
            if index == int(frames * PREVIEW):
                preview.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
            report(0.05 + 0.95 * (index + 1) / frames)
    return Product(video, preview, reading.seed, (NATURE, *warnings))


def _read(wish: StillWish, weights: Path) -> Reading:
    """Read camera, weather and sound from the prompt. The seed chooses a camera that it does not name."""
    reading = read_prompt(wish.prompt, people=True, weights=weights)
    seed = reading.seed if wish.seed is None else wish.seed
    camera = reading.script.camera if reading.is_directed else FREE_CAMERAS[seed % len(FREE_CAMERAS)]
    return replace(reading, seed=seed, script=replace(reading.script, seed=seed, camera=camera))


def _prepare(
    wish: StillWish, reading: Reading, frames: int, weights: Path
) -> tuple[tuple[int, int], Sequence, list[str]]:
    """Return the size of the film, its parts, and warnings."""
    given = [(path, path is wish.last) for path in (wish.first, wish.last) if path is not None]
    if not given:
        raise Unable("The film has neither a first nor a last frame: give `frame_images`.")
    orbits = any(word in wish.prompt.lower() for word in ORBITS)
    size = wish.size
    reliefs: list[tuple[Relief, Journey]] = []
    warnings: list[str] = []
    for path, ends in given:
        picture = open_picture(path)
        size = size or choose_size(picture, wish.short_side)
        cutout = cut_out(picture, weights)
        framed = frame(picture, cutout.mask, *size)
        has_subject = cutout.source != "frame"
        if not has_subject:
            warnings.append(FLAT)
        reliefs.append(
            (Relief(framed, has_subject=has_subject), Journey(reading.script.camera, orbits=orbits, ends=ends))
        )
    if len(given) > 1:
        warnings.append(DISSOLVE)
    chosen = size or (wish.short_side, wish.short_side)
    lens = Lens(reading.script, View(*chosen, round(chosen[1] * 0.6)), frames, FPS)
    planes = _add_overlays(reading, lens, frames)
    return chosen, Sequence(tuple(reliefs), lens, planes, frames), list(dict.fromkeys(warnings))


def _add_overlays(reading: Reading, lens: Lens, frames: int) -> tuple[Plane, ...]:
    """Return the weather and the particles that the prompt names, as planes before the picture."""
    script = reading.script
    scene = Scene(script, lens, make_light(script), np.random.default_rng(script.seed))
    seconds = frames / FPS * script.pace
    add_weather(scene, seconds)
    if script.particles is not Particles.FIREWORKS:
        add_particles(scene, script.particles, seconds)
    return tuple(scene.planes)


def _make_sound(wish: StillWish, reading: Reading) -> NDArray[np.float32]:
    """Return the sound of the place that the prompt means, or silence."""
    if not wish.sound:
        return np.zeros((math.ceil(wish.seconds * SAMPLES), 2), np.float32)
    sound = PLACES[reading.script.place].sound if wish.prompt else "hush"
    return make_ambience(sound, reading.script, wish.seconds, reading.seed)


def _draw_frames(sequence: Sequence, pool: Executor, window: int) -> Iterator[NDArray[np.uint8]]:
    """Yield all frames in order, with at most `window` of them in memory."""
    waiting = deque(pool.submit(sequence.draw, index) for index in range(min(window, sequence.frames)))
    for following in range(window, sequence.frames + window):
        if not waiting:
            return
        yield waiting.popleft().result()
        if following < sequence.frames:
            waiting.append(pool.submit(sequence.draw, following))
