"""Amounts are exact, and a price is what its formula says."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog import simulated
from penstock.contract import Served
from penstock.money import NANOS, format_usd, parse_usd
from penstock.offers import Offer
from penstock.prices import FREE, MAX_SECONDS, Price
from penstock.settings import load
from penstock.supply import build_offers
from penstock.vendors.sim import Sim

LARGEST = 2**63 - 1


@given(st.integers(0, LARGEST))
def test_an_amount_survives_being_written_and_read(nanos):
    assert parse_usd(format_usd(nanos)) == nanos


@given(st.integers(0, LARGEST))
def test_an_amount_is_written_with_two_to_nine_decimals_and_no_exponent(nanos):
    whole, _, decimals = format_usd(nanos).partition(".")
    assert whole.isdigit()
    assert decimals.isdigit()
    assert 2 <= len(decimals) <= 9
    assert len(decimals) == 2 or not decimals.endswith("0")


@given(st.decimals(0, 9_000_000_000, places=9))
def test_a_decimal_string_is_read_exactly(amount):
    assert parse_usd(format(amount, "f")) == int(amount * NANOS)


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("0.40", 400_000_000),
        ("0.000000001", 1),
        ("1", NANOS),
        ("1.5", 1_500_000_000),
        (1e-9, 1),
        (2, 2 * NANOS),
        (0.1, 100_000_000),
    ],
)
def test_amounts_that_are_taken(text, nanos):
    assert parse_usd(text) == nanos


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "x",
            "1e-9",
            "1_000",
            "٣",
            "12345678901",
            "0,40",
            "$1",
            "1.2.3",
            "--1",
            "-0.01",
            "0.0000000001",
            "NaN",
            "sNaN",
            "Infinity",
            "-Infinity",
        ),
        *(-1, -0.5, 0.1 + 0.2, float("nan"), float("inf"), True, False, None, [], {}, b"1"),
    ],
)
def test_amounts_that_are_refused(value):
    with pytest.raises(ValueError, match="an amount is"):
        parse_usd(value)


@pytest.mark.parametrize(
    ("nanos", "text"), [(0, "0.00"), (400_000_000, "0.40"), (1, "0.000000001"), (12 * NANOS + 345_000_000, "12.345")]
)
def test_amounts_as_they_are_written(nanos, text):
    assert format_usd(nanos) == text


def test_a_price_adds_the_job_its_seconds_and_what_its_params_ask_for():
    price = Price.model_validate({"per_job": "0.20", "per_second": "0.40", "per_job_if": {"texture": "0.10"}})
    assert format_usd(price.of({})) == "0.20"
    assert format_usd(price.of({"durationSeconds": 8})) == "3.40"
    assert format_usd(price.of({"durationSeconds": 8, "texture": True})) == "3.50"
    assert format_usd(price.of({"texture": False})) == "0.20"
    assert FREE.of({"durationSeconds": 8, "texture": True}) == 0


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 8))
def test_a_price_is_never_rounded(per_job, per_second, seconds):
    price = Price.model_validate({"per_job": format_usd(per_job), "per_second": format_usd(per_second)})
    assert price.of({"durationSeconds": seconds}) == per_job + seconds * per_second


# -- params of other vendors' models

PER_SECOND = Price.model_validate({"per_job": "0.10", "per_second": "1"})


@pytest.mark.parametrize("name", ["durationSeconds", "duration", "seconds", "duration_seconds"])
@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (8, 8),
        ("8", 8),
        ("8s", 8),
        (7.2, 8),
        ("7.2s", 8),
        (0, 0),
        (-5, 0),
        ("-5s", 0),
        (True, 0),
        ("long", 0),
        ([8], 0),
        ({}, 0),
        ("", 0),
        ("s", 0),
        (float("nan"), 0),
        ("nan", 0),
        ("-inf", 0),
        (1e300, MAX_SECONDS),
        (10**400, MAX_SECONDS),
        ("inf", MAX_SECONDS),
        ("1e999s", MAX_SECONDS),
    ],
    ids=str,
)
def test_seconds_are_found_by_any_name_and_never_out_of_bounds(name, told, seconds):
    assert PER_SECOND.of({name: told}) == NANOS // 10 + seconds * NANOS


@given(
    st.dictionaries(
        st.sampled_from(["duration", "seconds", "quality", "texture"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers()),
    )
)
def test_no_params_make_a_price_that_is_negative_or_beyond_the_store(params):
    price = Price.model_validate(
        {"per_job": "1", "per_second": "9", "per_job_if": {"texture": "2", "quality=high": "3"}}
    )
    assert NANOS <= price.of(params) <= LARGEST


@pytest.mark.parametrize(
    ("condition", "params", "applies"),
    [
        ("texture", {"texture": True}, True),
        ("texture", {"texture": "detailed"}, True),
        ("texture", {"texture": False}, False),
        ("texture", {"texture": 0}, True),
        ("texture", {}, False),
        ("quality=high", {"quality": "high"}, True),
        ("quality=high", {"quality": "highest"}, False),
        ("quality=high", {}, False),
        ("audio=true", {"audio": True}, True),
        ("audio=true", {"audio": False}, False),
        ("audio=false", {"audio": False}, True),
        ("audio=false", {}, False),
        ("seconds=10", {"seconds": 10}, True),
        ("seconds=10", {"seconds": 10.0}, True),
        ("seconds=10", {"seconds": "10"}, True),
        ("seconds=10", {"seconds": 10.5}, False),
        ("ratio=16:9", {"ratio": "16:9"}, True),
        ("formula=a=b", {"formula": "a=b"}, True),
        ("quality=", {"quality": ""}, True),
    ],
)
def test_a_condition_is_a_params_presence_or_its_value_as_json_has_it(condition, params, applies):
    price = Price.model_validate({"per_job": "1", "per_job_if": {condition: "0.5"}})
    assert format_usd(price.of(params)) == ("1.50" if applies else "1.00")


# -- of several routes

prices = st.builds(
    lambda job, second, conditions: Price(per_job=job, per_second=second, per_job_if=conditions),
    st.integers(0, 3),
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(["texture", "quality=high"]), st.integers(0, 3)),
)


@given(
    st.lists(prices, min_size=1, max_size=3),
    st.fixed_dictionaries({"duration": st.integers(0, 9), "texture": st.booleans(), "quality": st.just("high")}),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_of_several_routes_the_price_is_a_ceiling_whichever_is_taken(tmp_path, asked, params):
    offer = offer_of(tmp_path, asked)
    assert offer.ceiling(params, 0.0) == max(price.of(params) for price in asked)
    told = offer.price_at(0.0)
    assert told is not None
    assert all(told.of(params) >= price.of(params) for price in asked)
    if len(set(map(str, asked))) == 1:
        assert told == asked[0]


def test_if_one_of_them_is_not_known_none_is(tmp_path):
    assert offer_of(tmp_path, [FREE, None]).price_at(0.0) is None
    assert offer_of(tmp_path, [FREE, None]).ceiling({}, 0.0) is None
    assert offer_of(tmp_path, [FREE, FREE]).price_at(0.0) == FREE


def offer_of(folder: Path, asked: Sequence[Price | None]) -> Offer:
    """What is offered of a model that vendors run for these prices."""
    model = simulated.MODELS[1]
    with pytest.MonkeyPatch.context() as patch:
        names = [f"route{number}" for number in range(len(asked))]
        served = {name: [Served(model, price)] for name, price in zip(names, asked, strict=True)}
        patch.setattr(Sim, "models", property(lambda vendor: served.get(vendor.options.api_key, [])))
        tables = "".join(f'[vendors.{name}]\ntype = "sim"\napi_key = "{name}"\n' for name in names)
        routes = ", ".join(f'{{vendor = "{name}"}}' for name in names)
        config = folder / "penstock.toml"
        config.write_text(f'{tables}[[models]]\nid = "{model.id}"\nroutes = [{routes}]\n')
        return build_offers(load(config, {}, {"data": folder}), None).by_model[model.id]
