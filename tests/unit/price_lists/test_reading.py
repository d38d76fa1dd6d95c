"""Price lists in their three forms: exact amounts, and hostile input that is refused with a reason."""

import json
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.domain.money import NANOS, format_usd
from penstock.domain.prices import Price, TokenPrice, write_price
from penstock.price_lists.listed import ListedPrices, PriceListUnreadable
from penstock.price_lists.reading import MAX_LIST_BYTES, MAX_TOML_BYTES, read_list

CHAT = '{"gpt": {"litellm_provider": "openai", "mode": "chat", %s}}'


def read(text: str) -> ListedPrices:
    return read_list(text.encode())


def the_price(text: str) -> Price | TokenPrice:
    [listed] = read(text).prices
    return listed.price


def the_problem(text: str) -> str:
    listed = read(text)
    assert not listed.prices
    return listed.problems[0].why


# -- LiteLLM's form


def test_costs_of_tokens_become_prices_of_a_million():
    costs = '"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-06'
    costs += ', "cache_creation_input_token_cost": 3e-6, "cache_creation_input_token_cost_above_1hr": 5e-6'
    costs += ', "output_cost_per_reasoning_token": 2e-5, "input_cost_per_token_batches": 1e-6, "max_tokens": 5'
    [listed] = read(CHAT % costs).prices
    assert write_price(listed.price) == {
        "input_per_million": "2.50",
        "cached_input_per_million": "1.25",
        "cache_write_per_million": "3.00",
        "cache_write_1h_per_million": "5.00",
        "output_per_million": "10.00",
        "reasoning_per_million": "20.00",
    }
    assert (listed.provider, listed.model, listed.left_out) == ("openai", "gpt", ("input_cost_per_token_batches",))


@pytest.mark.parametrize(
    ("mode", "costs", "price"),
    [
        ("embedding", '"input_cost_per_token": 2e-8', {"input_per_million": "0.02"}),
        ("audio_speech", '"input_cost_per_character": 1.5e-5', {"per_million_characters": "15.00"}),
        ("audio_transcription", '"input_cost_per_second": 0.0001', {"per_minute": "0.006"}),
        ("image_generation", '"output_cost_per_image": 0.04', {"per_image": "0.04"}),
        ("video_generation", '"output_cost_per_second": 0.12', {"per_second": "0.12"}),
    ],
)
def test_each_mode_has_its_unit(mode, costs, price):
    text = f'{{"acme/m": {{"litellm_provider": "acme", "mode": "{mode}", {costs}}}}}'
    [listed] = read(text).prices
    assert (listed.model, write_price(listed.price)) == ("m", price)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("NaN", "not a usable number"),
        ("Infinity", "not a usable number"),
        ("-1e-6", "negative"),
        ('"2.5"', "not a number"),
        ("true", "not a number"),
        ("null", "not a number"),
        ("[1]", "not a number"),
        ("1e999999999", "out of bounds"),
        ("1e-999999999", "out of bounds"),
        ("1e9999999999999999999999", "not a usable number"),
        ("9" * 5000, "not a usable number"),
        ("1e12", "out of bounds"),
    ],
)
def test_a_hostile_number_is_no_price(value, why):
    assert why in the_problem(CHAT % f'"input_cost_per_token": {value}')


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (CHAT % '"input_cost_per_token": 1e-6, "input_cost_per_token": 2e-6', "twice"),
        (CHAT % '"input_cost_per_token": 0', "no cost"),
        (CHAT % '"input_cost_per_pixel": 1e-9', "no place here"),
        ('{"m": {"litellm_provider": "a", "mode": {"x": 1}}}', "mode"),
    ],
)
def test_an_entry_without_a_clear_price_is_a_problem(text, why):
    assert why in the_problem(text)


def test_a_model_given_twice_has_no_price():
    entry = '{"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6}'
    assert "twice" in the_problem(f'{{"gpt": {entry}, "gpt": {entry}}}')


@given(some.decimals(min_value=0, max_value=1, places=16).filter(bool))
def test_amounts_are_exact_and_rounded_up(cost):
    price = the_price(CHAT % f'"input_cost_per_token": {cost:.16f}')
    assert isinstance(price, TokenPrice)
    wanted = cost * 1_000_000 * NANOS
    assert wanted <= price.input_per_million < wanted + 1


