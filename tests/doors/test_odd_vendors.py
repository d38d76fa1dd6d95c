"""Vendors that send odd things: a client gets the whole answer or knows that it has not, whatever the door."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from doors.door_replies import STREAMS, Unfinished
from doors.neutral import Heard, Json
from doors.speakers import DOORS, VENDORS, relay
from doors.test_replies_survive import ask, check_whole, speak_events
from doors.upstream import ERRORS
from doubles.scripted.turns import Call, Turn

CELLS = [(door, vendor) for door in DOORS for vendor in VENDORS]
NATIVE = {("messages", "anthropic"), ("responses", "responses")}
"""Here the vendor's bytes pass untouched, so that oddities pass too."""
TURN = Turn("Let me look: Grüße 👋", (Call("f", {"a": "ü 👋"}), Call("get_weather", {"city": "Bern"})), "Hm … 🤔")
Events = list[tuple[str, Json]]


def read(events: list[bytes]) -> Events:
    """Return the names and the data of events; the end of chat has no data."""
    found: Events = []
    for event in events:
        lines = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
        data = lines[b"data"].strip()
        found.append((lines.get(b"event", b"").decode().strip(), {} if data == b"[DONE]" else json.loads(data)))
    return found


def write(events: Events) -> list[bytes]:
    written: list[bytes] = []
    for name, data in events:
        head = f"event: {name}\n" if name else ""
        written.append(f"{head}data: {json.dumps(data) if data else '[DONE]'}\n\n".encode())
    return written


def listen(door: str, vendor: str, events: list[bytes]) -> Heard:
    """Return the answer as a strict client hears it."""
    return STREAMS[door](relay(door, vendor, ask(door, vendor, stream=True), events))


# -- changes of a stream, each by dialect


def _calls_of(data: Json) -> list[Json]:
    return [call for choice in data.get("choices", ()) for call in choice["delta"].get("tool_calls", ())]


