"""Opens callers' films, sounds and 3D models to prove what they are; blocking, for the process pool."""

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Final

from penstock.domain.files import InputFacts, Source, opened
from penstock.domain.job_errors import FileUnreadable
from penstock.inspection import models
from penstock.inspection.images_and_video import MAX_VIDEO_SIDE

if TYPE_CHECKING:  # PyAV is imported where it is used: a child that does not need it does not load it
    from av.container import InputContainer
    from av.video.stream import VideoStream

_PYAV = ("av", "av.logging", "av.subtitles.stream")
LIBRARIES = {"inspect_film": _PYAV, "inspect_sound": _PYAV}
MAX_FILM_SECONDS: Final = 600
MAX_SOUND_SECONDS: Final = 7200
MAX_KEY_FRAMES: Final = 120
"""Frames of a film that are decoded. Of the others, only the container is read."""
FILM_TYPES: Final = {"mov,mp4,m4a,3gp,3g2,mj2": "video/mp4", "matroska,webm": "video/webm"}
SOUND_TYPES: Final = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "aac": "audio/aac",
    "mov,mp4,m4a,3gp,3g2,mj2": "audio/mp4",
    "matroska,webm": "audio/webm",
}


def inspect_film(source: Source) -> InputFacts:
    """Describe a caller's MP4, MOV or WebM: all of its container is read, and its key frames are decoded."""
    return _inspect(source, "film", _read_film)


def inspect_sound(source: Source) -> InputFacts:
    """Describe a caller's sound after decoding all of it."""
    return _inspect(source, "sound", _read_sound)


def inspect_mesh(source: Source) -> InputFacts:
    """Describe a caller's 3D model: a GLB, OBJ or STL is read fully, an FBX or USDZ stays sealed."""
    return InputFacts(models.inspect_mesh(source).content_type)


def _inspect(source: Source, name: str, read: "Callable[[InputContainer, bytes], InputFacts]") -> InputFacts:
    import av  # noqa: PLC0415 - a quick start
    import av.logging  # noqa: PLC0415 - a quick start

    av.logging.set_level(None)
    with opened(source) as file:
        head = _peek(file)
        try:
            with av.open(file, "r") as container:
                return read(container, head)
        except FileUnreadable:
            raise
        except Exception as error:  # damaged bytes make PyAV raise nearly anything
            raise FileUnreadable(f"The {name} is damaged, cut off or of an unknown type.") from error


def _peek(file: IO[bytes]) -> bytes:
    head = file.read(12)
    file.seek(0)
    return head


def _read_film(container: "InputContainer", head: bytes) -> InputFacts:
    content_type = FILM_TYPES.get(container.format.name)
    if content_type is None or not container.streams.video:
        raise FileUnreadable("The file is not an MP4, MOV or WebM film; only these are allowed.")
    stream = container.streams.video[0]
    context = stream.codec_context
    content_type = "video/quicktime" if head[8:10] == b"qt" else content_type
    if not 0 < max(context.width, context.height) <= MAX_VIDEO_SIDE:
        raise FileUnreadable(
            f"The film is {context.width} x {context.height} px; at most {MAX_VIDEO_SIDE} are allowed."
        )
    context.options = {"max_pixels": str(MAX_VIDEO_SIDE**2)}
    context.skip_frame = "NONKEY"
    context.thread_count = 1  # the process that opens callers' files may have no threads
    seconds = _read_packets(container, stream)
    if seconds > MAX_FILM_SECONDS:
        raise FileUnreadable(f"The film is {seconds:.0f} seconds long; at most {MAX_FILM_SECONDS} are allowed.")
    return InputFacts(content_type, context.width, context.height, round(seconds, 3))


def _read_packets(container: "InputContainer", stream: "VideoStream") -> float:
    """Read all packets and decode the key frames. Return the end of the last frame in seconds."""
    end, key_frames = 0.0, 0
    for packet in container.demux(stream):
        if packet.pts is not None:
            end = max(end, float((packet.pts + (packet.duration or 0)) * packet.time_base))
        if packet.is_keyframe and key_frames < MAX_KEY_FRAMES:
            key_frames += len(packet.decode())
    if not key_frames or end <= 0:
        raise FileUnreadable("The film has no picture that can be decoded.")
    return end


def _read_sound(container: "InputContainer", head: bytes) -> InputFacts:
    del head
    content_type = SOUND_TYPES.get(container.format.name)
    if content_type is None or not container.streams.audio:
        raise FileUnreadable("The file is not an MP3, WAV, FLAC, Ogg, AAC, M4A or WebM sound; only these are allowed.")
    seconds, stream = 0.0, container.streams.audio[0]
    stream.codec_context.thread_count = 1
    for frame in container.decode(stream):
        seconds += frame.samples / frame.sample_rate
        if seconds > MAX_SOUND_SECONDS:
            raise FileUnreadable(f"The sound is longer than {MAX_SOUND_SECONDS} seconds, the most that is allowed.")
    if not seconds:
        raise FileUnreadable("The sound is empty.")
    return InputFacts(content_type, duration_seconds=round(seconds, 3))
