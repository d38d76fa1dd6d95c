"""Outages at any moment, of any length: processes spend what they have leased, and no lease is spent twice."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from admission_steps import FileStore, Time, charge, make_key, rows, set_budget, standing
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.billing.admission import Admission, Ticket
from penstock.billing.leases import VALID_PART
from penstock.domain.api_keys import ApiKey
from penstock.errors import InsufficientBudget, StoreUnavailable, TooManyStreams
from penstock.store.contact import STEADY_SECONDS, StoreContact
from penstock.store.queries.billing import process_lease_rows
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS
from penstock.store.queries.billing.ledger_audit import check

CAP = 400
TICK_SECONDS = 3.0
PROCESSES = 2
EMPTY: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def quick(empty_store: Path) -> Any:
    """Recalls need not wait for others here: their turn comes with the next step."""
    EMPTY.append(empty_store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.billing.leases.RECALL_SECONDS", 0.0)
        patch.setattr("penstock.billing.admission.MAINTENANCE_SECONDS", 3600.0)  # the test calls it itself
        yield


class Line(FileStore):
    """One process's way to the store."""

    cut = False

    async def write(self, function: Any, *args: Any, **options: Any) -> Any:
        self._refuse_if_cut()
        return await super().write(function, *args, **options)

    async def read(self, function: Any, *args: Any, **options: Any) -> Any:
        self._refuse_if_cut()
        return await super().read(function, *args, **options)

    def _refuse_if_cut(self) -> None:
        if self.cut:
            raise StoreUnavailable(retry_after=1)


class Process:
    """What one process holds, what its requests use, and what it has not written yet."""

    def __init__(self, line: Line, name: str, time: Time) -> None:
        self.line = line
        self.name = name
        self.time = time
        self.contact = StoreContact(line, lambda: 60.0, lambda: time.steady)
        self.admission = Admission(line, name, time.clocks, self.contact)
        self.under_way: list[tuple[Ticket, int]] = []
        self.unwritten: list[int] = []

    @property
    def promised(self) -> int:
        """What it has spent, or may, and the store does not know."""
        return sum(held for _, held in self.under_way) + sum(self.unwritten)

    async def take(self, key: ApiKey, amount: int) -> bool:
        ticket = Ticket()
        try:
            if not self.admission.try_hold(ticket, key, amount, self.time.now):
                await self.admission.hold(ticket, key, amount, self.time.now)
        except (InsufficientBudget, StoreUnavailable):
            return False
        self.under_way.append((ticket, amount))
        return True

    def settle(self, part: float) -> None:
        if self.under_way:
            ticket, held = self.under_way.pop(0)
            cost = int(held * part)
            ticket.settle(cost, 0)
            if cost:
                self.unwritten.append(cost)

    async def tend(self) -> None:
        """What it does by itself every moment: look for the store, write what was used, keep its leases."""
        with suppress(StoreUnavailable):
            await self.contact.ask(lambda _: None)
            if self.unwritten:
                costs, self.unwritten = self.unwritten, []
                await charge(self.line, self.name, *costs, at=self.time.now)
            await self.admission._maintain_once(self.time.steady)
            await asyncio.gather(*(lease._asking for lease in self.admission._budgets.values() if lease._asking))


