"""Nothing that a vendor writes brings our credential or its address to callers, records, the journal or logs."""

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import chat_canned
import httpx
import pytest
from chat_canned import Canned
from chat_steps import HELLO
from conftest import Server

from penstock.settings.tables import load

KEY = "sk-canned/0123456789+abcdef"
NEXT_KEY = "sk-rotated/9876543210+fedcba"
CHUNK: dict[str, Any] = {
    "id": "c-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "Hi"}, "logprobs": None, "finish_reason": None}],
}


def forms_of(key: str) -> list[str]:
    """The key, and how it looks inside of headers and addresses."""
    basic = [base64.b64encode(text.encode()).decode().rstrip("=")[:-1] for text in (key, f"{key}:", f"user:{key}")]
    return [key, quote(key, safe=""), key[:14], basic[0], *basic[1:]]


def settings_of(upstream: Canned, key: str) -> str:
    base_url = upstream.url.replace("127.0.0.1", "localhost")
    vendor = f'[vendors.canned]\ntype = "openai_compatible"\napi_key = "{key}"\nbase_url = "{base_url}"\n'
    return f'{vendor}[[models]]\nid = "canned"\nkind = "chat"\nvendor = "canned"\n'


def leak(text: str, status: int = 400, **more: Any) -> bytes:
    """An error with the text in every place that has a name."""
    error = {"message": f"Bad: {text}.", "code": text, "param": text, "type": text, "details": [{"loc": text}]}
    body = json.dumps({"error": error | more}).encode()
    head = (
        f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\nx-request-id: {text}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


async def ask(server: Server, *, stream: bool) -> httpx.Response:
    body = {"model": "canned", "messages": HELLO, "stream": stream}
    return await server.client.post("/llm/chat/completions", json=body)


async def everything_kept(server: Server) -> bytes:
    """What the store and the journal hold of it."""
    await server.gateway.usage_writer.flush()
    return await asyncio.to_thread(_read_all, server.gateway.settings.data)


def _read_all(folder: Path) -> bytes:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 413, 422])
async def test_no_field_of_a_refusal_leaks_the_key_or_the_host(start, caplog, status, stream):
    caplog.set_level(logging.DEBUG)
    async with chat_canned.canned() as upstream:
        server = await start(settings_of(upstream, KEY))
        port = upstream.url.rpartition(":")[2].removesuffix("/v1")
        for text in (
            *forms_of(KEY),
            f"localhost:{port}",
            "localhost",
            f"127.0.0.1:{port}",
            f"http://localhost:{port}/v1",
        ):
            upstream.reply = leak(text, status)
            response = await ask(server, stream=stream)
            told = response.json()["error"]
            assert response.status_code == 400
            assert (told["code"], told["param"], told["type"]) == ("invalid_value", None, "invalid_request_error")
            assert told["message"].startswith("Bad: ")
            assert text not in response.text + str(response.headers)
        kept, logged = await everything_kept(server), str([vars(record) for record in caplog.records])
        for form in forms_of(KEY):
            assert form.encode() not in kept
            assert form not in logged


async def test_an_error_in_a_stream_leaks_nothing(start):
    async with chat_canned.canned() as upstream:
        server = await start(settings_of(upstream, KEY))
        for text in (*forms_of(KEY), "localhost"):
            error = {"message": f"Bad: {text}", "code": text, "param": text, "type": "invalid_request_error"}
            events = [CHUNK, {"error": error}]
            upstream.reply = chat_canned.STREAM + b"".join(
                b"data: %b\n\n" % json.dumps(each).encode() for each in events
            )
            response = await ask(server, stream=True)
            assert '"Hi"' in response.text
            assert '"Bad: ' in response.text
            assert text not in response.text
        kept = await everything_kept(server)
        assert not [form for form in forms_of(KEY) if form.encode() in kept]


@pytest.mark.parametrize(
    ("code", "param", "kept"),
    [
        ("model_not_ready", "messages[0].content", ("model_not_ready", "messages[0].content")),
        ("Throttling.RateQuota", "messages.[1].role", ("Throttling.RateQuota", "messages.[1].role")),
        ("not a code", "not a param", ("invalid_value", None)),
        ("c" * 65, "p" * 129, ("invalid_value", None)),
        ("<script>", "a\nb", ("invalid_value", None)),
        (["code"], {"param": 1}, ("invalid_value", None)),
        ("", "", ("invalid_value", None)),
    ],
)
async def test_a_code_and_a_param_pass_if_they_look_like_one(start, code, param, kept):
    async with chat_canned.canned() as upstream:
        server = await start(settings_of(upstream, KEY))
        error = {"error": {"message": "no", "code": code, "param": param}}
        upstream.reply = b"HTTP/1.1 400 No\r\nconnection: close\r\n\r\n" + json.dumps(error).encode()
        told = (await ask(server, stream=False)).json()["error"]
        assert (told["code"], told["param"]) == kept


async def test_a_key_from_a_file_is_scrubbed_after_it_was_replaced(start, tmp_path):
    secret = tmp_path / "upstream.key"
    secret.write_text(KEY + "\n")
    async with chat_canned.canned() as upstream:
        server = await start(settings_of(upstream, f"file:{secret}"))
        gateway = server.gateway
        secret.write_text(NEXT_KEY + "\n")
        config = Path(gateway.settings.data).parent / "penstock.toml"
        await gateway.reload(load(config, {}, {"data": gateway.settings.data}))
        for key in (KEY, NEXT_KEY):  # a reply to the former one may still be under way
            for form in forms_of(key):
                upstream.reply = leak(form)
                response = await ask(server, stream=False)
                assert response.status_code == 400
                assert form not in response.text
        assert NEXT_KEY.encode() in upstream.requests[-1]
