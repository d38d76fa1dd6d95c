"""Prices as a list gives them, before they are matched with the models served here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.domain.prices import Price, TokenPrice


class PriceListUnreadable(Exception):
    """The whole list cannot be used; the message says why, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrice:
    """One price of a list."""

    entry: str
    """Its name in the list."""
    model: str
    """The vendor's name of the model; in our own form also the id here."""
    provider: str | None = None
    """The list's word for the vendor; None in our own form."""
    vendor: str | None = None
    """In our own form: the name of the vendor's table here; None for all."""
    price: Price | TokenPrice
    since: float | None = None
    until: float | None = None
    left_out: Sequence[str] = ()
    """Parts of the list's price for which ours has no place."""
    source: str = ""
    in_credits: bool = False
    """True: its amounts are the vendor's credits, whose price depends on the operator's plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProblem:
    """An entry of a list without a usable price."""

    entry: str
    provider: str | None
    model: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrices:
    """A list that was read."""

    form: str
    prices: Sequence[ListedPrice]
    problems: Sequence[ListedProblem] = ()
    unknown: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """By provider and model: why no price is known. Only our own list has such."""
