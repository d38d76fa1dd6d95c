"""The built-in embedding server on its real weights: what it says is near, its limits, and its turns."""

import base64
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import NO_TLS

from penstock_engines.minilm.embedding_server import EmbeddingServer
from penstock_engines.minilm.encoder import MAX_BATCH_TOKENS, plan_batches
from penstock_engines.minilm.model_facts import DIMENSIONS
from penstock_engines.serving.on_demand_server import ServerFailed
from penstock_engines.serving.turns import Turns
from penstock_engines.serving.weights_plan import ModelServerOptions


@pytest.fixture(scope="module")
def server(weights: Path) -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(ModelServerOptions(weights=weights, threads=1))
    server.start()
    yield server
    server.close()


def post(server: EmbeddingServer, given: Any, key: str | None = None, **fields: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {server.key if key is None else key}"}
    body = {"model": "minilm-l6", "input": given, **fields}
    url = f"{server.address()}/embeddings"
    return httpx.post(url, json=body, headers=headers, trust_env=False, verify=NO_TLS, timeout=300)


def embed(server: EmbeddingServer, given: Any) -> list[list[float]]:
    response = post(server, given, encoding_format="float")
    assert response.status_code == 200, response.text
    found = response.json()["data"]
    assert [item["index"] for item in found] == list(range(len(found)))
    return [item["embedding"] for item in found]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_texts_of_like_meaning_are_close(server: EmbeddingServer):
    boat, ship, tax = embed(server, ["a small boat on the lake", "a little ship on the water", "income tax law"])
    assert len(boat) == DIMENSIONS
    assert cosine(boat, boat) == pytest.approx(1, abs=1e-5)
    assert cosine(boat, ship) > 0.6
    assert cosine(boat, tax) < 0.3


def test_a_vector_does_not_depend_on_its_neighbours(server: EmbeddingServer):
    texts = ["sea", "a much longer text about the sea, its waves and its winds", "", "Ωμέγα 漢字 🌊", "sea"]
    together = embed(server, texts)
    alone = [embed(server, text)[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert together[0] == together[4]


def test_base64_has_the_very_bits_of_the_numbers(server: EmbeddingServer):
    texts = ["one", "two and a half", "three"]
    packed = post(server, texts, encoding_format="base64").json()["data"]
    unpacked = [list(struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(item["embedding"]))) for item in packed]
    assert unpacked == embed(server, texts)


def test_usage_counts_tokens_with_their_markers(server: EmbeddingServer):
    usage = post(server, ["Hello, world!", "sea"]).json()["usage"]
    assert usage == {"prompt_tokens": 9, "total_tokens": 9}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        (["sea", "sea " * 511], "input[1]"),
        ("sea " * 511, "input"),
        (["sea", " " * 60_000], "input[1]"),
        (["sea " * 500] * 700, "input"),
        (5, "input"),
    ],
)
def test_a_wrong_input_is_named(server: EmbeddingServer, given: Any, param: str):
    refused = post(server, given)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_the_longest_text_is_read_whole(server: EmbeddingServer):
    first, second = embed(server, ["sea " * 510, "sea " * 509 + "desert"])
    assert first != second


def test_others_get_no_answer(server: EmbeddingServer):
    assert post(server, "sea", key="guess").status_code == 401
    assert httpx.get(f"{server.address()}/models", trust_env=False, verify=NO_TLS).status_code == 501


def test_many_requests_at_once_are_all_answered(server: EmbeddingServer):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: embed(server, [f"text {number}"] * 20), range(8)))
    assert all(len(answer) == 20 and answer[0] == answer[19] for answer in answers)


def test_missing_weights_are_explained(tmp_path: Path):
    with pytest.raises(ServerFailed, match="penstock models pull"):
        EmbeddingServer(ModelServerOptions(weights=tmp_path)).start()


def test_damaged_weights_are_explained(tmp_path: Path, weights: Path):
    (tmp_path / "minilm.onnx").write_bytes(b"not a network")
    (tmp_path / "minilm-tokenizer.json").write_bytes((weights / "minilm-tokenizer.json").read_bytes())
    with pytest.raises(ServerFailed, match="damaged"):
        EmbeddingServer(ModelServerOptions(weights=tmp_path)).start()


@given(st.lists(st.integers(2, 512), max_size=200))
def test_batches_hold_every_text_once_and_are_small(lengths: list[int]):
    batches = list(plan_batches(lengths))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[index] for index in batch) <= MAX_BATCH_TOKENS for batch in batches)
    order = [lengths[index] for batch in batches for index in batch]
    assert order == sorted(order)


def test_whoever_waits_longest_has_the_next_turn():
    turns, order = Turns(), list[str]()
    turns.__enter__()

    def run(name: str) -> None:
        with turns:
            order.append(name)

    threads = list[threading.Thread]()
    for name in ("first", "second", "third"):
        threads.append(threading.Thread(target=run, args=(name,)))
        threads[-1].start()
        while len(turns._waiting) < len(threads):
            pass
    turns.__exit__(None, None, None)
    for thread in threads:
        thread.join()
    assert order == ["first", "second", "third"]
