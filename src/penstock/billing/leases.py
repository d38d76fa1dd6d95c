"""Leases: amounts of a budget or a limit that this process may use without asking the store."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from penstock.clocks import Clocks
from penstock.domain.budgets import BalanceKey, Budget, Payer, Standing
from penstock.errors import PenstockError, StoreUnavailable
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.billing import balance_rows
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS, Grant

RECALL_SECONDS: Final = 0.3
RECALLS: Final = 3
"""The number of times that other processes are asked for their unused leases before a request is refused."""
REFUSED_SECONDS: Final = 0.2
"""A refusal is remembered for this time: a flood of refused requests does not reach the store."""
BUDGET_PARTS: Final = 64
"""A lease is about this part of the budget's cap."""
RESERVE_SECONDS: Final = 80.0
"""A steady caller has leased what it spends in this time, so that a store outage does not stop it."""
LEAST_RESERVE: Final = 0.75
"""A reserve that falls below this part of its goal is filled up."""
RESERVE_PARTS: Final = 4
"""A reserve takes at most this part of what is left: other processes have callers, too."""
PACE_SECONDS: Final = 5.0
"""The time over which spending is averaged."""
CALM_SECONDS: Final = 10.0
"""After another process needed the budget, nothing is kept in reserve for this time."""
VALID_PART: Final = 0.8
"""The part of its lifetime for which an unrenewed lease is used: clocks may differ."""


class Refusal(NamedTuple):
    """A remembered refusal: until then, requests of `least` or more are refused without asking the store."""

    until: float
    least: float
    make: Callable[[float], PenstockError]


Waiting: TypeAlias = deque[tuple[float, asyncio.Future[None]]]


