"""API keys: which are taken, what each may do, how fast one ends, and that inventing them costs us nothing."""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
import pytest
from conftest import VIDEO, Server, client_of
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from penstock.domain import api_keys
from penstock.domain.api_keys import PREFIX, ApiKey, Scope
from penstock.errors import InvalidApiKey
from penstock.store.queries.accounts import key_rows

GENERATION = "/model/v1/generation"
JOBS = "/api/v1/jobs"
TEXT_TO_VIDEO = "vendorb_video_31"
SECRET = b"an installation's own secret"
NEVER = {"model": VIDEO, "input": [{"params": {"script": {"ending": "never"}}}]}


def refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert {"message", "type", "param"} <= set(error)
    assert response.headers["x-request-id"] == error["request_id"]
    assert response.headers["x-should-retry"] == str(error["retryable"]).lower()
    assert (response.headers.get("www-authenticate") == "Bearer") == (status == 401)
    return error


async def look(server: Server, authorization: str | bytes) -> httpx.Response:
    headers: Any = {"authorization": authorization}
    return await server.client.get(JOBS, headers=headers)


def store_of(server: Server) -> closing[sqlite3.Connection]:
    """The store, opened by someone else."""
    path = server.gateway.settings.data / "penstock.db"
    return closing(sqlite3.connect(path, isolation_level=None))


@contextmanager
def counted_reads(server: Server) -> Iterator[list[str]]:
    """Every statement that asks the store for a key, whoever sends it."""
    asked: list[str] = []

    def note(statement: str) -> None:
        if "FROM keys" in statement:
            asked.append(statement)

    def watch(driver: Any, *_: Any) -> None:
        driver.set_trace_callback(note)

    engine = server.gateway.database.engine
    event.listen(engine, "checkout", watch)
    yield asked
    event.remove(engine, "checkout", watch)


# -- who is let in


async def test_keys_that_are_not_there_or_not_right(server):
    key = await server.new_key()
    public_id, secret = key.removeprefix(PREFIX).split("_")
    stranger = f"{PREFIX}{'0' * 18}_{secret}"
    for authorization, code in [
        ("", "missing_api_key"),
        (key, "missing_api_key"),
        (f"Basic {key}", "missing_api_key"),
        ("Bearer", "invalid_api_key"),
        ("Bearer garbage", "invalid_api_key"),
        ("Bearer " + "x" * 50_000, "invalid_api_key"),
        ("Bearer sk-1234567890", "invalid_api_key"),
        (f"Bearer {key} {key}", "invalid_api_key"),
        (f"Bearer {key}x", "invalid_api_key"),
        (f"Bearer {key[:-1]}", "invalid_api_key"),
        (f"Bearer {key.upper()}", "invalid_api_key"),
        (f"Bearer {PREFIX}{public_id}", "invalid_api_key"),
        (f"Bearer {PREFIX}{public_id}_", "invalid_api_key"),
        (f"Bearer {PREFIX}{public_id}_{'0' * 38}", "invalid_api_key"),
        (f"Bearer {PREFIX}_{secret}", "invalid_api_key"),
        (f"Bearer {stranger}", "invalid_api_key"),
        (f"Bearer {key}".encode() + b"\xff", "invalid_api_key"),
        (f"Bearer {PREFIX}é{key}".encode(), "invalid_api_key"),
    ]:
        refused(await look(server, authorization), 401, code)


async def test_the_scheme_is_taken_in_any_case(server):
    key = await server.new_key()
    for authorization in (f"Bearer {key}", f"bearer {key}", f"BEARER {key}", f"Bearer   {key}"):
        assert (await look(server, authorization)).status_code == 200


async def test_every_path_of_the_api_wants_a_key(server):
    paths = [
        *(("POST", GENERATION), ("POST", f"/api/v1/{VIDEO}/generate"), ("GET", JOBS), ("GET", f"{JOBS}/job_x")),
        *(("DELETE", f"{JOBS}/job_x"), ("POST", f"{JOBS}/job_x/cancel"), ("GET", f"{JOBS}/job_x/events")),
        *(("GET", "/api/v1/events"), ("POST", "/api/v1/files"), ("GET", "/api/v1/files/file_x")),
        *(("DELETE", "/api/v1/files/file_x"), ("GET", "/api/v1/models"), ("GET", f"/api/v1/models/{VIDEO}")),
        *(("GET", f"{GENERATION}/job_x"), ("POST", f"{GENERATION}/job_x/cancel"), ("GET", "/api/v1/assets/a/b")),
        ("GET", "/api/v1/key"),
    ]
    async with client_of(server.url, None) as client:
        for method, path in paths:
            refused(await client.request(method, path), 401, "missing_api_key")


async def test_no_body_is_looked_at_before_the_key(server):
    async with client_of(server.url, None) as client:
        for content in (b"{", b"x" * 100_000):
            refused(await client.post(GENERATION, content=content), 401, "missing_api_key")


