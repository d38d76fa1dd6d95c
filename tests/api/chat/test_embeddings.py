"""Embeddings through a gateway: every form of input and output, odd replies, limits, money and refusals."""

import asyncio
import base64
import struct
import time
from typing import Any

import openai
import pytest
from conftest import Server
from embedding_double import DIMENSIONS, KEY, pack, vector_of
from embedding_steps import PATH, Embedding, embedding, sdk_of

from penstock.domain.chat import Usage
from penstock.domain.usage import ChatOutcome, Completion
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import completion_rows

BOTH = pytest.mark.parametrize("encoding", ["float", "base64"])


@pytest.fixture
async def embed(start):
    async with embedding(start) as embed:
        yield embed


def unpack(text: str) -> list[float]:
    data = base64.b64decode(text)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


async def records_of(server: Server, count: int) -> list[Completion]:
    """The usage records, as soon as there are so many; oldest first."""
    database = server.gateway.database
    account_id = await database.write(key_rows.account_id, "default", time.time())
    async with asyncio.timeout(60):
        while len(found := await database.read(completion_rows.of_account, account_id, 100)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert len(found) == count
    return found[::-1]


# -- forms


@pytest.mark.parametrize("base", ["/llm", "/v1", "/llm/v1"])
async def test_the_sdk_gets_equal_vectors_by_default_and_as_floats(embed: Embedding, base: str):
    texts = ["one", "two", "three"]
    async with sdk_of(embed.server, await embed.server.new_key(), base) as client:
        usual = await client.embeddings.create(model="plain", input=texts)
        numbers = await client.embeddings.create(model="plain", input=texts, encoding_format="float")
    assert [seen.body["encoding_format"] for seen in embed.double.requests] == ["base64", "float"]
    assert [item.embedding for item in usual.data] == [vector_of(text) for text in texts]
    assert [item.embedding for item in numbers.data] == [item.embedding for item in usual.data]
    assert (usual.usage.prompt_tokens, usual.usage.total_tokens, usual.model) == (15, 15, "plain-001")


@pytest.mark.parametrize("given", ["text", ["text"], ["one", "two"], [1, 2, 3], [[1, 2], [3]]], ids=str)
async def test_every_form_of_input_reaches_the_vendor(embed: Embedding, given: Any):
    found = await embed.vectors(given, dimensions=4, user="u", truncate_prompt_tokens=9)
    seen = embed.double.requests[0]
    assert seen.body == {
        "model": "plain",
        "input": given,
        "dimensions": 4,
        "user": "u",
        "truncate_prompt_tokens": 9,
    }
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    texts = given if isinstance(given, list) and not isinstance(given[0], int) else [given]
    assert found == [vector_of(text, 4) for text in texts]


async def test_a_good_reply_passes_byte_for_byte(embed: Embedding):
    response = await embed.post(["one", "two"])
    assert response.json()["extra"] == "kept"
    assert response.headers["x-penstock-vendor"] == "upstream"
    assert response.headers["x-penstock-cost"] == "0.01"
    assert float(response.headers["x-penstock-overhead-ms"]) >= 0


@BOTH
@pytest.mark.parametrize("model", ["always-float", "always-base64", "bare", "shuffled", "no-usage"])
async def test_a_vendor_with_other_habits_is_put_right(embed: Embedding, model: str, encoding: str):
    texts = ["one", "two", "three"]
    response = await embed.post(texts, model, encoding_format=encoding)
    reply = response.json()
    assert [item["index"] for item in reply["data"]] == [0, 1, 2]
    found = [item["embedding"] for item in reply["data"]]
    assert found == [pack(vector_of(text)) if encoding == "base64" else vector_of(text) for text in texts]
    assert {item["object"] for item in reply["data"]} == {"embedding"}
    assert reply["object"] == "list"
    assert reply["usage"]["prompt_tokens"] == reply["usage"]["total_tokens"] > 0
    parsed = await embed.client.embeddings.create(model=model, input=texts, encoding_format=encoding)  # type: ignore[arg-type]
    assert len(parsed.data) == 3


@BOTH
async def test_gemini_gets_a_batch_of_texts(embed: Embedding, encoding: str):
    response = await embed.post(["one", "two"], "google-counted", encoding_format=encoding, dimensions=4)
    found = [item["embedding"] for item in response.json()["data"]]
    vectors = [vector_of(text, 4) for text in ("one", "two")]
    assert found == ([pack(vector) for vector in vectors] if encoding == "base64" else vectors)
    assert response.json()["usage"] == {"prompt_tokens": 8, "total_tokens": 8}
    seen = embed.double.requests[0]
    assert seen.path == "/v1beta/models/counted:batchEmbedContents"
    assert seen.headers["x-goog-api-key"] == KEY
    content = {"model": "models/counted", "outputDimensionality": 4}
    assert seen.body == {"requests": [{**content, "content": {"parts": [{"text": text}]}} for text in ("one", "two")]}


async def test_gemini_by_the_sdk(embed: Embedding):
    found = await embed.client.embeddings.create(model="google-plain", input="one")
    assert found.data[0].embedding == vector_of("one")
    assert found.usage.prompt_tokens > 0  # estimated: this model counts nothing


@pytest.mark.parametrize(
    ("given", "code"), [([1, 2], "unsupported_value"), (["x"] * 101, "array_above_max_length")], ids=["tokens", "101"]
)
async def test_what_gemini_cannot_do_is_refused(embed: Embedding, given: Any, code: str):
    refused = await embed.post(given, "google-plain")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
    assert refused.json()["error"]["param"] == "input"
    assert embed.double.requests == []


async def test_what_gemini_does_not_get_is_named(embed: Embedding):
    response = await embed.post("one", "google-plain", user="ann", encoding_format="float")
    assert response.headers["x-penstock-left-out"] == "user"


# -- what is wrong with a request


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"input": None}, "input", "missing_required_parameter"),
        ({"input": ""}, "input", "empty_string"),
        ({"input": []}, "input", "empty_array"),
        ({"input": ["a", "b", "c", ""]}, "input[3]", "empty_string"),
        ({"input": ["a", 1]}, "input[1]", "invalid_type"),
        ({"input": [1, "a"]}, "input[1]", "invalid_type"),
        ({"input": [1, True]}, "input[1]", "invalid_type"),
        ({"input": [True]}, "input[0]", "invalid_type"),
        ({"input": [1, -1]}, "input[1]", "integer_below_min_value"),
        ({"input": [[1], []]}, "input[1]", "empty_array"),
        ({"input": [[1], "a"]}, "input[1]", "invalid_type"),
        ({"input": [[1], [1.5]]}, "input[1][0]", "invalid_type"),
        ({"input": [None]}, "input[0]", "invalid_type"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": {"text": "a"}}, "input", "invalid_type"),
        ({"input": ["a"] * 2049}, "input", "array_above_max_length"),
        ({"encoding_format": "int8"}, "encoding_format", "invalid_value"),
        ({"encoding_format": ["float"]}, "encoding_format", "invalid_value"),
        ({"dimensions": 0}, "dimensions", "integer_below_min_value"),
        ({"dimensions": "8"}, "dimensions", "invalid_type"),
        ({"stream": True}, "stream", "unsupported_parameter"),
        ({"model": None}, "model", "missing_required_parameter"),
        ({"model": "none"}, "model", "model_not_found"),
        ({"model": "talker"}, "model", "unsupported_value"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_an_error_names_the_part_that_is_wrong(embed: Embedding, fields: dict[str, Any], param: str, code: str):
    refused = await embed.server.client.post(PATH, json={"model": "plain", "input": "x", **fields})
    error = refused.json()["error"]
    assert (error["param"], error["code"]) == (param, code)
    assert refused.status_code == (404 if code == "model_not_found" else 400)
    assert error["type"] == "invalid_request_error"
    assert embed.double.requests == []


async def test_the_largest_number_of_texts_is_taken(embed: Embedding):
    assert len(await embed.vectors(["a"] * 2048)) == 2048


async def test_either_kind_of_model_names_the_endpoint_of_its_own(embed: Embedding):
    body = {"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}
    chat = await embed.server.client.post("/llm/chat/completions", json=body)
    assert chat.status_code == 400
    assert "/llm/embeddings" in chat.json()["error"]["message"]
    assert "/llm/chat/completions" in (await embed.post(model="talker")).json()["error"]["message"]


async def test_both_lists_of_models_say_what_they_are(embed: Embedding):
    listed = {model.id: model for model in (await embed.client.models.list()).data}
    assert (listed["plain"].kind, listed["talker"].kind) == ("embedding", "chat")  # type: ignore[attr-defined]
    record = (await embed.server.client.get("/api/v1/models/plain")).json()
    assert (record["kind"], record["endpoints"]) == ("embedding", [PATH])
    assert record["price"]["input_per_million"] == "1000.00"
    assert (await embed.server.client.post(PATH, json=record["example"])).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_another_method_is_refused(embed: Embedding, method: str):
    refused = await embed.server.client.request(method, PATH)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


# -- replies that cannot be used


@BOTH
@pytest.mark.parametrize("model", ["few", "uneven", "empty-vector", "garbage", "not-json", "wrong-index"])
async def test_a_reply_that_is_not_whole_is_never_passed_on(embed: Embedding, model: str, encoding: str):
    failed = await embed.post(["one", "two"], model, encoding_format=encoding)
    assert (failed.status_code, failed.json()["error"]["type"]) == (502, "server_error")


@pytest.mark.parametrize(("model", "encoding"), [("null", "float"), ("huge", "base64"), ("google-few", "float")])
async def test_a_vector_that_is_none_is_never_passed_on(embed: Embedding, model: str, encoding: str):
    failed = await embed.post(["one", "two"], model, encoding_format=encoding)
    assert failed.status_code == 502


async def test_refusals_of_a_vendor_are_explained_as_in_chat(embed: Embedding):
    inside = await embed.post(model="error-inside")
    assert (inside.status_code, inside.json()["error"]["message"]) == (400, "input[0] is bad")
    for model, status in {
        "status:400": 400,
        "status:401": 502,
        "status:500": 502,
        "retry-after": 429,
        "google-status:400": 400,
    }.items():
        refused = await embed.post(model=model)
        assert refused.status_code == status, refused.text
        assert KEY not in refused.text
    assert (await embed.post(model="retry-after")).headers["retry-after"] == "7"


async def test_the_next_route_is_tried(embed: Embedding):
    response = await embed.post("one", "twice")
    assert response.headers["x-penstock-vendor"] == "google"
    assert response.json()["data"][0]["embedding"] == vector_of("one")


# -- keys, limits and money


async def test_a_key_needs_the_scope_and_the_model(embed: Embedding):
    reader = await embed.server.sign_in(scopes=frozenset({"read"}))
    assert (await reader.post(PATH, json={"model": "plain", "input": "x"})).status_code == 403
    other = await embed.server.sign_in(models=frozenset({"bare"}))
    refused = await other.post(PATH, json={"model": "plain", "input": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
    assert (await other.post(PATH, json={"model": "bare", "input": "x"})).status_code == 200
    anonymous = await embed.server.client.post(PATH, json={}, headers={"authorization": "Bearer no"})
    assert anonymous.status_code == 401


async def test_usage_is_recorded_by_input_tokens(embed: Embedding):
    await embed.post(["one", "two"])
    await embed.post("x" * 400, "no-usage")
    await embed.post(model="status:500")
    counted, guessed, failed = await records_of(embed.server, 3)
    assert (counted.model, counted.vendor, counted.upstream_model) == ("plain", "upstream", "plain")
    assert (counted.usage, counted.cost, counted.streamed) == (Usage(10), 10_000_000, False)
    assert (guessed.usage, guessed.cost) == (Usage(101, estimated=True), 101_000_000)
    assert (failed.outcome, failed.usage, failed.cost) == (ChatOutcome.FAILED, Usage(), 0)


async def test_a_budget_is_held_and_then_charged_by_tokens(embed: Embedding):
    client = await embed.server.sign_in(budgets={"total": "0.10"})
    asked = {"model": "plain", "input": "x" * 40}
    first = await client.post(PATH, json=asked)
    assert (first.status_code, first.headers["x-penstock-cost"]) == (200, "0.005")
    too_much = await client.post(PATH, json={"model": "plain", "input": "x" * 400})
    assert (too_much.status_code, too_much.json()["error"]["code"]) == (402, "insufficient_budget")
    assert (await client.post(PATH, json=asked)).status_code == 200
    assert len(embed.double.requests) == 2
    unpriced = await client.post(PATH, json={"model": "google-plain", "input": "x"})
    assert (unpriced.status_code, unpriced.json()["error"]["code"]) == (403, "model_not_allowed")


async def test_tokens_count_against_the_limit_of_a_minute(embed: Embedding):
    client = await embed.server.sign_in(tokens_per_minute=150)
    asked = {"model": "no-usage", "input": "x" * 400}
    assert (await client.post(PATH, json=asked)).status_code == 200
    refused = await client.post(PATH, json=asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["retry-after"]) >= 1


async def test_a_claim_beyond_the_request_is_cut(embed: Embedding):
    response = await embed.post("one", "greedy")
    assert response.json()["usage"]["prompt_tokens"] == 1_000_000
    [record] = await records_of(embed.server, 1)
    assert record.usage == Usage(len(response.request.content) + 1_024, estimated=True)


async def test_the_cache_answers_the_next_one(start):
    async with embedding(start, "[chat]\ncache_mb = 1") as embed:
        first, second, other = [await embed.post("one", encoding_format=form) for form in ("float", "float", "base64")]
        assert [answer.headers["x-penstock-cache"] for answer in (first, second, other)] == ["miss", "hit", "miss"]
        assert (second.content, second.headers["x-penstock-cost"]) == (first.content, "0.00")
        assert unpack(other.json()["data"][0]["embedding"]) == first.json()["data"][0]["embedding"]


async def test_a_large_request_is_read_aside(embed: Embedding):
    texts = [f"{number} " * 200 for number in range(1000)]
    found = await embed.vectors(texts)
    assert found == [vector_of(text) for text in texts]
    assert len(found[0]) == DIMENSIONS


async def test_it_is_refused_as_openai_does_by_the_sdk(embed: Embedding):
    with pytest.raises(openai.BadRequestError) as caught:
        await embed.client.embeddings.create(model="plain", input=["a", ""])
    assert (caught.value.param, caught.value.code) == ("input[1]", "empty_string")
