"""The content log at every door: what is kept, what is redacted, who may read it, and when it is gone."""

import asyncio
import base64
import json
import os
import secrets
from typing import Any

import httpx
import psycopg
import pytest
from conftest import client_of
from content_steps import ACCOUNT, CARD, MAIL, OPENAI_KEY, SECRETS, logging, sign_in, switch, texts_of
from people_steps import ADMIN_KEY, be, enroll
from psycopg.sql import SQL, Identifier
from sqlalchemy import delete

from penstock.domain.people.roles import PersonRole
from penstock.store.people_tables import memberships
from penstock.store.queries.chat import content_rows

SPLIT = "".join(f"\\u{ord(sign):04x}" for sign in OPENAI_KEY)
"""A key of which no part stands in the request as it is sent."""
PICTURE = base64.b64encode(b"a picture of somebody").decode()
ASKED = f"My key is {OPENAI_KEY}, my mail {MAIL}, my card {CARD}"
ANSWERED = "You said: My key is [redacted:api_key], my mail [redacted:email], my card [redacted:card]. Call"


def doors(text: str, *, stream: bool) -> dict[str, tuple[str, dict[str, Any]]]:
    """A request by each door of chat."""
    common = {"model": "talker", "stream": stream}
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    return {
        "chat": ("/llm/chat/completions", {**common, "messages": messages}),
        "messages": ("/v1/messages", {**common, "max_tokens": 100, "system": "Be kind.", "messages": messages}),
        "responses": ("/v1/responses", {**common, "instructions": "Be kind.", "input": text}),
    }


@pytest.mark.parametrize("dialect", ["chat", "anthropic", "responses"])
async def test_every_door_keeps_the_conversation_without_its_secrets(start, dialect):
    async with logging(start, dialect) as logged:
        wanted: list[str] = []
        for stream in (False, True):
            for door, (path, body) in doors(ASKED, stream=stream).items():
                answer = await logged.client.post(path, json=body)
                assert answer.status_code == 200, answer.text
                assert OPENAI_KEY.split("-")[0] in answer.text  # the caller gets everything
                wanted.append(door)
        found = await logged.records(len(wanted))
    assert sorted(each["endpoint"] for each in found) == sorted(wanted)
    for record in found:
        assert ANSWERED in texts_of(record["output"])
        assert texts_of(record["input"]).startswith("My key is [redacted:api_key]")
        assert record["redactions"] == {"api_key": 3, "email": 3, "card": 3}
        assert record["status"] == "ok"
        assert record["prompt_tokens"] > 0
        assert record["completion_tokens"] > 0
        assert (record["model"], record["vendor"]) == ("talker", "scripted")
        assert [part["content"] for part in record["instructions"]] in ([], ["Be kind."])
        assert not [secret for secret in SECRETS if secret in json.dumps(record)]


