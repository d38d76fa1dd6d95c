"""Prices over time: which formula is in force at which vendor at which moment, and the dearest of several."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.domain.ids import timestamp
from penstock.domain.prices import Price, TokenPrice

P = TypeVar("P", Price, TokenPrice)


@dataclass(frozen=True, slots=True)
class Term(Generic[P]):
    """A price that someone wrote down, and when it is in force: from `since` on, and before `until`."""

    price: P
    since: float = -math.inf
    until: float = math.inf
    of_vendor: bool = False
    """It was written for one vendor; that goes before what was written for all."""


@dataclass(frozen=True, slots=True)
class Stretch(Generic[P]):
    """A price and the time in which nothing about it changes; None: it is not known."""

    price: P | None
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class PriceSchedule(Generic[P]):
    """What one vendor asks for one model: each price from its start on, until the next."""

    starts: tuple[float, ...]
    """The first is the beginning of time."""
    prices: tuple[P | None, ...]

    def at(self, now: float) -> P | None:
        """The price in force; None: it is not known."""
        return self.prices[bisect_right(self.starts, now) - 1 if len(self.starts) > 1 else 0]

    def stretches(self, now: float) -> Iterator[Stretch[P]]:
        """The one in force, and those to come."""
        ends = (*self.starts[1:], math.inf)
        for price, since, until in zip(self.prices, self.starts, ends, strict=True):
            if until > now:
                yield Stretch(price, since, until)


def make_schedule(terms: Sequence[Term[P]], otherwise: P | None) -> PriceSchedule[P]:
    """At each moment the most specific term in force, of those the latest begun; without one, `otherwise`."""
    ranked = sorted(terms, key=lambda term: (term.of_vendor, term.since), reverse=True)

    def find(moment: float) -> P | None:
        return next((term.price for term in ranked if term.since <= moment < term.until), otherwise)

    return _tell({moment for term in terms for moment in (term.since, term.until)}, find)


def combine(
    schedules: Sequence[PriceSchedule[P]], choose: Callable[[Sequence[P | None]], P | None]
) -> PriceSchedule[P]:
    """One price of several, at each moment."""
    moments = {start for schedule in schedules for start in schedule.starts}
    return _tell(moments, lambda moment: choose([schedule.at(moment) for schedule in schedules]))


def _tell(moments: set[float], find: Callable[[float], P | None]) -> PriceSchedule[P]:
    """Only the moments at which something changes."""
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
    """As callers see them: of each vendor the price in force, and those to come; no `from`: it always was."""
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


# -- of several routes


def highest(prices: Iterable[Price | None], params: Mapping[str, Any]) -> int | None:
    """The most that any of them asks of these params; None where one is not known."""
    costs = [None if price is None else price.of(params) for price in prices]
    known = [cost for cost in costs if cost is not None]
    return max(known) if known and len(known) == len(costs) else None


def dearest(prices: Sequence[Price | None]) -> Price | None:
    """Of each part what the dearest asks; None where one is not known."""
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices):
        return None
    names = dict.fromkeys(name for price in known for name in price.per_job_if)
    most: dict[str, Any] = {
        "per_job": max(price.per_job for price in known),
        "per_second": max(price.per_second for price in known),
        "per_image": max(price.per_image for price in known),
        "per_thousand_faces": max(price.per_thousand_faces for price in known),
        "per_job_if": {name: max(price.per_job_if.get(name, 0) for price in known) for name in names},
        "seconds": max((price.seconds or 0 for price in known if price.per_second), default=0) or None,
        "faces": max((price.faces or 0 for price in known if price.per_thousand_faces), default=0) or None,
    }
    return known[0].model_copy(update=most)


def dearest_tokens(prices: Sequence[TokenPrice | None]) -> TokenPrice | None:
    """The same of the parts of a chat price."""
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices):
        return None
    most = {
        "input_per_million": max(price.input_per_million for price in known),
        "cached_input_per_million": max(price.cached for price in known),
        "output_per_million": max(price.output_per_million for price in known),
        "reasoning_per_million": max(price.reasoning for price in known),
        "per_request": max(price.per_request for price in known),
    }
    return known[0].model_copy(update=most)


def token_ceiling(prices: Sequence[TokenPrice | None]) -> TokenPrice | None:
    """What no answer is dearer than, whoever gives it, and however many of its tokens were cached or reasoning."""
    most = dearest_tokens(prices)
    if most is None:
        return None
    into, out = max(most.input_per_million, most.cached), max(most.output_per_million, most.reasoning)
    return TokenPrice.model_construct(input_per_million=into, output_per_million=out, per_request=most.per_request)
