"""The ledger: append-only, with at most one entry of each kind per subject. Every balance follows from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, insert, select, tuple_

from penstock.domain.budgets import ENDLESS, BalanceKey, Budget, BudgetBalance, Payer
from penstock.domain.ledger import Charge, EntryKind, LedgerEntry
from penstock.store import locks, sql
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import balance_rows
from penstock.store.sql import Statement
from penstock.store.tables import holds, ledger

UNKNOWN_SECONDS: Final = 86_400.0
"""Seconds for which the hold of a job of unknown outcome is kept."""
TIMER: Final = "unknown"
"""The period that marks a hold as a timer for a job of unknown outcome. No budget has such a period."""


class LedgerRefused(Exception):
    """The ledger lacks the entry that this one must follow."""


_OF_SUBJECT = f"SELECT {', '.join(ledger.columns.keys())} FROM ledger WHERE subject = ?"  # noqa: S608  names of our own
_OF_SUBJECTS = f"SELECT {', '.join(ledger.columns.keys())} FROM ledger WHERE subject IN"  # noqa: S608
_LOCK = f"SELECT {locks.JOIN} FROM ledger WHERE subject IN"  # noqa: S608  words of our own


def join_tags(tags: Sequence[str]) -> str | None:
    """Return tags as they are stored: with a line feed before and after each, so that one can be searched for."""
    return "\n".join(("", *tags, "")) if tags else None


def split_tags(stored: str | None) -> tuple[str, ...]:
    """Return stored tags."""
    return tuple(stored.strip("\n").split("\n")) if stored else ()


def _row(entry: LedgerEntry) -> dict[str, Any]:
    payer = entry.payer
    return {
        "subject": entry.subject,
        "kind": entry.kind.value,
        "account_id": payer.account_id,
        "key_id": payer.key_id,
        "lineage": payer.lineage,
        "amount": entry.amount,
        "overrun": entry.overrun,
        "at": entry.at,
        "created_at": entry.created_at,
        "note": entry.note,
        "tags": join_tags(payer.tags),
    }


def _read(
    subject: str,
    kind: str,
    account_id: str,
    key_id: str,
    lineage: str,
    amount: int,
    overrun: int,
    at: float,
    created_at: float,
    note: str,
    tags: str | None,
) -> LedgerEntry:
    """Read a row, whose columns are in this order."""
    return LedgerEntry(
        subject=subject,
        kind=EntryKind(kind),
        payer=Payer(account_id, key_id, lineage, split_tags(tags)),
        amount=amount,
        overrun=overrun,
        at=at,
        created_at=created_at,
        note=note,
    )


def of_subject(connection: Connection, subject: str) -> dict[EntryKind, LedgerEntry]:
    """Return the entries of a job or a chat request, by kind."""
    found = [_read(*row) for row in sql.run(connection, _OF_SUBJECT, subject)]
    return {entry.kind: entry for entry in found}


def _lock(connection: Connection, subject: str) -> dict[EntryKind, LedgerEntry]:
    """Return the entries of a subject, locked until the transaction ends."""
    return _lock_all(connection, [subject]).get(subject, {})


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """The position of an entry in its account's ledger: the key of pagination."""

    at: float
    subject: str
    kind: str


def page(connection: Connection, account_id: str, before: EntryPlace | None, limit: int) -> list[LedgerEntry]:
    """Return one page of an account's entries, those of the latest subjects first. An index serves the order."""
    key = (ledger.c.at, ledger.c.subject, ledger.c.kind)
    query = select(ledger).where(ledger.c.account_id == account_id)
    if before is not None:
        query = query.where(tuple_(*key) < tuple_(before.at, before.subject, before.kind))
    rows = connection.execute(query.order_by(*(column.desc() for column in key)).limit(limit))
    return [_read(*row) for row in rows]


# -- jobs: each function runs in the transaction that changes the job


