"""Errors of the Messages door: everywhere in Anthropic's shape, with its types, its statuses and the request's id."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from chat_steps import settings_of
from conftest import Start
from message_steps import HELLO, Client, StreamError, gather
from openai_double import OpenAIDouble

from penstock.domain.api_keys import Scope

LIMITS = "[server]\nmax_body_mb = 1\n"


@pytest.fixture
async def double() -> AsyncGenerator[OpenAIDouble]:
    async with OpenAIDouble() as double:
        yield double


@pytest.fixture
async def client(start: Start, double: OpenAIDouble) -> Client:
    server = await start(settings_of(double))
    return Client(server, await server.new_key())


def check_error(reply: httpx.Response, status: int, kind: str) -> str:
    """Check the shape of an error, and return its message."""
    body = reply.json()
    assert (reply.status_code, body["error"]["type"]) == (status, kind), reply.text
    assert body["type"] == "error"
    assert body["request_id"] == reply.headers["request-id"] == reply.headers["x-request-id"]
    assert reply.headers["content-type"] == "application/json"
    return body["error"]["message"]


KEPT_FILE = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"model": 7}, "model"),
    ({"model": ""}, "model"),
    ({"max_tokens": None}, "max_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": "many"}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": [*HELLO, {"role": "robot", "content": "x"}]}, "messages.1.role"),
    ({"messages": [{"content": "x"}]}, "messages.0.role"),
    ({"stream": "yes"}, "stream"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}]},
        "messages.0.content.0",
    ),
    ({"tools": [{"description": "no name"}]}, "tools.0.name"),
]


@pytest.mark.parametrize(("fields", "place"), BAD, ids=lambda value: str(value)[:40])
async def test_bad_requests_name_the_field(client, double, fields, place):
    message = check_error(await client.post(**fields), 400, "invalid_request_error")
    assert message.startswith(place), message
    assert not double.requests


async def test_a_body_that_is_not_json(client):
    assert "JSON" in check_error(await client.send("/v1/messages", b"{"), 400, "invalid_request_error")


async def test_another_media_type(client):
    reply = await client.send("/v1/messages", b"{}", {"content-type": "text/plain"})
    check_error(reply, 415, "invalid_request_error")


async def test_keys_by_x_api_key_and_bearer(client):
    bearer = {"x-api-key": None, "authorization": f"Bearer {client.key}"}
    assert (await client.post(headers=bearer)).status_code == 200
    assert (await client.post()).status_code == 200
    message = check_error(await client.post(headers={"x-api-key": None}), 401, "authentication_error")
    assert "`Authorization: Bearer" in message
    assert "`x-api-key" in message
    check_error(await client.post(headers={"x-api-key": "psk_wrong"}), 401, "authentication_error")


async def test_scopes_and_models(client):
    key = await client.server.new_key(scopes=[Scope.GENERATE])
    check_error(await client.post(headers={"x-api-key": key}), 403, "permission_error")
    check_error(await client.post("unknown"), 404, "not_found_error")


@pytest.mark.parametrize("path", ["/v1/messages", "/llm/v1/messages", "/llm/messages", "//v1/messages"])
async def test_paths(client, path):
    assert (await client.post(path=f"{path}?beta=true")).status_code == 200
    check_error(await client.send(path, b"", method="GET"), 405, "invalid_request_error")
    check_error(await client.send(f"{path}/batches", b"{}"), 404, "not_found_error")


async def test_a_body_that_is_too_large(start, double):
    server = await start(settings_of(double, more=LIMITS))
    client = Client(server, await server.new_key())
    check_error(await client.post(system="x" * 2_000_000), 413, "request_too_large")


REFUSALS = [
    ("status:400", 400, "invalid_request_error"),
    ("status:429", 429, "rate_limit_error"),
    ("status:500", 502, "api_error"),
    ("status:503", 529, "overloaded_error"),
    ("401", 502, "api_error"),
    ("error-first", 502, "api_error"),
    ("drop", 502, "api_error"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "status", "kind"), REFUSALS)
async def test_a_vendors_refusal_in_our_words(client, model, status, kind, stream):
    check_error(await client.post(model, stream=stream), status, kind)


async def test_retry_after(client):
    reply = await client.post("retry-after:1")
    check_error(reply, 429, "rate_limit_error")
    assert reply.headers["retry-after"] == "1"


async def test_a_conversation_that_is_too_long_is_named_as_clients_recognise_it(client):
    message = check_error(await client.post("context"), 400, "invalid_request_error")
    assert message.startswith("prompt is too long: ")


async def test_an_empty_budget(start, double):
    server = await start(settings_of(double, price='price = {input_per_million = "1", output_per_million = "1"}'))
    key = await server.new_key(budgets={"total": "0.000001"})
    check_error(await Client(server, key).post(), 402, "billing_error")


@pytest.mark.parametrize("model", ["cut", "clean-cut"])
async def test_a_cut_stream_ends_with_an_error_event(client, model):
    with pytest.raises(StreamError, match="api_error"):
        gather(await client.read_cut(model))


async def test_an_error_in_the_stream(client):
    reply = await client.post("error-mid", stream=True)
    with pytest.raises(StreamError, match="_error"):
        gather(reply.content)
