"""Sessions of people in the console."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from penstock.domain.people.sign_in import Session, SessionPolicy, SignedIn
from penstock.store.people_tables import sessions
from penstock.store.queries.accounts import people_rows

_FIELDS = [sessions.c[name] for name in Session.__dataclass_fields__]


def add(connection: Connection, session: Session, token_hash: bytes, sid: str | None, id_token: bytes | None) -> None:
    """Store a new session."""
    row = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    connection.execute(
        insert(sessions), {**row, "token_hash": token_hash, "provider_session": sid, "id_token": id_token}
    )


def find(connection: Connection, token_hash: bytes) -> SignedIn | None:
    """Return the session of a cookie, with its person and the person's roles. None if there is none any more."""
    row = connection.execute(select(*_FIELDS).where(sessions.c.token_hash == token_hash)).mappings().one_or_none()
    if row is None:
        return None
    session = _session(dict(row))
    person = people_rows.find(connection, session.person_id)
    if person is None or person.deactivated_at is not None:
        return None
    return SignedIn(
        session=session, person=person, memberships=tuple(people_rows.memberships_of(connection, person.id))
    )


def of_person(connection: Connection, person_id: str, policy: SessionPolicy, now: float) -> list[Session]:
    """Return the sessions of a person, newest first, without those that are over."""
    query = select(*_FIELDS).where(sessions.c.person_id == person_id)
    rows = connection.execute(query.order_by(sessions.c.created_at.desc(), sessions.c.id.desc()))
    found = [_session(dict(row)) for row in rows.mappings()]
    return [session for session in found if not session.is_over(policy, now)]


def touch(connection: Connection, session_id: str, now: float) -> None:
    """Record a request. Times only grow, as several processes record them."""
    found = update(sessions).where(sessions.c.id == session_id, sessions.c.seen_at < now)
    connection.execute(found.values(seen_at=now))


def id_token_of(connection: Connection, session_id: str) -> bytes | None:
    """Return the sealed ID token of a session, which the provider wants to see at sign-out."""
    return connection.execute(select(sessions.c.id_token).where(sessions.c.id == session_id)).scalar()


def remove(connection: Connection, session_id: str, person_id: str | None = None) -> bool:
    """End a session, if it is the person's. Return whether there was one."""
    query = delete(sessions).where(sessions.c.id == session_id)
    if person_id is not None:
        query = query.where(sessions.c.person_id == person_id)
    return connection.execute(query).rowcount > 0


def remove_by_token(connection: Connection, token_hash: bytes) -> None:
    """End the session of a cookie."""
    connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash))


def remove_of_person(connection: Connection, person_id: str) -> int:
    """End all sessions of a person. Return their number."""
    return connection.execute(delete(sessions).where(sessions.c.person_id == person_id)).rowcount


def remove_of_identity(connection: Connection, identity_id: str, sid: str | None) -> int:
    """End the sessions of an identity: all, or those of one session at the provider. Return their number."""
    query = delete(sessions).where(sessions.c.identity_id == identity_id)
    if sid is not None:
        query = query.where(sessions.c.provider_session == sid)
    return connection.execute(query).rowcount


def remove_of_provider_session(connection: Connection, provider: str, sid: str) -> int:
    """End the sessions of one session at a provider. Return their number."""
    query = delete(sessions).where(sessions.c.provider == provider, sessions.c.provider_session == sid)
    return connection.execute(query).rowcount


def keep_newest(connection: Connection, person_id: str, most: int) -> None:
    """End the oldest sessions of a person, so that at most so many are left."""
    mine = select(sessions.c.id).where(sessions.c.person_id == person_id)
    old = connection.execute(mine.order_by(sessions.c.created_at.desc(), sessions.c.id.desc()).offset(most)).scalars()
    connection.execute(delete(sessions).where(sessions.c.id.in_(list(old))))


def remove_expired(connection: Connection, now: float, limit: int) -> int:
    """Remove sessions whose time is over. Return their number."""
    old = list(connection.execute(select(sessions.c.id).where(sessions.c.expires_at <= now).limit(limit)).scalars())
    if old:
        connection.execute(delete(sessions).where(sessions.c.id.in_(old)))
    return len(old)


def _session(fields: dict[Any, Any]) -> Session:
    return Session(**fields)