class Holding:
    """Holds the highest possible cost of jobs in every budget of theirs. Each balance is opened and written once.

    To hold for several payers, open all their balances first: so two writers never deadlock.
    """

    def __init__(self, connection: Connection, payers: Iterable[Payer]) -> None:
        locks.join_ledger(connection)
        owners = sorted({owner for payer in payers for owner in payer.owners})
        self._connection = connection
        self._budgets = key_rows.budgets_of(connection, owners)
        self._balances: dict[BalanceKey, BudgetBalance] = {}
        self._entries: list[dict[str, Any]] = []
        self._holds: list[dict[str, Any]] = []

    def open(self, wanted: Iterable[tuple[Payer, float]]) -> None:
        """Open the balances of all these payers, in one order for every writer."""
        found = {
            _key_of(budget, at): (budget, payer.account_id, at)
            for payer, at in wanted
            for budget in self._budgets
            if budget.owner in payer.owners
        }
        for key in sorted(found):
            self._open(*found[key])

    def add(self, payer: Payer, amounts: Mapping[str, int], at: float) -> None:
        """Hold an amount for each of these jobs: for all of them or none."""
        mine = [budget for budget in self._budgets if budget.owner in payer.owners]
        bearing = [self._open(budget, payer.account_id, at) for budget in balance_rows.in_order(mine)]
        total = sum(amounts.values())
        for balance in bearing:
            if total > balance.room:
                raise balance.standing.refuse(total)
        for subject, amount in amounts.items():
            entry = LedgerEntry(subject=subject, kind=EntryKind.HOLD, payer=payer, amount=amount, at=at, created_at=at)
            self._entries.append(_row(entry))
            self._holds += [balance_rows.take(balance, subject, amount) for balance in bearing]

    def close(self) -> list[Statement]:
        """Write the balances. Return the statements that are still to be run, with those that write the jobs."""
        for balance in self._balances.values():
            balance_rows.write(self._connection, balance)
        return [sql.insertion(table, rows) for table, rows in ((ledger, self._entries), (holds, self._holds)) if rows]

    def _open(self, budget: Budget, account_id: str, at: float) -> BudgetBalance:
        key = _key_of(budget, at)
        if key not in self._balances:
            self._balances[key] = balance_rows.open_balance(self._connection, budget, account_id, at)
        return self._balances[key]


def _key_of(budget: Budget, at: float) -> BalanceKey:
    return BalanceKey(budget.owner, budget.period.value, budget.window(at)[0])


def settle(connection: Connection, subject: str, cost: int, now: float, note: str = "") -> int:
    """Charge the cost of a job, once, up to what its hold and budgets can cover. Return the amount charged.

    It may have been released before: a job that succeeds late is still charged.
    """
    return _end(connection, subject, cost, now, note)


def release(connection: Connection, subject: str, now: float, note: str = "") -> None:
    """Release a job's hold. Do nothing if the hold has ended already."""
    _end(connection, subject, None, now, note)


def _end(connection: Connection, subject: str, cost: int | None, now: float, note: str) -> int:
    charged = end_all(connection, {subject: cost}, now, note)
    if subject not in charged:
        raise LedgerRefused(f"Nothing was held for {subject}.")
    return charged[subject]


def end_all(connection: Connection, costs: Mapping[str, int | None], now: float, note: str = "") -> dict[str, int]:
    """Charge the costs of jobs, or release the holds of those that cost None. Return the amounts charged.

    Jobs for which nothing was held are left out. Everything is locked before the first change, in one order for every
    writer: entries, then balances. So two writers never deadlock.
    """
    if not costs:
        return {}
    entries = _lock_all(connection, sorted(costs))
    held = {subject: found[EntryKind.HOLD] for subject, found in entries.items() if EntryKind.HOLD in found}
    ended = {subject for subject in held if _has_ended(entries[subject], costs[subject])}
    charged = {
        subject: entries[subject][EntryKind.SETTLE].amount if EntryKind.SETTLE in entries[subject] else 0
        for subject in ended
    }
    ending = {subject: held[subject] for subject in costs if subject in held and subject not in ended}
    if ending:
        charged |= _Ending(connection, ending, costs).end(costs, now, note)
    return charged


