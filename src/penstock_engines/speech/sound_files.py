"""Sound files: reads any that FFmpeg knows, and writes the formats that callers may ask for."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import io
import wave
from collections.abc import Iterator
from fractions import Fraction
from typing import IO, Any, Final

import av
import av.filter
import av.logging
import numpy as np
from av.error import BlockingIOError, EOFError, InvalidDataError  # noqa: A004  PyAV's own, not the built-in ones
from numpy.typing import NDArray

from penstock_engines.speech.model_facts import AudioFormat

Samples = NDArray[np.int16]

CODECS: Final = {
    "mp3": ("mp3", "libmp3lame", 64_000, 24_000),
    "flac": ("flac", "flac", None, 24_000),
    "opus": ("ogg", "libopus", 48_000, 48_000),
    "aac": ("adts", "aac", 64_000, 24_000),
}
"""By format: container, codec, bits per second and sample rate."""


class NotSound(ValueError):
    """The file cannot be read as sound. The message may be shown to callers."""


def read_sound(file: IO[bytes], sample_rate: int, max_seconds: float) -> Samples:
    """Return the first sound track of a file with one channel. Raise `NotSound`."""
    av.logging.set_level(None)
    try:
        with av.open(file, "r") as container:
            samples, problem = _read_track(container, sample_rate, round(max_seconds * sample_rate))
    except Exception as error:  # damaged bytes make PyAV raise nearly anything
        raise NotSound(getattr(error, "strerror", None) or "it is damaged") from error
    if problem:
        raise NotSound(problem)
    return np.concatenate(samples)


def _read_track(container: Any, sample_rate: int, most: int) -> tuple[list[Samples], str]:
    """Return the samples of the first sound track, and what is wrong with it."""
    if not container.streams.audio:
        return [], "it has no sound track"
    resampler = av.AudioResampler(format="s16", layout="mono", rate=sample_rate)
    pieces, count = list[Samples](), 0
    for frame in _frames(container):
        for piece in resampler.resample(frame):
            pieces.append(piece.to_ndarray().reshape(-1).astype(np.int16, copy=False))
            count += len(pieces[-1])
        if count > most:
            return [], f"it is longer than {most / sample_rate:g} seconds"
    return pieces, "" if count else "its sound track is empty"


def _frames(container: Any) -> Iterator[Any]:
    """Yield all frames, then None, which empties the resampler. A damaged packet is left out."""
    stream = container.streams.audio[0]
    read = 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except InvalidDataError:
            continue
        read += len(frames)
        yield from frames
    if read:
        yield None


def write_sound(samples: Samples, sample_rate: int, wanted: AudioFormat) -> bytes:
    """Return the samples of one channel as a file."""
    if wanted == "pcm":
        return samples.astype("<i2").tobytes()
    if wanted == "wav":
        return _write_wav(samples, sample_rate)
    container_name, codec, bits, rate = CODECS[wanted]
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container_name) as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.codec_context.layout = "mono"
        if bits is not None:
            stream.bit_rate = bits
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = sample_rate
        resampler = av.AudioResampler(
            format=stream.codec_context.format, layout="mono", rate=rate, frame_size=stream.codec_context.frame_size
        )
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def _write_wav(samples: Samples, sample_rate: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return buffer.getvalue()


def to_samples(sound: NDArray[np.float32]) -> Samples:
    """Return sound from -1 to 1 as numbers of 16 bits."""
    return (np.clip(sound, -1.0, 1.0) * 32767).astype(np.int16)


def to_floats(samples: Samples) -> NDArray[np.float32]:
    """Return samples as numbers from -1 to 1."""
    return samples.astype(np.float32) / np.float32(32768)


def change_tempo(samples: Samples, sample_rate: int, factor: float) -> Samples:
    """Return the sound this many times as fast, at its own pitch. The factor is 0.5 or more."""
    if factor == 1 or not len(samples):
        return samples
    graph: Any = av.filter.Graph()
    source = graph.add_abuffer(sample_rate=sample_rate, format="s16", layout="mono", time_base=Fraction(1, sample_rate))
    tempo, sink = graph.add("atempo", f"{factor:g}"), graph.add("abuffersink")
    source.link_to(tempo)
    tempo.link_to(sink)
    graph.configure()
    frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate, frame.time_base = sample_rate, Fraction(1, sample_rate)
    source.push(frame)
    source.push(None)
    pieces = list[Samples]()
    while True:
        try:
            pieces.append(sink.pull().to_ndarray().reshape(-1))
        except (BlockingIOError, EOFError):
            return np.concatenate(pieces)