async def test_secrets_behind_escapes_in_calls_and_in_files_are_not_kept(start):
    async with logging(start) as logged:
        body = (
            '{"model": "talker", "messages": [{"role": "user", "content": [{"type": "text", "text": "KEY"}, '
            '{"type": "image_url", "image_url": {"url": "data:image/png;base64,PICTURE"}}]}, '
            '{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", '
            '"function": {"name": "send", "arguments": "{\\"KEYS\\": \\"MAIL\\"}"}}]}, '
            '{"role": "tool", "tool_call_id": "1", "content": "sent to MAIL"}], '
            '"tools": [{"type": "function", "function": '
            '{"name": "send", "description": "for MAIL", "parameters": {}}}]}'
        )
        body = body.replace("KEYS", SPLIT.replace("\\", "\\\\")).replace("KEY", SPLIT)
        body = body.replace("MAIL", MAIL).replace("PICTURE", PICTURE)
        headers = {"content-type": "application/json"}
        answer = await logged.client.post("/llm/chat/completions", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        [record] = await logged.records(1)
    user, call, result, tools = record["input"]
    assert [part["type"] for part in user["parts"]] == ["text", "file"]
    assert user["parts"][0]["content"] == "[redacted:api_key]"
    assert user["parts"][1]["bytes"] == len(b"a picture of somebody")
    assert call["parts"][0]["name"] == "send"
    assert call["parts"][0]["arguments"] == '{"[redacted:api_key]": "[redacted:email]"}'
    assert result["parts"][0]["response"] == "sent to [redacted:email]"
    assert tools["role"] == "tools"
    written = json.dumps(record)
    assert not [secret for secret in (*SECRETS, PICTURE) if secret in written]


async def test_a_stream_that_breaks_off_is_kept_as_far_as_it_came(start):
    async with logging(start) as logged:
        with pytest.raises(httpx.RemoteProtocolError):
            await logged.ask("please be cut " + "off " * 100, stream=True)
        [record] = await logged.records(1)
    assert record["status"] == "cut"
    assert record["error"]
    assert texts_of(record["output"]).startswith("You said: please be cut off off")


async def test_a_generation_goes_with_its_job(start):
    async with logging(start) as logged:
        body = {"model": "sim_text_to_video", "input": [{"params": {"prompt": f"a letter to {MAIL}"}}]}
        job = (await logged.client.post("/model/v1/generation", json=body)).json()
        [record] = await logged.records(1)
        assert (record["kind"], record["job_id"], record["status"]) == ("generation", job["id"], "accepted")
        text = {"type": "text", "content": "a letter to [redacted:email]"}
        assert {"role": "prompt", "parts": [text]} in record["input"]
        while not (await logged.client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 60})).json()["done"]:
            pass
        assert (await logged.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
        assert (await logged.reader.get(f"/api/v1/content/{record['id']}")).status_code == 404


async def test_nothing_is_kept_unless_settings_and_account_or_key_say_so(start):
    async with logging(start) as logged:
        server = logged.server
        quiet = await sign_in(server, content_log=False)
        assert (await quiet.get("/api/v1/key")).json()["content_log"] is False
        assert (await logged.client.get("/api/v1/key")).json()["content_log"] is True
        for client in (quiet, logged.client):
            body = {"model": "talker", "messages": [{"role": "user", "content": "hello"}]}
            assert (await client.post("/llm/chat/completions", json=body)).status_code == 200
        [only] = await logged.listed(1)
        assert only["key_id"] == (await logged.client.get("/api/v1/key")).json()["public_id"]
    async with logging(start, toml="") as logged:  # the same store: the account still has it on
        assert (await logged.client.get("/api/v1/key")).json()["content_log"] is False
        assert (await logged.ask("nothing of this")).status_code == 200
        await logged.server.gateway.content_log.flush()
        assert len(await logged.listed(0)) == 1


async def test_administrators_switch_it_and_the_audit_log_has_it(start):
    async with logging(start) as logged:
        server = logged.server
        admin = await server.clients.enter_async_context(client_of(server.url, ADMIN_KEY))
        made = (await admin.post("/admin/v1/accounts", json={"name": "mill", "content_log": True})).json()
        assert made["content_log"] is True
        key = (await admin.post("/admin/v1/keys", json={"account": "mill"})).json()
        assert (key["content_log"], key["logs_content"]) == (None, True)
        changed = await admin.patch(f"/admin/v1/keys/{key['public_id']}", json={"content_log": False})
        assert (changed.json()["content_log"], changed.json()["logs_content"]) == (False, False)
        assert (await admin.patch("/admin/v1/accounts/mill", json={"content_log": False})).json()[
            "content_log"
        ] is False
        found = (await admin.get("/admin/v1/audit", params={"account": "mill"})).json()["data"]
        assert [each["action"] for each in found[:2]] == ["account.logged", "key.changed"]
        assert found[0]["detail"] == {"content_log": {"from": True, "to": False}}
        assert found[1]["detail"] == {"content_log": {"from": None, "to": False}}


async def test_only_owners_and_admins_of_the_account_read_it_and_each_look_is_noted(start):
    async with logging(start) as logged:
        server = logged.server
        assert (await logged.ask("hello")).status_code == 200
        [listed] = await logged.listed(1)
        assert "input" not in listed
        place = f"/api/v1/content/{listed['id']}"
        for role in (PersonRole.MEMBER, PersonRole.VIEWER, PersonRole.BILLING):
            other = await be(server, f"{role}@example.org", role, ACCOUNT)
            assert (await other.get("/api/v1/content")).status_code == 403
            assert (await other.get(place)).status_code == 403
            assert (await other.delete(place)).status_code == 403
            assert (await other.delete("/api/v1/content")).status_code == 403
        operator = await server.clients.enter_async_context(client_of(server.url, ADMIN_KEY))
        for client in (logged.client, operator):
            assert (await client.get(place)).status_code in (401, 403)
        stranger = await be(server, "stranger@example.org", PersonRole.OWNER, "mill")
        assert (await stranger.get(place)).status_code == 404
        assert (await stranger.delete(place)).status_code == 404
        assert (await stranger.get("/api/v1/content")).json()["data"] == []
        person, key = await enroll(server, "admin@example.org", PersonRole.ADMIN, ACCOUNT)
        admin = await server.clients.enter_async_context(client_of(server.url, key))
        assert (await admin.get(place)).headers["cache-control"] == "no-store"
        entries = (await operator.get("/admin/v1/audit", params={"action": "content.read"})).json()["data"]
        assert [(each["actor"], each["subject"]) for each in entries] == [(person.id, listed["id"])]
        narrowed = await server.gateway.database.write(_leave, person.id)
        assert narrowed
        server.gateway.keyring.forget()
        assert (await admin.get(place)).status_code in (401, 403)


def _leave(connection: Any, person_id: str) -> bool:
    return connection.execute(delete(memberships).where(memberships.c.person_id == person_id)).rowcount > 0


async def test_records_are_filtered_paged_and_deleted(start):
    async with logging(start) as logged:
        other = await sign_in(logged.server)
        other_id = (await other.get("/api/v1/key")).json()["public_id"]
        for text in ("one", "two", "three"):
            assert (await logged.ask(text)).status_code == 200
        body = {"model": "talker", "messages": [{"role": "user", "content": "four"}]}
        await other.post("/llm/chat/completions", json=body)
        newest = await logged.listed(4)
        assert [each["id"] for each in newest] == sorted((each["id"] for each in newest), reverse=True)
        first = (await logged.reader.get("/api/v1/content", params={"limit": 3})).json()
        assert (len(first["data"]), first["has_more"]) == (3, True)
        rest = (await logged.reader.get("/api/v1/content", params={"cursor": first["next_cursor"]})).json()
        assert [each["id"] for each in first["data"] + rest["data"]] == [each["id"] for each in newest]
        assert len(await logged.listed(1, key=other_id)) == 1
        assert await logged.listed(0, model="nothing") == []
        assert await logged.listed(0, created_after="2099-01-01T00:00:00Z") == []
        assert (await logged.reader.get("/api/v1/content", params={"cursor": "job_1"})).status_code == 400
        place = f"/api/v1/content/{newest[0]['id']}"
        assert (await logged.reader.delete(place)).status_code == 204
        assert (await logged.reader.delete(place)).status_code == 404
        gone = await logged.reader.delete("/api/v1/content")
        assert gone.json() == {"object": "content_deletion", "deleted": 3}
        assert await logged.listed(0) == []


async def test_retention_quota_and_a_closed_account_remove_records(start):
    toml = '[content_log]\nretention = "7d"\nquota_mb = 1\nmax_record_kb = 1024\n'
    async with logging(start, toml=toml) as logged:
        server, upkeep = logged.server, logged.server.gateway.upkeep
        database = server.gateway.database
        noise = [base64.b64encode(os.urandom(400_000)).decode() for _ in range(3)]  # it cannot be compressed
        for text in noise:
            assert (await logged.ask(" ".join(text[at : at + 60] for at in range(0, len(text), 60)))).status_code == 200
            await server.gateway.content_log.flush()
        kept = await logged.listed(1)
        assert sum(each["bytes"] for each in kept) <= 1 << 20
        assert len(kept) < len(noise)
        await database.write(content_rows.remove_old, server.gateway.clock() + 8 * 86_400, 0.0, 100)
        assert await logged.listed(0) == []
        assert (await logged.ask("once more")).status_code == 200
        assert await logged.listed(1)
        await switch(server, is_on=True)
        admin = await server.clients.enter_async_context(client_of(server.url, ADMIN_KEY))
        assert (await admin.patch(f"/admin/v1/accounts/{ACCOUNT}", json={"closed": True})).status_code == 200
        await upkeep.sweep()
        assert (await admin.patch(f"/admin/v1/accounts/{ACCOUNT}", json={"closed": False})).status_code == 200
        assert await logged.listed(0) == []


MARK = "The mole meets at midnight under the Karlsbruecke"


async def test_no_file_has_a_prompt_or_an_answer_in_clear(start, tmp_path):
    async with logging(start) as logged:
        for stream in (False, True):
            assert (await logged.ask(MARK, stream=stream)).status_code == 200
        body = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "a quiet town"}}]}
        await logged.client.post("/model/v1/generation", json=body)
        found = await logged.records(3)
        assert MARK in json.dumps(found)
        assert any((tmp_path / "data").rglob("*.db*"))
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"Karlsbruecke" in path.read_bytes()]


async def test_postgresql_has_nothing_in_clear_either(start, postgres_server, postgres_store_url):
    overrides = {"database_url": postgres_store_url, "sealing.master_key": secrets.token_hex(32)}
    async with logging(start, overrides=overrides) as logged:
        assert (await logged.ask(MARK, stream=True)).status_code == 200
        assert MARK in json.dumps(await logged.records(1))
        dump = await asyncio.to_thread(_dump, postgres_store_url)
    assert b"talker" in dump
    assert b"Karlsbruecke" not in dump


def _dump(url: str) -> bytes:
    """Every row of every table, as a backup has them."""
    found = b""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            statement = SQL("COPY {} TO STDOUT (FORMAT binary)").format(Identifier(table))
            with connection.cursor().copy(statement) as copied:
                found += b"".join(bytes(piece) for piece in copied)
    return found
