"""Amounts of price lists, which are per token, character or second, in our units."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import Any, Final

from penstock.domain.money import NANOS
from penstock.domain.prices import Price, TokenPrice
from penstock.price_lists.exact_json import LONGEST_NUMBER

MILLION: Final = Decimal(1_000_000)
MINUTE: Final = Decimal(60)
ONE: Final = Decimal(1)
MAX_AMOUNT: Final = 10**10 * NANOS
"""Amounts are below ten billion USD, as everywhere."""
MAX_EXPONENT: Final = 60
_DIGITS: Final = 2 * LONGEST_NUMBER + MAX_EXPONENT


class BadAmount(Exception):
    """A value of a list is no amount of money; the message says why."""


def to_nanos(name: str, value: Any, times: Decimal) -> int:
    """Return the value of a list times a unit, in 10⁻⁹ USD, rounded up."""
    if not isinstance(value, Decimal):
        raise BadAmount(f"`{name}` is not a number")
    if not value.is_finite():
        raise BadAmount(f"`{name}` is not a usable number")
    if value < 0:
        raise BadAmount(f"`{name}` is negative")
    if not value:
        return 0
    if abs(value.adjusted()) > MAX_EXPONENT:
        raise BadAmount(f"`{name}` is out of bounds")
    with localcontext(prec=_DIGITS):
        nanos = int((value * times * NANOS).to_integral_value(ROUND_CEILING))
    if nanos >= MAX_AMOUNT:
        raise BadAmount(f"`{name}` is out of bounds")
    return nanos


def make_token_price(parts: Mapping[str, int]) -> TokenPrice:
    """Return a price by tokens with these parts in 10⁻⁹ USD."""
    return TokenPrice.model_construct(None, **parts)


def make_price(parts: Mapping[str, int]) -> Price:
    """Return the price of a job with these parts in 10⁻⁹ USD."""
    return Price.model_construct(None, **parts)
