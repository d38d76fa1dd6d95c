"""How long a model takes and how much it says, learned from what ran here."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

REMEMBERED = 100
LENGTHS = 32
FIRST_GUESS = 1_000
MAX_LENGTHS = 10_000


@dataclass(frozen=True, slots=True)
class Duration:
    """Typical seconds of a job: half are faster than `p50`, nine in ten than `p90`."""

    p50: float
    p90: float
    jobs: int


class History:
    """The latest durations of each model; bounded."""

    def __init__(self) -> None:
        self._durations: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    def add(self, model: str, durations: Iterable[float]) -> None:
        """Learn from finished jobs."""
        self._durations[model].extend(durations)

    def replace(self, model: str, durations: Iterable[float]) -> None:
        """Learn anew, from the store."""
        self._durations[model].clear()
        self._durations[model].extend(durations)

    def typical(self, model: str) -> Duration | None:
        """None until the model has run here."""
        known = sorted(self._durations.get(model, ()))
        if not known:
            return None
        return Duration(known[len(known) // 2], known[min(len(known) - 1, len(known) * 9 // 10)], len(known))

    def usual_end(self, model: str, started_at: float | None) -> float | None:
        """When a job that started then will be done, if it takes as long as such jobs usually do."""
        typical = self.typical(model)
        return None if typical is None or started_at is None else started_at + typical.p50


class Lengths:
    """How many tokens the latest answers to each account had, by chat model; those used longest ago are forgotten."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[tuple[str, str], deque[int]] = OrderedDict()

    def add(self, account_id: str, model: str, tokens: int) -> None:
        """Learn from an answer."""
        place = (account_id, model)
        known = self._tokens.get(place)
        if known is None:
            known = self._tokens[place] = deque(maxlen=LENGTHS)
            if len(self._tokens) > MAX_LENGTHS:
                self._tokens.popitem(last=False)
        known.append(tokens)

    def longest(self, account_id: str, model: str) -> int | None:
        """The longest of the latest; None before the first."""
        known = self._tokens.get((account_id, model))
        return max(known) if known else None

    def likely(self, account_id: str, model: str) -> int:
        """More than most answers will have: twice the longest of the latest."""
        longest = self.longest(account_id, model)
        return FIRST_GUESS if longest is None else 2 * longest + 16
