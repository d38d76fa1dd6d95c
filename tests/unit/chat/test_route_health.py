"""Which way chat requests go, by a clock that the test turns."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.route_health import (
    FAILURES_TO_CLOSE,
    MAX_ACCOUNTS,
    MAX_COOLDOWN_SECONDS,
    MAX_OBEYED_RETRY_AFTER_SECONDS,
    MIN_COOLDOWN_SECONDS,
    Routes,
)
from penstock.domain.chat import Blame, Fault
from penstock.errors import Overloaded, PenstockError, RateLimited, VendorFailed, VendorRefusedUs, VendorTimeout
from penstock.offers.route import Route

ONE, TWO, THREE = (Route(name, "m") for name in ("one", "two", "three"))


class Clock:
    """Seconds, as many as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Seen:
    """A route's health as one account sees it."""

    def __init__(self, routes: Routes, route: Route, account: str) -> None:
        self._all = routes.health(route)
        self._account = account

    def begin(self) -> Any:
        probe = self._all.begin(self._account)
        return probe if True in probe else ()

    def succeed(self) -> None:
        self._all.succeed(self._account)

    def abstain(self, *, probed: Any) -> None:
        self._all.abstain(self._account, probed or (False, False))

    def fail(
        self, now: float, error: PenstockError, fault: Fault | None = None, *, probed: Any = (), **how: bool
    ) -> None:
        self._all.fail(now, self._account, error, fault, probe=probed or (False, False), **how)

    @property
    def failures(self) -> int:
        return max(health.failures for health in self._all.of(self._account))

    @property
    def cooldown_until(self) -> float:
        return self._all.cooldown_until(self._account)

    @property
    def retry_after_until(self) -> float:
        return max(health.retry_after_until for health in self._all.of(self._account))


class Ways:
    """Routes, and what becomes of requests on them."""

    def __init__(self, *routes: Route) -> None:
        self.clock = Clock()
        self.routes = Routes(self.clock)
        self.all = routes

    def choose(self, account: str = "a") -> list[str]:
        return [route.vendor for route in self.routes.choose(self.all, account)]

    def health(self, route: Route, account: str = "a") -> Seen:
        return Seen(self.routes, route, account)

    def fail(
        self,
        route: Route,
        error: PenstockError | None = None,
        fault: Fault | None = None,
        account: str = "a",
        **how: bool,
    ) -> None:
        health = self.health(route, account)
        health.fail(self.clock.now, error or VendorFailed(), fault, probed=health.begin(), **how)

    def fail_often(self, route: Route, times: int = FAILURES_TO_CLOSE, account: str = "a") -> None:
        for _ in range(times):
            self.fail(route, account=account)

    def succeed(self, route: Route, account: str = "a") -> None:
        self.health(route, account).begin()
        self.health(route, account).succeed()


def wish(seconds: float, blame: Blame = Blame.LIMIT) -> Fault:
    return Fault(blame, retry_after=seconds)


# -- order and weight


@given(some.lists(some.tuples(some.integers(1, 4), some.integers(1, 1000)), min_size=1, max_size=8))
def test_a_lower_order_is_always_tried_first_and_each_route_once(shape):
    ways = Ways(*(Route(f"v{number}", "m", weight, order) for number, (order, weight) in enumerate(shape)))
    order = {route.vendor: route.order for route in ways.all}
    chosen = ways.choose()
    assert sorted(chosen) == sorted(order)
    assert [order[vendor] for vendor in chosen] == sorted(order.values())


# -- rests


def test_a_route_rests_after_three_failures_in_a_row_and_not_before():
    ways = Ways(ONE, TWO)
    for _ in range(5):
        ways.fail_often(ONE, FAILURES_TO_CLOSE - 1)
        assert sorted(ways.choose()) == ["one", "two"]
        ways.succeed(ONE)
    ways.fail_often(ONE)
    assert ways.choose() == ["two"]


def test_a_rest_ends_with_a_single_probe():
    ways = Ways(ONE, TWO)
    ways.fail_often(ONE)
    ways.clock.now += MIN_COOLDOWN_SECONDS - 0.01
    assert ways.choose() == ["two"]
    ways.clock.now += 0.01
    assert sorted(ways.choose()) == ["one", "two"]  # until somebody takes it
    assert ways.health(ONE).begin()
    assert [ways.choose() for _ in range(20)] == [["two"]] * 20
    ways.health(ONE).succeed()
    assert sorted(ways.choose()) == ["one", "two"]
    ways.fail_often(ONE, FAILURES_TO_CLOSE - 1)
    assert sorted(ways.choose()) == ["one", "two"], "a success forgets all failures before it"


