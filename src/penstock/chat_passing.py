"""Replies in OpenAI's own dialect: passed as they are, counted on the way, and put right where they fall short."""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.chat import Ask, Fault, Usage, estimate
from penstock.contract import Reply
from penstock.sse import Splitter

DONE = b"data: [DONE]\n\n"


class Broken(Exception):
    """The vendor told of a fault where the answer should be: `said` is the fault, or JSON that only it can read."""

    def __init__(self, said: Fault | bytes) -> None:
        super().__init__("the reply holds an error")
        self._said = said

    def fault(self, read: Callable[[Reply], Fault]) -> Fault:
        """The fault, as the vendor's `read` understands it."""
        return self._said if isinstance(self._said, Fault) else read(Reply(200, {}, self._said))


class Malformed(Exception):
    """The reply is not what it should be at all."""


ABSENT = Raw(b"")

# -- what a good chunk or reply has; one of another shape is put right


class _Function(msgspec.Struct):
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # vLLM and Ollama call it so
    tool_calls: list[_ToolCall] | None = None


class _ChunkChoice(msgspec.Struct):
    index: int
    delta: _Delta
    finish_reason: str | None


class _Chunk(msgspec.Struct):
    id: Raw
    object: Raw
    created: Raw
    model: Raw
    choices: list[_ChunkChoice]
    usage: Raw = ABSENT
    error: UnsetType = UNSET


class _Message(msgspec.Struct):
    role: Raw
    content: str | None
    refusal: str | None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(msgspec.Struct):
    index: int
    message: _Message
    finish_reason: str
    logprobs: Raw


class _Completion(msgspec.Struct):
    id: Raw
    object: Raw
    created: Raw
    model: Raw
    choices: list[_Choice]
    usage: Raw = ABSENT
    error: UnsetType = UNSET


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


_chunk = msgspec.json.Decoder(_Chunk)
_completion = msgspec.json.Decoder(_Completion)
_usage = msgspec.json.Decoder(_Usage)
_fields = msgspec.json.Decoder(dict[str, Raw])
_anything = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode
_Json: TypeAlias = dict[str, Any]


def read_usage(usage: bytes) -> Usage | None:
    """The counts in a `usage` object; None where there are none."""
    try:
        found = _usage.decode(usage)
    except msgspec.DecodeError:
        return None
    if found.prompt_tokens is None and found.completion_tokens is None:
        return None
    asked, answered = found.prompt_tokens_details or _Details(), found.completion_tokens_details or _Details()
    return Usage(
        max(0, found.prompt_tokens or 0),
        max(0, found.completion_tokens or 0),
        max(0, asked.cached_tokens or 0),
        max(0, answered.reasoning_tokens or 0),
    )


