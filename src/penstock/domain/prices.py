"""Price formulas: what a generation costs by its params and its result, and a chat answer by its tokens."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from penstock.domain.chat import Usage
from penstock.domain.money import format_usd, parse_usd

DURATIONS = ("durationSeconds", "duration", "seconds", "duration_seconds")
PICTURES = (
    "n",
    "num_images",
    "numberOfImages",
    "number_of_images",
    "numImages",
    "num_outputs",
    "sampleCount",
    "batch_size",
)
FACES = ("face_limit",)
"""The params by which vendors' models take each."""
MAX_SECONDS, MAX_PICTURES, MAX_FACES = 86_400, 10_000, 1_000_000_000
MAX_DIGITS = 500
MOST = 10**15
"""No job and no answer costs more than a million USD: a formula may say so, but the store must hold every sum."""
SLACK_SECONDS = 0.1
"""What a film may be longer than its whole seconds: the last frame stays for a moment."""

Usd = Annotated[int, BeforeValidator(parse_usd)]


class Delivered(Protocol):
    """What a price asks of a delivered output."""

    @property
    def kind(self) -> str:
        """`model`, `video` or `image`."""
        ...

    @property
    def role(self) -> str:
        """`primary`: what was asked for; previews cost nothing."""
        ...

    @property
    def duration_seconds(self) -> float | None:
        """Of a video."""
        ...

    @property
    def faces(self) -> int | None:
        """Of a 3D model."""
        ...


class Price(BaseModel):
    """`price = {per_job = "0.20", per_second = "0.40", per_job_if = {texture = "0.10", "quality=high" = "0.05"}}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_job: Usd = 0
    per_second: Usd = 0
    per_image: Usd = 0
    per_thousand_faces: Usd = 0
    per_job_if: Mapping[str, Usd] = {}
    seconds: int | None = Field(default=None, strict=True, ge=1, le=MAX_SECONDS)
    """How long a result is at most whose params do not tell."""
    faces: int | None = Field(default=None, strict=True, ge=1, le=MAX_FACES)
    """How many faces such a result has at most."""

    def describe(self) -> dict[str, Any]:
        """As callers see it: decimal strings of USD."""
        return {
            "per_job": format_usd(self.per_job),
            "per_second": format_usd(self.per_second),
            "per_image": format_usd(self.per_image),
            "per_thousand_faces": format_usd(self.per_thousand_faces),
            "per_job_if": {name: format_usd(amount) for name, amount in self.per_job_if.items()},
            "seconds": self.seconds,
            "faces": self.faces,
            "currency": "USD",
        }

    def formula(self) -> dict[str, Any]:
        """As it is written down with a job, and read again: what is not in it is as by default."""
        return {name: value for name, value in self.describe().items() if getattr(self, name, None)}

    def word(self) -> str:
        """`USD 0.20 + 0.40 per second + 0.10 if texture`."""
        units = {"second": self.per_second, "picture": self.per_image, "thousand faces": self.per_thousand_faces}
        parts = [format_usd(self.per_job)] if self.per_job else []
        parts += [f"{format_usd(amount)} per {unit}" for unit, amount in units.items() if amount]
        parts += [f"{format_usd(amount)} if {name}" for name, amount in self.per_job_if.items() if amount]
        return f"USD {' + '.join(parts)}" if parts else "free"

    def bounded(self, *, seconds: int | None = None, faces: int | None = None) -> "Price":
        """The same for a model that has bounds of its own: they go before those that were written down."""
        changed = dict[str, int]()
        if self.per_second and seconds is not None and seconds > 0:
            changed["seconds"] = min(seconds, MAX_SECONDS)
        if self.per_thousand_faces and faces is not None and faces > 0:
            changed["faces"] = min(faces, MAX_FACES)
        return self.model_copy(update=changed) if changed else self

    def of(self, params: Mapping[str, Any]) -> int | None:
        """What a job with these resolved params costs at most; None where they do not tell, and nobody else does."""
        seconds, faces = _asked(params, DURATIONS, MAX_SECONDS), _asked(params, FACES, MAX_FACES)
        return self._sum(params, seconds or self.seconds, _pictures(params), faces or self.faces)

    def final(self, params: Mapping[str, Any], outputs: Iterable[Delivered]) -> int | None:
        """What it did cost, by what was delivered: never more than `of` said."""
        results = [output for output in outputs if output.role == "primary"]
        seconds = _least(_asked(params, DURATIONS, MAX_SECONDS) or self.seconds, _length(results))
        faces = _least(_asked(params, FACES, MAX_FACES) or self.faces, _count_faces(results))
        made = sum(output.kind == "image" for output in results)
        return self._sum(params, seconds, min(made or MAX_PICTURES, _pictures(params)), faces)

    def _sum(self, params: Mapping[str, Any], seconds: int | None, pictures: int, faces: int | None) -> int | None:
        if (self.per_second and seconds is None) or (self.per_thousand_faces and faces is None):
            return None
        total = self.per_job + self.per_second * (seconds or 0) + self.per_image * pictures
        total -= -self.per_thousand_faces * (faces or 0) // 1000  # rounded up
        total += sum(amount for name, amount in self.per_job_if.items() if _applies(name, params))
        return min(total, MOST)


def _asked(params: Mapping[str, Any], names: Sequence[str], most: int) -> int | None:
    """The largest that any of the names has, `8` and `"8s"` alike; None where none has a number above 0."""
    told = [number for name in names if name in params and (number := _number(params[name])) > 0]
    return math.ceil(min(most, max(told))) if told else None


def _number(told: Any) -> float:
    """What is no number is 0, `true` too."""
    try:
        number = float(str(told)[:MAX_DIGITS].removesuffix("s")) if isinstance(told, str | int | float) else 0.0
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(number) else number


def _pictures(params: Mapping[str, Any]) -> int:
    return _asked(params, PICTURES, MAX_PICTURES) or 1


def _length(results: Iterable[Delivered]) -> int | None:
    """The whole seconds of the longest video."""
    told = [output.duration_seconds for output in results if output.duration_seconds is not None]
    return max(1, math.ceil(round(min(MAX_SECONDS, max(told)) - SLACK_SECONDS, 3))) if told else None


def _count_faces(results: Iterable[Delivered]) -> int | None:
    told = [output.faces for output in results if output.faces is not None]
    return sum(told) if told else None


def _least(*counts: int | None) -> int | None:
    return min((count for count in counts if count is not None), default=None)


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
        total = usage.prompt * self.input_per_million + usage.completion * self.output_per_million
        if usage.cached:
            total += min(usage.cached, usage.prompt) * (self.cached - self.input_per_million)
        if usage.reasoning:
            total += min(usage.reasoning, usage.completion) * (self.reasoning - self.output_per_million)
        return min(self.per_request - (-total // 1_000_000), MOST)


FREE = Price()
FREE_TOKENS = TokenPrice()
