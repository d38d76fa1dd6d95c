"""Tool calls in streams and whole replies: told apart, each with its id and name once, and arguments as text."""

import json
from typing import Any

import pytest
from chat_chunks import DONE, Json, choice_of, chunk_of, make_ask, make_stream, read_whole, run, write
from openai.lib.streaming._deltas import accumulate_delta

from penstock.chat.replies.broken import Malformed
from penstock.chat.replies.chunks.completion import pass_whole
from penstock.chat.replies.chunks.tool_calls import MAX_CALLS

END = chunk_of(choice_of({}, "tool_calls"))
WEATHER = '{"city":"Paris"}'
TIME = '{"zone":"CET"}'
Call = tuple[str, str, str]


def call(name: str | None = None, arguments: Any = None, **more: Any) -> Json:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


def begin(number: int, name: str, arguments: Any = "", **more: Any) -> Json:
    return call(name, arguments, **{"index": number, "id": f"call_{number + 1}", "type": "function", **more})


ONE = [("call_1", "weather", WEATHER)]
TWO = [("call_1", "weather", WEATHER), ("call_2", "time", TIME)]
ODD: dict[str, tuple[list[list[Json]], list[Call]]] = {
    "as it should be": (
        [[begin(0, "weather")], [call(arguments='{"city":', index=0)], [call(arguments='"Paris"}', index=0)]],
        ONE,
    ),
    "two, as it should be": (
        [
            [begin(0, "weather")],
            [call(arguments=WEATHER, index=0)],
            [begin(1, "time")],
            [call(arguments=TIME, index=1)],
        ],
        TWO,
    ),
    "two in one event": ([[begin(0, "weather", WEATHER), begin(1, "time", TIME)]], TWO),
    "arguments are an object": ([[begin(0, "weather", {"city": "Paris"})]], ONE),
    "arguments are an object, of two": (
        [[begin(0, "weather", {"city": "Paris"})], [begin(1, "time", {"zone": "CET"})]],
        TWO,
    ),
    "arguments are null": (
        [[{**begin(0, "weather"), "function": {"name": "weather", "arguments": None}}], [call(None, WEATHER, index=0)]],
        ONE,
    ),
    "arguments are missing": (
        [[{**begin(0, "weather"), "function": {"name": "weather"}}], [call(None, WEATHER, index=0)]],
        ONE,
    ),
    "no index": ([[call("weather", WEATHER, id="call_1", type="function")]], ONE),
    "no index, in pieces": (
        [[call("weather", "", id="call_1", type="function")], [call(None, '{"city":')], [call(None, '"Paris"}')]],
        ONE,
    ),
    "no index, two events": (
        [[call("weather", WEATHER, id="call_1")], [call("time", TIME, id="call_2")]],
        TWO,
    ),
    "no index, two in one event": ([[call("weather", WEATHER, id="call_1"), call("time", TIME, id="call_2")]], TWO),
    "no index, the id on every delta": (
        [
            [call("weather", '{"city":', id="call_1")],
            [call("time", "", id="call_2")],
            [call(None, '"Paris"}', id="call_1")],
            [call(None, TIME, id="call_2")],
        ],
        TWO,
    ),
    "the index is a text": (
        [[begin(0, "weather", "", index="0")], [call(None, WEATHER, index="0")], [begin(1, "time", TIME, index="1")]],
        TWO,
    ),
    "one index for all": ([[begin(0, "weather", WEATHER)], [begin(1, "time", TIME, index=0)]], TWO),
    "one index for all, in pieces": (
        [
            [begin(0, "weather")],
            [call(None, WEATHER, index=0)],
            [begin(1, "time", "", index=0)],
            [call(None, TIME, index=0)],
        ],
        TWO,
    ),
    "indexes begin at 1": (
        [[begin(0, "weather", "", index=1)], [call(None, WEATHER, index=1)], [begin(1, "time", TIME, index=2)]],
        TWO,
    ),
    "indexes have gaps": ([[begin(0, "weather", WEATHER)], [begin(1, "time", TIME, index=7)]], TWO),
    "the id on every delta": (
        [[begin(0, "weather")], [call(None, WEATHER, index=0, id="call_1", type="function")]],
        ONE,
    ),
    "the name on every delta": (
        [[begin(0, "weather")], [call("weather", '{"city":', index=0)], [call("weather", '"Paris"}', index=0)]],
        ONE,
    ),
    "all on every delta": ([[begin(0, "weather", '{"city":')], [begin(0, "weather", '"Paris"}')]], ONE),
    "the name in pieces": (
        [[begin(0, "wea")], [call("ther", "", index=0)], [call(None, WEATHER, index=0)]],
        ONE,
    ),
    "no type": ([[call("weather", WEATHER, index=0, id="call_1")]], ONE),
    "an id that is a number": ([[begin(0, "weather", WEATHER, id=17)]], [("17", "weather", WEATHER)]),
    "empty ids and names later on": (
        [[begin(0, "weather")], [call("", WEATHER, index=0, id="")]],
        ONE,
    ),
    "the id comes late": (
        [[call("weather", "", index=0, type="function")], [call(None, WEATHER, index=0, id="call_1")]],
        [("call_chatcmpl-ours_0_0", "weather", WEATHER)],
    ),
    "no id": (
        [[call("weather", WEATHER, index=0)], [call("time", TIME, index=1)]],
        [("call_chatcmpl-ours_0_0", "weather", WEATHER), ("call_chatcmpl-ours_0_1", "time", TIME)],
    ),
    "neither id nor index, objects": (
        [[call("weather", {"city": "Paris"})], [call("weather", {"city": "Rome"})]],
        [
            ("call_chatcmpl-ours_0_0", "weather", WEATHER),
            ("call_chatcmpl-ours_0_1", "weather", '{"city":"Rome"}'),
        ],
    ),
    "neither id nor index, in pieces": (
        [[call("weather", "")], [call("weather", '{"city":')], [call("weather", '"Paris"}')], [call("time", TIME)]],
        [("call_chatcmpl-ours_0_0", "weather", WEATHER), ("call_chatcmpl-ours_0_1", "time", TIME)],
    ),
}


