"""The store's side of a sign-in, in one transaction: find the person, bring roles in line, begin a session."""

from dataclasses import dataclass, field, replace
from typing import Final

from penstock.accounts import people
from penstock.accounts.administration import ADMINISTRATION_LOCK, note
from penstock.domain.accounts import Account, Action
from penstock.domain.ids import new_id
from penstock.domain.people.roles import LOCAL, RANK, Membership, Person, PersonRole
from penstock.domain.people.sign_in import Grants, Identity, Session, SessionPolicy
from penstock.domain.people.sign_in_errors import SignInRefused
from penstock.sealing.sealer import Sealer
from penstock.store import locks
from penstock.store.database import Connection
from penstock.store.queries.accounts import account_rows, identity_rows, people_rows, session_rows

MAX_ID_TOKEN: Final = 4_000
"""Characters of an ID token that is kept for the sign-out, where it becomes part of a URL."""
MAX_BROWSER: Final = 200
PURPOSE: Final = "ID token"
"""Of what is sealed, so that it opens as nothing else."""
Wanted = dict[str, tuple[Account, PersonRole]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The browser that signs in, with the hash of its new cookie and that of a former one."""

    token_hash: bytes
    former_hash: bytes | None = None
    browser: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """The result of a sign-in. Without a session, the person has no role here."""

    person: Person | None
    session: Session | None
    problems: tuple[str, ...] = field(default=())
    """Rules that could not be applied, for the operator's log."""


def enrol(
    connection: Connection,
    identity: Identity,
    grants: Grants,
    policy: SessionPolicy,
    visitor: Visitor,
    sealer: Sealer | None,
    now: float,
) -> Enrolment:
    """Sign a person in: add or link the person, apply the rules, and begin a session.

    Without a sealer, the ID token is not kept.
    """
    locks.hold(connection, ADMINISTRATION_LOCK)
    wanted, problems = _find_accounts(connection, grants, now)
    actor = f"sign_in.{identity.provider}"
    identity_id = identity_rows.identify(identity.issuer, identity.subject)
    known = identity_rows.find(connection, identity_id)
    person = _find_person(connection, identity, None if known is None else known.person_id)
    if person is None:
        if not wanted and not grants.is_operator:
            return Enrolment(person=None, session=None, problems=problems)
        person = people.add_person(connection, actor, identity.email or "", identity.name, now)
    lost = _apply_roles(connection, actor, person, wanted, identity.provider, policy, now)
    was_given = known is not None and known.is_operator
    is_given = grants.is_operator and (was_given or not person.is_operator)
    if is_given or was_given:
        people.set_operator(connection, actor, person.id, now, is_operator=is_given)
        lost = lost or not is_given
    identity_rows.put(
        connection, identity.issuer, identity.subject, person.id, identity.provider, now, is_operator=is_given
    )
    if lost:
        people.end_sessions(connection, actor, person.id, now)
    person = _note_sign_in(connection, person, identity, now)
    session = _begin(connection, person, identity, identity_id, policy, visitor, sealer, now)
    return Enrolment(person=person, session=session, problems=problems)


def _find_accounts(connection: Connection, grants: Grants, now: float) -> tuple[Wanted, tuple[str, ...]]:
    """Return the accounts of the rules with their roles. Rules whose account does not exist give nothing."""
    wanted: Wanted = {}
    problems: list[str] = []
    for text, role in grants.roles.items():
        account = account_rows.find(connection, text, now)
        if account is None:
            problems.append(f"there is no account `{text}`")
        elif account.closed_at is not None:
            problems.append(f"the account `{text}` is closed")
        elif account.id not in wanted or RANK[role] > RANK[wanted[account.id][1]]:
            wanted[account.id] = account, role
    return wanted, tuple(problems)


def _find_person(connection: Connection, identity: Identity, person_id: str | None) -> Person | None:
    """Return the person of an identity, or the one with its verified address. Raise if they may not sign in."""
    if person_id is not None:
        person = people_rows.find(connection, person_id)
    elif identity.email is None:
        message = "The provider does not say that your e-mail address is verified."
        raise SignInRefused(message, suggestion="Verify it at the provider, or ask an operator of this server.")
    else:
        person = people_rows.find(connection, identity.email)
        if person is not None and identity_rows.has_other(connection, person.id, identity.issuer):
            message = "Somebody else has signed in here with your e-mail address before."
            raise SignInRefused(message, suggestion="Ask an operator of this server: `penstock people unlink` helps.")
    if person is not None and person.deactivated_at is not None:
        raise SignInRefused("Your access to this server has ended.")
    return person


def _apply_roles(
    connection: Connection,
    actor: str,
    person: Person,
    wanted: Wanted,
    provider: str,
    policy: SessionPolicy,
    now: float,
) -> bool:
    """Give, change and remove the roles of this provider. Return whether one was removed."""
    left = dict(wanted)
    lost = False
    for membership in people_rows.memberships_of(connection, person.id):
        found = left.pop(membership.account_id, None)
        if not _is_ours(membership, provider, policy):
            continue
        if found is None:
            people.remove_member(connection, actor, person, membership.account_id, now)
            lost = True
        else:
            people.set_role(connection, actor, person, found[0], found[1], now, source=provider)
    for account, role in left.values():
        people.set_role(connection, actor, person, account, role, now, source=provider)
    return lost


def _is_ours(membership: Membership, provider: str, policy: SessionPolicy) -> bool:
    """Return whether a role is this provider's, or of one that the settings no longer have."""
    if membership.source == LOCAL:
        return False
    return membership.source == provider or membership.source not in policy.providers


def _note_sign_in(connection: Connection, person: Person, identity: Identity, now: float) -> Person:
    current = people.get_person(connection, person.id)
    after = replace(current, signed_in_at=now, name=current.name or identity.name)
    people_rows.write(connection, after)
    return after


def _begin(
    connection: Connection,
    person: Person,
    identity: Identity,
    identity_id: str,
    policy: SessionPolicy,
    visitor: Visitor,
    sealer: Sealer | None,
    now: float,
) -> Session | None:
    """Begin a session in place of the browser's former one. Without any role there is none."""
    if visitor.former_hash is not None:
        session_rows.remove_by_token(connection, visitor.former_hash)
    if not person.is_operator and not people_rows.memberships_of(connection, person.id):
        return None
    session = Session(
        id=new_id("session"),
        person_id=person.id,
        identity_id=identity_id,
        provider=identity.provider,
        created_at=now,
        seen_at=now,
        expires_at=now + policy.max_seconds,
        browser=visitor.browser[:MAX_BROWSER],
        address=visitor.address,
    )
    token = identity.id_token or ""
    is_kept = sealer is not None and 0 < len(token) <= MAX_ID_TOKEN
    sealed = sealer.seal(PURPOSE, session.id, token.encode()) if sealer is not None and is_kept else None
    session_rows.add(connection, session, visitor.token_hash, identity.session, sealed)
    session_rows.keep_newest(connection, person.id, policy.max_per_person)
    detail = {"provider": identity.provider, "session": session.id}
    note(connection, person.id, Action.PERSON_SIGNED_IN, person.id, people.NO_ACCOUNT, now, detail)
    return session


def end_by_provider(
    connection: Connection, provider: str, issuer: str, subject: str | None, sid: str | None, now: float
) -> int:
    """End sessions that a provider ends: of a subject, of one session of its, or both. Return their number."""
    if subject is not None:
        identity_id = identity_rows.identify(issuer, subject)
        ended = session_rows.remove_of_identity(connection, identity_id, sid)
        known = identity_rows.find(connection, identity_id)
        about = provider if known is None else known.person_id
    else:
        ended, about = session_rows.remove_of_provider_session(connection, provider, sid or ""), provider
    if ended:
        detail = {"sessions": ended, "provider": provider}
        note(connection, f"sign_in.{provider}", Action.PERSON_SIGNED_OUT, about, people.NO_ACCOUNT, now, detail)
    return ended
