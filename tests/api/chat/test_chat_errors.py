"""Every way a chat can fail, as the official Python SDK tells it: class, code, param, request id, and retries."""

import asyncio
import json
import time
from typing import Any

import chat_canned
import httpx
import openai
import pytest
from chat_steps import HELLO, chatting, settings_of
from conftest import running
from openai_double import KEY
from openai_replies import GREETING, pieces_of
from plain import NO_TLS

from penstock.domain.api_keys import Scope
from penstock.settings.tables import load


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


async def fail(chat, error: type[openai.APIError], model: str = "plain", **fields: Any) -> Any:
    """The error that this request raises."""
    with pytest.raises(error) as caught:
        await chat.create(model, **fields)
    return caught.value


def check_shape(error: openai.APIStatusError) -> None:
    """The four keys of every error, its id, and that JSON is what was sent."""
    assert error.response.headers["content-type"] == "application/json"
    assert error.response.json()["error"].keys() >= {"message", "type", "param", "code"}
    assert error.request_id
    assert error.request_id == error.response.headers["x-request-id"]


# -- the caller's fault

BAD: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"n": 200}, "integer_above_max_value", "n"),
    ({"n": 0}, "integer_below_min_value", "n"),
    ({"n": True}, "invalid_type", "n"),
    ({"n": 1.5}, "invalid_type", "n"),
    ({"temperature": 2.5}, "decimal_above_max_value", "temperature"),
    ({"temperature": "hot"}, "invalid_type", "temperature"),
    ({"top_p": -0.1}, "decimal_below_min_value", "top_p"),
    ({"top_logprobs": 21}, "integer_above_max_value", "top_logprobs"),
    ({"max_tokens": 0}, "integer_below_min_value", "max_tokens"),
    ({"stop": list("abcde")}, "array_above_max_length", "stop"),
    ({"stop": [1]}, "invalid_type", "stop[0]"),
    ({"stream": "yes"}, "invalid_type", "stream"),
    ({"tools": {}}, "invalid_type", "tools"),
    ({"response_format": "json"}, "invalid_type", "response_format"),
    ({"model": 7}, "invalid_type", "model"),
    ({"model": None}, "missing_required_parameter", "model"),
    ({"messages": None}, "missing_required_parameter", "messages"),
    ({"messages": []}, "empty_array", "messages"),
    ({"messages": "hello"}, "invalid_type", "messages"),
    ({"messages": ["hello"]}, "invalid_type", "messages[0]"),
    ({"messages": [{"content": "hello"}]}, "missing_required_parameter", "messages[0].role"),
    ({"messages": [{"role": 7, "content": "hello"}]}, "invalid_type", "messages[0].role"),
    ({"messages": [*HELLO, {"role": "robot", "content": "hello"}]}, "invalid_value", "messages[1].role"),
    ({"stream_options": {"include_usage": True}}, "invalid_value", "stream_options"),
    ({"stream": True, "stream_options": []}, "invalid_type", "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "invalid_type", "stream_options.include_usage"),
]


@pytest.mark.parametrize(("fields", "code", "param"), BAD, ids=lambda value: str(value)[:40])
async def test_bad_requests(chat, fields, code, param):
    error = await fail(chat, openai.BadRequestError, extra_body=fields)
    assert (error.code, error.param, error.type) == (code, param, "invalid_request_error")
    assert error.response.headers["x-should-retry"] == "false"
    assert not chat.double.requests
    check_shape(error)


async def test_a_bound_is_told_in_the_words_that_clients_know(chat):
    error = await fail(chat, openai.BadRequestError, n=130)
    told = "Invalid 'n': integer above maximum value. Expected a value <= 128, but got 130 instead."
    assert error.body["message"] == told


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_upstream_finds_wrong_is_passed_on(chat, stream):
    error = await fail(chat, openai.BadRequestError, "status:400", stream=stream)
    assert (error.code, error.param, error.type) == ("invalid_value", "temperature", "invalid_request_error")
    assert "Invalid value for 'temperature'." in error.message
    check_shape(error)
    unknown = await fail(chat, openai.BadRequestError, "strict", stream=stream, extra_body={"top_k": 4})
    assert "Unrecognized request argument supplied: top_k" in unknown.message
    orphan = [*HELLO, {"role": "tool", "tool_call_id": "call_1", "content": "?"}]
    unpaired = await fail(chat, openai.BadRequestError, "plain", stream=stream, messages=orphan)
    assert unpaired.param == "messages.[1].role"
    assert "preceeding message with 'tool_calls'" in unpaired.message
    too_long = await fail(chat, openai.BadRequestError, "context", stream=stream)
    assert (too_long.code, too_long.param) == ("context_length_exceeded", "messages")
    assert "This model's maximum context length is" in too_long.message
    for model in ("vllm-error", "vllm-old-error"):  # numbers for codes, and no wrapping
        check_shape(await fail(chat, openai.BadRequestError, model, stream=stream))