def hold_chat_arguments(events: Events) -> Iterator[tuple[str, Json]]:
    held: dict[int, str] = {}
    last: Json = {}
    for name, data in events:
        calls = _calls_of(data)
        if data.get("choices") and data["choices"][0]["finish_reason"]:
            for index, arguments in held.items():
                piece = {"index": index, "function": {"arguments": arguments}}
                yield name, {**last, "choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}]}
        for call in calls:
            held[call["index"]] = held.get(call["index"], "") + call["function"].get("arguments", "")
            call["function"].pop("arguments", None)
        if not calls or any("id" in call for call in calls):
            last = {key: value for key, value in data.items() if key != "choices"}
            yield name, data


def hold_responses_arguments(events: Events) -> Iterator[tuple[str, Json]]:
    """The arguments come only in the finished item."""
    return ((name, data) for name, data in events if not name.startswith("response.function_call_arguments"))


def hold_anthropic_arguments(events: Events) -> Iterator[tuple[str, Json]]:
    held: dict[int, str] = {}
    for _, data in events:
        if data["type"] == "content_block_delta" and data["delta"]["type"] == "input_json_delta":
            held[data["index"]] = held.get(data["index"], "") + data["delta"]["partial_json"]
    for name, data in events:
        if data["type"] == "content_block_start" and data["content_block"]["type"] == "tool_use":
            data["content_block"]["input"] = json.loads(held[data["index"]])
        if data.get("delta", {}).get("type") != "input_json_delta":
            yield name, data


def drop(*names: str) -> Callable[[Events], Iterator[tuple[str, Json]]]:
    """Return a change that removes fields, wherever they are."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: clean(one) for name, one in value.items() if name not in names}
        return [clean(one) for one in value] if isinstance(value, list) else value

    return lambda events: ((name, clean(data)) for name, data in events)


def drop_chat_call_ids(events: Events) -> Iterator[tuple[str, Json]]:
    for name, data in events:
        for call in _calls_of(data):
            call.pop("id", None)
        yield name, data


def drop_tool_use_ids(events: Events) -> Iterator[tuple[str, Json]]:
    for name, data in events:
        data.get("content_block", {}).pop("id", None)
        yield name, data


def repeat_first(events: Events) -> Iterator[tuple[str, Json]]:
    return iter([events[0], *events])


def open_gemini_twice(events: Events) -> Iterator[tuple[str, Json]]:
    head = {key: value for key, value in events[0][1].items() if key != "candidates"}
    return iter([("", head), ("", head), *events])


def repeat_end(events: Events) -> Iterator[tuple[str, Json]]:
    return iter([*events, *events[-1:]])


def add_unknown(events: Events) -> Iterator[tuple[str, Json]]:
    for name, data in events:
        yield name, data
        yield ("", {"object": "of.tomorrow"}) if not name else (f"{name}.of.tomorrow", {"type": f"{name}.of.tomorrow"})


WHOLE: dict[str, dict[str, Callable[[Events], Iterator[tuple[str, Json]]]]] = {
    "arguments at the end": {
        "chat": hold_chat_arguments,
        "responses": hold_responses_arguments,
        "anthropic": hold_anthropic_arguments,
    },
    "no usage": {
        "chat": drop("usage"),
        "responses": drop("usage"),
        "anthropic": drop("usage"),
        "gemini": drop("usageMetadata"),
    },
    "two beginnings": {
        "chat": repeat_first,
        "responses": repeat_first,
        "anthropic": repeat_first,
        "gemini": open_gemini_twice,
    },
    "two ends": {"chat": repeat_end, "responses": repeat_end, "anthropic": repeat_end, "gemini": repeat_end},
    "unknown events": {
        "chat": add_unknown,
        "responses": add_unknown,
        "anthropic": add_unknown,
        "gemini": add_unknown,
    },
    "no ids of calls": {"chat": drop_chat_call_ids, "responses": drop("call_id"), "anthropic": drop_tool_use_ids},
    "no ids at all": {
        "chat": drop("id", "model", "object", "created"),
        "responses": drop("id", "item_id", "call_id"),
        "anthropic": drop("id"),
        "gemini": drop("responseId", "modelVersion"),
    },
}
"""Oddities that lose nothing of the answer."""


@pytest.mark.parametrize(("door", "vendor"), CELLS)
@pytest.mark.parametrize("oddity", WHOLE)
def test_an_oddity_costs_nothing_or_is_an_error(oddity: str, door: str, vendor: str) -> None:
    change = WHOLE[oddity].get(vendor)
    if change is None:
        pytest.skip("this dialect has no such oddity")
    events = write(list(change(read(speak_events(vendor, TURN)))))
    if (door, vendor) in NATIVE:
        passed = relay(door, vendor, ask(door, vendor, stream=True), events)
        assert passed in (b"".join(events), b"".join(events[:-1]))  # nothing passes after the end
        return
    try:
        heard = listen(door, vendor, events)
    except Unfinished:
        assert oddity.startswith("no ids"), "it could have been read"
        return
    check_whole(heard, TURN)
    assert heard.output_tokens > 0


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_an_error_or_an_end_after_any_event(door: str, vendor: str) -> None:
    events = speak_events(vendor, TURN)
    heard: list[str] = []
    for place in range(len(events)):
        for broken in ([*events[:place], ERRORS[vendor], *events[place:]], events[:place]):
            try:
                check_whole(listen(door, vendor, broken), TURN)
                heard.append(f"whole after {place} of {len(events)}")
            except Unfinished:
                heard.append("")
    # At the very end nothing may be missing but usage and the mark of the end.
    assert not any(heard[: 2 * (len(events) - 2)]), heard


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_arguments_that_end_in_the_middle(door: str, vendor: str) -> None:
    if vendor == "gemini":
        pytest.skip("its arguments are a part of the event's JSON")
    turn = Turn("", (Call("f", '{"city": "Bern'),))
    events = speak_events(vendor, turn) if vendor != "anthropic" else list(_break_tool_use())
    with pytest.raises((Unfinished, ValueError)):
        listen(door, vendor, events)


def _break_tool_use() -> Iterator[bytes]:
    for name, data in read(speak_events("anthropic", Turn("", (Call("f", {"city": "Bern"}),)))):
        delta = data.get("delta", {})
        if delta.get("type") == "input_json_delta" and "}" in delta["partial_json"]:
            continue
        yield from write([(name, data)])
