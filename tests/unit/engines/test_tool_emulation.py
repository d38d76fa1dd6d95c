"""Tools for a model that knows none: what it is asked, and what its JSON is taken for."""

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import jsonschema
import msgspec
import pytest
from chat_samples import Json, anything, likely, make_ask, openai_chunk, openai_completion
from hypothesis import given
from hypothesis import strategies as some

from penstock.domain.chat import (
    Arguments,
    Blame,
    End,
    Fault,
    Finish,
    Opening,
    Part,
    Reason,
    Text,
    ToolCall,
    Usage,
    Used,
)
from penstock.errors import InvalidRequest
from penstock_engines.vendors.tool_emulation import Emulation, emulate_tools, plain_turns, read_stops, wants_tools


def tool(name: str = "look_up", **fields: Any) -> Json:
    return {"type": "function", "function": {"name": name, **fields}}


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def shape_of(**fields: Any) -> Json:
    """The schema to which the model is held."""
    response_format = emulate_tools(make_ask(**fields))["response_format"]
    assert response_format["type"] == "json_schema"
    schema = response_format["json_schema"]["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def fits(schema: Json, said: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(said)


def call(name: str, arguments: Any) -> Json:
    return {"tool": name, "arguments": arguments}


# -- the shape


def test_the_model_may_call_any_tool_or_answer():
    schema = shape_of(tools=[tool(parameters=CITY), tool("roll")])
    assert fits(schema, call("look_up", {"city": "Rome"}))
    assert fits(schema, call("roll", {}))
    assert fits(schema, {"answer": "Hello"})
    for wrong in (
        call("look_up", {}),
        call("nobody", {}),
        {"tool": "look_up"},
        {"answer": ""},
        {"answer": {"a": 1}},
        {},
        "Hello",
    ):
        assert not fits(schema, wrong), wrong


@pytest.mark.parametrize(
    ("choice", "names", "may_answer"),
    [
        (None, ["one", "two"], True),
        ("auto", ["one", "two"], True),
        ("required", ["one", "two"], False),
        ({"type": "function", "function": {"name": "two"}}, ["two"], False),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool("one")]}}, ["one"], True),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [tool("two")]}}, ["two"], False),
    ],
    ids=str,
)
def test_who_chooses_the_tool(choice, names, may_answer):
    fields = emulate_tools(make_ask(tools=[tool("one"), tool("two")], tool_choice=choice))
    schema = fields["response_format"]["json_schema"]["schema"]
    assert [name for name in ("one", "two") if fits(schema, call(name, {}))] == names
    assert fits(schema, {"answer": "Hello"}) is may_answer
    explained = fields["messages"][0]["content"]
    assert [name for name in ("one", "two") if f"- {name}: " in explained] == names
    assert ('"answer"' in explained) is may_answer


def test_no_tools_are_wanted_where_there_are_none_or_none_may_be_called():
    assert wants_tools(make_ask(tools=[tool()]))
    assert wants_tools(make_ask(tools=[tool()], tool_choice="required"))
    assert not wants_tools(make_ask(tools=[tool()], tool_choice="none"))
    assert not wants_tools(make_ask(tools=[]))
    assert not wants_tools(make_ask(tools=None))
    assert not wants_tools(make_ask())


def named(value: str) -> Json:
    """A schema whose definition, although always called the same, is another one each time."""
    return {
        "type": "object",
        "properties": {"item": {"$ref": "#/$defs/Item"}, "old": {"$ref": "#/definitions/Item"}},
        "required": ["item"],
        "additionalProperties": False,
        "$defs": {"Item": {"const": value}},
        "definitions": {"Item": {"const": f"old {value}"}},
    }


def test_references_stay_within_their_own_schema():
    wish = {"type": "json_schema", "json_schema": {"name": "n", "schema": named("answer")}}
    schema = shape_of(tools=[tool("a", parameters=named("a")), tool("b", parameters=named("b"))], response_format=wish)
    for value, said in (("a", call("a", {})), ("b", call("b", {})), ("answer", {"answer": {}})):
        said[list(said)[-1]] = {"item": value, "old": f"old {value}"}
        assert fits(schema, said)
        said[list(said)[-1]] = {"item": "another"}
        assert not fits(schema, said)