class PassedStream:
    """A stream of chunks; see `streams.Stream`."""

    __slots__ = (
        "_ask",
        "_created",
        "_finished",
        "_id",
        "_last",
        "_seen",
        "_splitter",
        "_usage_chunk",
        "broken",
        "characters",
        "ended",
        "malformed",
        "usage",
    )

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._ask = ask
        self._id = reply_id
        self._created = created
        self._splitter = Splitter()
        self._seen: set[int] = set()
        self._finished: set[int] = set()
        self._usage_chunk: bytes | None = None
        self._last = b""
        self.usage: Usage | None = None
        self.characters = 0
        self.malformed = 0
        self.ended = False
        self.broken: Broken | None = None

    @property
    def comments(self) -> int:
        """How many comments came instead of events."""
        return self._splitter.comments

    @property
    def complete(self) -> bool:
        """Whether the vendor said everything that it began."""
        return self.ended or (bool(self._finished) and self._seen == self._finished)

    def feed(self, data: bytes) -> bytes:
        """Vendor's bytes in, caller's bytes out: whole events only."""
        out: list[bytes] = []
        try:
            for _, payload in self._splitter.feed(data):
                self._take(payload, out)
        except Broken as broken:  # what came before it still counts
            self.broken = broken
        return b"".join(out)

    def end(self) -> bytes:
        """The vendor's stream is over: what closes ours."""
        out: list[bytes] = []
        for _, payload in self._splitter.end():
            self._take(payload, out)
        if not self.complete:
            return b"".join(out)
        if self._ask.include_usage:
            out += (b"data: ", self._usage_chunk or self._make_usage_chunk(), b"\n\n")
        out.append(DONE)
        return b"".join(out)

    def _take(self, payload: bytes, out: list[bytes]) -> None:
        if self.ended:
            return
        if payload.startswith(b"[DONE]"):
            self.ended = True
            return
        chunk = None
        try:
            chunk = _chunk.decode(payload)
        except msgspec.ValidationError:
            pass  # it is put right
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.malformed += 1
            return
        if chunk is None or not self._note(chunk):
            payload, chunk = self._put_right(payload)
            self._note(chunk)
        self._last = payload or self._last
        if passed := self._with_usage(payload, chunk):
            out += (b"data: ", passed, b"\n\n")

    def _note(self, chunk: _Chunk) -> bool:
        """Count what the chunk holds; False for one that must be put right first."""
        if not all(map(self._is_well, chunk.choices)):
            return False
        for choice in chunk.choices:
            delta = choice.delta
            self._seen.add(choice.index)
            if choice.finish_reason is not None:
                self._finished.add(choice.index)
            self.characters += len(delta.content or "")
            if delta.tool_calls or delta.reasoning_content or delta.refusal:
                self._count_rest(delta)
        return True

    def _is_well(self, choice: _ChunkChoice) -> bool:
        if choice.finish_reason is not None and (not choice.finish_reason or choice.index in self._finished):
            return False  # empty, or said twice
        return not choice.delta.reasoning or bool(choice.delta.reasoning_content)

    def _count_rest(self, delta: _Delta) -> None:
        self.characters += len(delta.reasoning_content or "") + len(delta.refusal or "")
        for call in delta.tool_calls or ():
            self.characters += len((call.function and call.function.arguments) or "")

    def _with_usage(self, payload: bytes, chunk: _Chunk) -> bytes | None:
        """The chunk with `usage` as the caller asked for it: null on every one, or on none."""
        wanted, usage = self._ask.include_usage, bytes(chunk.usage)
        if usage not in (b"", b"null"):
            self.usage = read_usage(usage) or self.usage
            if not chunk.choices:
                self._usage_chunk = payload
        if not chunk.choices:
            return None
        if usage == b"null":
            return payload if wanted else _drop_usage(payload)
        without = _drop_usage(payload) if usage else payload
        return _append_null(without) if wanted else without

    def _make_usage_chunk(self) -> bytes:
        last: _Json = _parse(self._last) or {}
        usage = self.usage or estimate(self._ask, self.characters)
        return _encode(last | {"choices": [], "usage": usage.as_json()})

    def _put_right(self, payload: bytes) -> tuple[bytes, _Chunk]:
        """A chunk that lacks what clients rely on, made whole."""
        found = _parse(payload)
        if not isinstance(found, dict):
            self.malformed += 1
            return b"", _empty()
        chunk = cast("_Json", found)
        if chunk.get("error"):
            raise Broken(payload)
        chunk.pop("error", None)
        _fill_head(chunk, self._id, "chat.completion.chunk", self._created, self._ask.model)
        chunk["choices"] = [self._put_choice_right(index, choice) for index, choice in _objects(chunk.get("choices"))]
        whole = _encode(chunk)
        try:
            return whole, _chunk.decode(whole)
        except msgspec.ValidationError:
            self.malformed += 1
            return b"", _empty()

    def _put_choice_right(self, position: int, choice: _Json) -> _Json:
        index = choice.setdefault("index", position)
        delta: _Json = choice.get("delta") or {}
        choice["delta"] = delta
        _name_reasoning(delta)
        if delta.get("tool_calls"):
            for number, call in _objects(delta["tool_calls"]):
                call.setdefault("index", number)
        if isinstance(delta.get("content"), list):
            delta["content"] = _join_text(delta["content"])
        finish = choice.get("finish_reason") or None
        choice["finish_reason"] = None if index in self._finished else finish
        return choice


