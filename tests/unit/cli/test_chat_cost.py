"""The cost that `penstock chat` computes for a stream is what the server charges for its tokens."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from penstock.cli.remote.chat import reckon
from penstock.domain.chat import Usage
from penstock.domain.money import NANOS
from penstock.domain.prices import TokenPrice

amounts = some.integers(0, 100 * NANOS)
tokens = some.integers(0, 10**6)
prices = some.builds(
    TokenPrice.model_construct,
    input_per_million=amounts,
    cached_input_per_million=some.none() | amounts,
    cache_write_per_million=some.none() | amounts,
    cache_write_1h_per_million=some.none() | amounts,
    output_per_million=amounts,
)
usages = some.builds(Usage, tokens, tokens, tokens, cache_writes=tokens, cache_writes_1h=tokens)


@given(prices, usages)
def test_tokens_cost_what_the_server_charges(price: TokenPrice, usage: Usage):
    usage = usage.cut(usage.prompt, usage.completion)
    cost = reckon(usage.as_json(), price.describe())
    assert cost is not None
    assert 0 <= price.of(usage) - cost * NANOS < 1  # the server rounds up


def test_a_server_that_tells_no_price_of_cache_writes_charges_them_as_input():
    price: dict[str, Any] = {"input_per_million": "3.00", "output_per_million": "0.00"}
    usage = Usage(10, cached=2, cache_writes=5, cache_writes_1h=3)
    assert reckon(usage.as_json(), price) == Decimal("0.00003")
