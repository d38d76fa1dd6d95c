"""Money as integers of 10⁻⁹ USD inside and decimal strings outside, and the price formulas of models."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from penstock.chat import Usage

DURATIONS = ("durationSeconds", "duration", "seconds", "duration_seconds")
MAX_SECONDS = 86_400
NANOS = 1_000_000_000
AMOUNT = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9}))?0*")


def parse_usd(value: Any) -> int:
    """A decimal string or number of USD as an exact count of 10⁻⁹ USD."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('an amount is a decimal string such as "0.40"')
    text = value if isinstance(value, str) else format(Decimal(str(value)), "f")
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError('an amount is a decimal string such as "0.40", below 10¹⁰ and with at most 9 decimals')
    return int(found[1]) * NANOS + int((found[2] or "").ljust(9, "0"))


def format_usd(nanos: int) -> str:
    """At least two decimals, and no more than needed: 400000000 → "0.40"."""
    whole, rest = divmod(nanos, NANOS)
    decimals = f"{rest:09d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{decimals}"


Usd = Annotated[int, BeforeValidator(parse_usd)]


class Price(BaseModel):
    """`price = {per_job = "0.20", per_second = "0.40", per_job_if = {texture = "0.10", "quality=high" = "0.05"}}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_job: Usd = 0
    per_second: Usd = 0
    per_job_if: Mapping[str, Usd] = {}

    def describe(self) -> dict[str, Any]:
        """As callers see it: decimal strings of USD."""
        return {
            "per_job": format_usd(self.per_job),
            "per_second": format_usd(self.per_second),
            "per_job_if": {name: format_usd(amount) for name, amount in self.per_job_if.items()},
            "currency": "USD",
        }

    def word(self) -> str:
        """`USD 0.20 + 0.40 per second + 0.10 if texture`."""
        parts = [format_usd(self.per_job)] if self.per_job else []
        parts += [f"{format_usd(self.per_second)} per second"] if self.per_second else []
        parts += [f"{format_usd(amount)} if {name}" for name, amount in self.per_job_if.items() if amount]
        return f"USD {' + '.join(parts)}" if parts else "free"

    def of(self, params: Mapping[str, Any]) -> int:
        """What a job with these resolved params costs at most."""
        total = self.per_job + self.per_second * _seconds(params)
        return total + sum(amount for name, amount in self.per_job_if.items() if _applies(name, params))


def _seconds(params: Mapping[str, Any]) -> int:
    """How long the result is to be: by any of the names that vendors have for it, `8` and `"8s"` alike."""
    told = next((params[name] for name in DURATIONS if name in params), 0)
    try:
        seconds = float(str(told).removesuffix("s"))
    except ValueError:
        return 0
    return math.ceil(min(MAX_SECONDS, max(0.0, seconds)))  # a price is never below 0, nor more than the store can hold


def _applies(condition: str, params: Mapping[str, Any]) -> bool:
    """`texture`: it is given and not false; `quality=high`: it has this value."""
    name, has_value, value = condition.partition("=")
    told = params.get(name)
    return _word(told) == value if has_value else told is not None and told is not False


def _word(value: Any) -> str:
    """A value as JSON has it, without quotes; 8.0 is 8."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class TokenPrice(BaseModel):
    """`price = {input_per_million = "0.15", cached_input_per_million = "0.075", output_per_million = "0.60"}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_per_million: Usd = 0
    cached_input_per_million: Usd | None = None
    output_per_million: Usd = 0

    @property
    def _cached(self) -> int:
        return self.input_per_million if self.cached_input_per_million is None else self.cached_input_per_million

    def describe(self) -> dict[str, Any]:
        """As callers see it: decimal strings of USD."""
        return {
            "input_per_million": format_usd(self.input_per_million),
            "cached_input_per_million": format_usd(self._cached),
            "output_per_million": format_usd(self.output_per_million),
            "currency": "USD",
        }

    def word(self) -> str:
        """`USD 0.15 in, 0.60 out, per million tokens`."""
        if self == FREE_TOKENS:
            return "free"
        told = f"{format_usd(self.input_per_million)} in, {format_usd(self.output_per_million)} out"
        return f"USD {told}, per million tokens"

    def of(self, usage: Usage) -> int:
        """What these tokens cost, rounded up to the next 10⁻⁹ USD."""
        cached = min(usage.cached, usage.prompt)
        cached_price = (
            self.input_per_million if self.cached_input_per_million is None else self.cached_input_per_million
        )
        total = (usage.prompt - cached) * self.input_per_million + cached * cached_price
        return -(-(total + usage.completion * self.output_per_million) // 1_000_000)


FREE = Price()
FREE_TOKENS = TokenPrice()
