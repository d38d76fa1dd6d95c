"""The built-in chat server as a client sees it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from plain import NO_TLS

from penstock_engines.llama.llama_server import LlamaOptions, LlamaServer

CONTEXT = 512


@pytest.fixture(scope="module")
def server(weights: Path) -> Iterator[LlamaServer]:
    server = LlamaServer(LlamaOptions(gguf=weights / "smollm2-135m.gguf", context=CONTEXT, slots=2, threads=1))
    server.start()
    yield server
    server.close()


def say(server: LlamaServer, text: str = "Hi", **fields: Any) -> httpx.Response:
    """One chat completion from the server that is up now."""
    return post(server, {"messages": [{"role": "user", "content": text}], "max_tokens": 4, **fields}, server.key)


def post(server: LlamaServer, body: dict[str, Any], key: str | None) -> httpx.Response:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    with httpx.Client(trust_env=False, verify=NO_TLS, timeout=300) as client:
        return client.post(f"{server.address()}/chat/completions", json=body, headers=headers)


def obeying(schema: dict[str, Any]) -> dict[str, Any]:
    """Return fields by which an answer fits a finite schema, with room for all the white space that is allowed."""
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}, "max_tokens": 200}


def test_it_answers_and_tells_no_path(server: LlamaServer):
    response = say(server, "What is the capital of France?", **obeying({"const": "Paris"}))
    assert response.status_code == 200
    answer = response.json()
    assert answer["model"] == "smollm2-135m"
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert json.loads(answer["choices"][0]["message"]["content"]) == "Paris"
    assert say(server, max_tokens=3, ignore_eos=True).json()["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("key", [None, "wrong"])
def test_nobody_else_gets_an_answer(server: LlamaServer, key: str | None):
    response = post(server, {"messages": [{"role": "user", "content": "Hi"}]}, key)
    assert response.status_code == 401


@pytest.mark.parametrize("path", ["/", "/slots", "/metrics"])
def test_pages_and_gauges_are_switched_off(server: LlamaServer, path: str):
    url = str(server.address()).removesuffix("/v1") + path
    response = httpx.get(
        url, headers={"authorization": f"Bearer {server.key}"}, trust_env=False, verify=NO_TLS, timeout=300
    )
    assert response.status_code in {404, 501}


def test_it_streams_as_openai_does(server: LlamaServer):
    response = say(server, stream=True, stream_options={"include_usage": True}, max_tokens=3, ignore_eos=True)
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("stream", [False, True])
def test_what_exceeds_the_context_is_refused(server: LlamaServer, stream: bool):
    response = say(server, "word " * (CONTEXT + 50), stream=stream)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == CONTEXT  # each conversation has the whole of it


def test_a_schema_is_obeyed(server: LlamaServer):
    schema = {"type": "object", "properties": {"age": {"enum": [7, 8]}}, "required": ["age"]}
    response = say(server, "A person", **obeying(schema))
    assert json.loads(response.json()["choices"][0]["message"]["content"])["age"] in {7, 8}


def test_the_same_seed_says_the_same(server: LlamaServer):
    _, first, second = (  # before the first its conversation is read; from then on it is known, which rounds otherwise
        say(server, "Say a word.", seed=5, temperature=1, max_tokens=8).json()["choices"][0]["message"]["content"]
        for _ in range(3)
    )
    assert first == second


def test_a_conversation_is_not_read_twice(server: LlamaServer):
    story = "The fox met a bear in the wood. " * 4
    say(server, story)
    usage = say(server, story + "And then?").json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] // 2


def test_a_last_word_of_the_assistant_is_not_continued(server: LlamaServer):
    body = {
        "messages": [{"role": "user", "content": "Who are you?"}, {"role": "assistant", "content": "My name is"}],
        **obeying({"const": "Ada"}),
    }
    content = post(server, body, server.key).json()["choices"][0]["message"]["content"]
    assert json.loads(content) == "Ada"
