"""Admission of requests: limits and budgets hold across all processes, mostly without asking the store."""

import asyncio
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, TypeAlias

from penstock.billing.leases import CALM_SECONDS, BudgetLease, LocalLease, is_in_doubt
from penstock.billing.limit_leases import RateLease, StreamLease
from penstock.billing.rate_headers import describe_bucket, write_bucket
from penstock.clocks import CLOCKS, Clocks
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import BalanceKey, Budget
from penstock.errors import StoreUnavailable
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.billing import balance_rows, limit_rows, process_lease_rows
from penstock.store.queries.billing.limit_rows import Owed

MAINTENANCE_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 1.0
"""Unused amounts are returned to the store after this time."""
VIEWED_SECONDS: Final = 0.5
"""Nothing is leased ahead for this time after someone looked at a balance."""
RENEW_SECONDS: Final = 5.0
MAX_CACHED_KEYS: Final = 10_000

log = logging.getLogger(__name__)


class Use(Enum):
    """The purpose of an amount."""

    REQUEST = auto()
    TOKENS = auto()
    STREAM = auto()
    BUDGET = auto()


REQUEST, TOKENS, STREAM, BUDGET = Use  # used for every request


Wanted: TypeAlias = tuple[LocalLease, float, Use]
"""A lease, the amount to take from it, and the purpose."""


class Ticket:
    """The amounts that one request has taken. It is settled once, when the request is over."""

    __slots__ = ("_is_settled", "_taken")

    def __init__(self) -> None:
        self._taken: list[Wanted] = []
        self._is_settled = False

    def try_take(self, wanted: Sequence[Wanted]) -> bool:
        """Take all amounts if this process has them, else none. Return whether it did."""
        for number, (lease, amount, _) in enumerate(wanted):
            if not lease.try_take(amount):
                _put_back(wanted[:number])
                return False
        self._taken += wanted
        return True

    async def take(self, wanted: Sequence[Wanted]) -> None:
        """Take all amounts, asking the store where needed. Otherwise take none and raise the reason."""
        taken: list[Wanted] = []
        for lease, _, _ in wanted:
            lease.expected += 1  # no lease is dropped while another is waited for
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
        """Return everything: the request was not admitted after all."""
        if not self._is_settled:
            self._is_settled = True
            _put_back(self._taken)

    def settle(self, cost: int, tokens: int) -> None:
        """Record the actual cost and tokens, and return the unused part of the leases."""
        if self._is_settled:
            return
        self._is_settled = True
        for lease, amount, use in self._taken:
            if use is BUDGET:
                lease.settle(amount, cost)
            elif use is TOKENS:
                lease.settle(amount, tokens)
            else:
                lease.settle(amount, 0 if use is STREAM else amount)

    def describe(self) -> list[tuple[str, str]]:
        """Return the rate limit headers. For each kind, they show the limit with the least left."""
        return [header for lease, level in self._least() for header in describe_bucket(lease.kind, lease.limit, level)]

    def write(self) -> bytes:
        """Like `describe`, but return encoded header lines."""
        return b"".join([write_bucket(lease.kind, lease.limit, level) for lease, level in self._least()])

    def _least(self) -> Iterable[tuple[RateLease, float]]:
        least: dict[str, tuple[RateLease, float]] = {}
        now = 0.0
        for lease, _, use in self._taken:
            if use is REQUEST or use is TOKENS:
                rate: RateLease = lease  # type: ignore[assignment]  # these purposes are of rates only
                now = now or rate.clocks.now()
                level = rate.level(now)
                if rate.kind not in least or level < least[rate.kind][1]:
                    least[rate.kind] = rate, level
        return least.values()


def _put_back(taken: Iterable[Wanted]) -> None:
    for lease, amount, _ in taken:
        lease.put_back(amount)