def test_a_schema_may_refer_to_its_own_root():
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": False}
    schema = shape_of(tools=[tool("plant", parameters=tree)], tool_choice="required")
    assert fits(schema, call("plant", {"child": {"child": {}}}))
    assert not fits(schema, call("plant", {"child": {"tool": "plant"}}))


@pytest.mark.parametrize(
    ("response_format", "good", "bad"),
    [
        ({"type": "text"}, "Hello", {}),
        ({"type": "json_object"}, {"any": 1}, "Hello"),
        ({"type": "json_schema", "json_schema": {"name": "n", "schema": CITY}}, {"city": "Rome"}, {}),
    ],
    ids=str,
)
def test_an_answer_has_the_form_that_was_asked_for(response_format, good, bad):
    schema = shape_of(tools=[tool()], response_format=response_format)
    assert fits(schema, {"answer": good})
    assert not fits(schema, {"answer": bad})
    assert fits(schema, call("look_up", {}))


# -- the messages


def test_tools_are_explained_before_everything_else():
    turns = emulate_tools(make_ask(tools=[tool(description="Finds a city.", parameters=CITY)]))["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user"]
    for word in ("look_up", "Finds a city.", json.dumps(CITY, separators=(",", ":"))):
        assert word in turns[0]["content"]


def test_a_conversation_with_tools_becomes_one_without():
    calls = [
        {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Rome"}'}},
        {"id": "2", "type": "function", "function": {"name": "roll", "arguments": ""}},
        {"id": "3", "type": "function", "function": {"name": "roll", "arguments": "{cut"}},
    ]
    messages = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "Ro"}, {"type": "text", "text": "me?"}]},
        {"role": "assistant", "content": "I look.", "tool_calls": calls, "refusal": None, "annotations": []},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "sunny"}]},
        {"role": "tool", "tool_call_id": "2", "content": "6"},
        {"role": "tool", "tool_call_id": "unheard", "content": None},
        {"role": "function", "name": "older", "content": "7"},
        {"role": "assistant", "content": None, "refusal": "No.", "tool_calls": []},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "Never."}]},
    ]
    assert plain_turns(make_ask(messages=messages)) == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Rome?"},
        {
            "role": "assistant",
            "content": 'I look.\n{"tool":"look_up","arguments":{"city":"Rome"}}\n{"tool":"roll","arguments":{}}\n'
            '{"tool":"roll","arguments":"{cut"}',
        },
        {"role": "user", "content": "Result of look_up: sunny"},
        {"role": "user", "content": "Result of roll: 6"},
        {"role": "user", "content": "Result of the tool: "},
        {"role": "user", "content": "Result of older: 7"},
        {"role": "assistant", "content": "No."},
        {"role": "assistant", "content": "Never."},
    ]


def test_roles_alternate_below_one_system_message():
    messages = [
        {"role": "developer", "content": "Be short."},
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": "Wait."},
        {"role": "tool", "content": "sunny"},
        {"role": "tool", "content": "warm"},
    ]
    turns = emulate_tools(make_ask(tools=[tool()], messages=messages))["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert turns[0]["content"].endswith("\n\nBe short.")
    assert turns[3]["content"] == "Result of the tool: sunny\n\nResult of the tool: warm"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"tools": ["x"]}, "tools[0]"),
        ({"tools": [tool(), {"type": "custom", "custom": {"name": "x"}}]}, "tools[1]"),
        ({"tools": [{"type": "function", "function": {"name": 7}}]}, "tools[0]"),
        ({"tools": [tool("")]}, "tools[0]"),
        ({"tools": [tool(parameters=5)]}, "tools[0].function.parameters"),
        ({"tools": [tool(parameters=["x"])]}, "tools[0].function.parameters"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": ["auto"]}, "tool_choice"),
        ({"tool_choice": {}}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice"),
        ({"tool_choice": tool("nobody")}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, "tool_choice"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "system", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": 5}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [5]}]}, "messages[0].tool_calls[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]},
            "messages[0].tool_calls[0]",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_by_name(fields, param):
    with pytest.raises(InvalidRequest) as refusal:
        emulate_tools(make_ask(**{"tools": [tool()], **fields}))
    assert refusal.value.param == param
    assert param in refusal.value.message
    assert refusal.value.code


turns = some.fixed_dictionaries(
    {"role": some.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])},
    optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "name", "refusal"), likely),
)
functions = some.fixed_dictionaries(
    {"name": some.text(max_size=3)}, optional=dict.fromkeys(("description", "parameters"), likely)
).map(lambda function: {"type": "function", "function": function})