async def test_keys_that_do_not_open(chat):
    for key, code in [("psk_wrong", "invalid_api_key"), (chat.key[:-1] + "!", "invalid_api_key")]:
        client = await chat.sign_in(api_key=key)
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.chat.completions.create(model="plain", messages=HELLO)
        assert (caught.value.code, caught.value.type) == (code, "invalid_request_error")
        assert "Incorrect API key provided" in caught.value.message
        assert caught.value.response.headers["www-authenticate"] == "Bearer"
        check_shape(caught.value)
    async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as nobody:
        for method, path in [("POST", "/llm/chat/completions"), ("GET", "/llm/models"), ("GET", "/llm/models/plain")]:
            response = await nobody.request(method, chat.server.url + path)
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "missing_api_key"
            assert "You didn't provide an API key" in response.json()["error"]["message"]
    assert not chat.double.requests


@pytest.mark.parametrize("options", [{"models": frozenset({"echo"})}, {"scopes": frozenset({Scope.GENERATE})}])
async def test_keys_that_may_not(chat, options):
    client = await chat.sign_in(api_key=await chat.server.new_key(**options))
    with pytest.raises(openai.PermissionDeniedError) as caught:
        await client.chat.completions.create(model="plain", messages=HELLO)
    assert caught.value.type == "permission_error"
    check_shape(caught.value)
    assert not chat.double.requests


@pytest.mark.parametrize("model", ["nobody", "org/nobody", "plain ", "PLAIN", "sim_text_to_video"])
async def test_models_that_do_not_exist(chat, model):
    error = await fail(chat, openai.NotFoundError, model)
    assert (error.code, error.param, error.type) == ("model_not_found", "model", "invalid_request_error")
    assert f"The model `{model}` does not exist or you do not have access to it." in error.message
    check_shape(error)


# -- the upstream's fault


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("status:500", 502, "upstream_error"),
        ("status:404", 502, "upstream_error"),
        ("status:403", 502, "upstream_auth"),
        ("quota", 502, "upstream_auth"),
        ("html-502", 502, "upstream_error"),
        ("drop", 502, "upstream_error"),
        ("empty", 502, "upstream_error"),
        ("error-first", 502, "upstream_error"),
        ("status:503", 503, "overloaded"),
        ("llamacpp-loading", 503, "overloaded"),
    ],
)
async def test_upstreams_that_fail(chat, model, status, code, stream):
    error = await fail(chat, openai.InternalServerError, model, stream=stream)
    assert (error.status_code, error.code, error.type, error.param) == (status, code, "server_error", None)
    check_shape(error)
    assert "nginx" not in error.response.text
    assert len(chat.double.requests) == 1


@pytest.mark.parametrize("model", ["cut", "clean-cut", "not-json"])
async def test_whole_answers_that_break_off(chat, model):
    error = await fail(chat, openai.InternalServerError, model)
    assert (error.status_code, error.code) == (502, "upstream_error")
    check_shape(error)


async def test_an_upstream_that_cannot_be_reached(start):
    async with chatting(start, vendor="connect_seconds = 1.0") as chat:
        await chat.double.close()
        error = await fail(chat, openai.InternalServerError)
        assert (error.status_code, error.code) == (502, "upstream_error")
        assert str(chat.double.port) not in error.message