class Admission:
    """The leases of this process on limits and budgets.

    They are written in the store before use, and expire there unless renewed.
    """

    def __init__(
        self, database: Database, process: str, clocks: Clocks = CLOCKS, contact: StoreContact | None = None
    ) -> None:
        self._database = database
        self._contact = contact
        self._clocks = clocks
        self.process = process
        self._rates: dict[tuple[str, str], RateLease] = {}
        self._slots: dict[str, StreamLease] = {}
        self._budgets: dict[BalanceKey, BudgetLease] = {}
        self._found: dict[int, tuple[ApiKey, list[tuple[RateLease, Use]]]] = {}
        self._latest: dict[int, BudgetLease] = {}
        """Leases by the identity of a key or budget: a cache that each maintenance round clears."""
        self._maintenance: asyncio.Task[None] | None = None
        self._renewed = 0.0
        self._strays: set[BalanceKey | str] = set()
        """Leases of this process in the store that it does not know: the answer to a commit was lost."""

    # -- admitting requests

    def try_admit(self, key: ApiKey, prompt: int, answer: int, *, stream: bool) -> Ticket | None:
        """Admit a request if this process has what it takes, as it usually does. Otherwise `admit` asks the store."""
        ticket = Ticket()
        return ticket if ticket.try_take(self._list(key, prompt, answer, stream=stream)) else None

    async def admit(self, key: ApiKey, prompt: int = 0, answer: int = 0, *, stream: bool = False) -> Ticket:
        """Admit a request of about so many tokens, or raise when it may be retried.

        A prompt above a minute's tokens never fits. For a long answer, at most a minute's tokens are taken in advance.
        """
        ticket = Ticket()
        await ticket.take(self._list(key, prompt, answer, stream=stream))
        return ticket

    async def open_stream(self, key: ApiKey) -> Ticket:
        """Take one of the streams that may be open at once."""
        ticket = Ticket()
        await ticket.take(list(self._list_slots(key)))
        return ticket

    def try_hold(self, ticket: Ticket, key: ApiKey, cost: int, at: float, tags: tuple[str, ...] = ()) -> bool:
        """Hold the highest possible cost of a request if this process has the lease. Else `hold` asks the store."""
        bearing = key.budgets_for(tags)
        return ticket.try_take([(self._budget_lease(key, budget, at), cost, BUDGET) for budget in bearing])

    async def hold(self, ticket: Ticket, key: ApiKey, cost: int, at: float, tags: tuple[str, ...] = ()) -> None:
        """Like `try_hold`, but ask the store for what is missing in each budget of the key and the tags."""
        bearing = key.budgets_for(tags)
        await ticket.take([(self._budget_lease(key, budget, at), cost, BUDGET) for budget in bearing])

    def _list(self, key: ApiKey, prompt: int, answer: int, *, stream: bool) -> list[Wanted]:
        """Return the amounts that a request takes."""
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
        if len(self._found) >= MAX_CACHED_KEYS:
            self._found.clear()
        self._found[id(key)] = key, rates
        return rates

    def _list_slots(self, key: ApiKey) -> Iterator[Wanted]:
        for owner, of, limits in ((key.lineage, "key", key.limits), (key.account_id, "account", key.account_limits)):
            if limits.concurrent_streams is not None:
                yield self._slot(owner, of, limits.concurrent_streams), 1, STREAM

    def _rate(self, owner: str, of: str, kind: str, limit: int) -> RateLease:
        lease = self._rates.get((owner, kind))
        if lease is None or lease.limit != limit:  # a changed limit begins anew
            lease = self._rates[owner, kind] = RateLease(
                self._database, self._clocks, owner, of, kind, limit, self._contact
            )
            self._start_maintenance()
        return lease

    def _slot(self, owner: str, of: str, limit: int) -> StreamLease:
        lease = self._slots.get(owner)
        if lease is None:
            lease = self._slots[owner] = StreamLease(
                self._database, self._clocks, owner, of, self.process, limit, self._contact
            )
            self._start_maintenance()
        lease.limit = limit
        return lease

    def _budget_lease(self, key: ApiKey, budget: Budget, at: float) -> BudgetLease:
        """Return the lease of the period in which the request was accepted: it is charged there, even after its end."""
        lease = self._latest.get(id(budget))
        if lease is not None and lease.budget is budget and lease.start <= at < lease.ends:
            return lease  # as nearly always
        balance_key = BalanceKey(budget.owner, budget.period.value, budget.window(at)[0])
        lease = self._budgets.get(balance_key)
        if lease is None:
            lease = BudgetLease(self._database, self._clocks, self.process, budget, key.payer, at, self._contact)
            self._budgets[balance_key] = lease
            self._start_maintenance()
        lease.budget = budget
        self._latest[id(budget)] = lease
        return lease

    # -- returning leases

    def reconsider(self) -> None:
        """Forget refusals, as budgets or limits were changed."""
        for lease in (*self._budgets.values(), *self._slots.values(), *self._rates.values()):
            lease.reconsider()

    async def give_back(self, owners: Sequence[str] | None = None) -> None:
        """Return unused budget leases, of these owners or all. Then the held amounts are those of open requests."""
        leases = [lease for lease in self._budgets.values() if owners is None or lease.budget.owner in owners]
        for lease in leases:
            lease.keep_calm(VIEWED_SECONDS)
        await self._return_budgets(leases)

    async def recall(self, owners: Sequence[str]) -> None:
        """Return unused leases on these owners' budgets, and ask the other processes to do so."""
        await self.give_back(owners)
        await self._database.write(balance_rows.recall, owners, self.process)

    async def stop(self) -> None:
        """Return all leases. Requests in progress are charged by then."""
        if self._maintenance is not None:
            self._maintenance.cancel()
            await asyncio.gather(self._maintenance, return_exceptions=True)
            for lease in (*self._rates.values(), *self._slots.values(), *self._budgets.values()):
                await lease.stop()
            try:
                await self._return_rates(math.inf)
                await self._database.write(process_lease_rows.end, self.process)
            except StoreUnavailable:
                log.warning("store unavailable; the leases of this process expire by themselves")

    def _start_maintenance(self) -> None:
        if self._maintenance is None:
            self._maintenance = asyncio.create_task(self._maintain_forever(), name="admission")

    async def _maintain_forever(self) -> None:
        while True:
            await asyncio.sleep(MAINTENANCE_SECONDS)
            try:
                await self._maintain_once(self._clocks.steady())
            except StoreUnavailable:
                log.warning("store unavailable; leases are kept")
            except Exception:
                log.exception("maintenance of limits and budgets failed; it is retried")

    async def _maintain_once(self, now: float) -> None:
        if self._contact is not None and self._contact.is_away:
            return  # the leases are needed during an outage, and cannot be returned
        await self._return_rates(now)
        await self._return_slots(now)
        budgets = list(self._budgets.values())
        if budgets or self._slots:
            recalled = await self._renew(now, budgets)
            idle = [lease for lease in budgets if _is_idle(lease, now)]
            for lease in budgets:
                if lease.key in recalled:
                    lease.keep_calm(CALM_SECONDS)
                elif lease not in idle:
                    lease.fill_up()
            await self._return_budgets([*idle, *(lease for lease in budgets if lease.key in recalled)])
        self._budgets = {
            balance_key: lease for balance_key, lease in self._budgets.items() if not _is_empty(lease, now)
        }
        self._latest.clear()

    async def _renew(self, now: float, budgets: Sequence[BudgetLease]) -> set[BalanceKey]:
        """Renew the leases. Return the balances that other processes need."""
        if now - self._renewed < RENEW_SECONDS:
            return await self._database.read(balance_rows.recalled, self.process) if budgets else set()
        held, slots = await self._database.write(process_lease_rows.renew, self.process, self._clocks.now())
        self._renewed = now
        for lease in budgets:
            if lease.key in held:
                lease.renew(now)
        for owner in slots & self._slots.keys():
            self._slots[owner].renew(now)
        await self._return_strays(held, slots)
        return {balance_key for balance_key, is_recalled in held.items() if is_recalled}

    async def _return_strays(self, held: Iterable[BalanceKey], slots: set[str]) -> None:
        """End unknown leases of this process, once what they were used for is certainly written."""
        used = {lease.key for lease in self._budgets.values()}
        strays = {*(balance_key for balance_key in held if balance_key not in used), *(slots - self._slots.keys())}
        found, self._strays = strays & self._strays, strays
        if found:
            await self._database.write(process_lease_rows.end, self.process, found)

    async def _return_budgets(self, leases: Sequence[BudgetLease]) -> None:
        free = {lease.key: (lease, int(lease.free)) for lease in leases if lease.free > 0}
        for lease, _ in free.values():
            lease.free = 0  # no request may use it from here on
        if free:  # shielded: a cancellation would leave unknown whether it was returned
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
        """Report overuse immediately. Return unused quota when a lease is idle. All changes go in one transaction."""
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