def test_rests_grow_with_every_failed_probe_up_to_the_longest():
    ways = Ways(ONE, TWO)
    ways.fail_often(ONE)
    rests: list[float] = []
    for _ in range(8):
        rests.append(ways.health(ONE).cooldown_until - ways.clock.now)
        ways.clock.now = ways.health(ONE).cooldown_until
        ways.fail(ONE)
    assert rests == [1, 2, 4, 8, 16, MAX_COOLDOWN_SECONDS, MAX_COOLDOWN_SECONDS, MAX_COOLDOWN_SECONDS]
    ways.clock.now += MAX_COOLDOWN_SECONDS
    ways.succeed(ONE)
    ways.fail_often(ONE)
    assert ways.health(ONE).cooldown_until - ways.clock.now == MIN_COOLDOWN_SECONDS


def test_an_outage_of_days_does_not_overflow():
    ways = Ways(ONE, TWO)
    for _ in range(2000):
        ways.fail(ONE)
        ways.clock.now += MAX_COOLDOWN_SECONDS
    ways.fail(ONE)
    assert ways.choose() == ["two"]
    ways.clock.now += MAX_COOLDOWN_SECONDS
    assert sorted(ways.choose()) == ["one", "two"]


def test_many_requests_that_fail_at_once_are_one_outage():
    ways = Ways(ONE, TWO)
    under_way = [ways.health(ONE).begin() for _ in range(50)]
    assert not any(under_way)
    for probed in under_way:
        ways.health(ONE).fail(ways.clock.now, VendorFailed(), probed=probed)
    assert ways.health(ONE).cooldown_until == ways.clock.now + MIN_COOLDOWN_SECONDS


@pytest.mark.parametrize("ending", ["fail", "abstain"])
def test_who_was_under_way_before_the_rest_does_not_end_the_probe(ending):
    ways = Ways(ONE, TWO)
    late = ways.health(ONE).begin()
    ways.fail_often(ONE)
    ways.clock.now += MIN_COOLDOWN_SECONDS
    probed = ways.health(ONE).begin()
    if ending == "fail":
        ways.health(ONE).fail(ways.clock.now, VendorFailed(), probed=late)
    else:
        ways.health(ONE).abstain(probed=late)
    assert ways.choose() == ["two"], "a second probe beside the first"
    ways.health(ONE).abstain(probed=probed)
    assert sorted(ways.choose()) == ["one", "two"]


def test_a_probe_whose_caller_left_tells_nothing():
    ways = Ways(ONE, TWO)
    ways.fail_often(ONE)
    ways.clock.now += MIN_COOLDOWN_SECONDS
    before = ways.health(ONE).failures
    ways.health(ONE).abstain(probed=ways.health(ONE).begin())
    assert ways.health(ONE).failures == before
    assert sorted(ways.choose()) == ["one", "two"]


def test_what_happens_while_one_route_is_tried_counts_for_the_next():
    ways = Ways(Route("one", "m", order=1), Route("two", "m", order=2), Route("three", "m", order=3))
    _, two, _ = ways.all
    ways.fail_often(two)
    ways.clock.now += MIN_COOLDOWN_SECONDS
    first, second = ways.routes.choose(ways.all, "a"), ways.routes.choose(ways.all, "a")
    assert [next(first).vendor, next(second).vendor] == ["one", "one"]
    assert next(first) == two
    assert ways.health(two).begin()
    assert next(second).vendor == "three", "the second is probed already"


def test_a_refused_credential_rests_at_once():
    ways = Ways(ONE, TWO)
    ways.fail(ONE, VendorRefusedUs(), Fault(Blame.CREDENTIAL))
    assert ways.choose() == ["two"]
    ways.clock.now += MIN_COOLDOWN_SECONDS
    assert sorted(ways.choose()) == ["one", "two"]


