"""API keys, `psk_<public id>_<secret>`. The public id is safe to log; only a hash of the secret is stored."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from penstock.domain.budgets import Budget, Payer, own_tag
from penstock.domain.ids import ALPHABET, encode
from penstock.domain.people.roles import KEY_ROLES, PersonRole

PREFIX = "psk_"
ADMIN_PREFIX = "psa_"
TAG_LENGTH = 6


class Reuse(StrEnum):
    """Reuse of kept results: an equal request may be answered with one."""

    EXACT = "exact"
    OFF = "off"


class Scope(StrEnum):
    """The permissions of a key. `generate` includes reading and deleting one's own jobs; `read` is read-only."""

    GENERATE = "generate"
    CHAT = "chat"
    READ = "read"


SCOPES_OF_ROLES: Final[Mapping[PersonRole | None, frozenset[Scope]]] = {
    **dict.fromkeys(KEY_ROLES, frozenset(Scope)),
    PersonRole.BILLING: frozenset({Scope.READ}),
    PersonRole.VIEWER: frozenset({Scope.READ}),
}
"""Bounds of a person's key by role. The table of web/permissions.py is narrower for some endpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Rate and concurrency limits of a key, or of all keys of an account together; None is unlimited."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_jobs: int | None = None
    concurrent_streams: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key with the limits of its account. Empty `models` or `scopes` mean all."""

    public_id: str
    account_id: str
    account: str
    name: str
    secret_hash: bytes
    models: frozenset[str] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    created_at: float = 0.0
    expires_at: float | None = None
    revoked_at: float | None = None
    lineage: str
    """The first of the keys that replaced each other: they share limits and budgets."""
    replaced_by: str | None = None
    limits: Limits = NO_LIMITS
    account_limits: Limits = NO_LIMITS
    account_closed_at: float | None = None
    storage_quota: int | None = None
    """Bytes that its account may keep, if it has a quota of its own."""
    budgets: tuple[Budget, ...] = ()
    """Its own and its account's."""
    tags: tuple[str, ...] = ()
    """Tags of all its requests, whatever else they name."""
    tag_budgets: tuple[Budget, ...] = ()
    """Those of its account's tags. They count for requests with the tag."""
    reuse: str | None = None
    """`exact`: its generations reuse kept results, unless a request says otherwise."""
    person_id: str | None = None
    """The person it belongs to; None for a service key, which belongs to its account."""
    is_console: int | None = None
    """1: it counts the person's requests from the console. Nobody has its text."""
    role: PersonRole | None = None
    """The role of its person in its account, which bounds it. None for a person who has left."""
    content_log: int | None = None
    """1 or 0: whether the content of its requests is logged; None: as its account has it."""
    account_content_log: int | None = None
    is_limited: bool = field(init=False, compare=False)
    """True if a budget or a limit applies, so that requests are counted in advance."""

    logs_content: bool = field(init=False, compare=False)
    """True if the content of its requests is logged, where the settings allow it."""

    def __post_init__(self) -> None:
        """Compute once what every request reads."""
        is_limited = self.limits != NO_LIMITS or self.account_limits != NO_LIMITS
        is_limited = is_limited or bool(self.budgets or self.tag_budgets)
        object.__setattr__(self, "is_limited", is_limited)
        wanted = self.account_content_log if self.content_log is None else self.content_log
        object.__setattr__(self, "logs_content", wanted == 1)

    @property
    def is_abandoned(self) -> bool:
        """Return whether its person has left the account."""
        return self.person_id is not None and self.role is None

    @property
    def payer(self) -> Payer:
        """Return the payer of its requests that name no tags."""
        return Payer(self.account_id, self.public_id, self.lineage, self.tags)

    def pay_for(self, tags: tuple[str, ...]) -> Payer:
        """Return the payer of a request with these tags, those of the key included."""
        return Payer(self.account_id, self.public_id, self.lineage, tags)

    def budgets_for(self, tags: tuple[str, ...]) -> tuple[Budget, ...]:
        """Return all budgets that apply to a request with these tags, those of the key included."""
        if not tags or not self.tag_budgets:
            return self.budgets
        owners = {own_tag(self.account_id, tag) for tag in tags}
        return (*self.budgets, *(budget for budget in self.tag_budgets if budget.owner in owners))

    def allows(self, scope: Scope) -> bool:
        """Return whether the key, and its person's role, may use endpoints of this scope."""
        if self.person_id is not None and scope not in SCOPES_OF_ROLES.get(self.role, ()):
            return False
        return not self.scopes or scope in self.scopes or (scope is Scope.READ and Scope.GENERATE in self.scopes)

    def allows_model(self, model: str) -> bool:
        """Return whether the key may use this model."""
        return not self.models or model in self.models


def hash_secret(secret: str) -> bytes:
    """Hash a secret with SHA-256, which is enough for 190 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def _tag(body: str, signing_secret: bytes) -> str:
    digest = hmac.digest(signing_secret, b"key:" + body.encode(), "sha256")
    return encode(int.from_bytes(digest[:4], "big"), TAG_LENGTH)


def make(signing_secret: bytes) -> tuple[str, str]:
    """Return a new public id and secret.

    The public id ends in a tag that only this installation can make, so an invented one is rejected
    without a lookup, and a flood of unknown keys does not reach the store.
    """
    body = "".join(secrets.choice(ALPHABET) for _ in range(12))
    secret = "".join(secrets.choice(ALPHABET) for _ in range(38))
    return body + _tag(body, signing_secret), secret


def make_admin_key() -> str:
    """Return a new administrator's key."""
    return ADMIN_PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(38))


def parse(text: str, signing_secret: bytes) -> tuple[str, str] | None:
    """Return public id and secret of a well-formed key that was made here; None for any other text."""
    public_id, _, secret = text.removeprefix(PREFIX).partition("_")
    if not text.startswith(PREFIX) or not secret or len(text) > 100 or not text.isascii():
        return None
    body, tag = public_id[:-TAG_LENGTH], public_id[-TAG_LENGTH:]
    return (public_id, secret) if hmac.compare_digest(tag, _tag(body, signing_secret)) else None
