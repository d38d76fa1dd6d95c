"""What a process may use of a budget or a limit without asking the store: taken in shares, given back when idle."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from penstock.budgets import Budget, Payer, Standing
from penstock.errors import PenstockError, RateLimited, TooManyStreams
from penstock.rates import describe_bucket, write_duration
from penstock.store import limit_rows, purse_rows
from penstock.store.database import Database
from penstock.store.purse_rows import LEASE_SECONDS, Place

RECALL_SECONDS: Final = 0.3
RECALLS: Final = 3
"""How often the other processes are asked for what they do not use before a request is refused."""
REFUSED_SECONDS: Final = 0.2
"""How long a refusal is remembered, so that a flood of refused requests costs no store."""
MONEY_PARTS: Final = 64
RATE_PARTS: Final = 40
SLOT_PARTS: Final = 8
"""A share is about this part of the whole."""


class Share:
    """So much is free for requests of this process. Who finds too little waits for the store, with all others."""

    __slots__ = ("_asking", "_refused", "_waiting", "database", "free", "in_use", "used_at")

    def __init__(self, database: Database) -> None:
        self.database = database
        self.free: float = 0
        self.in_use: float = 0
        self.used_at = time.monotonic()
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._asking: asyncio.Task[None] | None = None
        self._refused: tuple[float, float, Callable[[float], PenstockError]] | None = None

    @property
    def is_waited_for(self) -> bool:
        """Whether requests wait for more of it."""
        return bool(self._waiting)

    def try_take(self, amount: float) -> bool:
        """Take it if it is there, which it mostly is."""
        if self.free < amount or self._waiting:
            return False
        self.free -= amount
        self.in_use += amount
        self.used_at = time.monotonic()
        return True

    async def take(self, amount: float) -> None:
        """Take it, asking the store for more where it is not there; raises why it cannot be had."""
        if self._refused is not None:
            until, least, refuse = self._refused
            if time.monotonic() < until and amount >= least:
                raise refuse(amount)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        if self._asking is None:
            self._asking = asyncio.create_task(self._serve())
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.put_back(amount)  # it was given in the moment of leaving
            raise

    def put_back(self, amount: float) -> None:
        """What was taken is not needed."""
        self.settle(amount, 0)

    def settle(self, taken: float, used: float) -> None:
        """The request is over: of what was taken so much was used."""
        self.in_use -= taken
        self.free += taken - used

    # -- asking the store

    async def _serve(self) -> None:
        """Ask for all who wait, until each has what it wants or a refusal."""
        try:
            while self._waiting:
                await asyncio.sleep(0)  # more may come in this very moment
                wanted = [amount for amount, turn in self._waiting if not turn.done()]
                least = min(wanted, default=0)
                refuse = await self._ask(least, sum(wanted)) if wanted else None
                self._hand_out(least, refuse)
        except BaseException as error:  # noqa: BLE001  told to everyone who waits
            self._fail(error)
        finally:
            self._asking = None

    def _hand_out(self, least: float, refuse: Callable[[float], PenstockError] | None) -> None:
        """First come, first served, but who wants too much does not hold up who wants less.

        Not even so much as `least` can be had if `refuse` tells so; who wants less came later, and is asked for next.
        """
        left: deque[tuple[float, asyncio.Future[None]]] = deque()
        for amount, turn in self._waiting:
            if turn.done():
                continue
            if self.free >= amount:
                self.free -= amount
                self.in_use += amount
                turn.set_result(None)
            elif refuse is not None and amount >= least:
                turn.set_exception(refuse(amount))
            else:
                left.append((amount, turn))
        self.used_at = time.monotonic()
        self._waiting = left

    def _fail(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, turn in waiting:
            if not turn.done():
                turn.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())

    async def _ask(self, least: float, want: float) -> Callable[[float], PenstockError] | None:
        """Get more: None if there is, else how to refuse."""
        raise NotImplementedError

    def _remember(
        self, least: float, refuse: Callable[[float], PenstockError], seconds: float = REFUSED_SECONDS
    ) -> Callable[[float], PenstockError]:
        self._refused = (time.monotonic() + min(seconds, REFUSED_SECONDS), least, refuse)
        return refuse


class MoneyShare(Share):
    """A lease on one budget in one of its periods."""

    __slots__ = ("budget", "ends", "good_until", "payer", "process", "start")

    def __init__(self, database: Database, process: str, budget: Budget, payer: Payer, now: float) -> None:
        super().__init__(database)
        self.process = process
        self.budget = budget
        self.payer = payer
        self.start, self.ends = budget.window(now)
        self.good_until = 0.0

    @property
    def place(self) -> Place:
        """Which purse it is of."""
        return Place(self.budget.owner, self.budget.period.value, self.start)

    def try_take(self, amount: float) -> bool:
        """The same, while the lease is good: one that was not renewed may be another's by now."""
        if time.monotonic() > self.good_until:
            self.free = 0
        return super().try_take(amount)

    def settle(self, taken: float, used: float) -> None:
        """What was used beyond what was taken comes from what is free; the rest is for the store to judge."""
        super().settle(taken, used)
        self.free = max(0, self.free)

    async def _ask(self, least: float, want: float) -> Callable[[float], PenstockError] | None:
        part = self.budget.cap // MONEY_PARTS
        for again in range(RECALLS + 1):
            asked = time.monotonic()
            now = min(time.time(), self.ends - 0.001)  # the period may end while we ask: it is this one's that is held
            grant = await self.database.write(
                purse_rows.lease,
                self.process,
                self.payer,
                self.budget,
                int(least - self.free),
                int(want - self.free) + part,
                max(now, self.start),
            )
            if grant.amount:
                self.free += grant.amount
                self.good_until = asked + LEASE_SECONDS * 0.8
                return None
            if not grant.elsewhere or again == RECALLS:
                return self._remember(least, partial(_refuse_money, grant.standing))
            await self.database.write(purse_rows.recall, [self.budget.owner], self.process)
            await asyncio.sleep(RECALL_SECONDS)
        return None


