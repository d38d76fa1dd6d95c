"""Opens images and videos to prove that they are what they should be; blocking, for the process pool."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any

from penstock.domain.files import (
    CONTENT_TYPES,
    MAX_FILE_BYTES,
    MAX_SIDE,
    MIN_SIDE,
    Count,
    ImageFacts,
    Source,
    opened,
    size_of,
    sniff,
)
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.inspection.picture_structure import check_structure

if TYPE_CHECKING:  # Pillow and PyAV are imported where they are used: a child that needs one does not load the other
    from av.container import InputContainer
    from av.video.frame import VideoFrame

_PILLOW = ("PIL.JpegImagePlugin", "PIL.PngImagePlugin", "PIL.WebPImagePlugin", "PIL.TiffImagePlugin")
_PYAV = ("av", "av.logging", "av.subtitles.stream")
LIBRARIES = {"inspect_image": _PILLOW, "inspect_picture": _PILLOW, "inspect_video": _PYAV}
"""Modules that each function imports; the child loads them first, as a confined process may not."""
MAX_VIDEO_SIDE = 8192
MAX_PICTURE_BYTES = 128 * 1024 * 1024
"""Upper bound of a vendor's picture: a PNG of the largest size that is hard to compress."""
MAX_FRAMES = 216_000
"""An hour of 60 frames a second."""
RATIO_TOLERANCE = 0.01
SECONDS_NOTED, SECONDS_REFUSED = 0.25, 1.0


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """The facts found by decoding a video; width and height are as displayed."""

    width: Count
    height: Count
    duration_seconds: float
    fps: float
    frames: Count
    warnings: tuple[str, ...] = ()


# -- images


def inspect_image(source: Source) -> ImageFacts:
    """Describe a caller's image after decoding all of it."""
    with opened(source) as file:
        if (size := size_of(file)) > MAX_FILE_BYTES:
            raise FileUnreadable(f"The image has {size} bytes; at most {MAX_FILE_BYTES} are allowed.")
        try:
            return _decode_image(file, MIN_SIDE)
        except ValueError as error:
            raise FileUnreadable(str(error)) from error


def inspect_picture(source: Source) -> ImageFacts:
    """Describe a vendor's picture after decoding all of it."""
    with opened(source) as file:
        if (size := size_of(file)) > MAX_PICTURE_BYTES:
            raise BadOutput(f"The output has {size} bytes; at most {MAX_PICTURE_BYTES} are allowed.")
        try:
            return _decode_image(file, smallest=1)
        except ValueError as error:
            raise BadOutput(f"The picture is unusable. {error}") from error


def _decode_image(file: IO[bytes], smallest: int) -> ImageFacts:
    from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: PLC0415 - a quick start

    file.seek(0)
    kind = sniff(file.read(16))
    file.seek(0)
    if kind is None:
        raise ValueError("The file is not a JPEG, PNG or WebP image; only these are allowed.")
    check_structure(file, kind)
    # The readers themselves: `Image.open` counts pixels before it tells the sides.
    reader = {
        "jpeg": JpegImagePlugin.JpegImageFile,
        "png": PngImagePlugin.PngImageFile,
        "webp": WebPImagePlugin.WebPImageFile,
    }[kind]
    Image.MAX_IMAGE_PIXELS = MAX_SIDE * MAX_SIDE  # the WebP reader takes memory for twice as many before it is asked
    name = CONTENT_TYPES[kind].removeprefix("image/").upper()
    allowed = f"each side must be {smallest} to {MAX_SIDE} px"
    try:
        with warnings.catch_warnings(action="ignore"), reader(file) as image:
            width, height = image.size
            if fits := smallest <= min(width, height) and max(width, height) <= MAX_SIDE:
                image.load()
            if fits and kind == "png":
                file.seek(0)
                reader(file).verify()  # its checksums, which decoding passes over
    except Image.DecompressionBombError as error:
        raise ValueError(f"The {name} image has too many pixels; {allowed}.") from error
    except Exception as error:  # damaged bytes make Pillow raise nearly anything, some of it in words for programmers
        said = re.sub(r"\S*[._]\S*", "", str(error)).strip() or "unreadable"
        raise ValueError(f"The {name} image is damaged or cut off ({said}).") from error
    if not fits:
        raise ValueError(f"The {name} image is {width} x {height} px; {allowed}.")
    return ImageFacts(CONTENT_TYPES[kind], width, height)


