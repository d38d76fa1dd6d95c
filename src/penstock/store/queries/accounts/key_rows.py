"""API keys, budgets of their owners, and the installation's signing secret."""

import secrets as randomness
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, delete, insert, select, tuple_, update

from penstock.domain.api_keys import ApiKey, Limits, Scope, hash_secret
from penstock.domain.budgets import TAG_PREFIX, Budget, Period, bound_tag_owners
from penstock.domain.ids import new_id
from penstock.domain.people.roles import PersonRole
from penstock.store import locks, sql
from penstock.store.tables import accounts, keys, secrets

ADMINISTRATOR = "administrator"
CERTIFICATE, CERTIFICATE_END = "provenance", b"\n\n"
"""The name of the secret that signs results, and what separates its chain from its key."""
LIMITS = tuple(Limits.__dataclass_fields__)
BUDGETS = "SELECT owner, period, cap, time_zone FROM budgets WHERE owner IN"
TAG_BUDGETS = "SELECT owner, period, cap, time_zone FROM budgets WHERE owner > ? AND owner < ? ORDER BY owner, period"
MAX_OWNERS_AT_ONCE = 1_024
"""A batch of chat requests may name many tags, and a statement has a limited number of values."""


def signing_secret(connection: Connection) -> bytes:
    """Return the secret behind key tags and signed links. It is created once, at first use."""
    query = select(secrets.c.value).where(secrets.c.name == "signing")
    value = connection.execute(query).scalar()
    if value is None:
        value = randomness.token_bytes(32)
        connection.execute(insert(secrets), {"name": "signing", "value": value})
    return value