def _parse(payload: bytes) -> Any:
    """What is written there; None where it is no JSON, which a decoder of known fields may not have seen."""
    try:
        return _anything.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _empty() -> _Chunk:
    nothing = Raw(b"null")
    return _Chunk(nothing, nothing, nothing, nothing, [])


def _append_null(payload: bytes) -> bytes:
    return payload.rstrip()[:-1] + b',"usage":null}'


def _drop_usage(payload: bytes) -> bytes:
    # Inside a JSON string the quotes would be escaped, so these bytes are always a key and its value.
    for written in (b',"usage":null', b', "usage": null'):
        if payload.count(written) == 1:
            return payload.replace(written, b"")
    fields = _fields.decode(payload)
    del fields["usage"]
    return _encode(fields)


def _objects(found: Any) -> list[tuple[int, _Json]]:
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [(index, cast("_Json", item)) for index, item in enumerate(items) if isinstance(item, dict)]


def _fill_head(found: _Json, reply_id: str, kind: str, created: int, model: str) -> None:
    for name, value in (("id", reply_id), ("object", kind), ("created", created), ("model", model)):
        if not found.get(name):
            found[name] = value


def _name_reasoning(message: _Json) -> None:
    """Give reasoning text the name that clients read; the vendor's own stays beside it."""
    if message.get("reasoning") and not message.get("reasoning_content"):
        message["reasoning_content"] = message["reasoning"]
    for name in ("reasoning", "reasoning_content"):
        if not isinstance(message.get(name, ""), str):
            del message[name]


def _join_text(parts: Any) -> str:
    return "".join(part["text"] for _, part in _objects(parts) if isinstance(part.get("text"), str))


# -- replies that are not streamed


def pass_whole(body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
    """The reply for the caller, what it used, and how many characters it has."""
    completion = None
    try:
        completion = _completion.decode(body)
    except msgspec.ValidationError:
        pass  # it is put right
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from None
    if completion is None or not _is_well(completion):
        body, completion = _put_whole_right(body, ask, reply_id, created)
    usage = bytes(completion.usage)
    characters = sum(
        len(choice.message.content or "") + len(choice.message.reasoning_content or "") for choice in completion.choices
    )
    return body, read_usage(usage) if usage else None, characters


def _is_well(completion: _Completion) -> bool:
    messages = [choice.message for choice in completion.choices]
    return bool(messages) and all(message.reasoning_content or not message.reasoning for message in messages)


def _put_whole_right(body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, _Completion]:
    found = _parse(body)
    if not isinstance(found, dict):
        raise Malformed("the reply is not an object")
    reply = cast("_Json", found)
    if reply.get("error"):
        raise Broken(body)
    reply.pop("error", None)
    _fill_head(reply, reply_id, "chat.completion", created, ask.model)
    for index, choice in _objects(reply.get("choices")):
        choice.setdefault("index", index)
        choice.setdefault("logprobs", None)
        _put_message_right(choice)
    whole = _encode(reply)
    try:
        completion = _completion.decode(whole)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None
    if not completion.choices:
        raise Malformed("the reply holds no choice")
    return whole, completion


def _put_message_right(choice: _Json) -> None:
    message = choice.get("message")
    if not isinstance(message, dict):
        return
    found = cast("_Json", message)
    found.setdefault("role", "assistant")
    found.setdefault("refusal", None)
    found.setdefault("content", None)
    _name_reasoning(found)
    if isinstance(found["content"], list):
        found["content"] = _join_text(found["content"])
    if not found.get("tool_calls"):
        found.pop("tool_calls", None)
    if not choice.get("finish_reason"):
        choice["finish_reason"] = "tool_calls" if found.get("tool_calls") else "stop"
