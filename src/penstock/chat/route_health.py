"""Which way a chat request goes: by order and weight, around routes that fail, and back to them with care."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.domain.chat import Blame, Fault
from penstock.errors import ChatRateLimited, PenstockError
from penstock.offers.route import Route, rank_routes

FAILURES: Final = 3
"""How many failures in a row before a route rests."""
SHORTEST_REST: Final = 1.0
LONGEST_REST: Final = 30.0
LONGEST_WISH: Final = 60.0
"""How long a vendor's `Retry-After` is obeyed without asking again."""
MAX_ACCOUNTS: Final = 1_000
"""So many accounts are remembered for each route; beyond that the one whose failures began first is forgotten."""
UNAUTHORIZED: Final = 401
LASTING: Final = (0, UNAUTHORIZED, 429)  # 0: told in a stream; 429: no credit is left


@dataclass(slots=True)
class Health:
    """Recent failures of one route, as seen by everyone or by one account."""

    failures: int = 0
    rests_until: float = 0.0
    wished_until: float = 0.0
    """The vendor itself asked to be left alone until then."""
    probing: bool = False
    """Somebody is finding out whether it works again; nobody else tries meanwhile."""
    error: PenstockError | None = None

    def is_open(self, now: float) -> bool:
        """Whether requests go this way: all of them, or after a rest a single one that tries it out."""
        return now >= self.wished_until and now >= self.rests_until and not self.probing

    def begin(self) -> bool:
        """A request goes this way; whether it is the one that tries a resting route out."""
        probes = self.failures >= FAILURES
        self.probing = self.probing or probes
        return probes

    def succeed(self) -> None:
        """The vendor answered."""
        if self.failures or self.wished_until or self.probing:
            self.failures, self.rests_until, self.wished_until, self.probing = 0, 0.0, 0.0, False

    def abstain(self, *, probed: bool) -> None:
        """The request ended without telling anything of the vendor."""
        self.probing = self.probing and not probed

    def fail(self, now: float, error: PenstockError, fault: Fault | None = None, *, probed: bool) -> None:
        """The vendor did not answer, or not well."""
        self.error = error
        # Requests that were under way when the rest began tell nothing new: only who probes makes it longer.
        if probed or self.failures < FAILURES:
            self.failures = max(FAILURES, self.failures + 1) if _is_lasting(fault) else self.failures + 1
            self.rests_until = now + _rest_after(self.failures)
        self.abstain(probed=probed)
        if fault is not None and fault.retry_after:
            self.wished_until = now + min(LONGEST_WISH, fault.retry_after)


def _rest_after(failures: int) -> float:
    if failures < FAILURES:
        return 0.0
    return min(LONGEST_REST, SHORTEST_REST * 2 ** min(failures - FAILURES, 10))  # a power without end overflows


def _is_lasting(fault: Fault | None) -> bool:
    """A refused key does not get better by trying again; a 402 or 403 may be about the request alone."""
    return fault is not None and fault.blame is Blame.CREDENTIAL and fault.status in LASTING


Probe: TypeAlias = tuple[bool, bool]
"""Two flags: the request tries out a route that rests for everyone, or one that rests for its account."""


