"""Messages requests in the chat dialect: what is translated, and what is named as left out."""

import json
from typing import Any

import pytest

from penstock.chat.doors.messages.door import MessagesDoor
from penstock.domain.chat import Ask, Dialect
from penstock.errors import InvalidRequest
from penstock.vendor_api import seals

HELLO = {"role": "user", "content": "Hello"}
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
DATA = "data:image/png;base64,iVBORw0KGgo="
LOOK = {"name": "look", "description": "Look", "input_schema": {"type": "object", "properties": {"a": {}}}}


def translate(*turns: Any, **fields: Any) -> Ask:
    body = {"model": "m", "max_tokens": 50, "messages": list(turns) or [HELLO], **fields}
    door = MessagesDoor()
    ask = door.read(json.dumps(body).encode(), {})
    assert ask.dialect is Dialect.MESSAGES
    chat = door.to_chat(ask)
    assert chat.dialect is Dialect.CHAT
    return chat


def messages(*turns: Any, **fields: Any) -> list[Any]:
    chat = translate(*turns, **fields)
    assert chat.left_out == ()
    return chat.field("messages")


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


# -- the conversation


@pytest.mark.parametrize("system", ["A\nB", [text("A"), text("B")]])
def test_the_system_prompt_comes_first(system):
    assert messages(system=system) == [{"role": "system", "content": "A\nB"}, HELLO]


def test_texts_are_one_text_and_pictures_make_a_list():
    assert messages(user(text("a"), text(""), text("b"))) == [{"role": "user", "content": "a\nb"}]
    url = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    assert messages(user(text("a"), PIXEL, url))[0]["content"] == [
        text("a"),
        {"type": "image_url", "image_url": {"url": DATA}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]


def test_documents():
    pdf = {"type": "document", "title": "a.pdf", "source": {**PIXEL["source"], "media_type": "application/pdf"}}
    plain = {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    blocks = {"type": "document", "source": {"type": "content", "content": [text("inside")]}}
    parts = messages(user(pdf, plain, blocks))[0]["content"]
    assert parts == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,iVBORw0KGgo="}},
        *(text("T"), text("words"), text("inside")),
    ]


def test_tool_calls_and_their_results():
    calls = [{"type": "tool_use", "id": f"any.id:{n}", "name": "look", "input": {"a": n, "é": "😀"}} for n in (1, 2)]
    results = [
        {"type": "tool_result", "tool_use_id": "any.id:2", "content": "two"},
        {"type": "tool_result", "tool_use_id": "any.id:1", "content": [text("no"), text("way")], "is_error": True},
    ]
    made, second, first, said = messages(HELLO, assistant(text("So"), *calls), user(text("and"), *results))[1:]
    assert made["content"] == "So"
    assert [call["id"] for call in made["tool_calls"]] == ["any.id:1", "any.id:2"]
    assert [json.loads(call["function"]["arguments"]) for call in made["tool_calls"]] == [c["input"] for c in calls]
    assert second == {"role": "tool", "tool_call_id": "any.id:2", "content": "two"}
    assert first == {"role": "tool", "tool_call_id": "any.id:1", "content": "Error: no\nway"}
    assert said == {"role": "user", "content": "and"}


def test_a_picture_in_a_result_is_shown_by_the_user():
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [PIXEL]}
    made, answered, shown = messages(HELLO, assistant(call), user(result))[1:]
    assert made["content"] is None
    assert answered["role"] == "tool"
    assert shown["content"][-1] == {"type": "image_url", "image_url": {"url": DATA}}


def test_reasoning():
    ours = {"type": "thinking", "thinking": "Hm.", "signature": seals.seal("none", "")}
    sealed = seals.seal("openai", {"id": "rs_1"})
    theirs = {"type": "thinking", "thinking": "So.", "signature": sealed}
    hidden = {"type": "redacted_thinking", "data": sealed}
    assert messages(HELLO, assistant(ours, theirs, hidden, text("x")), HELLO)[1] == {
        "role": "assistant",
        "content": "x",
        "reasoning_content": "Hm.\nSo.",
        "sealed_reasoning": [sealed, sealed],
    }
    signed = {"type": "thinking", "thinking": "secret", "signature": "EqoB"}
    chat = translate(HELLO, assistant(signed, {"type": "redacted_thinking", "data": "Emw"}, text("x")), HELLO)
    assert chat.left_out == ("thinking",)
    assert chat.field("messages")[1] == {"role": "assistant", "content": "x"}


# -- settings


