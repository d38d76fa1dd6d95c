"""Turns of suspects: one at a time, the accounts in rotation, and nobody kept waiting for ever."""

import asyncio

from penstock.jobs.quarantine import MAX_DEATHS, PAUSE_SECONDS, Quarantine, Risk, RiskLevel


def suspect(quarantine: Quarantine, name: str, account: str = "acct") -> Risk:
    risk = quarantine.enter(1)
    risk.ask(account, name)
    return risk


def begin(risk: Risk) -> bool:
    """Begin a turn, if it is granted."""
    assert risk.turn is not None
    if risk.turn.granted.is_set() and not risk.has_begun:
        risk.begin(risk.turn)
    return risk.has_begun


async def test_one_suspect_at_a_time():
    quarantine = Quarantine(turn_seconds=600)
    risks = [suspect(quarantine, f"job_{number}") for number in range(4)]
    for number, risk in enumerate(risks):
        assert [begin(each) for each in risks[number:]] == [True] + [False] * (len(risks) - number - 1)
        assert (risk.wanted, risk.lacks_turn) == (RiskLevel.ALONE, False)
        risk.end_turn()
        assert risk.lacks_turn


async def test_accounts_take_turns():
    quarantine = Quarantine(turn_seconds=600)
    many = [suspect(quarantine, f"job_{number}", "many") for number in range(3)]
    one = suspect(quarantine, "job_one", "one")
    for risk in many[:2]:
        assert begin(risk)
        risk.end_turn()
    assert begin(one)
    assert not begin(many[2])


async def test_a_long_turn_keeps_nobody_waiting_and_then_nobody_is_alone():
    quarantine = Quarantine(turn_seconds=0)
    slow, next_one = suspect(quarantine, "job_slow"), suspect(quarantine, "job_next")
    assert begin(slow)
    async with asyncio.timeout(300):
        await next_one.ask("acct", "job_next").granted.wait()
    assert begin(next_one)
    assert (next_one.wanted, next_one.beside) == (RiskLevel.SHARED, ["job_slow"])
    next_one.end_turn()
    slow.end_turn()
    assert begin(suspect(quarantine, "job_last"))


async def test_who_leaves_the_queue_leaves_no_gap():
    quarantine = Quarantine(turn_seconds=600)
    first, second, third = (suspect(quarantine, f"job_{number}") for number in range(3))
    assert begin(first)
    second.end_turn()
    first.advance()
    assert (begin(third), first.deaths) == (True, 0)


def test_each_death_makes_the_next_turn_come_later():
    now = 1000.0
    quarantine = Quarantine(steady=lambda: now)
    waits = [quarantine.wait_left(quarantine.enter(deaths)) for deaths in range(1, MAX_DEATHS)]
    assert waits == sorted(set(waits)) == list(PAUSE_SECONDS)


def test_a_paid_job_is_tried_ever_more_rarely_and_at_last_at_even_intervals():
    now = 1000.0
    quarantine = Quarantine(steady=lambda: now)
    waits = [quarantine.wait_left(quarantine.enter(deaths)) for deaths in (4, 5, 6, 7, 8, 9, 1000)]
    assert waits == [27.0, 81.0, 243.0, 729.0, 900.0, 900.0, 900.0]


def test_who_is_no_suspect_needs_no_turn():
    risk = Quarantine().enter(0)
    assert (risk.lacks_turn, risk.wanted) == (False, RiskLevel.SHARED)
