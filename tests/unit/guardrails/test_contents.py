"""Texts are found in any nesting of messages, parts and params; files are named by their digest and never by URL."""

import base64
import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chat.doors import DOORS
from penstock.domain.chat import Dialect
from penstock.domain.guardrails.contents import NAMES_AND_IDS, read_chat, read_params
from penstock.domain.guardrails.inquiry import Content

BAD = "nerve gas"
PIXEL = b"\x89PNG not really"
ENCODED = base64.b64encode(PIXEL).decode()
DIGEST = hashlib.sha256(PIXEL).hexdigest()


def read(dialect: Dialect, **fields: Any) -> Content:
    """Return the content of a request that came through a door."""
    body = {"model": "m", **({"max_tokens": 9} if dialect is Dialect.MESSAGES else {}), **fields}
    return read_chat(DOORS[dialect].read(msgspec.json.encode(body), {}))


def said(content: Content) -> list[tuple[str, str]]:
    return [tuple(each) for each in content.texts]


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"q": ["th\\u0072ee"]}'}}


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def test_a_conversation_is_read_in_order() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "name": "Ann"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"q": ["th\\u0072ee"]}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "four"},
    ]
    found = said(read(Dialect.CHAT, messages=messages, temperature=1, user="somebody"))
    assert found == [
        ("system", "Be brief."),
        ("user", "one"),
        ("user", "two"),
        ("user", "Ann"),
        ("assistant", "f"),
        ("assistant", "three"),
        ("tool", "four"),
    ]


def test_anthropics_system_comes_first() -> None:
    result = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "sunny"}]}]
    use = [{"type": "tool_use", "id": "t", "name": "look", "input": {"type": "city", "file": {"data": "Bonn"}}}]
    messages = [*user("hi"), {"role": "assistant", "content": use}, *user(result)]
    found = said(read(Dialect.MESSAGES, messages=messages, system=[{"type": "text", "text": "Be brief."}]))
    assert found == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", "look"),
        ("assistant", "city"),
        ("assistant", "Bonn"),
        ("user", "sunny"),
    ]


def test_responses_have_items_and_instructions() -> None:
    items = [
        *user([{"type": "input_text", "text": "hi"}]),
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "not JSON"},
        {"type": "function_call_output", "call_id": "c", "output": "sunny"},
    ]
    found = said(read(Dialect.RESPONSES, input=items, instructions="Be brief."))
    assert found == [
        ("instructions", "Be brief."),
        ("user", "hi"),
        ("input", "f"),
        ("input", "not JSON"),
        ("input", "sunny"),
    ]


MEDIA: dict[str, tuple[Dialect, dict[str, Any], dict[str, Any]]] = {
    "a picture": (
        Dialect.CHAT,
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}", "detail": "low"}},
        {"kind": "image", "content_type": "image/png"},
    ),
    "a sound": (
        Dialect.CHAT,
        {"type": "input_audio", "input_audio": {"data": ENCODED, "format": "wav"}},
        {"kind": "audio"},
    ),
    "a file": (
        Dialect.CHAT,
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{ENCODED}"}},
        {"kind": "file", "content_type": "application/pdf"},
    ),
    "Anthropic's picture": (
        Dialect.MESSAGES,
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}},
        {"kind": "image", "content_type": "image/png"},
    ),
    "a picture of Responses": (
        Dialect.RESPONSES,
        {"type": "input_image", "image_url": f"data:image/png;base64,{ENCODED}"},
        {"kind": "image", "content_type": "image/png"},
    ),
    "a file of Responses": (
        Dialect.RESPONSES,
        {"type": "input_file", "file_data": ENCODED},
        {"kind": "file"},
    ),
}


@pytest.mark.parametrize("name", MEDIA)
def test_files_are_named_by_their_digest(name: str) -> None:
    dialect, part, facts = MEDIA[name]
    field = "input" if dialect is Dialect.RESPONSES else "messages"
    content = read(dialect, **{field: user([part])})
    assert content.media == [{**facts, "sha256": DIGEST, "bytes": len(PIXEL)}]
    assert said(content) == []


