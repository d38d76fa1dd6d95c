"""`gemini`: what a request's tools and settings become."""

import json

import pytest
from gemini_steps import TIME, WEATHER, allowed, body, call, config, refusal
from hypothesis import given
from hypothesis import strategies as st

from penstock.chat import request
from penstock.errors import InvalidRequest

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
            {"role": st.sampled_from(request.ROLES)},
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
