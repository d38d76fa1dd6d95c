"""What a process may use of a budget or a limit without asking the store: taken in leases, given back when idle."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from penstock.domain.budgets import BalanceKey, Budget, Payer, Standing
from penstock.errors import PenstockError, StoreUnavailable
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.billing import balance_rows
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS, Grant

RECALL_SECONDS: Final = 0.3
RECALLS: Final = 3
"""How often the other processes are asked for what they do not use before a request is refused."""
REFUSED_SECONDS: Final = 0.2
"""How long a refusal is remembered, so that a flood of refused requests costs no store."""
MONEY_PARTS: Final = 64
"""A lease is about this part of the whole."""
RESERVE_SECONDS: Final = 80.0
"""A caller in steady use has leased what it spends in this time, so that an outage does not stop it."""
LEAST_RESERVE: Final = 0.75
"""With less than this part of its reserve, it is filled up."""
RESERVE_PARTS: Final = 4
"""But at most this part of what is left of a budget: other processes have their callers, too."""
PACE_SECONDS: Final = 5.0
"""Over this time spending is averaged."""
CALM_SECONDS: Final = 10.0
"""After others needed it, nothing is kept in reserve for this time."""
GOOD_PART: Final = 0.8
"""A lease that was not renewed is used for this part of its time: clocks may differ."""


class Clocks(NamedTuple):
    """The time of day, which all processes lease, and one that never jumps."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


CLOCKS: Final = Clocks()


class Refusal(NamedTuple):
    """Until then, neither so much nor more can be had."""

    until: float
    least: float
    make: Callable[[float], PenstockError]


Waiting: TypeAlias = deque[tuple[float, asyncio.Future[None]]]


