"""Replies in OpenAI's own dialect: passed on unchanged, counted on the way, and repaired if they deviate."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.chat.replies.flat_errors import find_error, read_error, write_error
from penstock.chat.replies.repair import Json, Repairer, is_chunk_like, wraps_chunk
from penstock.chat.replies.sse import Splitter
from penstock.chat.replies.tool_calls import ToolCalls
from penstock.domain.chat import Ask, Fault, Usage, estimate, read_count
from penstock.vendor_api.generation import Reply
from penstock.vendor_api.lenient_json import MARK, UNREADABLE, read_json, write_json, write_plain

DONE = b"data: [DONE]\n\n"
UNREPAIRABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
MAX_CHOICES = 1_000
MAX_SKIPPED = 10_000
"""Events in a row of which nothing is passed on."""


class Broken(Exception):
    """The vendor sent an error instead of the answer: a fault, or JSON that only the vendor can read."""

    def __init__(self, error: Fault | bytes) -> None:
        super().__init__("the reply holds an error")
        self._error = error

    def fault(self, read: Callable[[Reply], Fault]) -> Fault:
        """Return the fault, read by the vendor's `read`."""
        return self._error if isinstance(self._error, Fault) else read(Reply(200, {}, self._error))


class Malformed(Exception):
    """The reply cannot be read or repaired."""


# -- the shape of a good chunk or reply; any other is repaired


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None  # our own, of a gateway that is a vendor of another
    reasoning_tokens: int | None = None


_NO_DETAILS: Final = _Details()


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    index: int
    id: str | None = None
    type: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # of vLLM and Ollama
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None  # legacy


class _ChunkChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Delta
    finish_reason: str | None
    error: UnsetType = UNSET


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_ChunkChoice]
    usage: _Usage | UnsetType | None = UNSET
    error: UnsetType = UNSET


class _Head(msgspec.Struct, gc=False):
    """Fields that a vendor sends on every chunk or on none: checked on the first."""

    id: str
    object: str
    created: int
    model: str


class _WholeFunction(msgspec.Struct):
    name: str
    arguments: str


class _WholeCall(msgspec.Struct):
    id: str
    type: str
    function: _WholeFunction | None = None


class _Message(msgspec.Struct):
    role: Raw
    content: str | None
    refusal: str | None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_WholeCall] | UnsetType = UNSET
    function_call: _WholeFunction | None = None


class _Choice(msgspec.Struct):
    index: int
    message: _Message
    finish_reason: str
    logprobs: Raw
    error: UnsetType = UNSET


class _Completion(_Head):
    choices: list[_Choice]
    usage: _Usage | UnsetType | None = UNSET
    error: UnsetType = UNSET


_USAGE: Final = b',"usage":null'
_CONTENT: Final = b'"content":"'
_is_plain_ascii: Final = re.compile(rb"[ !#-\[\]-~]*").fullmatch
"""Match printable ASCII without quotes and backslashes: such text needs no escape inside a JSON string."""
_head = msgspec.json.Decoder(_Head)
_chunk = msgspec.json.Decoder(_Chunk)
_completion = msgspec.json.Decoder(_Completion)
_fields = msgspec.json.Decoder(dict[str, Raw])
_encode = msgspec.json.Encoder().encode


def _parse(payload: bytes) -> Any:
    """Return the parsed payload; None if it cannot be read."""
    try:
        return read_json(payload)
    except (ValueError, RecursionError):
        return None


def _read_usage(found: _Usage) -> Usage | None:
    """Return the vendor's count of tokens; None if it has none."""
    if found.prompt_tokens is None and found.completion_tokens is None:
        return None
    asked, answered = found.prompt_tokens_details or _NO_DETAILS, found.completion_tokens_details or _NO_DETAILS
    return Usage(
        read_count(found.prompt_tokens),
        read_count(found.completion_tokens),
        read_count(asked.cached_tokens),
        read_count(answered.reasoning_tokens),
        cache_writes=read_count(asked.cache_write_tokens),
        cache_writes_1h=read_count(asked.cache_write_1h_tokens),
    )


# -- streams


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


def _learn_template(payload: bytes, text: str, *, keep_usage: bool) -> TextTemplate | None:
    """Return the template of a chunk with this text; None if the position of the text is unclear."""
    before, found, rest = payload.partition(_CONTENT)
    written = text.encode()
    if not found or _CONTENT in rest or not _is_plain_ascii(written) or not rest.startswith(written + b'"'):
        return None
    before, after = b"data: " + before + found, rest[len(written) :] + b"\n\n"
    shown = (before + after).count(_USAGE)
    if shown > 1 or shown != (before + after).count(b'"usage"') or (keep_usage and not shown):
        return None
    if keep_usage:
        return TextTemplate(before, after, before, after)
    return TextTemplate(before, after, before.replace(_USAGE, b""), after.replace(_USAGE, b""))


