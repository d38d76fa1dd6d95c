"""How many jobs are open: counted every second, and counted on in between."""

from collections import Counter
from collections.abc import Mapping

from penstock.errors import QueueFull

RETRY_SECONDS = 5.0


class Backlog:
    """What upkeep counts, intake goes by and the metrics tell."""

    def __init__(self) -> None:
        self.by_state: Counter[str] = Counter()
        self._by_account: Counter[str] = Counter()

    def learn(self, counted: Mapping[tuple[str, str], int]) -> None:
        """Take over a count, by account and state."""
        self.by_state.clear()
        self._by_account.clear()
        for (account_id, state), number in counted.items():
            self.by_state[state] += number
            self._by_account[account_id] += number

    def add(self, account_id: str, number: int) -> None:
        """Jobs were accepted since the last count."""
        self.by_state["queued"] += number
        self._by_account[account_id] += number

    def refuse(self, account_id: str, number: int, *, of_account: int, of_all: int) -> None:
        """Raise if so many more would be too many, for the account or for all of them together."""
        there = self._by_account[account_id]
        if there + number > of_account:
            message = f"Your account has {there} jobs open, and may have {of_account} (jobs.max_waiting)."
        elif self.by_state.total() + number > of_all:
            message = "The gateway has as many jobs open as it takes (jobs.max_waiting_total)."
        else:
            return
        raise QueueFull(message, retry_after=RETRY_SECONDS, suggestion="Wait until some have ended.")