def signing_certificate(connection: Connection, make: Callable[[], tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return the certificate chain and the private key that sign results. They are made once, at first use."""
    query = select(secrets.c.value).where(secrets.c.name == CERTIFICATE)
    found = connection.execute(query).scalar()
    if found is None:
        locks.hold(connection, "secret", CERTIFICATE)  # processes that start together get one certificate
        found = connection.execute(query).scalar()
    if found is None:
        found = CERTIFICATE_END.join(make())
        connection.execute(insert(secrets), {"name": CERTIFICATE, "value": found})
    chain, _, key = found.partition(CERTIFICATE_END)
    return chain, key


def admin_key_hash(connection: Connection) -> bytes | None:
    """Return the hash of the administrator's key that was made here, if one was."""
    return connection.execute(select(secrets.c.value).where(secrets.c.name == ADMINISTRATOR)).scalar()


def keep_admin_key(connection: Connection, text: str) -> None:
    """Keep the hash of an administrator's key. It replaces the one before."""
    connection.execute(delete(secrets).where(secrets.c.name == ADMINISTRATOR))
    connection.execute(insert(secrets), {"name": ADMINISTRATOR, "value": hash_secret(text)})


def account_id(connection: Connection, name: str, now: float) -> str:
    """Return the id of the account with this name. Create the account if it does not exist."""
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
        "secret_hash": key.secret_hash,
        "created_at": key.created_at,
        "lineage": key.lineage,
        **_columns(key),
        **_limits(key.limits),
    }
    connection.execute(insert(keys), row)


def write(connection: Connection, key: ApiKey) -> None:
    """Write the columns of a key that may change. Its limits apply to all keys of its lineage."""
    connection.execute(update(keys).where(keys.c.public_id == key.public_id).values(**_columns(key)))
    relatives = update(keys).where(keys.c.account_id == key.account_id, keys.c.lineage == key.lineage)
    connection.execute(relatives.values(**_limits(key.limits)))


def _columns(key: ApiKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "models": " ".join(sorted(key.models)),
        "scopes": " ".join(sorted(key.scopes)),
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "replaced_by": key.replaced_by,
        "reuse": key.reuse,
        "person_id": key.person_id,
        "is_console": key.is_console,
        "tags": "\n".join(key.tags) or None,
        "content_log": key.content_log,
    }


def _limits(limits: Limits) -> dict[str, int | None]:
    return {name: getattr(limits, name) for name in LIMITS}


def _key(rows: Sequence[tuple[Any, ...]]) -> ApiKey:
    """Return a key, given a row for each of its budgets."""
    fields: dict[str, Any] = dict(zip(_NAMES, rows[0], strict=False))
    fields["models"] = frozenset(fields["models"].split())
    fields["scopes"] = frozenset(Scope(name) for name in fields["scopes"].split())
    fields["role"] = None if fields["role"] is None else PersonRole(fields["role"])
    fields["limits"] = Limits(**{name: fields.pop(name) for name in LIMITS})
    fields["account_limits"] = Limits(**{name: fields.pop(f"account_{name}") for name in LIMITS})
    fields["tags"] = tuple(fields["tags"].split("\n")) if fields["tags"] else ()
    caps = [_budget(*row[len(_NAMES) :]) for row in rows if row[len(_NAMES)] is not None]
    of_tags = tuple(budget for budget in caps if budget.tag is not None)
    return ApiKey(**fields, budgets=tuple(budget for budget in caps if budget.tag is None), tag_budgets=of_tags)


_OF_KEY = tuple(column.name for column in keys.columns)
_OF_ACCOUNT = (*LIMITS, "closed_at", "content_log")
_NAMES = (*_OF_KEY, "account", *(f"account_{name}" for name in _OF_ACCOUNT), "storage_quota", "role")
"""The columns of a key. Those of a budget follow."""
_COLUMNS = [
    *(f"keys.{name}" for name in _OF_KEY),
    *(f"accounts.{name}" for name in ("name", *_OF_ACCOUNT)),
    "storage.quota",
    "memberships.role",
    *(f"budgets.{name}" for name in ("owner", "period", "cap", "time_zone")),
]
_ALL = (
    f"SELECT {', '.join(_COLUMNS)} FROM keys JOIN accounts ON accounts.id = keys.account_id "  # noqa: S608  constant text
    "LEFT JOIN storage ON storage.account_id = keys.account_id "
    "LEFT JOIN memberships ON memberships.person_id = keys.person_id AND memberships.account_id = keys.account_id "
    "LEFT JOIN budgets ON budgets.owner IN (keys.lineage, keys.account_id) OR (budgets.owner > "
    f"'{TAG_PREFIX}' || keys.account_id || ':' AND budgets.owner < '{TAG_PREFIX}' || keys.account_id || ';')"
)
_ORDER = " ORDER BY keys.created_at, keys.public_id, budgets.owner, budgets.period"
_GET = f"{_ALL} WHERE keys.public_id = ?{_ORDER}"
_SEVERAL = f"{_ALL} WHERE keys.public_id IN"


def get(connection: Connection, public_id: str) -> ApiKey | None:
    """Return a key by its public id."""
    rows = sql.run(connection, _GET, public_id)
    return _key(rows) if rows else None


def get_all(connection: Connection, public_ids: Sequence[str]) -> list[ApiKey]:
    """Return the keys of these public ids."""
    if not public_ids:
        return []
    statement, *values = sql.among(_SEVERAL, public_ids)
    return _group(sql.run(connection, statement + _ORDER, *values))


def list_all(connection: Connection) -> Sequence[ApiKey]:
    """Return every key, oldest first."""
    return _group(sql.run(connection, _ALL + _ORDER))


def page(connection: Connection, account_id: str | None, before: str | None, limit: int) -> list[ApiKey] | None:
    """Return keys, newest first, older than the one with this public id. Return None if there is no such key."""
    place = (keys.c.created_at, keys.c.public_id)
    query = select(keys.c.public_id).order_by(*(column.desc() for column in place)).limit(limit)
    if account_id is not None:
        query = query.where(keys.c.account_id == account_id)
    if before is not None:
        begin = connection.execute(select(*place).where(keys.c.public_id == before)).one_or_none()
        if begin is None:
            return None
        query = query.where(tuple_(*place) < tuple_(*begin))
    wanted = list(connection.execute(query).scalars())
    return get_all(connection, wanted)[::-1]


def is_empty(connection: Connection) -> bool:
    """Return whether no key was ever created."""
    return connection.execute(select(keys.c.public_id).limit(1)).first() is None


def _group(rows: Sequence[tuple[Any, ...]]) -> list[ApiKey]:
    return [_key(list(found)) for _, found in groupby(rows, itemgetter(0))]


def budgets_of(connection: Connection, owners: Sequence[str]) -> list[Budget]:
    """Return the budgets of accounts, lineages of keys, or tags."""
    found: list[Budget] = []
    for start in range(0, len(owners), MAX_OWNERS_AT_ONCE):
        statement, *values = sql.among(BUDGETS, owners[start : start + MAX_OWNERS_AT_ONCE])
        found += [_budget(*row) for row in sql.run(connection, statement, *values)]
    return found


def tag_budgets_of(connection: Connection, account_id: str) -> list[Budget]:
    """Return the budgets of an account's tags."""
    return [_budget(*row) for row in sql.run(connection, TAG_BUDGETS, *bound_tag_owners(account_id))]


def _budget(owner: str, period: str, cap: int, time_zone: str) -> Budget:
    return Budget(owner=owner, period=Period(period), cap=cap, time_zone=time_zone)


def revoke(connection: Connection, public_id: str, now: float) -> bool:
    """Revoke a key. Return False if there is none. Revoking it again keeps the first time."""
    if get(connection, public_id) is None:
        return False
    query = update(keys).where(keys.c.public_id == public_id, keys.c.revoked_at.is_(None))
    connection.execute(query.values(revoked_at=now))
    return True
