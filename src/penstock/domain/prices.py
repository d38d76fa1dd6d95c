"""Prices: formulas of generations and chat answers, and the schedules of prices over time."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Annotated, Any, Final, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from penstock.domain.chat import Usage
from penstock.domain.ids import timestamp
from penstock.domain.money import NANOS, format_usd, parse_usd

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
"""Names of the params with durations, numbers of pictures and face limits, over all models."""
MAX_SECONDS, MAX_PICTURES, MAX_FACES = 86_400, 10_000, 1_000_000_000
MAX_DIGITS = 500
MOST = 10**15
"""Upper bound of a cost, a million USD: the store must hold every sum, whatever a formula yields."""
SLACK_SECONDS = 0.1
"""Tolerance for a video's length, as its last frame adds a moment."""

Usd = Annotated[int, BeforeValidator(parse_usd)]


FIXED: Final = ("per_job", "per_second", "per_image", "per_thousand_faces")
CONDITIONAL: Final = {"per_job_if": "", "per_second_if": " per second", "per_image_if": " per picture"}
"""By part of a price with amounts under conditions: its unit in text."""


class Delivered(Protocol):
    """The facts of a delivered output that a price depends on."""

    @property
    def kind(self) -> str:
        """Return `model`, `video` or `image`."""
        ...

    @property
    def role(self) -> str:
        """Return the role; only `primary` outputs cost something."""
        ...

    @property
    def duration_seconds(self) -> float | None:
        """Return the length of a video."""
        ...

    @property
    def faces(self) -> int | None:
        """Return the number of faces of a 3D model."""
        ...


