"""The built-in chat model as a vendor: what is sent to it, what is refused, and by which name it is asked for."""

import json
from typing import Any

import pytest
from chat_samples import HOST, Json, make_ask, make_vendor
from pydantic import ValidationError

from penstock.chat import request
from penstock.domain.chat import Blame
from penstock.domain.prices import FREE_TOKENS
from penstock.errors import InvalidRequest
from penstock.vendor_api.generation import Call, Reply
from penstock_engines.vendors.tool_emulation import Emulation

HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [{"type": "function", "function": {"name": "look_up"}}]
CALLED = [
    *HELLO,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "sunny"},
]


def sent(mode: str = "emulated", **fields: Any) -> Json:
    call = make_vendor("local", tools=mode).complete(make_ask(**fields), "theirs")
    assert call.url == "/chat/completions"
    return json.loads(call.body or b"")


def refusal(mode: str, **fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        sent(mode, **fields)
    return caught.value


def test_a_callers_fields_are_sent_as_they_are():
    fields = {"temperature": 0.5, "top_k": 3, "logprobs": True, "n": 2, "max_tokens": 5, "seed": 7}
    assert sent(**fields) == {"model": "theirs", "messages": HELLO, "stream": False, **fields}


@pytest.mark.parametrize("options", [None, {"include_usage": False, "include_obfuscation": False}])
def test_usage_is_always_asked_for(options):
    assert sent(stream=True, stream_options=options)["stream_options"]["include_usage"] is True
    assert "stream_options" not in sent()


@pytest.mark.parametrize(("stop", "left"), [("", None), ([""], None), (["", "x"], ["x"]), ("x", ["x"]), ([], None)])
def test_an_empty_stop_stops_nothing(stop, left):
    assert sent(stop=stop).get("stop") == left


LARGE = "qwen2.5-coder-1.5b.gguf"


def sent_to(gguf: str | None, **fields: Any) -> list[Json]:
    options = {name: fields.pop(name) for name in ("tools_mode", "system") if name in fields}
    mode = options.pop("tools_mode", "emulated")
    call = make_vendor("local", gguf=gguf, tools=mode, **options).complete(make_ask(**fields), "theirs")
    return json.loads(call.body or b"")["messages"]


@pytest.mark.parametrize("mode", ["emulated", "native", "refused"])
def test_a_conversation_without_a_system_message_gets_the_models_own(mode: str):
    opening, *rest = sent_to(LARGE, tools_mode=mode)
    assert opening["role"] == "system"
    assert rest == HELLO
    assert sent_to(LARGE, tools_mode=mode, system="Rhyme.")[0] == {"role": "system", "content": "Rhyme."}
    assert sent_to(None, tools_mode=mode) == HELLO
    assert sent_to("other.gguf", tools_mode=mode) == HELLO


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("mode", ["emulated", "native"])
def test_a_callers_system_message_stands_alone(mode: str, role: str):
    turns = [*HELLO, {"role": role, "content": "Be brief."}]
    assert [turn["content"] for turn in sent_to(LARGE, tools_mode=mode, messages=turns)] == ["Hello", "Be brief."]


def test_pulled_models_say_what_they_are_and_others_say_nothing():
    [small] = make_vendor("local").about.values()
    [large] = make_vendor("local", gguf=LARGE).about.values()
    assert "small demonstration model" in small.title
    assert small.description.startswith("Small demonstration model")
    assert "`penstock models pull qwen2.5-coder-1.5b`" in large.description
    assert make_vendor("local", gguf="other.gguf").about == {}


@pytest.mark.parametrize("mode", ["emulated", "refused"])
def test_a_model_without_tools_hears_nothing_of_them(mode):
    body = sent(mode, tools=TOOLS, tool_choice="none", parallel_tool_calls=False, messages=CALLED)
    assert body.keys() == {"model", "messages", "stream"}
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]


def test_emulated_tools_are_told_in_words_and_by_a_schema():
    body = sent(tools=TOOLS, tool_choice="auto", stop="}", messages=CALLED)
    assert body.keys() == {"model", "messages", "stream", "response_format"}
    assert [turn["role"] for turn in body["messages"]] == ["system", "user", "assistant", "user"]
    assert isinstance(make_vendor("local").translator(make_ask(tools=TOOLS)), Emulation)
    assert make_vendor("local").translator(make_ask(tools=TOOLS, tool_choice="none")) is None
    assert make_vendor("local").translator(make_ask()) is None


def test_a_model_with_tools_of_its_own_gets_them():
    body = sent("native", tools=TOOLS, tool_choice="required", messages=CALLED)
    assert (body["tools"], body["tool_choice"], body["messages"]) == (TOOLS, "required", CALLED)
    assert make_vendor("local", tools="native").translator(make_ask(tools=TOOLS)) is None


