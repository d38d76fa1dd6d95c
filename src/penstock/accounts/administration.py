"""Changes to accounts, keys and budgets by administrators: one transaction each, with an audit log entry."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from penstock.domain.accounts import Account, Action, Allowance, AuditEntry, KeyWish
from penstock.domain.api_keys import NO_LIMITS, PREFIX, ApiKey, Limits, hash_secret, make
from penstock.domain.budgets import ACCOUNT_PREFIX, own_tag
from penstock.domain.ids import new_id, timestamp
from penstock.domain.money import format_usd
from penstock.errors import (
    AccountClosed,
    AccountExists,
    AccountNotFound,
    BudgetNotFound,
    InvalidRequest,
    KeyNotFound,
    KeyNotRotatable,
)
from penstock.store import locks
from penstock.store.database import Connection
from penstock.store.queries.accounts import account_rows, audit_rows, key_rows
from penstock.store.queries.billing import budget_rows
from penstock.store.queries.files import storage_rows

ADMINISTRATION_LOCK: Final = "administration"
"""The lock that serializes changes: each reads what it changes, and logs the former values."""

MAX_TAG_BUDGETS: Final = 100
"""Budgets of tags that an account may have: every key of it carries them."""


@dataclass(frozen=True, slots=True)
class AccountTag:
    """A tag of an account, which can have budgets."""

    account_id: str
    account: str
    tag: str


# -- accounts


def get_account(connection: Connection, text: str, now: float) -> Account:
    """Return the account with this id or name."""
    account = account_rows.find(connection, text, now)
    if account is None:
        raise AccountNotFound(f"There is no account `{text[:100]}`.", param="account")
    return account


def create_account(
    connection: Connection,
    actor: str,
    name: str,
    now: float,
    limits: Limits = NO_LIMITS,
    allowances: tuple[Allowance, ...] = (),
    storage_quota: int | None = None,
    *,
    content_log: bool = False,
) -> Account:
    """Create an account. It needs no key yet."""
    _refuse_taken(connection, name, now)
    account = Account(
        id=new_id("acct"),
        name=name,
        created_at=now,
        limits=limits,
        storage_quota=storage_quota,
        content_log=content_log,
    )
    account_rows.add(connection, account)
    detail: dict[str, Any] = {"name": name, "limits": _describe_limits(limits)}
    if storage_quota is not None:
        storage_rows.set_quota(connection, account.id, storage_quota)
        detail["storage_quota"] = storage_quota
    if content_log:
        detail["content_log"] = True
    note(connection, actor, Action.ACCOUNT_CREATED, account.id, account.id, now, detail)
    for allowance in allowances:
        set_budget(connection, actor, account, allowance, now)
    return account


def ensure_account(connection: Connection, actor: str, text: str, now: float) -> Account:
    """Return the account with this id or name. Create it if the name is new."""
    if text.startswith(ACCOUNT_PREFIX):
        return get_account(connection, text, now)
    return account_rows.find(connection, text, now) or create_account(connection, actor, text, now)


def change_account(
    connection: Connection, actor: str, text: str, change: Callable[[Account], Account], now: float
) -> Account:
    """Rename, limit, close or reopen an account. Its keys follow within a second. Its jobs and results stay."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    before = get_account(connection, text, now)
    after = change(before)
    if after.name != before.name:
        _refuse_taken(connection, after.name, now)
    account_rows.write(connection, after)
    if after.storage_quota != before.storage_quota:
        storage_rows.set_quota(connection, after.id, after.storage_quota)
    for action, detail in _account_changes(before, after):
        note(connection, actor, action, after.id, after.id, now, detail)
    return after


def close(account: Account, now: float) -> Account:
    """Return the account as closed. One that is closed already keeps its time."""
    return account if account.closed_at is not None else replace(account, closed_at=now)


def _account_changes(before: Account, after: Account) -> list[tuple[Action, Mapping[str, Any]]]:
    changes: list[tuple[Action, Mapping[str, Any]]] = []
    if after.name != before.name:
        changes.append((Action.ACCOUNT_RENAMED, {"name": {"from": before.name, "to": after.name}}))
    if after.limits != before.limits:
        changes.append((Action.ACCOUNT_LIMITED, {"limits": _compare(asdict(before.limits), asdict(after.limits))}))
    if after.storage_quota != before.storage_quota:
        moved = {"from": before.storage_quota, "to": after.storage_quota}
        changes.append((Action.ACCOUNT_LIMITED, {"storage_quota": moved}))
    if after.content_log != before.content_log:
        logged = {"content_log": {"from": before.content_log, "to": after.content_log}}
        changes.append((Action.ACCOUNT_LOGGED, logged))
    if after.closed_at != before.closed_at:
        changes.append((Action.ACCOUNT_REOPENED if after.closed_at is None else Action.ACCOUNT_CLOSED, {}))
    return changes


