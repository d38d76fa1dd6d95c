"""The built-in embedding model through a gateway: real weights, asked by the SDK; one tenant beside another."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import openai
import pytest
import pytest_asyncio
from conftest import Server, running
from embedding_steps import PATH, sdk_of

from penstock.settings.tables import load

pytestmark = pytest.mark.asyncio(loop_scope="module")  # all share one gateway, and so one load of the weights

MODEL = "minilm-l6"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> AsyncGenerator[Server]:
    folder = tmp_path_factory.mktemp("minilm")
    shutil.copy(empty_store, folder)
    async with running(load(None, {}, {"data": folder, "weights": weights})) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sdk(server: Server) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with sdk_of(server, await server.new_key()) as client:
        yield client


async def test_the_sdk_gets_equal_vectors_by_default_and_as_floats(sdk: openai.AsyncOpenAI):
    texts = ["a small boat on the lake", "a little ship on the water", "income tax law"]
    usual = await sdk.embeddings.create(model=MODEL, input=texts, dimensions=384)
    numbers = await sdk.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    boat, ship, tax = (item.embedding for item in usual.data)
    assert [item.embedding for item in numbers.data] == [boat, ship, tax]
    assert len(boat) == 384
    assert sum(a * b for a, b in zip(boat, ship, strict=True)) > 2 * sum(a * b for a, b in zip(boat, tax, strict=True))
    assert usual.usage.prompt_tokens > len(texts) * 2


async def test_it_is_free_and_listed(server: Server, sdk: openai.AsyncOpenAI):
    raw = await sdk.embeddings.with_raw_response.create(model=MODEL, input="x")
    assert (raw.headers["x-penstock-vendor"], raw.headers["x-penstock-cost"]) == ("minilm", "0.00")
    assert MODEL in {model.id async for model in sdk.models.list()}
    record = (await server.client.get(f"/api/v1/models/{MODEL}")).json()
    assert (record["kind"], record["vendors"]) == ("embedding", ["minilm"])
    assert (await server.client.post(PATH, json=record["example"])).status_code == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": [101, 102]}, "input"),
        ({"input": [[101], [102]]}, "input"),
        ({"input": "x", "dimensions": 256}, "dimensions"),
        ({"input": ["x", "y", "z", "sea " * 600]}, "input[3]"),
    ],
)
async def test_what_it_cannot_do_is_refused(server: Server, fields: dict[str, object], param: str):
    refused = await server.client.post(PATH, json={"model": MODEL, **fields})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


async def test_a_short_request_does_not_wait_for_a_long_one(server: Server):
    other = await server.sign_in("another")
    long = asyncio.create_task(server.client.post(PATH, json={"model": MODEL, "input": ["sea " * 200] * 60}))
    while server.gateway.relay._busy.get("minilm", 0) < 1:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0)
    short = await other.post(PATH, json={"model": MODEL, "input": "x"})
    assert short.status_code == 200
    assert not long.done()  # 30 batches against one: the short one has its turn after at most two
    assert (await long).status_code == 200
