"""Facts about the speech models for modules that must not load their libraries: names, formats and limits."""

from typing import Final, Literal, TypeAlias

VOICE_MODEL: Final = "hibari"
VOICES: Final = ("heart",)
"""Voices that can be named. Those of OpenAI's clients are accepted, too, and spoken by the first."""
CLIENT_VOICES: Final = frozenset(
    "alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar".split()  # noqa: SIM905  shorter
)
MAX_TEXT_CHARACTERS: Final = 4096
MIN_SPEED, MAX_SPEED = 0.25, 4.0

WHISPER_MODEL: Final = "whisper-base"
WHISPER_WEIGHTS: Final = "whisper-base.zip"
MAX_AUDIO_SECONDS: Final = 1800.0

AudioFormat: TypeAlias = Literal["mp3", "wav", "flac", "opus", "aac", "pcm"]
FORMATS: Final[tuple[AudioFormat, ...]] = ("mp3", "wav", "flac", "opus", "aac", "pcm")
CONTENT_TYPES: Final = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "pcm": "audio/pcm",
}

MAX_AUDIO_BYTES: Final = 32 << 20
OPTIONS_HEADER: Final = "x-penstock-options"
"""Header with the options of a transcription as JSON. The body is the file itself."""
TRANSCRIPT_FORMATS: Final = ("json", "text", "verbose_json", "srt", "vtt")
MAX_PROMPT_CHARACTERS: Final = 2000
