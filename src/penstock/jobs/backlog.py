"""The number of open jobs: read from the store every second, and estimated in between."""

from collections import Counter
from collections.abc import Mapping

from penstock.errors import QueueFull

RETRY_SECONDS = 5.0


class Backlog:
    """Counts of open jobs, for the limits of the intake and for the metrics."""

    def __init__(self) -> None:
        self.by_state: Counter[str] = Counter()
        self._by_account: Counter[str] = Counter()

    def learn(self, counted: Mapping[tuple[str, str], int]) -> None:
        """Replace the counts, which are given by account and state."""
        self.by_state.clear()
        self._by_account.clear()
        for (account_id, state), number in counted.items():
            self.by_state[state] += number
            self._by_account[account_id] += number

    def add(self, account_id: str, number: int) -> None:
        """Count jobs that were accepted since the last read."""
        self.by_state["queued"] += number
        self._by_account[account_id] += number

    def refuse(self, account_id: str, number: int, *, of_account: int, of_all: int) -> None:
        """Raise QueueFull if this many more jobs exceed the limit of the account or of all accounts."""
        open_jobs = self._by_account[account_id]
        if open_jobs + number > of_account:
            message = f"Your account has {open_jobs} open jobs; at most {of_account} are allowed (jobs.max_waiting)."
        elif self.by_state.total() + number > of_all:
            message = "The gateway has reached its limit of open jobs (jobs.max_waiting_total)."
        else:
            return
        raise QueueFull(message, retry_after=RETRY_SECONDS, suggestion="Wait until some of them have ended.")
