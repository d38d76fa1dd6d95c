"""Requests from any door to any vendor: nothing that both can express is lost, and the rest is reported."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from doors.conversations import conversations
from doors.door_requests import WRITERS
from doors.neutral import Conversation, Picture, Result, Text, Thought, said, without_thoughts
from doors.speakers import DOORS, VENDORS, send
from doors.vendor_requests import READERS
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.errors import InvalidRequest

CELLS = [(door, vendor) for door in DOORS for vendor in VENDORS]
REPORTED = {
    "stop": {"stop", "stop_sequences"},
    "user": {"user", "metadata", "metadata.user_id", "safety_identifier"},
    "temperature": {"temperature"},
    "top_p": {"top_p"},
    "one_call": {"parallel_tool_calls"},
}
"""Names under which a setting that is lost must be reported."""
THOUGHTS = {"reasoning", "thinking"}
POINTER = re.compile(r"\(shown in the next message\)|The result of the tool call .*:")
"""Words that say where the pictures of a result are."""


def check(door: str, vendor: str, conversation: Conversation) -> None:
    """Check what the vendor gets of a conversation."""
    if door == "responses":
        conversation = replace(conversation, stop=())  # it has no such field
    body = WRITERS[door](conversation)
    if is_refused(door, vendor, conversation):
        with pytest.raises(InvalidRequest):
            send(door, vendor, body)
        return
    sent = send(door, vendor, body)
    left_out = set(sent.left_out)
    got = READERS[vendor](sent.body)
    if sent.request is not sent.ask:
        conversation = move_pictures(conversation)
    if left_out & THOUGHTS:
        assert has_thoughts(conversation), "reported, although there is no such thing"
        conversation, got = without_thoughts(conversation), without_thoughts(got)
    blank = vendor != "anthropic"  # it refuses texts of white space
    assert tell(got, vendor, blank=blank) == tell(conversation, vendor, blank=blank), sent
    assert (got.system, got.schema, got.max_tokens) == (
        conversation.system,
        conversation.schema,
        conversation.max_tokens,
    )
    check_tools(conversation, got)
    for name, reported in REPORTED.items():
        given, found = (getattr(one, name) for one in (conversation, got))
        if given != found and not is_idle(vendor, name, conversation):
            assert left_out & reported, f"{name}: {given} became {found}: {left_out}"


def tell(conversation: Conversation, vendor: str, *, blank: bool) -> list[Any]:
    """Return what was said; to Gemini, the seals of other models' calls are of no account."""
    messages = [replace(message, parts=tuple(_drop_dummies(message.parts))) for message in conversation.messages]
    told = said(replace(conversation, messages=tuple(messages)), blank=blank)
    return told if vendor != "gemini" else [_join_results(one) for one in told]


def _drop_dummies(parts: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the parts without those that a translation added."""
    for part in parts:
        match part:
            case Thought(seal="skip_thought_signature_validator"):
                pass
            case Text(text=text) if POINTER.fullmatch(text):
                pass
            case Result():
                yield replace(part, parts=tuple(_drop_dummies(part.parts)))
            case _:
                yield part


def _join_results(told: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a result as Gemini sees it: text is an object, or in one."""
    if told[0] != "result":
        return told
    text = "\n".join(part[2] for part in told[3:])
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return (*told[:3], found if isinstance(found, dict) else text)


def check_tools(conversation: Conversation, got: Conversation) -> None:
    assert got.tools == conversation.tools
    assert (got.choice or "auto") == (conversation.choice or "auto")
    assert (got.effort or "") == (conversation.effort or "")


def is_idle(vendor: str, name: str, conversation: Conversation) -> bool:
    """Return whether a setting needs no word in the request."""
    if name == "one_call":
        return vendor == "gemini" or conversation.choice == "none"  # further calls are cut from Gemini's reply
    return (name, getattr(conversation, name)) == ("top_p", 1)


def has_thoughts(conversation: Conversation) -> bool:
    return any(isinstance(part, Thought) for message in conversation.messages for part in message.parts)


def is_refused(door: str, vendor: str, conversation: Conversation) -> bool:
    """Return whether a conversation asks for something that the vendor cannot do."""
    if vendor == "responses":
        return bool(conversation.stop)
    return (door, vendor) == ("chat", "gemini") and has_pictures_in_results(conversation)


def has_pictures_in_results(conversation: Conversation) -> bool:
    results = [part for message in conversation.messages for part in message.parts if isinstance(part, Result)]
    return any(isinstance(part, Picture) for result in results for part in result.parts)


def move_pictures(conversation: Conversation) -> Conversation:
    """Return the conversation with pictures of results after all results of their turn: chat takes them only there."""

    def move(part: Any) -> Any:
        is_result = isinstance(part, Result)
        return replace(part, parts=tuple(one for one in part.parts if isinstance(one, Text))) if is_result else part

    messages = []
    for message in conversation.messages:
        results = [part for part in message.parts if isinstance(part, Result)]
        pictures = [one for result in results for one in result.parts if isinstance(one, Picture)]
        rest = [part for part in message.parts if not isinstance(part, Result)]
        messages.append(replace(message, parts=(*map(move, results), *pictures, *rest)))
    return replace(conversation, messages=tuple(messages))


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_conversations(door: str, vendor: str) -> None:
    @settings(max_examples=15)
    @given(conversations())
    def run(conversation: Conversation) -> None:
        check(door, vendor, conversation)

    run()


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_conversations_with_reasoning_and_pictures_in_results(door: str, vendor: str) -> None:
    @settings(max_examples=15)
    @given(conversations(thoughts=True, picture_results=True))
    def run(conversation: Conversation) -> None:
        check(door, vendor, conversation)

    run()


@pytest.mark.long
@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_many_conversations(door: str, vendor: str) -> None:
    @settings(max_examples=500)
    @given(some.booleans().flatmap(lambda more: conversations(thoughts=more, picture_results=more)))
    def run(conversation: Conversation) -> None:
        check(door, vendor, conversation)

    run()
