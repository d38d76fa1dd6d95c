"""Sign-in: rules that turn a provider's claims into roles, and sessions. Pure data and decisions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from penstock.domain.people.roles import RANK, Membership, Person, PersonRole

Claims: TypeAlias = Mapping[str, Any]
"""Facts about a person from the provider, whose signature or connection was checked."""
OPERATOR_ROLE: Final = "operator"
MAX_SUBJECT: Final = 255
MAX_CLAIM_VALUES: Final = 5_000
"""Values of one claim that are compared with the rules."""
SESSION_PREFIX: Final = "session_"
HOME: Final = "/console"
"""The page after a sign-in. Others must be below it."""
MAX_RETURN_PATH: Final = 1_000
_RETURN_PATH: Final = re.compile(r"/console(?:/[A-Za-z0-9._~%/-]*)?(?:\?[A-Za-z0-9._~%&=+:,/-]*)?")
_ENCODED: Final = re.compile(r"%(?![2-7][0-9A-Fa-f])|%(?:2[eEfF]|5[cC]|7[fF])")
"""Control characters, dots, slashes and backslashes in percent-encoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRule:
    """A condition on claims, and the role that it gives. Only one condition is set."""

    claim: str | None = None
    value: str | None = None
    email_domain: str | None = None
    account: str | None = None
    """The account by name or id. None: the rule makes operators."""
    role: PersonRole | Literal["operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """The roles that the rules give a person, by the accounts' names or ids."""

    roles: Mapping[str, PersonRole] = field(default_factory=dict[str, PersonRole])
    is_operator: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the rules give nothing."""
        return not self.roles and not self.is_operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person as a sign-in provider knows them."""

    issuer: str
    subject: str
    provider: str
    email: str | None
    """The address, if the provider has verified it or is trusted for it."""
    name: str = ""
    session: str | None = None
    """The provider's `sid`."""
    id_token: str | None = None
    """Shown to the provider at sign-out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPolicy:
    """The limits of sessions."""

    idle_seconds: float
    max_seconds: float
    max_per_person: int
    providers: frozenset[str]
    """Providers of the settings. Sessions of others have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A person who is signed in to the console."""

    id: str
    person_id: str
    identity_id: str
    provider: str
    created_at: float
    seen_at: float
    expires_at: float
    browser: str = ""
    address: str = ""

    def is_over(self, policy: SessionPolicy, now: float) -> bool:
        """Return whether a time limit has ended it, or its provider was removed from the settings."""
        if now >= self.expires_at or now >= self.created_at + policy.max_seconds:
            return True
        return now >= self.seen_at + policy.idle_seconds or self.provider not in policy.providers


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A session with its person and the person's roles."""

    session: Session
    person: Person
    memberships: Sequence[Membership]

    def choose(self, account: str | None) -> Membership | None:
        """Return the membership in an account, by id or name; without one, in the first open account by name."""
        if account is not None:
            return next((each for each in self.memberships if account in (each.account_id, each.account)), None)
        is_open = (each for each in self.memberships if each.account_closed_at is None)
        return next(is_open, self.memberships[0] if self.memberships else None)


def decide(rules: Sequence[SignInRule], claims: Claims, email: str | None) -> Grants:
    """Return the roles that rules give. Of several for one account, the highest counts."""
    roles: dict[str, PersonRole] = {}
    is_operator = False
    for rule in rules:
        if not _applies(rule, claims, email):
            continue
        if rule.account is None or rule.role == OPERATOR_ROLE:
            is_operator = True
            continue
        role = PersonRole(rule.role)
        if rule.account not in roles or RANK[role] > RANK[roles[rule.account]]:
            roles[rule.account] = role
    return Grants(roles=roles, is_operator=is_operator)


def _applies(rule: SignInRule, claims: Claims, email: str | None) -> bool:
    if rule.email_domain is not None:
        return email is not None and email.rpartition("@")[2] == rule.email_domain
    return rule.claim is not None and rule.value in read_texts(claims, rule.claim)


def read_texts(claims: Claims, name: str) -> Sequence[str]:
    """Return the texts of a claim, which may be one text or a list. Its name may be a path such as `a.b`."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return (found,)
    if not isinstance(found, list):
        return ()
    values = cast("list[Any]", found)
    return [each for each in values[:MAX_CLAIM_VALUES] if isinstance(each, str)]


def is_overflown(claims: Claims, name: str) -> bool:
    """Return whether a provider left a claim out because it was too long, and named another place for it."""
    elsewhere: Any = claims.get("_claim_names")
    return name not in claims and isinstance(elsewhere, Mapping) and name in elsewhere


def read_return_path(text: str | None) -> str:
    """Return a path within the console, or its home for anything else. It can lead to no other site."""
    if text is None or len(text) > MAX_RETURN_PATH or not _RETURN_PATH.fullmatch(text):
        return HOME
    path = text.partition("?")[0]
    if "//" in text or ".." in path or _ENCODED.search(text):
        return HOME
    return text


def check_secure_url(url: str) -> None:
    """Raise ValueError unless a URL is https, or http on this machine, without user name, password and fragment."""
    parts = urlsplit(url)
    try:
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url or not host:
        raise ValueError("is not a URL")
    if parts.username is not None or parts.fragment:
        raise ValueError("has a user name or a fragment in it")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise ValueError("is not https")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
