"""Accounts, keys and the audit log as administrators see them, over HTTP and on the command line."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from penstock.domain.accounts import Account, AuditEntry
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import Standing
from penstock.domain.ids import timestamp
from penstock.domain.people.roles import Membership, Person
from penstock.domain.people.sign_in import Session


def describe_account(
    account: Account, standings: Iterable[Standing], of_tags: Iterable[Standing] = ()
) -> dict[str, Any]:
    """Return an account with the balances of its budgets, and those of its tags."""
    return {
        "object": "account",
        "id": account.id,
        "name": account.name,
        "created_at": timestamp(account.created_at),
        "closed_at": timestamp(account.closed_at),
        "limits": asdict(account.limits),
        "budgets": [standing.describe() for standing in standings],
        "tag_budgets": [standing.describe() for standing in of_tags],
        "keys": account.keys,
        "storage": {"bytes": account.stored, "quota": account.storage_quota},
        "content_log": account.content_log,
    }


def describe_key(key: ApiKey, standings: Iterable[Standing], now: float) -> dict[str, Any]:
    """Return a key with the balances of its budgets, without its secret."""
    return {
        "object": "key",
        "public_id": key.public_id,
        "account": key.account,
        "account_id": key.account_id,
        "name": key.name,
        "models": sorted(key.models),
        "endpoints": sorted(key.scopes),
        "created_at": timestamp(key.created_at),
        "expires_at": timestamp(key.expires_at),
        "revoked_at": timestamp(key.revoked_at),
        "status": status_of(key, now),
        "lineage": key.lineage,
        "replaced_by": key.replaced_by,
        "reuse": key.reuse,
        "tags": list(key.tags),
        "content_log": None if key.content_log is None else key.content_log == 1,
        "logs_content": key.logs_content,
        "person_id": key.person_id,
        "limits": asdict(key.limits),
        "budgets": [standing.describe() for standing in standings],
    }


def status_of(key: ApiKey, now: float) -> str:
    """Return `active`, or the reason why a key does not work."""
    if key.revoked_at is not None or key.is_abandoned:
        return "revoked"
    if key.account_closed_at is not None:
        return "closed"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "active"


def describe_person(person: Person, memberships: Iterable[Membership]) -> dict[str, Any]:
    """Return a person with their roles."""
    return {
        "object": "person",
        "id": person.id,
        "email": person.email,
        "name": person.name,
        "created_at": timestamp(person.created_at),
        "deactivated_at": timestamp(person.deactivated_at),
        "signed_in_at": timestamp(person.signed_in_at),
        "operator": person.is_operator,
        "accounts": [describe_membership(membership) for membership in memberships],
    }


def describe_membership(membership: Membership) -> dict[str, Any]:
    """Return a role in an account."""
    return {
        "account_id": membership.account_id,
        "account": membership.account,
        "role": membership.role,
        "source": membership.source,
        "since": timestamp(membership.created_at),
    }


def describe_session(session: Session, titles: Mapping[str, str], current: str | None = None) -> dict[str, Any]:
    """Return a session. `titles` are those of the providers, and `current` is the session that asks."""
    return {
        "object": "session",
        "id": session.id,
        "provider": session.provider,
        "title": titles.get(session.provider, session.provider),
        "browser": session.browser,
        "address": session.address,
        "created_at": timestamp(session.created_at),
        "seen_at": timestamp(session.seen_at),
        "expires_at": timestamp(session.expires_at),
        "current": session.id == current,
    }


def describe_entry(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry of the audit log."""
    return {
        "object": "audit_entry",
        "id": str(entry.position),
        "created_at": timestamp(entry.created_at),
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "account_id": entry.account_id or None,
        "detail": dict(entry.detail),
    }