def reassemble(chunks: list[Json]) -> list[Call]:
    """Put the calls together as the official Python SDK does."""
    message: dict[object, object] = {}
    for chunk in chunks:
        message = accumulate_delta(message, chunk["choices"][0]["delta"])
    calls: Any = message.get("tool_calls", [])
    assert [found["type"] for found in calls] == ["function"] * len(calls)
    return [(found["id"], found["function"]["name"], found["function"]["arguments"]) for found in calls]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("has_head", [True, False])
def test_calls_of_a_stream(kind, has_head):
    events, expected = ODD[kind]
    chunks = [chunk_of(choice_of({"tool_calls": calls})) for calls in json.loads(json.dumps(events))]
    if not has_head:
        chunks = [{"choices": chunk["choices"]} for chunk in chunks]
    stream = make_stream()
    out = run(stream, write(*chunks, END) + DONE)
    assert reassemble(read_whole(out)) == expected
    assert (stream.malformed, stream.broken) == (0, None)
    assert stream.characters == sum(len(arguments) for _, _, arguments in expected)
    if kind.endswith("as it should be") and has_head:
        assert out == write(*chunks, END) + DONE, "good chunks pass as they are"


def test_calls_of_several_choices_are_kept_apart():
    chunks = [
        chunk_of(choice_of({"tool_calls": [call("weather", "", id="call_1")]}, index=1)),
        chunk_of(choice_of({"tool_calls": [call("time", "", id="call_2")]}, index=0)),
        chunk_of(choice_of({"tool_calls": [call(None, WEATHER)]}, index=1)),
        chunk_of(choice_of({"tool_calls": [call(None, TIME)]}, index=0)),
        chunk_of(choice_of({}, "tool_calls", 0), choice_of({}, "tool_calls", 1)),
    ]
    found = read_whole(run(make_stream(), write(*chunks) + DONE))
    assert reassemble([found[0], found[2]]) == [("call_1", "weather", WEATHER)]
    assert reassemble([found[1], found[3]]) == [("call_2", "time", TIME)]


