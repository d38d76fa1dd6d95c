"""Money: integers of 10⁻⁹ USD internally, decimal strings externally."""

import re
from decimal import Decimal
from typing import Any

NANOS = 1_000_000_000
AMOUNT = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9})0*)?")


def parse_usd(value: Any) -> int:
    """Return a decimal string or number of USD as an exact count of 10⁻⁹ USD."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('an amount is a decimal string such as "0.40"')
    text = value if isinstance(value, str) else format(Decimal(str(value)), "f")
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError('an amount is a decimal string such as "0.40", below 10¹⁰ and with at most 9 decimals')
    return int(found[1]) * NANOS + int((found[2] or "").ljust(9, "0"))


def format_usd(nanos: int) -> str:
    """Format an amount with at least two decimals and no more than needed: 400000000 → "0.40"."""
    whole, rest = divmod(nanos, NANOS)
    decimals = f"{rest:09d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{decimals}"
