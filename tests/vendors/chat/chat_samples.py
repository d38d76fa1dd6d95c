"""What the suite of chat vendors is told of each of them, and JSON of every kind to try them with."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as some

from penstock.chat import request
from penstock.chat.faults import explain_fault
from penstock.domain.chat import Ask, Fault
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.chat import ChatOptions, ChatVendor, RemoteChat
from penstock.vendor_api.generation import VendorFolders
from penstock.vendors import load_vendor, vendor_names
from penstock.web.server.error_response import render_error

SILENT = {"minilm", "hibari", "whisper"}
"""Vendors that do not chat: of embeddings, speech and transcripts."""
CHAT = sorted(name for name in vendor_names() - SILENT if issubclass(load_vendor(name).options_type, ChatOptions))
KEY = "sk-vendors-own-0123456789"
HOST = "http://127.0.0.1:1"
Json = dict[str, Any]
REMOTE = [name for name in CHAT if issubclass(load_vendor(name), RemoteChat)]
every_vendor = pytest.mark.parametrize("name", CHAT)
every_remote_vendor = pytest.mark.parametrize("name", REMOTE)


@dataclass(frozen=True)
class Sample:
    """What the suite must be told of a vendor: a stream, which of its events is the end, a reply, and refusals."""

    stream: tuple[Any, ...]
    ends_at: int
    whole: Json
    refusals: tuple[tuple[int, Json], ...] = ()
    """How it says that our key or our credit is not good."""
    fields: Json = field(default_factory=dict[str, Any])
    """What is asked for besides, where the reply has another form for it."""


def openai_chunk(delta: Json, finish: str | None = None) -> Json:
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def openai_completion(content: str) -> Json:
    message = {"role": "assistant", "content": content}
    return {
        **openai_chunk({}),
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }


def gemini_reply(parts: list[Json], finish: str | None = None) -> Json:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 1}
    candidate |= {"finishReason": finish} if finish else {}
    return {"candidates": [candidate], "usageMetadata": counts, "responseId": "r-1", "modelVersion": "m"}


def response_message(text: str) -> Json:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def whole_response(*items: Json) -> Json:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items, "usage": usage}


RESPONSE_CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
ANTHROPIC_MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "usage": {"input_tokens": 5, "output_tokens": 1},
}
OPENAI = Sample(
    stream=(
        openai_chunk({"role": "assistant", "content": ""}),
        openai_chunk({"content": "Hi"}),
        openai_chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}),
        openai_chunk({}, "stop"),
        {**openai_chunk({}), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ),
    ends_at=3,
    whole=openai_completion("Hi"),
)
SAMPLES = {
    "openai_compatible": replace(
        OPENAI,
        refusals=(
            (401, {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "invalid_request_error"}}),
            (400, {"error": {"message": "Incorrect API key provided: xa***2c.", "code": "invalid_api_key"}}),
            (400, {"code": "Client specified an invalid argument", "error": f"Incorrect API key provided: {KEY[:8]}"}),
            (200, {"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}),
            (403, {"error": {"message": "no access", "type": "invalid_request_error", "code": "model_not_allowed"}}),
            (429, {"error": {"message": "no credit", "type": "insufficient_quota", "code": "insufficient_quota"}}),
            (402, {"error": {"message": "no credit", "code": 402}}),
        ),
    ),
    "openai_compatible/responses": Sample(
        stream=(
            {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1"}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
            {"type": "response.output_item.done", "output_index": 0, "item": response_message("Hi")},
            {"type": "response.output_item.added", "output_index": 1, "item": {**RESPONSE_CALL, "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"},
            {"type": "response.output_item.done", "output_index": 1, "item": RESPONSE_CALL},
            {"type": "response.completed", "response": whole_response(response_message("Hi"), RESPONSE_CALL)},
        ),
        ends_at=7,
        whole=whole_response(response_message("Hi")),
    ),
    "anthropic": Sample(
        stream=(
            {"type": "message_start", "message": ANTHROPIC_MESSAGE},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ),
        ends_at=5,
        whole={**ANTHROPIC_MESSAGE, "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"},
        refusals=(
            (401, {"type": "error", "error": {"type": "authentication_error", "message": f"invalid x-api-key {KEY}"}}),
            (401, {"type": "error", "error": {"type": "invalid_request_error", "message": "wrong key"}}),
            (403, {"type": "error", "error": {"type": "invalid_request_error", "message": "not for you"}}),
            (403, {"type": "error", "error": {"type": "permission_error", "message": "not for you"}}),
            (
                400,
                {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"},
                },
            ),
        ),
    ),
    "gemini": Sample(
        stream=(
            gemini_reply([{"text": "Hm", "thought": True}]),
            gemini_reply([{"text": "Hi"}]),
            gemini_reply([{"functionCall": {"name": "f", "args": {"a": 1}}}]),
            gemini_reply([], "STOP"),
        ),
        ends_at=3,
        whole=gemini_reply([{"text": "Hi"}], "STOP"),
        refusals=(
            (401, {"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}}),
            (403, {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}),
            (400, {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}),
        ),
    ),
    "local": OPENAI,
    "local/tools": Sample(
        stream=(
            openai_chunk({"role": "assistant", "content": None}),
            openai_chunk({"content": '{"answer":'}),
            openai_chunk({"content": ' "Hi"}'}),
            openai_chunk({}, "stop"),
            {**openai_chunk({}), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        ),
        ends_at=3,
        whole=openai_completion('{"answer": "Hi"}'),
        fields={"tools": [{"type": "function", "function": {"name": "f"}}]},
    ),
}
"""By the vendor's type; behind a slash, what is asked of it."""
every_sample = pytest.mark.parametrize("name", sorted(SAMPLES))


