"""Accounts."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, insert, or_, select, true, update

from penstock.domain.accounts import Account
from penstock.domain.api_keys import Limits
from penstock.domain.budgets import ACCOUNT_PREFIX
from penstock.store.queries.accounts.key_rows import LIMITS
from penstock.store.tables import accounts, keys, storage


def add(connection: Connection, account: Account) -> None:
    """Store a new account."""
    connection.execute(insert(accounts), {"id": account.id, "created_at": account.created_at, **_columns(account)})


def write(connection: Connection, account: Account) -> None:
    """Write the columns of an account that may change."""
    connection.execute(update(accounts).where(accounts.c.id == account.id).values(**_columns(account)))


def find(connection: Connection, text: str, now: float) -> Account | None:
    """Return an account by its id or its name."""
    column = accounts.c.id if text.startswith(ACCOUNT_PREFIX) else accounts.c.name
    found = _read(connection, column == text, now, 1)
    return found[0] if found else None


def page(
    connection: Connection, before: str | None, limit: int | None, now: float, part: str | None = None
) -> list[Account]:
    """Return accounts, newest first, older than the one with this id. `part` is a part of the name."""
    named = accounts.c.name.icontains(part, autoescape=True) if part else true()
    return _read(connection, and_(named, accounts.c.id < before if before else true()), now, limit)


def _columns(account: Account) -> dict[str, Any]:
    limits = {name: getattr(account.limits, name) for name in LIMITS}
    is_logged = 1 if account.content_log else None
    return {"name": account.name, "closed_at": account.closed_at, "content_log": is_logged, **limits}


def _read(connection: Connection, where: ColumnElement[bool], now: float, limit: int | None) -> list[Account]:
    working = and_(
        keys.c.account_id == accounts.c.id,
        keys.c.revoked_at.is_(None),
        or_(keys.c.expires_at.is_(None), keys.c.expires_at > now),
    )
    count = select(func.count()).select_from(keys).where(working).correlate(accounts).scalar_subquery()
    stored = func.coalesce(storage.c.files + storage.c.assets, 0).label("stored")
    query = select(accounts, count.label("keys"), storage.c.quota.label("storage_quota"), stored)
    query = query.outerjoin(storage, storage.c.account_id == accounts.c.id)
    query = query.where(where).order_by(accounts.c.id.desc()).limit(limit)
    rows = connection.execute(query)
    return [_account(dict(row)) for row in rows.mappings()]


def _account(fields: dict[Any, Any]) -> Account:
    limits = Limits(**{name: fields.pop(name) for name in LIMITS})
    return Account(**{**fields, "content_log": fields["content_log"] == 1}, limits=limits)