def picture(kind: str) -> list[Json]:
    return [*HELLO, {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": kind, kind: {}}]}]


@pytest.mark.parametrize(
    ("mode", "fields", "param"),
    [
        ("refused", {"tools": TOOLS}, "tools"),
        ("emulated", {"functions": [{"name": "f"}]}, "functions"),
        ("emulated", {"function_call": "auto"}, "function_call"),
        ("emulated", {"modalities": ["text", "audio"]}, "modalities"),
        ("emulated", {"audio": {"voice": "x", "format": "wav"}}, "audio"),
        ("emulated", {"web_search_options": {}}, "web_search_options"),
        ("emulated", {"prediction": {"type": "content", "content": "x"}}, "prediction"),
        ("emulated", {"tool_choice": "required"}, "tool_choice"),
        ("emulated", {"tools": [], "tool_choice": {"type": "function"}}, "tool_choice"),
        ("emulated", {"response_format": {"type": "xml"}}, "response_format.type"),
        ("emulated", {"response_format": {}}, "response_format.type"),
        ("emulated", {"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        (
            "native",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": "y"}}},
            "response_format.json_schema.schema",
        ),
        *(
            (mode, {"messages": picture(kind)}, "messages[1].content[1]")
            for mode in ("emulated", "native", "refused")
            for kind in ("image_url", "input_audio", "file", "mystery")
        ),
    ],
    ids=str,
)
def test_what_would_be_silently_ignored_is_refused(mode, fields, param):
    error = refusal(mode, **fields)
    assert (error.status, error.param) == (400, param)
    assert error.code in {"unsupported_parameter", "unsupported_value", "invalid_value"}


@pytest.mark.parametrize("mode", ["emulated", "native"])
def test_what_asks_for_nothing_is_not_refused(mode):
    fields = sent(mode, modalities=["text"], tool_choice="auto", response_format={"type": "text"}, functions=None)
    assert fields["messages"]
    assert "functions" not in fields


def ask_nested(depth: int) -> Call:
    schema = '{"items":' * depth + "{}" + "}" * depth
    tools = f'[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]'
    body = f'{{"model":"ours","messages":{json.dumps(HELLO)},"tools":{tools}}}'
    return make_vendor("local").complete(request.read(body.encode()), "theirs")


def test_what_is_nested_too_deeply_is_refused():
    assert ask_nested(100).body
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        ask_nested(990)


@pytest.mark.parametrize(
    ("gguf", "model"),
    [
        (None, "smollm2-135m"),
        ("Qwen3-8B-Q4_K_M.gguf", "qwen3-8b-q4_k_m"),
        ("/models/My Model (v2).GGUF", "my-model-v2"),
        ("模型.gguf", "local"),
    ],
)
def test_a_model_is_called_as_its_file(gguf, model):
    assert make_vendor("local", gguf=gguf).models == (model,)


def test_its_answers_are_free_and_its_options_are_checked():
    assert make_vendor("local").price is FREE_TOKENS
    for wrong in ({"slots": 0}, {"context": 5}, {"tools": "some"}, {"memory_mb": 1}, {"unload_seconds": 0}):
        with pytest.raises(ValidationError):
            make_vendor("local", **wrong)


def test_every_server_has_a_key_of_its_own_and_none_is_started_unasked():
    first, second = make_vendor("local"), make_vendor("local")
    authorizations = {vendor.complete(make_ask(), "m").headers["authorization"] for vendor in (first, second)}
    assert len(authorizations) == 2
    for vendor in (first, second):
        assert vendor.server is not None
        assert vendor.server.address() is None
    assert HOST not in first.complete(make_ask(), "m").url


def test_a_conversation_that_is_too_long_is_told_in_the_words_clients_know():
    said = {
        "code": 400,
        "message": "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9031,
        "n_ctx": 8192,
    }
    fault = make_vendor("local").fault(Reply(400, {}, json.dumps({"error": said}).encode()))
    assert (fault.blame, fault.code, fault.param) == (Blame.CALLER, "context_length_exceeded", "messages")
    assert fault.message.startswith("This model's maximum context length is")


@pytest.mark.parametrize(
    ("message", "blame"),
    [
        ("Unknown reasoning format: x", Blame.CALLER),
        ("Failed to parse messages: [json.exception.type_error.302] type must be string", Blame.CALLER),
        ("While executing CallExpression:\nError: Jinja Exception: Conversation roles must alternate", Blame.CALLER),
        ("Compute error.", Blame.VENDOR),
        ("", Blame.VENDOR),
    ],
)
def test_what_it_does_not_understand_is_no_failure_of_its_own(message, blame):
    said = {"error": {"code": 500, "message": message, "type": "server_error"}}
    assert make_vendor("local").fault(Reply(500, {}, json.dumps(said).encode())).blame is blame


def test_a_long_conversation_is_asked_for_as_any_other():
    messages = [{"role": "user", "content": "word " * 5000}]
    assert sent(stream=True, messages=messages).keys() == sent(stream=True).keys()
