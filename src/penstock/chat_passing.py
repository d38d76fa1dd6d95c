"""Replies in OpenAI's own dialect: passed as they are, counted on the way, and mended where they fall short."""

from collections.abc import Callable
from typing import cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.chat import Ask, Fault, Usage, estimate, read_count
from penstock.chat_mending import Json, Mender
from penstock.chat_template import TextTemplate, learn
from penstock.contract import Reply
from penstock.openai_dialect import body_tells_error
from penstock.sse import Splitter

DONE = b"data: [DONE]\n\n"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
UNMENDABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class Broken(Exception):
    """The vendor told of a fault where the answer should be: the fault, or JSON that only the vendor can read."""

    def __init__(self, said: Fault | bytes) -> None:
        super().__init__("the reply holds an error")
        self._said = said

    def fault(self, read: Callable[[Reply], Fault]) -> Fault:
        """The fault, as the vendor's `read` understands it."""
        return self._said if isinstance(self._said, Fault) else read(Reply(200, {}, self._said))


class Malformed(Exception):
    """The reply is not what it should be at all."""


# -- what a good chunk or reply has; one of another shape is mended


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Function(msgspec.Struct, gc=False):
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    index: int
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # vLLM and Ollama call it so
    tool_calls: list[_ToolCall] | None = None


class _ChunkChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Delta
    finish_reason: str | None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_ChunkChoice]
    usage: _Usage | UnsetType | None = UNSET
    error: UnsetType = UNSET


class _Head(msgspec.Struct, gc=False):
    """What a vendor gives on every chunk or on none: looked for on the first."""

    id: str
    object: str
    created: int
    model: str


class _Message(msgspec.Struct):
    role: Raw
    content: str | None
    refusal: str | None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Raw] | UnsetType = UNSET


class _Choice(msgspec.Struct):
    index: int
    message: _Message
    finish_reason: str
    logprobs: Raw


class _Completion(_Head):
    choices: list[_Choice]
    usage: _Usage | UnsetType | None = UNSET
    error: UnsetType = UNSET


_USAGE = b',"usage":null'
_head = msgspec.json.Decoder(_Head)
_chunk = msgspec.json.Decoder(_Chunk)
_completion = msgspec.json.Decoder(_Completion)
_fields = msgspec.json.Decoder(dict[str, Raw])
_anything = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def _parse(payload: bytes) -> Json | None:
    """The object written there; None where it is none, which a decoder of known fields may not have seen."""
    try:
        found = _anything.decode(payload)
    except UNREADABLE:
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def _read_usage(found: _Usage) -> Usage | None:
    """What the vendor counted; None where it counted nothing."""
    if found.prompt_tokens is None and found.completion_tokens is None:
        return None
    asked, answered = found.prompt_tokens_details, found.completion_tokens_details
    return Usage(
        read_count(found.prompt_tokens),
        read_count(found.completion_tokens),
        0 if asked is None else read_count(asked.cached_tokens),
        0 if answered is None else read_count(answered.reasoning_tokens),
    )


# -- streams


