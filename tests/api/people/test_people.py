"""People, their roles and their own keys, over HTTP."""

import asyncio
from typing import Any

from admin_steps import until_answered
from conftest import client_of
from people_steps import ADMIN_KEY, WITH_ADMIN, be, enroll
from steps import refused

from penstock.accounts import people
from penstock.domain.people.roles import PersonRole
from penstock.store.queries.accounts.account_rows import find as find_account

PEOPLE, KEYS, POLICY = "/api/v1/people", "/api/v1/keys", "/api/v1/account/key-policy"


async def test_an_owner_adds_changes_and_removes_people(start):
    server = await start(WITH_ADMIN)
    ada = await be(server, "ada@example.org", PersonRole.OWNER)
    made = await ada.post(PEOPLE, json={"email": " Bob@Example.org", "name": "Bob", "role": "member"})
    assert (made.status_code, made.json()["email"], made.json()["role"]) == (201, "bob@example.org", "member")
    assert made.json()["source"] == "local"
    again = await ada.post(PEOPLE, json={"email": "bob@example.org", "role": "viewer"})
    assert (again.json()["id"], again.json()["role"]) == (made.json()["id"], "viewer")
    changed = await ada.patch(f"{PEOPLE}/bob@example.org", json={"role": "billing"})
    assert changed.json()["role"] == "billing"
    page = (await ada.get(PEOPLE, params={"limit": 1})).json()
    assert [each["email"] for each in page["data"]] == ["bob@example.org"]
    rest = (await ada.get(PEOPLE, params={"cursor": page["next_cursor"]})).json()["data"]
    assert [each["email"] for each in rest] == ["ada@example.org"]
    assert (await ada.delete(f"{PEOPLE}/{made.json()['id']}")).status_code == 204
    refused(await ada.delete(f"{PEOPLE}/{made.json()['id']}"), 404, "person_not_found")
    for body in ({}, {"email": "nobody", "role": "member"}, {"email": "a@b.c", "role": "operator"}):
        assert (await ada.post(PEOPLE, json=body)).status_code == 400
    refused(await ada.get(PEOPLE, params={"cursor": "job_x"}), 400, "invalid_params")


async def test_only_an_owner_touches_owners(start):
    server = await start(WITH_ADMIN)
    await be(server, "ada@example.org", PersonRole.OWNER)
    eve = await be(server, "eve@example.org", PersonRole.ADMIN)
    for call in (
        eve.post(PEOPLE, json={"email": "new@example.org", "role": "owner"}),
        eve.patch(f"{PEOPLE}/eve@example.org", json={"role": "owner"}),
        eve.patch(f"{PEOPLE}/ada@example.org", json={"role": "viewer"}),
        eve.delete(f"{PEOPLE}/ada@example.org"),
    ):
        refused(await call, 403, "role_not_allowed")
    assert (await eve.post(PEOPLE, json={"email": "new@example.org", "role": "admin"})).status_code == 201


async def test_a_person_makes_rotates_and_revokes_keys_within_the_limits(start):
    server = await start(WITH_ADMIN)
    ada, bob = (
        await be(server, "ada@example.org", PersonRole.OWNER),
        await be(server, "bob@example.org", PersonRole.MEMBER),
    )
    assert (await ada.get(POLICY)).json() == {"object": "key_policy", "max_keys": 10, "max_budget": None}
    set_to = await ada.put(POLICY, json={"max_keys": 2, "max_budget": "5"})
    assert set_to.json() == {"object": "key_policy", "max_keys": 2, "max_budget": "5.00"}
    refused(await bob.post(KEYS, json={"budgets": [{"period": "month", "cap": "6"}]}), 409, "key_policy_exceeded")
    made = await bob.post(KEYS, json={"name": "notebook"})
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    assert [(each["period"], each["cap"]) for each in made.json()["budgets"]] == [("month", "5.00")]
    refused(await bob.post(KEYS, json={}), 409, "key_policy_exceeded")
    rotated = await bob.post(f"{KEYS}/{made.json()['public_id']}/rotate", json={"overlap_seconds": 0})
    assert rotated.status_code == 201
    async with client_of(server.url, rotated.json()["key"]) as new:
        assert (await new.get("/api/v1/person")).json()["email"] == "bob@example.org"
    assert (await bob.delete(f"{KEYS}/{rotated.json()['public_id']}")).status_code == 204
    await until_answered(server, rotated.json()["key"], 401, "revoked_api_key")
    own = (await bob.get(KEYS)).json()["data"]
    assert [each["status"] for each in own] == ["revoked", "expired", "active"]
    assert all(each["person_id"] == own[0]["person_id"] for each in own)