class LocalLease:
    """So much is free for requests of this process. Who finds too little waits for the store, with all others."""

    __slots__ = (
        "_asking",
        "_refused",
        "_waiting",
        "clocks",
        "contact",
        "database",
        "expected",
        "free",
        "in_use",
        "lost",
        "used_at",
    )

    def __init__(self, database: Database, clocks: Clocks, contact: StoreContact | None = None) -> None:
        self.database = database
        self.clocks = clocks
        self.contact = contact
        self.free: float = 0
        self.in_use: float = 0
        self.lost: float = 0
        """The part of what is in use whose lease has ended meanwhile."""
        self.expected = 0
        self.used_at = clocks.monotonic()
        self._waiting: Waiting = deque()
        self._asking: asyncio.Task[None] | None = None
        self._refused: Refusal | None = None

    @property
    def is_waited_for(self) -> bool:
        """Whether requests wait for more of it."""
        return bool(self._waiting)

    @property
    def is_cut_off(self) -> bool:
        """Tell if the store is known not to answer: then what is leased is all that there is."""
        return self.contact is not None and self.contact.is_away

    @property
    def may_expire(self) -> bool:
        """Tell if leases that others have not renewed may be ended."""
        return self.contact is None or self.contact.is_steady

    def try_take(self, amount: float) -> bool:
        """Take it if it is there, which it mostly is."""
        if self.free < amount or self._waiting:
            return False
        self.free -= amount
        self.in_use += amount
        self.used_at = self.clocks.monotonic()
        return True

    async def take(self, amount: float) -> None:
        """Take it, asking the store for more where it is not there; raises why it cannot be had."""
        refused = self._refused
        if refused is not None and self.clocks.monotonic() < refused.until and amount >= refused.least:
            raise refused.make(amount)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        if self._asking is None:
            self._asking = asyncio.create_task(self._serve())
        elif self.is_cut_off:
            self._hand_out()  # who asks for more than is leased may wait for long, and holds up nobody
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.put_back(amount)  # it was given in the moment of leaving
            raise

    def reconsider(self) -> None:
        """Forget that a request was refused a moment ago."""
        self._refused = None

    def put_back(self, amount: float) -> None:
        """What was taken is not needed."""
        self.settle(amount, 0)

    def settle(self, taken: float, used: float) -> None:
        """Record what a request used of what it took, and free the rest."""
        self.in_use -= taken
        if self.lost:  # what has ended is not free again; what was used of it is charged to the new lease
            ended = min(self.lost, taken)
            self.lost -= ended
            self.free -= ended
        self.free += taken - used
        if used < taken:
            self._refused = None  # it may not be true any more

    def lose(self) -> None:
        """Forget what was leased: the store has given it to others."""
        self.free, self.lost = 0, self.in_use

    async def stop(self) -> None:
        """Ask for nothing more; who still waits is refused."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    # -- asking the store

    async def _serve(self) -> None:
        """Ask for all who wait, until each has what it wants or a refusal."""
        try:
            while self._waiting:
                await asyncio.sleep(0)  # more may come in this very moment
                self._hand_out()
                if self._waiting:
                    self._hand_out(await self._ask())
        except BaseException as error:  # noqa: BLE001  told to everyone who waits
            self._fail(error)
        finally:
            self._asking = None

    def _wanted(self) -> tuple[float, float]:
        """The least that anyone waits for, and all of it."""
        wanted = [amount for amount, _ in self._waiting]
        return min(wanted), sum(wanted)

    def _usable(self) -> float:
        return self.free

    def _hand_out(self, refusal: Refusal | None = None) -> None:
        """First come, first served, but who wants too much does not hold up who wants less.

        Who wants less than what is refused came later, and is asked for next.
        """
        left: Waiting = deque()
        for amount, turn in self._waiting:
            if turn.done():
                continue
            if self._usable() >= amount or not amount:  # what costs nothing can always be had
                self.free -= amount
                self.in_use += amount
                turn.set_result(None)
            elif refusal is not None and amount >= refusal.least:
                turn.set_exception(refusal.make(amount))
            else:
                left.append((amount, turn))
        self.used_at = self.clocks.monotonic()
        self._waiting = left

    def _fail(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(error if isinstance(error, Exception) else StoreUnavailable(retry_after=1))

    async def _ask(self) -> Refusal | None:
        """Get more of what is waited for: None if there is, else how to refuse."""
        raise NotImplementedError

    def _refuse_all(
        self, least: float, make: Callable[[float], PenstockError], seconds: float = REFUSED_SECONDS
    ) -> Refusal:
        self._refused = Refusal(self.clocks.monotonic() + min(seconds, REFUSED_SECONDS), least, make)
        return self._refused


class BudgetLease(LocalLease):
    """A lease on one budget in one of its periods."""

    __slots__ = (
        "_begun_at",
        "_calm_until",
        "_pace",
        "_paced_at",
        "_room",
        "_spent",
        "budget",
        "ends",
        "good_until",
        "payer",
        "process",
        "start",
    )

    def __init__(
        self,
        database: Database,
        clocks: Clocks,
        process: str,
        budget: Budget,
        payer: Payer,
        at: float,
        contact: StoreContact | None = None,
    ) -> None:
        super().__init__(database, clocks, contact)
        self.process = process
        self.budget = budget
        self.payer = payer
        self.start, self.ends = budget.window(at)
        self.good_until = 0.0
        self._calm_until = 0.0
        self._spent = 0.0
        self._pace = 0.0
        self._begun_at = self._paced_at = self.used_at
        self._room = 0

    @property
    def key(self) -> BalanceKey:
        """Which purse it is of."""
        return BalanceKey(self.budget.owner, self.budget.period.value, self.start)

    def try_take(self, amount: float) -> bool:
        """Take it if it is there and the lease is good: one that was not renewed may be another's by now."""
        return self.clocks.monotonic() <= self.good_until and super().try_take(amount)

    def settle(self, taken: float, used: float) -> None:
        """What was used beyond what was taken comes from what is free, then from what others of this process took.

        The store charges it in the same order; what the lease cannot bear is for the store to judge.
        """
        super().settle(taken, used)
        self._spent += used
        self.free = max(-self.in_use, self.free)

    def renew(self, asked: float) -> None:
        """Count the lease as good from when the store was asked for it."""
        self.good_until = asked + LEASE_SECONDS * GOOD_PART

    # -- what is kept in reserve

    def keep_calm(self, seconds: float) -> None:
        """Keep nothing in reserve for a while: someone needs it, or wants to see what is held."""
        self._calm_until = max(self._calm_until, self.clocks.monotonic() + seconds)

    def fill_up(self) -> None:
        """Lease ahead what a steady caller spends in a minute. Called often, it asks the store seldom."""
        now = self.clocks.monotonic()
        self._measure(now)
        goal = min(self._pace * RESERVE_SECONDS, (self._room + self.free) / RESERVE_PARTS)
        if self._asking is None and now >= self._calm_until and self.free < goal * LEAST_RESERVE:
            self._asking = asyncio.create_task(self._reserve(int(goal - self.free)))

    def _measure(self, now: float) -> None:
        elapsed, age = now - self._paced_at, now - self._begun_at
        if elapsed > 0:  # a plain mean at first, then one that forgets
            weight = min(1.0, elapsed / min(PACE_SECONDS, age))
            self._pace += (self._spent / elapsed - self._pace) * weight
            self._spent, self._paced_at = 0.0, now

    async def _reserve(self, want: int) -> None:
        asked = self.clocks.monotonic()
        try:
            grant = await self._lease(0, want, part=RESERVE_PARTS)
            self._room = max(0, grant.standing.left)
            if grant.amount:
                self._receive(grant, asked)
        except StoreUnavailable:
            pass  # nobody waits for it
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                self._asking = None
                raise
        await self._serve()  # who has come meanwhile

    # -- asking the store

    def _usable(self) -> float:
        return self.free if self.clocks.monotonic() <= self.good_until else min(0, self.free)

    async def _ask(self) -> Refusal | None:
        if self._usable() < self.free:
            await self._revive()
        for again in range(RECALLS + 1):
            self._hand_out()  # what was put back meanwhile
            if not self._waiting:
                return None
            asked, (least, want) = self.clocks.monotonic(), self._wanted()
            want += self.budget.cap // MONEY_PARTS
            grant = await self._lease(int(least - self._usable()), int(want - self._usable()))
            if grant.amount:
                self._receive(grant, asked)
                return None
            if not grant.elsewhere or again == RECALLS:
                return self._refuse_all(least, partial(_refuse_money, self._add_owed(grant.standing)))
            await self.database.write(balance_rows.recall, [self.budget.owner], self.process)
            self.keep_calm(CALM_SECONDS)
            await asyncio.sleep(RECALL_SECONDS)
        return None

    def _add_owed(self, standing: Standing) -> Standing:
        """What was used beyond the lease, and is about to be written, counts as held."""
        return replace(standing, held=standing.held + min(standing.left, max(0, -int(self.free))))

    async def _revive(self) -> None:
        """After a long silence: look whether the lease is still there."""
        asked = self.clocks.monotonic()
        held = await self.database.write(balance_rows.renew, self.process, self.clocks.now())
        if self.key in held:
            self.renew(asked)
        else:
            self.lose()

    async def _lease(self, least: int, want: int, part: int = 1) -> Grant:
        now = min(self.clocks.now(), self.ends - 0.001)  # it may end while we ask: it is this period's that is held
        return await self.database.write(
            balance_rows.lease,
            self.process,
            self.payer,
            self.budget,
            least,
            want,
            max(now, self.start),
            part=part,
            may_expire=self.may_expire,
        )

    def _receive(self, grant: Grant, asked: float) -> None:
        if grant.anew:
            self.lose()  # of a lease that has ended meanwhile
        standing = grant.standing
        self.budget, self.start, self.ends = standing.budget, standing.start, standing.ends  # as they are now
        self._room = max(0, standing.left)
        self.free += grant.amount
        self.renew(asked)


def _refuse_money(standing: Standing, amount: float) -> PenstockError:
    return standing.refuse(int(amount))


def is_in_doubt(error: BaseException) -> bool:
    """Tell if what failed may have been committed: then what was given back must not be used again."""
    return isinstance(error, StoreUnavailable) and error.in_doubt
