"""Lets requests in: limits and budgets are hard over all processes, and mostly cost no look at the store."""

import asyncio
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, TypeAlias

from penstock.billing.leases import CALM_SECONDS, CLOCKS, BudgetLease, Clocks, LocalLease, is_in_doubt
from penstock.billing.limit_leases import RateLease, StreamLease
from penstock.billing.rate_headers import describe_bucket, write_bucket
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import BalanceKey, Budget
from penstock.errors import StoreUnavailable
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.billing import balance_rows, limit_rows, process_lease_rows
from penstock.store.queries.billing.limit_rows import Owed

TEND_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 1.0
"""After so long without use, what is free is given back."""
SHOWN_SECONDS: Final = 0.5
"""Nothing is leased ahead for this time after someone looked at what is held."""
RENEW_SECONDS: Final = 5.0
MAX_FOUND: Final = 10_000

log = logging.getLogger(__name__)


class Use(Enum):
    """What a lease is taken for."""

    REQUEST = auto()
    TOKENS = auto()
    STREAM = auto()
    MONEY = auto()


REQUEST, TOKENS, STREAM, MONEY = Use  # looked up with every request


Wanted: TypeAlias = tuple[LocalLease, float, Use]
"""A lease, how much is taken of it, and what for."""


class Ticket:
    """What one request has taken; settled once, when it is over."""

    __slots__ = ("_is_settled", "_taken")

    def __init__(self) -> None:
        self._taken: list[Wanted] = []
        self._is_settled = False

    def try_take(self, wanted: Sequence[Wanted]) -> bool:
        """Take all of it if it is there, which it mostly is; else nothing."""
        for number, (lease, amount, _) in enumerate(wanted):
            if not lease.try_take(amount):
                _put_back(wanted[:number])
                return False
        self._taken += wanted
        return True

    async def take(self, wanted: Sequence[Wanted]) -> None:
        """Take all of it, waiting for the store where need be; or nothing, and raise why it cannot be had."""
        taken: list[Wanted] = []
        for lease, _, _ in wanted:
            lease.expected += 1  # none of them is forgotten while another is waited for
        try:
            for lease, amount, use in wanted:
                if not lease.try_take(amount):
                    await lease.take(amount)
                taken.append((lease, amount, use))
        except BaseException:
            _put_back(taken)
            raise
        finally:
            for lease, _, _ in wanted:
                lease.expected -= 1
        self._taken += taken

    def give_up(self) -> None:
        """The request was not let in after all: it used nothing."""
        if not self._is_settled:
            self._is_settled = True
            _put_back(self._taken)

    def settle(self, cost: int, tokens: int) -> None:
        """The request is over: what it cost, and how many tokens it used."""
        if self._is_settled:
            return
        self._is_settled = True
        for lease, amount, use in self._taken:
            if use is MONEY:
                lease.settle(amount, cost)
            elif use is TOKENS:
                lease.settle(amount, tokens)
            else:
                lease.settle(amount, 0 if use is STREAM else amount)

    def describe(self) -> list[tuple[str, str]]:
        """The headers that clients read: of each kind the limit of which least is left."""
        return [header for lease, level in self._least() for header in describe_bucket(lease.kind, lease.limit, level)]

    def write(self) -> bytes:
        """The same as lines of a head."""
        return b"".join([write_bucket(lease.kind, lease.limit, level) for lease, level in self._least()])

    def _least(self) -> Iterable[tuple[RateLease, float]]:
        least: dict[str, tuple[RateLease, float]] = {}
        now = 0.0
        for lease, _, use in self._taken:
            if use is REQUEST or use is TOKENS:
                rate: RateLease = lease  # type: ignore[assignment]  # these are taken of rates only
                now = now or rate.clocks.now()
                level = rate.level(now)
                if rate.kind not in least or level < least[rate.kind][1]:
                    least[rate.kind] = rate, level
        return least.values()


