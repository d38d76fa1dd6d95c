"""What a vendor claims to have used is cut to what can be true, and never raised."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.request import read
from penstock.chat.token_bounds import PICTURE_TOKENS, UNSEEN_TOKENS, bound_claim, limit_to_evidence
from penstock.domain.chat import Ask, Usage

counts = some.integers(0, 10**9)


def ask_of(content: Any = "Hello", **fields: Any) -> Ask:
    return read(json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **fields}).encode())


@given(counts, counts, some.integers(0, 10**6), some.none() | some.integers(1, 10**6), some.integers(1, 8))
def test_no_claim_is_raised_or_beyond_its_bound(prompt, completion, seen, limit, choices):
    ask = ask_of(n=choices, **({} if limit is None else {"max_tokens": limit}))
    writes = prompt - prompt // 2
    claim = Usage(
        prompt, completion, prompt // 2, completion // 2, cache_writes=writes, cache_writes_1h=writes - writes // 3
    )
    found = bound_claim(claim, ask, seen)
    assert found.prompt == min(prompt, ask.size + 1024)
    assert found.completion == min(completion, (seen + UNSEEN_TOKENS * choices) if limit is None else limit * choices)
    assert found.cached + found.cache_writes <= found.prompt
    assert found.cache_writes_1h <= found.cache_writes
    assert found.reasoning <= found.completion
    assert bound_claim(found, ask, seen) is found
    assert found is claim or found.estimated
    certain = limit_to_evidence(claim, ask, seen)
    assert certain.prompt <= ask.size
    assert certain.completion <= seen
    assert certain.cache_writes == min(claim.cache_writes, certain.prompt)
    assert certain.cache_writes_1h == min(claim.cache_writes_1h, certain.cache_writes)
    assert certain.cached == certain.reasoning == 0


@pytest.mark.parametrize(
    ("claim", "ask"),
    [
        (Usage(9, 500), ask_of(max_tokens=500)),
        (Usage(9, 1500), ask_of(max_tokens=500, n=3)),
        (Usage(9, 500), ask_of(max_tokens=5, max_completion_tokens=500)),
        (Usage(9, 500), ask_of(max_tokens=500, max_completion_tokens=5)),
        (Usage(9, 60_000, 0, 59_000), ask_of()),
        (Usage(40_000, 5), ask_of([{"type": "image_url", "image_url": {"url": "https://pictures.example/1"}}])),
        (Usage(400_000, 5), ask_of([{"type": "file", "file": {"file_id": "file-1"}}])),
        (Usage(900_000, 5), ask_of(cachedContent="cachedContents/1")),
        (Usage(700, 5), ask_of()),
    ],
)
def test_a_claim_that_can_be_true_is_believed(claim, ask):
    assert bound_claim(claim, ask, 20) is claim


def test_a_picture_is_no_excuse_for_any_claim():
    ask = ask_of([{"type": "image_url", "image_url": {"url": "https://pictures.example/1"}}])
    assert bound_claim(Usage(10**9, 1), ask, 20).prompt < 3 * PICTURE_TOKENS


def test_a_claim_is_bounded_after_a_large_body_was_freed():
    ask = ask_of("x" * 100_000)
    ask.forget_messages()
    assert bound_claim(Usage(ask.size + 500, 1), ask, 20).prompt == ask.size + 500
    assert bound_claim(Usage(10**9, 1), ask, 20).prompt < 2_000_000
