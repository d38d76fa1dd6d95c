"""Chunks of one stream differ only in their text: once one is understood, the next are passed without parsing them."""

import re
from typing import Final

_is_text: Final = re.compile(rb"[ !#-\[\]-~]*").fullmatch
"""Printable ASCII but quotes and backslashes: itself inside a JSON string."""
_USAGE: Final = b',"usage":null'
_CONTENT: Final = b'"content":"'


class TextTemplate:
    """What stands before and after the text in an event, as it comes and as it is passed on."""

    __slots__ = ("_after", "_before", "_end", "_least", "_passed_after", "_passed_before", "_start", "characters")

    def __init__(self, before: bytes, after: bytes, passed_before: bytes, passed_after: bytes) -> None:
        self._before = before
        self._after = after
        self._passed_before = passed_before
        self._passed_after = passed_after
        self._start = len(before)
        self._end = -len(after)
        self._least = len(before) + len(after)
        self.characters = 0
        """How many there were in all that was passed on."""

    def fill(self, data: bytes) -> bytes | None:
        """What to pass on of these events; None if one of them is of another kind."""
        if not data.startswith(self._before) or not data.endswith(self._after) or len(data) < self._least:
            return None
        text = data[self._start : self._end]
        if _is_text(text):  # a single event, as in a stream that is not in a hurry
            self.characters += len(text)
            return self._passed_before + text + self._passed_after
        texts = text.split(self._after + self._before)
        if not all(map(_is_text, texts)):
            return None
        self.characters += sum(map(len, texts))
        return self._passed_before + (self._passed_after + self._passed_before).join(texts) + self._passed_after


def learn(payload: bytes, text: str, *, keep_usage: bool) -> TextTemplate | None:
    """The template of the chunk with this payload and text; None if it cannot be told where the text stands."""
    before, found, rest = payload.partition(_CONTENT)
    written = text.encode()
    if not found or _CONTENT in rest or not _is_text(written) or not rest.startswith(written + b'"'):
        return None
    before, after = b"data: " + before + found, rest[len(written) :] + b"\n\n"
    shown = (before + after).count(_USAGE)
    if shown > 1 or shown != (before + after).count(b'"usage"') or (keep_usage and not shown):
        return None
    if keep_usage:
        return TextTemplate(before, after, before, after)
    return TextTemplate(before, after, before.replace(_USAGE, b""), after.replace(_USAGE, b""))
