"""Circuit breakers of a hook: a hook that is down does not cost every request its timeout."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_FAILURES: Final = 5
"""Failures in a row after which the hook is not asked for a while."""
PAUSE_SECONDS: Final = 5.0
"""Pause until one request tries again."""


@dataclass(slots=True)
class _Circuit:
    """Failures in a row, of one account or of all."""

    failures: int = 0
    retry_at: float = 0.0
    is_probed: bool = False

    @property
    def is_open(self) -> bool:
        return self.failures >= MAX_FAILURES


class Breaker:
    """Counts failures of one hook.

    A request can provoke most failures, such as a timeout. So those of an account count for that account alone.
    Failures that no request can provoke, such as a refused connection, count for all.
    """

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._all = _Circuit()
        self._accounts: dict[str, _Circuit] = {}

    def try_begin(self, account_id: str) -> bool:
        """Return whether the hook may be asked. If so, one of the other methods must follow."""
        now = self._steady()
        circuits = [each for each in (self._all, self._accounts.get(account_id)) if each is not None and each.is_open]
        if any(circuit.is_probed or now < circuit.retry_at for circuit in circuits):
            return False
        for circuit in circuits:
            circuit.is_probed = True
        return True

    def is_paused(self, account_id: str) -> bool:
        """Return whether the hook is not asked now, apart from one request that tries."""
        account = self._accounts.get(account_id)
        return self._all.is_open or (account is not None and account.is_open)

    def succeed(self, account_id: str) -> bool:
        """Record an answer. Return whether the hook works again after a pause."""
        was_open = self.is_paused(account_id)
        self._all = _Circuit()
        self._accounts.pop(account_id, None)
        return was_open

    def fail(self, account_id: str, *, is_provocable: bool) -> bool:
        """Record a failure. Return whether it begins a pause."""
        self.abstain(account_id)
        circuit = self._accounts.setdefault(account_id, _Circuit()) if is_provocable else self._all
        circuit.failures += 1
        circuit.retry_at = self._steady() + PAUSE_SECONDS
        return circuit.failures == MAX_FAILURES

    def abstain(self, account_id: str) -> None:
        """Record that nothing was learned: the caller left, or the request never reached the hook."""
        self._all.is_probed = False
        if account_id in self._accounts:
            self._accounts[account_id].is_probed = False
