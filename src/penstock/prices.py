"""Price formulas: what a generation costs by its params, and a chat answer by its tokens."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from penstock.chat import Usage
from penstock.money import format_usd, parse_usd

DURATIONS = ("durationSeconds", "duration", "seconds", "duration_seconds")
MAX_SECONDS = 86_400

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
    reasoning_per_million: Usd | None = None
    per_request: Usd = 0

    @property
    def cached(self) -> int:
        """A million prompt tokens that the vendor had cached: as any others where nothing else is said."""
        return self.input_per_million if self.cached_input_per_million is None else self.cached_input_per_million

    @property
    def reasoning(self) -> int:
        """A million tokens of thinking, which are among those of the answer: as any others, likewise."""
        return self.output_per_million if self.reasoning_per_million is None else self.reasoning_per_million

    def describe(self) -> dict[str, Any]:
        """As callers see it: decimal strings of USD."""
        return {
            "input_per_million": format_usd(self.input_per_million),
            "cached_input_per_million": format_usd(self.cached),
            "output_per_million": format_usd(self.output_per_million),
            "reasoning_per_million": format_usd(self.reasoning),
            "per_request": format_usd(self.per_request),
            "currency": "USD",
        }

    def word(self) -> str:
        """`USD 0.15 in, 0.075 cached, 0.60 out, per million tokens + 0.01 per request`."""
        told = [(self.input_per_million, "in")]
        told += [(self.cached, "cached")] if self.cached != self.input_per_million else []
        told += [(self.output_per_million, "out")]
        told += [(self.reasoning, "reasoning")] if self.reasoning != self.output_per_million else []
        parts = [f"{', '.join(f'{format_usd(amount)} {name}' for amount, name in told)}, per million tokens"]
        if not any(amount for amount, _ in told):
            parts = []
        parts += [f"{format_usd(self.per_request)} per request"] if self.per_request else []
        return f"USD {' + '.join(parts)}" if parts else "free"

    def of(self, usage: Usage) -> int:
        """What an answer with these tokens costs, rounded up to the next 10⁻⁹ USD."""
        cached, reasoning = min(usage.cached, usage.prompt), min(usage.reasoning, usage.completion)
        total = (usage.prompt - cached) * self.input_per_million + cached * self.cached
        total += (usage.completion - reasoning) * self.output_per_million + reasoning * self.reasoning
        return self.per_request - (-total // 1_000_000)


FREE = Price()
FREE_TOKENS = TokenPrice()
