"""Repairs replies that deviate from OpenAI's dialect: fields that clients rely on are filled in."""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from penstock.chat.replies.chunks.tool_calls import ToolCalls, repair_calls, repair_function
from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")

TEXT_FIELDS: Final = ("content", "text", "delta", "response", "output", "completion", "generated_text", "token")
"""Fields that hold the text in other dialects."""
THOUGHTS: Final = ("thinking", "reasoning")
_HOLDS_TEXT = re.compile(rb'"(?:choices|delta|content|text|parts|candidates|content_block)"\s*:')
_HOLDS_CHOICE = re.compile(rb'"(?:choices|delta)"\s*:\s*[\[{"]')


def wraps_chunk(payload: bytes) -> bool:
    """Return whether an object without choices may contain a chunk."""
    return _HOLDS_CHOICE.search(payload) is not None


def is_chunk_like(payload: bytes) -> bool:
    """Return whether an unreadable event may have held a part of the answer."""
    return _HOLDS_TEXT.search(payload) is not None


@dataclass(frozen=True, slots=True)
class Repairer:
    """Repairs chunks and replies; its fields replace those that a vendor omits."""

    id: str
    created: int
    model: str

    def repair_chunk(self, chunk: Json, finished: Container[int], calls: dict[int, ToolCalls], passed: int = 0) -> Json:
        """Repair a chunk of a stream; `finished` are the choices that have had their finish reason.

        `calls` are the tool calls of each choice so far, and `passed` is the number of characters passed on.
        Raise `TypeError` or `ValueError` if a part of the answer would be lost.
        """
        self._fill_head(chunk, "chat.completion.chunk")
        if "choices" not in chunk and any(chunk.get(name) for name in TEXT_FIELDS):
            raise TypeError("some text, but no choices")
        choices = [
            self._repair_choice(index, choice, finished, calls, passed)
            for index, choice in _objects(chunk.get("choices"), "choices")
        ]
        return chunk | {"choices": choices}

    def repair_completion(self, reply: Json) -> Json:
        """Repair a reply that was not streamed."""
        self._fill_head(reply, "chat.completion")
        for index, choice in _objects(reply.get("choices"), "choices"):
            if type(choice.get("index")) is not int:
                choice["index"] = index
            choice.setdefault("logprobs", None)
            if choice.get("message") is None and isinstance(choice.get("text"), str):
                choice["message"] = {"content": choice["text"]}  # as the legacy endpoint answers
            self._repair_message(choice, choice["message"])
        return reply

    def _repair_choice(
        self, position: int, choice: Json, finished: Container[int], calls: dict[int, ToolCalls], passed: int
    ) -> Json:
        index = choice["index"] = _read_index(choice.get("index"), position)
        reason = None if index in finished else choice.get("finish_reason") or None  # empty or repeated
        delta = _find_delta(choice, passed, is_last=reason is not None)
        _repair_texts(delta)
        if delta.get("tool_calls") is not None:
            known = calls.setdefault(index, ToolCalls())
            delta["tool_calls"] = known.repair(delta["tool_calls"], self._name_calls(index))
        if delta.get("function_call") is not None:
            delta["function_call"] = calls.setdefault(index, ToolCalls()).repair_function(delta["function_call"])
        return choice | {"delta": delta, "finish_reason": reason}

    def _repair_message(self, choice: Json, message: Any) -> None:
        if not isinstance(message, dict):
            raise TypeError("a message of an unexpected shape")
        found = cast("Json", message)
        for name, value in (("role", "assistant"), ("refusal", None), ("content", None)):
            found.setdefault(name, value)
        _repair_texts(found)
        if not found.get("tool_calls"):
            found.pop("tool_calls", None)
        else:
            found["tool_calls"] = repair_calls(found["tool_calls"], self._name_calls(choice["index"]))
        if found.get("function_call") is not None:
            found["function_call"] = repair_function(found["function_call"])
        if not choice.get("finish_reason"):
            choice["finish_reason"] = "tool_calls" if "tool_calls" in found else "stop"

    def _name_calls(self, choice: int) -> str:
        """Return the prefix of our tool call ids; OpenAI accepts ids of at most 40 characters."""
        return f"call_{self.id[-20:]}_{choice}"

    def _fill_head(self, found: Json, kind: str) -> None:
        for name, value in (("id", self.id), ("object", kind), ("created", self.created), ("model", self.model)):
            if not found.get(name) or not isinstance(found[name], type(value)):
                found[name] = value
        found.pop("error", None)  # null: an error was recognised before
        usage = _repair_usage(found.pop("usage", None))
        if usage is not None:
            found["usage"] = usage