# -- how a key ends


async def test_an_expired_key_is_told_so(server):
    expired = await server.new_key(expires_at=time.time() - 1)
    refused(await look(server, f"Bearer {expired}"), 401, "expired_api_key")
    later = await server.new_key(expires_at=time.time() + 3600)
    assert (await look(server, f"Bearer {later}")).status_code == 200
    soon = await server.new_key(expires_at=time.time() + 0.5)
    await until_refused(server, soon, "expired_api_key")
    wrong = expired[:-4] + "0000"
    refused(await look(server, f"Bearer {wrong}"), 401, "invalid_api_key")


async def until_refused(server: Server, key: str, code: str) -> None:
    async with client_of(server.url, key) as client, asyncio.timeout(60):
        while (response := await client.get(JOBS)).status_code == 200:  # noqa: ASYNC110  nothing else tells
            await asyncio.sleep(0.01)
    refused(response, 401, code)


async def test_a_revoked_key_ends_soon(server):
    """Within a second, which `tests/unit/accounts/test_keyring.py` holds against a clock of its own."""
    key, other = await server.new_key(), await server.new_key()
    public_id = key.split("_")[1]
    assert (await look(server, f"Bearer {key}")).status_code == 200
    with store_of(server) as store:
        store.execute("UPDATE keys SET revoked_at = ? WHERE public_id = ?", (time.time(), public_id))
    await until_refused(server, key, "revoked_api_key")
    assert (await look(server, f"Bearer {other}")).status_code == 200
    assert await server.gateway.database.write(key_rows.revoke, other.split("_")[1], time.time())
    await until_refused(server, other, "revoked_api_key")


async def test_a_store_that_does_not_answer_is_not_a_wrong_key(server):
    key = await server.new_key()
    with store_of(server) as store:
        store.execute("ALTER TABLE keys RENAME TO away")
        response = await look(server, f"Bearer {key}")
        refused(response, 503, "store_unavailable")
        assert int(response.headers["retry-after"]) >= 1
        store.execute("ALTER TABLE away RENAME TO keys")
    assert (await look(server, f"Bearer {key}")).status_code == 200


# -- what inventing keys costs


async def test_invented_keys_never_reach_the_store(server):
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

    def invent(length: int) -> str:
        return "".join(secrets.choice(alphabet) for _ in range(length))

    with counted_reads(server) as asked:
        for number in range(5_000):
            authorization = f"Bearer {PREFIX}{invent(18)}_{invent(38)}"
            if number % 50:
                with pytest.raises(InvalidApiKey):
                    await server.gateway.keyring.check(authorization)
            else:
                refused(await look(server, authorization), 401, "invalid_api_key")
        assert asked == []
        assert (await look(server, f"Bearer {await server.new_key()}")).status_code == 200
        assert len(asked) == 1


async def test_one_key_costs_one_read_however_often_it_is_sent_at_once(server):
    signing_secret = await server.gateway.database.write(key_rows.signing_secret)
    never_stored = f"{PREFIX}{'_'.join(api_keys.make(signing_secret))}"
    key = await server.new_key()
    wrong = key[:-4] + "0000"
    for sent, status in ((never_stored, 401), (key, 200), (wrong, 401)):
        with counted_reads(server) as asked:
            async with client_of(server.url, sent) as client:
                responses = await asyncio.gather(*(client.get(JOBS) for _ in range(40)))
        assert {response.status_code for response in responses} == {status}
        assert len(asked) <= 1 + (sent != never_stored)  # a good one is asked for again after a moment


# -- what a key may do


async def test_scopes(server):
    job = (await server.client.post(GENERATION, json=NEVER)).json()
    looks = [("GET", JOBS), ("GET", f"{JOBS}/{job['id']}"), ("GET", "/api/v1/models"), ("GET", "/api/v1/events")]
    acts = [("POST", GENERATION), ("POST", f"{JOBS}/{job['id']}/cancel"), ("DELETE", f"{JOBS}/{job['id']}")]
    acts += [("POST", "/api/v1/files"), ("DELETE", "/api/v1/files/file_x")]
    for scopes, may in [
        ({Scope.GENERATE}, looks + acts),
        ({Scope.READ}, looks),
        ({Scope.CHAT}, []),
        ({Scope.READ, Scope.CHAT}, looks),
        (set(Scope), looks + acts),
        (set(), looks + acts),
    ]:
        client = await server.sign_in(scopes=frozenset(scopes))
        for method, path in looks + acts:
            response = await client.request(method, path)
            if (method, path) in may:
                assert response.status_code not in (401, 403), (scopes, method, path)
            else:
                error = refused(response, 403, "scope_not_allowed")
                assert all(scope in error["message"] for scope in scopes)