@pytest.mark.parametrize("status", [400, 402, 403])
def test_what_may_be_about_the_request_alone_does_not_rest_at_once(status):
    ways = Ways(ONE)
    for _ in range(FAILURES_TO_CLOSE - 1):
        ways.fail(ONE, VendorRefusedUs(), Fault(Blame.CREDENTIAL, status=status))
        assert [ways.choose() for _ in range(5)] == [["one"]] * 5
    ways.succeed(ONE)
    ways.fail(ONE, VendorRefusedUs(), Fault(Blame.CREDENTIAL, status=status))
    assert not ways.health(ONE).begin()


def test_health_belongs_to_the_vendors_model():
    other = Route("one", "n")
    ways = Ways(ONE, other)
    ways.fail_often(ONE)
    assert list(ways.routes.choose([ONE, other], "a")) == [other]
    assert list(ways.routes.choose([ONE, Route("one", "m", weight=9), TWO], "a")) == [TWO]


def test_new_settings_forget_everything_and_old_requests_tell_them_nothing():
    ways = Ways(ONE, TWO)
    old = ways.health(ONE)
    ways.fail(ONE, RateLimited(), wish(60))
    ways.fail_often(ONE)
    ways.routes.forget()
    old.fail(ways.clock.now, VendorFailed(), probed=False)
    assert sorted(ways.choose()) == ["one", "two"]


# -- what a vendor wishes


@pytest.mark.parametrize("asked", [0.5, 7, 60, 61, 3600, float("inf")])
def test_a_wish_is_obeyed_up_to_the_longest(asked):
    ways = Ways(ONE, TWO)
    ways.fail(ONE, RateLimited(), wish(asked))
    ways.clock.now += min(asked, MAX_OBEYED_RETRY_AFTER_SECONDS) - 0.01
    assert ways.choose() == ["two"]
    ways.clock.now += 0.01
    assert sorted(ways.choose()) == ["one", "two"]


def test_a_wish_is_obeyed_even_if_it_is_the_only_route():
    ways = Ways(ONE)
    ways.fail(ONE, RateLimited("The vendor's rate limit is reached."), wish(7))
    ways.clock.now += 3
    with pytest.raises(RateLimited, match="rate limit is reached") as caught:
        ways.choose()
    assert caught.value.retry_after == pytest.approx(4)


@pytest.mark.parametrize("asked", [None, 0.0])
def test_a_limit_without_a_time_is_a_failure_like_others(asked):
    ways = Ways(ONE)
    ways.fail(ONE, RateLimited(), Fault(Blame.LIMIT, retry_after=asked))
    assert ways.choose() == ["one"]


# -- where all are resting


def test_the_last_resort_is_tried_by_one_at_a_time():
    ways = Ways(ONE)
    ways.fail_often(ONE)
    assert ways.choose() == ["one"]
    probed = ways.health(ONE).begin()
    for _ in range(10):
        with pytest.raises(VendorFailed) as caught:
            ways.choose()
        assert caught.value.retry_after == 1
    ways.health(ONE).fail(ways.clock.now, VendorFailed(), probed=probed)
    assert ways.choose() == ["one"]


def test_the_last_resort_is_the_route_whose_rest_ends_first():
    ways = Ways(ONE, TWO, THREE)
    for route, times in ((ONE, 3), (TWO, 1), (THREE, 2)):
        ways.fail_often(route)
        for _ in range(times):
            ways.fail(route)
    assert ways.choose() == ["two"]
    ways.health(TWO).begin()
    assert ways.choose() == ["three"]


def test_the_last_resort_disturbs_nobody_who_asked_to_be_left_alone():
    ways = Ways(ONE, TWO)
    ways.fail_often(TWO, 9)
    ways.fail(ONE, RateLimited(), wish(5))
    assert ways.choose() == ["two"]


@pytest.mark.parametrize(
    "error",
    [VendorFailed("no"), Overloaded("busy"), RateLimited("much"), VendorTimeout("slow"), VendorRefusedUs()],
    ids=lambda error: error.code,
)
def test_a_refusal_tells_the_last_error(error):
    ways = Ways(ONE)
    ways.fail(ONE, VendorFailed("before"))
    ways.fail(ONE, error, wish(9))
    with pytest.raises(type(error)) as caught:
        ways.choose()
    told = caught.value
    assert (told.message, told.code, told.retryable, told.retry_after) == (
        error.message,
        error.code,
        error.retryable,
        9,
    )
    assert told is not error


