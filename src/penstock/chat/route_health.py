"""The health of chat routes: failing ones are closed for a cooldown, then probed by single requests."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.domain.chat import Blame, Fault
from penstock.errors import ChatRateLimited, PenstockError
from penstock.offers.route import Route, rank_routes

FAILURES_TO_CLOSE: Final = 3
"""Failures in a row that close a route for a cooldown."""
MIN_COOLDOWN_SECONDS: Final = 1.0
MAX_COOLDOWN_SECONDS: Final = 30.0
MAX_OBEYED_RETRY_AFTER_SECONDS: Final = 60.0
"""Longest `Retry-After` of a vendor that is obeyed without a probe."""
MAX_ACCOUNTS: Final = 1_000
"""Accounts remembered for each route. Beyond that, the one whose failures began first is dropped."""
UNAUTHORIZED: Final = 401
LASTING_STATUSES: Final = (0, UNAUTHORIZED, 429)  # 0: reported in a stream; 429: no credit is left


@dataclass(slots=True)
class Health:
    """Recent failures of one route, as seen by everyone or by one account."""

    failures: int = 0
    cooldown_until: float = 0.0
    retry_after_until: float = 0.0
    """The end of the vendor's own `Retry-After`."""
    probing: bool = False
    """A request is probing whether it works again; no other request tries meanwhile."""
    error: PenstockError | None = None

    def is_open(self, now: float) -> bool:
        """Return whether requests may take this route: all of them, or a single probe after a cooldown."""
        return now >= self.retry_after_until and now >= self.cooldown_until and not self.probing

    def begin(self) -> bool:
        """Count a request that takes this route; return whether it is a probe."""
        probes = self.failures >= FAILURES_TO_CLOSE
        self.probing = self.probing or probes
        return probes

    def succeed(self) -> None:
        """Forget all failures: the vendor answered."""
        if self.failures or self.retry_after_until or self.probing:
            self.failures, self.cooldown_until, self.retry_after_until, self.probing = 0, 0.0, 0.0, False

    def abstain(self, *, probed: bool) -> None:
        """End a request that showed nothing about the vendor."""
        self.probing = self.probing and not probed

    def fail(self, now: float, error: PenstockError, fault: Fault | None = None, *, probed: bool) -> None:
        """Count a failure of the vendor and start a cooldown if there were enough."""
        self.error = error
        # Requests that were under way when the cooldown began show nothing new: only a probe makes it longer.
        if probed or self.failures < FAILURES_TO_CLOSE:
            self.failures = max(FAILURES_TO_CLOSE, self.failures + 1) if _is_lasting(fault) else self.failures + 1
            self.cooldown_until = now + _cooldown_after(self.failures)
        self.abstain(probed=probed)
        if fault is not None and fault.retry_after:
            self.retry_after_until = now + min(MAX_OBEYED_RETRY_AFTER_SECONDS, fault.retry_after)


def _cooldown_after(failures: int) -> float:
    if failures < FAILURES_TO_CLOSE:
        return 0.0
    doublings = min(failures - FAILURES_TO_CLOSE, 10)  # an unbounded power overflows
    return min(MAX_COOLDOWN_SECONDS, MIN_COOLDOWN_SECONDS * 2**doublings)


def _is_lasting(fault: Fault | None) -> bool:
    """Return whether a retry is pointless, as with a refused key; a 402 or 403 may concern one request alone."""
    return fault is not None and fault.blame is Blame.CREDENTIAL and fault.status in LASTING_STATUSES


Probe: TypeAlias = tuple[bool, bool]
"""Two flags: the request probes a route closed to everyone, or one closed to its account."""