def _refuse_money(standing: Standing, amount: float) -> PenstockError:
    return standing.refuse(int(amount))


class RateShare(Share):
    """Some of a minute's requests or tokens; what was used beyond it is owed."""

    __slots__ = ("kind", "known_at", "left", "limit", "of", "owner")

    def __init__(self, database: Database, owner: str, of: str, kind: str, limit: int) -> None:
        super().__init__(database)
        self.owner = owner
        self.of = of
        self.kind = kind
        self.limit = limit
        self.left = float(limit)
        self.known_at = time.time()

    def level(self, now: float) -> float:
        """What is left for this process as far as it knows: its own, and what fills up in the store."""
        gained = max(0.0, now - self.known_at) * self.limit / limit_rows.MINUTE
        return min(float(self.limit), self.free + min(float(self.limit), self.left + gained))

    async def _ask(self, least: float, want: float) -> Callable[[float], PenstockError] | None:
        owed, self.free = -self.free, 0.0  # what is free is given back, in the same step as more is taken
        now = time.time()
        try:
            got = await self.database.write(
                limit_rows.take,
                self.owner,
                self.kind,
                self.limit,
                now,
                least=least,
                want=max(want, self.limit / RATE_PARTS),
                owed=owed,
            )
        except BaseException:
            self.free -= owed
            raise
        self.free += got.taken
        self.left, self.known_at = got.left, now
        return None if got.taken else self._remember(least, self._refuse, self._wait(least))

    def _wait(self, amount: float) -> float:
        """Seconds until so much can be taken."""
        missing = min(amount, self.limit) - self.level(time.time())
        return max(0.001, missing * limit_rows.MINUTE / self.limit)

    def _refuse(self, amount: float) -> PenstockError:
        wait = self._wait(amount)
        whose = "this API key" if self.of == "key" else "this account"
        return RateLimited(
            f"Rate limit reached for {whose}: {self.limit} {self.kind} per minute. "
            f"Please try again in {write_duration(wait)}.",
            retry_after=wait,
            headers=dict(self.describe(time.time())),
        )

    def describe(self, now: float) -> list[tuple[str, str]]:
        """The headers that clients read."""
        return describe_bucket(self.kind, self.limit, self.level(now))


class SlotShare(Share):
    """Some of the streams that may be open at once."""

    __slots__ = ("limit", "of", "owner", "process")

    def __init__(self, database: Database, owner: str, of: str, process: str, limit: int) -> None:
        super().__init__(database)
        self.owner = owner
        self.of = of
        self.process = process
        self.limit = limit

    async def _ask(self, least: float, want: float) -> Callable[[float], PenstockError] | None:
        del least
        wanted = int(want) + self.limit // SLOT_PARTS
        got = await self.database.write(
            limit_rows.lease_slots, self.owner, self.process, self.limit, wanted, time.time()
        )
        self.free += got
        return None if got else self._remember(1, self._refuse)

    def _refuse(self, amount: float) -> PenstockError:
        del amount
        whose = "This API key" if self.of == "key" else "This account"
        return TooManyStreams(f"{whose} may have {self.limit} streams open at once.", retry_after=1)