async def test_an_admin_makes_service_keys_and_revokes_any(start):
    server = await start(WITH_ADMIN)
    ada, bob = (
        await be(server, "ada@example.org", PersonRole.ADMIN),
        await be(server, "bob@example.org", PersonRole.MEMBER),
    )
    made = (await ada.post("/api/v1/account/keys", json={"name": "web", "endpoints": ["read"]})).json()
    assert (made["person_id"], made["endpoints"]) == (None, ["read"])
    every = {each["public_id"]: each for each in (await ada.get("/api/v1/account/keys")).json()["data"]}
    assert len(every) == 3
    assert all(not each["name"].startswith("Console of") for each in every.values())
    [own] = (await bob.get(KEYS)).json()["data"]
    refused(await ada.post(f"/api/v1/account/keys/{own['public_id']}/rotate"), 409, "key_not_rotatable")
    rotated = await ada.post(f"/api/v1/account/keys/{made['public_id']}/rotate", json={"overlap_seconds": 0})
    assert rotated.json()["lineage"] == made["public_id"]
    assert (await ada.delete(f"/api/v1/account/keys/{own['public_id']}")).status_code == 204
    refused(await bob.get(KEYS), 401, "revoked_api_key")


async def test_a_narrowed_key_does_not_stand_for_its_person(start):
    server = await start(WITH_ADMIN)
    ada = await be(server, "ada@example.org", PersonRole.OWNER)
    made = (await ada.post(KEYS, json={"endpoints": ["generate"]})).json()
    async with client_of(server.url, made["key"]) as narrow:
        assert (await narrow.get("/api/v1/jobs")).status_code == 200
        assert (await narrow.get("/api/v1/key")).json()["role"] == "owner"
        refused(await narrow.get(PEOPLE), 403, "scope_not_allowed")
        refused(await narrow.post(KEYS, json={}), 403, "scope_not_allowed")


async def test_who_leaves_loses_every_key_at_once_also_on_other_servers(start):
    first = await start(WITH_ADMIN)
    other = await start(WITH_ADMIN)
    ada = await be(first, "ada@example.org", PersonRole.OWNER)
    person, key = await enroll(first, "bob@example.org", PersonRole.MEMBER)
    _, elsewhere = await enroll(first, "bob@example.org", PersonRole.MEMBER, "weaver")
    await until_answered(other, key, 200)
    assert (await ada.patch(f"{PEOPLE}/{person.id}", json={"role": "billing"})).status_code == 200
    await until_answered(other, key, 403, "role_not_allowed")
    assert (await ada.patch(f"{PEOPLE}/{person.id}", json={"role": "member"})).status_code == 200
    await until_answered(other, key, 200)
    assert (await ada.delete(f"{PEOPLE}/{person.id}")).status_code == 204
    await until_answered(first, key, 401, "revoked_api_key")
    await until_answered(other, key, 401, "revoked_api_key")
    await until_answered(other, elsewhere, 200)
    assert (await ada.post(PEOPLE, json={"email": "bob@example.org", "role": "member"})).status_code == 201
    await until_answered(first, key, 401, "revoked_api_key")  # a key that has ended stays so


