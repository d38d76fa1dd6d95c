"""Translates the conversation of a Messages request into chat messages."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

import msgspec

from penstock.chat.doors.messages.left_out import LeftOut
from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest
from penstock.vendor_api import seals
from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]

BLOCK_FIELDS: Final = {
    "text": ("type", "text"),
    "image": ("type", "source"),
    "document": ("type", "source", "title", "context"),
    "search_result": ("type", "source", "title", "content"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
}
"""The fields of each block that is translated. Blocks of other types are left out."""
NO_EFFECT: Final[tuple[Any, ...]] = ([], {}, False, {"enabled": False}, {"type": "direct"})
"""Values that ask for nothing."""


def translate_turns(ask: Ask, left_out: LeftOut) -> list[Json]:
    """Return the chat messages of a request."""
    try:
        system, turns = ask.field("system"), ask.field("messages")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid("messages", str(error)) from None
    conversation = _Conversation(left_out)
    if system:
        conversation.add_system(system, "system")
    for index, turn in enumerate(turns):
        conversation.add(turn, f"messages.{index}")
    if turns[-1]["role"] == "assistant":
        left_out.add("prefill")  # chat answers an assistant's message instead of continuing it
    return conversation.messages


class _Conversation:
    """The chat messages so far."""

    def __init__(self, left_out: LeftOut) -> None:
        self.messages: list[Json] = []
        self._left_out = left_out

    def add(self, turn: Json, place: str) -> None:
        """Add the messages of one turn."""
        self._left_out.add_unknown(turn, ("role", "content"))
        content = turn.get("content")
        match turn["role"]:
            case "system":
                self.add_system(content, f"{place}.content")
            case "assistant":
                self._add_assistant(self._blocks(content, f"{place}.content"))
            case _:
                self._add_user(self._blocks(content, f"{place}.content"))

    def add_system(self, content: Any, place: str) -> None:
        """Add instructions, at any place of the conversation."""
        texts = [block["text"] for _, block in self._blocks(content, place) if block["type"] == "text"]
        if any(texts):
            self.messages.append({"role": "system", "content": "\n".join(texts)})

    def _blocks(self, content: Any, place: str) -> Iterator[tuple[str, Json]]:
        """Yield the blocks that can be translated, each with its place; the others are left out."""
        if content is None or isinstance(content, str):
            yield place, {"type": "text", "text": content or ""}
            return
        if not isinstance(content, list):
            raise _invalid(place, "expected a text or an array of blocks")
        for index, block in enumerate(cast("list[Any]", content)):
            kind = cast("Json", block).get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str):
                raise _invalid(f"{place}.{index}", "expected an object with a type")
            if kind not in BLOCK_FIELDS:
                self._left_out.add(kind)
                continue
            fields = cast("Json", block)
            asked = {name: value for name, value in fields.items() if value not in NO_EFFECT}
            self._left_out.add_unknown(asked, BLOCK_FIELDS[kind])
            yield f"{place}.{index}", fields

    # -- the assistant

    def _add_assistant(self, blocks: Iterator[tuple[str, Json]]) -> None:
        texts: list[str] = []
        calls: list[Json] = []
        reasoning: list[str] = []
        sealed: list[str] = []
        for place, block in blocks:
            match block["type"]:
                case "text":
                    texts.append(_text(block, "text", place))
                case "tool_use":
                    calls.append(_translate_call(block, place))
                case "thinking" | "redacted_thinking":
                    self._add_thinking(block, reasoning, sealed)
                case kind:
                    self._left_out.add(kind)
        content = "\n".join(filter(None, texts))
        message: Json = {"role": "assistant", "content": content if content or not calls else None}
        message |= {"reasoning_content": "\n".join(reasoning)} if reasoning else {}
        message |= {"sealed_reasoning": sealed} if sealed else {}
        message |= {"tool_calls": calls} if calls else {}
        self.messages.append(message)

    def _add_thinking(self, block: Json, reasoning: list[str], sealed: list[str]) -> None:
        """Take reasoning of ours back. What Anthropic has signed is of no use to another vendor."""
        signature = block.get("signature") if block["type"] == "thinking" else block.get("data")
        text = block.get("thinking")
        if isinstance(signature, str) and signature and not seals.is_seal(signature):
            self._left_out.add("thinking")
            return
        if isinstance(signature, str) and signature and seals.unseal(signature, "none") is None:
            sealed.append(signature)
        if isinstance(text, str) and text:
            reasoning.append(text)

    # -- the user

    def _add_user(self, blocks: Iterator[tuple[str, Json]]) -> None:
        """Add the results of tools, which chat has before anything else, then what the user says."""
        said: list[Json] = []
        for place, block in blocks:
            if block["type"] == "tool_result":
                said += self._add_result(block, place)
            else:
                said += self._translate_part(block, place)
        if said:
            self.messages.append({"role": "user", "content": _join(said)})
        elif not self.messages or self.messages[-1]["role"] not in ("tool", "user"):
            self.messages.append({"role": "user", "content": ""})

    def _add_result(self, block: Json, place: str) -> list[Json]:
        """Add the result of a tool, and return its images and files: in chat only a user can show them."""
        call_id = _text(block, "tool_use_id", place)
        parts = [
            part
            for inner, found in self._blocks(block.get("content"), f"{place}.content")
            for part in self._translate_part(found, inner)
        ]
        shown = [part for part in parts if part["type"] != "text"]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        text = "\n".join(texts) or ("(shown in the next message)" if shown else "")
        if block.get("is_error") is True:
            text = f"Error: {text}"
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
        return [{"type": "text", "text": f"The result of the tool call {call_id[:40]}:"}, *shown] if shown else []

    def _translate_part(self, block: Json, place: str) -> list[Json]:
        """Return the parts of a block of the user's."""
        match block["type"]:
            case "text":
                text = _text(block, "text", place)
                return [{"type": "text", "text": text}] if text else []
            case "image":
                return [{"type": "image_url", "image_url": {"url": _translate_source(block.get("source"), place)}}]
            case "document":
                return self._translate_document(block, place)
            case "search_result":
                heads = [str(block[name]) for name in ("title", "source") if block.get(name)]
                inner = self._translate_inner(block.get("content"), f"{place}.content")
                return [{"type": "text", "text": head} for head in heads] + inner
            case kind:
                self._left_out.add(kind)
                return []

    def _translate_inner(self, content: Any, place: str) -> list[Json]:
        return [part for inner, block in self._blocks(content, place) for part in self._translate_part(block, inner)]

    def _translate_document(self, block: Json, place: str) -> list[Json]:
        heads = [{"type": "text", "text": str(block[name])} for name in ("title", "context") if block.get(name)]
        match block.get("source"):
            case {"type": "text", "data": str(text)}:
                return [*heads, {"type": "text", "text": text}]
            case {"type": "content", "content": content}:
                return heads + self._translate_inner(content, f"{place}.source.content")
            case source:
                name = str(block.get("title") or "document.pdf")
                file = {"filename": name, "file_data": _translate_source(source, place)}
                return [*heads[1:], {"type": "file", "file": file}] if heads[1:] else [{"type": "file", "file": file}]


def _translate_call(block: Json, place: str) -> Json:
    taken = block.get("input")
    if not isinstance(taken, dict):
        raise _invalid(f"{place}.input", "expected an object")
    function = {"name": _text(block, "name", place), "arguments": write_json(taken).decode()}
    return {"id": _text(block, "id", place), "type": "function", "function": function}


def _translate_source(source: Any, place: str) -> str:
    """Return the data or the address of an image or a file."""
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(url)}:
            return url
        case {"type": "file"}:
            raise _invalid(f"{place}.source", "a file kept by Anthropic cannot be read by this model; send its data")
        case _:
            raise _invalid(f"{place}.source", "expected base64 data with its media type, or a URL")


def _join(parts: list[Json]) -> str | list[Json]:
    """Return texts as one, which every server takes, and anything else as a list."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _text(block: Json, name: str, place: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise _invalid(f"{place}.{name}", "expected a text")
    return value


def _invalid(place: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{place}: {problem}.", param=place, code="invalid_value")
