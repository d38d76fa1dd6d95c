"""Who administers: only the administrator's key, which opens nothing else, and counts as soon as it is set."""

import asyncio
import json
from pathlib import Path

import pytest
from admin_steps import ADMIN_KEY, JOBS, WITH_ADMIN, administer, make_account, make_key, use
from conftest import SIMULATOR, client_of
from steps import refused

from penstock.domain.api_keys import Scope, make_admin_key
from penstock.settings.tables import SettingsError, load
from penstock.store.queries.accounts import key_rows

NAMES = {
    "account_id": "default",
    "public_id": "nobody",
    "period": "day",
    "subject": "job_nobody",
    "person": "person_nobody",
    "session_id": "session_nobody",
    "account": "nobody",
    "name": "nobody",
    "version": "1",
    "price_id": "1",
}


async def test_every_path_wants_the_administrators_key(start):
    server = await start(WITH_ADMIN)
    callers = await server.new_key()
    nobody = await server.clients.enter_async_context(client_of(server.url, None))
    document = (await server.client.get("/openapi.json")).json()
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        if path.startswith("/admin/v1/")
        for method, operation in methods.items()
    ]
    assert len(operations) >= 22
    for method, path, operation in operations:
        assert operation["security"] == [{"admin_key": []}]
        for authorization, status, code in [
            (None, 401, "missing_api_key"),
            ("Bearer nothing like it", 401, "invalid_api_key"),
            (f"Bearer {ADMIN_KEY[:-1]}", 401, "invalid_api_key"),
            (f"Bearer {ADMIN_KEY}x", 401, "invalid_api_key"),
            (f"Basic {ADMIN_KEY}", 401, "invalid_api_key"),
            ("Bearer psk_nobody_nothing", 401, "invalid_api_key"),
            (f"Bearer {callers}", 403, "scope_not_allowed"),
        ]:
            headers = {} if authorization is None else {"authorization": authorization}
            answer = await nobody.request(method, path.format(**NAMES), headers=headers)
            refused(answer, status, code)
            assert (answer.headers.get("www-authenticate") == "Bearer") == (status == 401)


async def test_without_an_administrators_key_the_answer_says_how_to_set_one(start):
    server = await start(SIMULATOR)
    for authorization in ("", f"Bearer {ADMIN_KEY}", "Bearer"):
        answer = await server.client.get("/admin/v1/keys", headers={"authorization": authorization})
        error = refused(answer, 401, "missing_api_key")
        assert "PENSTOCK_ADMIN_KEY" in error["suggestion"]
    refused(await server.client.get("/admin/v1/keys"), 403, "scope_not_allowed")


