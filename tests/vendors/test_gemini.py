"""`gemini`: requests and replies in Google's own dialect, as plain data and through a gateway with the official SDK."""

import base64
import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from conftest import Server
from gemini_double import CALLS, KEY, GeminiDouble
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock import chat_fields
from penstock.chat import (
    Arguments,
    Ask,
    Blame,
    Fault,
    Finish,
    Opening,
    Reason,
    Reasoning,
    Text,
    ToolCall,
    Usage,
    Used,
)
from penstock.contract import Call, Reply
from penstock.errors import InvalidRequest
from penstock.vendors.gemini import VENDOR, GeminiOptions

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "$defs": {}},
        "strict": True,
    },
}
TIME: Any = {"type": "function", "function": {"name": "time"}}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()


def gemini(**options: Any) -> Any:
    return VENDOR(GeminiOptions(type="gemini", api_key=KEY, **options), Path())


def ask(messages: list[Any] | None = None, **fields: Any) -> Ask:
    return chat_fields.read(json.dumps({"model": "fast", "messages": messages or HELLO, **fields}).encode())


def call(messages: list[Any] | None = None, *, model: str = "gemini-3-pro", **fields: Any) -> Call:
    return gemini().complete(ask(messages, **fields), model)


def body(messages: list[Any] | None = None, *, model: str = "gemini-3-pro", **fields: Any) -> dict[str, Any]:
    sent = call(messages, model=model, **fields).body
    assert sent is not None
    return json.loads(sent)


def contents(*messages: Any) -> list[Any]:
    return body(list(messages))["contents"]


def config(**fields: Any) -> dict[str, Any]:
    return body(**fields)["generationConfig"]


def refusal(messages: list[Any] | None = None, **fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        call(messages, **fields)
    return caught.value


def said(call_id: str | None, name: str = "weather", arguments: str = "{}") -> dict[str, Any]:
    called = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def result(call_id: str, content: Any = "sunny") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# -- the call


def test_the_call():
    made = call()
    assert (made.method, made.url) == (
        "POST",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent",
    )
    assert made.headers["x-goog-api-key"] == KEY
    assert KEY not in made.url
    assert call(stream=True).url.endswith("/models/gemini-3-pro:streamGenerateContent?alt=sse")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("https://a.test", "https://a.test/v1beta/models/m:generateContent"),
        ("https://a.test/", "https://a.test/v1beta/models/m:generateContent"),
        ("https://a.test/v1", "https://a.test/v1/models/m:generateContent"),
        ("https://a.test/proxy/v1alpha/", "https://a.test/proxy/v1alpha/models/m:generateContent"),
        ("https://a.test/proxy", "https://a.test/proxy/v1beta/models/m:generateContent"),
        ("https://v1host.test", "https://v1host.test/v1beta/models/m:generateContent"),
        ("https://a.test/v1/projects/p/publishers/google", "https://a.test/v1/projects/p/publishers/google/models/m"),
    ],
)
def test_a_version_is_added_where_there_is_none(base, expected):
    assert gemini(base_url=base).complete(ask(), "m").url.startswith(expected)


@pytest.mark.parametrize(
    ("model", "path"), [("models/m", "m"), ("a b/../c?key=1#x", "a%20b%2F..%2Fc%3Fkey%3D1%23x"), ("ü", "%C3%BC")]
)
def test_a_models_name_stays_one_segment(model, path):
    assert call(model=model).url.endswith(f"/models/{path}:generateContent")


def test_without_a_key_there_is_no_header():
    made = VENDOR(GeminiOptions(type="gemini"), Path()).complete(ask(), "m")
    assert "x-goog-api-key" not in made.headers


# -- messages


def test_instructions_are_gathered_from_everywhere():
    made = body(
        [
            {"role": "system", "content": "One"},
            {"role": "user", "content": "Hi", "name": "ann"},
            {"role": "developer", "content": [{"type": "text", "text": "Two"}, {"type": "text", "text": "Three"}]},
        ]
    )
    assert made["systemInstruction"] == {"parts": [{"text": "One"}, {"text": "Two"}, {"text": "Three"}]}
    assert made["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]


def test_instructions_alone_are_said_by_the_user():
    made = body([{"role": "system", "content": "Sing"}])
    assert made == {"contents": [{"role": "user", "parts": [{"text": "Sing"}]}]}


def test_turns_of_one_role_are_merged():
    made = contents(
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
        {"role": "assistant", "content": [{"type": "text", "text": "d"}]},
        {"role": "user", "content": "e"},
    )
    assert made == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}, {"text": "d"}]},
        {"role": "user", "parts": [{"text": "e"}]},
    ]


def test_echoes_of_our_replies_are_dropped():
    echo = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": "hm"}
    made = contents(*HELLO, {"role": "assistant", "content": "Hi", "tool_calls": [], **echo}, *HELLO)
    assert made[1] == {"role": "model", "parts": [{"text": "Hi"}]}


