"""How a bounded resource is divided among accounts."""

from hypothesis import given
from hypothesis import strategies as some

from penstock.fairness.fair_share import Bounds, FairShare

BOUNDS = Bounds(total=10, each=6, reserve=2, little=1)


def test_one_owner_gets_no_more_than_its_part():
    share = FairShare()
    assert [share.try_take("a", 1, BOUNDS) for _ in range(8)] == [True] * 6 + [False] * 2
    assert (share.held_by("a"), share.total) == (6, 6)


def test_the_reserve_is_for_those_who_hold_little():
    share = FairShare()
    assert share.try_take("a", 6, BOUNDS)
    assert share.try_take("b", 2, BOUNDS)
    assert not share.try_take("b", 1, BOUNDS)
    assert not share.try_take("c", 2, BOUNDS)
    assert share.try_take("c", 1, BOUNDS)
    assert share.try_take("d", 1, BOUNDS)
    assert not share.try_take("e", 1, BOUNDS)  # nothing is left at all


@given(some.lists(some.tuples(some.sampled_from("abcd"), some.integers(1, 5), some.booleans()), max_size=60))
def test_whatever_is_taken_and_given_back_the_bounds_hold(steps):
    share = FairShare()
    held: dict[str, list[int]] = {}
    for owner, amount, gives_back in steps:
        mine = held.setdefault(owner, [])
        if gives_back and mine:
            share.give_back(owner, mine.pop())
        elif share.try_take(owner, amount, BOUNDS):
            mine.append(amount)
        sums = {each: sum(amounts) for each, amounts in held.items()}
        assert all(share.held_by(each) == total <= BOUNDS.each for each, total in sums.items())
        assert share.total == sum(sums.values()) <= BOUNDS.total
    for owner, mine in held.items():
        for amount in mine:
            share.give_back(owner, amount)
    assert (share.total, share._held) == (0, {})
