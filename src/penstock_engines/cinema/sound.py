"""The sound of a clip: its place, weather, hour and cast, mixed softly."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.noises import NOISES, RATE, SoundStudio
from penstock_engines.cinema.script import Particles, Script, Time, Weather

Layers: TypeAlias = tuple[tuple[str, float], ...]
"""Noises with the loudness of each."""

LOUDNESS = 10 ** (-28 / 20)
PEAK = 10 ** (-7 / 20)
FADE = 0.6  # seconds of fade-in and fade-out

SOUNDS: Mapping[str, Layers] = MappingProxyType(
    {
        "sea": (("waves", 1.0),),
        "lake": (("lapping", 0.7), ("wind", 0.15)),
        "river": (("stream", 0.9),),
        "waterfall": (("waterfall", 1.0),),
        "wind": (("wind", 0.8),),
        "forest": (("leaves", 0.3), ("wind", 0.25)),
        "meadow": (("wind", 0.25), ("leaves", 0.2)),
        "city": (("traffic", 1.0),),
        "crowd": (("murmur", 0.8), ("hush", 0.2)),
        "village": (("wind", 0.25), ("hush", 0.3)),
        "fire": (("fire", 0.9),),
        "underwater": (("deep", 1.0),),
        "space": (("pad", 0.9), ("hush", 0.15)),
        "room": (("room", 0.7),),
        "snow": (("hush", 0.7), ("wind", 0.2)),
        "cave": (("drips", 0.8), ("hush", 0.3)),
        "hush": (("hush", 0.7),),
        "pad": (("pad", 0.9),),
    }
)
SEALED = frozenset({"underwater", "space", "pad"})
"""Places where neither the weather nor the hour is heard."""
LIVELY: Mapping[str, Layers] = MappingProxyType(
    {"forest": (("birds", 0.5),), "meadow": (("birds", 0.35), ("bees", 0.08)), "village": (("birds", 0.3),)}
    | {"river": (("birds", 0.25),), "lake": (("birds", 0.2),), "sea": (("gulls", 0.3),)}
)
"""Sounds of the day in fair weather."""
NIGHTLY: Mapping[str, Layers] = MappingProxyType(
    {"forest": (("crickets", 0.1), ("owl", 0.5)), "meadow": (("crickets", 0.12),), "village": (("crickets", 0.1),)}
    | {"river": (("crickets", 0.1),), "lake": (("crickets", 0.1),)}
)
WEATHER: Mapping[Weather, Layers] = MappingProxyType(
    {
        Weather.CLEAR: (),
        Weather.CLOUDS: (),
        Weather.RAIN: (("rain", 0.9),),
        Weather.STORM: (("rain", 0.8), ("thunder", 1.6), ("gale", 0.4)),
        Weather.SNOW: (("hush", 0.5), ("wind", 0.2)),
        Weather.FOG: (("hush", 0.3),),
        Weather.WIND: (("gale", 0.8),),
    }
)
QUIET_WEATHER = frozenset({Weather.CLEAR, Weather.CLOUDS, Weather.FOG})
PARTICLES: Mapping[Particles, Layers] = MappingProxyType(
    {
        Particles.EMBERS: (("fire", 0.6),),
        Particles.FIREWORKS: (("fireworks", 0.8),),
        Particles.BUBBLES: (("drips", 0.2),),
    }
)
CAST: Mapping[str, Layers] = MappingProxyType(
    dict.fromkeys(("train", "bullet train", "tram"), (("train", 1.0),))
    | dict.fromkeys(("car", "sports car", "truck", "bus", "taxi", "tractor", "motorbike"), (("engine", 0.5),))
    | dict.fromkeys(("aeroplane", "propeller plane", "helicopter", "drone"), (("engine", 0.5),))
    | {
        "rocket": (("roar", 0.9),),
        "dragon": (("gale", 0.3),),
        "whale": (("whales", 0.5),),
        "seagull": (("gulls", 0.4),),
        "owl": (("owl", 0.5),),
        "bee": (("bees", 0.3),),
        "bird": (("birds", 0.4),),
        "surfer": (("waves", 0.8),),
    }
)
"""Sounds of the cast."""
THERE: Mapping[str, Layers] = MappingProxyType(
    {
        "waterfall": (("waterfall", 1.0),),
        "river valley": (("stream", 0.7),),
        "mountain lake": (("lapping", 0.5),),
        "harbour": (("lapping", 0.6),),
        "arctic": (("hush", 0.5),),
        "snowy mountains": (("hush", 0.4),),
        "jungle": (("drips", 0.3), ("birds", 0.4)),
        "highway": (("traffic", 0.3),),
    }
)
"""Further sounds of single places."""


def make_ambience(sound: str, script: Script, seconds: float, seed: int) -> NDArray[np.float32]:
    """Return the sound of a place, samples x 2 at 48 kHz, with soft ends."""
    studio = SoundStudio(seconds, seed)
    mixed = np.zeros((studio.length, 2), np.float32)
    for noise, loudness in _merge(_choose_layers(sound, script)).items():
        mixed += (NOISES[noise](studio) * loudness).astype(np.float32)
    return _finish(mixed)


def _choose_layers(sound: str, script: Script) -> Iterator[tuple[str, float]]:
    yield from SOUNDS.get(sound, SOUNDS["hush"])
    yield from THERE.get(script.place, ())
    for role in script.cast:
        yield from CAST.get(role.subject, ())
    yield from PARTICLES.get(script.particles, ())
    if sound in SEALED:
        return
    yield from WEATHER[script.weather]
    if script.weather in QUIET_WEATHER:
        dark = script.time in {Time.NIGHT, Time.DUSK}
        yield from (NIGHTLY if dark else LIVELY).get(sound, ())


def _merge(layers: Iterator[tuple[str, float]]) -> dict[str, float]:
    """Return each noise once, with the highest loudness asked for it."""
    merged: dict[str, float] = {}
    for noise, loudness in layers:
        merged[noise] = max(loudness, merged.get(noise, 0.0))
    return merged


def _finish(mixed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Even out the loudness, remove the bias, soften peaks, and fade both ends."""
    mixed -= mixed.mean(axis=0)
    mixed *= np.float32(LOUDNESS / (np.sqrt(np.mean(mixed**2)) + 1e-9))
    mixed = np.tanh(mixed / np.float32(PEAK)) * np.float32(PEAK)
    fade = min(int(FADE * RATE), len(mixed) // 2)
    ramp = (np.sin(np.linspace(0, np.pi / 2, fade, dtype=np.float32)) ** 2)[:, None]
    mixed[:fade] *= ramp
    mixed[-fade:] *= ramp[::-1]
    return mixed