async def test_a_key_for_some_models_sees_and_uses_only_those(server):
    client = await server.sign_in(models=frozenset({VIDEO}))
    listed = (await client.get("/api/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == [VIDEO]
    assert (await client.get(f"/api/v1/models/{VIDEO}")).status_code == 200
    assert (await client.post(GENERATION, json=NEVER)).status_code == 202
    refused(await client.get(f"/api/v1/models/{TEXT_TO_VIDEO}"), 403, "model_not_allowed")
    body = {"model": TEXT_TO_VIDEO, "input": [{"params": {"prompt": "x"}}]}
    for path in (GENERATION, f"/api/v1/{TEXT_TO_VIDEO}/generate"):
        for extra in ({}, {"dry_run": True}):
            error = refused(await client.post(path, json=body | extra), 403, "model_not_allowed")
            assert error["param"] == "model"
    refused(await client.post(GENERATION, json=body | {"model": "nope"}), 404, "model_not_found")


async def test_what_another_account_has_is_not_there(server):
    job = await server.generate("sim_image_to_model", face_limit=100, script={})
    asset = job["outputs"][0]
    asset_path = httpx.URL(asset["url"]).path
    stranger = await server.sign_in("other")
    upload = await server.client.post("/api/v1/files", files={"file": ("a.png", await preview(server, job))})
    token = upload.json()["file_token"]
    for method, path, code in [
        ("GET", f"{JOBS}/{job['id']}", "job_not_found"),
        ("GET", f"{GENERATION}/{job['id']}", "job_not_found"),
        ("POST", f"{JOBS}/{job['id']}/cancel", "job_not_found"),
        ("DELETE", f"{JOBS}/{job['id']}", "job_not_found"),
        ("GET", f"{JOBS}/{job['id']}/events", "job_not_found"),
        ("GET", f"/api/v1/files/{token}", "file_not_found"),
        ("DELETE", f"/api/v1/files/{token}", "file_not_found"),
        ("GET", asset_path, "asset_not_found"),
    ]:
        nowhere = path.replace(job["id"], "job_x").replace(token, "file_x").replace(asset["id"], "asset_x")
        theirs, absent = [await stranger.request(method, each) for each in (path, nowhere)]
        assert refused(theirs, 404, code) | {"request_id": 0} == refused(absent, 404, code) | {"request_id": 0}
    assert (await stranger.get(JOBS)).json()["data"] == []
    assert (await stranger.get("/api/v1/events")).json()["data"] == []
    assert (await server.client.get(asset_path)).status_code == 200
    assert (await server.client.get(f"/api/v1/files/{token}")).status_code == 200
    assert (await server.client.get(f"{JOBS}/{job['id']}")).json()["status"] == "succeeded"


async def preview(server: Server, job: dict[str, Any]) -> bytes:
    return (await server.client.get(job["outputs"][1]["url"])).content


# -- the format

PLACES = st.integers(0, 200)
CHARACTERS = st.sampled_from("0123456789abcdefghjkmnpqrstvwxyzABCXYZ_- é\x00")


def opens(text: str, key: ApiKey) -> bool:
    """Whether the text would be taken for this key."""
    parsed = api_keys.parse(text, SECRET)
    return parsed is not None and parsed[0] == key.public_id and api_keys.hash_secret(parsed[1]) == key.secret_hash


def made() -> tuple[str, ApiKey]:
    public_id, secret = api_keys.make(SECRET)
    stored = ApiKey(
        public_id=public_id, account_id="a", account="a", name="", lineage="p", secret_hash=api_keys.hash_secret(secret)
    )
    return f"{PREFIX}{public_id}_{secret}", stored


def test_a_key_is_read_as_it_was_made():
    for _ in range(200):
        text, key = made()
        assert opens(text, key)
        assert api_keys.parse(text, b"another installation") is None
    assert len({made()[0] for _ in range(200)}) == 200


@given(place=PLACES, character=CHARACTERS, how=st.sampled_from(["replace", "insert", "remove", "swap", "case"]))
def test_no_changed_key_is_taken(place, character, how):
    text, key = made()
    at = place % len(text)
    head, tail = text[:at], text[at + 1 :]
    changed = {
        "replace": head + character + tail,
        "insert": head + character + text[at:],
        "remove": head + tail,
        "swap": head + tail[:1] + text[at] + tail[1:],
        "case": head + text[at].swapcase() + tail,
    }[how]
    assert opens(changed, key) == (changed == text)


@given(st.text() | st.text().map(lambda text: PREFIX + text) | st.text().map(lambda text: f"{PREFIX}{text}_{text}"))
def test_no_text_at_all_breaks_reading(text):
    assert api_keys.parse(text, SECRET) is None


def test_only_a_hash_of_the_secret_is_kept():
    text, key = made()
    assert text.split("_")[2].encode() not in key.secret_hash
    assert text.split("_")[2] not in repr(key)