def _refuse_taken(connection: Connection, name: str, now: float) -> None:
    if account_rows.find(connection, name, now) is not None:
        raise AccountExists(f"There is an account `{name}` already.", param="name", suggestion="Choose another name.")


# -- keys


def get_key(connection: Connection, public_id: str) -> ApiKey:
    """Return the key with this public id."""
    key = key_rows.get(connection, public_id)
    if key is None:
        raise KeyNotFound(f"There is no key {public_id[:100]}.", param="public_id")
    return key


def issue_key(connection: Connection, actor: str, account: str, wish: KeyWish, now: float) -> tuple[str, ApiKey]:
    """Create a key. Return its text, which is shown once, and the stored record."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    owner = get_account(connection, account, now)
    _refuse_closed(owner.closed_at, owner.name)
    public_id, secret = make(key_rows.signing_secret(connection))
    key = ApiKey(
        public_id=public_id,
        account_id=owner.id,
        account=owner.name,
        name=wish.name,
        secret_hash=hash_secret(secret),
        models=wish.models,
        scopes=wish.scopes,
        created_at=now,
        expires_at=wish.expires_at,
        lineage=public_id,
        limits=wish.limits,
        account_limits=owner.limits,
        reuse=wish.reuse,
        content_log=None if wish.content_log is None else int(wish.content_log),
        person_id=wish.person_id,
        is_console=1 if wish.is_console else None,
        tags=wish.tags,
    )
    key_rows.add(connection, key)
    note(connection, actor, Action.KEY_CREATED, public_id, owner.id, now, _describe_key(key))
    for allowance in wish.allowances:
        set_budget(connection, actor, key, allowance, now)
    return f"{PREFIX}{public_id}_{secret}", get_key(connection, public_id)


def change_key(
    connection: Connection, actor: str, public_id: str, change: Callable[[ApiKey], ApiKey], now: float
) -> ApiKey:
    """Change a key's name, models, scopes, expiry, limits, reuse or tags. The limits also apply to its predecessors."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    before = get_key(connection, public_id)
    after = change(before)
    detail = _compare(_describe_key(before), _describe_key(after))
    if detail:
        key_rows.write(connection, after)
        note(connection, actor, Action.KEY_CHANGED, public_id, after.account_id, now, detail)
    return after


def revoke_key(connection: Connection, actor: str, public_id: str, now: float) -> ApiKey:
    """Revoke a key. Revoking it again keeps the first time."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    key = get_key(connection, public_id)
    if key.revoked_at is not None:
        return key
    revoked = replace(key, revoked_at=now)
    key_rows.write(connection, revoked)
    note(connection, actor, Action.KEY_REVOKED, public_id, key.account_id, now, {"name": key.name})
    return revoked


def rotate_key(
    connection: Connection, actor: str, public_id: str, overlap: float, now: float
) -> tuple[str, ApiKey, ApiKey]:
    """Replace a key by a new one with its limits and budgets. Return the new text, the new key and the old key.

    The old key works for `overlap` more seconds, unless it expires earlier.
    """
    locks.hold(connection, ADMINISTRATION_LOCK)
    old = get_key(connection, public_id)
    _refuse_rotation(old, now)
    new_public_id, secret = make(key_rows.signing_secret(connection))
    new = replace(old, public_id=new_public_id, secret_hash=hash_secret(secret), created_at=now)
    key_rows.add(connection, new)
    ends = now + overlap
    old = replace(
        old, replaced_by=new_public_id, expires_at=ends if old.expires_at is None else min(old.expires_at, ends)
    )
    key_rows.write(connection, old)
    detail = {"replaced_by": new_public_id, "expires_at": timestamp(old.expires_at)}
    note(connection, actor, Action.KEY_ROTATED, public_id, old.account_id, now, detail)
    return f"{PREFIX}{new_public_id}_{secret}", new, old


def _refuse_rotation(key: ApiKey, now: float) -> None:
    _refuse_closed(key.account_closed_at, key.account)
    again = "Make a new key instead."
    if key.replaced_by is not None:
        message = f"The key {key.public_id} was replaced by {key.replaced_by}."
        raise KeyNotRotatable(message, param="public_id", suggestion=f"Rotate {key.replaced_by}.")
    if key.revoked_at is not None or key.is_abandoned:
        raise KeyNotRotatable(f"The key {key.public_id} is revoked.", param="public_id", suggestion=again)
    if key.is_console:
        message = f"The key {key.public_id} counts what a person does in the console. It has no text."
        raise KeyNotRotatable(message, param="public_id", suggestion=again)
    if key.expires_at is not None and key.expires_at <= now:
        message = f"The key {key.public_id} has expired."
        raise KeyNotRotatable(message, param="public_id", suggestion=f"{again[:-1]}, or first let it expire later.")


def _refuse_closed(closed_at: float | None, account: str) -> None:
    if closed_at is not None:
        raise AccountClosed(f"The account `{account}` is closed.", suggestion="Reopen it first.")


# -- budgets


def set_budget(
    connection: Connection, actor: str, of: Account | ApiKey | AccountTag, allowance: Allowance, now: float
) -> None:
    """Set the budget of an account, a lineage of keys or a tag for a period."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    owner, subject, account_id = _owner(of)
    former, budget = budget_rows.get(connection, owner, allowance.period), allowance.budget_of(owner)
    if former == budget:
        return
    if isinstance(of, AccountTag) and former is None:
        _refuse_many(connection, account_id)
    budget_rows.put(connection, budget, account_id, now)
    detail: dict[str, Any] = {"period": budget.period, "cap": format_usd(budget.cap), "time_zone": budget.time_zone}
    detail |= _tag_detail(of)
    if former is not None:
        detail["from"] = {"cap": format_usd(former.cap), "time_zone": former.time_zone}
    note(connection, actor, Action.BUDGET_SET, subject, account_id, now, detail)


