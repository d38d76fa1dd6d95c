"""Accounts, the changes that administrators make, and the validation of their input from API and command line."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final

from penstock.domain.api_keys import NO_LIMITS, Limits, Scope
from penstock.domain.budgets import ACCOUNT_PREFIX, Budget, Period
from penstock.domain.money import NANOS, parse_usd

MAX_CAP: Final = 1_000_000_000 * NANOS
"""Upper bound of a budget: sums of such amounts still fit into the store's integers."""
MAX_LIMIT: Final = 1_000_000_000
MAX_QUOTA: Final = 10**18
"""Bytes."""
MAX_LABEL: Final = 200
LONGEST_SECONDS: Final = 36500 * 86400.0
"""Upper bound of a key's lifetime, as of every other time in the settings."""
OVERLAP_SECONDS: Final = 86400.0
"""Default time for which a rotated key works beside its successor."""


class Actor(StrEnum):
    """The originator of a change, unless it is a person."""

    ADMIN = "admin"
    CLI = "cli"
    SERVER = "server"


class Action(StrEnum):
    """The kind of a change."""

    ACCOUNT_CREATED = "account.created"
    ACCOUNT_RENAMED = "account.renamed"
    ACCOUNT_LIMITED = "account.limited"
    ACCOUNT_LOGGED = "account.logged"
    ACCOUNT_CLOSED = "account.closed"
    ACCOUNT_REOPENED = "account.reopened"
    KEY_CREATED = "key.created"
    KEY_CHANGED = "key.changed"
    KEY_ROTATED = "key.rotated"
    KEY_REVOKED = "key.revoked"
    BUDGET_SET = "budget.set"
    BUDGET_REMOVED = "budget.removed"
    LEDGER_REFUNDED = "ledger.refunded"
    LEDGER_RELEASED = "ledger.released"
    LEDGER_SETTLED = "ledger.settled"
    WEBHOOK_DISABLED = "webhook.disabled"
    AUDIT_TRIMMED = "audit.trimmed"
    PERSON_ADDED = "person.added"
    PERSON_CHANGED = "person.changed"
    PERSON_DEACTIVATED = "person.deactivated"
    PERSON_ACTIVATED = "person.activated"
    PERSON_SIGNED_IN = "person.signed_in"
    PERSON_SIGNED_OUT = "person.signed_out"
    PERSON_UNLINKED = "person.unlinked"
    MEMBER_ADDED = "member.added"
    MEMBER_CHANGED = "member.changed"
    MEMBER_REMOVED = "member.removed"
    KEY_POLICY_SET = "key_policy.set"
    SETTINGS_CHANGED = "settings.changed"
    SETTINGS_RESTORED = "settings.restored"
    PRICE_SET = "price.set"
    PRICE_REMOVED = "price.removed"
    CONTENT_READ = "content.read"
    CONTENT_DELETED = "content.deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The owner of jobs, results and keys."""

    id: str
    name: str
    created_at: float
    closed_at: float | None = None
    limits: Limits = NO_LIMITS
    """Of all its keys together."""
    keys: int = 0
    """Number of its keys that are neither revoked nor expired."""
    storage_quota: int | None = None
    """Bytes that it may keep; None for the default of the settings."""
    content_log: bool = False
    """True: the content of its requests is logged, where the settings allow it."""
    stored: int = 0
    """Bytes of files and assets that it keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A budget that has no owner yet."""

    period: Period
    cap: int
    time_zone: str = "UTC"

    def budget_of(self, owner: str) -> Budget:
        """Return the budget of this owner."""
        return Budget(owner=owner, period=self.period, cap=self.cap, time_zone=self.time_zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWish:
    """The attributes of a key to be made. Empty `models` or `scopes` mean all."""

    name: str = ""
    models: frozenset[str] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    expires_at: float | None = None
    limits: Limits = NO_LIMITS
    allowances: tuple[Allowance, ...] = ()
    reuse: str | None = None
    """`exact`, or None for a new job for each request."""
    tags: tuple[str, ...] = ()
    """Fixed tags of all its requests."""
    content_log: bool | None = None
    """Whether the content of its requests is logged; None: as its account has it."""
    person_id: str | None = None
    """The person it belongs to; None for a service key."""
    is_console: bool = False
    """True for the hidden key of a person's requests from the console."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change in the audit log; it never holds secrets."""

    position: int = 0
    created_at: float
    actor: str
    action: str
    """An `Action`, or what only a later version knows."""
    subject: str
    """The account's, key's, person's, job's or completion's id."""
    account_id: str | None
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


# -- validation: each returns the value as it is stored, or raises ValueError with a message


def read_label(text: str, least: int = 0) -> str:
    """Validate the name of a key, or with `least=1` of an account."""
    text = text.strip()
    if not least <= len(text) <= MAX_LABEL or not text.isprintable():
        raise ValueError(f"should be {least} to {MAX_LABEL} printable characters")
    return text


def read_account_name(text: str) -> str:
    """Validate the name of an account, which must not look like an id."""
    text = read_label(text, least=1)
    if text.startswith(ACCOUNT_PREFIX):
        raise ValueError(f"should not begin with {ACCOUNT_PREFIX}, as ids do")
    return text


def read_cap(value: Any) -> int:
    """Validate a budget's amount."""
    cap = parse_usd(value)
    if cap > MAX_CAP:
        raise ValueError("should be at most 1000000000 USD")
    return cap


def read_size(text: str) -> int:
    """Return the number of bytes of a text such as 500MB, 20GB or 1.5TB."""
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([kmgt]?)(i?)b?", text.strip().lower())
    if found is None:
        raise ValueError("should be a number of bytes, or a text such as 500MB, 20GB or 1.5TiB")
    size = int(Decimal(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " "))
    if size > MAX_QUOTA:
        raise ValueError("should be at most 1000000TB")
    return size


def read_time_zone(name: str) -> str:
    """Validate the IANA name of a time zone."""
    known = _zones()
    if name in known:
        return name
    folded = {zone.casefold(): zone for zone in known}
    near = difflib.get_close_matches(name[:100].casefold(), folded, n=1, cutoff=0.6)
    hint = f" such as {folded[near[0]]}" if near else " such as Europe/Berlin, or UTC"
    raise ValueError(f"should be the IANA name of a time zone,{hint}")


@cache
def _zones() -> frozenset[str]:
    """Return every zone that `zoneinfo` knows; it would also open files that are not zones."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("utf-8").split())