class RouteHealth:
    """The health of one route, for everyone and for each account whose requests failed there.

    Most failures can be provoked by what is asked. Those of one account close the route to that account alone. Only
    what two accounts saw in a row, or what no request can provoke, closes it to everyone.
    """

    __slots__ = ("_counted", "_last", "_own", "_wish", "shared")

    def __init__(self) -> None:
        self.shared = Health()
        self._own: OrderedDict[str, Health] = OrderedDict()
        self._counted: dict[str, int] = {}
        """Failures in a row that count for everyone, by account."""
        self._last = ""
        """The account whose failure was the last that counted for everyone."""
        self._wish = ("", 0.0)
        """The account that was last asked to wait, and until when."""

    def is_open(self, now: float, account: str) -> bool:
        """Return whether requests of this account go this way."""
        own = self._own.get(account)
        return self.shared.is_open(now) and (own is None or own.is_open(now))

    def may_disturb(self, now: float, account: str) -> bool:
        """Return whether a request may try it although it rests: nobody else does, and the vendor did not object."""
        return all(not health.probing and now >= health.wished_until for health in self.of(account))

    def rests_until(self, account: str) -> float:
        """Return when its rest is over for this account."""
        return max(health.rests_until for health in self.of(account))

    def wait_and_error(self, now: float, account: str) -> tuple[float, PenstockError | None]:
        """Return how long this account has to wait, and the error that closed the route."""
        waits = [(_wait(health, now), health.error) for health in self.of(account)]
        return max(waits, key=lambda wait: wait[0])

    def of(self, account: str) -> list[Health]:
        """Return what bears on this account."""
        own = self._own.get(account)
        return [self.shared] if own is None else [self.shared, own]

    def worst(self) -> Health:
        """Return the one to report: that of the account, or of everyone, for whom it is closed longest."""
        healths = [self.shared, *self._own.values()]
        return max(healths, key=lambda health: (health.probing, max(health.rests_until, health.wished_until)))

    def begin(self, account: str) -> Probe:
        """Count a request that goes this way; return what it tries out."""
        own = self._own.get(account)
        return self.shared.begin(), own is not None and own.begin()

    def succeed(self, account: str) -> None:
        """Count a good answer: it shows everyone that the vendor works."""
        self.shared.succeed()
        if self._counted:
            self._counted.clear()
        if self._own:
            own = self._own.pop(account, None)
            if own is not None:
                own.succeed()

    def abstain(self, account: str, probe: Probe) -> None:
        """End a request that showed nothing of the vendor."""
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
        """Count a failure; one that is `unprovoked` does not depend on the request, nor does a refused key."""
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
            self._hear_wish(now, account, error, min(LONGEST_WISH, fault.retry_after))

    def _counts(self, account: str) -> bool:
        """Return whether this account's failure counts for everyone: never enough of them for a rest."""
        if self.shared.failures >= FAILURES:
            return account != self._last  # nor does one account alone make a rest longer
        count = self._counted[account] = self._counted.get(account, 0) + 1
        return count < FAILURES

    def _hear_wish(self, now: float, account: str, error: PenstockError, seconds: float) -> None:
        """Obey a vendor's wish for everyone once it was told to a second account; a limit may be one request's own."""
        other, until = self._wish
        if account != other and now < until:
            self.shared.wished_until, self.shared.error = now + seconds, error
        self._wish = account, now + seconds

    def _find_own(self, account: str) -> Health:
        own = self._own.get(account)
        if own is None:
            own = self._own[account] = Health()
            if len(self._own) > MAX_ACCOUNTS:
                self._own.popitem(last=False)
        return own


class Routes:
    """The health of every route, by vendor and its name of the model."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = monotonic
        self._health: dict[tuple[str, str], RouteHealth] = {}

    def health(self, route: Route) -> RouteHealth:
        """How this route is doing."""
        key = (route.vendor, route.model)
        found = self._health.get(key)
        if found is None:
            found = self._health[key] = RouteHealth()
        return found

    def forget(self) -> None:
        """The settings have changed: what failed may work now."""
        self._health.clear()

    def choose(self, routes: Sequence[Route], account: str) -> Iterable[Route]:
        """The routes to try, best first; where all are resting, one whose rest was not the vendor's own wish."""
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
        resting = [route for route in routes if self.health(route).may_disturb(self.now(), account)]
        if not resting:
            raise self._refusal(routes, account)
        yield min(resting, key=lambda route: self.health(route).rests_until(account))

    def _refusal(self, routes: Sequence[Route], account: str) -> PenstockError:
        """Every way is closed: said at once, as the vendor would say it, and when it is worth coming back."""
        now = self.now()
        waits = [self.health(route).wait_and_error(now, account) for route in routes]
        wait, last = min(waits, key=lambda each: each[0])
        if last is None:
            return ChatRateLimited(retry_after=wait)
        return type(last)(last.message, code=last.code, retry_after=wait)


def _wait(health: Health, now: float) -> float:
    return max(1.0 if health.probing else 0.0, health.wished_until - now)
