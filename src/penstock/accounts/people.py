"""Changes to people, their roles and their own keys: one transaction each, with an audit log entry.

A key of a person counts only while the person has a role in its account. A change of roles writes an audit log
entry with the account, so that every process looks its keys up again within a second.
"""

from dataclasses import replace
from typing import Any, Final

from penstock.accounts import administration
from penstock.accounts.administration import ADMINISTRATION_LOCK, note
from penstock.domain.accounts import Account, Action, Allowance, KeyWish
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import Period
from penstock.domain.ids import new_id
from penstock.domain.money import format_usd
from penstock.domain.people.roles import KEY_ROLES, LOCAL, KeyPolicy, Membership, Person, PersonRole, may_change
from penstock.domain.people.sign_in_errors import SessionNotFound
from penstock.errors import (
    KeyNotFound,
    KeyNotRotatable,
    KeyPolicyExceeded,
    PersonExists,
    PersonNotFound,
    RoleNotAllowed,
)
from penstock.store import locks
from penstock.store.database import Connection
from penstock.store.queries.accounts import identity_rows, key_rows, people_rows, session_rows

MAX_OVERLAP_SECONDS: Final = 7 * 86400.0
"""The longest time that a person's rotated key works beside its successor."""
NO_ACCOUNT: Final = ""
"""Account of audit log entries that change no key, so that no server looks keys up again."""

# -- people


def get_person(connection: Connection, text: str) -> Person:
    """Return the person with this id or e-mail address."""
    person = people_rows.find(connection, text)
    if person is None:
        raise PersonNotFound(f"There is no person `{text[:100]}`.", param="person")
    return person


def add_person(
    connection: Connection, actor: str, email: str, name: str, now: float, *, is_operator: bool = False
) -> Person:
    """Create a person, who has no role yet."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    if people_rows.find(connection, email) is not None:
        raise PersonExists(f"There is a person `{email}` already.", param="email")
    person = Person(id=new_id("person"), email=email, name=name, created_at=now, is_operator=is_operator)
    people_rows.add(connection, person)
    detail = {"email": email, "name": name, "operator": is_operator}
    note(connection, actor, Action.PERSON_ADDED, person.id, None, now, detail)
    return person


def ensure_person(connection: Connection, actor: str, email: str, name: str, now: float) -> Person:
    """Return the person with this e-mail address. Create the person if there is none."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    return people_rows.find(connection, email) or add_person(connection, actor, email, name, now)


def set_operator(connection: Connection, actor: str, text: str, now: float, *, is_operator: bool) -> Person:
    """Let a person administer the whole server, or no longer."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    before = get_person(connection, text)
    if before.is_operator == is_operator:
        return before
    after = replace(before, is_operator=is_operator)
    people_rows.write(connection, after)
    detail = {"operator": {"from": before.is_operator, "to": is_operator}}
    note(connection, actor, Action.PERSON_CHANGED, after.id, None, now, detail)
    return after


def deactivate(connection: Connection, actor: str, text: str, now: float) -> Person:
    """End a person's roles, keys and sessions, and refuse new ones."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    person = get_person(connection, text)
    session_rows.remove_of_person(connection, person.id)
    for membership in people_rows.memberships_of(connection, person.id):
        remove_member(connection, actor, person, membership.account_id, now)
    if person.deactivated_at is not None:
        return person
    after = replace(person, deactivated_at=now, is_operator=False)
    people_rows.write(connection, after)
    note(connection, actor, Action.PERSON_DEACTIVATED, person.id, None, now, {"email": person.email})
    return after


