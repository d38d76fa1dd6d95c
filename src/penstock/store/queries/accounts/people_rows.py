"""People, their memberships, and accounts' limits for their keys."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, true, update

from penstock.domain.people.roles import PERSON_PREFIX, KeyPolicy, Membership, Person, PersonRole
from penstock.store import sql
from penstock.store.people_tables import key_policies, memberships, people
from penstock.store.tables import accounts, keys

_PUT_POLICY = (
    "INSERT INTO key_policies (account_id, max_keys, max_budget) VALUES (?, ?, ?) ON CONFLICT (account_id) "
    "DO UPDATE SET max_keys = excluded.max_keys, max_budget = excluded.max_budget"
)
_IS_SHOWN = func.coalesce(keys.c.is_console, 0) == 0


def add(connection: Connection, person: Person) -> None:
    """Store a new person."""
    connection.execute(insert(people), {"id": person.id, "created_at": person.created_at, **_columns(person)})


def write(connection: Connection, person: Person) -> None:
    """Write the columns of a person that may change."""
    connection.execute(update(people).where(people.c.id == person.id).values(**_columns(person)))


def find(connection: Connection, text: str) -> Person | None:
    """Return a person by id or e-mail address."""
    column = people.c.id if text.startswith(PERSON_PREFIX) else people.c.email
    value = text if text.startswith(PERSON_PREFIX) else text.strip().lower()
    rows = connection.execute(select(people).where(column == value.replace("\0", "\ufffd"))).mappings().all()
    return _person(dict(rows[0])) if rows else None


def page(connection: Connection, account_id: str | None, before: str | None, limit: int | None) -> list[Person]:
    """Return people, newest first, older than the one with this id: all, or those of an account."""
    query = select(people).where(people.c.id < before if before else true())
    if account_id is not None:
        inside = select(memberships.c.person_id).where(memberships.c.account_id == account_id)
        query = query.where(people.c.id.in_(inside))
    rows = connection.execute(query.order_by(people.c.id.desc()).limit(limit))
    return [_person(dict(row)) for row in rows.mappings()]


def add_membership(connection: Connection, membership: Membership) -> None:
    """Store a new membership."""
    row = {name: getattr(membership, name) for name in memberships.columns.keys()}  # noqa: SIM118  not a dict
    connection.execute(insert(memberships), {**row, "role": membership.role.value})


def write_membership(connection: Connection, membership: Membership) -> None:
    """Write the role and the source of a membership."""
    found = update(memberships).where(_is_of(membership.person_id, membership.account_id))
    connection.execute(found.values(role=membership.role.value, source=membership.source))


def remove_membership(connection: Connection, person_id: str, account_id: str) -> None:
    """Remove a membership."""
    connection.execute(delete(memberships).where(_is_of(person_id, account_id)))


def get_membership(connection: Connection, person_id: str, account_id: str) -> Membership | None:
    """Return a person's membership in an account."""
    found = _memberships(connection, _is_of(person_id, account_id))
    return found[0] if found else None


def memberships_of(connection: Connection, person_id: str) -> list[Membership]:
    """Return a person's memberships, by the accounts' names."""
    return _memberships(connection, memberships.c.person_id == person_id)


def memberships_of_all(connection: Connection, person_ids: list[str]) -> dict[str, list[Membership]]:
    """Return the memberships of several people by their ids."""
    found: dict[str, list[Membership]] = {person_id: [] for person_id in person_ids}
    for membership in _memberships(connection, memberships.c.person_id.in_(person_ids)) if person_ids else ():
        found[membership.person_id].append(membership)
    return found


def working_keys(connection: Connection, person_id: str, account_id: str) -> list[str]:
    """Return the ids of a person's keys in an account that are not revoked, the hidden one included."""
    query = select(keys.c.public_id).where(_is_owned(person_id, account_id))
    return list(connection.execute(query.order_by(keys.c.created_at, keys.c.public_id)).scalars())


def count_lasting_keys(
    connection: Connection, person_id: str, account_id: str, now: float, *, with_replaced: bool = True
) -> int:
    """Return the number of a person's keys that work, without the hidden one."""
    lasts = or_(keys.c.expires_at.is_(None), keys.c.expires_at > now)
    query = select(func.count()).where(_is_owned(person_id, account_id), lasts, _IS_SHOWN)
    if not with_replaced:
        query = query.where(keys.c.replaced_by.is_(None))
    return connection.execute(query).scalar_one()


def own_keys(connection: Connection, account_id: str, person_id: str | None, limit: int) -> list[str]:
    """Return the ids of an account's keys, newest first: a person's own, or all. Hidden ones are left out."""
    query = select(keys.c.public_id).where(keys.c.account_id == account_id, _IS_SHOWN)
    if person_id is not None:
        query = query.where(keys.c.person_id == person_id)
    return list(connection.execute(query.order_by(keys.c.created_at.desc(), keys.c.public_id).limit(limit)).scalars())


def policy(connection: Connection, account_id: str) -> KeyPolicy:
    """Return an account's limits for keys of its people."""
    query = select(key_policies.c.max_keys, key_policies.c.max_budget).where(key_policies.c.account_id == account_id)
    row = connection.execute(query).one_or_none()
    return KeyPolicy() if row is None else KeyPolicy(max_keys=row[0], max_budget=row[1])


def put_policy(connection: Connection, account_id: str, wanted: KeyPolicy) -> None:
    """Store an account's limits for keys of its people."""
    sql.run(connection, _PUT_POLICY, account_id, wanted.max_keys, wanted.max_budget)


def _is_owned(person_id: str, account_id: str) -> ColumnElement[bool]:
    return and_(keys.c.person_id == person_id, keys.c.account_id == account_id, keys.c.revoked_at.is_(None))


def _is_of(person_id: str, account_id: str) -> ColumnElement[bool]:
    return and_(memberships.c.person_id == person_id, memberships.c.account_id == account_id)


def _memberships(connection: Connection, where: ColumnElement[bool]) -> list[Membership]:
    query = select(memberships, accounts.c.name.label("account"), accounts.c.closed_at.label("account_closed_at"))
    query = query.join(accounts, accounts.c.id == memberships.c.account_id).where(where).order_by(accounts.c.name)
    return [_membership(dict(row)) for row in connection.execute(query).mappings()]


def _membership(fields: dict[Any, Any]) -> Membership:
    fields["role"] = PersonRole(fields["role"])
    return Membership(**fields)


def _columns(person: Person) -> dict[str, Any]:
    return {
        "email": person.email,
        "name": person.name,
        "deactivated_at": person.deactivated_at,
        "is_operator": int(person.is_operator),
        "signed_in_at": person.signed_in_at,
    }


def _person(fields: dict[Any, Any]) -> Person:
    fields["is_operator"] = bool(fields["is_operator"])
    return Person(**fields)
