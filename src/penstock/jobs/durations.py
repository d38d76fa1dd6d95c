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
    """The latest durations of each model, in bounded memory."""

    def __init__(self) -> None:
        self._durations: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    def add(self, model: str, durations: Iterable[float]) -> None:
        """Add the durations of finished jobs, in seconds."""
        self._durations[model].extend(durations)

    def replace(self, model: str, durations: Iterable[float]) -> None:
        """Replace all durations of a model with those from the store."""
        self._durations[model].clear()
        self._durations[model].extend(durations)

    def typical(self, model: str) -> Duration | None:
        """Return the typical duration, or None until the model has run here."""
        known = sorted(self._durations.get(model, ()))
        if not known:
            return None
        return Duration(known[len(known) // 2], known[min(len(known) - 1, len(known) * 9 // 10)], len(known))

    def usual_end(self, model: str, started_at: float | None) -> float | None:
        """Return the time at which a job of median duration would end, or None if nothing is known."""
        typical = self.typical(model)
        return None if typical is None or started_at is None else started_at + typical.p50
