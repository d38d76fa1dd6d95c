"""What replies in Anthropic's dialect mean: the same whether streamed or not, and whose fault each failure is."""

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic_double import CONTENTS, ERRORS, REFUSALS, STOPS, error_body, stream
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat import request
from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.chunks.writer import ChunkWriter
from penstock.chat.replies.translated import TranslatedStream, render_whole
from penstock.domain.chat import Blame, End, Fault, Finish, Opening, Reason, Usage, Used
from penstock.vendor_api.generation import Reply, VendorFolders
from penstock.vendors.anthropic import Anthropic, AnthropicOptions

VENDOR = Anthropic(AnthropicOptions(type="anthropic"), VendorFolders(Path("nowhere"), Path("nowhere")))
ASK = request.read(b'{"model": "claude", "messages": [{"role": "user", "content": "Hello"}], "stream": true}')


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def message(content: list[Any], stop_reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    counts = {"input_tokens": 10, "output_tokens": 7, **usage}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": stop_reason, "usage": counts}


def read_whole(told: Any) -> list[Any]:
    return list(VENDOR.translator(ASK).whole(json.dumps(told).encode()))


def streamed(told: dict[str, Any], size: int) -> dict[str, Any]:
    """The completion that the chunks of this message's stream make, cut into pieces of this many bytes."""
    rendered = TranslatedStream(ASK, VENDOR.translator(ASK), ChunkWriter(ASK, "id", 1))
    data = b"".join(stream(told))
    out = b"".join(rendered.feed(data[start : start + size]) for start in range(0, len(data), size)) + rendered.end()
    assert rendered.malformed == 0
    *chunks, done = [line.removeprefix("data: ") for line in out.decode().split("\n\n") if line]
    assert done == "[DONE]"
    usage = rendered.usage
    assert usage is not None
    made: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": [], "usage": usage.as_json()}
    for choice in (json.loads(chunk)["choices"][0] for chunk in chunks):
        made["finish_reason"] = choice["finish_reason"]
        for name in ("content", "reasoning_content"):
            made[name] += choice["delta"].get(name) or ""
        for call in choice["delta"].get("tool_calls", ()):
            if "id" in call:
                assert call["index"] == len(made["tool_calls"])
                made["tool_calls"].append([call["id"], call["function"]["name"], ""])
            made["tool_calls"][call["index"]][2] += call["function"]["arguments"]
    return made


def completed(told: dict[str, Any]) -> dict[str, Any]:
    """The same of a reply that was not streamed."""
    translator = VENDOR.translator(ASK)
    completion = json.loads(
        render_whole(translator.whole(json.dumps(told).encode()), ASK, ChunkWriter(ASK, "id", 1))[0]
    )
    choice = completion["choices"][0]
    said = choice["message"]
    return {
        "content": said["content"] or "",
        "reasoning_content": said.get("reasoning_content", ""),
        "tool_calls": [
            [call["id"], call["function"]["name"], call["function"]["arguments"]] for call in said.get("tool_calls", ())
        ],
        "usage": completion["usage"],
        "finish_reason": choice["finish_reason"],
    }


names = some.from_regex(r"\A[a-z_]{1,8}\Z")
values = some.recursive(some.none() | some.booleans() | some.integers() | some.text(), some.lists)
blocks = some.one_of(
    some.builds(text, some.text(min_size=1)),
    some.builds(lambda said: {"type": "thinking", "thinking": said, "signature": "x"}, some.text(min_size=1)),
    some.builds(
        lambda name, taken: {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": taken},
        names,
        some.dictionaries(some.text(), values, max_size=3),
    ),
    some.sampled_from(CONTENTS["search"]),
)
reasons = some.sampled_from(["end_turn", "tool_use", *STOPS.values(), "a reason of tomorrow"])
counts = some.integers(0, 10**6)


@given(some.lists(blocks, max_size=4), reasons, counts, counts, counts, some.integers(1, 200))
def test_streamed_or_not_a_reply_says_the_same(content, reason, read_tokens, short, hourly, size):
    told = message(
        content,
        reason,
        cache_read_input_tokens=read_tokens,
        cache_creation_input_tokens=short + hourly,
        cache_creation={"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hourly},
    )
    whole, pieced = completed(told), streamed(told, size)
    for made in (whole, pieced):
        for call in made["tool_calls"]:
            call[2] = json.loads(call[2])
    assert pieced == whole
    assert whole["content"] == "".join(block.get("text", "") for block in content)
    assert [call[2] for call in whole["tool_calls"]] == [b["input"] for b in content if b["type"] == "tool_use"]
    assert whole["usage"]["prompt_tokens"] == 10 + read_tokens + short + hourly
    writes = {"cache_write_tokens": short + hourly, "cache_write_1h_tokens": hourly}
    details = {"cached_tokens": read_tokens} | {name: count for name, count in writes.items() if count}
    assert whole["usage"]["prompt_tokens_details"] == details


@pytest.mark.parametrize(
    ("stop_reason", "reason"),
    [
        *(("end_turn", Reason.STOP), ("stop_sequence", Reason.STOP), ("pause_turn", Reason.STOP)),
        *(("max_tokens", Reason.LENGTH), ("model_context_window_exceeded", Reason.LENGTH)),
        *(("tool_use", Reason.TOOL_CALLS), ("refusal", Reason.FILTER), ("of tomorrow", Reason.STOP)),
    ],
)
def test_reasons_to_stop(stop_reason, reason):
    told = message([], stop_reason, output_tokens_details={"thinking_tokens": 4})
    usage = Used(Usage(10, 7, 0, 4))
    assert read_whole(told) == [Opening("msg_1", "claude-x"), usage, Finish(reason), End()]


def test_counts_of_a_stream():
    translator = VENDOR.translator(ASK)
    used = [
        part.usage
        for one in stream(message([text("Hi")], cache_read_input_tokens=5))
        for part in translator.event("", one.partition(b"data: ")[2])
        if isinstance(part, Used)
    ]
    assert used == [Usage(15, 1, 5), Usage(15, 7, 5)]


@pytest.mark.parametrize(
    ("details", "hourly"),
    [
        *(({}, 0), ({"cache_creation": None}, 0), ({"cache_creation": {}}, 0)),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 6}}, 6),
        ({"cache_creation": {"ephemeral_1h_input_tokens": 9}}, 8),  # no more than were written at all
    ],
)
def test_writes_to_the_cache_are_counted_apart(details, hourly):
    told = message([], "end_turn", cache_read_input_tokens=5, cache_creation_input_tokens=8, **details)
    used = [part.usage for part in read_whole(told) if isinstance(part, Used)]
    assert used == [Usage(23, 7, 5, cache_writes=8, cache_writes_1h=hourly)]