def _lock_all(connection: Connection, subjects: Sequence[str]) -> dict[str, dict[EntryKind, LedgerEntry]]:
    """Return the entries of each subject by kind, locked until the transaction ends."""
    if connection.dialect.name == "postgresql":
        statement, *values = sql.among(_LOCK, subjects)
        sql.run(connection, f"{statement} ORDER BY subject{sql.LOCKING}", *values)
    statement, *values = sql.among(_OF_SUBJECTS, subjects)  # entries that the lock waited for are visible only now
    found: dict[str, dict[EntryKind, LedgerEntry]] = {}
    for row in sql.run(connection, statement, *values):
        entry = _read(*row)
        found.setdefault(entry.subject, {})[entry.kind] = entry
    return found


def _has_ended(entries: Mapping[EntryKind, LedgerEntry], cost: int | None) -> bool:
    return EntryKind.SETTLE in entries or (cost is None and EntryKind.RELEASE in entries)


class _Ending:
    """The balances of jobs whose holds end together. Each balance is opened and written once."""

    def __init__(
        self, connection: Connection, held: Mapping[str, LedgerEntry], costs: Mapping[str, int | None]
    ) -> None:
        self._connection = connection
        self._held = held
        charged = [entry for subject, entry in held.items() if costs[subject] is not None]
        owners = sorted({owner for entry in charged for owner in entry.payer.owners})
        self._budgets = balance_rows.in_order(key_rows.budgets_of(connection, owners))
        wanted = {
            _key_of(budget, entry.at): (budget, entry)
            for entry in charged
            for budget in self._budgets
            if budget.owner in entry.payer.owners
        }
        freed = balance_rows.holds_of(connection, list(held))
        self._balances: dict[BalanceKey, BudgetBalance] = {}
        for key in sorted(wanted.keys() | {key for amounts in freed.values() for key in amounts}):
            if key not in wanted:
                balance_rows.lock(connection, key)
                continue
            budget, entry = wanted[key]
            self._balances[key] = balance_rows.open_balance(connection, budget, entry.payer.account_id, entry.at)
        # Again where a balance may be new: it starts with the holds of all jobs.
        self._freed = balance_rows.holds_of(connection, list(held)) if wanted else freed

    def end(self, costs: Mapping[str, int | None], now: float, note: str) -> dict[str, int]:
        """End the holds. Return the amounts charged."""
        freed = self._freed
        balance_rows.free(self._connection, self._balances, freed)
        charged: dict[str, int] = {}
        rows: list[dict[str, Any]] = []
        for subject, held in self._held.items():
            cost = costs[subject]
            if cost is None:
                charged[subject] = 0
                rows.append(_follow(held, EntryKind.RELEASE, held.amount, now, note))
                continue
            amount = charged[subject] = self._charge(held, cost, freed.get(subject, {}), now)
            rows.append(_follow(held, EntryKind.SETTLE, amount, now, note, overrun=cost - amount))
        for balance in self._balances.values():
            balance_rows.write(self._connection, balance)
        sql.do_all(self._connection, sql.insertion(ledger, rows))
        return charged

    def _charge(self, held: LedgerEntry, cost: int, freed: Mapping[BalanceKey, int], now: float) -> int:
        """Charge what the hold and the budgets of a job can cover."""
        mine = [budget for budget in self._budgets if budget.owner in held.payer.owners]
        bearing = [self._balances[_key_of(budget, held.at)] for budget in mine]
        charged = min(cost, *(max(freed.get(balance.key, 0), balance.room) for balance in bearing), cost)
        _spend(self._connection, bearing, held.payer, charged, now)
        return charged


