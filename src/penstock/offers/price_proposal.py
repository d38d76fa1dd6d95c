"""Changes of prices that a list proposes: matched by vendor and model, compared, and never applied by themselves."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from penstock.domain.ids import timestamp
from penstock.domain.money import format_usd
from penstock.domain.prices import DatedPrice, Price, TokenPrice, scale, write_price
from penstock.offers.offer import Offers
from penstock.offers.price_places import PricePlace, compare_prices, is_same, list_parts, list_places, name_origin
from penstock.price_lists.listed import ListedPrice, ListedPrices
from penstock.price_lists.own_form import FORM
from penstock.price_lists.reading import shipped_list
from penstock.settings.prices import misfit


class PriceVerdict(StrEnum):
    """The outcome for one model at one vendor."""

    NEW = "new"  # its price was not known
    CHANGED = "changed"
    SAME = "same"
    DECLARED = "declared"  # the settings declare another price, which applies
    AMBIGUOUS = "ambiguous"  # the list has several prices for it
    CREDITS = "credits"  # the list has its price in credits, and nobody has said what one costs
    UNUSABLE = "unusable"  # the list has an entry, but no price that fits
    UNLISTED = "unlisted"  # the list has no entry for it
    UNMAPPED = "unmapped"  # its vendor is none that lists name


PROPOSED = frozenset({PriceVerdict.NEW, PriceVerdict.CHANGED})
"""Outcomes that an update writes."""
DRIFTED = frozenset({PriceVerdict.CHANGED, PriceVerdict.DECLARED})
"""Outcomes in which the price in force is not the list's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFinding:
    """One proposed price of a model at a vendor, or the reason that there is none."""

    model: str
    vendor: str
    verdict: PriceVerdict
    why: str = ""
    entry: str = ""
    since: float = 0.0
    until: float | None = None
    old: Price | TokenPrice | None = None
    origin: str | None = None
    """The origin of the old price."""
    new: Price | TokenPrice | None = None
    left_out: Sequence[str] = ()
    source: str = ""

    def describe(self) -> dict[str, Any]:
        """Return the finding as callers see it."""
        parts = compare_prices(self.old, self.new) if self.new is not None else []
        return {
            "model": self.model,
            "vendor": self.vendor,
            "verdict": self.verdict.value,
            "why": self.why,
            "entry": self.entry,
            "from": None if self.new is None else timestamp(self.since),
            "until": timestamp(self.until),
            "origin": self.origin,
            "old": None if self.old is None else write_price(self.old),
            "new": None if self.new is None else write_price(self.new),
            "parts": [
                {"name": part.name, "old": _usd(part.old), "new": _usd(part.new), "percent": part.percent}
                for part in parts
            ],
            "left_out": list(self.left_out),
            "source": self.source,
        }

    def dated(self, source: str) -> DatedPrice | None:
        """Return the price to be written; None if the finding proposes none."""
        if self.new is None or self.verdict not in PROPOSED:
            return None
        text = self.source or source
        return DatedPrice(
            model=self.model, vendor=self.vendor, since=self.since, until=self.until, price=self.new, source=text
        )


def _usd(amount: int | None) -> str | None:
    return None if amount is None else format_usd(amount)


@dataclass(frozen=True, slots=True)
class Mapped:
    """The operator's own facts: providers by vendor, entries of the list by (vendor, model), prices of credits."""

    providers: Mapping[str, str]
    entries: Mapping[tuple[str, str], str]
    credits: Mapping[str, int] = field(default_factory=dict[str, int])
    """By vendor or provider: the price of one credit, in 10⁻⁹ USD."""


NOTHING_MAPPED = Mapped({}, {})


def propose(
    offers: Offers, listed: ListedPrices, effective: float, mapped: Mapped = NOTHING_MAPPED
) -> list[PriceFinding]:
    """Return a finding for every model at every vendor. Prices that began earlier begin at `effective`."""
    index = _Index(listed)
    found = [
        finding for place in list_places(offers, mapped.providers) for finding in _find(place, index, effective, mapped)
    ]
    order = list(PriceVerdict)
    return sorted(found, key=lambda each: (order.index(each.verdict), each.model, each.vendor, each.since))


class _Index:
    """The entries of a list by their names."""

    def __init__(self, listed: ListedPrices) -> None:
        self.listed = listed
        self.by_entry = defaultdict[str, list[ListedPrice]](list)
        self.by_provider = defaultdict[tuple[str | None, str], list[ListedPrice]](list)
        for price in listed.prices:
            self.by_entry[price.entry].append(price)
            self.by_provider[price.provider, price.model].append(price)
        self.problems = {(each.provider, each.model): each.why for each in listed.problems}
        self.entry_problems = {each.entry: each.why for each in listed.problems}


def _find(place: PricePlace, index: _Index, effective: float, mapped: Mapped) -> Iterator[PriceFinding]:
    wanted = mapped.entries.get((place.vendor, place.model))
    candidates = index.by_entry.get(wanted, []) if wanted else _candidates(place, index)
    priced = _price_credits(place, candidates, mapped)
    if priced:
        yield from _judge_all(place, priced, effective)
    elif candidates:
        yield PriceFinding(
            model=place.model, vendor=place.vendor, verdict=PriceVerdict.CREDITS, why=_word_credits(place, candidates)
        )
    elif why := _explain_absence(place, index, wanted):
        yield PriceFinding(model=place.model, vendor=place.vendor, verdict=why[0], why=why[1])


def _candidates(place: PricePlace, index: _Index) -> list[ListedPrice]:
    own = [price for price in index.by_provider.get((None, place.model), []) if price.vendor in (None, place.vendor)]
    if own:
        return [price for price in own if price.vendor is not None] or own
    names = sorted({*place.names, place.model} if index.listed.form == FORM else place.names)
    return [price for name in names if place.provider for price in index.by_provider.get((place.provider, name), [])]