# -- OpenRouter's form


def test_openrouters_text_is_read_exactly():
    pricing = {"prompt": "0.0000025", "completion": "0.00001", "request": "0", "input_cache_read": "0"}
    pricing |= {"web_search": "0.01", "internal_reasoning": "0", "image": "0"}
    [listed] = read(json.dumps({"data": [{"id": "openai/gpt", "pricing": pricing}]})).prices
    assert write_price(listed.price) == {"input_per_million": "2.50", "output_per_million": "10.00"}
    assert (listed.provider, listed.model, listed.left_out) == ("openrouter", "openai/gpt", ("web_search",))


@pytest.mark.parametrize(
    ("pricing", "why"),
    [
        ({"prompt": "-1", "completion": "-1"}, "negative"),
        ({"prompt": "x", "completion": "0"}, "not a number"),
        ({"prompt": "9" * 200, "completion": "0"}, "not a usable number"),
        ({"prompt": "0.1"}, "no cost"),
        ({}, "not usable"),
        ([], "not usable"),
    ],
)
def test_openrouters_hostile_prices(pricing, why):
    assert why in the_problem(json.dumps({"data": [{"id": "m", "pricing": pricing}]}))


def test_openrouters_model_given_twice_has_no_price():
    entry = {"id": "m", "pricing": {"prompt": "0.1", "completion": "0.1"}}
    assert "twice" in the_problem(json.dumps({"data": [entry, entry]}))


# -- our own form

amounts = some.integers(0, 10**15).map(format_usd)


@given(some.dictionaries(some.sampled_from(["per_job", "per_second", "per_image"]), amounts, min_size=1))
def test_our_own_form_goes_round(parts):
    document = {"prices": [{"model": "m", "vendor": "v", "from": "2026-03-01", "price": parts}]}
    price = the_price(json.dumps(document))
    again = the_price(json.dumps({"prices": [{"model": "m", "price": write_price(price)}]}))
    assert again == price
    toml = f"[[prices]]\nmodel = 'm'\nprice = {{{', '.join(f'{name} = {amount}' for name, amount in parts.items())}}}"
    assert the_price(toml) == price


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1, 2]",
        "{}",
        '{"data": 5}',
        '{"prices": 5}',
        '{"prices": [{"model": "m"}]}',
        '{"prices": [{"model": "m", "price": {"per_job": NaN}}]}',
        '{"prices": [{"model": "m", "price": {"per_job": "-1"}}]}',
        '{"prices": [{"model": "m", "model": "n", "price": {"per_job": "1"}}]}',
        '{"prices": [{"model": "m", "price": {"per_job": "1", "surprise": "1"}}]}',
        '{"prices": [{"model": "m", "price": {"per_job": 1' + "0" * 5000 + "}}]}",
        '{"a": ' + "[" * 100_000,
        "[[prices]]\nmodel = 1\n",
        "a = " + "[" * 5_000,
        "[[prices]]\nmodel = 'm'\nprice = {per_job = nan}",
    ],
)
def test_a_list_that_is_none_is_refused_with_a_reason(text):
    with pytest.raises(PriceListUnreadable, match=r"The list (is|has none)"):
        read(text)


@given(some.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw):
    with suppress(PriceListUnreadable):
        assert not read_list(raw).prices


@given(some.recursive(some.none() | some.floats() | some.text(max_size=5), lambda each: some.lists(each, max_size=3)))
def test_any_value_in_an_entry_is_read_or_reported(value):
    text = CHAT % f'"input_cost_per_token": {json.dumps(value)}'
    listed = read(text)
    assert len(listed.prices) + len(listed.problems) == 1


@pytest.mark.parametrize(("begin", "most"), [(b"{", MAX_LIST_BYTES), (b"#", MAX_TOML_BYTES)])
def test_a_huge_list_is_refused(begin, most):
    with pytest.raises(PriceListUnreadable, match=f"larger than {most >> 20} MiB"):
        read_list(begin + b" " * most)


def test_decimals_are_not_floats():
    price = the_price(CHAT % '"input_cost_per_token": 0.00000010000000000000001')
    assert isinstance(price, TokenPrice)
    assert Decimal(price.input_per_million) == 100_000_001  # rounded up, where a float would lose the digit