def test_refusals_and_empty_content():
    made = contents(
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Why?"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "Because."}]},
        {"role": "assistant", "content": ""},
    )
    assert made == [
        {"role": "model", "parts": [{"text": "No."}]},
        {"role": "user", "parts": [{"text": "Why?"}]},
        {"role": "model", "parts": [{"text": "Because."}]},
    ]


@pytest.mark.parametrize(
    ("piece", "part"),
    [
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
            {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        ),
        (
            {"type": "image_url", "image_url": "DATA:image/webp;charset=x;BASE64,AAAA"},
            {"inlineData": {"mimeType": "image/webp", "data": "AAAA"}},
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://a.test/b.JPG?size=1.png"}},
            {"fileData": {"fileUri": "https://a.test/b.JPG?size=1.png", "mimeType": "image/jpeg"}},
        ),
        (
            {"type": "image_url", "image_url": {"url": "http://a.test/b"}},
            {"fileData": {"fileUri": "http://a.test/b"}},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}},
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
        ),
    ],
)
def test_pieces(piece, part):
    made = contents({"role": "user", "content": [{"type": "text", "text": "See"}, piece]})
    assert made == [{"role": "user", "parts": [{"text": "See"}, part]}]


@pytest.mark.parametrize(
    ("content", "param", "code"),
    [
        ([{"type": "image_url", "image_url": {"url": "ftp://a"}}], "content[0].image_url.url", "invalid_value"),
        ([{"type": "image_url", "image_url": {"url": "data:,x"}}], "content[0].image_url.url", "invalid_value"),
        ([{"type": "image_url"}], "content[0].image_url", "invalid_value"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": 1}], "content[1].text", "invalid_value"),
        ([{"type": "file", "file": {"file_id": "file-1"}}], "content[0].file", "invalid_value"),
        ([{"type": "file", "file": {"file_data": "AAAA"}}], "content[0].file.file_data", "invalid_value"),
        ([{"type": "input_audio", "input_audio": {"data": "AAAA"}}], "content[0].input_audio", "invalid_value"),
        ([{"type": "hologram"}], "content[0].type", "unsupported_value"),
        ([{}], "content[0].type", "unsupported_value"),
        (["text"], "content[0]", "invalid_type"),
        (5, "content", "invalid_type"),
    ],
)
def test_pieces_that_are_refused(content, param, code):
    error = refusal([{"role": "user", "content": content}])
    assert (error.param, error.code, error.status) == (f"messages[0].{param}", code, 400)
    assert error.param in error.message


# -- tool calls


def test_a_tool_loop_of_another_models_making():
    made = contents(
        *HELLO,
        said("call_abc", arguments='{"city": "Köln", "big": 123456789012345678901234567890}'),
        result("call_abc", [{"type": "text", "text": "sun"}, {"type": "text", "text": "ny"}]),
        {"role": "user", "content": "Thanks"},
    )
    assert made[1]["parts"] == [
        {
            "functionCall": {"name": "weather", "args": {"city": "Köln", "big": 123456789012345678901234567890}},
            "thoughtSignature": "skip_thought_signature_validator",
        }
    ]
    response = {"functionResponse": {"name": "weather", "response": {"result": "sunny"}}}
    assert made[2] == {"role": "user", "parts": [response, {"text": "Thanks"}]}


def test_only_the_first_of_several_foreign_calls_needs_a_signature():
    calls = [*said("a")["tool_calls"], *said("b")["tool_calls"]]
    made = contents(*HELLO, {"role": "assistant", "content": "I look", "tool_calls": calls}, result("a"), result("b"))
    assert made[1]["parts"][0] == {"text": "I look"}
    assert ["thoughtSignature" in part for part in made[1]["parts"]] == [False, True, False]


@pytest.mark.parametrize(
    ("content", "response"),
    [
        ('{"degrees": 21.50}', {"degrees": 21.5}),
        ("[1, 2]", {"result": "[1, 2]"}),
        ("21", {"result": "21"}),
        ("", {"result": ""}),
        (None, {"result": ""}),
        ('{"cut": ', {"result": '{"cut": '}),
    ],
)
def test_results_are_objects(content, response):
    made = contents(*HELLO, said("a"), result("a", content))
    assert made[2]["parts"] == [{"functionResponse": {"name": "weather", "response": response}}]


def test_results_stand_in_the_order_of_their_calls():
    calls = [*said("a")["tool_calls"], *said("b", "time")["tool_calls"], *said("c")["tool_calls"]]
    made = contents(
        *HELLO,
        {"role": "assistant", "tool_calls": calls},
        result("c", "3"),
        {"role": "system", "content": "Be brief"},
        result("a", "1"),
        result("b", "2"),
    )
    assert [part["functionResponse"]["response"]["result"] for part in made[2]["parts"]] == ["1", "2", "3"]
    assert [part["functionResponse"]["name"] for part in made[2]["parts"]] == ["weather", "time", "weather"]


@pytest.mark.parametrize(
    ("messages", "param", "code"),
    [
        ([said("a", arguments="{oops")], "messages[0].tool_calls[0].function.arguments", "invalid_value"),
        ([said("a", arguments="[1]")], "messages[0].tool_calls[0].function.arguments", "invalid_value"),
        ([said("a", arguments="[" * 5000)], "messages[0].tool_calls[0].function.arguments", "invalid_value"),
        ([said("a"), result("b")], "messages[1].tool_call_id", "invalid_value"),
        ([*HELLO, {"role": "tool", "content": "x"}], "messages[1].tool_call_id", "invalid_value"),
        (
            [said("a"), result("a", [{"type": "image_url", "image_url": {"url": "https://a.test"}}])],
            "messages[1].content",
            "unsupported_value",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "x", "input": "y"}}]}],
            "messages[0].tool_calls[0].type",
            "unsupported_value",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "a"}]}],
            "messages[0].tool_calls[0].function.name",
            "missing_required_parameter",
        ),
        ([{"role": "function", "name": "f", "content": "x"}], "messages[0].role", "unsupported_value"),
        (
            [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}],
            "messages[0].function_call",
            "unsupported_value",
        ),
        ([{"role": "assistant", "tool_calls": {"id": "a"}}], "messages[0].tool_calls", "invalid_type"),
    ],
)
def test_tool_messages_that_are_refused(messages, param, code):
    error = refusal(messages)
    assert (error.param, error.code) == (param, code)
    assert param in error.message