def _price_credits(place: PricePlace, listed: Sequence[ListedPrice], mapped: Mapped) -> list[ListedPrice]:
    """Return the prices in USD. Without the price of a credit, those in credits are left out."""
    rate = mapped.credits.get(place.vendor, mapped.credits.get(place.provider or ""))
    return [
        _price_one(each, rate) if each.in_credits and rate is not None else each
        for each in listed
        if not each.in_credits or rate is not None
    ]


def _price_one(listed: ListedPrice, rate: int) -> ListedPrice:
    price = scale(listed.price, rate) if isinstance(listed.price, Price) else listed.price
    source = f"{listed.source}; a credit at USD {format_usd(rate)}".removeprefix("; ")
    return replace(listed, price=price, source=source)


def _word_credits(place: PricePlace, listed: Sequence[ListedPrice]) -> str:
    amounts = " + ".join(f"{amount} {name}" for name, amount in _list_credits(listed[0].price))
    return (
        f"it costs credits ({amounts}): give the price of one, as in `--credit {place.provider or place.vendor}=0.02`"
    )


def _list_credits(price: Price | TokenPrice) -> Iterator[tuple[str, str]]:
    for name, amount in list_parts(price).items():
        if amount:
            yield name, format_usd(amount).removesuffix(".00")


def _explain_absence(place: PricePlace, index: _Index, wanted: str | None) -> tuple[PriceVerdict, str] | None:
    """Return why the list has no price for this; None for what costs nothing anyway."""
    if wanted:
        why = index.entry_problems.get(wanted)
        return (PriceVerdict.UNUSABLE, why) if why else (PriceVerdict.UNLISTED, f"the list has no entry `{wanted}`")
    if place.is_free():
        return None
    if place.provider is None:
        return PriceVerdict.UNMAPPED, f"vendor `{place.vendor}` is at no provider that lists name: map it"
    for name in sorted({*place.names, place.model}):
        key = place.provider, name
        if why := index.problems.get(key):
            return PriceVerdict.UNUSABLE, why
        if why := index.listed.unknown.get(key):
            return PriceVerdict.UNLISTED, f"no price known: {why}"
    return PriceVerdict.UNLISTED, f"the list has no `{', '.join(sorted(place.names))}` of `{place.provider}`"


def _judge_all(place: PricePlace, candidates: Sequence[ListedPrice], effective: float) -> Iterator[PriceFinding]:
    by_start = defaultdict[float, list[ListedPrice]](list)
    for price in candidates:
        if price.until is None or price.until > effective:
            by_start[-math.inf if price.since is None else price.since].append(price)
    current = max((start for start in by_start if start <= effective), default=None)
    for start in sorted(by_start):
        if start >= (effective if current is None else current):
            yield _judge(place, by_start[start], max(start, effective))


def _judge(place: PricePlace, listed: Sequence[ListedPrice], since: float) -> PriceFinding:
    first, term = listed[0], place.term_at(since)
    old = None if term is None else term.price

    def conclude(verdict: PriceVerdict, why: str = "") -> PriceFinding:
        return PriceFinding(
            model=place.model,
            vendor=place.vendor,
            verdict=verdict,
            why=why,
            entry=first.entry,
            since=since,
            until=first.until,
            old=old,
            origin=None if term is None else name_origin(term.origin),
            new=first.price,
            left_out=first.left_out,
            source=first.source,
        )

    if others := [each.entry for each in listed if not is_same(first.price, each.price) or each.until != first.until]:
        entries = ", ".join(dict.fromkeys([first.entry, *others]))
        return conclude(PriceVerdict.AMBIGUOUS, f"the list has several prices for it: {entries}")
    if wrong := misfit(first.price, place.kind):
        return conclude(PriceVerdict.UNUSABLE, wrong[0])
    if is_same(old, first.price):
        return conclude(PriceVerdict.SAME)
    if term is not None and term.origin.is_file:
        return conclude(PriceVerdict.DECLARED, "the settings declare its price")
    return conclude(PriceVerdict.NEW if term is None else PriceVerdict.CHANGED)


def count_drift(offers: Offers, now: float, origin: str) -> int:
    """Return the number of prices in force of one origin that are not those of the list that comes with Penstock."""
    found = propose(offers, shipped_list(), now)
    return sum(each.verdict in DRIFTED and each.since <= now and each.origin == origin for each in found)


# -- the price book


def describe_book(offers: Offers, now: float) -> list[dict[str, Any]]:
    """Return each model's price at each vendor: the one in force and its origin, and those to come."""
    return [_describe_place(place, now) for place in sorted(list_places(offers), key=lambda each: each.model)]


def _describe_place(place: PricePlace, now: float) -> dict[str, Any]:
    term = place.term_at(now)
    coming = sorted({each.since for each in place.terms if each.since > now})
    following = [(moment, place.term_at(moment)) for moment in coming]
    return {
        "object": "price",
        "model": place.model,
        "kind": place.kind,
        "vendor": place.vendor,
        "provider": place.provider,
        **_describe_term(term),
        "coming": [
            {"from": timestamp(moment)} | _describe_term(later)
            for moment, later in following
            if later is not None and later.since == moment
        ],
    }


def _describe_term(term: Any) -> dict[str, Any]:
    if term is None:
        return {"price": None, "origin": None, "since": None, "until": None, "row": None}
    return {
        "price": write_price(term.price),
        "origin": name_origin(term.origin),
        "since": None if math.isinf(term.since) else timestamp(term.since),
        "until": None if math.isinf(term.until) else timestamp(term.until),
        "row": term.row or None,
    }