def test_a_url_is_not_passed_on() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a.png?key=secret"}}
    content = read(Dialect.CHAT, messages=user([part]))
    assert (content.media, said(content)) == ([{"kind": "image"}], [])


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": BAD},
        {"type": "image_url", "image_url": {"url": BAD}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": BAD}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": BAD}]}},
        {"type": "file", "file": {"file_data": "data:text/plain,nerve gas"}},
        {"type": "file", "file": {"file_data": f"data:x/y;base64,{ENCODED}", "filename": BAD}},
        {"type": "text", "text": "x", "source": BAD},
        {"source": {"source": {"source": {"text": BAD}}}},
    ],
)
def test_a_text_in_the_place_of_a_file_is_a_text(part: dict[str, Any]) -> None:
    found = [text for _, text in said(read(Dialect.CHAT, messages=user([part])))]
    assert any(BAD in text for text in found)


@pytest.mark.parametrize(
    ("dialect", "fields", "texts"),
    [
        (Dialect.EMBEDDINGS, {"input": "one"}, ["one"]),
        (Dialect.EMBEDDINGS, {"input": ["one", "two"]}, ["one", "two"]),
        (Dialect.SPEECH, {"input": "one", "voice": "alloy", "instructions": "softly"}, ["softly", "one"]),
    ],
)
def test_other_doors_have_texts(dialect: Dialect, fields: dict[str, Any], texts: list[str]) -> None:
    assert [text for _, text in said(read(dialect, **fields))] == texts


def test_tokens_have_no_text() -> None:
    content = read(Dialect.EMBEDDINGS, input=[[1, 2], [3]])
    assert (said(content), content.media) == ([], [{"kind": "tokens"}])


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.sampled_from(
    [*NAMES_AND_IDS, "text", "content", "parts", "file", "source", "image_url", "input", "arguments"]
)
VALUES = st.recursive(
    TEXTS | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_any_nesting_is_read_without_an_error(value: Any) -> None:
    for dialect in (Dialect.CHAT, Dialect.MESSAGES):
        read(dialect, messages=user(value))
    read_params({"p": value}, {}, ())


@given(st.lists(st.sampled_from(["text", "content", "list", "input", "arguments", "other"]), max_size=8), VALUES)
def test_a_text_is_found_however_deep_it_is(path: list[str], beside: Any) -> None:
    value: Any = BAD
    for name in reversed(path):
        value = [beside, value] if name == "list" else {"beside": beside, name: value}
    found = read(Dialect.CHAT, messages=user({"content": value}))
    assert any(BAD in text for _, text in said(found))
    assert any(BAD in text for _, text in said(read_params({"prompt": value}, {}, ())))


def test_a_body_as_deep_as_can_be_read_is_read() -> None:
    deep: Any = BAD
    for _ in range(900):
        deep = [deep]
    assert said(read(Dialect.CHAT, messages=user(deep))) == [("user", BAD)]


@pytest.mark.parametrize("beside", ["1e999", "[" * 100 + "]" * 100, "1" * 5000])
def test_what_only_others_can_parse_hides_no_words(beside: str) -> None:
    """Vendors may read more than our parser does, so an escape must not hide a word there."""
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "documents": [%b, "nerve\\u0020gas"]}'
    ask = DOORS[Dialect.CHAT].read(body % beside.encode(), {})
    assert any(BAD in text for _, text in said(read_chat(ask)))


def test_credentials_of_tools_are_not_read() -> None:
    tool = {"type": "mcp", "server_label": "db", "authorization": "t0ken", "headers": {"x-key": "t0ken"}}
    found = str(said(read(Dialect.RESPONSES, input="hi", tools=[tool])))
    assert "db" in found
    assert "t0ken" not in found


def test_params_have_texts_but_not_in_their_files() -> None:
    file = {"url": "https://example.com/a.png", "type": "image/png"}
    params = {"prompt": "a boat", "id": "x", "nested": {"list": ["b", 1, True, None]}, "file": file}
    content = read_params(params, {}, {id(file)}, ["file"])
    assert said(content) == [("prompt", "a boat"), ("id", "x"), ("nested", "b")]
    assert content.media == [{"kind": "file", "param": "file"}]