@pytest.mark.parametrize("arguments", ["", None, "{}"])
def test_calls_without_arguments(arguments):
    made = contents(*HELLO, said("a", arguments=arguments), result("a"))
    assert made[1]["parts"][0]["functionCall"]["args"] == {}


@pytest.mark.parametrize("signature", ["AbC+/9==", "with ünicode and ~ signs", "x" * 5000])
@pytest.mark.parametrize("vendor_id", [None, "fc/1"])
def test_signatures_and_ids_travel_in_the_call_id(signature, vendor_id):
    made = {"name": "weather", "args": {}} | ({"id": vendor_id} if vendor_id else {})
    reply = {"candidates": [{"content": {"parts": [{"functionCall": made, "thoughtSignature": signature}]}}]}
    call_id = next(part.id for part in whole(reply) if isinstance(part, ToolCall))
    assert set(call_id) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    made = contents(*HELLO, said(call_id), result(call_id))
    assert made[1]["parts"][0]["thoughtSignature"] == signature
    assert made[1]["parts"][0]["functionCall"].get("id") == vendor_id
    assert made[2]["parts"][0]["functionResponse"].get("id") == vendor_id


def test_a_call_without_a_signature_gets_none():
    reply = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather"}}]}}]}
    call_id = next(part.id for part in whole(reply) if isinstance(part, ToolCall))
    assert len(call_id) <= 40
    assert contents(*HELLO, said(call_id), result(call_id))[1]["parts"] == [
        {"functionCall": {"name": "weather", "args": {}}}
    ]


@pytest.mark.parametrize("tail", ["_A", "_AAAA", "_W10", "_bnVsbA"])
def test_a_broken_call_id_counts_as_foreign(tail):
    reply = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "weather"}}]}}]}
    call_id = next(part.id for part in whole(reply) if isinstance(part, ToolCall)) + tail
    made = contents(*HELLO, said(call_id), result(call_id))
    assert made[1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


# -- tools and settings


def test_tools():
    made = body(tools=[WEATHER, TIME])
    function = WEATHER["function"]
    weather = {
        "name": "weather",
        "description": function["description"],
        "parametersJsonSchema": function["parameters"],
    }
    assert made["tools"] == [{"functionDeclarations": [weather, {"name": "time"}]}]
    assert made["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
    assert "tools" not in body(tools=[])
    assert "toolConfig" not in body(tool_choice="none")


def allowed(mode: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [TIME]}}


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ("auto", "AUTO", None),
        ("none", "NONE", None),
        ("required", "ANY", None),
        ({"type": "function", "function": {"name": "time"}}, "ANY", ["time"]),
        (allowed("required"), "ANY", ["time"]),
    ],
)
def test_tool_choice(choice, mode, names):
    made = body(tools=[WEATHER, TIME], tool_choice=choice)
    assert len(made["tools"][0]["functionDeclarations"]) == 2
    calling = made["toolConfig"]["functionCallingConfig"]
    assert (calling["mode"], calling.get("allowedFunctionNames")) == (mode, names)


