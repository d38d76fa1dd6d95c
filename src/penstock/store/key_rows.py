"""Accounts, API keys and the installation's own signing secret."""

import secrets as randomness
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from penstock.identifiers import new_id
from penstock.keys import ApiKey, Scope
from penstock.store.tables import accounts, keys, secrets


def signing_secret(connection: Connection) -> bytes:
    """The secret behind key tags and signed links; made at first use, then the same for ever."""
    query = select(secrets.c.value).where(secrets.c.name == "signing")
    value = connection.execute(query).scalar()
    if value is None:
        value = randomness.token_bytes(32)
        connection.execute(insert(secrets), {"name": "signing", "value": value})
    return value


def account_id(connection: Connection, name: str, now: float) -> str:
    """The account of this name, made if there is none."""
    found = connection.execute(select(accounts.c.id).where(accounts.c.name == name)).scalar()
    if found is None:
        found = new_id("acct")
        connection.execute(insert(accounts), {"id": found, "name": name, "created_at": now})
    return found


def add(connection: Connection, key: ApiKey) -> None:
    """Store a new key."""
    row = {
        "public_id": key.public_id,
        "account_id": key.account_id,
        "name": key.name,
        "secret_hash": key.secret_hash,
        "models": " ".join(sorted(key.models)),
        "scopes": " ".join(sorted(key.scopes)),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "requests_per_minute": key.requests_per_minute,
        "tokens_per_minute": key.tokens_per_minute,
    }
    connection.execute(insert(keys), row)


def _key(row: Any) -> ApiKey:
    fields: dict[str, Any] = row._asdict()
    fields["models"] = frozenset(fields["models"].split())
    fields["scopes"] = frozenset(Scope(name) for name in fields["scopes"].split())
    return ApiKey(**fields)


_all = select(keys, accounts.c.name.label("account")).join(accounts, accounts.c.id == keys.c.account_id)


def get(connection: Connection, public_id: str) -> ApiKey | None:
    """A key by its public id."""
    row = connection.execute(_all.where(keys.c.public_id == public_id)).one_or_none()
    return None if row is None else _key(row)


def list_all(connection: Connection) -> Sequence[ApiKey]:
    """Every key, oldest first."""
    return [_key(row) for row in connection.execute(_all.order_by(keys.c.created_at, keys.c.public_id))]


def revoke(connection: Connection, public_id: str, now: float) -> bool:
    """End a key; False if there is none. Revoking twice keeps the first time."""
    if get(connection, public_id) is None:
        return False
    query = update(keys).where(keys.c.public_id == public_id, keys.c.revoked_at.is_(None))
    connection.execute(query.values(revoked_at=now))
    return True
