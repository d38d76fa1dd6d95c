"""A breaker pauses after failures in a row, lets one request try again, and keeps accounts apart."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.guardrails.breaker import MAX_FAILURES, PAUSE_SECONDS, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fail(breaker: Breaker, account: str, times: int, *, is_provocable: bool = True) -> None:
    for _ in range(times):
        assert breaker.try_begin(account)
        breaker.fail(account, is_provocable=is_provocable)


def test_failures_of_an_account_pause_it_alone() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    fail(breaker, "a", MAX_FAILURES)
    assert not breaker.try_begin("a")
    assert breaker.try_begin("b")
    breaker.succeed("b")
    assert not breaker.try_begin("a")
    clock.now += PAUSE_SECONDS
    assert breaker.try_begin("a")
    assert not breaker.try_begin("a"), "one request tries again"
    assert breaker.succeed("a")
    assert breaker.try_begin("a")


def test_failures_that_nobody_can_provoke_pause_all() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    fail(breaker, "a", MAX_FAILURES, is_provocable=False)
    assert not breaker.try_begin("b")
    clock.now += PAUSE_SECONDS
    assert breaker.try_begin("b")
    breaker.fail("b", is_provocable=False)
    clock.now += PAUSE_SECONDS / 2
    assert not breaker.try_begin("a")


def test_a_caller_who_leaves_lets_another_try() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    fail(breaker, "a", MAX_FAILURES)
    clock.now += PAUSE_SECONDS
    assert breaker.try_begin("a")
    breaker.abstain("a")
    assert breaker.try_begin("a")


class BreakerMachine(RuleBasedStateMachine):
    """However requests end, an account whose requests have all ended is let in again after a pause."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = Breaker(self.clock)
        self.under_way: list[str] = []

    @rule(account=st.sampled_from("abc"))
    def begin(self, account: str) -> None:
        if self.breaker.try_begin(account):
            self.under_way.append(account)

    @rule(how=st.sampled_from(["succeed", "abstain", "provoked", "unprovoked"]), place=st.integers(0, 9))
    def end(self, how: str, place: int) -> None:
        if not self.under_way:
            return
        account = self.under_way.pop(place % len(self.under_way))
        if how == "succeed":
            self.breaker.succeed(account)
        elif how == "abstain":
            self.breaker.abstain(account)
        else:
            self.breaker.fail(account, is_provocable=how == "provoked")

    @rule(seconds=st.sampled_from([0.1, 1.0, PAUSE_SECONDS]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def nobody_is_shut_out_for_ever(self) -> None:
        if self.under_way:
            return
        self.clock.now += PAUSE_SECONDS
        for account in "abc":
            assert self.breaker.try_begin(account)
            self.breaker.abstain(account)


TestBreakerMachine = BreakerMachine.TestCase