def test_a_refusal_tells_the_shortest_wait_and_why():
    ways = Ways(ONE, TWO)
    ways.fail(ONE, VendorRefusedUs(), wish(50, Blame.CREDENTIAL))
    ways.fail(TWO, Overloaded("busy"), wish(8, Blame.BUSY))
    with pytest.raises(Overloaded) as caught:
        ways.choose()
    assert caught.value.retry_after == 8


# -- one account and the others


DEAD = Fault(Blame.CREDENTIAL, status=403)


@pytest.mark.parametrize("fault", [None, Fault(Blame.VENDOR, status=500), DEAD, Fault(Blame.CREDENTIAL, status=402)])
def test_what_one_account_provokes_closes_a_route_to_it_alone(fault):
    ways = Ways(ONE, TWO)
    for _ in range(50):
        ways.fail(ONE, fault=fault)
        ways.clock.now += 0.01
    assert ways.choose("a") == ["two"]
    for account in "bcd":
        assert sorted(ways.choose(account)) == ["one", "two"]


def test_what_two_accounts_see_in_a_row_closes_a_route_to_everyone():
    ways = Ways(ONE, TWO)
    ways.fail_often(ONE, 2, account="a")
    assert sorted(ways.choose("c")) == ["one", "two"]
    ways.fail(ONE, account="b")
    assert ways.choose("c") == ["two"]


def test_a_success_of_anyone_forgets_what_others_saw():
    ways = Ways(ONE, TWO)
    for _ in range(20):
        ways.fail_often(ONE, 5, account="a")
        ways.succeed(ONE, account="b")
        ways.fail(ONE, account="b")
        assert sorted(ways.choose("c")) == ["one", "two"]
        ways.succeed(ONE, account="c")


@pytest.mark.parametrize("how", [{"unprovoked": True}, {"fault": Fault(Blame.CREDENTIAL, status=401)}])
def test_what_no_request_provokes_closes_a_route_to_everyone(how):
    ways = Ways(ONE, TWO)
    for _ in range(FAILURES_TO_CLOSE):
        ways.fail(ONE, account="a", **how)
    assert ways.choose("b") == ["two"]


def test_a_refused_key_closes_a_route_to_everyone_at_once():
    ways = Ways(ONE, TWO)
    ways.fail(ONE, VendorRefusedUs(), Fault(Blame.CREDENTIAL, status=401), account="a")
    assert ways.choose("b") == ["two"]


def test_one_account_cannot_make_the_rest_of_all_longer():
    ways = Ways(ONE, TWO)
    ways.fail_often(ONE, 2, account="a")
    ways.fail(ONE, account="b")
    for _ in range(10):
        ways.clock.now += MAX_COOLDOWN_SECONDS
        ways.fail(ONE, account="a")
    ways.clock.now += 2 * MIN_COOLDOWN_SECONDS
    assert sorted(ways.choose("c")) == ["one", "two"]


def test_an_outage_that_all_see_rests_longer_and_longer():
    ways = Ways(ONE, TWO)
    ways.fail_often(ONE, 2, account="a")
    ways.fail(ONE, account="b")
    rests: list[float] = []
    for number in range(8):
        shared = ways.routes.health(ONE).shared
        rests.append(shared.cooldown_until - ways.clock.now)
        ways.clock.now = shared.cooldown_until
        ways.fail(ONE, account="cd"[number % 2])
    assert rests == [1, 2, 4, 8, 16, MAX_COOLDOWN_SECONDS, MAX_COOLDOWN_SECONDS, MAX_COOLDOWN_SECONDS]


def test_a_wish_told_to_one_account_binds_it_and_one_told_to_two_binds_all():
    ways = Ways(ONE)
    ways.fail(ONE, RateLimited("much"), wish(9), account="a")
    with pytest.raises(RateLimited):
        ways.choose("a")
    assert ways.choose("b") == ["one"]
    ways.fail(ONE, RateLimited("much"), wish(7), account="b")
    with pytest.raises(RateLimited, match="much") as caught:
        ways.choose("c")
    assert caught.value.retry_after == 7
    ways.clock.now += 7
    assert ways.choose("c") == ["one"]


