"""A model's part in a conversation, apart from any dialect: what it was sent, and what it answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS, REASONING_TOKENS = 120, 40, 30, 10
"""Usage of every answer; cached and reasoning tokens are part of the other two."""


class Refused(Exception):
    """A request that the vendor does not answer: by default one that the real API would refuse."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def demand(holds: object, said: str) -> None:
    """Refuse the request unless a condition holds."""
    if not holds:
        raise Refused(said)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; `arguments` is an object, or the text that a custom tool takes."""

    name: str
    arguments: Json | str

    @property
    def text(self) -> str:
        """The arguments as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer: reasoning, then text, then calls. Each may be absent."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    is_cut: bool = False
    """Whether the connection breaks in the middle of the answer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the request declares it."""

    name: str
    schema: Json = field(default_factory=dict)
    is_custom: bool = False
    """Whether it takes free text instead of an object."""
    namespace: str | None = None

    def call(self, **arguments: Any) -> Call:
        """Call it with named arguments."""
        return Call(self.name, arguments)

    def call_with(self, text: str) -> Call:
        """Call it with free text; a function that stands for a custom tool has one required argument."""
        if self.is_custom:
            return Call(self.name, text)
        (argument,) = self.schema["required"]
        return Call(self.name, {argument: text})


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result, with the name of the tool that was called."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request, read from its dialect."""

    model: str
    stream: bool
    system: str
    """Every system and developer message."""
    texts: tuple[str, ...]
    """What the user wrote."""
    tools: dict[str, Tool]
    results: tuple[Result, ...]
    """The results of all tools called so far, in order."""
    seals: tuple[str, ...] = ()
    """Opaque reasoning of earlier turns that came back: signatures, encrypted content."""
    schema: Json | None = None
    """The JSON schema that the answer must follow."""

    def tool(self, name: str) -> Tool:
        """Find a tool by its name, or by the end of the name, to which a gateway may have put a prefix."""
        found = self.tools.get(name) or next((tool for key, tool in self.tools.items() if key.endswith(name)), None)
        assert found is not None, f"{name} is not among the tools: {sorted(self.tools)}"
        return found

    def offers(self, name: str) -> bool:
        """Tell whether there is such a tool."""
        return any(key.endswith(name) for key in self.tools)


Script = Callable[[Request], Turn]
"""A model: it decides by the request alone, so that requests beside the conversation do not disturb it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on its way out."""

    request: Request
    turn: Turn
    number: int
    """Makes ids unique."""

    @property
    def seal(self) -> str:
        """The opaque form of this turn's reasoning."""
        return f"SEAL+{self.number}/{'x' * 64}=="

    def call_id(self, prefix: str, index: int) -> str:
        """The id of a call of this turn."""
        return f"{prefix}{self.number:04}{index:02}"


def pieces(text: str, size: int = 7) -> Iterator[str]:
    """Split a text as tokens would, blind to words and escapes."""
    return (text[start : start + size] for start in range(0, len(text), size))


def texts_of(content: Any) -> str:
    """Join the texts of a content, which is a text or a list of typed parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if "text" in part)


def check_pairs(calls: list[str], results: list[str]) -> None:
    """Refuse results without a call, and calls without a result."""
    demand(len(set(calls)) == len(calls), f"Duplicate call ids: {calls}")
    demand(set(results) <= set(calls), f"No tool call found for result with call_id {set(results) - set(calls)}.")
    demand(set(calls) <= set(results), f"No tool output found for function call {set(calls) - set(results)}.")
