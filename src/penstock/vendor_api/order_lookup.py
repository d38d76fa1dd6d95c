"""Rules for what a vendor's list of orders proves about one whose answer was lost; no I/O and no clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from penstock.domain.jobs import MARGIN_SECONDS

CLOCK_SECONDS: Final = 120.0
"""Seconds that a vendor's clock may be off where its replies do not give the time."""
PLAIN: Final = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """One order of the list, and when it was created by the vendor's clock."""

    upstream_id: str
    created_at: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The part of a vendor's list that was read, in the vendor's order."""

    entries: tuple[ListedOrder, ...] = ()
    is_whole: bool = False  # it was read to its end
    told_at: float | None = None  # the vendor's clock when it answered, from `Date`


@dataclass(frozen=True, slots=True)
class LostOrder:
    """An order of unknown fate. Times are by our clock, in seconds since the epoch."""

    placed_at: float  # when we set about it
    lost_at: float  # the last moment at which it can have left us
    asked_at: float  # when the vendor answered with its list
    settle_seconds: float  # how long after it was taken an order may be missing in the list


def measure_clock(listing: Listing, asked_at: float) -> tuple[float, float]:
    """Return by how much the vendor's clock is ahead of ours, and how wrong that may be, in seconds."""
    if listing.told_at is None:
        return 0.0, CLOCK_SECONDS
    return listing.told_at - asked_at, MARGIN_SECONDS


def reaches_back(listing: Listing, since: float) -> bool:
    """Tell whether no order since then, by the vendor's clock, can be beyond the part that was read.

    The order of a list is documented by few vendors: only one that is seen to be newest first is trusted.
    """
    if listing.is_whole:
        return True
    times = [entry.created_at for entry in listing.entries]
    known = [moment for moment in times if moment is not None]
    if not known or len(known) < len(times):
        return False
    return known[-1] < since and all(later >= earlier for later, earlier in pairwise(known))


def proves_absence(listing: Listing, loss: LostOrder) -> bool:
    """Tell whether a list in which no entry can be the order proves that the vendor never took it.

    It has to be complete back beyond the order's start. Then either an order is shown that is younger than ours can
    be, or the time is over in which the list may lag.
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
    """Tell whether an echoed input is certainly not that of the order: something plain in both differs.

    That a vendor leaves something out, or fills something in, is no contradiction: absence must not follow from it.
    """
    return any(
        str(echo[name]).lower() != str(value).lower()
        for name, value in wanted.items()
        if isinstance(value, PLAIN) and isinstance(echo.get(name), PLAIN)
    )
