"""Balances: the spent and held amounts of each budget in its period, and who holds them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, select, update

from penstock.domain.budgets import ACCOUNT_PREFIX, BalanceKey, Budget, BudgetBalance, Payer, Standing
from penstock.store import clock, locks, sql
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.jobs import event_rows
from penstock.store.tables import holds, ledger, purses  # `purses` is the table of balances

LEASE_SECONDS: Final = 90.0
"""Seconds without renewal after which a process's leases go to others: longer than chat outlasts an outage."""
ANNOUNCED_PERCENTS: Final = (50, 80, 100)
"""The percentages of a budget that are announced to its account."""


_HERE = and_(
    purses.c.owner == bindparam("its_owner"),
    purses.c.period == bindparam("its_period"),
    purses.c.start == bindparam("its_start"),
)
_LOOK = select(purses).where(_HERE)
_GET = _LOOK.with_for_update()  # a hold is changed only under the lock of its balance
_WRITE = (
    update(purses).where(_HERE).values({name: bindparam(f"now_{name}") for name in ("spent", "held", "told", "most")})
)
_HOLD_HERE = and_(
    holds.c.subject == bindparam("its_subject"),
    holds.c.owner == bindparam("its_owner"),
    holds.c.period == bindparam("its_period"),
    holds.c.start == bindparam("its_start"),
)
_AMOUNT = select(holds.c.amount).where(_HOLD_HERE)
_RESERVE = insert(holds)
_SET_AMOUNT = update(holds).where(_HOLD_HERE).values(amount=bindparam("now_amount"))
_GROW = _SET_AMOUNT.values(expires_at=bindparam("now_expires_at"))
_SHRINK = _SET_AMOUNT.values(recalled=0)
_END = delete(holds).where(_HOLD_HERE)
_FORGET = delete(holds).where(holds.c.subject == bindparam("its_subject"))
_GIVE_BACK = update(purses).where(_HERE).values(held=purses.c.held - bindparam("less"))
_OF_SUBJECT = "SELECT owner, period, start, amount FROM holds WHERE subject = ?"


def _at(key: BalanceKey, **more: Any) -> dict[str, Any]:
    return {"its_owner": key.owner, "its_period": key.period, "its_start": key.start, **more}


# -- balances


def open_all(connection: Connection, payer: Payer, at: float) -> list[BudgetBalance]:
    """Return the balance of each budget of the payer at this moment. Create those that do not exist yet."""
    found = key_rows.budgets_of(connection, payer.owners)
    return [open_balance(connection, budget, payer.account_id, at) for budget in in_order(found)]


def in_order(budgets: Iterable[Budget]) -> list[Budget]:
    """Return budgets in the order in which their balances are always opened."""
    return sorted(budgets, key=lambda budget: (budget.owner, budget.period.value))


def open_balance(connection: Connection, budget: Budget, account_id: str, at: float) -> BudgetBalance:
    """Return and lock the balance of a budget at this moment. Create it if it does not exist."""
    start, ends = budget.window(at)
    row = connection.execute(_GET, _at(BalanceKey(budget.owner, budget.period.value, start))).one_or_none()
    if row is None:
        return _begin(connection, budget, account_id, start, ends)
    announced = row.told if budget.cap <= row.most else 0  # a raised cap is announced anew
    return BudgetBalance(budget, start, ends, row.spent, row.held, announced, max(row.most, budget.cap))


def _begin(connection: Connection, budget: Budget, account_id: str, start: float, ends: float) -> BudgetBalance:
    """Create a balance from the ledger's entries of the period: a budget may be set after money was spent."""
    spent, still_held = _look_back(connection, budget, account_id, start, ends)
    balance = BudgetBalance(budget, start, ends, spent, 0, 0, budget.cap)
    values = {"owner": budget.owner, "period": budget.period.value, "start": start, "ends": ends}
    connection.execute(insert(purses), values | {"spent": spent, "held": 0, "told": 0, "most": 0})
    for subject, amount in still_held:
        reserve(connection, balance, subject, amount)
    balance.most = max(budget.cap, balance.spent + balance.held)
    write(connection, balance)
    return balance


