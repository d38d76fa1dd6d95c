"""The Messages door before Anthropic: bytes pass untouched both ways, and are counted on the way."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from anthropic_double import CONTENTS, SPOKEN, USAGE, answer, error_body, event, stream
from chat_canned import STREAM, WHOLE, Canned, canned
from conftest import Start
from message_steps import HELLO, Client, StreamError, gather
from test_chat_usage import records

from penstock.domain.usage import ChatOutcome
from penstock.vendor_api import seals

KEY = "sk-ant-upstream-0123456789"
PRICE = 'price = {input_per_million = "1", output_per_million = "2"}'
PROMPT = sum(USAGE.values())
ASKED: dict[str, Any] = {"model": "text", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}
SCENARIOS = ("text", "tool", "parallel", "empty-tool", "thinking", "search")


def settings_of(upstream: Canned) -> str:
    vendor = f'[vendors.claude]\ntype = "anthropic"\napi_key = "{KEY}"\nbase_url = "{upstream.url}"\n'
    return f'{vendor}[[models]]\nid = "claude"\nkind = "chat"\nvendor = "claude"\nmodel = "claude-real"\n{PRICE}\n'


@pytest.fixture
async def upstream() -> AsyncGenerator[Canned]:
    async with canned() as upstream:
        yield upstream


@pytest.fixture
async def client(start: Start, upstream: Canned) -> Client:
    server = await start(settings_of(upstream))
    return Client(server, await server.new_key())


def events(scenario: str = "text") -> list[bytes]:
    return list(stream(answer(ASKED | {"model": scenario})))


def refuse(status: int, kind: str, message: str, headers: str = "") -> bytes:
    body = json.dumps(error_body(kind, message), indent=2).encode()
    head = f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


async def completion(client: Client) -> Any:
    [record] = await records(client.server, 1)
    return record


# -- the request


async def test_the_body_and_every_anthropic_header_go_unmodified(client, upstream):
    upstream.reply = WHOLE + json.dumps(answer(ASKED)).encode()
    sent = (
        b'{"max_tokens":5,"messages":[ {"role":"user","content":"\\u00e9 \xc3\xa9","cache_control":{"type":"x"}}],'
        b'"model":"claude","context_management":{"edits":[ ]},"thinking":{"type":"adaptive"},"a_new_field":1e2}'
    )
    betas = "claude-code-20250219, interleaved-thinking-2025-05-14,a-new-one"
    headers = {"anthropic-beta": betas, "anthropic-version": "2026-10-21", "anthropic-new": "yes", "x-other": "no"}
    reply = await client.send("/v1/messages?beta=true", sent, headers)
    assert reply.status_code == 200, reply.text
    head, _, body = upstream.requests[-1].partition(b"\r\n\r\n")
    assert body == sent.replace(b'"model":"claude"', b'"model":"claude-real"')
    lines = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
    assert lines["anthropic-beta"] == betas
    assert (lines["anthropic-version"], lines["anthropic-new"]) == ("2026-10-21", "yes")
    assert lines["x-api-key"] == KEY
    assert "x-other" not in lines
    assert client.key not in head.decode()
    assert "x-penstock-left-out" not in reply.headers


async def test_a_signature_for_made_up_thinking_is_not_sent_to_anthropic(client, upstream):
    upstream.reply = WHOLE + json.dumps(answer(ASKED)).encode()
    ours = {"type": "thinking", "thinking": "made up", "signature": seals.seal("none", "")}
    hidden = {"type": "redacted_thinking", "data": seals.seal("gemini", "x")}
    real = {"type": "thinking", "thinking": "real", "signature": "EqoB"}
    said = {"type": "text", "text": "penstock-"}
    turns = [
        *HELLO,
        {"role": "assistant", "content": [ours, hidden, real, said]},
        *HELLO,
        {"role": "assistant", "content": [ours]},
        *HELLO,
    ]
    await client.create("claude", messages=turns)
    body = json.loads(upstream.requests[-1].partition(b"\r\n\r\n")[2])
    assert body["messages"] == [*HELLO, {"role": "assistant", "content": [real, said]}, *HELLO, *HELLO]


# -- the reply


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_whole_message_passes_byte_for_byte(client, upstream, scenario):
    body = json.dumps(answer(ASKED | {"model": scenario}), indent=1).encode() + b"\n"
    upstream.reply = WHOLE + body
    reply = await client.post("claude")
    assert reply.content == body
    record = await completion(client)
    assert (record.usage.prompt, record.usage.completion, record.usage.cached) == (PROMPT, SPOKEN, 5)
    assert record.outcome is ChatOutcome.OK
    assert record.cost == PROMPT * 1_000 + SPOKEN * 2_000


@pytest.mark.parametrize("cuts", [(), range(0, 9000, 7), range(0, 9000, 331)], ids=["one", "small", "large"])
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_stream_passes_byte_for_byte(client, upstream, scenario, cuts):
    body = b"".join(events(scenario))
    upstream.reply, upstream.cuts = STREAM + body, tuple(cuts)
    reply = await client.post("claude", stream=True)
    assert reply.content == body
    assert reply.headers["request-id"] == reply.headers["x-request-id"]
    record = await completion(client)
    assert (record.usage.prompt, record.usage.completion, record.usage.cached) == (PROMPT, SPOKEN, 5)
    assert not record.usage.estimated
    assert record.outcome is ChatOutcome.OK


async def test_line_ends_and_spaces_pass_as_they_are(client, upstream):
    body = b"".join(events()).replace(b"\n", b"\r\n").replace(b"data: ", b"data:")
    upstream.reply, upstream.cuts = STREAM + b": hello\r\n\r\n" + body, range(0, 9000, 5)
    reply = await client.post("claude", stream=True)
    assert reply.content.removeprefix(b": keep-alive\n\n").removeprefix(b": hello\r\n\r\n") == body


async def test_a_vendors_error_event_passes_with_its_own_bytes(client, upstream):
    error = b'event: error\ndata: {"type": "error",  "error": {"type":"overloaded_error","message":"Overloaded"}}\n\n'
    begun = b"".join(events()[:5])
    upstream.reply = STREAM + begun + error + b"".join(events()[5:])
    reply = await client.post("claude", stream=True)
    assert reply.content == begun + error
    with pytest.raises(StreamError, match="Overloaded"):
        gather(reply.content)
    assert (await completion(client)).outcome is ChatOutcome.CUT


@pytest.mark.parametrize("end", [b"", b"event: content_block_delta\ndata: {no json\n\n", b"event: content_bl"])
async def test_a_cut_ends_with_an_error_event_of_ours(client, upstream, end):
    begun = b"".join(events()[:5])
    upstream.reply = STREAM + begun + end
    got = await client.read_cut("claude")
    assert got.startswith(begun)
    with pytest.raises(StreamError, match="api_error"):
        gather(got)
    assert (await completion(client)).outcome is ChatOutcome.CUT


async def test_a_message_that_begins_again_is_not_taken_for_whole(client, upstream):
    """Clients would join both."""
    upstream.reply = STREAM + b"".join(events()[:-2] + events())
    with pytest.raises(StreamError, match="api_error"):
        gather(await client.read_cut("claude"))


async def test_a_stream_without_its_last_event_is_closed(client, upstream):
    body = b"".join(events()[:-1])
    upstream.reply = STREAM + body
    reply = await client.post("claude", stream=True)
    assert reply.content == body + b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


async def test_an_error_before_anything_else_is_an_http_error(client, upstream):
    upstream.reply = STREAM + event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    reply = await client.post("claude", stream=True)
    assert reply.status_code == 529
    assert reply.json()["error"]["type"] == "overloaded_error"


# -- errors of the vendor

REFUSALS = [
    (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    (404, "not_found_error", "model: claude-real"),
    (413, "request_too_large", "Request exceeds the maximum size"),
    (429, "rate_limit_error", "This request would exceed your rate limit"),
    (500, "api_error", "Internal server error"),
    (529, "overloaded_error", "Overloaded"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "kind", "message"), REFUSALS)
async def test_the_vendors_error_bodies_pass_unmodified(client, upstream, status, kind, message, stream):
    upstream.reply = refuse(status, kind, message, "retry-after: 7\r\nx-should-retry: true\r\nx-internal: a\r\n")
    reply = await client.post("claude", stream=stream)
    assert reply.status_code == status
    assert reply.content == upstream.reply.partition(b"\r\n\r\n")[2]
    assert (reply.headers["retry-after"], reply.headers["x-should-retry"]) == ("7", "true")
    assert reply.headers["request-id"]
    assert "x-internal" not in reply.headers


@pytest.mark.parametrize(("status", "kind"), [(401, "authentication_error"), (403, "permission_error")])
async def test_a_fault_of_our_own_credential_is_not_the_callers(client, upstream, status, kind):
    upstream.reply = refuse(status, kind, f"invalid x-api-key {KEY}")
    reply = await client.post("claude")
    assert (reply.status_code, reply.json()["error"]["type"]) == (502, "api_error")
    assert KEY not in reply.text


async def test_a_page_of_a_proxy_is_not_passed_on(client, upstream):
    upstream.reply = b"HTTP/1.1 502 Bad\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>nginx</html>"
    reply = await client.post("claude")
    assert (reply.status_code, reply.json()["error"]["type"]) == (502, "api_error")


def test_every_scenario_is_one_of_the_double():
    assert set(SCENARIOS) <= {"text", *CONTENTS}