@dataclass
class Fleet:
    """Processes on one store, and those that were killed and not yet taken over from."""

    time: Time
    lines: list[Line]
    key: ApiKey
    numbers: int = 0
    processes: list[Process] = field(default_factory=list[Process])
    dead: list[Process] = field(default_factory=list[Process])

    def start(self, line: Line) -> Process:
        self.numbers += 1
        return Process(line, f"process_{self.numbers}", self.time)

    async def tend(self, number: int) -> None:
        process = self.processes[number]
        if not process.line.cut:
            while self.dead:
                await self._recover(process.line, self.dead.pop())
        await process.tend()

    async def _recover(self, line: Line, dead: Process) -> None:
        """As from the journal."""
        costs = [*dead.unwritten, *(held for _, held in dead.under_way)]
        if costs:
            await charge(line, dead.name, *costs, at=self.time.now)
        await line.write(process_lease_rows.end, dead.name)

    async def kill(self, number: int) -> None:
        former = self.processes[number]
        self.dead.append(former)
        self.processes[number] = self.start(former.line)

    async def pass_time(self, seconds: float) -> None:
        """Who lives goes on with what it does by itself."""
        end = self.time.steady + seconds
        while self.time.steady < end:
            self.time.move(min(TICK_SECONDS, end - self.time.steady))
            for number in range(len(self.processes)):
                await self.tend(number)

    async def do(self, deed: str, which: Any, how: Any) -> None:
        match deed:
            case "take":
                await self.processes[which].take(self.key, how)
            case "settle":
                self.processes[which].settle(how)
            case "outage":
                self.cut(is_cut=which)
            case "pass":
                await self.pass_time(which)
            case "tend":
                await self.tend(which)
            case _:
                await self.kill(which)

    async def end(self) -> None:
        """In the end nothing stays held, and all that is left can be had."""
        self.cut(is_cut=False)
        for process in self.processes:
            while process.under_way:
                process.settle(1.0)
        await self.pass_time(LEASE_SECONDS + STEADY_SECONDS + 10)
        await self.check()
        spent, held = await standing(self.lines[0])
        assert held == 0
        assert await self.processes[0].take(self.key, CAP - spent)

    def cut(self, *, is_cut: bool) -> None:
        for line in self.lines:
            line.cut = is_cut

    async def check(self) -> None:
        """Look past the outage: nobody has promised more than the store has written down for it, and the cap holds."""
        eye = self.lines[0]
        was_cut, eye.cut = eye.cut, False
        spent, held = await standing(eye)
        leased = {row.subject: row.total for row in await rows(eye, LEASED)}
        assert await rows(eye, "SELECT subject FROM ledger WHERE overrun > 0") == []
        assert await eye.read(check) == []
        eye.cut = was_cut
        everyone = [*self.processes, *self.dead]
        for process in everyone:
            assert process.promised <= leased.get(process.name, 0), (process.name, leased)
        assert spent + sum(process.promised for process in everyone) <= CAP
        assert spent + held <= CAP


LEASED = "SELECT subject, sum(amount) AS total FROM holds WHERE is_lease = 1 GROUP BY subject"


async def open_fleet(stack: AsyncExitStack) -> Fleet:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path, time = Path(shutil.copy(EMPTY[0], folder)), Time()
    lines = [Line(path) for _ in range(PROCESSES)]
    for line in lines:
        stack.push_async_callback(line.close)
    fleet = Fleet(time, lines, make_key(await set_budget(lines[0], CAP)))
    fleet.processes = [fleet.start(line) for line in lines]
    stack.callback(fleet.cut, is_cut=False)
    return fleet


def run(work: Callable[[Fleet], Any]) -> None:
    async def go() -> None:
        async with AsyncExitStack() as stack:
            fleet = await open_fleet(stack)
            try:
                await work(fleet)
            finally:
                for process in (*fleet.processes, *fleet.dead):
                    if process.admission._maintenance is not None:
                        process.admission._maintenance.cancel()

    with asyncio.Runner() as runner:
        runner.run(go())


