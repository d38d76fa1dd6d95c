"""Amounts are exact: read, kept and written without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.money import NANOS, format_usd, parse_usd

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
