"""What a list proves about a lost order: held against a vendor that knows the truth, with its own clock and lag."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.jobs import MARGIN_SECONDS, Placing, choose_free
from penstock.vendor_api.order_lookup import (
    CLOCK_SECONDS,
    ListedOrder,
    Listing,
    LostOrder,
    contradicts,
    proves_absence,
    reaches_back,
)

NOW = 1_000_000.0
moments = st.integers(-400, 400).map(lambda seconds: NOW + seconds / 2)


@dataclass(frozen=True)
class Books:
    """A vendor's list, newest first, of which a page was read a moment ago."""

    created: list[float]  # by our clock
    ahead: float  # of the vendor's clock
    lag: float
    page: int
    tells_time: bool

    def show(self, asked_at: float) -> Listing:
        visible = sorted((moment for moment in self.created if moment + self.lag <= asked_at), reverse=True)
        shown = visible[: self.page]
        entries = tuple(ListedOrder(f"order {moment}", moment + self.ahead) for moment in shown)
        answered_at = float(int(asked_at + self.ahead)) if self.tells_time else None
        return Listing(entries, len(visible) < self.page, answered_at)


@st.composite
def books(draw: st.DrawFn) -> Books:
    tells_time = draw(st.booleans())
    skew = 86_400.0 if tells_time else CLOCK_SECONDS - 1
    return Books(
        created=draw(st.lists(moments, max_size=30)),
        ahead=draw(st.floats(-skew, skew)),
        lag=draw(st.floats(0, 60)),
        page=draw(st.integers(1, 40)),
        tells_time=tells_time,
    )


@given(books(), moments, st.floats(0, 100), st.floats(0, 1), st.floats(0, 200))
def test_an_order_that_was_taken_is_never_proven_absent(vendor, placed_at, seconds, share, later):
    """Whatever the page, the clocks and the lag: it is in the list, or nothing is proven."""
    lost_at = placed_at + seconds
    taken_at = placed_at + share * seconds
    ours = Books([*vendor.created, taken_at], vendor.ahead, vendor.lag, vendor.page, vendor.tells_time)
    asked_at = lost_at + later
    listing = ours.show(asked_at)
    is_seen = f"order {taken_at}" in {entry.upstream_id for entry in listing.entries}
    loss = LostOrder(placed_at, lost_at, asked_at, settle_seconds=60)
    assert is_seen or not proves_absence(listing, loss)


@given(books(), moments, st.floats(0, 100))
def test_after_the_lag_a_list_that_reaches_back_proves_absence(vendor, placed_at, seconds):
    lost_at = placed_at + seconds
    asked_at = lost_at + 61
    listing = Books(vendor.created, vendor.ahead, vendor.lag, 1000, vendor.tells_time).show(asked_at)
    assert proves_absence(listing, LostOrder(placed_at, lost_at, asked_at, settle_seconds=60))


def test_a_younger_order_proves_it_at_once():
    loss = LostOrder(NOW, NOW + 1, NOW + 20, settle_seconds=600)
    old, young = ListedOrder("old", NOW - 500), ListedOrder("young", NOW + 1 + MARGIN_SECONDS + 1)
    assert proves_absence(Listing((young, old), answered_at=NOW + 20), loss)
    assert not proves_absence(Listing((young, old)), loss), "nobody knows the vendor's clock"
    assert not proves_absence(Listing((old,), answered_at=NOW + 20), loss)
    assert not proves_absence(Listing((young,), answered_at=NOW + 20), loss), "ours may be on the next page"


def test_a_clock_of_our_own_that_was_set_back_proves_nothing():
    listing = Listing((ListedOrder("a", NOW - 500), ListedOrder("b", NOW - 900)))
    assert not proves_absence(listing, LostOrder(NOW + 3600, NOW, NOW + 100, settle_seconds=60))


@given(st.lists(st.one_of(st.none(), moments), max_size=20), moments)
def test_only_a_list_that_is_newest_first_is_trusted_to_reach_back(times, since):
    listing = Listing(tuple(ListedOrder(str(number), moment) for number, moment in enumerate(times)))
    known = [moment for moment in times if moment is not None]
    is_sorted = len(known) == len(times) and known == sorted(known, reverse=True)
    assert reaches_back(listing, since) == (bool(times) and is_sorted and min(known) < since)
    assert reaches_back(Listing(listing.entries, is_whole=True), since)


names = st.sampled_from("abcdef")


@given(
    st.lists(names, unique=True), st.sets(names), st.lists(st.floats(0, 100)), st.dictionaries(names, st.floats(0, 100))
)
def test_nobody_is_given_what_another_holds_or_may_be_about_to(found, held, begun, seen_at):
    placing = [Placing(moment) for moment in begun]
    chosen = choose_free(found, held, placing, seen_at)
    free = [name for name in found if name not in held]
    if chosen is None:
        assert all(
            any(name not in seen_at or moment <= seen_at[name] + MARGIN_SECONDS for moment in begun) for name in free
        )
    else:
        assert chosen in free
        assert all(chosen in seen_at and moment > seen_at[chosen] + MARGIN_SECONDS for moment in begun)
    assert choose_free(found, held, placing, None) == (None if begun else next(iter(free), None))


@given(st.dictionaries(names, st.integers(0, 3)), st.dictionaries(names, st.integers(0, 3)))
def test_only_what_is_told_can_contradict(echo, wanted):
    assert contradicts(echo, wanted) == any(echo[name] != wanted[name] for name in echo.keys() & wanted.keys())
    assert not contradicts({}, wanted)
    assert not contradicts({name: str(value) for name, value in wanted.items()}, wanted)
