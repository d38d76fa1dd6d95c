"""Roles and keys of people in both stores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from penstock.accounts import administration, people
from penstock.domain.accounts import Allowance, KeyWish
from penstock.domain.budgets import Period
from penstock.domain.people.roles import KeyPolicy, PersonRole, may_change, read_email
from penstock.errors import AccountClosed, KeyPolicyExceeded, PersonNotFound, RoleNotAllowed
from penstock.store.queries.accounts import key_rows

NOW = 1_000_000.0


def join(connection: Connection, role: PersonRole = PersonRole.MEMBER, account: str = "mill"):
    place = administration.ensure_account(connection, "cli", account, NOW)
    person = people.ensure_person(connection, "cli", "ada@example.org", "Ada", NOW)
    return place, person, people.set_role(connection, "cli", person, place, role, NOW)


def test_a_key_has_the_role_of_its_person(connection: Connection):
    place, person, membership = join(connection)
    text, key = people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), NOW)
    assert text.startswith("psk_")
    assert (key.role, key.is_abandoned) == (PersonRole.MEMBER, False)
    people.set_role(connection, "cli", person, place, PersonRole.VIEWER, NOW)
    [found] = key_rows.get_all(connection, [key.public_id])
    assert found.role is PersonRole.VIEWER
    people.remove_member(connection, "cli", person, place.id, NOW)
    found = key_rows.get(connection, key.public_id)
    assert found is not None
    assert (found.role, found.is_abandoned, found.revoked_at) == (None, True, NOW)
    hidden = key_rows.get(connection, membership.key_id)
    assert hidden is not None
    assert hidden.revoked_at == NOW


def test_a_policy_bounds_number_and_budget(connection: Connection):
    place, person, _ = join(connection)
    people.set_policy(connection, "cli", place.id, KeyPolicy(max_keys=2, max_budget=5), NOW)
    too_much = KeyWish(allowances=(Allowance(period=Period.MONTH, cap=6),))
    with pytest.raises(KeyPolicyExceeded):
        people.issue_own_key(connection, "cli", person.id, place.id, too_much, NOW)
    ends = KeyWish(expires_at=NOW + 10, allowances=(Allowance(period=Period.DAY, cap=1),))
    _, first = people.issue_own_key(connection, "cli", person.id, place.id, ends, NOW)
    assert {(budget.period, budget.cap) for budget in first.budgets} == {(Period.DAY, 1), (Period.MONTH, 5)}
    people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), NOW)
    with pytest.raises(KeyPolicyExceeded):
        people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), NOW)
    people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), NOW + 11)


def test_rotating_again_and_again_does_not_multiply_keys(connection: Connection):
    place, person, _ = join(connection)
    people.set_policy(connection, "cli", place.id, KeyPolicy(max_keys=1), NOW)
    _, key = people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), NOW)
    _, key = people.rotate_own_key(connection, "cli", key, person.id, 1e9, NOW)
    with pytest.raises(KeyPolicyExceeded):
        people.rotate_own_key(connection, "cli", key, person.id, 1e9, NOW)
    people.rotate_own_key(connection, "cli", key, person.id, 0, NOW + people.MAX_OVERLAP_SECONDS + 1)


@pytest.mark.parametrize("role", [PersonRole.BILLING, PersonRole.VIEWER])
def test_some_roles_have_no_keys(connection: Connection, role: PersonRole):
    place, person, _ = join(connection, role)
    with pytest.raises(RoleNotAllowed):
        people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), NOW)


def test_a_closed_account_gets_nobody(connection: Connection):
    place, _, _ = join(connection)
    administration.change_account(connection, "cli", place.id, lambda each: administration.close(each, NOW), NOW)
    other = people.add_person(connection, "cli", "bob@example.org", "", NOW)
    with pytest.raises(AccountClosed):
        people.set_role(
            connection, "cli", other, administration.get_account(connection, place.id, NOW), PersonRole.OWNER, NOW
        )


def test_nobody_is_found_by_odd_texts(connection: Connection):
    for text in ("", "\0", "person_", "person_\0", "ada@example.org\0", "%", "x" * 10_000):
        with pytest.raises(PersonNotFound):
            people.get_person(connection, text)


@given(
    before=st.sampled_from([None, *PersonRole]),
    after=st.sampled_from([None, *PersonRole]),
    by=st.sampled_from([None, *PersonRole]),
)
def test_only_owners_and_operators_touch_owners(
    before: PersonRole | None, after: PersonRole | None, by: PersonRole | None
):
    if PersonRole.OWNER in (before, after):
        assert may_change(by, before, after) is (by in (None, PersonRole.OWNER))
    else:
        assert may_change(by, before, after) is (by in (None, PersonRole.OWNER, PersonRole.ADMIN))


@given(st.text())
def test_an_address_is_one_word_with_one_at(text: str):
    try:
        found = read_email(text)
    except ValueError:
        return
    assert found == found.lower() == found.strip()
    assert found.count("@") == 1
    assert found.isprintable()
    assert read_email(found) == found
