"""`gemini`: what a request's messages become, and the call that carries them."""

from pathlib import Path

import pytest
from gemini_double import KEY
from gemini_steps import HELLO, PIXEL, ask, body, call, contents, gemini, refusal, result, said, whole

from penstock.domain.chat import ToolCall
from penstock.vendors.gemini import VENDOR, GeminiOptions

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