def _look_back(
    connection: Connection, budget: Budget, account_id: str, start: float, ends: float
) -> tuple[int, list[tuple[str, int]]]:
    """Return the amount spent in a period and the open holds, from the ledger alone."""
    within = [ledger.c.account_id == account_id, ledger.c.at >= start, ledger.c.at < ends]
    if not budget.owner.startswith(ACCOUNT_PREFIX):
        within.append(ledger.c.lineage == budget.owner)
    sign = case((ledger.c.kind == "settle", 1), (ledger.c.kind == "refund", -1), else_=0)
    spent = connection.execute(select(func.sum(ledger.c.amount * sign)).where(*within)).scalar() or 0
    later = ledger.alias()
    ended = select(later.c.subject).where(later.c.subject == ledger.c.subject, later.c.kind.in_(("settle", "release")))
    still_held = select(ledger.c.subject, ledger.c.amount).where(*within, ledger.c.kind == "hold", ~ended.exists())
    return int(spent), [(row.subject, row.amount) for row in connection.execute(still_held)]


def write(connection: Connection, balance: BudgetBalance) -> None:
    """Write back what was changed in memory."""
    values = {
        "now_spent": balance.spent,
        "now_held": balance.held,
        "now_told": balance.announced,
        "now_most": balance.most,
    }
    connection.execute(_WRITE, _at(balance.key, **values))


def announce(
    connection: Connection, balance: BudgetBalance, account_id: str, now: float, *, refused: bool = False
) -> None:
    """Send the account an event, once for each percentage of a budget. A refusal counts as 100 percent."""
    percent = 100 if refused else balance.spent * 100 // max(1, balance.budget.cap)
    passed = [level for level in ANNOUNCED_PERCENTS if balance.announced < level <= percent]
    for level in passed:
        event_rows.append_notice(connection, account_id, balance.standing.describe() | {"share": level}, now)
        balance.announced = level


def announce_refusal(connection: Connection, payer: Payer, now: float) -> None:
    """Send the account an event, once, that the budget with the least left is used up."""
    locks.join_ledger(connection)
    bearing = open_all(connection, payer, now)
    if bearing:
        balance = min(bearing, key=lambda balance: balance.room)
        announce(connection, balance, payer.account_id, now, refused=True)
        write(connection, balance)


def standings(connection: Connection, payer: Payer, at: float) -> list[Standing]:
    """Return the state of each budget of the payer. Create no balance."""
    found: list[Standing] = []
    for budget in in_order(key_rows.budgets_of(connection, payer.owners)):
        start, ends = budget.window(at)
        row = connection.execute(_LOOK, _at(BalanceKey(budget.owner, budget.period.value, start))).one_or_none()
        if row is None:
            spent, still_held = _look_back(connection, budget, payer.account_id, start, ends)
            found.append(Standing(budget, spent, sum(amount for _, amount in still_held), start, ends))
        else:
            found.append(Standing(budget, row.spent, row.held, start, ends))
    return found


def forget(connection: Connection, owner: str, period: str) -> None:
    """Delete a budget's balances: it was removed or has other periods now. They can be derived from the ledger."""
    for table in (purses, holds):
        connection.execute(delete(table).where(table.c.owner == owner, table.c.period == period))


# -- holds


def reserve(connection: Connection, balance: BudgetBalance, subject: str, amount: int) -> None:
    """Hold this amount for a job. The caller writes the balance."""
    connection.execute(_RESERVE, take(balance, subject, amount))


def take(balance: BudgetBalance, subject: str, amount: int) -> dict[str, Any]:
    """Like `reserve`, but return the row, which the caller writes, too."""
    balance.held += amount
    values = {**balance.key._asdict(), "subject": subject, "amount": amount, "is_lease": 0, "recalled": 0}
    return values | {"expires_at": None}