class PassthroughStream:
    """A stream of OpenAI's chunks; implements `Stream`."""

    __slots__ = (
        "_ask",
        "_calls",
        "_characters",
        "_last",
        "_needs_repair",
        "_repairer",
        "_seen",
        "_skipped",
        "_splitter",
        "_template",
        "_usage_chunk",
        "broken",
        "ended",
        "finished",
        "malformed",
        "quick",
        "usage",
    )

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._ask = ask
        self._repairer = Repairer(reply_id, created, ask.model)
        self._needs_repair: bool | None = None  # the head of every chunk; decided by the first
        self._splitter = Splitter()
        self._seen: set[int] = set()
        self._calls: dict[int, ToolCalls] = {}
        self._skipped = 0
        self.finished: dict[int, str] = {}
        self._template: TextTemplate | None = None
        self._usage_chunk: bytes | None = None
        self._last = b""
        self.usage: Usage | None = None
        self._characters = 0
        self.malformed = 0
        self.ended = False
        self.broken: Broken | Malformed | None = None
        self.quick: Callable[[bytes], bytes | None] | None = None

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        return self._characters + (0 if self._template is None else self._template.characters)

    @property
    def comments(self) -> int:
        """Number of comments received instead of events."""
        return self._splitter.comments

    @property
    def complete(self) -> bool:
        """Return whether every choice that began is complete."""
        return bool(self._seen) and (self.ended or self._seen == self.finished.keys())

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
        for index in sorted(self._seen - self.finished.keys()):  # ended properly but without a reason
            choice: Json = {"index": index, "delta": {}, "logprobs": None, "finish_reason": "stop"}
            out += (b"data: ", self._make_chunk({"choices": [choice]}, None), b"\n\n")
        if self._ask.include_usage:
            out += (b"data: ", self._usage_chunk or self._make_usage_chunk(), b"\n\n")
        out.append(DONE)
        self.ended = True
        return b"".join(out)

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
            self._take_lines(name, payload, out)
            return
        chunk = self._read(payload) if name != b"error" else None
        if chunk is None:
            repaired = self._repair(name, payload)
            if repaired is None:
                self.malformed += 1
                self._skip()
                return
            payload, chunk = repaired
        elif self._template is None and len(chunk.choices) == 1 and _is_text(chunk.choices[0]):
            text = chunk.choices[0].delta.content or ""
            self._template = _learn_template(payload, text, keep_usage=self._ask.include_usage) if text else None
        self._last = payload
        if passed := self._with_usage(payload, chunk):
            out += (b"data: ", passed, b"\n\n")
            self._skipped = 0
        else:
            self._skip()

    def _take_lines(self, name: bytes, payload: bytes, out: list[bytes]) -> None:
        """Take an event of several lines, or several events without blank lines between them."""
        joined = payload.replace(b"\n", b" ")
        for line in payload.split(b"\n") if _parse(joined) is None and name != b"error" else [joined]:
            self._take(name, line, out)

    def _skip(self) -> None:
        self._skipped += 1
        if self._skipped > MAX_SKIPPED:
            raise Malformed("it sent events without content, without end")

    def _read(self, payload: bytes) -> _Chunk | None:
        """Return the chunk after counting it; None if it needs repair."""
        try:
            _check_text(payload)
            chunk = _chunk.decode(payload)
        except UNREADABLE:
            return None
        choices = chunk.choices
        if self._needs_repair is False and len(choices) == 1 and _is_text(choices[0]):  # as nearly every chunk
            delta = choices[0].delta
            self._seen.add(0)
            self._characters += len(delta.content or delta.reasoning_content or delta.refusal or "")
            return chunk
        if self._needs_repair is None:
            self._needs_repair = not _has_head(payload)
        if self._needs_repair or not all(map(self._is_valid, choices)):
            return None
        self._count(chunk)
        return chunk

    def _is_valid(self, choice: _ChunkChoice) -> bool:
        delta, reason = choice.delta, choice.finish_reason
        if reason is not None and (not reason or reason == "error" or choice.index in self.finished):
            return False  # empty, a failure or repeated
        if delta.tool_calls is not None and not self._calls_of(choice).fit(delta.tool_calls):
            return False
        if delta.function_call is not None and self._calls_of(choice).repeats(delta.function_call.name):
            return False
        return delta.reasoning is None or delta.reasoning_content is not None

    def _calls_of(self, choice: _ChunkChoice) -> ToolCalls:
        found = self._calls.get(choice.index)
        return self._calls.setdefault(choice.index, ToolCalls()) if found is None else found

    def _count(self, chunk: _Chunk) -> None:
        for choice in chunk.choices:
            delta = choice.delta
            self._seen.add(choice.index)
            if choice.finish_reason is not None:
                self.finished[choice.index] = choice.finish_reason
            self._characters += len(delta.content or delta.reasoning_content or delta.refusal or "")
            if delta.tool_calls:
                self._calls_of(choice).record(delta.tool_calls)
                self._characters += sum(
                    len(call.function.arguments or "") for call in delta.tool_calls if call.function
                )
            if delta.function_call is not None:
                self._calls_of(choice).record_function(delta.function_call.name)
                self._characters += len(delta.function_call.arguments or "")
        if len(self._seen) > MAX_CHOICES:
            raise Malformed("it sent too many choices")

    def _repair(self, name: bytes, payload: bytes) -> tuple[bytes, _Chunk] | None:
        """Return the repaired chunk; None for an event that holds nothing of the answer."""
        found = _parse(payload)
        if name == b"error":
            raise Broken(write_error(payload.decode("utf-8", "replace") if found is None else found))
        if not isinstance(found, dict):
            if is_chunk_like(payload):
                raise Malformed("it sent an event that cannot be read")
            return None
        if error := find_error(cast("Json", found)):
            raise Broken(error)
        if "choices" not in found and wraps_chunk(payload):
            raise Malformed("it sent an event of an unknown shape")
        try:
            whole = self._repairer.repair_chunk(cast("Json", found), self.finished, self._calls, self.characters)
            chunk = msgspec.convert(whole, _Chunk)
        except UNREPAIRABLE:
            raise Malformed("it sent an event of an unknown shape") from None
        self._count(chunk)
        return write_json(whole), chunk

    def _with_usage(self, payload: bytes, chunk: _Chunk) -> bytes | None:
        """Return the chunk with `usage` as the caller asked for it: null on every chunk, or absent."""
        usage = chunk.usage
        if usage is None and chunk.choices:
            return payload if self._ask.include_usage else _drop_usage(payload)
        if isinstance(usage, _Usage):
            self.usage = _read_usage(usage) or self.usage
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
        last: Json = _parse(self._last) or self._repairer.repair_chunk({}, (), {})
        last.pop("usage", None)
        return write_json(last | rest | ({"usage": usage} if self._ask.include_usage else {}))


