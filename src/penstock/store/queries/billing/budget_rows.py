"""Budgets in the store: at most one for each owner and period."""

from collections.abc import Sequence

from sqlalchemy import Connection, and_, delete, insert, or_, select, tuple_

from penstock.domain.budgets import Budget, Standing, bound_tag_owners, read_tag_owner
from penstock.store import locks
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import balance_rows
from penstock.store.tables import budgets, purses  # `purses` is the table of balances


def get(connection: Connection, owner: str, period: str) -> Budget | None:
    """Return the budget of an account or a lineage of keys for a period."""
    return next((each for each in key_rows.budgets_of(connection, [owner]) if each.period.value == period), None)


def put(connection: Connection, budget: Budget, account_id: str, now: float) -> None:
    """Set a budget. Amounts spent and held in its current period count from the start."""
    locks.hold_ledger(connection)
    former = get(connection, budget.owner, budget.period.value)
    _drop(connection, budget.owner, budget.period.value)
    if former is not None and former.time_zone != budget.time_zone:
        balance_rows.forget(connection, budget.owner, budget.period.value)  # its periods begin at other moments
    values = {"owner": budget.owner, "period": budget.period.value, "cap": budget.cap, "time_zone": budget.time_zone}
    connection.execute(insert(budgets), values | {"created_at": now})
    balance_rows.open_balance(connection, budget, account_id, now)


def remove(connection: Connection, owner: str, period: str) -> None:
    """Remove a budget and its balances."""
    locks.hold_ledger(connection)
    _drop(connection, owner, period)
    balance_rows.forget(connection, owner, period)


def standings(connection: Connection, owners: Sequence[str], at: float) -> dict[str, list[Standing]]:
    """Return the state of the owners' budgets, by owner. A period without a balance has no usage."""
    found = sorted(key_rows.budgets_of(connection, owners), key=lambda budget: budget.period.value)
    windows = {(budget.owner, budget.period.value): budget.window(at) for budget in found}
    keys = [(owner, period, start) for (owner, period), (start, _) in windows.items()]
    columns = (purses.c.owner, purses.c.period, purses.c.start)
    rows = connection.execute(select(purses).where(tuple_(*columns).in_(keys))).all() if keys else ()
    used = {(row.owner, row.period): (row.spent, row.held) for row in rows}
    by_owner: dict[str, list[Standing]] = {owner: [] for owner in owners}
    for budget in found:
        key = budget.owner, budget.period.value
        by_owner[budget.owner].append(Standing(budget, *used.get(key, (0, 0)), *windows[key]))
    return by_owner


def tag_standings(connection: Connection, account_id: str, at: float) -> list[Standing]:
    """Return the state of the budgets of an account's tags, by tag and period."""
    return tag_standings_of(connection, [account_id], at)[account_id]


def tag_standings_of(connection: Connection, account_ids: Sequence[str], at: float) -> dict[str, list[Standing]]:
    """Return the state of the budgets of accounts' tags, by account."""
    if not account_ids:
        return {}
    owner, bounds = budgets.c.owner, map(bound_tag_owners, account_ids)
    which = or_(*(and_(owner > low, owner < high) for low, high in bounds))
    owners = list(connection.execute(select(owner).where(which).distinct().order_by(owner)).scalars())
    by_account: dict[str, list[Standing]] = {account_id: [] for account_id in account_ids}
    for name, found in standings(connection, owners, at).items():
        by_account[read_tag_owner(name)[0]] += found
    return by_account


def _drop(connection: Connection, owner: str, period: str) -> None:
    connection.execute(delete(budgets).where(budgets.c.owner == owner, budgets.c.period == period))