def free(connection: Connection, subject: str) -> dict[BalanceKey, int]:
    """Free a job's holds in every balance. Return the amount freed in each."""
    found = sql.run(connection, _OF_SUBJECT, subject)
    freed = dict(sorted((BalanceKey(*key), amount) for *key, amount in found))
    for key, amount in freed.items():
        connection.execute(_GIVE_BACK, _at(key, less=amount))
    if freed:
        connection.execute(_FORGET, {"its_subject": subject})
    return freed


# -- leases: amounts that a process holds for the chat requests it serves


@dataclass(frozen=True, slots=True)
class Grant:
    """The amount that a process has leased, and the state of the budget."""

    amount: int
    standing: Standing
    elsewhere: int = 0
    """If nothing was leased: the amount that other processes hold and may not need."""
    is_new: bool = False
    """True if the process had no lease: then an earlier lease that it knows of has ended."""


def lease(
    connection: Connection,
    process: str,
    payer: Payer,
    known: Budget,
    least: int,
    want: int,
    now: float,
    *,
    part: int = 1,
    may_expire: bool = True,
) -> Grant:
    """Lease a process up to `want` of a budget, or nothing if there is less than `least`.

    The process may know an earlier state of the budget: the current cap and period count. `part` above 1 leases ahead,
    at most this part of what is left. `may_expire` first ends leases that were not renewed.
    """
    locks.join_ledger(connection)
    found = key_rows.budgets_of(connection, (known.owner,))
    budget = next((each for each in found if each.period is known.period), None)
    if budget is None:  # removed meanwhile: nothing limits it, and there is no balance to hold it in
        return Grant(max(least, want), Standing(known, 0, 0, *known.window(now)), is_new=True)
    balance = open_balance(connection, budget, payer.account_id, now)
    if part > 1 and min(want, balance.room // part) <= 0:
        return Grant(0, balance.standing)  # leasing ahead fails silently
    if balance.room < least and may_expire and _expire_leases(connection, balance.key, now):
        balance = open_balance(connection, budget, payer.account_id, now)
    if balance.room < least:
        others = _lease_in(balance.key, holds.c.subject != process)
        elsewhere = connection.execute(select(func.sum(holds.c.amount)).where(others)).scalar() or 0
        if not elsewhere:
            announce(connection, balance, payer.account_id, now, refused=True)
            write(connection, balance)
        return Grant(0, balance.standing, int(elsewhere))
    amount = min(balance.room // part, max(least, want))
    where = _at(balance.key, its_subject=process)
    before = connection.execute(_AMOUNT, where).scalar()
    if before is None:
        values = {**balance.key._asdict(), "subject": process, "amount": amount, "is_lease": 1, "recalled": 0}
        connection.execute(_RESERVE, values | {"expires_at": now + LEASE_SECONDS})
    else:
        connection.execute(_GROW, where | {"now_amount": before + amount, "now_expires_at": now + LEASE_SECONDS})
    balance.held += amount
    write(connection, balance)
    return Grant(amount, balance.standing, is_new=before is None)


def give_back(connection: Connection, process: str, amounts: Mapping[BalanceKey, int]) -> None:
    """Return unused amounts of a process's leases."""
    for key, amount in sorted(amounts.items()):
        connection.execute(_GET, _at(key))
        held = connection.execute(_AMOUNT, _at(key, its_subject=process)).scalar()
        if held is not None:
            _shrink(connection, process, key, held, min(held, amount))


def take_from_lease(connection: Connection, process: str, balance: BudgetBalance, amount: int) -> int:
    """Spend up to this amount from a process's lease. Return the amount that the lease covered."""
    held = connection.execute(_AMOUNT, _at(balance.key, its_subject=process)).scalar() or 0
    used = min(held, amount)
    if used:
        connection.execute(_SET_AMOUNT, _at(balance.key, its_subject=process, now_amount=held - used))
        balance.held -= used
    return used


def leased_of(connection: Connection, owners: Sequence[str]) -> bool:
    """Return whether any process has a lease on these owners' budgets."""
    query = select(holds.c.subject).where(holds.c.owner.in_(owners), holds.c.is_lease == 1, holds.c.amount > 0)
    return connection.execute(query.limit(1)).first() is not None


def leased(connection: Connection, process: str, balance: BudgetBalance) -> int:
    """Return the amount of a process's lease on a balance."""
    return connection.execute(_AMOUNT, _at(balance.key, its_subject=process)).scalar() or 0


def recall(connection: Connection, owners: Sequence[str], process: str) -> None:
    """Ask other processes to return their unused leases on these owners' budgets."""
    theirs = and_(holds.c.owner.in_(owners), holds.c.is_lease == 1, holds.c.subject != process)
    connection.execute(update(holds).where(theirs).values(recalled=1))


def renew(connection: Connection, process: str, now: float) -> dict[BalanceKey, bool]:
    """Renew a process's leases. Return their balances, each with whether other processes need it."""
    mine = and_(holds.c.subject == process, holds.c.is_lease == 1)
    renewed = update(holds).where(mine).values(expires_at=now + LEASE_SECONDS)
    rows = connection.execute(renewed.returning(holds.c.owner, holds.c.period, holds.c.start, holds.c.recalled))
    return {BalanceKey(row.owner, row.period, row.start): bool(row.recalled) for row in rows}


def recalled(connection: Connection, process: str) -> set[BalanceKey]:
    """Return the balances that other processes need the unused lease of."""
    query = select(holds.c.owner, holds.c.period, holds.c.start).where(
        holds.c.subject == process, holds.c.recalled == 1
    )
    return {BalanceKey(row.owner, row.period, row.start) for row in connection.execute(query)}


def end_leases(connection: Connection, process: str, only: Collection[Any] | None = None) -> None:
    """End the leases of a process that is gone, or only those on these balances."""
    if only is None:
        _end(connection, holds.c.subject == process)
        return
    for key in sorted(each for each in only if isinstance(each, BalanceKey)):
        _end(connection, _lease_in(key, holds.c.subject == process))


def expire_leases(connection: Connection, now: float) -> int:
    """End leases that were not renewed in time. Return their number."""
    return _end(connection, clock.has_passed(connection, holds.c.expires_at, now))


def _expire_leases(connection: Connection, key: BalanceKey, now: float) -> int:
    return _end(connection, _lease_in(key, clock.has_passed(connection, holds.c.expires_at, now)))


def _end(connection: Connection, which: ColumnElement[bool]) -> int:
    """End leases. Each is checked again under the lock of its balance, as it may have ended or been renewed."""
    found = connection.execute(select(holds.c.owner, holds.c.period, holds.c.start).where(which, holds.c.is_lease == 1))
    ended = 0
    for key in sorted({BalanceKey(*row) for row in found}):
        connection.execute(_GET, _at(key))
        for row in connection.execute(select(holds).where(_lease_in(key, which)).with_for_update()).all():
            _shrink(connection, row.subject, key, row.amount, row.amount)
            ended += 1
    return ended


def _lease_in(key: BalanceKey, *more: ColumnElement[bool]) -> ColumnElement[bool]:
    here = (holds.c.owner == key.owner, holds.c.period == key.period, holds.c.start == key.start)
    return and_(*here, holds.c.is_lease == 1, *more)


def _shrink(connection: Connection, process: str, key: BalanceKey, held: int, less: int) -> None:
    """Reduce a lease, and the held amount of its balance."""
    connection.execute(_GIVE_BACK, _at(key, less=less))
    where = _at(key, its_subject=process)
    if less < held:
        connection.execute(_SHRINK, where | {"now_amount": held - less})
    else:
        connection.execute(_END, where)
