"""Counting tokens: by Anthropic itself where it answers, else estimated; and the list of models for both SDKs."""

import json

import pytest
from anthropic_double import error_body
from chat_canned import WHOLE, Canned, canned
from chat_steps import settings_of as chat_settings
from message_steps import HELLO, Client
from openai_double import OpenAIDouble
from test_messages_errors import check_error
from test_messages_passthrough import refuse, settings_of

from penstock.domain.api_keys import Scope

PATHS = ("/v1/messages/count_tokens", "/llm/v1/messages/count_tokens", "/llm/messages/count_tokens")


@pytest.fixture
async def upstream():
    async with canned() as upstream:
        yield upstream


@pytest.fixture
async def native(start, upstream: Canned) -> Client:
    server = await start(settings_of(upstream))
    return Client(server, await server.new_key())


@pytest.fixture
async def translated(start):
    async with OpenAIDouble() as double:
        server = await start(chat_settings(double))
        yield Client(server, await server.new_key())


@pytest.mark.parametrize("path", PATHS)
async def test_anthropic_counts_itself(native, upstream, path):
    upstream.reply = WHOLE + b'{ "input_tokens": 2095 }'
    reply = await native.post("claude", path=path, max_tokens=None, headers={"anthropic-beta": "a,b"})
    assert reply.content == b'{ "input_tokens": 2095 }'
    assert reply.headers["request-id"]
    head, _, body = upstream.requests[-1].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/messages/count_tokens ")
    assert b"anthropic-beta: a,b" in head
    assert json.loads(body) == {"model": "claude-real", "messages": HELLO}


async def test_its_refusal_passes_unmodified(native, upstream):
    upstream.reply = refuse(400, "invalid_request_error", "tools.0.name: too long")
    reply = await native.post("claude", path=PATHS[0], max_tokens=None)
    assert (reply.status_code, reply.json()) == (400, error_body("invalid_request_error", "tools.0.name: too long"))


async def test_another_vendors_tokens_are_estimated(translated):
    few = (await translated.post(path=PATHS[0], max_tokens=None)).json()
    many = (await translated.post(path=PATHS[0], max_tokens=None, system="word " * 1000)).json()
    assert 0 < few["input_tokens"] < 100
    assert 1000 < many["input_tokens"] < 2000


async def test_the_data_of_an_image_does_not_count_as_text(translated):
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 50_000}
    turns = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    assert (await translated.post(path=PATHS[0], messages=turns)).json()["input_tokens"] < 2_000


async def test_keys_and_errors(translated):
    check_error(await translated.post(path=PATHS[0], headers={"x-api-key": None}), 401, "authentication_error")
    check_error(await translated.post("unknown", path=PATHS[0]), 404, "not_found_error")
    check_error(await translated.post(path=PATHS[0], messages=[]), 400, "invalid_request_error")
    reader = await translated.server.new_key(scopes=[Scope.READ])
    check_error(await translated.post(path=PATHS[0], headers={"x-api-key": reader}), 403, "permission_error")


async def test_models_satisfy_both_sdks(translated):
    listed = (await translated.send("/v1/models?limit=1000", b"", method="GET")).json()
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert (listed["first_id"], listed["last_id"]) == (listed["data"][0]["id"], listed["data"][-1]["id"])
    one = (await translated.send("/v1/models/plain", b"", method="GET")).json()
    assert one in listed["data"]
    assert (one["object"], one["type"], one["display_name"]) == ("model", "model", "plain")
    assert isinstance(one["created"], int)
    assert one["created_at"].endswith("Z")
