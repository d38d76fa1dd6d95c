"""A conversation and an answer apart from any dialect, and their comparison."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]


# -- the request


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: base64 data with its media type, or else a URL."""

    data: str = ""
    media_type: str = "image/png"
    url: str = ""

    @property
    def uri(self) -> str:
        """The picture as OpenAI's dialects refer to it."""
        return self.url or f"data:{self.media_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning of an earlier turn; a seal is the opaque form that its vendor needs back."""

    text: str
    seal: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call."""

    id: str
    parts: tuple[Text | Picture, ...]
    is_error: bool = False


Part: TypeAlias = Text | Picture | Thought | Call | Result


@dataclass(frozen=True, slots=True)
class Message:
    """A turn. `raw` stands for the parts: an assistant's turn as the door gave it to the client."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...] = ()
    raw: Any = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str
    schema: Json


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything that a request says, as far as all dialects know it."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    choice: str | None = None
    """`auto`, `none`, `required`, or the name of a tool."""
    one_call: bool = False
    """Whether tools are called one at a time."""
    schema: Json | None = None
    """The JSON schema of the answer."""
    effort: str | None = None
    max_tokens: int = 1_000
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    user: str | None = None


def said(conversation: Conversation, *, blank: bool = True) -> list[tuple[Any, ...]]:
    """Return what was said, in a form that is equal for equal conversations of any dialect.

    Neighbouring texts of a role are joined. Results come first in their turn, in the order of the calls, and name the
    position of their call instead of an id. Without `blank`, texts of white space alone count for nothing.
    """
    calls: dict[str, int] = {}
    turns: list[tuple[str, list[Part]]] = []
    for message in conversation.messages:
        parts = [part for part in message.parts if not is_nothing(part, blank=blank)]
        if parts and turns and turns[-1][0] == message.role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((message.role, parts))
    told: list[tuple[Any, ...]] = []
    for role, parts in turns:
        for part in parts:
            if isinstance(part, Call):
                calls[part.id] = len(calls)
        told += _tell_results(parts, calls, blank=blank)
        told += _tell(role, [part for part in parts if not isinstance(part, Result)])
    return told


def is_nothing(part: Part, *, blank: bool) -> bool:
    """Return whether a part says nothing."""
    if isinstance(part, Text):
        return not (part.text if blank else part.text.strip())
    return isinstance(part, Thought) and not part.text and not part.seal


def _tell_results(parts: list[Part], calls: dict[str, int], *, blank: bool) -> list[tuple[Any, ...]]:
    results = [part for part in parts if isinstance(part, Result)]
    results.sort(key=lambda result: calls[result.id])
    told: list[tuple[Any, ...]] = []
    for result in results:
        inner = [part for part in result.parts if not is_nothing(part, blank=blank)]
        told.append(("result", calls[result.id], result.is_error, *_tell("tool", inner)))
    return told


def _tell(role: str, parts: list[Any]) -> Iterator[tuple[Any, ...]]:
    texts: list[str] = []
    for part in [*parts, None]:
        if isinstance(part, Text):
            texts.append(part.text)
            continue
        if texts:
            yield role, "text", "\n".join(texts)
            texts = []
        match part:
            case Picture():
                yield role, "picture", part.uri
            case Call():
                yield role, "call", part.name, part.arguments
            case Thought():
                yield role, "thought", part.text, part.seal
            case _:
                pass


def without_thoughts(conversation: Conversation) -> Conversation:
    """Return the conversation without reasoning."""
    messages = [
        replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Thought)))
        for message in conversation.messages
    ]
    return replace(conversation, messages=tuple(messages))


# -- the answer


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as a client understands it."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    """`stop`, `length`, `tool_calls` or `content_filter`; None if the client does not know that the answer is whole."""
    input_tokens: int = 0
    output_tokens: int = 0
    raw: Any = None
    """The turn as this client sends it back in its next request."""
    pieces: int = 0
    """Number of text events."""

    @property
    def called(self) -> list[tuple[str, Json]]:
        """Names and arguments of the calls."""
        return [(call.name, call.arguments) for call in self.calls]


def read_arguments(text: str) -> Json:
    """Return the arguments of a call; a client would fail at anything but an object."""
    found = json.loads(text or "{}")
    assert isinstance(found, dict), f"not an object: {text!r}"
    return found
