"""Writes pictures and sound into an MP4 file, frame by frame."""
# pyright: reportUnknownMemberType=false
# PyAV does not type its packets

from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import cv2
import numpy as np
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from numpy.typing import NDArray

SAMPLES = 48000
GROUP = 48  # pictures between two key frames
THREADS = 2  # a constant, as the bytes depend on it; enough for several times the speed of the drawing
SOUND_BITS = 128_000
# The look ahead makes "superfast" as small as "veryfast" within a tenth, for three fifths of its work.
OPTIMIZED = {"crf": "20", "profile": "high", "x264-params": "mbtree=1:rc-lookahead=10"}
LOSSLESS = {"qp": "0"}  # x264 then turns to the profile High 4:4:4 Predictive by itself

# Blue, green, red and 1 become luma and the two chromas of BT.709 in the narrow range.
RED, GREEN, BLUE = 0.2126, 0.7152, 0.0722
LUMA = np.array([BLUE, GREEN, RED]) * 219 / 255
CHROMA_BLUE = (np.array([1, 0, 0]) - [BLUE, GREEN, RED]) / (2 - 2 * BLUE) * 224 / 255
CHROMA_RED = (np.array([0, 0, 1]) - [BLUE, GREEN, RED]) / (2 - 2 * RED) * 224 / 255
MATRIX = np.array([[*LUMA, 16], [*CHROMA_BLUE, 128], [*CHROMA_RED, 128]], np.float32)


def to_planes(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the picture (blue, green, red) as yuv420p: its three planes one below the other."""
    height, width = frame.shape[:2]
    luma = height * width
    colours = cv2.transform(frame, MATRIX)
    halved = cv2.resize(colours, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    planes = np.empty(luma * 3 // 2, np.uint8)
    planes[:luma].reshape(height, width)[:] = colours[..., 0]
    planes[luma:].reshape(2, height // 2, width // 2)[:] = halved[..., 1:].transpose(2, 0, 1)
    return planes.reshape(height * 3 // 2, width)


class Film:
    """A clip in the making. Open it, add every frame in turn, and close it."""

    def __init__(
        self, path: Path, width: int, height: int, fps: int, sound: NDArray[np.float32], *, lossless: bool = False
    ) -> None:
        """Take the sound as samples x 2 at 48 kHz. Sound beyond the last frame is not written."""
        self._container = av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"})
        options = {"preset": "superfast", "g": str(GROUP), **(LOSSLESS if lossless else OPTIMIZED)}
        self._video = self._container.add_stream("libx264", rate=fps, options=options)
        self._video.width, self._video.height, self._video.pix_fmt = width, height, "yuv420p"
        context = self._video.codec_context
        context.thread_count, context.thread_type = THREADS, "FRAME"
        context.color_range, context.colorspace = ColorRange.MPEG, Colorspace.ITU709
        context.color_primaries, context.color_trc = ColorPrimaries.BT709, ColorTrc.BT709
        context.sample_aspect_ratio = Fraction(1)
        self._audio = self._container.add_stream("aac", rate=SAMPLES, layout="stereo")
        self._audio.bit_rate = SOUND_BITS
        self._sound = np.ascontiguousarray(sound.T, np.float32)
        self._fps = fps
        self._frames = 0
        self._heard = 0

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Write the next picture (blue, green, red) and its share of the sound."""
        picture = av.VideoFrame.from_ndarray(to_planes(frame), format="yuv420p")
        picture.pts, picture.time_base = self._frames, Fraction(1, self._fps)
        self._container.mux(self._video.encode(picture))
        self._frames += 1
        self._add_sound()

    def close(self) -> None:
        """Write what is buffered and finish the file."""
        self._container.mux(self._video.encode(None))
        self._container.mux(self._audio.encode(None))
        self._container.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._container.close()

    def _add_sound(self) -> None:
        until = self._frames * SAMPLES // self._fps
        part = self._sound[:, self._heard : until]
        if part.shape[1]:
            heard = av.AudioFrame.from_ndarray(np.ascontiguousarray(part), format="fltp", layout="stereo")
            heard.sample_rate, heard.pts, heard.time_base = SAMPLES, self._heard, Fraction(1, SAMPLES)
            self._container.mux(self._audio.encode(heard))
        self._heard = until