def test_settings_that_chat_has_too():
    chat = translate(temperature=0.3, top_p=0.9, top_k=5, stop_sequences=["a"] * 6, stream=True)
    fields = {name: chat.field(name) for name in ("max_tokens", "temperature", "top_p", "top_k", "stop", "stream")}
    assert fields == {
        "max_tokens": 50,
        "temperature": 0.3,
        "top_p": 0.9,
        "top_k": 5,
        "stop": ["a"] * 6,
        "stream": True,
    }
    assert (chat.stream, chat.max_tokens, chat.left_out) == (True, 50, ())


def test_tools():
    chat = translate(tools=[{**LOOK, "strict": True, "type": "custom"}, {"name": "wait", "input_schema": None}])
    first, second = (tool["function"] for tool in chat.field("tools"))
    assert first == {"name": "look", "description": "Look", "parameters": LOOK["input_schema"], "strict": True}
    assert second == {"name": "wait", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_tool_choice(choice, expected):
    chat = translate(tools=[LOOK], tool_choice={**choice, "disable_parallel_tool_use": True})
    assert chat.field("tool_choice") == expected
    assert chat.field("parallel_tool_calls") is False


def test_tools_of_the_vendor_are_left_out():
    search = {"type": "web_search_20250305", "name": "web_search"}
    chat = translate(tools=[search, LOOK, search], tool_choice={"type": "tool", "name": "web_search"})
    assert chat.left_out == ("tools.web_search_20250305", "tool_choice")
    assert [tool["function"]["name"] for tool in chat.field("tools")] == ["look"]
    assert "tools" not in translate(tools=[search]).fields


@pytest.mark.parametrize(
    ("fields", "effort", "left_out"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low", ()),
        ({"thinking": {"type": "enabled", "budget_tokens": 8000}}, "medium", ()),
        ({"thinking": {"type": "enabled", "budget_tokens": 31999}}, "high", ()),
        ({"thinking": {"type": "adaptive"}}, None, ()),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}, "medium", ()),
        ({"output_config": {"effort": "max"}}, "high", ("output_config.effort",)),
        ({"thinking": {"type": "disabled"}}, None, ()),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, None, ("output_config.effort",)),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, None, ("thinking.display",)),
    ],
)
def test_effort(fields, effort, left_out):
    chat = translate(**fields)
    assert (chat.field("reasoning_effort"), chat.left_out) == (effort, left_out)


@pytest.mark.parametrize(("required", "strict"), [(["a"], True), ([], None)])
def test_structured_output(required, strict):
    schema = {"type": "object", "properties": {"a": {}}, "required": required, "additionalProperties": False}
    chat = translate(output_config={"format": {"type": "json_schema", "schema": schema}})
    asked = chat.field("response_format")
    assert (asked["type"], asked["json_schema"]["schema"]) == ("json_schema", schema)
    assert asked["json_schema"].get("strict") is strict


def test_the_user_is_named_by_an_id_that_every_vendor_takes():
    assert translate(metadata={"user_id": "u-1"}).field("user") == "u-1"
    assert len(translate(metadata={"user_id": "u" * 200}).field("user")) == 64


def test_each_name_is_left_out_once():
    cached = {"cache_control": {"type": "ephemeral"}}
    odd = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    chat = translate(
        user({**text("a"), **cached}, {**text("b"), **cached, "citations": None}),
        assistant(odd, odd, {**text("c"), "citations": [{"type": "x"}]}),
        system=[{**text("s"), **cached}],
        tools=[{**LOOK, **cached, "defer_loading": True}],
        context_management={"edits": []},
        container="c",
        service_tier="auto",
    )
    assert sorted(chat.left_out) == [
        *("cache_control", "citations", "container", "context_management", "defer_loading", "prefill"),
        *("server_tool_use", "service_tier"),
    ]


@pytest.mark.parametrize(
    ("turn", "place"),
    [
        (user({"type": "text"}), "messages.0.content.0.text"),
        (user("text"), "messages.0.content.0"),
        (user({"type": "image", "source": {"type": "file", "file_id": "f"}}), "messages.0.content.0.source"),
        (user({"type": "tool_result"}), "messages.0.content.0.tool_use_id"),
        (assistant({"type": "tool_use", "id": "a", "name": "b", "input": "c"}), "messages.0.content.0.input"),
    ],
)
def test_what_cannot_be_read_is_named(turn, place):
    with pytest.raises(InvalidRequest) as caught:
        translate(turn)
    assert caught.value.param == place