@given(
    tools=some.lists(functions | likely, min_size=1, max_size=3),
    messages=some.lists(turns, min_size=1, max_size=4),
    fields=some.dictionaries(some.sampled_from(["tool_choice", "response_format", "stop"]), likely | anything),
)
def test_anything_is_emulated_or_refused_with_a_reason(tools, messages, fields):
    try:
        ask = make_ask(tools=tools, messages=messages, **fields)
    except InvalidRequest:
        return
    try:
        made = emulate_tools(ask)
    except InvalidRequest as error:
        told = error
    else:
        check_emulated(made)
        assert all(read_stops(ask))
        return
    assert told.param
    assert told.code


def check_emulated(made: Json) -> None:
    msgspec.json.encode(made)
    assert all(turn.keys() == {"role", "content"} for turn in made["messages"])
    assert {turn["role"] for turn in made["messages"]} <= {"system", "user", "assistant"}
    assert all(isinstance(turn["content"], str) for turn in made["messages"])


# -- the reply


def read_whole(content: str, finish: str = "stop", stops: tuple[str, ...] = ()) -> list[Part]:
    reply = openai_completion(content)
    reply["choices"][0]["finish_reason"] = finish
    return list(Emulation(stops).whole(json.dumps(reply).encode()))


def read_stream(pieces: Iterable[str], finish: str = "stop", stops: tuple[str, ...] = ()) -> list[Part]:
    usage = openai_completion("")["usage"]
    chunks = [
        openai_chunk({"role": "assistant", "content": None}),
        *(openai_chunk({"content": piece}) for piece in pieces),
        openai_chunk({}, finish),
        {**openai_chunk({}), "choices": [], "usage": usage},
    ]
    emulation = Emulation(stops)
    events = [*(json.dumps(chunk).encode() for chunk in chunks), b"[DONE]"]
    return [part for event in events for part in emulation.event("", event)]


def plain(parts: Iterable[Part]) -> list[Part]:
    """The parts without what is new each time."""
    return [ToolCall("", part.name) if isinstance(part, ToolCall) else part for part in parts]


OPENING, USED = Opening("c-1", "m"), Used(Usage(5, 2))
CALLED = [ToolCall("", "f"), Arguments('{"a":1}'), Finish(Reason.TOOL_CALLS)]


@pytest.mark.parametrize(
    ("content", "finish", "parts"),
    [
        ('{"tool": "f", "arguments": {"a": 1}}', "stop", CALLED),
        ('{"answer": "Hi \\u00e9\\n"}', "stop", [Text("Hi é\n"), Finish(Reason.STOP)]),
        ('{"answer": {"a": [1]}}', "stop", [Text('{"a":[1]}'), Finish(Reason.STOP)]),
        ('{ "answer" : "Hi th', "length", [Text("Hi th"), Finish(Reason.LENGTH)]),
        ('{"answer": "Hi \\u00', "length", [Text("Hi "), Finish(Reason.LENGTH)]),
        ('{"answer": "Hi \\', "length", [Text("Hi "), Finish(Reason.LENGTH)]),
        ('{"answer": "Hi"', "length", [Text("Hi"), Finish(Reason.LENGTH)]),
        ('{"answer": {"a": ', "length", [Text('{"a": '), Finish(Reason.LENGTH)]),
        ('{"answer": ', "length", [Text(""), Finish(Reason.LENGTH)]),
        ('{"tool": "f", "argum', "length", [Text('{"tool": "f", "argum'), Finish(Reason.LENGTH)]),
        ('{"tool": "f"}', "stop", [Text('{"tool": "f"}'), Finish(Reason.STOP)]),
        ("no JSON", "stop", [Text("no JSON"), Finish(Reason.STOP)]),
        ('"tool"', "stop", [Text('"tool"'), Finish(Reason.STOP)]),
        ("[1]", "content_filter", [Text("[1]"), Finish(Reason.FILTER)]),
        ("", "stop", [Text(""), Finish(Reason.STOP)]),
    ],
)
def test_what_the_model_wrote_is_a_call_an_answer_or_itself(content, finish, parts):
    assert plain(read_whole(content, finish)) == [OPENING, *parts, USED, End()]
    assert plain(read_stream(content, finish)) == [OPENING, *parts, USED, End()]


texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=12)
replies = some.one_of(
    some.builds(lambda answer: json.dumps({"answer": answer}), texts | anything),
    some.builds(lambda name, arguments: json.dumps(call(name, arguments)), texts, anything),
    texts,
    anything.map(json.dumps),
)


@given(text=replies, cut=some.integers(0, 200), places=some.lists(some.integers(0, 200), max_size=4))
def test_streamed_in_any_pieces_it_is_the_same_as_whole(text, cut, places):
    content, finish = (text, "stop") if cut >= len(text) else (text[:cut], "length")
    ends = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    pieces = [content[start:end] for start, end in pairwise(ends)]
    whole = plain(read_whole(content, finish))
    assert plain(read_stream(pieces, finish)) == whole
    assert [type(part) for part in whole].count(Finish) == 1


@given(answer=texts, cut=some.integers(0, 100))
def test_a_cut_answer_is_the_beginning_of_the_whole_one(answer, cut):
    written = json.dumps({"answer": answer}, ensure_ascii=False)
    told = next(part.text for part in read_whole(written[:cut], "length") if isinstance(part, Text))
    assert answer.startswith(told) or written.startswith(told)
    if cut > len('{"answer": "'):
        assert answer.startswith(told)


def test_stops_end_the_answer_and_not_the_json_around_it():
    ask = make_ask(tools=[tool()], stop=["}", "", "END"])
    stops = tuple(read_stops(ask))
    assert stops == ("}", "END")
    assert read_stops(make_ask(stop="x")) == ["x"]
    assert read_stops(make_ask()) == []
    assert Text("a ") in read_whole('{"answer": "a END } b"}', stops=stops)
    assert plain(read_whole('{"tool": "f", "arguments": {"a": 1}}', stops=stops))[1:4] == CALLED


def test_calls_have_ids_of_their_own():
    content = '{"tool": "f", "arguments": {}}'
    first, second = (next(part.id for part in read_whole(content) if isinstance(part, ToolCall)) for _ in range(2))
    assert first != second


def test_an_error_in_the_middle_is_told():
    error = {"error": {"code": 500, "message": "context shift failed", "type": "server_error"}}
    emulation = Emulation()
    list(emulation.event("", json.dumps(openai_chunk({"content": '{"ans'})).encode()))
    (fault,) = emulation.event("", json.dumps(error).encode())
    assert isinstance(fault, Fault)
    assert (fault.blame, fault.status, fault.message) == (Blame.VENDOR, 500, "context shift failed")
    told = Emulation().whole(json.dumps({"error": {"code": 400, "message": "no", "type": "x"}}).encode())
    assert isinstance(next(iter(told)), Fault)


def test_no_error_is_no_error():
    reply = json.dumps(openai_completion('{"answer": "Hi"}') | {"error": None}).encode()
    assert not any(isinstance(part, Fault) for part in Emulation().whole(reply))


def test_all_that_was_used_is_counted():
    usage = {"prompt_tokens": 9, "completion_tokens": None, "prompt_tokens_details": {"cached_tokens": 4}}
    reply = json.dumps(openai_completion("") | {"usage": usage}).encode()
    assert Used(Usage(9, 0, cached=4)) in list(Emulation().whole(reply))