async def test_the_administrators_key_opens_nothing_of_an_account(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    for path in (JOBS, "/api/v1/models", "/llm/models", "/api/v1/events"):
        refused(await admin.get(path), 401, "invalid_api_key")
    refused(await admin.post("/model/v1/generation", json={}), 401, "invalid_api_key")


async def test_a_reload_changes_the_administrators_key_at_once(start, tmp_path):
    server = await start(WITH_ADMIN)
    old = await administer(server)
    assert (await old.get("/admin/v1/accounts")).status_code == 200

    async def reload(toml: str) -> None:
        config = Path(tmp_path, "other.toml")
        await asyncio.to_thread(config.write_text, toml)
        await server.gateway.reload(load(config, {}, {"data": server.gateway.settings.data}))

    await reload(WITH_ADMIN.replace(ADMIN_KEY, "another-administrators-key"))
    refused(await old.get("/admin/v1/accounts"), 401, "invalid_api_key")
    async with client_of(server.url, "another-administrators-key") as new:
        assert (await new.get("/admin/v1/accounts")).status_code == 200
        await reload(SIMULATOR)
        refused(await new.get("/admin/v1/accounts"), 401, "missing_api_key")


async def test_a_key_says_what_it_is(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    described = (await admin.get("/api/v1/key")).json()
    assert (described["kind"], described["account"], described["public_id"]) == ("admin", None, None)
    own = (await server.client.get("/api/v1/key")).json()
    assert (own["kind"], own["account"]) == ("account", "default")
    async with client_of(server.url, await server.new_key(scopes=frozenset({Scope.CHAT}))) as chatting:
        assert (await chatting.get("/api/v1/key")).json()["endpoints"] == ["chat"]
    for wrong in ("psk_nobody_nothing", "psa_nobody", f"{ADMIN_KEY}x"):
        async with client_of(server.url, wrong) as nobody:
            refused(await nobody.get("/api/v1/key"), 401, "invalid_api_key")


async def test_the_key_that_the_first_start_made_administers_and_reads_metrics(start):
    server = await start(SIMULATOR)
    made = make_admin_key()
    await server.gateway.database.write(key_rows.keep_admin_key, made)
    elsewhere = {"x-forwarded-for": "192.0.2.1"}
    async with client_of(server.url, made) as admin:
        assert (await admin.get("/api/v1/key")).json()["kind"] == "admin"
        assert (await admin.get("/admin/v1/accounts")).status_code == 200
        assert (await admin.get("/metrics", headers=elsewhere)).status_code == 200
    async with client_of(server.url, make_admin_key()) as other:
        refused(await other.get("/api/v1/key"), 401, "invalid_api_key")
        refused(await other.get("/admin/v1/accounts"), 401, "invalid_api_key")
        refused(await other.get("/metrics", headers=elsewhere), 401, "invalid_api_key")


SHORT, LONG = "of-the-short-variable", "of-the-long-variable"


@pytest.mark.parametrize("environ", [{"PENSTOCK_ADMIN_KEY": SHORT}, {"PENSTOCK_SERVER_ADMIN_KEY": LONG}])
def test_either_variable_sets_it(environ, tmp_path):
    found = load(None, environ, {"data": tmp_path}).server.admin_key
    assert found is not None
    assert found.get_secret_value() == next(iter(environ.values()))
    both = load(None, {"PENSTOCK_ADMIN_KEY": SHORT, "PENSTOCK_SERVER_ADMIN_KEY": LONG}, {"data": tmp_path})
    assert both.server.admin_key.get_secret_value() == LONG
    assert both.secrets == {LONG}


@pytest.mark.parametrize("key", ["a", "seven77", "aaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababab"])
def test_a_key_that_can_be_guessed_is_refused_with_a_way_to_make_one(key, tmp_path):
    with pytest.raises(SettingsError) as refusal:
        load(None, {"PENSTOCK_ADMIN_KEY": key}, {"data": tmp_path})
    told = str(refusal.value)
    assert "PENSTOCK_ADMIN_KEY" in told
    assert "at least 8 characters" in told
    assert "openssl rand -hex 32" in told
    assert len(key) < 5 or key not in told


async def test_a_key_beyond_ascii_is_the_same_byte_for_byte(start):
    server = await start(WITH_ADMIN.replace(ADMIN_KEY, "schlüssel ☂ für alle"))
    headers = {"authorization": "Bearer schlüssel ☂ für alle".encode()}
    assert (await server.client.get("/admin/v1/accounts", headers=headers)).status_code == 200


async def test_no_secret_is_logged_or_listed(start, caplog):
    caplog.set_level("DEBUG")
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    issued = await make_key(admin)
    rotated = (await admin.post(f"/admin/v1/keys/{issued['public_id']}/rotate", json={"overlap_seconds": 5})).json()
    assert await use(server, issued["key"]) == (200, None)
    assert await use(server, rotated["key"]) == (200, None)
    await admin.get("/admin/v1/keys/wrong", headers={"x-note": ADMIN_KEY})
    told = [(await admin.get(f"/admin/v1/{path}")).text for path in ("keys", "accounts", "audit")]
    told += [(await admin.get(f"/admin/v1/keys/{key['public_id']}")).text for key in (issued, rotated)]
    logged = "\n".join(f"{record.getMessage()} {json.dumps(record.__dict__, default=str)}" for record in caplog.records)
    for secret in (issued["key"].split("_")[2], rotated["key"].split("_")[2], ADMIN_KEY):
        assert not any(secret in text for text in told)
        assert secret not in logged
    assert "/admin/v1/keys/wrong" in logged
    store = await asyncio.to_thread((server.gateway.settings.data / "penstock.db-wal").read_bytes)
    assert issued["key"].split("_")[2].encode() not in store
    assert ADMIN_KEY.encode() not in store