def test_tools_that_may_be_called_are_the_only_ones_told():
    made = body(tools=[WEATHER, TIME], tool_choice=allowed("auto"))
    assert made["tools"] == [{"functionDeclarations": [{"name": "time"}]}]
    assert made["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type", "unsupported_value"),
        ({"tools": [WEATHER, {"type": "function"}]}, "tools[1].function.name", "missing_required_parameter"),
        ({"tools": ["weather"]}, "tools[0]", "invalid_type"),
        ({"tools": [WEATHER], "tool_choice": "any"}, "tool_choice", "invalid_value"),
        ({"tools": [WEATHER], "tool_choice": {"type": "custom"}}, "tool_choice", "invalid_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"reasoning_effort": "huge"}, "reasoning_effort", "invalid_value"),
        ({"reasoning_effort": ["low"]}, "reasoning_effort", "invalid_value"),
        ({"response_format": {"type": "grammar"}}, "response_format.type", "unsupported_value"),
        ({"google": "fast"}, "google", "invalid_type"),
        ({"extra_body": {"google": "fast"}}, "extra_body[...]", "invalid_type"),
    ],
)
def test_fields_that_are_refused(fields, param, code):
    error = refusal(**fields)
    assert (error.param, error.code) == (param, code)
    assert param in error.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("logprobs", True),
        ("logit_bias", {"1": 5}),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "mp3"}),
        ("prediction", {"type": "content", "content": "x"}),
        ("web_search_options", {}),
        ("functions", [{"name": "f"}]),
        ("function_call", "auto"),
    ],
)
def test_what_it_cannot_do(name, value):
    error = refusal(**{name: value})
    assert error.message == f"Unsupported parameter: '{name}' is not supported with this model."
    assert (error.param, error.code, error.status) == (name, "unsupported_parameter", 400)


def test_what_asks_for_nothing_or_does_no_harm_is_left_out():
    harmless = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "flex", "verbosity": "low"}
    idle = {"logprobs": False, "logit_bias": {}, "modalities": ["text"], "functions": [], "function_call": "none"}
    unknown = {"min_p": 0.1, "chat_template_kwargs": {}, "prompt_cache_key": "k", "parallel_tool_calls": False}
    assert body(**harmless, **idle, **unknown, response_format={"type": "text"}) == body()
    assert body() == {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}


def test_settings():
    made = config(
        temperature=0,
        top_p=0.5,
        top_k=40,
        n=2,
        presence_penalty=-1,
        frequency_penalty=0.25,
        max_tokens=5,
        max_completion_tokens=7,
        seed=12,
        stop=["a", "b"],
    )
    assert made == {
        "temperature": 0,
        "topP": 0.5,
        "topK": 40,
        "candidateCount": 2,
        "presencePenalty": -1,
        "frequencyPenalty": 0.25,
        "maxOutputTokens": 7,
        "seed": 12,
        "stopSequences": ["a", "b"],
    }
    assert config(stop="a") == {"stopSequences": ["a"]}
    assert config(seed=0) == {"seed": 0}


@pytest.mark.parametrize("seed", [2**40 + 5, -1, -(2**63)])
def test_large_seeds_are_made_to_fit(seed):
    made = config(seed=seed)["seed"]
    assert 0 <= made < 2**31
    assert config(seed=seed)["seed"] == made


def test_response_formats():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
    asked = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    assert config(response_format={"type": "json_object"}) == {"responseMimeType": "application/json"}
    assert config(response_format=asked) == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    bare = {"type": "json_schema", "json_schema": {"name": "x"}}
    assert config(response_format=bare) == {"responseMimeType": "application/json"}


@pytest.mark.parametrize(
    ("effort", "level", "budget"),
    [
        ("minimal", "low", 1024),
        ("low", "low", 1024),
        ("medium", "medium", 8192),
        ("high", "high", 24576),
        ("xhigh", "high", 24576),
        ("max", "high", 24576),
    ],
)
def test_reasoning_effort(effort, level, budget):
    thinking = config(reasoning_effort=effort)["thinkingConfig"]
    assert thinking == {"thinkingLevel": level, "includeThoughts": True}
    thinking = config(reasoning_effort=effort, model="gemini-2.5-flash")["thinkingConfig"]
    assert thinking == {"thinkingBudget": budget, "includeThoughts": True}


def test_no_reasoning():
    assert config(reasoning_effort="none") == {"thinkingConfig": {"thinkingBudget": 0}}


def test_googles_own_fields():
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    made = body(safetySettings=safety, cachedContent="cachedContents/1")
    assert (made["safetySettings"], made["cachedContent"]) == (safety, "cachedContents/1")
    google = {"thinking_config": {"thinking_budget": 5, "include_thoughts": True}, "cached_content": "cachedContents/2"}
    for made in (body(google=google, reasoning_effort="low"), body(extra_body={"google": google, "other": {}})):
        assert made["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 5, "includeThoughts": True}}
        assert made["cachedContent"] == "cachedContents/2"
        assert "google" not in made
        assert "extra_body" not in made


WORDS = st.sampled_from(["text", "function", "type", "a", "image_url", "url", "name", "tool", "data:x;base64,", "{}"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("tools", "tool_choice", "response_format", "google", "extra_body", "reasoning_effort", "safetySettings")


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(chat_fields.ROLES)},
            optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "refusal", "function_call"), JSON),
        ),
        min_size=1,
        max_size=4,
    ),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3),
)
def test_whatever_comes_is_translated_or_refused(messages, fields):
    try:
        translated = call(messages, **fields).body or b""
    except InvalidRequest as error:
        translated = json.dumps({"contents": error.param}).encode()
    assert json.loads(translated)["contents"]


# -- replies


def whole(reply: Any, **fields: Any) -> list[Any]:
    return list(gemini().translator(ask(**fields)).whole(json.dumps(reply, indent=2).encode()))


