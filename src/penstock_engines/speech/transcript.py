"""A transcript in the formats of OpenAI's clients: JSON, text, and subtitles as SRT and WebVTT."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Segment:
    """A phrase with its place in time and the model's confidence in it."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...] = ()
    log_probability: float = 0.0
    silence_probability: float = 0.0
    seek: int = 0
    """Hundredths of a second at which the stretch begins in which it was heard."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that was said, in one language."""

    language: str
    seconds: float
    segments: Sequence[Segment]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(segment.text for segment in self.segments).strip()


def write_transcript(found: Transcript, wanted: str) -> bytes:
    """Return the transcript in one of the formats `json`, `text`, `verbose_json`, `srt` and `vtt`."""
    return WRITERS[wanted](found).encode()


def _write_json(found: Transcript) -> str:
    usage = {"type": "duration", "seconds": round(found.seconds)}
    return json.dumps({"text": found.text, "usage": usage}, ensure_ascii=False)


def _write_verbose(found: Transcript) -> str:
    whole: dict[str, Any] = {
        "task": "transcribe",
        "language": LANGUAGES.get(found.language, found.language),
        "duration": round(found.seconds, 2),
        "text": found.text,
        "segments": [_describe(index, segment) for index, segment in enumerate(found.segments)],
        "usage": {"type": "duration", "seconds": round(found.seconds)},
    }
    return json.dumps(whole, ensure_ascii=False)


def _describe(index: int, segment: Segment) -> dict[str, Any]:
    return {
        "id": index,
        "seek": segment.seek,
        "start": round(segment.start, 2),
        "end": round(segment.end, 2),
        "text": segment.text,
        "tokens": list(segment.tokens),
        "temperature": 0.0,
        "avg_logprob": round(segment.log_probability, 4),
        "compression_ratio": 1.0,
        "no_speech_prob": round(segment.silence_probability, 4),
    }


def _write_text(found: Transcript) -> str:
    return found.text + "\n"


def _write_srt(found: Transcript) -> str:
    cues = (
        f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{_one_line(cue.text)}\n"
        for number, cue in enumerate(found.segments, 1)
    )
    return "\n".join(cues)


def _write_vtt(found: Transcript) -> str:
    cues = (f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{_one_line(cue.text)}\n" for cue in found.segments)
    return "\n".join(["WEBVTT\n", *cues])


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("-->", "->")


def _clock(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{point}{rest % 1000:03}"


WRITERS: Final[Mapping[str, Callable[[Transcript], str]]] = {
    "json": _write_json,
    "text": _write_text,
    "verbose_json": _write_verbose,
    "srt": _write_srt,
    "vtt": _write_vtt,
}
LANGUAGES: Final = {
    "ar": "arabic",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "he": "hebrew",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "th": "thai",
    "tr": "turkish",
    "uk": "ukrainian",
    "vi": "vietnamese",
    "zh": "chinese",
}
"""OpenAI's verbose answers spell the language out; any other is given by its code."""
