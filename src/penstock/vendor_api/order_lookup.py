"""Rules for what a vendor's list of orders proves about a lost one; no I/O and no clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from penstock.domain.jobs import MARGIN_SECONDS

CLOCK_SECONDS: Final = 120.0
"""Tolerance for a vendor's clock whose replies have no `Date`."""
_PLAIN: Final = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """One order of the list; `created_at` is by the vendor's clock."""

    upstream_id: str
    created_at: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The part of a vendor's list that was read, in the vendor's order."""

    entries: tuple[ListedOrder, ...] = ()
    is_whole: bool = False  # it was read to its end
    answered_at: float | None = None  # the vendor's clock when it answered, from `Date`


@dataclass(frozen=True, slots=True)
class LostOrder:
    """An order of unknown fate. Times are by our clock, in seconds since the epoch."""

    placed_at: float  # when it was submitted
    lost_at: float  # the last moment at which it can have been sent
    asked_at: float  # when the vendor answered with its list
    settle_seconds: float  # how long the list may lag behind an accepted order


def measure_clock(listing: Listing, asked_at: float) -> tuple[float, float]:
    """Return how far the vendor's clock is ahead of ours, and the error of that, both in seconds."""
    if listing.answered_at is None:
        return 0.0, CLOCK_SECONDS
    return listing.answered_at - asked_at, MARGIN_SECONDS


def reaches_back(listing: Listing, since: float) -> bool:
    """Return whether the part that was read holds all orders since then, by the vendor's clock.

    Few vendors document how their list is sorted. A list is trusted only if it is seen to be newest first.
    """
    if listing.is_whole:
        return True
    times = [entry.created_at for entry in listing.entries]
    known = [moment for moment in times if moment is not None]
    if not known or len(known) < len(times):
        return False
    return known[-1] < since and all(later >= earlier for later, earlier in pairwise(known))


def proves_absence(listing: Listing, loss: LostOrder) -> bool:
    """Return whether a list without the order proves that the vendor never took it.

    The list must reach back beyond the order's start. Besides, either it shows an order that is younger than ours can
    be, or the time in which the list may lag has passed.
    """
    ahead, margin = measure_clock(listing, loss.asked_at)
    if loss.placed_at > loss.asked_at and not listing.is_whole:  # our own clock was set back
        return False
    if not reaches_back(listing, loss.placed_at + ahead - CLOCK_SECONDS):
        return False
    if loss.asked_at >= loss.lost_at + loss.settle_seconds:
        return True
    return any(
        entry.created_at is not None and entry.created_at > loss.lost_at + ahead + margin for entry in listing.entries
    )


def contradicts(echo: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether an echoed input is certainly not that of the order: a plain value in both differs.

    A value that the vendor leaves out or fills in is no contradiction, as absence must not follow from it.
    """
    return any(
        str(echo[name]).lower() != str(value).lower()
        for name, value in wanted.items()
        if isinstance(value, _PLAIN) and isinstance(echo.get(name), _PLAIN)
    )