def _is_text(choice: _ChunkChoice) -> bool:
    """Return whether a choice holds nothing but text of the first choice."""
    delta = choice.delta
    is_plain = delta.content is not None and delta.tool_calls is None and delta.reasoning is None
    is_plain = is_plain and delta.function_call is None
    return is_plain and choice.finish_reason is None and choice.index == 0


def _has_head(payload: bytes) -> bool:
    try:
        _head.decode(payload)
    except UNREADABLE:
        return False
    return True


def _check_text(payload: bytes) -> None:
    """Check that the payload is UTF-8: msgspec does not check skipped fields."""
    if not payload.isascii():
        payload.decode()


def _drop_usage(payload: bytes) -> bytes:
    # Inside a JSON string the quotes would be escaped, so these bytes are always a key and its value.
    for written in (_USAGE, b', "usage": null'):
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


# -- replies that are not streamed


def pass_whole(body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
    """Return the reply for the caller, its usage and its number of characters."""
    completion = None
    body = body.removeprefix(MARK)
    try:
        _check_text(body)
        completion = _completion.decode(body)
    except UNREADABLE:
        pass  # repaired below
    if completion is None or not _is_whole(completion):
        body, completion = _repair_whole(body, Repairer(reply_id, created, ask.model))
    characters = sum(_count_message(choice.message) for choice in completion.choices)
    return body, _read_usage(completion.usage) if isinstance(completion.usage, _Usage) else None, characters


def _count_message(message: _Message) -> int:
    calls = () if isinstance(message.tool_calls, UnsetType) else message.tool_calls
    called = sum(len(call.function.arguments) for call in calls if call.function is not None)
    return len(message.content or "") + len(message.reasoning_content or "") + called


def _is_whole(completion: _Completion) -> bool:
    usage = completion.usage
    if usage is None or (isinstance(usage, _Usage) and not _has_counts(usage)):
        return False
    for choice in completion.choices:
        message = choice.message
        has_reasoning = message.reasoning_content or not message.reasoning
        if not choice.finish_reason or choice.finish_reason == "error" or not has_reasoning:
            return False
        if message.tool_calls == []:
            return False
        if not isinstance(message.tool_calls, UnsetType) and not all(call.id for call in message.tool_calls):
            return False
    return bool(completion.choices)


def _has_counts(usage: _Usage) -> bool:
    return None not in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)


def _repair_whole(body: bytes, repairer: Repairer) -> tuple[bytes, _Completion]:
    if error := read_error(body):
        raise Broken(error)
    found = _parse(body)
    if not isinstance(found, dict):
        raise Malformed("the reply is not an object")
    try:
        whole = repairer.repair_completion(cast("Json", found))
        completion = _completion.decode(write_plain(whole))
    except UNREPAIRABLE as error:
        raise Malformed(str(error)) from None
    if not completion.choices:
        raise Malformed("the reply holds no choice")
    return write_json(whole), completion