def streamed(*replies: Any, **fields: Any) -> list[Any]:
    translator = gemini().translator(ask(**fields))
    return [part for reply in replies for part in translator.event("", json.dumps(reply).encode())]


def candidate(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}


def test_a_reply():
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 2,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "cachedContentTokenCount": 4,
        "totalTokenCount": 24,
    }
    thought = {"text": "Hm", "thought": True}
    reply = candidate(thought, {"text": "Hi"}, finishReason="STOP", index=0)
    reply |= {"usageMetadata": usage, "modelVersion": "gemini-3-pro-001", "responseId": "r1"}
    assert whole(reply) == [
        Opening("r1", "gemini-3-pro-001"),
        Reasoning("Hm"),
        Text("Hi"),
        Finish(Reason.STOP),
        Used(Usage(prompt=12, completion=12, cached=4, reasoning=7)),
    ]


def test_several_candidates():
    reply = {
        "candidates": [
            {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"},
            {"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "MAX_TOKENS"},
        ]
    }
    assert whole(reply)[1:] == [Text("a"), Finish(Reason.STOP), Text("b", 1), Finish(Reason.LENGTH, 1)]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        *((word, Reason.FILTER) for word in ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "RECITATION")),
        *((word, Reason.FILTER) for word in ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")),
        ("MAX_TOKENS", Reason.LENGTH),
        *((word, Reason.STOP) for word in ("STOP", "LANGUAGE", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "SOMETHING_NEW")),
        *((word, Reason.STOP) for word in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS")),
        *((word, Reason.STOP) for word in ("MALFORMED_RESPONSE", "CONTINUATION", "FINISH_REASON_UNSPECIFIED")),
    ],
)
def test_finish_reasons(word, reason):
    assert Finish(reason) in whole(candidate({"text": "a"}, finishReason=word))
    assert Finish(reason) in streamed(candidate({"text": "a"}), candidate(finishReason=word))


def test_calls_end_with_tool_calls_streamed_or_not():
    calls = [{"functionCall": {"name": "a", "args": {"x": [1, 2.5]}}}, {"functionCall": {"name": "b"}}]
    pieces = (candidate(calls[0]), candidate(calls[1]), candidate({"text": ""}, finishReason="STOP"))
    for parts in (whole(candidate(*calls, finishReason="STOP")), streamed(*pieces)):
        told = [part for part in parts if not isinstance(part, Opening)]
        assert [part.name for part in told if isinstance(part, ToolCall)] == ["a", "b"]
        assert [part.json for part in told if isinstance(part, Arguments)] == ['{"x":[1,2.5]}', "{}"]
        assert told[-1] == Finish(Reason.TOOL_CALLS)
    assert whole(candidate(*calls, finishReason="MAX_TOKENS"))[-1] == Finish(Reason.LENGTH)


def test_every_call_has_an_id_of_its_own():
    calls = [{"functionCall": {"name": "a"}} for _ in range(50)]
    ids = [part.id for part in whole(candidate(*calls)) if isinstance(part, ToolCall)]
    assert len(set(ids)) == 50


def test_one_call_at_a_time():
    calls = [{"functionCall": {"name": "a"}}, {"functionCall": {"name": "b"}}]
    parts = whole(candidate(*calls, finishReason="STOP"), tools=[TIME], parallel_tool_calls=False)
    assert [part.name for part in parts if isinstance(part, ToolCall)] == ["a"]
    parts = streamed(candidate(calls[0]), candidate(calls[1]), tools=[TIME], parallel_tool_calls=False)
    assert [part.name for part in parts if isinstance(part, ToolCall)] == ["a"]


@pytest.mark.parametrize("word", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "JAILBREAK"])
def test_a_blocked_prompt(word):
    assert whole({"promptFeedback": {"blockReason": word}})[1:] == [Finish(Reason.FILTER)]


def test_an_answer_that_is_not_finished():
    parts = [*streamed(candidate({"text": "Hel"}), {"promptFeedback": {}}), *whole({"usageMetadata": {}})]
    assert not any(isinstance(part, Finish) for part in parts)


def test_an_error_inside_a_stream():
    error = {"error": {"code": 429, "message": "Slow down", "details": [{"retryDelay": "2.5s"}]}}
    assert streamed(candidate({"text": "a"}), error)[-1] == Fault(Blame.LIMIT, "Slow down", retry_after=2.5, status=429)
    assert streamed({"error": {"message": "?"}}) == [Fault(Blame.VENDOR, "?", status=500)]


@pytest.mark.parametrize("data", [b"nonsense", b"[]", b'{"candidates": [5]}', b'{"candidates": {"a": 1}}', b"[" * 9999])
def test_malformed_events(data):
    with pytest.raises((ValueError, LookupError, TypeError, AttributeError, RecursionError)):
        list(gemini().translator(ask()).event("", data))


# -- faults


def fault(status: int, error: Any, headers: dict[str, str] | None = None) -> Fault:
    sent = error if isinstance(error, bytes) else json.dumps(error).encode()
    return gemini().fault(Reply(status, headers or {}, sent))


