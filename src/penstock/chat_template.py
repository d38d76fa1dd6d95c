"""Chunks of one stream differ only in their text: once one is understood, the next are passed without parsing them."""

import re
from typing import Final

_TEXT: Final = re.compile(rb"[ !#-\[\]-~]*")  # printable ASCII but quotes and backslashes: itself inside a JSON string
_USAGE: Final = b',"usage":null'
_CONTENT: Final = b'"content":"'


class TextTemplate:
    """What stands before and after the text in an event, as it comes and as it is passed on."""

    __slots__ = ("_after", "_before", "_passed_after", "_passed_before")

    def __init__(self, before: bytes, after: bytes, passed_before: bytes, passed_after: bytes) -> None:
        self._before = before
        self._after = after
        self._passed_before = passed_before
        self._passed_after = passed_after

    def fill(self, data: bytes) -> tuple[bytes, int] | None:
        """What to pass on of these events and how many characters it holds; None if one of them is of another kind."""
        before, after = self._before, self._after
        if not data.startswith(before) or not data.endswith(after) or len(data) < len(before) + len(after):
            return None
        text = data[len(before) : -len(after)]
        if _TEXT.fullmatch(text):  # a single event, as in a stream that is not in a hurry
            return self._passed_before + text + self._passed_after, len(text)
        texts = text.split(after + before)
        if not all(map(_TEXT.fullmatch, texts)):
            return None
        passed = (self._passed_after + self._passed_before).join(texts)
        return self._passed_before + passed + self._passed_after, sum(map(len, texts))


def learn(payload: bytes, text: str, *, keep_usage: bool) -> TextTemplate | None:
    """The template of the chunk with this payload and text; None if it cannot be told where the text stands."""
    before, found, rest = payload.partition(_CONTENT)
    written = text.encode()
    if not found or _CONTENT in rest or not _TEXT.fullmatch(written) or not rest.startswith(written + b'"'):
        return None
    before, after = b"data: " + before + found, rest[len(written) :] + b"\n\n"
    shown = (before + after).count(_USAGE)
    if shown > 1 or shown != (before + after).count(b'"usage"') or (keep_usage and not shown):
        return None
    if keep_usage:
        return TextTemplate(before, after, before, after)
    return TextTemplate(before, after, before.replace(_USAGE, b""), after.replace(_USAGE, b""))
