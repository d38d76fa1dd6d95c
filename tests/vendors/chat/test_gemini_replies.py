"""`gemini`: what replies and faults mean."""

import json
from typing import Any

import pytest
from gemini_steps import TIME, ask, gemini, whole

from penstock.domain.chat import (
    Arguments,
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
from penstock.vendor_api.generation import Reply

# -- replies


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