class LocalLease:
    """An amount that requests of this process may use.

    Requests that find too little wait together, and one task asks the store for all of them.
    """

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
        """The part of `in_use` whose lease has ended since."""
        self.expected = 0
        self.used_at = clocks.steady()
        self._waiting: Waiting = deque()
        self._asking: asyncio.Task[None] | None = None
        self._refused: Refusal | None = None

    @property
    def is_waited_for(self) -> bool:
        """Return whether requests wait for more of it."""
        return bool(self._waiting)

    @property
    def is_cut_off(self) -> bool:
        """Return whether the store is known to be away: then no more than what is leased can be used."""
        return self.contact is not None and self.contact.is_away

    @property
    def may_expire(self) -> bool:
        """Return whether leases that other processes have not renewed may be ended."""
        return self.contact is None or self.contact.is_steady

    def try_take(self, amount: float) -> bool:
        """Take the amount if this process has it, as it usually does. Return whether it did."""
        if self.free < amount or self._waiting:
            return False
        self.free -= amount
        self.in_use += amount
        self.used_at = self.clocks.steady()
        return True

    async def take(self, amount: float) -> None:
        """Take the amount, asking the store for more if needed. Raise the reason if it cannot be had."""
        refused = self._refused
        if refused is not None and self.clocks.steady() < refused.until and amount >= refused.least:
            raise refused.make(amount)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        if self._asking is None:
            self._asking = asyncio.create_task(self._serve())
        elif self.is_cut_off:
            self._hand_out()  # a request that waits for more must not block smaller ones
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.put_back(amount)  # granted at the moment of cancellation
            raise

    def reconsider(self) -> None:
        """Forget the latest refusal."""
        self._refused = None

    def put_back(self, amount: float) -> None:
        """Return an amount that was taken and not used."""
        self.settle(amount, 0)

    def settle(self, taken: float, used: float) -> None:
        """Record what a request used of the amount it took, and free the rest."""
        self.in_use -= taken
        if self.lost:  # an ended lease frees nothing; what was used of it is charged to the new one
            ended = min(self.lost, taken)
            self.lost -= ended
            self.free -= ended
        self.free += taken - used
        if used < taken:
            self._refused = None  # there is more now

    def lose(self) -> None:
        """Forget what was leased: the store has given it to other processes."""
        self.free, self.lost = 0, self.in_use

    async def stop(self) -> None:
        """Stop asking the store. Requests that still wait are refused."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    # -- asking the store

    async def _serve(self) -> None:
        """Ask the store until every waiting request has its amount or a refusal."""
        try:
            while self._waiting:
                await asyncio.sleep(0)  # let requests of this moment join
                self._hand_out()
                if self._waiting:
                    self._hand_out(await self._ask())
        except BaseException as error:  # noqa: BLE001  raised in every waiting request
            self._fail(error)
        finally:
            self._asking = None

    def _wanted(self) -> tuple[float, float]:
        """Return the smallest amount waited for, and the sum of all."""
        wanted = [amount for amount, _ in self._waiting]
        return min(wanted), sum(wanted)

    def _usable(self) -> float:
        return self.free

    def _hand_out(self, refusal: Refusal | None = None) -> None:
        """Serve waiting requests in order, past those that want more than there is.

        With a refusal, fail the requests that want at least what was refused. The others are asked for next.
        """
        left: Waiting = deque()
        for amount, turn in self._waiting:
            if turn.done():
                continue
            if self._usable() >= amount or not amount:  # a free request is never refused
                self.free -= amount
                self.in_use += amount
                turn.set_result(None)
            elif refusal is not None and amount >= refusal.least:
                turn.set_exception(refusal.make(amount))
            else:
                left.append((amount, turn))
        self.used_at = self.clocks.steady()
        self._waiting = left

    def _fail(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(error if isinstance(error, Exception) else StoreUnavailable(retry_after=1))

    async def _ask(self) -> Refusal | None:
        """Lease more from the store. Return None on success, else the refusal."""
        raise NotImplementedError

    def _refuse_all(
        self, least: float, make: Callable[[float], PenstockError], seconds: float = REFUSED_SECONDS
    ) -> Refusal:
        self._refused = Refusal(self.clocks.steady() + min(seconds, REFUSED_SECONDS), least, make)
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
        "payer",
        "process",
        "start",
        "valid_until",
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
        self.valid_until = 0.0
        self._calm_until = 0.0
        self._spent = 0.0
        self._pace = 0.0
        self._begun_at = self._paced_at = self.used_at
        self._room = 0

    @property
    def key(self) -> BalanceKey:
        """The key of the balance that it is leased from."""
        return BalanceKey(self.budget.owner, self.budget.period.value, self.start)

    def try_take(self, amount: float) -> bool:
        """Take the amount if the lease has it and is still valid. An unrenewed lease may belong to another process."""
        return self.clocks.steady() <= self.valid_until and super().try_take(amount)

    def settle(self, taken: float, used: float) -> None:
        """Record what a request used. Overuse comes from the free amount, then from what other requests took.

        The store charges in this order. The store decides about what the lease cannot cover.
        """
        super().settle(taken, used)
        self._spent += used
        self.free = max(-self.in_use, self.free)

    def renew(self, asked: float) -> None:
        """Count the lease as valid from the moment at which the store was asked."""
        self.valid_until = asked + LEASE_SECONDS * VALID_PART

    # -- what is kept in reserve

    def keep_calm(self, seconds: float) -> None:
        """Keep nothing in reserve for a while: another process needs it, or someone looks at the balance."""
        self._calm_until = max(self._calm_until, self.clocks.steady() + seconds)

    def fill_up(self) -> None:
        """Lease ahead what a steady caller spends in RESERVE_SECONDS. Most calls do not ask the store."""
        now = self.clocks.steady()
        self._measure(now)
        goal = min(self._pace * RESERVE_SECONDS, (self._room + self.free) / RESERVE_PARTS)
        if self._asking is None and now >= self._calm_until and self.free < goal * LEAST_RESERVE:
            self._asking = asyncio.create_task(self._reserve(int(goal - self.free)))

    def _measure(self, now: float) -> None:
        elapsed, age = now - self._paced_at, now - self._begun_at
        if elapsed > 0:  # a plain mean at first, then a decaying one
            weight = min(1.0, elapsed / min(PACE_SECONDS, age))
            self._pace += (self._spent / elapsed - self._pace) * weight
            self._spent, self._paced_at = 0.0, now

    async def _reserve(self, want: int) -> None:
        asked = self.clocks.steady()
        try:
            grant = await self._lease(0, want, part=RESERVE_PARTS)
            self._room = max(0, grant.standing.left)
            if grant.amount:
                self._receive(grant, asked)
        except StoreUnavailable:
            pass  # no request waits for it
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                self._asking = None
                raise
        await self._serve()  # requests that came meanwhile

    # -- asking the store

    def _usable(self) -> float:
        return self.free if self.clocks.steady() <= self.valid_until else min(0, self.free)

    async def _ask(self) -> Refusal | None:
        if self._usable() < self.free:
            await self._revive()
        for again in range(RECALLS + 1):
            self._hand_out()  # amounts that were put back meanwhile
            if not self._waiting:
                return None
            asked, (least, want) = self.clocks.steady(), self._wanted()
            want += self.budget.cap // BUDGET_PARTS
            grant = await self._lease(int(least - self._usable()), int(want - self._usable()))
            if grant.amount:
                self._receive(grant, asked)
                return None
            if not grant.elsewhere or again == RECALLS:
                return self._refuse_all(least, partial(_refuse_budget, self._add_owed(grant.standing)))
            await self.database.write(balance_rows.recall, [self.budget.owner], self.process)
            self.keep_calm(CALM_SECONDS)
            await asyncio.sleep(RECALL_SECONDS)
        return None

    def _add_owed(self, standing: Standing) -> Standing:
        """Count overuse that is about to be written as held."""
        return replace(standing, held=standing.held + min(standing.left, max(0, -int(self.free))))

    async def _revive(self) -> None:
        """Ask the store whether the lease still exists, after it was not renewed in time."""
        asked = self.clocks.steady()
        held = await self.database.write(balance_rows.renew, self.process, self.clocks.now())
        if self.key in held:
            self.renew(asked)
        else:
            self.lose()

    async def _lease(self, least: int, want: int, part: int = 1) -> Grant:
        now = min(self.clocks.now(), self.ends - 0.001)  # the period may end while the store is asked
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
        if grant.is_new:
            self.lose()  # the former lease has ended
        standing = grant.standing
        self.budget, self.start, self.ends = standing.budget, standing.start, standing.ends  # as the store has them now
        self._room = max(0, standing.left)
        self.free += grant.amount
        self.renew(asked)


def _refuse_budget(standing: Standing, amount: float) -> PenstockError:
    return standing.refuse(int(amount))


def is_in_doubt(error: BaseException) -> bool:
    """Return whether a failed write may have been committed: then what was given back must not be used again."""
    return isinstance(error, StoreUnavailable) and error.in_doubt