def activate(connection: Connection, actor: str, text: str, now: float) -> Person:
    """Let a deactivated person have roles again, which have to be given again."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    person = get_person(connection, text)
    if person.deactivated_at is None:
        return person
    after = replace(person, deactivated_at=None)
    people_rows.write(connection, after)
    note(connection, actor, Action.PERSON_ACTIVATED, person.id, None, now, {"email": person.email})
    return after


# -- sessions


def end_session(connection: Connection, actor: str, person_id: str, session_id: str, now: float) -> None:
    """End one session of a person."""
    if not session_rows.remove(connection, session_id, person_id):
        raise SessionNotFound(f"There is no session `{session_id[:100]}`.", param="session_id")
    note_sign_out(connection, actor, person_id, 1, now)


def end_sessions(connection: Connection, actor: str, person_id: str, now: float) -> int:
    """End all sessions of a person. Return their number."""
    ended = session_rows.remove_of_person(connection, person_id)
    if ended:
        note_sign_out(connection, actor, person_id, ended, now)
    return ended


def unlink(connection: Connection, actor: str, text: str, now: float) -> Person:
    """Forget the identities of a person at providers, and end the sessions. The next sign-in links by address again."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    person = get_person(connection, text)
    end_sessions(connection, actor, person.id, now)
    if identity_rows.remove_of_person(connection, person.id):
        note(connection, actor, Action.PERSON_UNLINKED, person.id, NO_ACCOUNT, now, {"email": person.email})
    return person


def note_sign_out(connection: Connection, actor: str, person_id: str, ended: int, now: float) -> None:
    """Write an entry of the audit log about sessions that were ended."""
    note(connection, actor, Action.PERSON_SIGNED_OUT, person_id, NO_ACCOUNT, now, {"sessions": ended})


# -- roles


def get_member(connection: Connection, account_id: str, text: str) -> tuple[Person, Membership]:
    """Return a person of an account, by id or e-mail address. People of other accounts are not found."""
    person = people_rows.find(connection, text)
    found = None if person is None else people_rows.get_membership(connection, person.id, account_id)
    if person is None or found is None:
        raise PersonNotFound(f"The account has no person `{text[:100]}`.", param="person")
    return person, found


def set_role(
    connection: Connection,
    actor: str,
    person: Person,
    account: Account,
    role: PersonRole,
    now: float,
    *,
    source: str = LOCAL,
    by: PersonRole | None = None,
) -> Membership:
    """Give a person a role in an account. `by` is the role of who does it, None for operators and rules."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    if person.deactivated_at is not None:
        raise RoleNotAllowed(f"`{person.email}` is deactivated.", suggestion="Activate the person first.")
    before = people_rows.get_membership(connection, person.id, account.id)
    _refuse_change(by, None if before is None else before.role, role)
    if before is None:
        return _join(connection, actor, person, account, role, source, now)
    after = replace(before, role=role, source=source)
    if after != before:
        people_rows.write_membership(connection, after)
        detail = {"email": person.email, "role": {"from": before.role, "to": role}, "source": source}
        note(connection, actor, Action.MEMBER_CHANGED, person.id, account.id, now, detail)
    return after


def _join(
    connection: Connection, actor: str, person: Person, account: Account, role: PersonRole, source: str, now: float
) -> Membership:
    wish = KeyWish(name=f"Console of {person.email}"[:200], person_id=person.id, is_console=True)
    _, key = administration.issue_key(connection, actor, account.id, wish, now)
    made = Membership(
        person_id=person.id,
        account_id=account.id,
        account=account.name,
        role=role,
        source=source,
        key_id=key.public_id,
        created_at=now,
    )
    people_rows.add_membership(connection, made)
    detail = {"email": person.email, "role": role, "source": source}
    note(connection, actor, Action.MEMBER_ADDED, person.id, account.id, now, detail)
    return made


def remove_member(
    connection: Connection, actor: str, person: Person, account_id: str, now: float, *, by: PersonRole | None = None
) -> None:
    """End a person's role in an account, and revoke the person's keys there."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    _, before = get_member(connection, account_id, person.id)
    _refuse_change(by, before.role, None)
    for public_id in people_rows.working_keys(connection, person.id, account_id):
        administration.revoke_key(connection, actor, public_id, now)
    people_rows.remove_membership(connection, person.id, account_id)
    detail = {"email": person.email, "role": before.role}
    note(connection, actor, Action.MEMBER_REMOVED, person.id, account_id, now, detail)