def test_calls_without_end_are_given_up():
    stream = make_stream()
    out = run(stream, b"".join(write(chunk_of(choice_of({"tool_calls": [call("f", "{}", id=str(number))]})))
                               for number in range(MAX_CALLS + 5)))  # fmt: skip
    assert out.count(b"data: ") == MAX_CALLS
    assert isinstance(stream.broken, Malformed)


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([{"name": "weather", "arguments": ""}, {"arguments": WEATHER}], ("weather", WEATHER)),
        ([{"name": "weather", "arguments": {"city": "Paris"}}], ("weather", WEATHER)),
        ([{"name": "weather", "arguments": None}, {"name": "weather", "arguments": WEATHER}], ("weather", WEATHER)),
        ([{"name": "weather", "arguments": ""}, {"name": "weather", "arguments": WEATHER}], ("weather", WEATHER)),
    ],
)
def test_the_legacy_function_call_of_a_stream(deltas, expected):
    chunks = [chunk_of(choice_of({"function_call": delta})) for delta in deltas]
    stream = make_stream()
    message: Any = {}
    for chunk in read_whole(run(stream, write(*chunks, chunk_of(choice_of({}, "function_call"))) + DONE)):
        message = accumulate_delta(message, chunk["choices"][0]["delta"])
    assert (message["function_call"]["name"], message["function_call"]["arguments"]) == expected
    assert stream.characters == len(WEATHER)


# -- whole replies


def whole_of(message: Json) -> bytes:
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "upstream", "choices": [choice]}
    return json.dumps(reply).encode()


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([begin(0, "weather", WEATHER), begin(1, "time", TIME)], TWO),
        ([begin(0, "weather", {"city": "Paris"})], ONE),
        ([call("weather", WEATHER, id="call_1")], ONE),
        ([call("weather", WEATHER, type="function")], [("call_chatcmpl-ours_0_0", "weather", WEATHER)]),
        ([call("weather", WEATHER, id="", type="function")], [("call_chatcmpl-ours_0_0", "weather", WEATHER)]),
        ([{**begin(0, "weather"), "function": {"name": "weather", "arguments": None}}], [("call_1", "weather", "{}")]),
        ([{**begin(0, "weather"), "function": {"name": "weather"}}], [("call_1", "weather", "{}")]),
    ],
)
def test_calls_of_a_whole_reply(calls, expected):
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}
    body, _, characters = pass_whole(whole_of(message), make_ask(), "chatcmpl-ours", 1234)
    found = json.loads(body)["choices"][0]["message"]["tool_calls"]
    assert [one["type"] for one in found] == ["function"] * len(expected)
    assert [(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in found] == expected
    assert characters == sum(len(arguments) for _, _, arguments in expected)


def test_the_legacy_function_call_of_a_whole_reply():
    called = {"name": "weather", "arguments": {"city": "Paris"}}
    message = {"role": "assistant", "content": None, "refusal": None, "function_call": called}
    body, _, _ = pass_whole(whole_of(message), make_ask(), "chatcmpl-ours", 1234)
    found = json.loads(body)["choices"][0]["message"]["function_call"]
    assert found == {"name": "weather", "arguments": WEATHER}


@pytest.mark.parametrize("calls", ["f()", [5], {"0": {}}, [{"function": "f"}]])
def test_calls_that_nobody_understands(calls):
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}
    with pytest.raises(Malformed):
        pass_whole(whole_of(message), make_ask(), "chatcmpl-ours", 1234)
