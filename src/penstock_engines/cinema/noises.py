"""Noises of the world, made of shaped noise and oscillators. Each is samples x 2, all about equally loud."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.floating[Any]]

RATE = 48000
STEPS = 200  # per second, for slow changes
CHORD = (110.0, 164.81, 220.0, 277.18, 329.63)
BIRDS = ((2600, 3400), (3200, 2500), (4100, 4600), (3600, 5200), (2900, 3000))


class SoundStudio:
    """Makes noises of one length, with all randomness from one seed."""

    def __init__(self, seconds: float, seed: int) -> None:
        self.length = max(RATE // 10, round(seconds * RATE)) // 2 * 2
        self.chance = np.random.default_rng(seed)
        half = (2, self.length // 2 + 1)
        real, imaginary = self.chance.standard_normal((2, *half), np.float32)
        self._spectrum = real + 1j * imaginary
        self._pitch = np.fft.rfftfreq(self.length, 1 / RATE).astype(np.float32)

    def hiss(self, low: float, high: float, slope: float = 0.0) -> Samples:
        """Return noise between two pitches. `slope` -1 makes it brown instead of white."""
        pitch = np.maximum(self._pitch, 1)
        shape = 1 / ((1 + (low / pitch) ** 4) * (1 + (pitch / high) ** 4)) * (pitch / 1000) ** slope
        shape[self._pitch < 20] = 0
        noise = np.fft.irfft(self._spectrum * shape, self.length).astype(np.float32)
        shift = int(self.chance.integers(self.length))  # so that two hisses do not swell together
        return leveled(np.roll(noise, shift, axis=1).T)

    def swell(self, period: float, depth: float, start: float | None = None) -> Samples:
        """Return a slow rise and fall around 1, as a column."""
        moment = np.arange(0, self.length / RATE + 0.1, 1 / STEPS)
        phase = self.chance.uniform(0, 2 * np.pi, 3) if start is None else np.full(3, start)
        turns = moment[:, None] * (2 * np.pi / period) * np.array([1, 0.53, 1.71]) + phase
        wave = np.sin(turns) @ np.array([0.6, 0.25, 0.15])
        return self.stretch(np.exp(wave * depth))

    def stretch(self, values: NDArray[np.float64]) -> Samples:
        """Return values given at `STEPS` a second, interpolated for every sample, as a column."""
        moment = np.arange(self.length, dtype=np.float32) * np.float32(STEPS / RATE)
        return np.interp(moment, np.arange(len(values)), values).astype(np.float32)[:, None]

    def scatter(self, per_second: float, make: Callable[[], NDArray[np.float64]], *, wide: float = 0.8) -> Samples:
        """Return short sounds at random moments, spread between left and right."""
        heard = np.zeros((self.length, 2), np.float32)
        for _ in range(1 + int(self.chance.poisson(per_second * self.length / RATE))):
            self.lay(heard, make(), float(self.chance.uniform(0, self.length / RATE)), wide)
        return heard

    def lay(self, heard: Samples, sound: NDArray[np.float64], moment: float, wide: float) -> None:
        """Add one short sound. A sound that would run over the end is left out, so that none is cut off."""
        start = int(moment * RATE)
        side = float(self.chance.uniform(-wide, wide))
        loudness = float(self.chance.uniform(0.4, 1))
        if start + len(sound) <= self.length:
            sides = np.sqrt([(1 - side) / 2, (1 + side) / 2]) * loudness
            heard[start : start + len(sound)] += (sound[:, None] * sides).astype(np.float32)

    def tone(self, start: float, end: float, seconds: float, sharpness: float = 1.0) -> NDArray[np.float64]:
        """Return a whistle that glides from one pitch to another, swelling up and down."""
        share = np.linspace(0, 1, max(64, int(seconds * RATE)))
        pitch = start + (end - start) * share
        turns = np.cumsum(pitch) / RATE * 2 * np.pi
        return np.sin(turns) * np.sin(np.pi * share**sharpness) ** 2

    def burst(self, seconds: float, smoothness: int, attack: float = 0.02) -> NDArray[np.float64]:
        """Return a puff of noise that dies away. Smoother means deeper."""
        count = max(64, int(seconds * RATE))
        noise = self.chance.standard_normal(count + 2 * smoothness)
        for _ in range(2):  # a single pass would leave a comb of overtones
            sums = np.cumsum(noise)
            noise = (sums[smoothness:] - sums[:-smoothness]) / smoothness
        share = np.linspace(0, 1, count)
        rise = np.clip(share / attack, 0, 1)
        return noise * np.sqrt(smoothness) * rise * (1 - share) ** 2 * np.exp(-4 * share)


def leveled(sound: Samples) -> Samples:
    """Return the samples at a loudness (root mean square) of 1."""
    return sound / np.float32(np.sqrt(np.mean(sound**2)) + 1e-9)


def _waves(studio: SoundStudio) -> Samples:
    rolling = studio.hiss(60, 700, -0.8) * studio.swell(5.5, 1.0)
    return rolling * 0.6 + studio.hiss(900, 6000, -0.7) * studio.swell(6.5, 1.5) * 0.45


def _lapping(studio: SoundStudio) -> Samples:
    return studio.hiss(150, 1200, -0.8) * studio.swell(2.6, 1.1) * 0.7 + _drips(studio) * 0.4


def _drips(studio: SoundStudio) -> Samples:
    def drip() -> NDArray[np.float64]:
        pitch = studio.chance.uniform(500, 1400)
        return studio.tone(pitch, pitch * studio.chance.uniform(1.2, 1.7), studio.chance.uniform(0.03, 0.08), 0.6)

    return studio.scatter(5, drip)


def _stream(studio: SoundStudio) -> Samples:
    return studio.hiss(350, 4500, -0.5) * studio.swell(1.3, 0.25) * 0.8 + _drips(studio) * 0.5


def _waterfall(studio: SoundStudio) -> Samples:
    return studio.hiss(90, 5000, -0.8) * studio.swell(3, 0.12)


def _rain(studio: SoundStudio) -> Samples:
    def drop() -> NDArray[np.float64]:
        return studio.burst(studio.chance.uniform(0.008, 0.02), 6, 0.1)

    return studio.hiss(500, 6500, -0.7) * studio.swell(4, 0.15) * 0.9 + studio.scatter(40, drop) * 0.5


def _wind(studio: SoundStudio) -> Samples:
    low = studio.hiss(70, 420, -0.6) * studio.swell(4.5, 0.8)
    return low * 0.8 + studio.hiss(500, 1500, -0.8) * studio.swell(3.4, 1.3) * 0.35


def _gale(studio: SoundStudio) -> Samples:
    return _wind(studio) + studio.hiss(600, 2600, -0.8) * studio.swell(2.4, 1.2) * 0.5


def _leaves(studio: SoundStudio) -> Samples:
    return studio.hiss(700, 4500, -1.0) * studio.swell(3.1, 0.9) * 0.7


def _hush(studio: SoundStudio) -> Samples:
    return studio.hiss(120, 1800, -1.0) * studio.swell(5, 0.4)


def _birds(studio: SoundStudio) -> Samples:
    heard = np.zeros((studio.length, 2), np.float32)
    for _ in range(max(2, round(studio.length / RATE * 0.9))):
        start, end = BIRDS[int(studio.chance.integers(len(BIRDS)))]
        moment = studio.chance.uniform(0, studio.length / RATE)
        gap, length = studio.chance.uniform(0.09, 0.17), studio.chance.uniform(0.05, 0.11)
        for note in range(int(studio.chance.integers(2, 6))):
            studio.lay(heard, studio.tone(start, end, length) * 1.8, float(moment + note * gap), 0.9)
    return heard


def _gulls(studio: SoundStudio) -> Samples:
    def cry() -> NDArray[np.float64]:
        pitch, length = studio.chance.uniform(950, 1250), studio.chance.uniform(0.25, 0.45)
        parts = (studio.tone(pitch * part, pitch * part * 0.72, length, 0.5) / part for part in (1, 2, 3))
        return sum(parts, np.zeros(1)) * 0.7

    return studio.scatter(0.45, cry)


def _owl(studio: SoundStudio) -> Samples:
    return studio.scatter(0.25, lambda: studio.tone(390, 350, 0.55, 0.7))


def _crickets(studio: SoundStudio) -> Samples:
    moment = np.arange(studio.length, dtype=np.float32) / RATE
    heard = np.zeros((studio.length, 2), np.float32)
    for pitch, pulses, side in ((4150, 31, 0.25), (4520, 27, 0.7), (4870, 36, 0.5)):
        period = float(studio.chance.uniform(0.7, 1.3))
        trill = np.square(np.clip(np.sin(2 * np.pi * pulses * moment), 0, 1))
        chirps = np.clip(np.sin(2 * np.pi / period * moment + side) * 2, 0, 1)
        song = np.sin(2 * np.pi * pitch * moment) * trill * chirps
        heard += song[:, None] * np.sqrt([1 - side, side]).astype(np.float32)
    return leveled(heard) * np.float32(0.8)


def _bees(studio: SoundStudio) -> Samples:
    moment = np.arange(studio.length, dtype=np.float32) / RATE
    turns = 2 * np.pi * 190 * moment + 8 * np.sin(4.4 * moment)
    hum = sum((np.sin(turns * part) / part for part in (1, 2, 3)), np.zeros(1, np.float32))
    return leveled(hum[:, None] * np.ones(2, np.float32)) * studio.swell(3, 1.4) * 0.6


def _traffic(studio: SoundStudio) -> Samples:
    passing = studio.hiss(250, 1600, -0.8) * studio.swell(3.8, 1.5)
    return studio.hiss(35, 260, -0.9) * studio.swell(6, 0.2) * 0.8 + passing * 0.35


def _murmur(studio: SoundStudio) -> Samples:
    voices = studio.hiss(180, 700, -0.6) * studio.swell(0.45, 0.7) + studio.hiss(300, 1400, -0.9) * studio.swell(
        0.31, 0.8
    )
    return voices * 0.6


def _fire(studio: SoundStudio) -> Samples:
    def crackle() -> NDArray[np.float64]:
        return studio.burst(studio.chance.uniform(0.004, 0.03), int(studio.chance.integers(2, 9)), 0.05)

    roar = studio.hiss(50, 500, -0.8) * studio.swell(1.1, 0.4) * 0.7
    return roar + studio.scatter(14, crackle) * 1.2


def _deep(studio: SoundStudio) -> Samples:
    def bubble() -> NDArray[np.float64]:
        pitch = studio.chance.uniform(220, 700)
        return studio.tone(pitch, pitch * 1.9, studio.chance.uniform(0.05, 0.14), 0.8)

    return studio.hiss(30, 240, -0.8) * studio.swell(5, 0.5) + studio.scatter(3, bubble) * 0.5


def _whales(studio: SoundStudio) -> Samples:
    def song() -> NDArray[np.float64]:
        start, end = studio.chance.uniform(160, 420, 2)
        return studio.tone(start, end, studio.chance.uniform(0.9, 1.6))

    return studio.scatter(0.5, song, wide=0.5)


def _pad(studio: SoundStudio) -> Samples:
    """Return a slowly swelling chord. Each note is two slightly detuned sines."""
    moment = np.arange(studio.length, dtype=np.float32) / RATE
    heard = np.zeros((studio.length, 2), np.float32)
    for place, pitch in enumerate(CHORD):
        shift = float(studio.chance.uniform(0.15, 0.4))
        pair = np.stack([np.sin(2 * np.pi * (pitch + sign * shift) * moment) for sign in (-1, 1)], axis=1)
        heard += pair.astype(np.float32) * studio.swell(6 + place, 0.8) / np.float32(1 + place * 0.35)
    return leveled(heard)


def _room(studio: SoundStudio) -> Samples:
    heard = studio.hiss(60, 320, -0.9) * np.float32(0.5)
    for second in range(studio.length // RATE):
        studio.lay(heard, studio.tone(2100, 1500, 0.012, 0.4) * 0.5, second + 0.4, 0.1)
    return heard


def _thunder(studio: SoundStudio) -> Samples:
    heard = np.zeros((studio.length, 2), np.float32)
    seconds = studio.length / RATE
    for moment in np.arange(0.15, 1, 0.45) * seconds:
        studio.lay(heard, studio.burst(min(2.8, seconds / 2), 220, 0.06) * 5, float(moment), 0.4)
    return heard


def _train(studio: SoundStudio) -> Samples:
    heard = studio.hiss(40, 300, -0.7) * np.float32(0.6)
    for beat in np.arange(0.1, studio.length / RATE, 0.62):
        for clack in (0.0, 0.13):
            studio.lay(heard, studio.burst(0.09, 60, 0.08) * 3, float(beat + clack), 0.1)
    return heard


def _engine(studio: SoundStudio) -> Samples:
    return studio.hiss(45, 220, -0.5) * studio.swell(2.5, 0.2) * 0.8 + studio.hiss(300, 900, -1) * 0.2


def _roar(studio: SoundStudio) -> Samples:
    return studio.hiss(30, 500, -0.7) * studio.swell(1.5, 0.25) + studio.hiss(400, 2500, -1) * 0.3


def _fireworks(studio: SoundStudio) -> Samples:
    return studio.scatter(1.1, lambda: studio.burst(1.0, 90, 0.02) * 4) + _fire(studio) * 0.25


NOISES: Mapping[str, Callable[[SoundStudio], Samples]] = MappingProxyType(
    {
        "waves": _waves,
        "lapping": _lapping,
        "drips": _drips,
        "stream": _stream,
        "waterfall": _waterfall,
        "rain": _rain,
        "wind": _wind,
        "gale": _gale,
        "leaves": _leaves,
        "hush": _hush,
        "birds": _birds,
        "gulls": _gulls,
        "owl": _owl,
        "crickets": _crickets,
        "bees": _bees,
        "traffic": _traffic,
        "murmur": _murmur,
        "fire": _fire,
        "deep": _deep,
        "whales": _whales,
        "pad": _pad,
        "room": _room,
        "thunder": _thunder,
        "train": _train,
        "engine": _engine,
        "roar": _roar,
        "fireworks": _fireworks,
    }
)