async def test_an_upstream_that_does_not_begin_in_time(start):
    options = "first_byte_seconds = 0.2\ntotal_seconds = 2.0"
    now = asyncio.get_running_loop().time
    async with chatting(start, vendor=options) as chat:
        for model, stream in [("hang", True), ("hang", False), ("silent:30", True), ("slow:0.05", False)]:
            begun = now()
            if model == "slow:0.05":
                await chat.create(model, stream=stream)  # slower than a first byte, faster than a whole answer
                continue
            error = await fail(chat, openai.InternalServerError, model, stream=stream)
            assert (error.status_code, error.code) == (504, "upstream_timeout")
            assert 0.15 < now() - begun < 20
            check_shape(error)
        await chat.double.until(lambda double: len(double.gone) == 3 and not double.open)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_rate_limit(chat, stream):
    error = await fail(chat, openai.RateLimitError, "retry-after:1", stream=stream)
    assert (error.code, error.param) == ("rate_limit_exceeded", None)
    assert error.response.headers["retry-after"] == "1"
    assert error.response.headers["x-should-retry"] == "true"
    check_shape(error)
    again = await fail(chat, openai.RateLimitError, "retry-after:1", stream=stream)  # the upstream is left alone
    assert again.response.headers["retry-after"] == "1"
    assert len(chat.double.requests) == 1


# -- streams that break after they have begun


async def break_off(chat, model: str) -> tuple[list[Any], openai.APIError]:
    """What came of a stream, and the error at its end."""
    chunks: list[Any] = []
    try:
        async for chunk in await chat.create(model, stream=True):
            chunks.append(chunk)  # noqa: PERF401 - what came before the error counts
    except openai.APIError as error:
        return chunks, error
    pytest.fail("the stream ended as if it were whole")


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid"])
async def test_streams_that_break_off(chat, model):
    chunks, error = await break_off(chat, model)
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["", *pieces_of(GREETING)[:2]]
    assert all(chunk.choices[0].finish_reason is None for chunk in chunks)
    assert (error.code, error.type) == ("upstream_error", "server_error")
    assert KEY not in str(error.body)


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid"])
@pytest.mark.parametrize(("price", "charged"), [('price = {output_per_million = "2"}', True), ("", None)])
async def test_a_stream_that_breaks_off_says_that_it_is_charged(start, model, price, charged):
    async with chatting(start, price=price) as chat:
        _, error = await break_off(chat, model)
        assert error.body["charged"] is charged
        assert error.code == "upstream_error"


async def test_a_stream_that_falls_silent(start):
    async with chatting(start, vendor="idle_seconds = 0.3") as chat:
        chunks, error = await break_off(chat, "think:30")
        assert len(chunks) == 1
        assert error.code == "upstream_timeout"
        await chat.double.until(lambda double: double.gone and not double.open)


async def test_a_gateway_that_is_stopped_does_not_end_streams_as_if_they_were_whole(start, tmp_path):
    async with chatting(start) as chat:
        config = tmp_path / "other.toml"
        config.write_text(settings_of(chat.double))
        async with running(load(config, {}, {"data": tmp_path / "other"})) as other:
            client = await chat.sign_in(base_url=f"{other.url}/llm", api_key=await other.new_key())
            stream = await client.chat.completions.create(model="think:30", messages=HELLO, stream=True)
            await anext(stream)
            waiting = asyncio.create_task(anext(stream))
        with pytest.raises(openai.APIError):
            await waiting
        await chat.double.until(lambda double: not double.open)


async def test_a_gateway_that_is_stopped_does_not_say_that_an_open_request_is_free(start, tmp_path):
    async with chatting(start) as chat:
        config = tmp_path / "other.toml"
        config.write_text(settings_of(chat.double))
        async with running(load(config, {}, {"data": tmp_path / "other"})) as other:
            client = await chat.sign_in(base_url=f"{other.url}/llm", api_key=await other.new_key())
            waiting = asyncio.create_task(client.chat.completions.create(model="hang", messages=HELLO))
            await chat.double.until(lambda double: double.open)
        with pytest.raises(openai.InternalServerError) as refused:
            await waiting
        assert (refused.value.status_code, refused.value.body["charged"]) == (503, None)


# -- request ids and retries


async def test_every_answer_has_a_request_id(chat):
    completion = await chat.create()
    assert completion._request_id
    stream = await chat.create(stream=True)
    assert stream.response.headers["x-request-id"]
    await stream.close()
    assert (await chat.client.models.list())._request_id
    given = await chat.create(extra_headers={"x-request-id": "my-own-id-1234"})
    assert given._request_id == "my-own-id-1234"