def _refuse_change(by: PersonRole | None, before: PersonRole | None, after: PersonRole | None) -> None:
    if not may_change(by, before, after):
        raise RoleNotAllowed("Only an owner may make, change or remove owners.", suggestion="Ask an owner.")


# -- keys of people


def set_policy(connection: Connection, actor: str, account_id: str, wanted: KeyPolicy, now: float) -> KeyPolicy:
    """Set an account's limits for keys of its people. Keys that exist keep what they have."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    before = people_rows.policy(connection, account_id)
    if before != wanted:
        people_rows.put_policy(connection, account_id, wanted)
        detail = {"from": describe_policy(before), "to": describe_policy(wanted)}
        note(connection, actor, Action.KEY_POLICY_SET, account_id, account_id, now, detail)
    return wanted


def describe_policy(policy: KeyPolicy) -> dict[str, Any]:
    """Return an account's limits for keys of its people."""
    budget = None if policy.max_budget is None else format_usd(policy.max_budget)
    return {"max_keys": policy.max_keys, "max_budget": budget}


def issue_own_key(
    connection: Connection, actor: str, person_id: str, account_id: str, wish: KeyWish, now: float
) -> tuple[str, ApiKey]:
    """Create a key of a person, within the account's limits. Return its text, which is shown once, and the record."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    _, membership = get_member(connection, account_id, person_id)
    if membership.role not in KEY_ROLES:
        raise RoleNotAllowed(f"The role `{membership.role}` has no keys of its own.")
    policy = people_rows.policy(connection, account_id)
    count = people_rows.count_lasting_keys(connection, person_id, account_id, now, with_replaced=False)
    if count >= policy.max_keys:
        message = f"The account allows {policy.max_keys} keys for each person."
        raise KeyPolicyExceeded(message, suggestion="Revoke a key first, or ask for a higher limit.")
    wish = replace(wish, person_id=person_id, allowances=_within(policy, wish.allowances))
    return administration.issue_key(connection, actor, account_id, wish, now)


def _within(policy: KeyPolicy, wanted: tuple[Allowance, ...]) -> tuple[Allowance, ...]:
    """Return the budgets of a new key. Where the account limits them, each key has one for a month."""
    most = policy.max_budget
    if most is None:
        return wanted
    for allowance in wanted:
        if allowance.period is Period.MONTH and allowance.cap > most:
            message = f"The account allows a key at most {format_usd(most)} USD a month."
            raise KeyPolicyExceeded(message, param="budgets", suggestion="Ask for less.")
    if any(allowance.period is Period.MONTH for allowance in wanted):
        return wanted
    return (*wanted, Allowance(period=Period.MONTH, cap=most))


def get_own_key(connection: Connection, account_id: str, person_id: str | None, public_id: str) -> ApiKey:
    """Return a key of a person in an account, or any of the account's without a person."""
    key = key_rows.get(connection, public_id)
    is_found = key is not None and key.account_id == account_id and not key.is_console
    if key is None or not is_found or (person_id is not None and key.person_id != person_id):
        raise KeyNotFound(f"There is no key {public_id[:100]}.", param="public_id")
    return key


def rotate_own_key(
    connection: Connection, actor: str, key: ApiKey, person_id: str | None, overlap: float, now: float
) -> tuple[str, ApiKey]:
    """Replace a person's key, or without a person a service key. Return the new text and the new key."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    if person_id is None and key.person_id is not None:
        message = f"The key {key.public_id} belongs to a person, who alone may rotate it."
        raise KeyNotRotatable(message, param="public_id", suggestion="Revoke it instead.")
    if person_id is not None:
        most = 2 * people_rows.policy(connection, key.account_id).max_keys
        if people_rows.count_lasting_keys(connection, person_id, key.account_id, now) >= max(most, 2):
            message = "Too many of your replaced keys still work."
            raise KeyPolicyExceeded(message, suggestion="Revoke some of them first.")
        overlap = min(overlap, MAX_OVERLAP_SECONDS)
    text, new, _ = administration.rotate_key(connection, actor, key.public_id, overlap, now)
    return text, new
