"""People, their roles in accounts, and the limits that an account sets for their keys."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PERSON_PREFIX: Final = "person_"
MAX_EMAIL: Final = 254
MAX_PERSON_KEYS: Final = 1_000
DEFAULT_PERSON_KEYS: Final = 10
"""Keys that a person may have in an account whose owner set no other number."""
LOCAL: Final = "local"
"""Source of a membership that somebody here gave. Others have the name of the sign-in provider whose rule gave it."""
_EMAIL: Final = re.compile(r"[^\s@\x00-\x1f\x7f]{1,64}@[a-z0-9.-]{1,189}", re.IGNORECASE)


class PersonRole(StrEnum):
    """The role of a person in an account."""

    OWNER = "owner"
    ADMIN = "admin"
    BILLING = "billing"
    MEMBER = "member"
    VIEWER = "viewer"


KEY_ROLES: Final = frozenset({PersonRole.OWNER, PersonRole.ADMIN, PersonRole.MEMBER})
"""Roles that may have keys of their own."""
RANK: Final = {
    PersonRole.VIEWER: 0,
    PersonRole.BILLING: 1,
    PersonRole.MEMBER: 2,
    PersonRole.ADMIN: 3,
    PersonRole.OWNER: 4,
}
"""Of two roles that rules give for one account, the higher counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who can sign in. An operator administers the whole server."""

    id: str
    email: str
    name: str
    created_at: float
    deactivated_at: float | None = None
    is_operator: bool = False
    signed_in_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A person's role in an account."""

    person_id: str
    account_id: str
    account: str
    role: PersonRole
    source: str = LOCAL
    key_id: str
    """The key that counts the person's requests from the console. Nobody knows its secret."""
    created_at: float
    account_closed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicy:
    """The limits that an account sets for keys of its people."""

    max_keys: int = DEFAULT_PERSON_KEYS
    """Working keys that one person may have."""
    max_budget: int | None = None
    """The largest monthly budget of a key, in billionths of a dollar. None: keys need no budget."""


def read_email(text: str) -> str:
    """Validate an e-mail address and return it in lower case."""
    text = text.strip().lower()
    if len(text) > MAX_EMAIL or not _EMAIL.fullmatch(text) or not text.isprintable():
        raise ValueError("should be an e-mail address such as ada@example.org")
    return text


def may_change(actor: PersonRole | None, before: PersonRole | None, after: PersonRole | None) -> bool:
    """Return whether a role may replace `before` by `after`. Only owners and operators (None) make or touch owners."""
    if actor in (None, PersonRole.OWNER):
        return True
    return actor is PersonRole.ADMIN and PersonRole.OWNER not in (before, after)
