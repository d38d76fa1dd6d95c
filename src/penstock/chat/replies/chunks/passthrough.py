"""Streams in OpenAI's own dialect: passed on unchanged, counted on the way, and repaired if they deviate."""

from collections.abc import Callable

import msgspec
from msgspec import Raw, UnsetType

from penstock.chat.replies.broken import MAX_SKIPPED, Broken, Malformed
from penstock.chat.replies.chunks.reader import Chunk, ChunkReader, UsageCounts, is_text, parse, read_usage, split_lines
from penstock.chat.replies.chunks.repair import Json
from penstock.chat.replies.chunks.writer import DONE, write_error_event
from penstock.chat.replies.sse import Splitter
from penstock.chat.replies.template import USAGE, TextTemplate, learn_template
from penstock.domain.chat import Ask, Usage, estimate
from penstock.errors import PenstockError
from penstock.vendor_api.lenient_json import UNREADABLE, read_json, write_json

_fields = msgspec.json.Decoder(dict[str, Raw])
_encode = msgspec.json.Encoder().encode


class PassthroughStream:
    """A stream of OpenAI's chunks; implements `Stream`."""

    __slots__ = (
        "_ask",
        "_last",
        "_reader",
        "_skipped",
        "_splitter",
        "_template",
        "_usage_chunk",
        "broken",
        "ended",
        "malformed",
        "quick",
        "usage",
    )

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._ask = ask
        self._reader = ChunkReader(reply_id, created, ask.model)
        self._splitter = Splitter()
        self._skipped = 0
        self._template: TextTemplate | None = None
        self._usage_chunk: bytes | None = None
        self._last = b""
        self.usage: Usage | None = None
        self.malformed = 0
        self.ended = False
        self.broken: Broken | Malformed | None = None
        self.quick: Callable[[bytes], bytes | None] | None = None

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        return self._reader.characters + (0 if self._template is None else self._template.characters)

    @property
    def finished(self) -> dict[int, str]:
        """The finish reason of each choice that has ended."""
        return self._reader.finished

    @property
    def comments(self) -> int:
        """Number of comments received instead of events."""
        return self._splitter.comments

    @property
    def complete(self) -> bool:
        """Return whether every choice that began is complete."""
        seen = self._reader.seen
        return bool(seen) and (self.ended or seen == self.finished.keys())

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the vendor and return whole events for the caller."""
        out = b"".join(self._take_all(self._splitter.feed(data)))
        template = self._template
        self.quick = template.fill if template is not None and self._splitter.is_between_events else None
        return out

    def end(self) -> bytes:
        """End the vendor's stream and return the bytes that close ours."""
        was_complete = self.complete
        out = self._take_all(self._splitter.end())
        if was_complete and isinstance(self.broken, Malformed):
            self.broken = None  # a truncated event after the end of every choice holds nothing of them
        if self.broken is not None or not self.complete:
            return b"".join(out)
        for index in sorted(self._reader.seen - self.finished.keys()):  # ended properly but without a reason
            choice: Json = {"index": index, "delta": {}, "logprobs": None, "finish_reason": "stop"}
            out += (b"data: ", self._make_chunk({"choices": [choice]}, None), b"\n\n")
        if self._ask.include_usage:
            out += (b"data: ", self._usage_chunk or self._make_usage_chunk(), b"\n\n")
        out.append(DONE)
        self.ended = True
        return b"".join(out)

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the error as an event."""
        return write_error_event(error, request_id)

    def _take_all(self, events: list[tuple[bytes, bytes]]) -> list[bytes]:
        out: list[bytes] = []
        try:
            for name, payload in events:
                self._take(name, payload, out)
        except (Broken, Malformed) as broken:  # events before it still count
            self.broken = broken
        return out

    def _take(self, name: bytes, payload: bytes, out: list[bytes]) -> None:
        if self.ended or payload.startswith(b"[DONE]"):
            self.ended = True
            return
        if b"\n" in payload:
            for line in split_lines(name, payload):
                self._take(name, line, out)
            return
        read = self._reader.read(name, payload, self.characters)
        if read is None:
            self.malformed += 1
            self._skip()
            return
        passable, chunk = read
        if self._template is None and passable is payload and len(chunk.choices) == 1 and is_text(chunk.choices[0]):
            text = chunk.choices[0].delta.content or ""
            self._template = learn_template(payload, text, keep_usage=self._ask.include_usage) if text else None
        self._last = passable
        if passed := self._with_usage(passable, chunk):
            out += (b"data: ", passed, b"\n\n")
            self._skipped = 0
        else:
            self._skip()

    def _skip(self) -> None:
        self._skipped += 1
        if self._skipped > MAX_SKIPPED:
            raise Malformed("it sent events without content, without end")

    def _with_usage(self, payload: bytes, chunk: Chunk) -> bytes | None:
        """Return the chunk with `usage` as the caller asked for it: null on every chunk, or absent."""
        usage = chunk.usage
        if usage is None and chunk.choices:
            return payload if self._ask.include_usage else _drop_usage(payload)
        if isinstance(usage, UsageCounts):
            self.usage = read_usage(usage) or self.usage
            if not chunk.choices and None not in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens):
                self._usage_chunk = payload
        if not chunk.choices:
            return None
        without = payload if isinstance(usage, UnsetType) else _drop_usage(payload)
        return without.rstrip()[:-1] + b',"usage":null}' if self._ask.include_usage else without

    def _make_usage_chunk(self) -> bytes:
        usage = self.usage or estimate(self._ask, self.characters)
        return self._make_chunk({"choices": []}, usage.as_json())

    def _make_chunk(self, rest: Json, usage: Json | None) -> bytes:
        """Return a chunk of our own with the head of the vendor's last one."""
        last: Json = parse(self._last) or self._reader.make_chunk()
        last.pop("usage", None)
        return write_json(last | rest | ({"usage": usage} if self._ask.include_usage else {}))


def _drop_usage(payload: bytes) -> bytes:
    # Inside a JSON string the quotes would be escaped, so these bytes are always a key and its value.
    for written in (USAGE, b', "usage": null'):
        before, found, after = payload.partition(written)
        if found and written not in after:
            return before + after
    try:
        fields = _fields.decode(payload)
    except UNREADABLE:  # half a surrogate pair
        chunk: Json = read_json(payload)
        del chunk["usage"]
        return write_json(chunk)
    del fields["usage"]
    return _encode(fields)