async def test_a_change_of_a_role_counts_before_other_servers_know_it(start):
    first, other = await start(WITH_ADMIN), await start(WITH_ADMIN)
    ada = await be(first, "ada@example.org", PersonRole.ADMIN)
    eve = await be(first, "eve@example.org", PersonRole.VIEWER)

    def end_rights(connection: Any) -> None:
        place = find_account(connection, "mill", 0.0)
        person, _ = people.get_member(connection, place.id, "ada@example.org")
        people.set_role(connection, "cli", person, place, PersonRole.MEMBER, 0.0)
        people.set_operator(connection, "cli", "eve@example.org", 0.0, is_operator=False)

    async with client_of(first.url, ADMIN_KEY) as admin:
        await admin.patch("/admin/v1/people/eve@example.org", json={"operator": True})
        assert (await ada.get("/api/v1/account/keys")).status_code == 200
        assert (await eve.get("/admin/v1/accounts")).status_code == 200
        await other.gateway.database.write(end_rights)
        refused(await ada.post("/api/v1/account/keys", json={"name": "outlives"}), 403, "role_not_allowed")
        assert (await eve.post("/admin/v1/accounts", json={"name": "weaver"})).status_code == 403
        names = [each["name"] for each in (await admin.get("/admin/v1/keys", params={"limit": 100})).json()["data"]]
    assert "outlives" not in names


async def test_an_operator_keeps_the_directory(start):
    server = await start(WITH_ADMIN)
    await enroll(server, "ada@example.org", PersonRole.OWNER)
    _, key = await enroll(server, "bob@example.org", PersonRole.MEMBER)
    async with client_of(server.url, ADMIN_KEY) as admin:
        body = {"email": "Eve@example.org", "name": "Eve", "operator": True}
        eve = (await admin.post("/admin/v1/people", json=body)).json()
        assert (eve["email"], eve["operator"], eve["accounts"]) == ("eve@example.org", True, [])
        refused(await admin.post("/admin/v1/people", json=body), 409, "person_exists")
        place = f"/admin/v1/people/{eve['id']}/accounts/mill"
        assert (await admin.put(place, json={"role": "viewer"})).json()["accounts"][0]["role"] == "viewer"
        assert (await admin.delete(place)).status_code == 204
        listed = (await admin.get("/admin/v1/people", params={"account": "mill"})).json()["data"]
        assert [each["email"] for each in listed] == ["bob@example.org", "ada@example.org"]
        gone = (await admin.patch("/admin/v1/people/bob@example.org", json={"active": False})).json()
        assert (gone["accounts"], gone["deactivated_at"] is None) == ([], False)
        await until_answered(server, key, 401, "revoked_api_key")
        refused(
            await admin.put("/admin/v1/people/bob@example.org/accounts/mill", json={"role": "owner"}),
            403,
            "role_not_allowed",
        )
        back = (await admin.patch(f"/admin/v1/people/{gone['id']}", json={"active": True})).json()
        assert (back["deactivated_at"], back["accounts"]) == (None, [])
        entries = (await admin.get("/admin/v1/audit", params={"limit": 100})).json()["data"]
    found = [entry["action"] for entry in reversed(entries) if entry["action"].startswith(("person", "member"))]
    assert found[-5:] == ["member.added", "member.removed", "member.removed", "person.deactivated", "person.activated"]


async def test_the_key_of_an_operator_administers_until_it_is_narrowed_or_the_person_is_none(start):
    server = await start(WITH_ADMIN)
    ada = await be(server, "ada@example.org", PersonRole.VIEWER)
    refused(await ada.get("/admin/v1/people"), 403, "scope_not_allowed")
    async with client_of(server.url, ADMIN_KEY) as admin:
        await admin.patch("/admin/v1/people/ada@example.org", json={"operator": True})
        made = await ada.post("/admin/v1/accounts", json={"name": "weaver"})
        assert made.status_code == 201
        [entry] = (await ada.get("/admin/v1/audit", params={"account": "weaver"})).json()["data"]
        assert entry["actor"].startswith("person_")
        refused(await ada.post(KEYS, json={}), 403, "role_not_allowed")  # inside the account, the role counts
        await admin.patch("/admin/v1/people/ada@example.org", json={"operator": False})
    refused(await ada.get("/admin/v1/people"), 403, "scope_not_allowed")


async def test_changes_at_the_same_time_all_hold(start):
    server = await start(WITH_ADMIN)
    ada = await be(server, "ada@example.org", PersonRole.OWNER)
    await ada.put(POLICY, json={"max_keys": 4})
    answers = await asyncio.gather(*(ada.post(KEYS, json={}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 5