@pytest.mark.parametrize(
    ("status", "word", "blame"),
    [
        (400, "INVALID_ARGUMENT", Blame.CALLER),
        (400, "FAILED_PRECONDITION", Blame.CREDENTIAL),
        (401, "UNAUTHENTICATED", Blame.CREDENTIAL),
        (402, "RESOURCE_EXHAUSTED", Blame.CREDENTIAL),
        (403, "PERMISSION_DENIED", Blame.CREDENTIAL),
        (404, "NOT_FOUND", Blame.VENDOR),
        (429, "RESOURCE_EXHAUSTED", Blame.LIMIT),
        (500, "INTERNAL", Blame.VENDOR),
        (503, "UNAVAILABLE", Blame.BUSY),
        (504, "DEADLINE_EXCEEDED", Blame.VENDOR),
    ],
)
def test_faults(status, word, blame):
    error = {"error": {"code": status, "message": "Said so", "status": word}}
    assert fault(status, error) == Fault(blame, "Said so", status=status)
    assert fault(status, [error]) == Fault(blame, "Said so", status=status)


def test_a_wrong_key():
    detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    by_reason = {"code": 400, "message": "API key expired.", "status": "INVALID_ARGUMENT", "details": [detail]}
    by_message = {"code": 400, "message": "API key not valid. Please pass a valid API key.", "details": []}
    assert fault(400, {"error": by_reason}).blame is Blame.CREDENTIAL
    assert fault(400, {"error": by_message}).blame is Blame.CREDENTIAL


def test_when_to_try_again():
    details = [{"@type": "QuotaFailure"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]
    limited = {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    assert fault(429, limited, {"retry-after": "3"}).retry_after == 17
    assert fault(429, {"error": {"message": "Quota"}}, {"retry-after": "3"}).retry_after == 3
    assert fault(429, {"error": {"message": "Quota", "details": [{"retryDelay": "soon"}]}}).retry_after is None


@pytest.mark.parametrize("tail", ["allowed (1048576).", "allowed 1048576."])
def test_too_long_a_conversation(tail):
    found = fault(400, {"error": {"message": f"The input token count exceeds the maximum number of tokens {tail}"}})
    assert (found.blame, found.code, found.param) == (Blame.CALLER, "context_length_exceeded", "messages")
    assert found.message.startswith("This model's maximum context length is 1048576 tokens.")


@pytest.mark.parametrize(
    "sent", [b"<html>", b"", b"null", b"[]", b'"x"', b'{"error": "x"}', b"\xff", b"[" * 9999, b'{"other": {}}']
)
def test_anything_else_is_told_by_its_status(sent):
    assert fault(502, sent) == Fault(Blame.VENDOR, status=502)
    assert fault(429, sent, {"retry-after": "4"}) == Fault(Blame.LIMIT, retry_after=4, status=429)


# -- through a gateway, with the official SDK

MODELS = (
    *("text", "thoughts", "tool", "parallel", "steps", "ids", "json", "length", "safety", "blocked", "slow:0.05"),
    *("hang", "cut", "clean-cut", "error-mid", "malformed", "empty", "html", "array", "context", "retry:17"),
    *("bad-key", "country", "status:400", "status:402", "status:403", "status:404", "status:429", "status:500"),
    *("status:503", "status:504", "gemini-2.5-text", "a b"),
)


class Chat:
    """A gateway, the double behind it, and a strict SDK client that does not retry."""

    def __init__(self, server: Server, double: GeminiDouble, client: openai.AsyncOpenAI) -> None:
        self.server, self.double, self.client = server, double, client

    async def create(self, model: str = "text", **fields: Any) -> Any:
        return await self.client.chat.completions.create(**{"model": model, "messages": HELLO, **fields})

    async def collect(self, model: str = "text", **fields: Any) -> list[Any]:
        return [chunk async for chunk in await self.create(model, stream=True, **fields)]


@asynccontextmanager
async def chatting(start, key: str = KEY):
    async with GeminiDouble() as double:
        vendor = f'[vendors.google]\ntype = "gemini"\napi_key = "{key}"\nbase_url = "{double.url}"\n'
        models = [
            f'[[models]]\nid = "{name.replace(" ", "-")}"\nkind = "chat"\nvendor = "google"\nmodel = "{name}"\n'
            for name in MODELS
        ]
        server = await start("\n".join([vendor, *models]))
        async with openai.AsyncOpenAI(
            base_url=f"{server.url}/llm",
            api_key=await server.new_key(),
            max_retries=0,
            _strict_response_validation=True,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
        ) as client:
            yield Chat(server, double, client)


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


def text_of(chunks: list[Any], index: int = 0) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices if choice.index == index)


def ends_of(chunks: list[Any]) -> list[tuple[int, str]]:
    return [(choice.index, choice.finish_reason) for c in chunks for choice in c.choices if choice.finish_reason]


async def test_a_completion(chat):
    completion = await chat.create(temperature=0.5, user="u", extra_body={"min_p": 0.5})
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.refusal) == ("Hello, world 🌍", "stop", None)
    assert (completion.id, completion.model, completion.object) == ("resp-42", "text-001", "chat.completion")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (9, 5)
    seen = chat.double.requests[0]
    assert seen.path == "/v1beta/models/text:generateContent"
    assert seen.headers["x-goog-api-key"] == KEY
    assert seen.body == {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "generationConfig": {"temperature": 0.5},
    }


