"""Balances: the spent and held amounts of each budget in its period, and who holds them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update

from penstock.domain.budgets import BalanceKey, Budget, BudgetBalance, Payer, Period, Standing
from penstock.store import clock, locks, sql
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.jobs import event_rows
from penstock.store.queries.retention import roll_up_rows
from penstock.store.tables import holds, ledger, purses  # `purses` is the table of balances

LEASE_SECONDS: Final = 90.0
"""Seconds without renewal after which a process's leases go to others: longer than chat outlasts an outage."""
ANNOUNCED_PERCENTS: Final = (50, 80, 100)
"""The percentages of a budget that are announced to its account."""

_HERE: Final = "owner = ? AND period = ? AND start = ?"
"""A balance, by its key."""
_LOOK: Final = f"SELECT spent, held, most, told FROM purses WHERE {_HERE}"  # noqa: S608  constant text, like all of these
_GET: Final = f"{_LOOK}{sql.LOCKING}"
"""Locks the balance: a hold is changed only under this lock."""
_WRITE: Final = f"UPDATE purses SET spent = ?, held = ?, told = ?, most = ? WHERE {_HERE}"  # noqa: S608
_GIVE_BACK: Final = f"UPDATE purses SET held = held - ? WHERE {_HERE}"  # noqa: S608
_HOLD_HERE: Final = f"subject = ? AND {_HERE}"
_AMOUNT: Final = f"SELECT amount FROM holds WHERE {_HOLD_HERE}"  # noqa: S608
_SET_AMOUNT: Final = f"UPDATE holds SET amount = ? WHERE {_HOLD_HERE}"  # noqa: S608
_GROW: Final = f"UPDATE holds SET amount = ?, expires_at = ? WHERE {_HOLD_HERE}"  # noqa: S608
_SHRINK: Final = f"UPDATE holds SET amount = ?, recalled = 0 WHERE {_HOLD_HERE}"  # noqa: S608
_END: Final = f"DELETE FROM holds WHERE {_HOLD_HERE}"  # noqa: S608
_OF_SUBJECTS: Final = "SELECT subject, owner, period, start, amount FROM holds WHERE subject IN"
_FORGET: Final = "DELETE FROM holds WHERE subject IN"


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
    found = sql.run(connection, _GET, budget.owner, budget.period.value, start)
    if not found:
        return _begin(connection, budget, account_id, start, ends)
    spent, held, most, told = found[0]
    announced = told if budget.cap <= most else 0  # a raised cap is announced anew
    return BudgetBalance(budget, start, ends, spent, held, announced, max(most, budget.cap))


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
    within.append(roll_up_rows.is_of(budget.owner))
    entries = select(func.coalesce(func.sum(ledger.c.amount * roll_up_rows.SIGN), 0)).where(*within).scalar_subquery()
    # In one statement, as a roll-up moves amounts from one table to the other.
    carried = roll_up_rows.select_carried(budget.owner) if budget.period is Period.TOTAL else 0
    spent = connection.execute(select(entries + carried)).scalar_one()
    later = ledger.alias()
    ended = select(later.c.subject).where(later.c.subject == ledger.c.subject, later.c.kind.in_(("settle", "release")))
    still_held = select(ledger.c.subject, ledger.c.amount).where(*within, ledger.c.kind == "hold", ~ended.exists())
    return int(spent), [(row.subject, row.amount) for row in connection.execute(still_held)]


def write(connection: Connection, balance: BudgetBalance) -> None:
    """Write back what was changed in memory."""
    sql.run(connection, _WRITE, balance.spent, balance.held, balance.announced, balance.most, *balance.key)


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
        row = sql.run(connection, _LOOK, budget.owner, budget.period.value, start)
        if not row:
            spent, still_held = _look_back(connection, budget, payer.account_id, start, ends)
            found.append(Standing(budget, spent, sum(amount for _, amount in still_held), start, ends))
        else:
            found.append(Standing(budget, row[0][0], row[0][1], start, ends))
    return found


def forget(connection: Connection, owner: str, period: str) -> None:
    """Delete a budget's balances: it was removed or has other periods now. They can be derived from the ledger."""
    for table in (purses, holds):
        connection.execute(delete(table).where(table.c.owner == owner, table.c.period == period))


# -- holds


def reserve(connection: Connection, balance: BudgetBalance, subject: str, amount: int) -> None:
    """Hold this amount for a job. The caller writes the balance."""
    sql.do_all(connection, sql.insertion(holds, [take(balance, subject, amount)]))


def take(balance: BudgetBalance, subject: str, amount: int) -> dict[str, Any]:
    """Like `reserve`, but return the row, which the caller writes, too."""
    balance.held += amount
    values = {**balance.key._asdict(), "subject": subject, "amount": amount, "is_lease": 0, "recalled": 0}
    return values | {"expires_at": None}


