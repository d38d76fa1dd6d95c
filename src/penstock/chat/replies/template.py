"""Templates of text events: events of one stream differ only in their text, so only the first is parsed."""

import re
from collections.abc import Callable
from typing import Final

USAGE: Final = b',"usage":null'
"""How OpenAI writes that a chunk has no usage."""
_CONTENT: Final = b'"content":"'
_is_plain_ascii: Final = re.compile(rb"[ !#-\[\]-~]*").fullmatch
"""Match printable ASCII without quotes and backslashes: such text needs no escape inside a JSON string."""


class TextTemplate:
    """The bytes around the text of an event, as received and as passed on.

    Chunks of one stream differ only in their text. Once one is parsed, the next are passed without parsing them.
    """

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
        """Number of characters passed on so far."""

    def fill(self, data: bytes) -> bytes | None:
        """Return the events as they are passed on; None if one of them is of another kind."""
        if not data.startswith(self._before) or not data.endswith(self._after) or len(data) < self._least:
            return None
        text = data[self._start : self._end]
        if _is_plain_ascii(text):  # a single event, as in a slow stream
            self.characters += len(text)
            return self._passed_before + text + self._passed_after
        texts = text.split(self._after + self._before)
        if not all(map(_is_plain_ascii, texts)):
            return None
        self.characters += sum(map(len, texts))
        return self._passed_before + (self._passed_after + self._passed_before).join(texts) + self._passed_after


def learn_template(payload: bytes, text: str, *, keep_usage: bool) -> TextTemplate | None:
    """Return the template of a chunk with this text; None if the position of the text is unclear."""
    before, found, rest = payload.partition(_CONTENT)
    written = text.encode()
    if not found or _CONTENT in rest or not _is_plain_ascii(written) or not rest.startswith(written + b'"'):
        return None
    before, after = b"data: " + before + found, rest[len(written) :] + b"\n\n"
    shown = (before + after).count(USAGE)
    if shown > 1 or shown != (before + after).count(b'"usage"') or (keep_usage and not shown):
        return None
    if keep_usage:
        return TextTemplate(before, after, before, after)
    return TextTemplate(before, after, before.replace(USAGE, b""), after.replace(USAGE, b""))


def learn_text(event: bytes, text: str) -> TextTemplate | None:
    """Return the template of a whole event that holds this text and passes unchanged; None if its place is unclear."""
    found = _find_text(event, text)
    return None if found is None else TextTemplate(*found, *found)


class FramedTemplate:
    """The bytes around the text of an event in one dialect; `frame` writes the text as an event of another."""

    __slots__ = ("_after", "_before", "_end", "_frame", "_least", "_start", "characters")

    def __init__(self, before: bytes, after: bytes, frame: Callable[[bytes], bytes]) -> None:
        self._before = before
        self._after = after
        self._start = len(before)
        self._end = -len(after)
        self._least = len(before) + len(after)
        self._frame = frame
        self.characters = 0
        """Number of characters passed on so far."""

    def fill(self, data: bytes) -> bytes | None:
        """Return the events as they are passed on; None if one of them is of another kind."""
        if not data.startswith(self._before) or not data.endswith(self._after) or len(data) < self._least:
            return None
        text = data[self._start : self._end]
        if _is_plain_ascii(text):
            self.characters += len(text)
            return self._frame(text)
        texts = text.split(self._after + self._before)
        if not all(map(_is_plain_ascii, texts)):
            return None
        self.characters += sum(map(len, texts))
        return b"".join(map(self._frame, texts))


def learn_frame(event: bytes, text: str, frame: Callable[[bytes], bytes]) -> FramedTemplate | None:
    """Return the template of a whole event that holds this text; None if the position of the text is unclear."""
    found = _find_text(event, text)
    return None if found is None else FramedTemplate(*found, frame)


def _find_text(event: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Return the bytes before and after a text in an event; None if its position is unclear."""
    written = b'"%b"' % text.encode("utf-8", "replace")
    if not text or not _is_plain_ascii(written[1:-1]) or event.count(written) != 1 or not event.endswith(b"\n\n"):
        return None
    before, _, after = event.partition(written)
    return before + b'"', b'"' + after
