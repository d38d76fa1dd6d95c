"""Reads a vendor's texts to prove that they are texts; blocking, for the process pool."""

import json
import re
from dataclasses import dataclass
from typing import Final

from penstock.domain.files import Count, Source, opened, size_of
from penstock.domain.job_errors import BadOutput

MAX_TEXT_BYTES: Final = 16 << 20
SRT: Final = re.compile(r"\s*1\r?\n\d{2}:\d{2}:\d{2},\d{3} --> ")


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The facts found by reading a text; `extension` names its format."""

    extension: str
    characters: Count


def inspect_text(source: Source) -> TextFacts:
    """Describe a transcript: JSON, subtitles, or plain text."""
    with opened(source) as file:
        if (size := size_of(file)) > MAX_TEXT_BYTES:
            raise BadOutput(f"The text has {size} bytes; at most {MAX_TEXT_BYTES} are allowed.")
        file.seek(0)
        try:
            text = file.read().decode()
        except UnicodeDecodeError as error:
            raise BadOutput("The text is not UTF-8.") from error
    if "\0" in text:
        raise BadOutput("The text has characters that no text has.")
    return TextFacts(_find_format(text), len(text))


def _find_format(text: str) -> str:
    if text.startswith("WEBVTT"):
        return "vtt"
    if SRT.match(text):
        return "srt"
    if text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return "txt"
        return "json"
    return "txt"