# -- videos


def inspect_video(source: Source, width: int | None, height: int | None, seconds: float | None) -> VideoFacts:
    """Describe an MP4 after decoding all of it, compared with the size and length that were asked for."""
    import av.logging  # noqa: PLC0415 - a quick start

    av.logging.set_level(None)
    with opened(source) as file:
        if file.read(8)[4:] != b"ftyp":
            raise BadOutput("The video is not an MP4.")
        file.seek(0)
        # Names in odd encodings say nothing about the pictures; PyAV 19 (from Python 3.12 on) passes over them itself.
        lenient: dict[str, Any] = {} if int(av.__version__.split(".")[0]) >= 19 else {"metadata_errors": "ignore"}
        try:
            with av.open(file, "r", format="mp4", **lenient) as container:
                found = _decode_video(container)
        except Exception as error:  # damaged bytes make PyAV raise nearly anything, some of it naming our own path
            reason = getattr(error, "strerror", None) or (isinstance(error, ValueError) and error) or "it is unreadable"
            raise BadOutput(f"The video is damaged or cut off: {reason}.") from error
    return replace(found, warnings=tuple(_compare(found, width, height, seconds)))


def _decode_video(container: "InputContainer") -> VideoFacts:
    if not container.streams.video:
        raise ValueError("it has no video stream")
    stream = container.streams.video[0]
    context = stream.codec_context
    if max(context.width, context.height) > MAX_VIDEO_SIDE:
        raise ValueError(f"it claims to be {context.width} x {context.height}")
    context.options = {"err_detect": "explode", "max_pixels": str(MAX_VIDEO_SIDE**2)}  # a decoder likes to hide errors
    context.thread_type = "AUTO"
    first = last = None
    packets = frames = 0
    for packet in container.demux(stream):
        packets += packet.size > 0
        for frame in packet.decode():
            if packet.is_corrupt or frame.is_corrupt:
                raise ValueError(f"frame {frames} is broken")
            first, last = first or frame, frame
            frames += 1
        if frames > MAX_FRAMES:
            raise ValueError(f"it has more than {MAX_FRAMES} frames")
    if not (first and last) or packets < stream.frames:
        raise ValueError(f"it holds {packets} of {stream.frames} frames")
    return _describe(first, last, frames, stream.sample_aspect_ratio)


def _describe(first: "VideoFrame", last: "VideoFrame", frames: int, pixel_ratio: Fraction | None) -> VideoFacts:
    seconds = last.time - first.time + float(last.duration * (last.time_base or 0))
    if seconds <= 0:
        raise ValueError("it has no length")
    width, height = round(last.width * (pixel_ratio or 1)), last.height
    if last.rotation % 180 == 90:
        width, height = height, width
    return VideoFacts(width, height, round(seconds, 3), round(frames / seconds, 3), frames)


def _compare(found: VideoFacts, width: int | None, height: int | None, seconds: float | None) -> Iterator[str]:
    if width and height:
        message = f"The video is {found.width} x {found.height}; {width} x {height} was asked for."
        if abs(found.width * height / (found.height * width) - 1) > RATIO_TOLERANCE:
            raise BadOutput(message)
        if (found.width, found.height) != (width, height):
            yield message
    if seconds is not None:
        message = f"The video is {found.duration_seconds:g} seconds long; {seconds:g} were asked for."
        if abs(found.duration_seconds - seconds) > SECONDS_REFUSED:
            raise BadOutput(message)
        if abs(found.duration_seconds - seconds) > SECONDS_NOTED:
            yield message
