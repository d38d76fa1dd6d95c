"""The content log in trouble: floods, huge and odd prompts, no key, no store. Requests go on, and memory is bounded."""

import asyncio
import re
import secrets
from dataclasses import replace

from conftest import client_of
from content_steps import LOG, MAIL, OPENAI_KEY, Logged, logging, sign_in, switch, texts_of
from log_receiver import LogReceiver
from people_steps import ADMIN_KEY, be

from penstock.accounts import administration
from penstock.domain.people.roles import PersonRole
from penstock.sealing import data_keys

MIB = 1 << 20


async def measure(logged: Logged, name: str) -> float:
    """The sum of a metric's values."""
    admin = await logged.server.clients.enter_async_context(client_of(logged.server.url, ADMIN_KEY))
    page = (await admin.get("/metrics")).text
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE))


async def test_a_flood_while_the_store_is_away_hurts_nobody(start, postgres_server, postgres_store_url):
    overrides = {"database_url": postgres_store_url, "sealing.master_key": secrets.token_hex(32)}
    toml = f"{LOG}\n[chat]\noutage_seconds = 600\n"
    async with logging(start, toml=toml, overrides=overrides) as logged:
        await logged.server.gateway.database.write(
            administration.create_account, "cli", "quiet", logged.server.gateway.clock(), content_log=True
        )
        quiet = await sign_in(logged.server, "quiet")
        reader = await be(logged.server, "quiet@example.org", PersonRole.OWNER, "quiet")
        body = {"model": "talker", "messages": [{"role": "user", "content": "hello"}]}
        await logged.server.gateway.keyring.learn_changes()
        assert (await logged.ask("hello")).status_code == 200  # both keys are known before the outage
        assert (await quiet.post("/llm/chat/completions", json=body)).status_code == 200
        await logged.listed(1)
        dropped = await measure(logged, "penstock_content_records_dropped_total")
        with postgres_server.frozen():
            flood = [asyncio.create_task(logged.ask("x" * (2 * MIB))) for _ in range(30)]
            answers = await asyncio.gather(*flood)
            assert {answer.status_code for answer in answers} == {200}, answers[0].text
            assert (await quiet.post("/llm/chat/completions", json=body)).status_code == 200
            assert await measure(logged, "penstock_content_held_bytes") <= 42 * MIB
            assert await measure(logged, "penstock_content_records_dropped_total") > dropped
        await replace(logged, reader=reader).listed(2)
        await logged.listed(2)
        await logged.server.gateway.content_log.flush()
        assert await measure(logged, "penstock_content_held_bytes") == 0


async def test_without_a_master_key_requests_go_on(start, postgres_store_url):
    async with logging(start, overrides={"database_url": postgres_store_url}) as logged:
        before = await measure(logged, "penstock_content_records_dropped_total")
        for text in ("one", "two"):
            assert (await logged.ask(text)).status_code == 200
            await logged.server.gateway.content_log.flush()
        assert await measure(logged, "penstock_content_records_dropped_total") == before + 2
        assert await logged.listed(0) == []


async def test_huge_and_odd_prompts(start):
    async with logging(start) as logged:
        long = f"{MAIL} " + "word " * (2 * MIB)
        assert (await logged.ask(long)).status_code == 200
        assert (await logged.ask("a\0b \U0001f600 \ufffe")).status_code == 200
        half = '{"model": "talker", "messages": [{"role": "user", "content": "\\ud83d"}]}'
        headers = {"content-type": "application/json"}
        refused = await logged.client.post("/llm/chat/completions", content=half, headers=headers)
        assert refused.status_code == 400
        huge, odd = await logged.records(2)
    assert huge["truncated"] is True
    assert texts_of(huge["input"]).startswith("[redacted:email] word word")
    assert len(texts_of(huge["input"])) <= 256 << 10
    assert texts_of(odd["input"]) == "a\ufffdb \U0001f600 \ufffe"


async def test_patterns_of_the_operator_and_a_rotated_master_key(start, tmp_path):
    toml = f'{LOG}patterns = ["EMP-[0-9]{{6}}"]\nredact = []\n'
    async with logging(start, toml=toml) as logged:
        assert (await logged.ask(f"I am EMP-123456, {MAIL}")).status_code == 200
        [record] = await logged.records(1)
        assert texts_of(record["input"]) == f"I am [redacted:pattern], {MAIL}"
        folder = logged.server.gateway.settings.data
    key = (folder / "master-key").read_text().strip()
    toml = f'[sealing]\nmaster_key = "{secrets.token_hex(32)}"\nprevious_key = "{key}"\n{toml}'
    async with logging(start, toml=toml) as logged:
        rotated = await logged.server.gateway.database.write(_rotate, logged.server.gateway)
        assert rotated
        [record] = await logged.records(1)
        assert texts_of(record["input"]) == f"I am [redacted:pattern], {MAIL}"


def _rotate(connection, gateway):
    return data_keys.rotate(connection, gateway._master_keys())


async def test_the_export_has_redacted_content_of_accounts_with_the_log_only(start, monkeypatch):
    with LogReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", f"{receiver.url}/v1/logs")
        monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "50")
        async with logging(start, toml=f'{LOG}export = "otlp"\n') as logged:
            await switch(logged.server, is_on=False)
            assert (await logged.ask("not for the log")).status_code == 200
            await switch(logged.server, is_on=True)
            body = {
                "model": "talker",
                "max_tokens": 100,
                "system": "Be kind.",
                "messages": [{"role": "user", "content": f"write to {MAIL}"}],
                "stream": True,
            }
            assert (await logged.client.post("/v1/messages", json=body)).status_code == 200
            [event] = await receiver.collect(1)
            [record] = await logged.records(1)
    assert (event.name, event.severity) == ("gen_ai.client.inference.operation.details", 5)
    assert event.resource["service.name"] == "penstock"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "talker",
        "gen_ai.system_instructions": [{"type": "text", "content": "Be kind."}],
        "gen_ai.input.messages": [
            {"role": "user", "parts": [{"type": "text", "content": "write to [redacted:email]"}]}
        ],
        "gen_ai.output.messages": record["output"],
        "gen_ai.response.finish_reasons": ["end_turn"],
        "penstock.content.id": record["id"],
    }
    assert {name: event.facts.get(name) for name in expected} == expected
    sent = b"".join(receiver.bodies)
    assert not [text for text in (MAIL, OPENAI_KEY, "not for the log") if text.encode() in sent]
