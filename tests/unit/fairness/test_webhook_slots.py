"""Places of webhook attempts: shared between accounts and endpoints, whatever some of them do."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as some

from penstock.domain.webhooks import HOST_LANES, PATH_LANES, lane_of
from penstock.fairness.webhook_slots import (
    ACCOUNT_PLACES,
    ACCOUNT_SLOW_PLACES,
    ENDPOINT_PLACES,
    FAST_PLACES,
    LINGER_SECONDS,
    MAX_KNOWN,
    PLACES,
    SLOW_PLACES,
    Candidate,
    SlotKind,
    WebhookSlot,
    WebhookSlots,
)


def due(account: str, lane: str, number: int = 1, first: int = 0) -> list[Candidate]:
    return [Candidate(first + each, account, f"{account}/{lane}", float(each)) for each in range(number)]


def begin(places: WebhookSlots, candidates: list[Candidate]) -> list[WebhookSlot]:
    return [places.take(each.account_id, each.lane) for each in places.plan().choose(candidates)]


def hang(places: WebhookSlots, account: str, lanes: int) -> list[WebhookSlot]:
    """Fill with attempts that hang, until no more begin."""
    seats: list[WebhookSlot] = []
    while more := begin(places, [each for lane in range(lanes) for each in due(account, str(lane))]):
        seats += more
        for seat in more:
            places.linger(seat)
    return seats


def prove(places: WebhookSlots, lane: str) -> None:
    places.learn(lane, succeeded=True, seconds=0.1)


def test_an_endpoint_has_one_place_until_it_answers_and_then_more():
    places = WebhookSlots()
    assert len(begin(places, due("a", "x", 20))) == 1
    assert begin(places, due("a", "x", 20)) == []
    prove(places, "a/x")
    assert len(begin(places, due("a", "x", 20))) == ENDPOINT_PLACES - 1
    assert places.plan().full_lanes() == ["a/x"]


def test_an_endpoint_that_fails_at_once_is_not_slow_and_one_that_took_its_time_is():
    places = WebhookSlots()
    places.learn("a/x", succeeded=False, seconds=0.01)
    places.learn("a/y", succeeded=False, seconds=LINGER_SECONDS)
    places.learn("a/z", succeeded=True, seconds=LINGER_SECONDS * 4)
    assert [places.take("a", f"a/{lane}").kind for lane in "xyz"] == [SlotKind.PROVEN, SlotKind.SLOW, SlotKind.PROVEN]


def test_slow_endpoints_have_few_places_and_leave_the_others():
    places = WebhookSlots()
    for account in "abcdef":
        for lane in range(20):
            places.learn(f"{account}/{lane}", succeeded=False, seconds=15)
    wanted = [each for account in "abcdef" for lane in range(20) for each in due(account, str(lane))]
    counts = Counter(seat.account_id for seat in begin(places, wanted))
    assert sum(counts.values()) <= SLOW_PLACES
    assert set(counts.values()) == {SLOW_PLACES // 6}
    alone = WebhookSlots()
    for lane in range(20):
        alone.learn(f"a/{lane}", succeeded=False, seconds=15)
    assert len(begin(alone, [each for lane in range(20) for each in due("a", str(lane))])) == ACCOUNT_SLOW_PLACES
    assert len(begin(places, due("g", "x"))) == 1
    prove(places, "a/healthy")
    assert len(begin(places, due("a", "healthy", 8))) == 8


def test_slow_endpoints_take_turns_whatever_their_backlog():
    places, served = WebhookSlots(), Counter[str]()
    for lane in range(20):
        places.learn(f"a/{lane}", succeeded=False, seconds=15)
    for _ in range(10):
        wanted = [each for lane in range(20) for each in due("a", str(lane), 20 - lane)]
        seats = begin(places, wanted)
        served.update(seat.lane for seat in seats)
        for seat in seats:
            places.give_back(seat)
            places.learn(seat.lane, succeeded=False, seconds=15)
    assert len(served) == 20
    assert max(served.values()) - min(served.values()) <= 1


def test_an_attempt_that_takes_long_gives_its_fast_place_to_others_once():
    places = WebhookSlots()
    (seat,) = begin(places, due("a", "x"))
    assert places.linger(seat)
    assert not places.linger(seat)
    assert begin(places, due("a", "x")) == [], "its endpoint still has it"
    places.give_back(seat)
    assert places.is_empty


def test_fifty_endpoints_of_an_account_that_hang_leave_it_room():
    places = WebhookSlots()
    assert len(hang(places, "a", 50)) == 50
    assert len(begin(places, due("a", "new"))) == 1
    places = WebhookSlots()
    assert len(hang(places, "a", 1000)) == ACCOUNT_PLACES * 3 // 4
    prove(places, "a/healthy")
    assert len(begin(places, due("a", "healthy", 20))) == ENDPOINT_PLACES


def test_many_accounts_that_hang_leave_the_others_room():
    places = WebhookSlots()
    for account in range(30):
        hang(places, f"dead{account}", 50)
    prove(places, "a/healthy")
    assert len(begin(places, due("a", "healthy", 20))) == ENDPOINT_PLACES
    assert len(begin(places, due("b", "new"))) == 1


def test_accounts_take_turns():
    places = WebhookSlots()
    for account in "ab":
        for lane in range(20):
            prove(places, f"{account}/{lane}")
    flood = [each for lane in range(20) for each in due("a", str(lane), 50)]
    few = [each for lane in range(20) for each in due("b", str(lane), 1, first=1000)]
    chosen = places.plan().choose([*flood, *few])
    assert Counter(each.account_id for each in chosen) == {"a": FAST_PLACES // 2, "b": 20}
    assert [each.account_id for each in chosen[:6]] in (list("ababab"), list("bababa"))


def test_what_is_remembered_is_bounded():
    places = WebhookSlots()
    for number in range(MAX_KNOWN + 10):
        places.give_back(places.take(f"account{number}", f"lane{number}"))
    assert len(places._known) == len(places._turns) == MAX_KNOWN


def test_jobs_own_urls_are_spread_over_a_bounded_number_of_lanes():
    assert lane_of("hook_1", None) == "hook_1"
    of_host = {lane_of("own_a", f"https://one.example/order/{number}?x={number}") for number in range(5000)}
    assert len(of_host) == PATH_LANES
    lanes = {lane_of("own_a", f"https://{number}.example/x") for number in range(20_000)}
    assert HOST_LANES < len(lanes) <= HOST_LANES * PATH_LANES
    assert lane_of("own_a", "https://a.example/x?one") == lane_of("own_a", "https://a.example/x?two")
    assert lane_of("own_a", "https://a.example/x") != lane_of("own_b", "https://a.example/x")


STEPS = some.lists(
    some.tuples(
        some.sampled_from(("due", "linger", "good", "quick failure", "timeout")),
        some.integers(0, 4),
        some.integers(0, 30),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_the_limits_hold_and_nothing_is_counted_twice(steps):
    places, seats = WebhookSlots(), list[WebhookSlot]()
    for what, account, number in steps:
        if what == "due":
            lanes = range(number)
            seats += begin(places, [each for lane in lanes for each in due(f"a{account}", str(lane), 10)])
        elif seats:
            seat = seats[number % len(seats)]
            if what == "linger":
                places.linger(seat)
                continue
            seats.remove(seat)
            places.give_back(seat)
            places.learn(seat.lane, succeeded=what == "good", seconds=15 if what == "timeout" else 0.1)
        kinds = Counter(seat.kind for seat in seats)
        assert len(seats) <= PLACES
        assert kinds[SlotKind.PROVEN] + kinds[SlotKind.UNPROVEN] <= FAST_PLACES
        assert kinds[SlotKind.SLOW] <= SLOW_PLACES
        assert max(Counter(seat.account_id for seat in seats).values(), default=0) <= ACCOUNT_PLACES
        assert max(Counter(seat.lane for seat in seats).values(), default=0) <= ENDPOINT_PLACES
    for seat in seats:
        places.give_back(seat)
    assert places.is_empty