class Price(BaseModel):
    """`price = {per_job = "0.20", per_second = "0.40", per_job_if = {texture = "0.10", "quality=high" = "0.05"}}`.

    An amount under a condition is added if the condition holds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_job: Usd = 0
    per_second: Usd = 0
    per_image: Usd = 0
    per_thousand_faces: Usd = 0
    per_job_if: Mapping[str, Usd] = {}
    per_second_if: Mapping[str, Usd] = {}
    per_image_if: Mapping[str, Usd] = {}
    seconds: int | None = Field(default=None, strict=True, ge=1, le=MAX_SECONDS)
    """Upper bound of the length of a result whose params do not set one."""
    faces: int | None = Field(default=None, strict=True, ge=1, le=MAX_FACES)
    """Upper bound of the faces of such a result."""

    def describe(self) -> dict[str, Any]:
        """Return the price as callers see it, in decimal strings of USD."""
        return {
            "per_job": format_usd(self.per_job),
            "per_second": format_usd(self.per_second),
            "per_image": format_usd(self.per_image),
            "per_thousand_faces": format_usd(self.per_thousand_faces),
            **{part: _format_all(getattr(self, part)) for part in CONDITIONAL},
            "seconds": self.seconds,
            "faces": self.faces,
            "currency": "USD",
        }

    def formula(self) -> dict[str, Any]:
        """Return the formula as it is stored with a job, without defaults."""
        return {name: value for name, value in self.describe().items() if getattr(self, name, None)}

    def word(self) -> str:
        """Return the price as text, such as `USD 0.20 + 0.40 per second + 0.10 if texture`."""
        units = {"second": self.per_second, "picture": self.per_image, "thousand faces": self.per_thousand_faces}
        parts = [format_usd(self.per_job)] if self.per_job else []
        parts += [f"{format_usd(amount)} per {unit}" for unit, amount in units.items() if amount]
        for part, unit in CONDITIONAL.items():
            parts += [f"{format_usd(amount)}{unit} if {name}" for name, amount in getattr(self, part).items() if amount]
        return f"USD {' + '.join(parts)}" if parts else "free"

    @property
    def is_by_length(self) -> bool:
        """Return whether the cost depends on the seconds of the result."""
        return bool(self.per_second or any(self.per_second_if.values()))

    def bounded(self, *, seconds: int | None = None, faces: int | None = None) -> "Price":
        """Return the price with the bounds of a model, which override those of the settings."""
        changed = dict[str, int]()
        if self.is_by_length and seconds is not None and seconds > 0:
            changed["seconds"] = min(seconds, MAX_SECONDS)
        if self.per_thousand_faces and faces is not None and faces > 0:
            changed["faces"] = min(faces, MAX_FACES)
        return self.model_copy(update=changed) if changed else self

    def of(self, params: Mapping[str, Any]) -> int | None:
        """Return the maximum cost of a job with these resolved params; None if it is unbounded."""
        seconds, faces = _asked(params, DURATIONS, MAX_SECONDS), _asked(params, FACES, MAX_FACES)
        return self._sum(params, seconds or self.seconds, _pictures(params), faces or self.faces)

    def final(self, params: Mapping[str, Any], outputs: Iterable[Delivered]) -> int | None:
        """Return the cost by the delivered outputs, never more than `of`."""
        results = [output for output in outputs if output.role == "primary"]
        seconds = _least(_asked(params, DURATIONS, MAX_SECONDS) or self.seconds, _length(results))
        faces = _least(_asked(params, FACES, MAX_FACES) or self.faces, _count_faces(results))
        made = sum(output.kind == "image" for output in results)
        return self._sum(params, seconds, min(made or MAX_PICTURES, _pictures(params)), faces)

    def _sum(self, params: Mapping[str, Any], seconds: int | None, pictures: int, faces: int | None) -> int | None:
        per_second = self.per_second + _added(self.per_second_if, params)
        per_image = self.per_image + _added(self.per_image_if, params)
        if (per_second and seconds is None) or (self.per_thousand_faces and faces is None):
            return None
        total = self.per_job + per_second * (seconds or 0) + per_image * pictures
        total -= -self.per_thousand_faces * (faces or 0) // 1000  # rounded up
        return min(total + _added(self.per_job_if, params), MOST)


def _format_all(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_usd(amount) for name, amount in amounts.items()}


def _added(amounts: Mapping[str, int], params: Mapping[str, Any]) -> int:
    """Return the sum of the amounts whose conditions hold."""
    return sum(amount for name, amount in amounts.items() if _applies(name, params))


def _asked(params: Mapping[str, Any], names: Sequence[str], most: int) -> int | None:
    """Return the largest value of these params, `8` and `"8s"` alike; None if none is above 0."""
    values = [number for name in names if name in params and (number := _number(params[name])) > 0]
    return math.ceil(min(most, max(values))) if values else None


def _number(value: Any) -> float:
    """Return a number; 0 for anything else, including `true`."""
    try:
        number = float(str(value)[:MAX_DIGITS].removesuffix("s")) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(number) else number


def _pictures(params: Mapping[str, Any]) -> int:
    return _asked(params, PICTURES, MAX_PICTURES) or 1


def _length(results: Iterable[Delivered]) -> int | None:
    """Return the length of the longest video in whole seconds."""
    lengths = [output.duration_seconds for output in results if output.duration_seconds is not None]
    return max(1, math.ceil(round(min(MAX_SECONDS, max(lengths)) - SLACK_SECONDS, 3))) if lengths else None


def _count_faces(results: Iterable[Delivered]) -> int | None:
    counts = [output.faces for output in results if output.faces is not None]
    return sum(counts) if counts else None


def _least(*counts: int | None) -> int | None:
    return min((count for count in counts if count is not None), default=None)


def _applies(condition: str, params: Mapping[str, Any]) -> bool:
    """Return whether a condition holds: `texture` is set and not false, or `quality=high` has this value."""
    name, has_value, value = condition.partition("=")
    given = params.get(name)
    return _word(given) == value if has_value else given is not None and given is not False


def _word(value: Any) -> str:
    """Return a value as in JSON, without quotes; 8.0 is 8."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class TokenPrice(BaseModel):
    """`price = {input_per_million = "0.15", cached_input_per_million = "0.075", output_per_million = "0.60"}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_per_million: Usd = 0
    cached_input_per_million: Usd | None = None
    cache_write_per_million: Usd | None = None
    cache_write_1h_per_million: Usd | None = None
    output_per_million: Usd = 0
    reasoning_per_million: Usd | None = None
    per_request: Usd = 0
    per_million_characters: Usd = 0
    """Of text that is read aloud."""
    per_minute: Usd = 0
    """Of sound that is written down."""

    @property
    def cached(self) -> int:
        """Return the price of a million cached prompt tokens; by default that of other prompt tokens."""
        return self.input_per_million if self.cached_input_per_million is None else self.cached_input_per_million

    @property
    def cache_write(self) -> int:
        """Return the price of a million prompt tokens written to a cache; by default that of other prompt tokens."""
        return self.input_per_million if self.cache_write_per_million is None else self.cache_write_per_million

    @property
    def cache_write_1h(self) -> int:
        """Return the price of a million tokens written to a cache for an hour; by default that of other writes."""
        return self.cache_write if self.cache_write_1h_per_million is None else self.cache_write_1h_per_million

    @property
    def reasoning(self) -> int:
        """Return the price of a million reasoning tokens; by default that of other output tokens."""
        return self.output_per_million if self.reasoning_per_million is None else self.reasoning_per_million

    def describe(self) -> dict[str, Any]:
        """Return the price as callers see it, in decimal strings of USD."""
        return {
            "input_per_million": format_usd(self.input_per_million),
            "cached_input_per_million": format_usd(self.cached),
            "cache_write_per_million": format_usd(self.cache_write),
            "cache_write_1h_per_million": format_usd(self.cache_write_1h),
            "output_per_million": format_usd(self.output_per_million),
            "reasoning_per_million": format_usd(self.reasoning),
            "per_request": format_usd(self.per_request),
            "per_million_characters": format_usd(self.per_million_characters),
            "per_minute": format_usd(self.per_minute),
            "currency": "USD",
        }

    def word(self) -> str:
        """Return the price as text, such as `USD 0.15 in, 0.60 out, per million tokens + 0.01 per request`."""
        rates = [(self.input_per_million, "in")]
        rates += [(self.cached, "cached")] if self.cached != self.input_per_million else []
        rates += [(self.cache_write, "cache write")] if self.cache_write != self.input_per_million else []
        rates += [(self.cache_write_1h, "1h cache write")] if self.cache_write_1h != self.cache_write else []
        rates += [(self.output_per_million, "out")]
        rates += [(self.reasoning, "reasoning")] if self.reasoning != self.output_per_million else []
        parts = [f"{', '.join(f'{format_usd(amount)} {name}' for amount, name in rates)}, per million tokens"]
        if not any(amount for amount, _ in rates):
            parts = []
        units = {
            "request": self.per_request,
            "million characters": self.per_million_characters,
            "minute": self.per_minute,
        }
        parts += [f"{format_usd(amount)} per {unit}" for unit, amount in units.items() if amount]
        return f"USD {' + '.join(parts)}" if parts else "free"

    def of_sound(self, characters: int, seconds: float) -> "TokenPrice":
        """Return the price of a request with so many characters to read aloud, or seconds to write down.

        Both are known before the vendor is called, so they become a part of `per_request`.
        """
        if not (self.per_million_characters or self.per_minute):
            return self
        spoken = -(-characters * self.per_million_characters // 1_000_000)
        heard = math.ceil(min(seconds, MAX_SECONDS) * self.per_minute / 60)
        total = min(MOST, self.per_request + spoken + heard)
        return self.model_copy(update={"per_request": total, "per_million_characters": 0, "per_minute": 0})

    def of(self, usage: Usage) -> int:
        """Return the cost of an answer with this usage, rounded up to 10⁻⁹ USD."""
        total = usage.prompt * self.input_per_million + usage.completion * self.output_per_million
        if usage.cached or usage.cache_writes:
            total += self._surcharge(usage)
        if usage.reasoning:
            total += min(usage.reasoning, usage.completion) * (self.reasoning - self.output_per_million)
        return min(self.per_request - (-total // 1_000_000), MOST)

    def _surcharge(self, usage: Usage) -> int:
        """Return what reads and writes of a cache add to the price of plain input, or take off, per million."""
        plain = self.input_per_million
        cached = min(usage.cached, usage.prompt)
        writes = min(usage.cache_writes, usage.prompt - cached)
        hourly = min(usage.cache_writes_1h, writes)
        written = writes * (self.cache_write - plain) + hourly * (self.cache_write_1h - self.cache_write)
        return cached * (self.cached - plain) + written


def scale(price: Price, rate: int) -> Price:
    """Return a price whose amounts are in credits as one in USD. `rate` is the price of a credit, in 10⁻⁹ USD."""

    def convert(amount: int) -> int:
        return min(MOST, -(-amount * rate // NANOS))  # rounded up

    fixed = {name: convert(getattr(price, name)) for name in FIXED}
    return price.model_copy(
        update=fixed
        | {part: {name: convert(each) for name, each in getattr(price, part).items()} for part in CONDITIONAL}
    )


def write_price(price: Price | TokenPrice) -> dict[str, Any]:
    """Return a price as the settings write it, without the parts that are absent."""
    if isinstance(price, Price):
        return price.formula()
    parts = price.model_dump(exclude_defaults=True) or {"input_per_million": 0}
    return {name: format_usd(amount) for name, amount in parts.items()}


FREE = Price()
FREE_TOKENS = TokenPrice()


# -- prices over time

P = TypeVar("P", Price, TokenPrice)


class PriceOrigin(IntEnum):
    """The place that a price comes from; of two prices, that of the greater origin applies."""

    VENDOR = 1  # the vendor's own file
    ROW = 2  # a row of the store
    MODEL = 3  # the settings: `price` of the model
    ENTRY = 4  # the settings: an entry of `[[prices]]`

    @property
    def is_file(self) -> bool:
        """Return whether the settings declare the price."""
        return self >= PriceOrigin.MODEL


@dataclass(frozen=True, slots=True)
class Term(Generic[P]):
    """A price with its origin, in force from `since` on and before `until`."""

    price: P
    since: float = -math.inf
    until: float = math.inf
    of_vendor: bool = False
    """True for a price of one vendor, which overrides those for all."""
    origin: PriceOrigin = PriceOrigin.ENTRY
    row: int = 0
    """The id of its row; 0 if it has none."""

    @property
    def rank(self) -> tuple[int, bool, float, int]:
        """Return the rank: of the terms in force, the greatest applies."""
        return self.origin, self.of_vendor, self.since, self.row


@dataclass(frozen=True, slots=True)
class Stretch(Generic[P]):
    """A price and the time in which it does not change; None if the price is unknown."""

    price: P | None
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class PriceSchedule(Generic[P]):
    """The prices of one vendor for one model; each is in force from its start until the next."""

    starts: tuple[float, ...]
    """Start times; the first is the beginning of time."""
    prices: tuple[P | None, ...]

    def at(self, now: float) -> P | None:
        """Return the price in force; None if it is unknown."""
        return self.prices[bisect_right(self.starts, now) - 1 if len(self.starts) > 1 else 0]

    def stretches(self, now: float) -> Iterator[Stretch[P]]:
        """Yield the price in force, and those to come."""
        ends = (*self.starts[1:], math.inf)
        for price, since, until in zip(self.prices, self.starts, ends, strict=True):
            if until > now:
                yield Stretch(price, since, until)


def make_schedule(terms: Sequence[Term[P]], otherwise: P | None) -> PriceSchedule[P]:
    """Return a schedule with the most specific, then latest term at each moment; `otherwise` where none is in force."""

    def find(moment: float) -> P | None:
        term = find_term(terms, moment)
        return otherwise if term is None else term.price

    return _schedule({moment for term in terms for moment in (term.since, term.until)}, find)


def find_term(terms: Iterable[Term[P]], moment: float) -> Term[P] | None:
    """Return the term that applies at a moment; None if none is in force."""
    return max((term for term in terms if term.since <= moment < term.until), key=attrgetter("rank"), default=None)


def combine(
    schedules: Sequence[PriceSchedule[P]], choose: Callable[[Sequence[P | None]], P | None]
) -> PriceSchedule[P]:
    """Return a schedule with one chosen price of several at each moment."""
    moments = {start for schedule in schedules for start in schedule.starts}
    return _schedule(moments, lambda moment: choose([schedule.at(moment) for schedule in schedules]))


def _schedule(moments: set[float], find: Callable[[float], P | None]) -> PriceSchedule[P]:
    """Return a schedule with only the moments at which the price changes."""
    starts, prices = list[float](), list[P | None]()
    for moment in sorted((moments | {-math.inf}) - {math.inf}):
        price = find(moment)
        if not starts or price != prices[-1]:
            starts.append(moment)
            prices.append(price)
    return PriceSchedule(tuple(starts), tuple(prices))


def describe_schedules(
    schedules: Mapping[str, PriceSchedule[Price]] | Mapping[str, PriceSchedule[TokenPrice]], now: float
) -> list[dict[str, Any]]:
    """Return the schedules as callers see them: each vendor's price in force, and those to come."""
    return [
        {
            "vendor": vendor,
            "from": None if stretch.since == -math.inf else timestamp(stretch.since),
            "until": None if stretch.until == math.inf else timestamp(stretch.until),
            "price": None if stretch.price is None else stretch.price.describe(),
        }
        for vendor, schedule in sorted(schedules.items())
        for stretch in schedule.stretches(now)
    ]