def keep(connection: Connection, subject: str, payer: Payer, now: float) -> None:
    """Keep the hold of a job of unknown outcome for UNKNOWN_SECONDS. It is then released unless someone decides."""
    _held(_lock(connection, subject), subject)
    kept = select(holds.c.subject).where(holds.c.subject == subject, holds.c.period == TIMER)
    if connection.execute(kept).first() is not None:
        return  # the first timer counts
    values = {"subject": subject, "owner": payer.lineage, "period": TIMER, "start": now, "amount": 0}
    connection.execute(insert(holds), values | {"is_lease": 0, "recalled": 0, "expires_at": now + UNKNOWN_SECONDS})


def release_expired(connection: Connection, now: float) -> int:
    """Release the expired holds of jobs of unknown outcome. Return their number."""
    query = select(holds.c.subject).where(holds.c.period == TIMER, holds.c.expires_at <= now)
    subjects = sorted(connection.execute(query).scalars())
    for subject in subjects:
        _lock(connection, subject)  # all of them, before any balance
    for subject in subjects:
        release(connection, subject, now, "its outcome stayed unknown")
        balance_rows.free(connection, {}, {subject: balance_rows.holds_of(connection, [subject]).get(subject, {})})
    return len(subjects)


def refund(connection: Connection, subject: str, now: float, note: str) -> int:
    """Refund a charge, once. Return the amount."""
    entries = _lock(connection, subject)
    if EntryKind.SETTLE not in entries:
        raise LedgerRefused(f"Nothing was charged for {subject}.")
    settled = entries[EntryKind.SETTLE]
    if EntryKind.REFUND in entries:
        return entries[EntryKind.REFUND].amount
    bearing = balance_rows.open_all(connection, settled.payer, settled.at)
    _spend(connection, bearing, settled.payer, -settled.amount, now)
    for balance in bearing:
        balance_rows.write(connection, balance)
    row = _follow(settled, EntryKind.REFUND, settled.amount, now, note)
    sql.do_all(connection, sql.insertion(ledger, [row]))
    return settled.amount


def _held(entries: Mapping[EntryKind, LedgerEntry], subject: str) -> LedgerEntry:
    if EntryKind.HOLD not in entries:
        raise LedgerRefused(f"Nothing was held for {subject}.")
    return entries[EntryKind.HOLD]


def _follow(
    first: LedgerEntry, kind: EntryKind, amount: int, now: float, note: str, overrun: int = 0
) -> dict[str, Any]:
    """Return the row of an entry that follows the first one of its subject."""
    entry = LedgerEntry(
        subject=first.subject,
        kind=kind,
        payer=first.payer,
        amount=amount,
        overrun=overrun,
        at=first.at,
        created_at=now,
        note=note,
    )
    return _row(entry)


def _spend(connection: Connection, bearing: Sequence[BudgetBalance], payer: Payer, amount: int, now: float) -> None:
    """Count an amount as spent. The caller writes the balances."""
    for balance in bearing:
        balance.spent += amount
        balance_rows.announce(connection, balance, payer.account_id, now)


# -- chat: many charges at once, from the leases of a process


class _ChargeBuffer:
    """A balance while chat requests are charged to it: first to the process's lease, then to what is free."""

    __slots__ = ("_lease", "_room", "balance", "charged", "used")

    def __init__(self, balance: BudgetBalance, lease: int) -> None:
        self.balance = balance
        self._lease = lease
        self._room = balance.room
        self.used = 0
        """The amount used of the process's lease."""
        self.charged = 0

    @property
    def available(self) -> int:
        """The amount that can be charged."""
        return self._lease - self.used + max(0, self._room)

    def charge(self, cost: int, amount: int) -> None:
        """Charge the amount that all budgets can cover. The lease is reduced by the whole cost."""
        used = min(cost, self._lease - self.used)
        self.used += used
        self._room += used - amount
        self.charged += amount


NO_BUFFERS: Final[tuple[float, float, list[_ChargeBuffer]]] = (0.0, 0.0, [])