def make_vendor(name: str, **options: Any) -> ChatVendor:
    name, _, variant = name.partition("/")
    options |= {"responses": True} if variant == "responses" else {}
    kind: Any = load_vendor(name)
    credential = {"api_key": KEY, "base_url": HOST} if name in REMOTE else {}
    given_options = {"type": name, **credential, **options}
    return kind(kind.options_type.model_validate(given_options), VendorFolders(Path("nowhere"), Path("nowhere")))


def make_ask(*, stream: bool = False, **fields: Any) -> Ask:
    body = {"model": "ours", "messages": [{"role": "user", "content": "Hello"}], "stream": stream, **fields}
    return request.read(json.dumps(body).encode())


texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=6)
plain = some.none() | some.booleans() | some.integers(-3, 3) | some.just(0.5) | texts
anything = some.recursive(
    plain,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
words = some.sampled_from(
    [
        *("type", "text", "image_url", "url", "input_audio", "file", "file_data", "data", "format", "refusal", "id"),
        *("function", "name", "arguments", "parameters", "tool_calls", "tool_call_id", "function_call", "content"),
        *("mode", "tools", "json_schema", "schema", "allowed_tools", "google", "thinking_config", "effort"),
    ]
)
values = some.sampled_from(
    [
        *("text", "image_url", "input_audio", "file", "refusal", "function", "custom", "auto", "none", "required"),
        *("{}", "[1]", "data:image/png;base64,AAAA", "data:,", "https://x.example/a.png", "allowed_tools"),
        *("json_schema", "json_object"),
    ]
)
likely = some.recursive(
    plain | values,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(words, inner, max_size=5),
    max_leaves=15,
)


def check_fault(fault: Fault) -> None:
    assert isinstance(fault, Fault)
    assert isinstance(fault.message, str)
    assert isinstance(fault.code, str | None)
    assert isinstance(fault.param, str | None)
    error = explain_fault(fault, Redactor({KEY}))
    assert KEY not in str(error.body("req_1"))
    render_error(error, "req_1")
    json.dumps(error.body("req_1"), allow_nan=False)


pages = some.sampled_from(
    [
        b"",
        b"<html><body><h1>502 Bad Gateway</h1></body></html>",
        b"[" * 5000,
        b'{"error":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"error":{"message":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}}",
        b'[{"error":{"code":429,"details":[{"retryDelay":"' + b"9" * 400 + b's"}]}}]',
        b'{"error":{"message":"' + KEY.encode() + b'","type":"invalid_request_error"}}',
        b"\xff\xfe",
    ]
)
error_words = some.sampled_from(["error", "message", "type", "code", "param", "status", "details", "retryDelay"])
error_values = some.sampled_from(["invalid_request_error", "authentication_error", "context_length_exceeded", "7s", ""])
errors = some.recursive(
    plain | error_values,
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(error_words, inner, max_size=5),
    max_leaves=12,
).map(lambda found: json.dumps(found).encode())
bodies = some.binary(max_size=100) | pages | errors