@pytest.mark.parametrize(
    "data",
    [
        *(b"{no json", b"17", b"{}", b'{"type": 5}', b'{"type": "message_start"}', b'"\xff"'),
        b'{"type": "message_start", "message": {"id": 5}}',
        b'{"type": "content_block_start", "index": 0}',
        b'{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "x"}}',
        b'{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}}',
    ],
)
def test_malformed_events(data):
    with pytest.raises(ValueError, match=r"shape|JSON|Expected|Invalid|decode"):
        list(VENDOR.translator(ASK).event("", data))


@pytest.mark.parametrize("told", [17, {}, {"type": "message"}, message([{"type": "text"}]), message([]) | {"id": None}])
def test_malformed_replies(told):
    translator = VENDOR.translator(ASK)
    with pytest.raises(Malformed):
        render_whole(translator.whole(json.dumps(told).encode()), ASK, ChunkWriter(ASK, "id", 1))


@pytest.mark.parametrize("name", ["ping", "content_block_stop", "of_tomorrow"])
def test_events_of_no_use(name):
    assert not list(VENDOR.translator(ASK).event(name, json.dumps({"type": name, "index": {}}).encode()))


# -- faults

BLAMES = {
    **dict.fromkeys(("invalid_request_error", "request_too_large"), Blame.CALLER),
    **dict.fromkeys(("authentication_error", "billing_error", "permission_error"), Blame.CREDENTIAL),
    **dict.fromkeys(("not_found_error", "conflict_error", "api_error", "timeout_error"), Blame.VENDOR),
    "rate_limit_error": Blame.LIMIT,
    "overloaded_error": Blame.BUSY,
}


def fault(status: int, body: bytes, **headers: str) -> Fault:
    return VENDOR.fault(Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, body))


@pytest.mark.parametrize(("kind", "status"), ERRORS.items())
def test_every_error_has_its_blame(kind, status):
    code = None if kind == "invalid_request_error" else kind
    told = json.dumps(error_body(kind, "So it is")).encode()
    assert fault(status, told, retry_after="1.5") == Fault(BLAMES[kind], "So it is", code, None, 1.5, status)
    inside = Fault(BLAMES[kind], "So it is", code)
    assert list(VENDOR.translator(ASK).event("error", told)) == [inside]
    assert list(VENDOR.translator(ASK).whole(told)) == [inside]


@pytest.mark.parametrize("scenario", ["too-long", "over-limit"])
def test_a_prompt_that_is_too_long(scenario):
    found = fault(400, json.dumps(error_body("invalid_request_error", REFUSALS[scenario])).encode())
    assert (found.blame, found.code, found.param) == (Blame.CALLER, "context_length_exceeded", "messages")
    assert found.message.startswith("This model's maximum context length is exceeded")
    assert found.message.endswith(REFUSALS[scenario])


@pytest.mark.parametrize("scenario", ["no-credit", "spent"])
def test_an_account_without_credit_is_not_the_callers_fault(scenario):
    found = fault(400, json.dumps(error_body("invalid_request_error", REFUSALS[scenario])).encode())
    assert found.blame is Blame.CREDENTIAL


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"error": "x"}', b'"\xff"', b"[" * 99_999])
@pytest.mark.parametrize(
    ("status", "blame"),
    [(400, Blame.CALLER), (401, Blame.CREDENTIAL), (413, Blame.CALLER), (429, Blame.LIMIT), (529, Blame.BUSY)]
    + [(status, Blame.VENDOR) for status in (302, 404, 418, 500, 502, 504)],
)
def test_without_words_the_status_decides(status, blame, body):
    assert fault(status, body, retry_after="3") == Fault(blame, retry_after=3, status=status)


def test_an_error_of_tomorrow():
    told = json.dumps(error_body("lunch_error", "Not now")).encode()
    assert fault(503, told) == Fault(Blame.BUSY, "Not now", "lunch_error", status=503)
    assert list(VENDOR.translator(ASK).event("error", told)) == [Fault(Blame.VENDOR, "Not now", "lunch_error")]


def test_an_error_in_a_stream_breaks_it():
    rendered = TranslatedStream(ASK, VENDOR.translator(ASK), ChunkWriter(ASK, "id", 1))
    events = list(stream(message([text("Hi")])))[:4]
    rendered.feed(b"".join(events))
    failure = b"event: error\ndata: " + json.dumps(error_body("overloaded_error", "Full")).encode() + b"\n\n"
    rendered.feed(failure)
    assert isinstance(rendered.broken, Broken)
    assert not rendered.complete
