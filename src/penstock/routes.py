"""Which way a chat request goes: by order and weight, around routes that fail, and back to them with care."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.chat import Blame, Fault
from penstock.errors import ChatRateLimited, PenstockError
from penstock.offers import Route

FAILURES: Final = 3
"""How many failures in a row before a route rests."""
SHORTEST_REST: Final = 1.0
LONGEST_REST: Final = 30.0
LONGEST_WISH: Final = 60.0
"""How long a vendor's `Retry-After` is obeyed without asking again."""


@dataclass(slots=True)
class Health:
    """How one route has been doing."""

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
    """A refused credential does not get better by trying again."""
    return fault is not None and fault.blame is Blame.CREDENTIAL


class Routes:
    """The health of every route, by vendor and its name of the model."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = monotonic
        self._health: dict[tuple[str, str], Health] = {}

    def health(self, route: Route) -> Health:
        """How this route is doing."""
        key = (route.vendor, route.model)
        found = self._health.get(key)
        if found is None:
            found = self._health[key] = Health()
        return found

    def forget(self) -> None:
        """The settings have changed: what failed may work now."""
        self._health.clear()

    def choose(self, routes: Sequence[Route]) -> Iterable[Route]:
        """The routes to try, best first; where all are resting, one whose rest was not the vendor's own wish."""
        if len(routes) == 1 and self.health(routes[0]).is_open(self.now()):
            return routes
        return self._choose(routes)

    def _choose(self, routes: Sequence[Route]) -> Iterator[Route]:
        open_routes = [route for route in routes if self.health(route).is_open(self.now())]
        if open_routes:
            for route in _shuffle(open_routes):
                if self.health(route).is_open(self.now()):  # while the one before was tried, it may have changed
                    yield route
            return
        resting = [route for route in routes if self._may_disturb(self.health(route))]
        if not resting:
            raise self._refusal(routes)
        yield min(resting, key=lambda route: self.health(route).rests_until)

    def _may_disturb(self, health: Health) -> bool:
        return not health.probing and self.now() >= health.wished_until

    def _refusal(self, routes: Sequence[Route]) -> PenstockError:
        """Every way is closed: said at once, as the vendor would say it, and when it is worth coming back."""
        now = self.now()
        healths = [self.health(route) for route in routes]
        waits = [max(1.0 if health.probing else 0.0, health.wished_until - now) for health in healths]
        wait = min(waits)
        last = healths[waits.index(wait)].error
        if last is None:
            return ChatRateLimited(retry_after=wait)
        return type(last)(last.message, code=last.code, retry_after=wait)


def _shuffle(routes: Sequence[Route]) -> list[Route]:
    """By order; within an order at random, the heavier the earlier."""
    return sorted(routes, key=lambda route: (route.order, random.random() ** (1 / route.weight) * -1))  # noqa: S311  no secret
