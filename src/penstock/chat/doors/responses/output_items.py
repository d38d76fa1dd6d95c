"""Output items of a response while they are written: a message, a piece of reasoning, a call."""

from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeAlias

from penstock.chat.doors.responses.tools import Called, read_input

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = tuple[str, Json]
"""The type of an event and its fields, without its sequence number."""
Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class OutputItem(Protocol):
    """One item, from its first piece to its end."""

    id: str
    index: int

    def close(self) -> Iterator[Event]:
        """Yield the events that end its parts; the item itself ends with `as_json`."""
        ...

    def as_json(self, status: Status) -> Json:
        """Return the item."""
        ...


class MessageItem:
    """A message: text and refusals, each in a content part of its own."""

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.index = index
        self.pieces: list[str] = []
        """Pieces of the latest part, of which `kind` is the type; it is empty before the first."""
        self.kind = ""
        self._parts: list[Json] = []

    def begin(self, kind: str) -> Iterator[Event]:
        """Yield the events that end the latest part and begin one of this kind, unless it is open."""
        if kind != self.kind:
            yield from self.close()
            self.kind, self.pieces = kind, []
            yield "response.content_part.added", {**self.place(), "part": _part(kind, "")}

    def place(self) -> Json:
        """Return the place of the latest part."""
        return {"item_id": self.id, "output_index": self.index, "content_index": len(self._parts)}

    def refuse(self, text: str) -> Event:
        """Return the event of a piece of a refusal."""
        self.pieces.append(text)
        return "response.refusal.delta", {**self.place(), "delta": text}

    def close(self) -> Iterator[Event]:
        """Yield the events that end the latest part."""
        if self.kind:
            text, place = "".join(self.pieces), self.place()
            whole: Json = {"refusal": text} if self.kind == "refusal" else {"text": text, "logprobs": []}
            part = _part(self.kind, text)
            yield f"response.{self.kind}.done", {**place, **whole}
            yield "response.content_part.done", {**place, "part": part}
            self._parts.append(part)
            self.kind = ""

    def as_json(self, status: Status) -> Json:
        """Return the message."""
        return {"id": self.id, "type": "message", "status": status, "role": "assistant", "content": self._parts}


def _part(kind: str, text: str) -> Json:
    if kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class ReasoningItem:
    """Reasoning, as a summary of one part, and its seal."""

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.index = index
        self.sealed: str | None = None
        self._pieces: list[str] = []

    def reason(self, text: str) -> Iterator[Event]:
        """Yield the events of a piece."""
        if not self._pieces:
            yield "response.reasoning_summary_part.added", {**self._place(), "part": _summary("")}
        self._pieces.append(text)
        yield "response.reasoning_summary_text.delta", {**self._place(), "delta": text}

    def close(self) -> Iterator[Event]:
        """Yield the events that end the summary."""
        if self._pieces:
            text = "".join(self._pieces)
            yield "response.reasoning_summary_text.done", {**self._place(), "text": text}
            yield "response.reasoning_summary_part.done", {**self._place(), "part": _summary(text)}

    def as_json(self, status: Status) -> Json:
        """Return the reasoning; OpenAI gives it no status."""
        del status
        summary = [_summary("".join(self._pieces))] if self._pieces else []
        sealed = {} if self.sealed is None else {"encrypted_content": self.sealed}
        return {"id": self.id, "type": "reasoning", "summary": summary, **sealed}

    def _place(self) -> Json:
        return {"item_id": self.id, "output_index": self.index, "summary_index": 0}


def _summary(text: str) -> Json:
    return {"type": "summary_text", "text": text}


class FunctionCallItem:
    """A call of a function."""

    def __init__(self, item_id: str, index: int, call_id: str, called: Called) -> None:
        self.id = item_id
        self.index = index
        self._call_id = call_id
        self._called = called
        self._pieces: list[str] = []

    def add(self, json: str) -> Iterator[Event]:
        """Yield the event of a piece of the arguments."""
        self._pieces.append(json)
        if json:
            yield "response.function_call_arguments.delta", {**self._place(), "delta": json}

    def close(self) -> Iterator[Event]:
        """Yield the events that end the arguments; a call without any has an empty object, as clients parse it."""
        if not any(self._pieces):
            yield from self.add("{}")
        name = self._called.name
        yield "response.function_call_arguments.done", {**self._place(), "name": name, "arguments": self._arguments()}

    def as_json(self, status: Status) -> Json:
        """Return the call."""
        named = {"call_id": self._call_id, **_name(self._called), "arguments": self._arguments()}
        return {"id": self.id, "type": "function_call", "status": status, **named}

    def _arguments(self) -> str:
        return "".join(self._pieces)

    def _place(self) -> Json:
        return {"item_id": self.id, "output_index": self.index}


class CustomCallItem:
    """A call of a custom tool. Its input is known when the JSON around it is complete."""

    def __init__(self, item_id: str, index: int, call_id: str, called: Called) -> None:
        self.id = item_id
        self.index = index
        self._call_id = call_id
        self._called = called
        self._pieces: list[str] = []

    def add(self, json: str) -> Iterator[Event]:
        """Collect a piece of the arguments, and yield nothing yet."""
        self._pieces.append(json)
        yield from ()

    def close(self) -> Iterator[Event]:
        """Yield the input."""
        text, place = self._input(), {"item_id": self.id, "output_index": self.index}
        if text:
            yield "response.custom_tool_call_input.delta", {**place, "delta": text}
        yield "response.custom_tool_call_input.done", {**place, "input": text}

    def as_json(self, status: Status) -> Json:
        """Return the call."""
        text = "" if status == "in_progress" else self._input()
        named = {"call_id": self._call_id, **_name(self._called), "input": text}
        return {"id": self.id, "type": "custom_tool_call", "status": status, **named}

    def _input(self) -> str:
        return read_input("".join(self._pieces))


def _name(called: Called) -> Json:
    return {"name": called.name} | ({} if called.namespace is None else {"namespace": called.namespace})
