"""Replies that are translated: from the vendor's dialect into parts, and from parts into the caller's dialect."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from penstock.chat.replies.broken import MAX_SKIPPED, UNREPAIRABLE, Broken, Malformed
from penstock.chat.replies.chunks.repair import is_chunk_like
from penstock.chat.replies.flat_errors import find_error, write_error
from penstock.chat.replies.progress import Progress
from penstock.chat.replies.sse import Splitter
from penstock.chat.replies.template import FramedTemplate, learn_frame
from penstock.chat.replies.writer import Writer
from penstock.domain.chat import Ask, Part, Text, Usage, estimate
from penstock.errors import PenstockError
from penstock.vendor_api.chat import Translator
from penstock.vendor_api.lenient_json import read_json


class TranslatedStream:
    """A stream of events that is translated as it comes; implements `Stream`."""

    __slots__ = (
        "_ask",
        "_latest",
        "_progress",
        "_splitter",
        "_template",
        "_translator",
        "_writer",
        "broken",
        "malformed",
        "quick",
    )

    def __init__(self, ask: Ask, translator: Translator, writer: Writer) -> None:
        self._ask = ask
        self._progress = Progress()
        self._translator = translator
        self._writer = writer
        self._splitter = Splitter()
        self._latest: Part | None = None
        self._template: FramedTemplate | None = None
        self.malformed = 0
        self.broken: Broken | Malformed | None = None
        self.quick: Callable[[bytes], bytes | None] | None = None

    @property
    def usage(self) -> Usage | None:
        """The vendor's own count of tokens so far."""
        return self._progress.usage

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        return self._progress.characters + (0 if self._template is None else self._template.characters)

    @property
    def finished(self) -> dict[int, str]:
        """The finish reason of each choice that has ended."""
        return self._progress.finished

    @property
    def ended(self) -> bool:
        """Return whether the vendor has marked the end of its stream."""
        return self._progress.ended

    @property
    def complete(self) -> bool:
        """Return whether every choice that began is complete."""
        return self._progress.complete

    @property
    def comments(self) -> int:
        """Number of comments received instead of events."""
        return self._splitter.comments

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the vendor and return whole events for the caller."""
        is_event = self._splitter.is_between_events
        out = self._translate_all(self._splitter.feed(data))
        is_text = isinstance(self._latest, Text) and self._latest.choice == 0 and self._splitter.is_between_events
        if not is_text:
            self.quick = None  # the next text may be in another place
        elif self._template is not None:
            self.quick = self._template.fill
        elif is_event and data.count(b"\n\n") == 1:
            self._template = learn_frame(data, cast("Text", self._latest).text, self._writer.frame)
            self.quick = None if self._template is None else self._template.fill
        return out

    def end(self) -> bytes:
        """End the vendor's stream and return the bytes that close ours."""
        was_complete = self.complete
        rest = self._translate_all(self._splitter.end())
        if was_complete and isinstance(self.broken, Malformed):
            self.broken = None  # a truncated event after the end of every choice holds nothing of them
        if self.broken is not None or not self.complete:
            return rest
        self._progress.ended = True
        try:
            return rest + self._writer.finish(self.usage or estimate(self._ask, self.characters))
        except Malformed as broken:  # the parts together make no reply in the caller's dialect
            self.broken = broken
            return rest

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the event that ends a stream which broke off."""
        return self._writer.fail(error, request_id)

    def _translate_all(self, events: list[tuple[bytes, bytes]]) -> bytes:
        out: list[bytes] = []
        try:
            for name, payload in events:
                self._translate(name, payload, out)
        except (Broken, Malformed) as broken:  # events before it still count
            self.broken = broken
        return b"".join(out)

    def _translate(self, name: bytes, payload: bytes, out: list[bytes]) -> None:
        if self._progress.ended:
            return
        try:
            for part in list(self._translator.event(name.decode("latin-1"), payload)):
                self._progress.take(part)
                out.append(self._writer.take(part))
                self._latest = part
        except UNREPAIRABLE:
            _check_harmless(name, payload)
            self.malformed += 1
            if self.malformed > MAX_SKIPPED:
                raise Malformed("it sent events that cannot be read, without end") from None


def _check_harmless(name: bytes, payload: bytes) -> None:
    """Raise if an event that the translator rejects is an error or holds a part of the answer."""
    try:
        found = read_json(payload)
    except (ValueError, RecursionError):
        found = payload.decode("utf-8", "replace") if name == b"error" else None
    if name == b"error":
        raise Broken(write_error(found))
    if isinstance(found, dict) and (error := find_error(cast("dict[str, Any]", found))):
        raise Broken(error)
    if is_chunk_like(payload):
        raise Malformed("it sent an event of an unknown shape")


def render_whole(parts: Iterable[Part], ask: Ask, writer: Writer) -> tuple[bytes, Usage | None, int]:
    """Return the body of these parts, its usage and its number of characters."""
    progress = Progress()
    try:
        for part in parts:
            progress.take(part)
            writer.take(part)
    except UNREPAIRABLE as error:
        raise Malformed(f"a reply of an unexpected shape ({type(error).__name__})") from None
    if not progress.complete:
        raise Malformed("the reply is not complete")
    usage = progress.usage or estimate(ask, progress.characters)
    return writer.whole(usage), progress.usage, progress.characters