async def test_retries_that_help(chat):
    client = await chat.sign_in(max_retries=2)
    chat.double.queue = ["retry-after:1", "status:503"]
    begun = time.monotonic()
    completion = await client.chat.completions.create(model="plain", messages=HELLO)
    assert completion.choices[0].message.content == GREETING
    assert len(chat.double.requests) == 3
    assert time.monotonic() - begun >= 1
    chat.double.queue = ["error-first", "drop"]
    stream = await client.chat.completions.create(model="echo", messages=HELLO, stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "Hello"
    assert len(chat.double.requests) == 6


@pytest.mark.parametrize("model", ["401", "quota", "status:403", "status:400", "context"])
async def test_what_cannot_get_better_is_not_retried(chat, model):
    client = await chat.sign_in(max_retries=2)
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(model=model, messages=HELLO)
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert len(chat.double.requests) == 1


async def test_nothing_is_retried_after_the_first_byte(chat):
    client = await chat.sign_in(max_retries=2)
    with pytest.raises(openai.APIError):
        [chunk async for chunk in await client.chat.completions.create(model="cut", messages=HELLO, stream=True)]
    assert len(chat.double.requests) == 1


# -- what neither parser nor vendor says well


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (r'{"model": "plain", "messages": [{"role": "user", "content": "\ud800"}]}', "messages[0].content"),
        (r'{"model": "plain", "messages": [{"role": "user", "content": "a\uDC00b"}]}', "messages[0].content"),
        (r'{"model": "plain", "messages": [{"role": "user", "content": "\ud83d\ud83d\ude00"}]}', "messages[0].content"),
        (r'{"model": "\ud800", "messages": [{"role": "user", "content": "a"}]}', "model"),
        (
            r'{"model": "plain", "messages": [{"role": "user", "content": [{"text": "\udfff"}]}]}',
            "messages[0].content[0].text",
        ),
        (r'{"model": "plain", "messages": [{"role": "user", "content": "a"}], "stop": ["a", "\ud800"]}', "stop[1]"),
    ],
)
async def test_half_a_surrogate_pair_is_named(chat, body, param):
    headers = {"content-type": "application/json"}
    response = await chat.server.client.post("/llm/chat/completions", content=body, headers=headers)
    told = response.json()["error"]
    assert (response.status_code, told["code"], told["param"]) == (400, "invalid_value", param)
    assert "surrogate" in told["message"]
    assert not chat.double.requests


async def test_whole_pairs_and_escaped_backslashes_pass(chat):
    body = r'{"model": "plain", "messages": [{"role": "user", "content": "\ud83d\ude00 \\ud800"}]}'
    headers = {"content-type": "application/json"}
    assert (await chat.server.client.post("/llm/chat/completions", content=body, headers=headers)).is_success


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("said", "message", "param"),
    [
        ({"detail": "The input is too loud"}, "The input is too loud", None),
        (
            {"detail": [{"loc": ["body", "messages", 0, "content"], "msg": "Field required", "type": "missing"}]},
            "messages[0].content: Field required",
            "messages[0].content",
        ),
        (
            {"detail": [{"loc": ["body", "n"], "msg": "one"}, {"loc": ["body", "m"], "msg": "two"}]},
            "n: one; m: two",
            "n",
        ),
        (["The input is too loud", "and too long"], "The input is too loud; and too long", None),
        ({"errors": [{"message": "The input is too loud"}]}, "The input is too loud", None),
        ({"error": ["The input is too loud"]}, "The input is too loud", None),
    ],
    ids=str,
)
async def test_a_refusal_of_another_shape_keeps_its_text(start, said, message, param, stream):
    async with chat_canned.canned() as upstream:
        upstream.reply = b"HTTP/1.1 422 No\r\nconnection: close\r\n\r\n" + json.dumps(said).encode()
        server = await start(chat_canned.settings_of(upstream))
        body = {"model": "canned", "messages": HELLO, "stream": stream}
        response = await server.client.post("/llm/chat/completions", json=body)
        told = response.json()["error"]
        assert (response.status_code, told["message"], told["param"]) == (400, message, param)


@pytest.mark.parametrize("status", [429, 503, 500])
async def test_nobody_is_told_to_wait_for_more_than_an_hour(start, status):
    async with chat_canned.canned() as upstream:
        upstream.reply = f"HTTP/1.1 {status} No\r\nretry-after: 86400\r\nconnection: close\r\n\r\n{{}}".encode()
        server = await start(chat_canned.settings_of(upstream))
        response = await server.client.post("/llm/chat/completions", json={"model": "canned", "messages": HELLO})
        assert response.headers["retry-after"] == "3600"
