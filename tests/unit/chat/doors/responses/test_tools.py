"""Tools of Responses as functions, and back."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chat.doors.responses.tools import (
    Called,
    ToolTable,
    read_input,
    translate_choice,
    write_input,
)
from penstock.errors import InvalidRequest

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=90)


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object"}, **more}


def space(name: str, *tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "Files.", "tools": list(tools)}


def test_functions_keep_their_names():
    table = ToolTable([function("f", description="d", strict=True)])
    inner = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    assert table.functions == [{"type": "function", "function": inner}]
    assert table.find("f") == Called("f")


def test_a_namespace_is_flattened_and_restored():
    table = ToolTable([space("mcp__files__", function("read"), function("write")), space("git", function("log"))])
    names = [tool["function"]["name"] for tool in table.functions]
    assert names == ["mcp__files__read", "mcp__files__write", "git__log"]
    assert table.find("git__log") == Called("log", "git")
    assert table.name_of("read", "mcp__files__") == "mcp__files__read"
    assert table.functions[0]["function"]["description"] == "Files."


def test_a_joined_name_gives_way_to_a_plain_one():
    table = ToolTable([space("a", function("b")), function("a__b")])
    assert table.find("a__b") == Called("a__b")
    assert table.find(table.name_of("b", "a")) == Called("b", "a")


@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=8, unique=True))
def test_joined_names_are_valid_unique_and_restorable(pairs):
    table = ToolTable([space(namespace, function(name)) for namespace, name in pairs])
    names = [table.name_of(name, namespace) for namespace, name in pairs]
    assert len(set(names)) == len(pairs)
    assert all(VALID.fullmatch(name) for name in names)
    assert [table.find(name) for name in names] == [Called(name, namespace) for namespace, name in pairs]


@given(st.text(st.characters(codec="utf-8")))
def test_the_input_of_a_custom_tool_survives(text):
    assert read_input(write_input(text)) == text


def test_a_custom_tool_is_a_function_with_one_text():
    shape = {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"}
    table = ToolTable([{"type": "custom", "name": "patch", "description": "Edit.", "format": shape}])
    inner = table.functions[0]["function"]
    assert inner["description"].startswith("Edit.")
    assert "start: /a+/" in inner["description"]
    assert inner["parameters"]["required"] == ["input"]
    assert table.find("patch") == Called("patch", None, is_custom=True)


@pytest.mark.parametrize(
    ("arguments", "text"), [('"x"', "x"), ('{"inp', '{"inp'), ('{"other":1}', '{"other":1}'), ("", "")]
)
def test_odd_arguments_of_a_custom_tool(arguments, text):
    assert read_input(arguments) == text


def test_tools_of_the_vendor_are_left_out():
    table = ToolTable([{"type": "web_search"}, {"type": "mcp", "server_label": "x"}, space("n", {"type": "computer"})])
    assert table.left_out == ["tools.web_search", "tools.mcp", "tools.computer"]
    assert not table


@pytest.mark.parametrize("tool", [7, {"name": "f"}, {"type": "function"}, {"type": "namespace", "name": "n"}])
def test_tools_that_are_none(tool):
    with pytest.raises(InvalidRequest) as caught:
        ToolTable([tool])
    assert str(caught.value.param).startswith("tools[0]")


@pytest.mark.parametrize(
    ("choice", "translated"),
    [
        ("required", "required"),
        ({"type": "function", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
        ({"type": "custom", "name": "p"}, {"type": "function", "function": {"name": "p"}}),
        ({"type": "function", "name": "g", "namespace": "n"}, {"type": "function", "function": {"name": "n__g"}}),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
            },
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        ),
    ],
)
def test_choices(choice, translated):
    table = ToolTable([function("f"), {"type": "custom", "name": "p"}, space("n", function("g"))])
    assert translate_choice(choice, table) == translated


@pytest.mark.parametrize(
    "choice", ["perhaps", {"type": "web_search"}, 7, {"type": "allowed_tools", "mode": "auto", "tools": []}]
)
def test_choices_that_are_refused(choice):
    with pytest.raises(InvalidRequest):
        translate_choice(choice, ToolTable([function("f")]))