def _put_back(taken: Iterable[Wanted]) -> None:
    for lease, amount, _ in taken:
        lease.put_back(amount)


class Admission:
    """One per process. What it has of a limit or a budget is written in the store first, and ends by itself."""

    def __init__(
        self, database: Database, process: str, clocks: Clocks = CLOCKS, contact: StoreContact | None = None
    ) -> None:
        self._database = database
        self._contact = contact
        self._clocks = clocks
        self.process = process
        self._rates: dict[tuple[str, str], RateLease] = {}
        self._slots: dict[str, StreamLease] = {}
        self._money: dict[BalanceKey, BudgetLease] = {}
        self._found: dict[int, tuple[ApiKey, list[tuple[RateLease, Use]]]] = {}
        self._latest: dict[int, BudgetLease] = {}
        """What was found for a key, and for a budget, by their identities; forgotten with each tending."""
        self._tending: asyncio.Task[None] | None = None
        self._renewed = 0.0
        self._strays: set[BalanceKey | str] = set()
        """Leases of this process in the store that it knows nothing of: a commit was cut in two."""

    # -- letting in

    def try_admit(self, key: ApiKey, prompt: int, answer: int, *, stream: bool) -> Ticket | None:
        """Let a request in if this process has what it takes, which it mostly has; else `admit` asks the store."""
        ticket = Ticket()
        return ticket if ticket.try_take(self._list(key, prompt, answer, stream=stream)) else None

    async def admit(self, key: ApiKey, prompt: int = 0, answer: int = 0, *, stream: bool = False) -> Ticket:
        """Let a request of about so many tokens in, or say when it may come again.

        A prompt that alone is more than a minute's tokens never fits; of a long answer a minute's are taken beforehand.
        """
        ticket = Ticket()
        await ticket.take(self._list(key, prompt, answer, stream=stream))
        return ticket

    async def open_stream(self, key: ApiKey) -> Ticket:
        """A place among the streams that may be open at once."""
        ticket = Ticket()
        await ticket.take(list(self._list_slots(key)))
        return ticket

    def try_hold(self, ticket: Ticket, key: ApiKey, cost: int, at: float) -> bool:
        """Hold the most that a request accepted at this moment can cost, if this process has it; else `hold` asks."""
        return ticket.try_take([(self._budget_lease(key, budget, at), cost, MONEY) for budget in key.budgets])

    async def hold(self, ticket: Ticket, key: ApiKey, cost: int, at: float) -> None:
        """The same, asking the store; in every budget that bears it."""
        await ticket.take([(self._budget_lease(key, budget, at), cost, MONEY) for budget in key.budgets])

    def _list(self, key: ApiKey, prompt: int, answer: int, *, stream: bool) -> list[Wanted]:
        """What a request takes."""
        wanted: list[Wanted] = list(self._list_slots(key)) if stream else []
        for lease, use in self._rates_of(key):
            if use is REQUEST:
                wanted.append((lease, 1, REQUEST))
            elif prompt:
                wanted.append((lease, lease.count(prompt, answer), TOKENS))
        return wanted

    def _rates_of(self, key: ApiKey) -> list[tuple[RateLease, Use]]:
        known = self._found.get(id(key))
        if known is not None and known[0] is key:
            return known[1]  # as nearly always
        rates: list[tuple[RateLease, Use]] = []
        for owner, of, limits in ((key.lineage, "key", key.limits), (key.account_id, "account", key.account_limits)):
            if limits.requests_per_minute is not None:
                rates.append((self._rate(owner, of, "requests", limits.requests_per_minute), REQUEST))
            if limits.tokens_per_minute is not None:
                rates.append((self._rate(owner, of, "tokens", limits.tokens_per_minute), TOKENS))
        if len(self._found) >= MAX_FOUND:
            self._found.clear()
        self._found[id(key)] = key, rates
        return rates

    def _list_slots(self, key: ApiKey) -> Iterator[Wanted]:
        for owner, of, limits in ((key.lineage, "key", key.limits), (key.account_id, "account", key.account_limits)):
            if limits.concurrent_streams is not None:
                yield self._slot(owner, of, limits.concurrent_streams), 1, STREAM

    def _rate(self, owner: str, of: str, kind: str, limit: int) -> RateLease:
        lease = self._rates.get((owner, kind))
        if lease is None or lease.limit != limit:  # what was left of an old limit is forgotten with it
            lease = self._rates[owner, kind] = RateLease(
                self._database, self._clocks, owner, of, kind, limit, self._contact
            )
            self._tend()
        return lease

    def _slot(self, owner: str, of: str, limit: int) -> StreamLease:
        lease = self._slots.get(owner)
        if lease is None:
            lease = self._slots[owner] = StreamLease(
                self._database, self._clocks, owner, of, self.process, limit, self._contact
            )
            self._tend()
        lease.limit = limit
        return lease

    def _budget_lease(self, key: ApiKey, budget: Budget, at: float) -> BudgetLease:
        """Of the period in which the request was accepted: there it is charged, even if that is over by now."""
        lease = self._latest.get(id(budget))
        if lease is not None and lease.budget is budget and lease.start <= at < lease.ends:
            return lease  # as nearly always
        balance_key = BalanceKey(budget.owner, budget.period.value, budget.window(at)[0])
        lease = self._money.get(balance_key)
        if lease is None:
            lease = BudgetLease(self._database, self._clocks, self.process, budget, key.payer, at, self._contact)
            self._money[balance_key] = lease
            self._tend()
        lease.budget = budget
        self._latest[id(budget)] = lease
        return lease

    # -- giving back

    def reconsider(self) -> None:
        """Budgets or limits were changed: a refusal of before may no longer be true."""
        for lease in (*self._money.values(), *self._slots.values(), *self._rates.values()):
            lease.reconsider()

    async def give_back(self, owners: Sequence[str] | None = None) -> None:
        """Give back the money that is not in use, of these owners or all: then what is held is what is under way."""
        leases = [lease for lease in self._money.values() if owners is None or lease.budget.owner in owners]
        for lease in leases:
            lease.keep_calm(SHOWN_SECONDS)
        await self._return_money(leases)

    async def recall(self, owners: Sequence[str]) -> None:
        """Give back what is free of these owners' budgets, and ask the other processes to do so."""
        await self.give_back(owners)
        await self._database.write(balance_rows.recall, owners, self.process)

    async def stop(self) -> None:
        """Give back everything; what is still in use is charged by then."""
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
            for lease in (*self._rates.values(), *self._slots.values(), *self._money.values()):
                await lease.stop()
            try:
                await self._return_rates(math.inf)
                await self._database.write(process_lease_rows.end, self.process)
            except StoreUnavailable:
                log.warning("the store does not answer: what is held here ends by itself")

    def _tend(self) -> None:
        if self._tending is None:
            self._tending = asyncio.create_task(self._tend_forever(), name="admission")

    async def _tend_forever(self) -> None:
        while True:
            await asyncio.sleep(TEND_SECONDS)
            try:
                await self._tend_once(self._clocks.monotonic())
            except StoreUnavailable:
                log.warning("the store does not answer; what is held stays held")
            except Exception:
                log.exception("tending limits and budgets failed; it goes on")

    async def _tend_once(self, now: float) -> None:
        if self._contact is not None and self._contact.is_away:
            return  # what is leased is needed more than ever, and nobody could take it back
        await self._return_rates(now)
        await self._return_slots(now)
        money = list(self._money.values())
        if money or self._slots:
            recalled = await self._renew(now, money)
            idle = [lease for lease in money if _is_idle(lease, now)]
            for lease in money:
                if lease.key in recalled:
                    lease.keep_calm(CALM_SECONDS)
                elif lease not in idle:
                    lease.fill_up()
            await self._return_money([*idle, *(lease for lease in money if lease.key in recalled)])
        self._money = {balance_key: lease for balance_key, lease in self._money.items() if not _is_empty(lease, now)}
        self._latest.clear()

    async def _renew(self, now: float, money: Sequence[BudgetLease]) -> set[BalanceKey]:
        """Keep what is held, and hear what others need of it."""
        if now - self._renewed < RENEW_SECONDS:
            return await self._database.read(balance_rows.recalled, self.process) if money else set()
        held, slots = await self._database.write(process_lease_rows.renew, self.process, self._clocks.now())
        self._renewed = now
        for lease in money:
            if lease.key in held:
                lease.renew(now)
        for owner in slots & self._slots.keys():
            self._slots[owner].renew(now)
        await self._return_strays(held, slots)
        return {balance_key for balance_key, is_recalled in held.items() if is_recalled}

    async def _return_strays(self, held: Iterable[BalanceKey], slots: set[str]) -> None:
        """Give back leases that nobody here uses, once what they were used for is certainly written."""
        used = {lease.key for lease in self._money.values()}
        strays = {*(balance_key for balance_key in held if balance_key not in used), *(slots - self._slots.keys())}
        found, self._strays = strays & self._strays, strays
        if found:
            await self._database.write(process_lease_rows.end, self.process, found)

    async def _return_money(self, leases: Sequence[BudgetLease]) -> None:
        free = {lease.key: (lease, int(lease.free)) for lease in leases if lease.free > 0}
        for lease, _ in free.values():
            lease.free = 0  # from here on nobody uses it
        if free:  # to its end, also for a caller who leaves: else nobody would know whether it is given back
            await asyncio.shield(self._give_back(free))

    async def _give_back(self, free: Mapping[BalanceKey, tuple[BudgetLease, int]]) -> None:
        amounts = {balance_key: amount for balance_key, (_, amount) in free.items()}
        try:
            await self._database.write(balance_rows.give_back, self.process, amounts)
        except Exception as error:
            for lease, amount in free.values() if not is_in_doubt(error) else ():
                lease.free += amount
            raise

    async def _return_rates(self, now: float) -> None:
        """What was used beyond a lease is told at once, what is left of it when it is idle; of all in one go."""
        returned = [(lease, -lease.free) for lease in self._rates.values() if lease.free < 0 or _is_idle(lease, now)]
        owed = [Owed(lease.owner, lease.kind, lease.limit, amount) for lease, amount in returned if amount]
        for lease, amount in returned:
            lease.free += amount
        if owed:
            try:
                await self._database.write(limit_rows.owe, owed, self._clocks.now())
            except Exception as error:
                for lease, amount in returned:
                    if amount > 0 or not is_in_doubt(error):
                        lease.free -= amount
                raise
        self._rates = {name: lease for name, lease in self._rates.items() if not _is_empty(lease, now)}
        self._found.clear()

    async def _return_slots(self, now: float) -> None:
        idle = {owner: int(lease.free) for owner, lease in self._slots.items() if lease.free and _is_idle(lease, now)}
        returned = [(self._slots[owner], amount) for owner, amount in idle.items()]
        for lease, amount in returned:
            lease.free -= amount
        if idle:
            try:
                await self._database.write(limit_rows.give_back_slots, self.process, idle)
            except Exception as error:
                for lease, amount in returned if not is_in_doubt(error) else ():
                    lease.free += amount
                raise
        self._slots = {owner: lease for owner, lease in self._slots.items() if not _is_empty(lease, now)}


def _is_idle(lease: LocalLease, now: float) -> bool:
    return now - lease.used_at > IDLE_SECONDS and not lease.is_waited_for


def _is_empty(lease: LocalLease, now: float) -> bool:
    return _is_idle(lease, now) and not (lease.free or lease.in_use or lease.expected)
