"""What a chat request becomes in Anthropic's dialect, and what is refused because it would become something else."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from anthropic_double import KEY
from anthropic_objections import NEW, OLD, check
from pydantic import ValidationError

from penstock.chat import request
from penstock.errors import InvalidRequest
from penstock.vendor_api.generation import VendorFolders
from penstock.vendors.anthropic import Anthropic, AnthropicOptions

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "description": "Look", "parameters": WEATHER}}
TIME: Any = {"type": "function", "function": {"name": "get_time", "strict": True}}
PNG = base64.b64encode(b"\x89PNG and so on").decode()


def make_vendor(**options: Any) -> Anthropic:
    return Anthropic(
        AnthropicOptions(type="anthropic", api_key=KEY, **options), VendorFolders(Path("nowhere"), Path("nowhere"))
    )


def read(**fields: Any) -> Any:
    return request.read(json.dumps({"model": "claude", "messages": HELLO, **fields}).encode())


def translate(vendor: Anthropic | None = None, **fields: Any) -> dict[str, Any]:
    """The body that a request becomes; what the vendor would object to fails the test."""
    call = (vendor or make_vendor()).complete(read(**fields), "claude-x")
    assert call.body is not None
    body = json.loads(call.body)
    check(body, call.headers["anthropic-version"])
    return body


def refuse(**fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        make_vendor().complete(read(**fields), "claude-x")
    return caught.value


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def calls(*ids: str, arguments: str = '{"city": "Bern"}', **rest: Any) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    listed = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": listed, **rest}


def result(call_id: str, content: Any = "rain") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# -- the call


def test_the_call():
    call = make_vendor().complete(read(stream=True), "claude-x")
    assert (call.method, call.url) == ("POST", "/v1/messages")
    headers = {"content-type": "application/json", "x-api-key": KEY, "anthropic-version": OLD}
    assert call.headers == headers
    assert json.loads(call.body or b"") == {
        "model": "claude-x",
        "max_tokens": 16_384,
        "stream": True,
        "messages": [{"role": "user", "content": [text("Hello")]}],
    }


@pytest.mark.parametrize("base_url", ["http://localhost", "http://localhost/", "http://localhost/v1", "http://x/a/v1/"])
def test_the_address_may_name_the_version_or_not(base_url):
    call = make_vendor(base_url=base_url).complete(read(), "claude-x")
    joined = base_url.rstrip("/") + call.url
    assert joined.endswith("/v1/messages")
    assert joined.count("/v1") == 1


def test_options_are_checked():
    for wrong in ({"version": "2024-01-01"}, {"max_tokens": 0}, {"no_such": 1}):
        with pytest.raises(ValidationError):
            make_vendor(**wrong)


def test_the_newer_version_takes_no_sampling():
    body = translate(make_vendor(version=NEW, max_tokens=7), temperature=0.5, top_p=0.5, top_k=5)
    assert body.keys() == {"model", "messages", "max_tokens", "stream"}
    assert body["max_tokens"] == 7


# -- turns


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_turns_from_anywhere(role):
    parts = [text("and"), text("kind")]
    turns = [{"role": role, "content": "Be brief"}, *HELLO, {"role": role, "content": parts}, *HELLO]
    body = translate(messages=turns)
    assert body["system"] == "Be brief\nand\nkind"
    assert body["messages"] == [{"role": "user", "content": [text("Hello"), text("Hello")]}]


def test_what_an_assistant_said_comes_back_with_whatever_we_returned():
    extras = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": "hm"}
    said = {"role": "assistant", "content": [text("Hi"), {"type": "refusal", "refusal": "No."}], **extras}
    body = translate(messages=[*HELLO, said, {"role": "assistant", "content": "", "tool_calls": None}, *HELLO])
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"] == [text("Hi"), text("No.")]


def test_results_of_tools_come_first_in_one_user_turn():
    turns = [*HELLO, calls("a", "b"), result("a"), *HELLO, result("b", [text("sun"), text(" ")]), *HELLO]
    body = translate(messages=turns, tools=[TOOL])
    taken = {"name": "get_weather", "input": {"city": "Bern"}}
    assert body["messages"][1]["content"] == [{"type": "tool_use", "id": key, **taken} for key in ("a", "b")]
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [text("rain")]},
        {"type": "tool_result", "tool_use_id": "b", "content": [text("sun")]},
    ]
    assert body["messages"][2] == {"role": "user", "content": [*results, text("Hello"), text("Hello")]}


def test_calls_without_arguments_results_without_words_and_ids_of_other_vendors():
    turns = [*HELLO, calls("functions.get:0", arguments=""), result("functions.get:0", "")]
    _, called, answered = translate(messages=turns)["messages"]
    assert called["content"][0] | {"name": ""} == {
        "type": "tool_use",
        "id": "functions_2e_get_3a_0",
        "name": "",
        "input": {},
    }
    assert answered["content"] == [{"type": "tool_result", "tool_use_id": "functions_2e_get_3a_0"}]


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://example.com/a.png", {"type": "url", "url": "https://example.com/a.png"}),
        (f"data:image/png;base64,{PNG}", {"type": "base64", "media_type": "image/png", "data": PNG}),
        (f"DATA:image/JPG;x=y;base64,{PNG}", {"type": "base64", "media_type": "image/jpeg", "data": PNG}),
    ],
)
def test_images(url, source):
    image = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    turns = [{"role": "user", "content": [image, text("What is it?")]}, calls("a"), result("a", [image])]
    asked, _, answered = translate(messages=turns)["messages"]
    assert asked["content"] == [{"type": "image", "source": source}, text("What is it?")]
    assert answered["content"][0]["content"] == [{"type": "image", "source": source}]


def image_turn(url: Any) -> list[Any]:
    return [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]


@pytest.mark.parametrize(
    ("messages", "param", "code"),
    [
        ([*HELLO, calls("a", arguments="{oops")], "messages[1].tool_calls[0].function.arguments", "invalid_value"),
        ([*HELLO, calls("a", arguments="[1]")], "messages[1].tool_calls[0].function.arguments", "invalid_value"),
        ([*HELLO, calls("a", arguments="[" * 9999)], "messages[1].tool_calls[0].function.arguments", "invalid_value"),
        ([*HELLO, calls("a", tool_calls=[{"id": "a", "type": "custom"}])], "messages[1].tool_calls[0].type", None),
        ([*HELLO, {"role": "tool", "content": "x"}], "messages[1].tool_call_id", "invalid_value"),
        ([*HELLO, {"role": "function", "name": "f", "content": "x"}], "messages[1].role", None),
        ([{"role": "assistant", "function_call": {"name": "f"}}], "messages[0].function_call", None),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], "messages[0].content[0].type", None),
        ([{"role": "user", "content": [text("x"), {"type": "riddle"}]}], "messages[0].content[1].type", None),
        ([{"role": "user", "content": [{"text": "x"}]}], "messages[0].content[0]", "invalid_value"),
        ([{"role": "user", "content": 5}], "messages[0].content", "invalid_value"),
        ([{"role": "system", "content": [{"type": "image_url"}]}], "messages[0].content[0].type", None),
        (image_turn({"url": "ftp://x/y.png"}), "messages[0].content[0].image_url.url", "invalid_value"),
        (image_turn("data:image/png,x"), "messages[0].content[0].image_url.url", "invalid_value"),
        (image_turn(None), "messages[0].content[0].image_url.url", "invalid_value"),
        (image_turn({"url": "data:image/tiff;base64,AA=="}), "messages[0].content[0].image_url.url", None),
        ([{"role": "system", "content": "Be brief"}, {"role": "user", "content": " "}], "messages", "invalid_value"),
    ],
)
def test_turns_that_cannot_be_had(messages, param, code):
    error = refuse(messages=messages)
    assert (error.param, error.code, error.status) == (param, code or "unsupported_value", 400)
    assert param in error.message


# -- tools, and the rest


def test_tools():
    body = translate(tools=[TOOL, TIME, {"type": "function", "function": {"name": "f", "parameters": {}}}])
    assert body["tools"] == [
        {"name": "get_weather", "description": "Look", "input_schema": WEATHER},
        {"name": "get_time", "input_schema": {"type": "object"}},
        {"name": "f", "input_schema": {"type": "object"}},
    ]
    assert body["tool_choice"] == {"type": "auto"}


ONE = {"disable_parallel_tool_use": True}
NAMED = {"type": "function", "function": {"name": "get_time"}}


@pytest.mark.parametrize(
    ("choice", "chosen", "names"),
    [
        ("auto", {"type": "auto", **ONE}, ["get_weather", "get_time"]),
        ("none", {"type": "none"}, ["get_weather", "get_time"]),
        ("required", {"type": "any", **ONE}, ["get_weather", "get_time"]),
        (NAMED, {"type": "tool", "name": "get_time", **ONE}, ["get_weather", "get_time"]),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
            {"type": "any", **ONE},
            ["get_time"],
        ),
    ],
)
def test_choices_of_tools(choice, chosen, names):
    body = translate(tools=[TOOL, TIME], tool_choice=choice, parallel_tool_calls=False)
    assert body["tool_choice"] == chosen
    assert [tool["name"] for tool in body["tools"]] == names


def test_a_choice_without_tools():
    for choice in ("auto", "none"):
        assert not {"tools", "tool_choice"} & translate(tool_choice=choice, parallel_tool_calls=False, tools=[]).keys()
    assert refuse(tool_choice="required").param == "tool_choice"


SCHEMA = {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"maximum": 2**70}}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_tokens": 6}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["END", "\n", ""]}, {"stop_sequences": ["END"]}),
        ({"stop": "\n"}, {}),
        ({"user": "u1"}, {"metadata": {"user_id": "u1"}}),
        ({"safety_identifier": "s1"}, {"metadata": {"user_id": "s1"}}),
        ({"temperature": 1.7}, {"temperature": 1}),
        ({"temperature": 0, "top_p": 0.5, "top_k": 3}, {"temperature": 0, "top_p": 0.5, "top_k": 3}),
        ({"top_p": 1}, {}),
        ({"reasoning_effort": "minimal"}, {"output_config": {"effort": "low"}}),
        ({"reasoning_effort": "max"}, {"output_config": {"effort": "max"}}),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"thinking": {"type": "adaptive"}, "speed": "fast"}, {"thinking": {"type": "adaptive"}, "speed": "fast"}),
        ({"cache_control": {"type": "ephemeral"}}, {"cache_control": {"type": "ephemeral"}}),
        ({"output_config": {"effort": "low"}, "reasoning_effort": "high"}, {"output_config": {"effort": "high"}}),
        ({"response_format": {"type": "text"}}, {}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "strict": True, "schema": SCHEMA},
                }
            },
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        ),
        ({"n": 1.0, "logprobs": False, "logit_bias": {}, "modalities": ["text"], "presence_penalty": 0}, {}),
        ({"seed": 1, "store": True, "service_tier": "flex", "verbosity": "low", "metadata": {"a": "b"}}, {}),
        ({"prompt_cache_key": "k", "min_p": 0.1, "chat_template_kwargs": {}, "frequency_penalty": 0.0}, {}),
        ({"audio": None, "functions": None, "tools": None, "tool_choice": None, "stop": None, "user": None}, {}),
    ],
)
def test_fields(fields, expected):
    plain = {"model": "claude-x", "max_tokens": 16_384, "stream": False}
    body = translate(**fields)
    assert body.pop("messages") == [{"role": "user", "content": [text("Hello")]}]
    assert body == plain | expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n", 2), ("logprobs", True), ("logit_bias", {"50256": -100}), ("presence_penalty", 1)),
        *(("audio", {"voice": "ash"}), ("modalities", ["text", "audio"]), ("prediction", {"type": "content"})),
        *(("web_search_options", {}), ("functions", [{"name": "f"}]), ("function_call", "auto"), ("moderation", {})),
    ],
)
def test_fields_that_change_the_meaning_are_refused(name, value):
    error = refuse(**{name: value})
    assert error.message.startswith(f"Unsupported parameter: '{name}' is not supported with this model.")
    assert (error.param, error.code, error.status) == (name, "unsupported_parameter", 400)


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"response_format": {"type": "json_object"}}, "response_format.type", "unsupported_value"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.type", "unsupported_value"),
        ({"reasoning_effort": "heroic"}, "reasoning_effort", "unsupported_value"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type", "unsupported_value"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function", "invalid_value"),
        ({"tools": [TOOL], "tool_choice": "always"}, "tool_choice", "invalid_value"),
        ({"tools": [TOOL], "tool_choice": NAMED}, "tool_choice", "invalid_value"),
        ({"tools": [TOOL], "tool_choice": {"type": "custom", "custom": {"name": "x"}}}, "tool_choice", "invalid_value"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
            "tool_choice",
            "invalid_value",
        ),
        ({"user": 5}, "user", "invalid_value"),
        ({"output_config": []}, "output_config", "invalid_value"),
    ],
)
def test_values_that_cannot_be_had(fields, param, code):
    error = refuse(**fields)
    assert (error.param, error.code, error.status) == (param, code, 400)
    assert param in error.message