class RouteHealth:
    """The health of one route, for everyone and for each account whose requests failed there.

    Most failures can be provoked by a request. Those of one account close the route to that account alone. Failures
    of two accounts in a row, or failures that no request can provoke, close it to everyone.
    """

    __slots__ = ("_asked_to_wait", "_counted", "_last", "_own", "shared")

    def __init__(self) -> None:
        self.shared = Health()
        self._own: OrderedDict[str, Health] = OrderedDict()
        self._counted: dict[str, int] = {}
        """Failures in a row that count for everyone, by account."""
        self._last = ""
        """The account of the latest failure that counted for everyone."""
        self._asked_to_wait = ("", 0.0)
        """The account that was last asked to wait, and the end of that wait."""

    def is_open(self, now: float, account: str) -> bool:
        """Return whether requests of this account may take the route."""
        own = self._own.get(account)
        return self.shared.is_open(now) and (own is None or own.is_open(now))

    def may_probe(self, now: float, account: str) -> bool:
        """Return whether a request may probe a closed route: no other does, and no `Retry-After` forbids it."""
        return all(not health.probing and now >= health.retry_after_until for health in self.of(account))

    def cooldown_until(self, account: str) -> float:
        """Return the end of the cooldown for this account."""
        return max(health.cooldown_until for health in self.of(account))

    def wait_and_error(self, now: float, account: str) -> tuple[float, PenstockError | None]:
        """Return the seconds that this account has to wait, and the error that closed the route."""
        waits = [(_wait(health, now), health.error) for health in self.of(account)]
        return max(waits, key=lambda wait: wait[0])

    def of(self, account: str) -> list[Health]:
        """Return the health entries that apply to this account."""
        own = self._own.get(account)
        return [self.shared] if own is None else [self.shared, own]

    def worst(self) -> Health:
        """Return the entry to report: the one that keeps the route closed longest."""
        healths = [self.shared, *self._own.values()]
        return max(healths, key=lambda health: (health.probing, max(health.cooldown_until, health.retry_after_until)))

    def begin(self, account: str) -> Probe:
        """Count a request that takes this route; return what it probes."""
        own = self._own.get(account)
        return self.shared.begin(), own is not None and own.begin()

    def succeed(self, account: str) -> None:
        """Count a good answer, which opens the route to everyone."""
        self.shared.succeed()
        if self._counted:
            self._counted.clear()
        if self._own:
            own = self._own.pop(account, None)
            if own is not None:
                own.succeed()

    def abstain(self, account: str, probe: Probe) -> None:
        """End a request that showed nothing about the vendor."""
        self.shared.abstain(probed=probe[0])
        if probe[1] and account in self._own:
            self._own[account].abstain(probed=True)

    def fail(
        self,
        now: float,
        account: str,
        error: PenstockError,
        fault: Fault | None = None,
        *,
        probe: Probe = (False, False),
        unprovoked: bool = False,
    ) -> None:
        """Count a failure; an `unprovoked` one or a refused key does not depend on the request."""
        if unprovoked or (fault is not None and fault.status == UNAUTHORIZED):
            self.shared.fail(now, error, fault, probed=probe[0])
            self.abstain(account, (False, probe[1]))
            return
        self._find_own(account).fail(now, error, fault, probed=probe[1])
        if self._counts(account):
            self._last = account
            self.shared.fail(now, error, probed=probe[0])
        else:
            self.shared.abstain(probed=probe[0])
        if fault is not None and fault.retry_after:
            self._obey_retry_after(now, account, error, min(MAX_OBEYED_RETRY_AFTER_SECONDS, fault.retry_after))

    def _counts(self, account: str) -> bool:
        """Return whether this account's failure counts for everyone: never enough of them for a cooldown."""
        if self.shared.failures >= FAILURES_TO_CLOSE:
            return account != self._last  # nor does one account alone extend a cooldown
        count = self._counted[account] = self._counted.get(account, 0) + 1
        return count < FAILURES_TO_CLOSE

    def _obey_retry_after(self, now: float, account: str, error: PenstockError, seconds: float) -> None:
        """Obey a `Retry-After` for everyone once a second account got one; a limit may concern one request."""
        other, until = self._asked_to_wait
        if account != other and now < until:
            self.shared.retry_after_until, self.shared.error = now + seconds, error
        self._asked_to_wait = account, now + seconds

    def _find_own(self, account: str) -> Health:
        own = self._own.get(account)
        if own is None:
            own = self._own[account] = Health()
            if len(self._own) > MAX_ACCOUNTS:
                self._own.popitem(last=False)
        return own


class Routes:
    """The health of every route, by vendor and its name of the model."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.now = steady
        self._health: dict[tuple[str, str], RouteHealth] = {}

    def health(self, route: Route) -> RouteHealth:
        """Return the health of this route."""
        key = (route.vendor, route.model)
        found = self._health.get(key)
        if found is None:
            found = self._health[key] = RouteHealth()
        return found

    def forget(self) -> None:
        """Open all routes, as after a change of the settings."""
        self._health.clear()

    def choose(self, routes: Sequence[Route], account: str) -> Iterable[Route]:
        """Return the routes to try, best first; if all are closed, one to probe whose vendor sent no `Retry-After`."""
        if len(routes) == 1 and self.health(routes[0]).is_open(self.now(), account):
            return routes
        return self._choose(routes, account)

    def _choose(self, routes: Sequence[Route], account: str) -> Iterator[Route]:
        open_routes = rank_routes(routes, lambda route: self.health(route).is_open(self.now(), account))
        if open_routes:
            for route in open_routes:
                # It may have changed while the one before was tried.
                if self.health(route).is_open(self.now(), account):
                    yield route
            return
        closed = [route for route in routes if self.health(route).may_probe(self.now(), account)]
        if not closed:
            raise self._refusal(routes, account)
        yield min(closed, key=lambda route: self.health(route).cooldown_until(account))

    def _refusal(self, routes: Sequence[Route], account: str) -> PenstockError:
        """Return the error for closed routes: the vendor's last one, with the time to wait."""
        now = self.now()
        waits = [self.health(route).wait_and_error(now, account) for route in routes]
        wait, last = min(waits, key=lambda each: each[0])
        if last is None:
            return ChatRateLimited(retry_after=wait)
        return type(last)(last.message, code=last.code, retry_after=wait)


def _wait(health: Health, now: float) -> float:
    return max(1.0 if health.probing else 0.0, health.retry_after_until - now)