def test_a_wish_that_is_over_is_no_wish_of_two():
    ways = Ways(ONE)
    ways.fail(ONE, RateLimited(), wish(5), account="a")
    ways.clock.now += 5
    ways.fail(ONE, RateLimited(), wish(5), account="b")
    assert ways.choose("c") == ["one"]


def test_a_sole_route_that_rests_for_one_account_is_open_to_others():
    ways = Ways(ONE)
    ways.fail_often(ONE, 9, account="a")
    assert True in ways.health(ONE, "a").begin()
    with pytest.raises(VendorFailed):
        ways.choose("a")
    assert [ways.choose("b") for _ in range(20)] == [["one"]] * 20


def test_no_more_accounts_are_remembered_than_allowed():
    ways = Ways(ONE, TWO)
    for number in range(3 * MAX_ACCOUNTS):
        ways.fail_often(ONE, account=f"a{number}")
        ways.succeed(ONE, account="good")
    assert len(ways.routes.health(ONE)._own) == MAX_ACCOUNTS


@given(
    some.lists(
        some.tuples(some.sampled_from(["fail", "refuse", "limit", "leave", "wait"]), some.floats(0.1, 40)), max_size=60
    )
)
def test_no_history_of_one_account_closes_a_route_to_another(history):
    ways = Ways(ONE, TWO)
    for kind, seconds in history:
        faults = {"refuse": DEAD, "limit": wish(seconds)}
        if kind == "wait":
            ways.clock.now += seconds
        elif kind == "leave":
            health = ways.health(ONE)
            health.abstain(probed=health.begin())
        else:
            ways.fail(ONE, fault=faults.get(kind))
        assert sorted(ways.choose("b")) == ["one", "two"]


# -- whatever happens

Step = tuple[str, int, float]
steps = some.lists(
    some.tuples(
        some.sampled_from(["ask", "succeed", "fail", "refuse", "limit", "leave", "wait"]),
        some.integers(0, 2),
        some.floats(0.1, 40),
    ),
    max_size=60,
)


class Traffic:
    """Requests that come and end as told; nobody may ever see more than one probe on a route."""

    def __init__(self) -> None:
        self.ways = Ways(ONE, TWO, Route("three", "m", order=2))
        self.open: list[tuple[Route, Any]] = []
        self.probes = Counter[Route]()

    def step(self, kind: str, number: int, seconds: float) -> None:
        if kind == "wait":
            self.ways.clock.now += seconds
        elif kind == "ask":
            self._ask()
        elif self.open:
            self._end(kind, *self.open.pop(number % len(self.open)), seconds)

    def _ask(self) -> None:
        route = self._choose()
        if route is None:
            return
        health = self.ways.health(route)
        assert self.ways.clock.now >= health.retry_after_until
        self.open.append((route, health.begin()))
        if health.failures >= FAILURES_TO_CLOSE:
            self.probes[route] += 1
        assert self.probes[route] <= 1

    def _choose(self) -> Route | None:
        try:
            return next(self.ways.routes.choose(self.ways.all, "a"))
        except PenstockError as error:
            waits = error.retry_after
        assert waits is not None
        assert 0 <= waits <= MAX_OBEYED_RETRY_AFTER_SECONDS
        return None

    def _end(self, kind: str, route: Route, probed: Any, seconds: float) -> None:
        health, now = self.ways.health(route), self.ways.clock.now
        ends: dict[str, Any] = {
            "succeed": health.succeed,
            "leave": lambda: health.abstain(probed=probed),
            "fail": lambda: health.fail(now, VendorFailed(), probed=probed),
            "refuse": lambda: health.fail(now, VendorRefusedUs(), Fault(Blame.CREDENTIAL), probed=probed),
            "limit": lambda: health.fail(now, RateLimited(), wish(seconds), probed=probed),
        }
        ends[kind]()
        if probed or kind == "succeed":
            self.probes[route] = 0


@given(steps)
def test_whatever_happens_every_route_comes_back(history):
    traffic = Traffic()
    for step in history:
        traffic.step(*step)
    for route, probed in traffic.open:
        traffic.ways.health(route).abstain(probed=probed)
    traffic.ways.clock.now += MAX_OBEYED_RETRY_AFTER_SECONDS
    assert sorted(traffic.ways.choose()) == ["one", "three", "two"]
