"""Hypothesis strategies of conversations: odd letters, empty parts, pictures, parallel tools, reasoning."""

import base64
from typing import Any

from doors.neutral import Call, Conversation, Message, Part, Picture, Result, Text, Thought, Tool
from hypothesis import strategies as some

letters = some.characters(exclude_categories=("Cs",))
texts = some.text(letters, max_size=12) | some.sampled_from(
    [
        "",
        " ",
        "\n",
        "Hi",
        "a😀b",
        "é\u2028\u2029\n",
        "\x00\x7f",
        "data: x\n\n",
        "</s>",
        "\ufeff",
        '{"a": 1}',
        "null",
        "[]",
    ]
)
words = some.text(letters, min_size=1, max_size=12).filter(str.strip)
names = some.sampled_from(["get_weather", "look-up", "f", "Read_2"])
ids = some.sampled_from(
    ["call_1", "toolu_01", "functions.f:0", "f_0", "f.0", "f:0", "x" * 40, "call-é", "chatcmpl-tool-1"]
)
values: Any = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**70), 2**70) | some.floats(-1e9, 1e9) | texts,
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
arguments = some.dictionaries(texts, values, max_size=3)
pictures = some.builds(
    Picture,
    some.binary(min_size=1, max_size=8).map(lambda data: base64.b64encode(data).decode()),
    some.sampled_from(["image/png", "image/jpeg", "image/gif", "image/webp"]),
) | some.sampled_from([Picture(url="https://example.com/a.png"), Picture(url="http://example.com/b?c=d")])
said_parts = some.lists(texts.map(Text) | pictures, max_size=3)
SCHEMA: Any = {
    "type": "object",
    "properties": {"ä": {"type": "string"}},
    "required": ["ä"],
    "additionalProperties": False,
}
TOOLS = tuple(Tool(name, f"Do {name} 👋", SCHEMA) for name in ("get_weather", "look-up", "f", "Read_2"))


@some.composite
def turns(draw: some.DrawFn, *, thoughts: bool, picture_results: bool) -> list[Message]:
    """Return an assistant's turn and the user's next one, with a result for every call."""
    parts: list[Part] = []
    if thoughts and draw(some.booleans()):
        parts.append(Thought(draw(words)))
    parts += [Text(text) for text in draw(some.lists(texts, max_size=2))]
    called = [Call(call_id, draw(names), draw(arguments)) for call_id in draw(some.lists(ids, max_size=3, unique=True))]
    shown = some.lists(pictures, max_size=2) if picture_results else some.just([])
    told = some.lists(texts.map(Text), max_size=1)  # dialects differ in how they join several
    results = [Result(call.id, (*draw(told), *draw(shown))) for call in called]
    answer = [*draw(some.permutations(results)), *draw(said_parts), Text(draw(words))]
    return [Message("assistant", (*parts, *called)), Message("user", tuple(answer))]


@some.composite
def conversations(draw: some.DrawFn, *, thoughts: bool = False, picture_results: bool = False) -> Conversation:
    """Return a conversation that begins and ends with the user. Ids of calls are unique in a turn."""
    messages = [Message("user", (*draw(said_parts), Text(draw(words))))]
    used: set[str] = set()
    for turn in draw(some.lists(turns(thoughts=thoughts, picture_results=picture_results), max_size=2)):
        found = {part.id for part in turn[0].parts if isinstance(part, Call)}
        if not found & used and (turn[0].parts or not used):
            used |= found
            messages += turn
    tools = TOOLS if used or draw(some.booleans()) else ()
    return Conversation(
        messages=tuple(messages),
        system=draw(some.just("") | words),
        tools=tools,
        choice=draw(some.sampled_from([None, "auto", "none", "required", "f"])) if tools else None,
        one_call=bool(tools) and draw(some.booleans()),
        schema=draw(some.none() | some.just(SCHEMA)),
        effort=draw(some.sampled_from([None, "low", "medium", "high"])),
        max_tokens=draw(some.integers(1, 10**6)),
        temperature=draw(some.none() | some.sampled_from([0, 0.5, 1, 1.5, 2])),
        top_p=draw(some.none() | some.sampled_from([0.1, 0.9, 1])),
        stop=tuple(draw(some.lists(words | some.just("\n\n"), max_size=2))),
        user=draw(some.none() | some.just("user-1")),
    )
