"""Puts replies right that fall short of OpenAI's dialect: what clients rely on is filled in, the rest stays."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class Mender:
    """What is filled in where a vendor gives none."""

    id: str
    created: int
    model: str

    def mend_chunk(self, chunk: Json, finished: Container[int]) -> Json:
        """A chunk of a stream; `finished` are the choices that have had their reason."""
        self._fill_head(chunk, "chat.completion.chunk")
        choices = [_mend_delta(index, choice, finished) for index, choice in _objects(chunk.get("choices"))]
        return chunk | {"choices": choices}

    def mend_completion(self, reply: Json) -> Json:
        """A reply that was not streamed."""
        self._fill_head(reply, "chat.completion")
        for index, choice in _objects(reply.get("choices")):
            choice.setdefault("index", index)
            choice.setdefault("logprobs", None)
            if isinstance(choice.get("message"), dict):
                _mend_message(choice, choice["message"])
        return reply

    def _fill_head(self, found: Json, kind: str) -> None:
        for name, value in (("id", self.id), ("object", kind), ("created", self.created), ("model", self.model)):
            if not found.get(name) or not isinstance(found[name], type(value)):
                found[name] = value
        found.pop("error", None)  # null: told apart before
        usage = _mend_usage(found.pop("usage", None))
        if usage is not None:
            found["usage"] = usage


def _mend_usage(usage: Any) -> Json | None:
    """Return `usage` with whole numbers where clients look for them; None where it has other things there, or none."""
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
    """Return `usage` with `3.0` as 3; None where something else than whole numbers stands for them."""
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


def _objects(found: Any) -> list[tuple[int, Json]]:
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [(index, cast("Json", item)) for index, item in enumerate(items) if isinstance(item, dict)]


def _mend_delta(position: int, choice: Json, finished: Container[int]) -> Json:
    index = choice.setdefault("index", position)
    delta: Json = choice.get("delta") or {}
    _mend_texts(delta)
    for number, call in _objects(delta.get("tool_calls")):
        call.setdefault("index", number)
    reason = None if index in finished else choice.get("finish_reason") or None  # "", or said twice
    return choice | {"delta": delta, "finish_reason": reason}


def _mend_message(choice: Json, message: Json) -> None:
    for name, value in (("role", "assistant"), ("refusal", None), ("content", None)):
        message.setdefault(name, value)
    _mend_texts(message)
    if not message.get("tool_calls"):
        message.pop("tool_calls", None)
    if not choice.get("finish_reason"):
        choice["finish_reason"] = "tool_calls" if "tool_calls" in message else "stop"


def _mend_texts(message: Json) -> None:
    """One text of content, and reasoning under the name that clients read beside the vendor's own."""
    if isinstance(message.get("content"), list):
        parts = (part.get("text") for _, part in _objects(message["content"]))
        message["content"] = "".join(text for text in parts if isinstance(text, str))
    if message.get("reasoning") and not message.get("reasoning_content"):
        message["reasoning_content"] = message["reasoning"]
    for name in ("reasoning", "reasoning_content"):
        if not isinstance(message.get(name, ""), str):
            del message[name]