class _ChargeBuffers:
    """The balances of all payers that are charged together, each opened once."""

    def __init__(self, connection: Connection, process: str, owners: set[str]) -> None:
        locks.join_ledger(connection)
        self._connection = connection
        self._process = process
        self._budgets: dict[str, list[Budget]] = {}
        for budget in key_rows.budgets_of(connection, list(owners)):
            self._budgets.setdefault(budget.owner, []).append(budget)
        self._buffers: dict[BalanceKey, tuple[_ChargeBuffer, str]] = {}
        self._latest: dict[Payer, tuple[float, float, list[_ChargeBuffer]]] = {}

    def open(self, charges: Iterable[Charge]) -> None:
        """Open all balances, in one order for every writer: so two writers never deadlock."""
        found: dict[BalanceKey, tuple[Budget, Charge]] = {}
        known: dict[tuple[str, str], tuple[float, float]] = {}
        for charge in charges if self._budgets else ():
            for budget in self._bear(charge):
                start, ends = known.get((budget.owner, budget.period), (0.0, 0.0))
                if not start <= charge.at < ends:
                    known[budget.owner, budget.period] = budget.window(charge.at)
                    found[_key_of(budget, charge.at)] = budget, charge
        for key in sorted(found):
            self._find(*found[key])

    def bearing(self, charge: Charge) -> list[_ChargeBuffer]:
        """Return the buffers of a charge's budgets."""
        if not self._budgets:
            return []
        start, ends, buffers = self._latest.get(charge.payer, NO_BUFFERS)
        if not start <= charge.at < ends:
            buffers = [self._find(budget, charge) for budget in self._bear(charge)]
            start = max((buffer.balance.start for buffer in buffers), default=0.0)
            ends = min((buffer.balance.ends for buffer in buffers), default=ENDLESS)
            self._latest[charge.payer] = start, ends, buffers
        return buffers

    def _bear(self, charge: Charge) -> list[Budget]:
        return [budget for owner in charge.payer.owners for budget in self._budgets.get(owner, ())]

    def _find(self, budget: Budget, charge: Charge) -> _ChargeBuffer:
        account_id = charge.payer.account_id
        key = _key_of(budget, charge.at)
        if key not in self._buffers:
            balance = balance_rows.open_balance(self._connection, budget, account_id, charge.at)
            lease = balance_rows.leased(self._connection, self._process, balance)
            self._buffers[key] = _ChargeBuffer(balance, lease), account_id
        return self._buffers[key][0]

    def close(self, now: float) -> None:
        """Write the balances."""
        for buffer, account_id in self._buffers.values():
            balance = buffer.balance
            balance_rows.take_from_lease(self._connection, self._process, balance, buffer.used)
            balance.spent += buffer.charged
            balance_rows.announce(self._connection, balance, account_id, now)
            balance_rows.write(self._connection, balance)


def charge_all(connection: Connection, process: str, charges: Sequence[Charge], now: float) -> dict[str, int]:
    """Charge chat requests that were never charged before. Return the amount that each one's budgets covered."""
    buffers = _ChargeBuffers(connection, process, {owner for charge in charges for owner in charge.payer.owners})
    charged: dict[str, int] = {}
    buffers.open(charges)
    for charge in charges:
        bearing = buffers.bearing(charge)
        amount = charge.cost
        for buffer in bearing:
            amount = min(amount, buffer.available)
        for buffer in bearing:
            buffer.charge(charge.cost, amount)
        charged[charge.subject] = amount
    buffers.close(now)
    _write_settles(connection, charges, charged, now)
    return charged


def _write_settles(connection: Connection, charges: Sequence[Charge], charged: Mapping[str, int], now: float) -> None:
    rows: list[tuple[Any, ...]] = []
    for charge in charges:
        payer, amount = charge.payer, charged[charge.subject]
        ids = (charge.subject, EntryKind.SETTLE.value, payer.account_id, payer.key_id, payer.lineage)
        rows.append((*ids, amount, charge.cost - amount, charge.at, now, charge.note, join_tags(payer.tags)))
    sql.insert_all(connection, ledger, rows)
