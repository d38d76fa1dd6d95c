"""The picture of a sound that Whisper reads: the strength of 80 pitches in each hundredth of a second."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
CHUNK_SECONDS = 30
CHUNK_SAMPLES = CHUNK_SECONDS * SAMPLE_RATE
HOP = 160
WINDOW = 400
BANDS = 80
LINEAR_HERTZ_PER_MEL = 200 / 3
LOG_FROM_HERTZ = 1000.0
LOG_STEP = np.log(6.4) / 27
"""The mel scale of Slaney's Auditory Toolbox: linear up to 1 kHz, and 27 steps for each factor of 6.4 above."""

Floats = NDArray[np.float32]


def log_mel(samples: Floats) -> Floats:
    """Return the bands of at most 30 seconds of sound, filled up with silence, as (80, 3000)."""
    filled = np.zeros(CHUNK_SAMPLES, np.float32)
    filled[: len(samples)] = samples[:CHUNK_SAMPLES]
    edges = np.pad(filled, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(edges, WINDOW)[::HOP][:-1]
    spectrum = np.fft.rfft(frames * _hann(), axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    logs = np.log10(np.maximum(mel_filters() @ power.T, 1e-10))
    return ((np.maximum(logs, logs.max() - 8) + 4) / 4).astype(np.float32)


@cache
def _hann() -> Floats:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


@cache
def mel_filters() -> Floats:
    """Return triangles of unit area, one for each band, over the frequencies of the spectrum."""
    frequencies = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE)
    corners = _mel_to_hertz(np.linspace(0, _hertz_to_mel(SAMPLE_RATE / 2), BANDS + 2))
    widths, distances = np.diff(corners)[:, None], corners[:, None] - frequencies
    rising, falling = -distances[:-2] / widths[:-1], distances[2:] / widths[1:]
    height = 2 / (corners[2:] - corners[:-2])[:, None]
    return (np.maximum(0, np.minimum(rising, falling)) * height).astype(np.float32)


def _hertz_to_mel(hertz: float) -> float:
    bend = LOG_FROM_HERTZ / LINEAR_HERTZ_PER_MEL
    return bend + float(np.log(hertz / LOG_FROM_HERTZ) / LOG_STEP)


def _mel_to_hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    bend = LOG_FROM_HERTZ / LINEAR_HERTZ_PER_MEL
    return np.where(mels < bend, mels * LINEAR_HERTZ_PER_MEL, LOG_FROM_HERTZ * np.exp(LOG_STEP * (mels - bend)))