# -- prices of several routes


def highest(prices: Iterable[Price | None], params: Mapping[str, Any]) -> int | None:
    """Return the highest cost for these params; None if one price is unknown."""
    costs = [None if price is None else price.of(params) for price in prices]
    known = [cost for cost in costs if cost is not None]
    return max(known) if known and len(known) == len(costs) else None


def dearest(prices: Sequence[Price | None]) -> Price | None:
    """Return a price with the highest value of each part; None if one price is unknown."""
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices):
        return None
    most: dict[str, Any] = {
        "per_job": max(price.per_job for price in known),
        "per_second": max(price.per_second for price in known),
        "per_image": max(price.per_image for price in known),
        "per_thousand_faces": max(price.per_thousand_faces for price in known),
        **{part: _dearest_parts([getattr(price, part) for price in known]) for part in CONDITIONAL},
        "seconds": max((price.seconds or 0 for price in known if price.is_by_length), default=0) or None,
        "faces": max((price.faces or 0 for price in known if price.per_thousand_faces), default=0) or None,
    }
    return known[0].model_copy(update=most)


def _dearest_parts(amounts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for each in amounts for name in each)
    return {name: max(each.get(name, 0) for each in amounts) for name in names}


def dearest_tokens(prices: Sequence[TokenPrice | None]) -> TokenPrice | None:
    """Return a chat price with the highest value of each part; None if one price is unknown."""
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices):
        return None
    most = {
        "input_per_million": max(price.input_per_million for price in known),
        "cached_input_per_million": max(price.cached for price in known),
        "cache_write_per_million": max(price.cache_write for price in known),
        "cache_write_1h_per_million": max(price.cache_write_1h for price in known),
        "output_per_million": max(price.output_per_million for price in known),
        "reasoning_per_million": max(price.reasoning for price in known),
        "per_request": max(price.per_request for price in known),
        "per_million_characters": max(price.per_million_characters for price in known),
        "per_minute": max(price.per_minute for price in known),
    }
    return known[0].model_copy(update=most)


def token_ceiling(prices: Sequence[TokenPrice | None]) -> TokenPrice | None:
    """Return an upper bound of chat prices, for any vendor and any share of cached, written or reasoning tokens."""
    most = dearest_tokens(prices)
    if most is None:
        return None
    into = max(most.input_per_million, most.cached, most.cache_write, most.cache_write_1h)
    out = max(most.output_per_million, most.reasoning)
    return TokenPrice.model_construct(
        input_per_million=into,
        output_per_million=out,
        per_request=most.per_request,
        per_million_characters=most.per_million_characters,
        per_minute=most.per_minute,
    )


# -- prices as rows of the store


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedPrice:
    """A price of one model at one vendor, for a period."""

    model: str
    vendor: str
    """The name of the vendor's table in the settings."""
    since: float
    until: float | None
    price: Price | TokenPrice
    source: str
    """The list that it was taken from, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow(DatedPrice):
    """A dated price in the store. Rows are only added: a later row may end an earlier one, never change it."""

    id: int
    actor: str
    created_at: float
    ended_at: float | None
    """The time from which a removal ends it; `until` is then no later."""

    def is_void(self) -> bool:
        """Return whether it never is in force, because it was removed before it began."""
        return self.until is not None and self.until <= self.since