async def test_a_stream_with_usage(chat):
    *chunks, last = await chat.collect(stream_options={"include_usage": True})
    assert text_of(chunks) == "Hello, world 🌍"
    assert ends_of(chunks) == [(0, "stop")]
    assert (last.choices, last.usage.total_tokens) == ([], 14)
    assert all(chunk.usage is None for chunk in chunks)
    assert {chunk.id for chunk in chunks} == {"resp-42"}
    assert chat.double.requests[0].path == "/v1beta/models/text:streamGenerateContent?alt=sse"


async def test_a_stream_without_usage(chat):
    chunks = await chat.collect()
    assert text_of(chunks) == "Hello, world 🌍"
    assert all(chunk.choices and "usage" not in chunk.to_dict() for chunk in chunks)


async def test_two_candidates(chat):
    completion = await chat.create(n=2)
    assert [(c.index, c.message.content, c.finish_reason) for c in completion.choices] == [
        (0, "Hello, world 🌍", "stop"),
        (1, "Hello, world 🌍", "stop"),
    ]
    chunks = await chat.collect(n=2)
    assert text_of(chunks, 0) == text_of(chunks, 1) == "Hello, world 🌍"
    assert ends_of(chunks) == [(0, "stop"), (1, "stop")]


async def test_a_models_name_with_a_space(chat):
    assert (await chat.create("a-b")).choices[0].message.content == "Hello, world 🌍"
    assert chat.double.requests[0].path == "/v1beta/models/a%20b:generateContent"


async def test_thoughts(chat):
    completion = await chat.create("thoughts", reasoning_effort="low")
    message = completion.choices[0].message
    assert (message.reasoning_content, message.content) == ("Hm. So.", "Grüße 🌊")
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (12, 12)
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert usage.completion_tokens_details.reasoning_tokens == 7
    chunks = await chat.collect("thoughts", reasoning_effort="none")
    deltas = [choice.delta.to_dict() for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hm. So."
    assert text_of(chunks) == "Grüße 🌊"
    assert (await chat.create("gemini-2.5-text", reasoning_effort="high")).choices[0].finish_reason == "stop"


def answers(message: Any) -> list[dict[str, Any]]:
    """Results for all calls, in another order than theirs, and the turn that asked for them as a client keeps it."""
    kept = [said(call.id, call.function.name, call.function.arguments)["tool_calls"][0] for call in message.tool_calls]
    results = [result(call.id, json.dumps({"for": json.loads(call.function.arguments)})) for call in message.tool_calls]
    return [{"role": "assistant", "content": message.content, "tool_calls": kept}, *reversed(results)]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("model", "expected"), [("tool", 1), ("parallel", 2), ("ids", 2)])
async def test_a_tool_loop(chat, model, expected, streams):
    first: Any
    if streams:
        async with chat.client.chat.completions.stream(model=model, messages=HELLO, tools=[WEATHER]) as stream:
            first = (await stream.get_final_completion()).choices[0]
    else:
        first = (await chat.create(model, tools=[WEATHER])).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.content == ("I look." if model == "parallel" else None)
    assert [json.loads(call.function.arguments) for call in first.message.tool_calls] == [
        called["args"] for called in CALLS[:expected]
    ]
    second = await chat.create(model, messages=[*HELLO, *answers(first.message)], tools=[WEATHER])
    told = "; ".join(f"weather: {json.dumps({'for': called['args']})}" for called in CALLS[:expected])
    assert second.choices[0].message.content == f"They said {told}"
    returned = [part.get("thoughtSignature") for part in chat.double.asked["contents"][1]["parts"]]
    assert [signature for signature in returned if signature] == list(chat.double.issued)


async def test_every_step_brings_its_own_signature_back(chat):
    messages = [*HELLO]
    for _ in range(2):
        choice = (await chat.create("steps", messages=messages, tools=[WEATHER])).choices[0]
        assert choice.finish_reason == "tool_calls"
        messages += answers(choice.message)
    choice = (await chat.create("steps", messages=messages, tools=[WEATHER])).choices[0]
    assert choice.message.content.startswith("They said")
    returned = [part.get("thoughtSignature") for c in chat.double.asked["contents"] for part in c["parts"]]
    assert [signature for signature in returned if signature] == list(chat.double.issued)


async def test_a_lost_signature_is_noticed_by_the_double(chat):
    choice = (await chat.create("tool", tools=[WEATHER])).choices[0]
    turns = answers(choice.message)
    own = choice.message.tool_calls[0].id[:31]  # a call of ours, without what was packed into its id
    turns[0]["tool_calls"][0]["id"] = turns[1]["tool_call_id"] = own
    with pytest.raises(openai.BadRequestError, match="missing a thought_signature"):
        await chat.create("tool", messages=[*HELLO, *turns], tools=[WEATHER])


