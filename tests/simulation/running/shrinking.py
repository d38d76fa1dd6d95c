"""Shrinking: find a small set of steps that still breaks the rule, by leaving out ever smaller parts."""

from collections.abc import Callable, Sequence

FirstFailing = Callable[[Sequence[Sequence[str]]], int | None]
"""Tries several lists of steps. Returns the index of the first one that still fails, or None."""


def shrink(steps: Sequence[str], first_failing: FirstFailing, has_time: Callable[[], bool]) -> list[str]:
    """Return a part of the steps that still fails. If time allows, none of its steps can be left out alone.

    This is delta debugging: leave out one part of n. If no part can be left out, make the parts smaller.
    """
    left = list(steps)
    if first_failing([[]]) == 0:
        return []
    parts = 2
    while len(left) > 1 and has_time():
        candidates = _without_each(left, parts)
        found = first_failing(candidates)
        if found is not None:
            left = candidates[found]
            parts = max(parts - 1, 2)
        elif parts >= len(left):
            break
        else:
            parts = min(parts * 2, len(left))
    return left


def _without_each(steps: list[str], parts: int) -> list[list[str]]:
    """Return the lists that leave out one part each. Late parts go first: they are the least likely causes."""
    ends = [len(steps) * part // parts for part in range(parts + 1)]
    return [steps[: ends[part]] + steps[ends[part + 1] :] for part in reversed(range(parts))]