def holds_of(connection: Connection, subjects: Sequence[str]) -> dict[str, dict[BalanceKey, int]]:
    """Return the amounts held for each of these jobs, by balance."""
    found: dict[str, dict[BalanceKey, int]] = {}
    statement, *values = sql.among(_OF_SUBJECTS, subjects)
    for subject, *key, amount in sql.run(connection, statement, *values):
        found.setdefault(subject, {})[BalanceKey(*key)] = amount
    return found


def lock(connection: Connection, key: BalanceKey) -> None:
    """Lock a balance, if it exists."""
    sql.run(connection, _GET, *key)


def free(
    connection: Connection,
    balances: Mapping[BalanceKey, BudgetBalance],
    freed: Mapping[str, Mapping[BalanceKey, int]],
) -> None:
    """End the holds of jobs. The caller writes those balances that it has opened, which are changed in memory."""
    if not freed:
        return
    back: Counter[BalanceKey] = Counter()
    for amounts in freed.values():
        back.update(amounts)
    for key, amount in sorted(back.items()):
        if key in balances:
            balances[key].held -= amount
        elif amount:
            sql.run(connection, _GIVE_BACK, amount, *key)
    statement, *values = sql.among(_FORGET, list(freed))
    sql.run(connection, statement, *values)


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
    before = _get_amount(connection, process, balance.key)
    expires_at = clock.read(connection, now) + LEASE_SECONDS
    if before is None:
        values = {**balance.key._asdict(), "subject": process, "amount": amount, "is_lease": 1, "recalled": 0}
        sql.do_all(connection, sql.insertion(holds, [values | {"expires_at": expires_at}]))
    else:
        sql.run(connection, _GROW, before + amount, expires_at, process, *balance.key)
    balance.held += amount
    write(connection, balance)
    return Grant(amount, balance.standing, is_new=before is None)


def give_back(connection: Connection, process: str, amounts: Mapping[BalanceKey, int]) -> None:
    """Return unused amounts of a process's leases."""
    for key, amount in sorted(amounts.items()):
        sql.run(connection, _GET, *key)
        held = _get_amount(connection, process, key)
        if held is not None:
            _shrink(connection, process, key, held, min(held, amount))


def take_from_lease(connection: Connection, process: str, balance: BudgetBalance, amount: int) -> int:
    """Spend up to this amount from a process's lease. Return the amount that the lease covered."""
    held = leased(connection, process, balance)
    used = min(held, amount)
    if used:
        sql.run(connection, _SET_AMOUNT, held - used, process, *balance.key)
        balance.held -= used
    return used


def leased_of(connection: Connection, owners: Sequence[str]) -> bool:
    """Return whether any process has a lease on these owners' budgets."""
    query = select(holds.c.subject).where(holds.c.owner.in_(owners), holds.c.is_lease == 1, holds.c.amount > 0)
    return connection.execute(query.limit(1)).first() is not None


def leased(connection: Connection, process: str, balance: BudgetBalance) -> int:
    """Return the amount of a process's lease on a balance."""
    return _get_amount(connection, process, balance.key) or 0


def _get_amount(connection: Connection, process: str, key: BalanceKey) -> int | None:
    found = sql.run(connection, _AMOUNT, process, *key)
    return found[0][0] if found else None


def recall(connection: Connection, owners: Sequence[str], process: str) -> None:
    """Ask other processes to return their unused leases on these owners' budgets."""
    theirs = and_(holds.c.owner.in_(owners), holds.c.is_lease == 1, holds.c.subject != process)
    connection.execute(update(holds).where(theirs).values(recalled=1))


def renew(connection: Connection, process: str, now: float) -> dict[BalanceKey, bool]:
    """Renew a process's leases. Return their balances, each with whether other processes need it."""
    mine = and_(holds.c.subject == process, holds.c.is_lease == 1)
    renewed = update(holds).where(mine).values(expires_at=clock.read(connection, now) + LEASE_SECONDS)
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
        sql.run(connection, _GET, *key)
        for row in connection.execute(select(holds).where(_lease_in(key, which)).with_for_update()).all():
            _shrink(connection, row.subject, key, row.amount, row.amount)
            ended += 1
    return ended


def _lease_in(key: BalanceKey, *more: ColumnElement[bool]) -> ColumnElement[bool]:
    here = (holds.c.owner == key.owner, holds.c.period == key.period, holds.c.start == key.start)
    return and_(*here, holds.c.is_lease == 1, *more)


def _shrink(connection: Connection, process: str, key: BalanceKey, held: int, less: int) -> None:
    """Reduce a lease, and the held amount of its balance."""
    sql.run(connection, _GIVE_BACK, less, *key)
    if less < held:
        sql.run(connection, _SHRINK, held - less, process, *key)
    else:
        sql.run(connection, _END, process, *key)
