"""The stage: plays a script, one frame at a time and in any order."""

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Lens, View
from penstock_engines.cinema.casting import cast_actors
from penstock_engines.cinema.landscape.particles import add_particles
from penstock_engines.cinema.landscape.weather import add_weather
from penstock_engines.cinema.paint.light import make_light
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.scene import Scene
from penstock_engines.cinema.script import Script

FADE_IN, FADE_OUT = 6, 8
"""Frames of fade-in and fade-out."""


class Stage:
    """Everything that is painted once for a clip. `frame` only moves and blends it."""

    def __init__(self, script: Script, width: int, height: int, frames: int, fps: int) -> None:
        place = PLACES[script.place]
        view = View(width, height, round(height * place.horizon))
        self._lens = Lens(script, view, frames, fps)
        self._frames = frames
        random = np.random.default_rng(script.seed)
        scene = Scene(script, self._lens, make_light(script), random)
        place.build(scene)
        seconds = frames / fps * script.pace
        cast_actors(scene, place, seconds)
        add_weather(scene, seconds)
        add_particles(scene, script.particles, seconds)
        self._planes = tuple(scene.planes)
        self._vignette = _paint_vignette(width, height)

    def frame(self, index: int) -> NDArray[np.uint8]:
        """Return a frame as height x width x 3: blue, green, red."""
        moment = self._lens.look(index)
        view = self._lens.view
        picture = np.zeros((view.height, view.width, 3), np.uint8)
        limits = [view.height]
        for plane in reversed(self._planes[1:]):
            hidden = plane.hides(moment)
            limits.append(limits[-1] if hidden is None else min(limits[-1], hidden))
        for plane, limit in zip(self._planes, reversed(limits), strict=True):
            plane.draw(picture[:limit], moment)
        cv2.multiply(picture, self._vignette, dst=picture, scale=1 / 255)
        return self._fade(picture, index)

    def _fade(self, picture: NDArray[np.uint8], index: int) -> NDArray[np.uint8]:
        """Fade in from a dim, never black, picture and out into one."""
        left = self._frames - 1 - index
        share = min(1.0, 0.55 + 0.45 * index / FADE_IN, 0.4 + 0.6 * left / FADE_OUT)
        return picture if share >= 1 else np.asarray(cv2.convertScaleAbs(picture, alpha=share), np.uint8)


def _paint_vignette(width: int, height: int) -> NDArray[np.uint8]:
    """Return slightly darker corners, with a grain that keeps gradients from banding."""
    rows, columns = np.ogrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    dim = 255 - 34 * np.clip((rows**2 + columns**2) - 0.55, 0, 1.45) ** 1.2
    dim = dim + np.random.default_rng(1).random((height, width)) - 0.5
    return np.repeat(np.clip(np.round(dim), 0, 255).astype(np.uint8)[..., None], 3, axis=2)
