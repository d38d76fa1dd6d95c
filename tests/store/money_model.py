"""What the books must say, in plain Python: nothing is kept but what happened, every sum is made anew."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.domain.budgets import BalanceKey, Budget, Payer
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS
from penstock.store.queries.billing.ledger_rows import UNKNOWN_SECONDS


@dataclass
class Held:
    """A job's hold."""

    payer: Payer
    amount: int
    at: float
    is_open: bool = True
    timer: float | None = None
    """When it ends by itself, its outcome being unknown."""


@dataclass
class Lease:
    """What a process holds of a purse."""

    amount: int
    expires_at: float
    recalled: bool = False


@dataclass(frozen=True)
class Spent:
    """Money that went, or with a sign came back."""

    payer: Payer
    amount: int
    at: float


@dataclass
class Books:
    """Budgets, holds, leases and every entry since the beginning."""

    budgets: dict[tuple[str, str], Budget] = field(default_factory=dict)
    holds: dict[str, Held] = field(default_factory=dict)
    leases: dict[tuple[str, BalanceKey], Lease] = field(default_factory=dict)
    spendings: list[Spent] = field(default_factory=list)
    entries: dict[tuple[str, str], tuple[str, int, int]] = field(default_factory=dict)
    """By subject and kind: the account, the amount and the overrun."""
    cuts: dict[str, float] = field(default_factory=dict)
    """Before which accounts' entries may be rolled up."""
    rolled_up: set[str] = field(default_factory=set)
    """The subjects whose entries are in a checkpoint."""

    # -- sums

    def bearing(self, payer: Payer) -> list[Budget]:
        return [budget for (owner, _), budget in self.budgets.items() if owner in payer.owners]

    def place(self, budget: Budget, at: float) -> BalanceKey:
        return BalanceKey(budget.owner, budget.period.value, budget.window(at)[0])

    def holds_in(self, place: BalanceKey, ends: float) -> dict[str, int]:
        """What is held in a purse, by job or process."""
        found = {
            subject: held.amount
            for subject, held in self.holds.items()
            if held.is_open and place.owner in held.payer.owners and place.start <= held.at < ends
        }
        return found | {process: lease.amount for (process, at), lease in self.leases.items() if at == place}

    def spent_in(self, place: BalanceKey, ends: float) -> int:
        return sum(
            spent.amount
            for spent in self.spendings
            if place.owner in spent.payer.owners and place.start <= spent.at < ends
        )

    def room(self, budget: Budget, at: float) -> int:
        start, ends = budget.window(at)
        place = BalanceKey(budget.owner, budget.period.value, start)
        return budget.cap - self.spent_in(place, ends) - sum(self.holds_in(place, ends).values())

    def leased(self, process: str, budget: Budget, at: float) -> int:
        lease = self.leases.get((process, self.place(budget, at)))
        return lease.amount if lease else 0

    def charged_to(self, account_id: str) -> int:
        return sum(spent.amount for spent in self.spendings if spent.payer.account_id == account_id)

    # -- roll-ups

    def kept_entries(self) -> dict[tuple[str, str], tuple[str, int, int]]:
        return {name: entry for name, entry in self.entries.items() if name[0] not in self.rolled_up}

    def is_partial(self, owner: str, start: float) -> bool:
        """Whether some entries of this period may be in a checkpoint: a balance begun later does not count them."""
        cuts = [self.cuts[payer] for payer in self.cuts if payer == owner or not owner.startswith("acct_")]
        return 0 < start < max(cuts, default=0.0)

    def settle_in_partial(self, subject: str, charged: int, cost: int) -> None:
        """Pay for a job whose period is partly rolled up: at least what an exact balance would have covered."""
        if (subject, "settle") in self.entries:
            assert charged == self.entries[subject, "settle"][1]
            return
        held = self.holds[subject]
        kept = held.amount if held.is_open else 0
        least = min([cost, *(max(kept, self.room(budget, held.at)) for budget in self.bearing(held.payer))])
        assert least <= charged <= cost
        held.is_open, held.timer = False, None
        self._pay(subject, held.payer, charged, cost, held.at)

    # -- budgets

    def put(self, budget: Budget) -> None:
        former = self.budgets.get((budget.owner, budget.period.value))
        if former is not None and former.time_zone != budget.time_zone:
            self._forget(budget)
        self.budgets[budget.owner, budget.period.value] = budget

    def remove(self, budget: Budget) -> None:
        self._forget(budget)
        del self.budgets[budget.owner, budget.period.value]

    def _forget(self, budget: Budget) -> None:
        for name in [name for name in self.leases if name[1][:2] == (budget.owner, budget.period.value)]:
            del self.leases[name]

    # -- jobs

    def can_hold(self, payer: Payer, amount: int, at: float) -> bool:
        return all(amount <= self.room(budget, at) for budget in self.bearing(payer))

    def hold(self, subject: str, payer: Payer, amount: int, at: float) -> None:
        self.holds[subject] = Held(payer, amount, at)
        self.entries[subject, "hold"] = payer.account_id, amount, 0

    def settle(self, subject: str, cost: int) -> int:
        """Pay for a job, once: what its budgets can bear, or in each what was held for it."""
        if (subject, "settle") in self.entries:
            return self.entries[subject, "settle"][1]
        held = self.holds[subject]
        kept = held.amount if held.is_open else 0
        held.is_open, held.timer = False, None
        charged = min([cost, *(max(kept, self.room(budget, held.at)) for budget in self.bearing(held.payer))])
        self._pay(subject, held.payer, charged, cost, held.at)
        return charged

    def release(self, subject: str) -> None:
        held = self.holds[subject]
        if held.is_open:
            held.is_open, held.timer = False, None
            self.entries[subject, "release"] = held.payer.account_id, held.amount, 0

    def keep(self, subject: str, now: float) -> None:
        held = self.holds[subject]
        if held.is_open and held.timer is None:
            held.timer = now + UNKNOWN_SECONDS

    def refund(self, subject: str, payer: Payer, at: float) -> None:
        if (subject, "refund") not in self.entries:
            account, amount, _ = self.entries[subject, "settle"]
            self.entries[subject, "refund"] = account, amount, 0
            self.spendings.append(Spent(payer, -amount, at))

    # -- chat

    def charge(self, process: str, subject: str, payer: Payer, cost: int, at: float) -> int:
        """Out of what the process holds first, then out of what is free; the rest is nobody's, and held no more."""
        bearing = self.bearing(payer)
        able = [self.leased(process, budget, at) + max(0, self.room(budget, at)) for budget in bearing]
        charged = min([cost, *able])
        for budget in bearing:
            lease = self.leases.get((process, self.place(budget, at)))
            if lease is not None:
                lease.amount -= min(lease.amount, cost)
        self._pay(subject, payer, charged, cost, at)
        return charged

    def lease(self, process: str, budget: Budget, least: int, want: int, now: float) -> tuple[int, int]:
        """What a process is given, else what others hold."""
        place = self.place(budget, now)
        if self.room(budget, now) < least:
            self._expire(now, [name for name in self.leases if name[1] == place])
        room = self.room(budget, now)
        if room < least:
            others = [lease for (other, at), lease in self.leases.items() if at == place and other != process]
            return 0, sum(lease.amount for lease in others)
        amount = min(room, max(least, want))
        lease = self.leases.setdefault((process, place), Lease(0, 0))
        lease.amount += amount
        lease.expires_at = now + LEASE_SECONDS
        return amount, 0

    def give_back(self, process: str, place: BalanceKey, amount: int) -> None:
        lease = self.leases.get((process, place))
        if lease is not None:
            lease.amount -= min(lease.amount, amount)
            lease.recalled = False
            if not lease.amount:
                del self.leases[process, place]

    def recall(self, owner: str, process: str) -> None:
        for (other, place), lease in self.leases.items():
            if other != process and place.owner == owner:
                lease.recalled = True

    def renew(self, process: str, now: float) -> dict[BalanceKey, bool]:
        """Where a process holds something, and whether it is recalled."""
        mine = {place: lease for (name, place), lease in self.leases.items() if name == process}
        for lease in mine.values():
            lease.expires_at = now + LEASE_SECONDS
        return {place: lease.recalled for place, lease in mine.items()}

    def end(self, process: str) -> None:
        for name in [name for name in self.leases if name[0] == process]:
            del self.leases[name]

    def expire(self, now: float) -> None:
        self._expire(now, list(self.leases))
        for subject, held in self.holds.items():
            if held.timer is not None and held.timer <= now:
                self.release(subject)

    def _expire(self, now: float, names: list[tuple[str, BalanceKey]]) -> None:
        for name in names:
            if self.leases[name].expires_at <= now:
                del self.leases[name]

    def _pay(self, subject: str, payer: Payer, charged: int, cost: int, at: float) -> None:
        self.entries[subject, "settle"] = payer.account_id, charged, cost - charged
        self.spendings.append(Spent(payer, charged, at))

    def endings(self, subject: str) -> Iterator[str]:
        """How a hold ended."""
        return (kind for kind in ("settle", "release") if (subject, kind) in self.entries)
