"""Identities at sign-in providers, sign-ins that have begun, and logout tokens that were used."""

import hashlib
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from penstock.store import sql
from penstock.store.people_tables import identities, logout_tokens, sign_in_attempts

_USE = "INSERT INTO logout_tokens (id, expires_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING RETURNING id"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIdentity:
    """A stored identity."""

    id: str
    person_id: str
    is_operator: bool
    """True if a rule of the provider made the person an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInAttempt:
    """A sign-in that has begun in one browser."""

    state_hash: bytes
    browser_hash: bytes
    provider: str
    return_to: str
    redirect_uri: str
    expires_at: float


def identify(issuer: str, subject: str) -> str:
    """Return the id of the identity of an issuer's subject. The issuer's length keeps the two apart."""
    return hashlib.sha256(f"{len(issuer)}:{issuer}{subject}".encode()).hexdigest()


# -- identities


def find(connection: Connection, identity_id: str) -> KnownIdentity | None:
    """Return an identity by its id."""
    query = select(identities.c.id, identities.c.person_id, identities.c.is_operator)
    row = connection.execute(query.where(identities.c.id == identity_id)).one_or_none()
    return None if row is None else KnownIdentity(id=row[0], person_id=row[1], is_operator=bool(row[2]))


def has_other(connection: Connection, person_id: str, issuer: str) -> bool:
    """Return whether a person has an identity of this issuer."""
    query = select(identities.c.id).where(identities.c.person_id == person_id, identities.c.issuer == issuer)
    return connection.execute(query.limit(1)).first() is not None


def put(
    connection: Connection, issuer: str, subject: str, person_id: str, provider: str, now: float, *, is_operator: bool
) -> None:
    """Store an identity, or what may change of it."""
    identity_id = identify(issuer, subject)
    changes = {"provider": provider, "is_operator": int(is_operator), "signed_in_at": now}
    found = connection.execute(update(identities).where(identities.c.id == identity_id).values(**changes))
    if found.rowcount == 0:
        row = {"id": identity_id, "issuer": issuer, "subject": subject, "person_id": person_id, "created_at": now}
        connection.execute(insert(identities), {**row, **changes})


def remove_of_person(connection: Connection, person_id: str) -> int:
    """Forget the identities of a person. Return their number."""
    return connection.execute(delete(identities).where(identities.c.person_id == person_id)).rowcount


# -- attempts


def begin(connection: Connection, attempt: SignInAttempt, now: float, most: int) -> None:
    """Store an attempt. Expired ones are removed, and the oldest if there are too many."""
    remove_expired(connection, now)
    count = connection.execute(select(func.count()).select_from(sign_in_attempts)).scalar_one()
    if count >= most:
        oldest = select(sign_in_attempts.c.state_hash).order_by(sign_in_attempts.c.expires_at).limit(count - most + 1)
        found = list(connection.execute(oldest).scalars())
        connection.execute(delete(sign_in_attempts).where(sign_in_attempts.c.state_hash.in_(found)))
    row = {name: getattr(attempt, name) for name in SignInAttempt.__dataclass_fields__}
    connection.execute(insert(sign_in_attempts), row)


def take(connection: Connection, state_hash: bytes) -> SignInAttempt | None:
    """Remove and return an attempt. Of two callers at once, one gets it."""
    columns = [sign_in_attempts.c[name] for name in SignInAttempt.__dataclass_fields__]
    query = delete(sign_in_attempts).where(sign_in_attempts.c.state_hash == state_hash).returning(*columns)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else SignInAttempt(**dict(row))


def remove_expired(connection: Connection, now: float) -> None:
    """Remove attempts and logout tokens whose time is over."""
    connection.execute(delete(sign_in_attempts).where(sign_in_attempts.c.expires_at <= now))
    connection.execute(delete(logout_tokens).where(logout_tokens.c.expires_at <= now))


# -- logout tokens


def use_logout_token(connection: Connection, issuer: str, token_id: str, expires_at: float) -> bool:
    """Record a logout token. Return False if it was used before."""
    digest = hashlib.sha256(identify(issuer, token_id).encode()).digest()
    return bool(sql.run(connection, _USE, digest, expires_at))