def _repair_usage(usage: Any) -> Json | None:
    """Return `usage` with all counts that clients read; None if they cannot be completed."""
    counted = _count(usage)
    if counted is None:
        return None
    prompt, completion, total = (counted.get(name) for name in COUNTS)
    if total is None and prompt is not None and completion is not None:
        counted["total_tokens"] = prompt + completion
    elif total is not None and (prompt is None) != (completion is None):
        counted["prompt_tokens" if prompt is None else "completion_tokens"] = max(
            0, total - (prompt or completion or 0)
        )
    elif prompt is None or completion is None:
        return None
    return counted


def _count(usage: Any) -> Json | None:
    """Return `usage` with `3.0` as 3; None if a count is not a whole number."""
    if not isinstance(usage, dict):
        return None
    counted = dict(cast("Json", usage))
    for name, value in counted.items():
        if name.endswith("_tokens"):
            counted[name] = int(value) if isinstance(value, float) and value.is_integer() else value
            if not isinstance(counted[name], int | None) or isinstance(value, bool):
                return None
        elif name.endswith("_tokens_details") and value is not None:
            counted[name] = _count(value)
            if counted[name] is None:
                return None
    return counted


def _objects(found: Any, what: str) -> list[tuple[int, Json]]:
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast("list[Any]", found)):
        raise TypeError(f"{what} of an unexpected shape")
    return list(enumerate(cast("list[Json]", found)))


def _read_index(value: Any, position: int) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:9])
    return value if type(value) is int else position


def _find_delta(choice: Json, passed: int, *, is_last: bool) -> Json:
    """Return the delta of a choice; some vendors call it `message` or `text`."""
    delta = choice.get("delta")
    if isinstance(delta, str):
        return {"content": delta}
    if delta is None and isinstance(choice.get("text"), str):
        return {"content": choice.pop("text")}
    if delta is None and isinstance(choice.get("message"), dict):
        message: Json = choice.pop("message")
        text = message.get("content")
        # At the end it is the whole message, which clients already have.
        return {} if is_last and isinstance(text, str) and passed >= len(text) else message
    if delta is not None and not isinstance(delta, dict):
        raise TypeError("a delta of an unexpected shape")
    return cast("Json", delta or {})


def _repair_texts(message: Json) -> None:
    """Join the content to one text, and add reasoning under the name that clients read."""
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        texts = _join_parts(content)
        message["content"] = texts.get("content", "")
        if texts.get("reasoning"):
            message["reasoning_content"] = texts["reasoning"]
    if message.get("reasoning") and not message.get("reasoning_content"):
        message["reasoning_content"] = message["reasoning"]
    for name in ("reasoning", "reasoning_content", "refusal"):
        if not isinstance(message.get(name), str | None):
            message[name] = "".join(_join_parts(message[name]).values())


def _join_parts(content: Any) -> dict[str, str]:
    """Return the texts of content and reasoning in these parts; a picture has none."""
    if isinstance(content, bool | int | float):
        return {"content": write_json(content).decode()}
    found = {"content": "", "reasoning": ""}
    for part in cast("list[Any]", content) if isinstance(content, list) else [content]:
        name, text = _read_part(part)
        found[name] += text
    return found


def _read_part(part: Any) -> tuple[str, str]:
    if isinstance(part, str):
        return "content", part
    if not isinstance(part, dict):
        raise TypeError("a part of an unexpected shape")
    fields = cast("Json", part)
    name = "reasoning" if fields.get("type") in THOUGHTS else "content"
    for field in ("text", "content", *THOUGHTS, "refusal"):
        value = fields.get(field)
        if isinstance(value, str):
            return name, value
        if isinstance(value, list) and value:
            return name, "".join(_read_part(inner)[1] for inner in cast("list[Any]", value))
    return name, ""