class PassedStream:
    """A stream of chunks; see `chat_answer.Stream`."""

    __slots__ = (
        "_ask",
        "_characters",
        "_is_mended",
        "_last",
        "_mender",
        "_seen",
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
        self._mender = Mender(reply_id, created, ask.model)
        self._is_mended: bool | None = None  # whether the head of every chunk needs it; the first one tells
        self._splitter = Splitter()
        self._seen: set[int] = set()
        self.finished: dict[int, str] = {}
        self._template: TextTemplate | None = None
        self._usage_chunk: bytes | None = None
        self._last = b""
        self.usage: Usage | None = None
        self._characters = 0
        self.malformed = 0
        self.ended = False
        self.broken: Broken | None = None
        self.quick: Callable[[bytes], bytes | None] | None = None

    @property
    def characters(self) -> int:
        """How much of an answer there is."""
        return self._characters + (0 if self._template is None else self._template.characters)

    @property
    def comments(self) -> int:
        """How many comments came instead of events."""
        return self._splitter.comments

    @property
    def complete(self) -> bool:
        """Whether the vendor said everything that it began."""
        return bool(self._seen) and (self.ended or self._seen == self.finished.keys())

    def feed(self, data: bytes) -> bytes:
        """Vendor's bytes in, caller's bytes out: whole events only."""
        out = b"".join(self._take_all(self._splitter.feed(data)))
        template = self._template
        self.quick = template.fill if template is not None and self._splitter.is_between_events else None
        return out

    def end(self) -> bytes:
        """The vendor's stream is over: what closes ours."""
        out = self._take_all(self._splitter.end())
        if not self.complete:
            return b"".join(out)
        for index in sorted(self._seen - self.finished.keys()):  # ended in due form, only without a reason
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
            for _, payload in events:
                self._take(payload, out)
        except Broken as broken:  # what came before it still counts
            self.broken = broken
        return out

    def _take(self, payload: bytes, out: list[bytes]) -> None:
        if self.ended or payload.startswith(b"[DONE]"):
            self.ended = True
            return
        if b"\n" in payload:  # an event of several lines
            payload = payload.replace(b"\n", b" ")
        chunk = self._read(payload)
        if chunk is None:
            mended = self._mend(payload)
            if mended is None:
                self.malformed += 1
                return
            payload, chunk = mended
        elif self._template is None and len(chunk.choices) == 1 and _is_text(chunk.choices[0]):
            text = chunk.choices[0].delta.content or ""
            self._template = learn(payload, text, keep_usage=self._ask.include_usage) if text else None
        self._last = payload
        if passed := self._with_usage(payload, chunk):
            out += (b"data: ", passed, b"\n\n")

    def _read(self, payload: bytes) -> _Chunk | None:
        """The chunk, counted; None for one that must be mended, if it can be."""
        try:
            _check_text(payload)
            chunk = _chunk.decode(payload)
        except UNREADABLE:
            return None
        choices = chunk.choices
        if self._is_mended is False and len(choices) == 1 and _is_text(choices[0]):  # what nearly every chunk is
            delta = choices[0].delta
            self._seen.add(0)
            self._characters += len(delta.content or delta.reasoning_content or delta.refusal or "")
            return chunk
        if self._is_mended is None:
            self._is_mended = not _has_head(payload)
        if self._is_mended or not all(map(self._is_well, choices)):
            return None
        self._count(chunk)
        return chunk

    def _is_well(self, choice: _ChunkChoice) -> bool:
        if choice.finish_reason is not None and (not choice.finish_reason or choice.index in self.finished):
            return False  # empty, or said twice
        return choice.delta.reasoning is None or choice.delta.reasoning_content is not None

    def _count(self, chunk: _Chunk) -> None:
        for choice in chunk.choices:
            delta = choice.delta
            self._seen.add(choice.index)
            if choice.finish_reason is not None:
                self.finished[choice.index] = choice.finish_reason
            self._characters += len(delta.content or delta.reasoning_content or delta.refusal or "")
            for call in delta.tool_calls or ():
                self._characters += len((call.function and call.function.arguments) or "")

    def _mend(self, payload: bytes) -> tuple[bytes, _Chunk] | None:
        found = _parse(payload)
        if found is None:
            return None
        if found.get("error"):
            raise Broken(payload)
        try:
            whole = _encode(self._mender.mend_chunk(found, self.finished))
            chunk = _chunk.decode(whole)
        except UNMENDABLE:
            return None
        self._count(chunk)
        return whole, chunk

    def _with_usage(self, payload: bytes, chunk: _Chunk) -> bytes | None:
        """The chunk with `usage` as the caller asked for it: null on every one, or on none."""
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
        """One of our own, with the head of the vendor's last."""
        last = _parse(self._last) or self._mender.mend_chunk({}, ())
        last.pop("usage", None)
        return _encode(last | rest | ({"usage": usage} if self._ask.include_usage else {}))


def _is_text(choice: _ChunkChoice) -> bool:
    """Whether there is nothing in it but some of the first choice's text."""
    delta = choice.delta
    is_plain = delta.content is not None and delta.tool_calls is None and delta.reasoning is None
    return is_plain and choice.finish_reason is None and choice.index == 0


def _has_head(payload: bytes) -> bool:
    try:
        _head.decode(payload)
    except UNREADABLE:
        return False
    return True


def _check_text(payload: bytes) -> None:
    """See that it is UTF-8: msgspec does not look into what is passed on unread."""
    if not payload.isascii():
        payload.decode()


def _drop_usage(payload: bytes) -> bytes:
    # Inside a JSON string the quotes would be escaped, so these bytes are always a key and its value.
    for written in (_USAGE, b', "usage": null'):
        before, found, after = payload.partition(written)
        if found and written not in after:
            return before + after
    fields = _fields.decode(payload)
    del fields["usage"]
    return _encode(fields)


# -- replies that are not streamed


def pass_whole(body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
    """The reply for the caller, what it used, and how many characters it has."""
    completion = None
    try:
        _check_text(body)
        completion = _completion.decode(body)
    except msgspec.ValidationError:
        pass  # it is mended
    except UNREADABLE as error:
        raise Malformed(str(error)) from None
    if completion is None or not _is_whole(completion):
        body, completion = _mend_whole(body, Mender(reply_id, created, ask.model))
    characters = 0
    for choice in completion.choices:
        message = choice.message
        characters += len(message.content or "") + len(message.reasoning_content or "")
    return body, _read_usage(completion.usage) if isinstance(completion.usage, _Usage) else None, characters


def _is_whole(completion: _Completion) -> bool:
    usage = completion.usage
    if usage is None or (isinstance(usage, _Usage) and not _has_counts(usage)):
        return False
    for choice in completion.choices:
        message = choice.message
        has_reasoning = message.reasoning_content or not message.reasoning
        if not choice.finish_reason or message.tool_calls == [] or not has_reasoning:
            return False
    return bool(completion.choices)


def _has_counts(usage: _Usage) -> bool:
    return None not in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)


def _mend_whole(body: bytes, mender: Mender) -> tuple[bytes, _Completion]:
    if body_tells_error(body):
        raise Broken(body)
    found = _parse(body)
    if found is None:
        raise Malformed("the reply is not an object")
    try:
        whole = _encode(mender.mend_completion(found))
        completion = _completion.decode(whole)
    except UNMENDABLE as error:
        raise Malformed(str(error)) from None
    if not completion.choices:
        raise Malformed("the reply holds no choice")
    return whole, completion
