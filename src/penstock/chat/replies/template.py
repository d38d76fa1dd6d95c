"""Templates of text events: events of one stream differ only in their text, so only the first is parsed."""

import re
from collections.abc import Callable
from typing import Final

USAGE: Final = b',"usage":null'
"""How OpenAI writes that a chunk has no usage."""
_CONTENT: Final = b'"content":"'
_is_plain_ascii: Final = re.compile(rb"[ !#-\[\]-~]*").fullmatch
"""Match printable ASCII without quotes and backslashes: such text needs no escape inside a JSON string."""

_is_usual_wrap: Final = re.compile(rb"(?:event: ?[^\r\n]*\r?\n)?data: ?").fullmatch
"""Match the bytes before the data of an event that has nothing but a name and data."""

_VOLATILE: Final = re.compile(rb'"(?:sequence_number": ?\d+,?|obfuscation": ?"[^"\\]*",?)')
"""Match the fields that differ in each event of OpenAI's. Inside a JSON string their quotes would be escaped."""


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
    found = _find_text(event, text) if event.endswith(b"\n\n") else None
    return None if found is None else TextTemplate(*found, *found)


class FramedTemplate:
    """The bytes around the text of an event in one dialect; `frame` writes the text as an event of another."""

    __slots__ = (
        "_after",
        "_before",
        "_end",
        "_frame",
        "_is_volatile",
        "_joint",
        "_least",
        "_name",
        "_start",
        "_wrap",
        "characters",
    )

    def __init__(
        self, name: bytes, before: bytes, after: bytes, frame: Callable[[bytes], bytes], *, is_volatile: bool
    ) -> None:
        self._is_volatile = is_volatile
        """True if events have fields that differ; they are removed before the comparison."""
        self._name = name
        self._before = before
        self._after = after
        self._start = len(before)
        self._end = -len(after)
        self._least = len(before) + len(after)
        self._frame = frame
        self._wrap: tuple[bytes, bytes] | None = None
        self._joint = b""
        self.characters = 0
        """Number of characters passed on so far."""

    @property
    def is_wrapped(self) -> bool:
        """Return whether `fill` knows the bytes around the data of an event."""
        return self._wrap is not None

    def learn_wrap(self, data: bytes, payload: bytes, *, is_event: bool) -> None:
        """Learn the bytes around the data of the last event. `is_event` if `data` begins with an event."""
        head, _, end = data.rpartition(payload)
        if end not in (b"\n\n", b"\r\n\r\n"):
            return
        _, found, wrap = head.rpartition(end)
        if (found or is_event) and _is_usual_wrap(wrap):
            before, after = wrap + self._before, self._after + end
            self._wrap = before, after
            self._joint = after + before

    def fill(self, data: bytes) -> bytes | None:
        """Return the events as they are passed on; None if one of them is of another kind."""
        if self._wrap is None:
            return None
        before, after = self._wrap
        if self._is_volatile:
            data = _VOLATILE.sub(b"", data)
        if not data.startswith(before) or not data.endswith(after) or len(data) < len(before) + len(after):
            return None
        text = data[len(before) : -len(after)]
        if _is_plain_ascii(text):
            self.characters += len(text)
            return self._frame(text)
        texts = text.split(self._joint)
        if not all(map(_is_plain_ascii, texts)):
            return None
        self.characters += sum(map(len, texts))
        return b"".join(map(self._frame, texts))

    def fill_one(self, name: bytes, payload: bytes) -> bytes | None:
        """Return one event as it is passed on; None if it is of another kind."""
        if self._is_volatile:
            payload = _VOLATILE.sub(b"", payload)
        if not payload.startswith(self._before) or not payload.endswith(self._after) or name != self._name:
            return None
        text = payload[self._start : self._end]
        if len(payload) < self._least or not _is_plain_ascii(text):
            return None
        self.characters += len(text)
        return self._frame(text)


def learn_frame(name: bytes, payload: bytes, text: str, frame: Callable[[bytes], bytes]) -> FramedTemplate | None:
    """Return the template of an event that holds this text; None if the position of the text is unclear."""
    lasting, removed = _VOLATILE.subn(b"", payload)
    found = _find_text(lasting, text)
    return None if found is None else FramedTemplate(name, *found, frame, is_volatile=removed > 0)


def _find_text(event: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Return the bytes before and after a text in an event; None if its position is unclear."""
    if not text or not text.isascii():
        return None
    written = b'"%b"' % text.encode()
    if not _is_plain_ascii(written[1:-1]) or event.count(written) != 1:
        return None
    before, _, after = event.partition(written)
    return before + b'"', b'"' + after
