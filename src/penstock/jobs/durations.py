"""Learn how long the jobs of a model take."""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

REMEMBERED = 100


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