who = some.integers(0, PROCESSES - 1)
steps = some.lists(
    some.one_of(
        some.tuples(some.just("take"), who, some.integers(1, 90)),
        some.tuples(some.just("take"), who, some.integers(1, 20)),
        some.tuples(some.just("settle"), who, some.sampled_from((0.0, 0.5, 1.0))),
        some.tuples(some.just("outage"), some.booleans(), some.just(0)),
        some.tuples(some.just("pass"), some.sampled_from((0.3, 2.0, 20.0, 75.0, 100.0)), some.just(0)),
        some.tuples(some.just("tend"), who, some.just(0)),
        some.tuples(some.just("kill"), who, some.just(0)),
    ),
    min_size=5,
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(steps)
def test_no_outage_makes_anyone_spend_what_is_not_leased(moves: list[tuple[str, Any, Any]]):
    async def work(fleet: Fleet) -> None:
        for deed, which, how in moves:
            await fleet.do(deed, which, how)
            await fleet.check()
        await fleet.end()

    run(work)


# -- single cases


@pytest.fixture
async def fleet() -> AsyncGenerator[Fleet]:
    async with AsyncExitStack() as stack:
        fleet = await open_fleet(stack)
        yield fleet
        fleet.cut(is_cut=False)
        for process in fleet.processes:
            await process.admission.stop()


async def spend_steadily(fleet: Fleet, number: int, seconds: int) -> None:
    """One request of 1 a second."""
    process = fleet.processes[number]
    for _ in range(seconds):
        assert await process.take(fleet.key, 1)
        process.settle(1.0)
        await fleet.pass_time(1)


async def test_a_steady_caller_has_leased_enough_for_a_minute(fleet: Fleet):
    await spend_steadily(fleet, 0, 30)
    fleet.cut(is_cut=True)
    await fleet.pass_time(0.1)
    await spend_steadily(fleet, 0, 60)
    fleet.cut(is_cut=False)
    await fleet.pass_time(1)
    await fleet.check()
    assert (await standing(fleet.lines[0]))[0] == 90


async def test_what_is_leased_ahead_is_there_for_others_who_need_it(fleet: Fleet):
    await spend_steadily(fleet, 0, 30)
    one, other = fleet.processes
    assert (await standing(fleet.lines[0]))[1] > 40, "it has leased ahead"
    taking = asyncio.create_task(other.take(fleet.key, CAP - 30))
    assert not await taking, "asked back at once, and given with the next look"
    await fleet.tend(0)
    fleet.time.move(0.3)  # so long a refusal is remembered
    assert await other.take(fleet.key, CAP - 30)
    assert not await one.take(fleet.key, 1)


async def test_a_reserve_is_a_part_of_what_is_left(fleet: Fleet):
    process = fleet.processes[0]
    for _ in range(20):
        assert await process.take(fleet.key, 10)
        process.settle(1.0)
        await fleet.pass_time(1)
    spent, held = await standing(fleet.lines[0])
    assert held <= (CAP - spent) / 2


async def test_who_is_cut_off_alone_stops_before_its_lease_ends(fleet: Fleet):
    """The others have the store: after the lease they may have what it held."""
    one, other = fleet.processes
    await spend_steadily(fleet, 0, 20)
    assert await one.take(fleet.key, 5)
    one.line.cut = True
    await fleet.pass_time(LEASE_SECONDS * VALID_PART + TICK_SECONDS)
    assert not await one.take(fleet.key, 1)
    await fleet.pass_time(LEASE_SECONDS)
    spent = (await standing(other.line))[0]
    assert await other.take(fleet.key, CAP - spent), "it has ended"
    one.settle(0.0)  # what is put back now is nobody's
    one.line.cut = False
    await fleet.tend(0)
    assert not await one.take(fleet.key, 1)
    [lease] = one.admission._budgets.values()
    assert lease.free <= 0


async def test_nobody_ends_the_leases_of_others_right_after_an_outage(fleet: Fleet):
    """One comes back first: the other has spent its lease, and says so a moment later."""
    one, other = fleet.processes
    await spend_steadily(fleet, 0, 20)
    fleet.cut(is_cut=True)
    await fleet.pass_time(0.1)
    await spend_steadily(fleet, 0, 40)
    await fleet.pass_time(LEASE_SECONDS)
    other.line.cut = False
    for _ in range(3):
        fleet.time.move(1)
        await fleet.tend(1)
    assert not await other.take(fleet.key, CAP - 20)
    one.line.cut = False
    await fleet.pass_time(1)
    await fleet.check()
    assert (await standing(fleet.lines[0]))[0] == 60


async def test_who_wants_more_than_is_leased_holds_up_nobody_in_an_outage(fleet: Fleet):
    await spend_steadily(fleet, 0, 20)
    one = fleet.processes[0]
    fleet.cut(is_cut=True)
    await fleet.pass_time(0.1)
    answers = asyncio.Event()

    async def hang(function: Any, *args: Any, **options: Any) -> Any:
        del function, args, options
        await answers.wait()
        raise StoreUnavailable(retry_after=1)

    one.line.write = hang  # type: ignore[method-assign]
    big = asyncio.create_task(one.take(fleet.key, CAP))
    for _ in range(5):
        await asyncio.sleep(0)
    assert await one.take(fleet.key, 1)
    assert not big.done()
    answers.set()
    assert not await big
    del one.line.write


async def test_slots_that_ended_are_not_used_again(fleet: Fleet):
    one, other = fleet.processes
    key = make_key(concurrent_streams=2)
    streams = [await one.admission.open_stream(key) for _ in range(2)]
    one.line.cut = True
    await fleet.pass_time(LEASE_SECONDS * 2)
    for stream in streams:
        stream.settle(0, 0)
    with pytest.raises(StoreUnavailable):
        await one.admission.open_stream(key)
    others = [await other.admission.open_stream(key) for _ in range(2)]
    one.line.cut = False
    await fleet.tend(0)
    with pytest.raises(TooManyStreams):
        await one.admission.open_stream(key)
    for stream in others:
        stream.settle(0, 0)