async def test_a_history_from_another_vendor(chat):
    messages = [*HELLO, said("call_abc"), result("call_abc")]
    completion = await chat.create("tool", messages=messages, tools=[WEATHER])
    assert completion.choices[0].message.content == 'They said weather: {"result": "sunny"}'


async def test_tool_choices_are_understood(chat):
    tools = [WEATHER, TIME]
    for choice in ("auto", "none", "required", {"type": "function", "function": {"name": "time"}}, allowed("auto")):
        assert (await chat.create(tools=tools, tool_choice=choice)).choices[0].finish_reason == "stop"


async def test_an_image(chat):
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://a.test/cat.webp"}},
    ]
    await chat.create(messages=[{"role": "user", "content": content}])
    assert chat.double.asked["contents"][0]["parts"][1:] == [
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"fileData": {"fileUri": "https://a.test/cat.webp", "mimeType": "image/webp"}},
    ]


class Place(BaseModel):
    """Where it is."""

    city: str


async def test_structured_output(chat):
    asked = chat.client.chat.completions
    completion = await asked.parse(model="json", messages=HELLO, response_format=Place)
    assert completion.choices[0].message.parsed == Place(city="Köln")
    made = chat.double.asked["generationConfig"]
    assert made["responseJsonSchema"]["required"] == ["city"]
    async with asked.stream(model="json", messages=HELLO, response_format=Place) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.parsed == Place(city="Köln")
    with pytest.raises(openai.ContentFilterFinishReasonError):
        await asked.parse(model="blocked", messages=HELLO, response_format=Place)


@pytest.mark.parametrize(
    ("model", "reason"), [("length", "length"), ("safety", "content_filter"), ("blocked", "content_filter")]
)
async def test_other_endings(chat, model, reason):
    completion = await chat.create(model)
    assert [choice.finish_reason for choice in completion.choices] == [reason]
    assert completion.usage.prompt_tokens == 9
    assert ends_of(await chat.collect(model)) == [(0, reason)]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("model", "kind", "status", "code"),
    [
        ("status:400", openai.BadRequestError, 400, "invalid_value"),
        ("array", openai.BadRequestError, 400, "invalid_value"),
        ("context", openai.BadRequestError, 400, "context_length_exceeded"),
        ("bad-key", openai.InternalServerError, 502, "upstream_auth"),
        ("country", openai.InternalServerError, 502, "upstream_auth"),
        ("status:402", openai.InternalServerError, 502, "upstream_auth"),
        ("status:403", openai.InternalServerError, 502, "upstream_auth"),
        ("status:404", openai.InternalServerError, 502, "upstream_error"),
        ("retry:17", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("status:429", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("status:500", openai.InternalServerError, 502, "upstream_error"),
        ("status:503", openai.InternalServerError, 503, "overloaded"),
        ("status:504", openai.InternalServerError, 502, "upstream_error"),
        ("html", openai.InternalServerError, 502, "upstream_error"),
    ],
)
async def test_refusals(chat, model, kind, status, code, streams):
    with pytest.raises(kind) as caught:
        await chat.create(model, stream=streams)
    error = caught.value
    assert (error.status_code, error.code) == (status, code)
    assert KEY not in str(error)
    if model == "context":
        assert (error.param, "This model's maximum context length is" in error.message) == ("messages", True)
    if model == "retry:17":
        assert error.response.headers["retry-after"] == "17"


async def test_our_key_is_wrong(start):
    async with chatting(start, key="wrong") as chat:
        with pytest.raises(openai.InternalServerError) as caught:
            await chat.create()
        assert caught.value.code == "upstream_auth"


@pytest.mark.parametrize("model", ["malformed", "empty"])
async def test_a_reply_that_makes_no_sense(chat, model):
    with pytest.raises(openai.InternalServerError) as caught:
        await chat.create(model)
    assert caught.value.code == "upstream_error"


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid", "malformed"])
async def test_a_stream_that_breaks(chat, model):
    stream, heard = await chat.create(model, stream=True), []

    async def listen() -> None:
        async for chunk in stream:
            heard.append(chunk)  # noqa: PERF401  what came before the error is looked at

    with pytest.raises(openai.APIError):
        await listen()
    assert text_of(heard) == "Hello, "
    assert ends_of(heard) == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"logprobs": True}, "logprobs"),
        ({"messages": [*HELLO, result("nobody")]}, "messages[1].tool_call_id"),
        ({"messages": [said("a", arguments="{")]}, "messages[0].tool_calls[0].function.arguments"),
    ],
)
async def test_what_cannot_be_translated_is_told_and_not_sent(chat, fields, param):
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.create(**fields)
    assert caught.value.param == param
    assert chat.double.requests == []


async def test_a_caller_who_leaves_takes_the_vendor_along(chat):
    stream = await chat.create("slow:0.05", stream=True)
    async for _ in stream:
        break
    await stream.close()
    await chat.double.until_gone()