def remove_budget(
    connection: Connection, actor: str, of: Account | ApiKey | AccountTag, period: str, now: float
) -> None:
    """Remove a budget: nothing limits spending in this period any more."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    owner, subject, account_id = _owner(of)
    former = budget_rows.get(connection, owner, period)
    if former is None:
        match of:
            case Account():
                whose = f"account `{of.name}`"
            case AccountTag():
                whose = f"tag `{of.tag}` of the account `{of.account}`"
            case ApiKey():
                whose = f"key {subject}"
        raise BudgetNotFound(f"The {whose} has no budget for the period `{period}`.", param="period")
    budget_rows.remove(connection, owner, period)
    detail = {"period": period, "cap": format_usd(former.cap), "time_zone": former.time_zone, **_tag_detail(of)}
    note(connection, actor, Action.BUDGET_REMOVED, subject, account_id, now, detail)


def _owner(of: Account | ApiKey | AccountTag) -> tuple[str, str, str]:
    """Return the owner of the budget, the subject in the audit log and the account id."""
    match of:
        case Account():
            return of.id, of.id, of.id
        case AccountTag():
            return own_tag(of.account_id, of.tag), of.account_id, of.account_id
        case ApiKey():
            return of.lineage, of.public_id, of.account_id


def _tag_detail(of: Account | ApiKey | AccountTag) -> dict[str, str]:
    return {"tag": of.tag} if isinstance(of, AccountTag) else {}


def _refuse_many(connection: Connection, account_id: str) -> None:
    if len(key_rows.tag_budgets_of(connection, account_id)) >= MAX_TAG_BUDGETS:
        raise InvalidRequest(
            f"tag: The account has {MAX_TAG_BUDGETS} budgets of tags, which is the most it can have.",
            param="tag",
            suggestion="Remove one first.",
        )


# -- the audit log


def note(
    connection: Connection,
    actor: str,
    action: Action,
    subject: str,
    account_id: str | None,
    now: float,
    detail: Mapping[str, Any],
) -> None:
    """Write an entry of the audit log. Servers forget the keys of its account, or all without one."""
    entry = AuditEntry(
        created_at=now, actor=actor, action=action, subject=subject, account_id=account_id, detail=detail
    )
    audit_rows.append(connection, entry)


def _describe_key(key: ApiKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "models": sorted(key.models),
        "endpoints": sorted(key.scopes),
        "expires_at": timestamp(key.expires_at),
        "limits": _describe_limits(key.limits),
        "reuse": key.reuse,
        "tags": list(key.tags),
        "content_log": None if key.content_log is None else key.content_log == 1,
    }


def _describe_limits(limits: Limits) -> dict[str, int]:
    return {name: limit for name, limit in asdict(limits).items() if limit is not None}


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that differ, with the former and the new value."""
    return {name: {"from": before[name], "to": after[name]} for name in before if before[name] != after[name]}
