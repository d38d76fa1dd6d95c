"""Who and what requests were for: from every door, with sums in reports and budgets of tags."""

import asyncio
import csv
import io
from typing import Any

import anthropic
import httpx
import pytest
from admin_steps import ADMIN_KEY, administer, call, make_account, make_key
from chat_steps import HELLO, Chat, chatting
from conftest import MODEL, VIDEO, Server, Start, client_of
from openai_double import OpenAIDouble
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from plain import NO_TLS
from steps import order, refused

from penstock.domain.attribution.labels import Attribution
from penstock.domain.money import format_usd
from penstock.domain.usage import Completion
from penstock.store.queries.accounts import account_rows
from penstock.store.queries.billing import completion_rows
from penstock.store.queries.billing.ledger_audit import check
from penstock.web.openapi.usage_schemas import UsageStatement

CHAT = "/llm/chat/completions"
PRICE = 'price = {input_per_million = "1000", output_per_million = "1000"}'
COST = (PROMPT_TOKENS + len(pieces_of(GREETING))) * 1_000_000
"""Of one answer, in 10⁻⁹ USD."""
SETTINGS = f"""
[server]
admin_key = "{ADMIN_KEY}"
[vendors.sim]
type = "sim"
[[models]]
id = "{MODEL}"
vendor = "sim"
price = {{per_job = "0.30"}}
[[models]]
id = "{VIDEO}"
vendor = "sim"
[[models]]
id = "vectors"
kind = "embedding"
vendor = "upstream"
model = "unknown-to-the-double"
"""
SESSION = "9f8e7d6c-5b4a-4392-8170-6f5e4d3c2b1a"


@pytest.fixture
async def chat(start: Start):
    async with chatting(start, SETTINGS, scenarios=["plain", "slow:0.05"], price=PRICE) as chat:
        yield chat


async def ask(client: httpx.AsyncClient, headers: Any = None, **fields: Any) -> httpx.Response:
    body = {"model": "plain", "messages": HELLO, "max_tokens": 20, **fields}
    return await client.post(CHAT, json=body, headers=headers)


async def records_of(server: Server, account: str = "default") -> list[Completion]:
    """The account's usage records, oldest first."""
    await server.gateway.usage_writer.flush()
    database = server.gateway.database
    owner = await database.read(account_rows.find, account, server.gateway.clock())
    assert owner is not None
    return (await database.read(completion_rows.of_account, owner.id))[::-1]


async def usage(client: httpx.AsyncClient, **query: str) -> dict[str, Any]:
    response = await client.get("/api/v1/usage", params=query)
    assert response.status_code == 200, response.text
    UsageStatement.model_validate(response.json())
    return response.json()


# -- sources


@pytest.mark.parametrize(
    ("headers", "fields", "expected"),
    [
        ({}, {"metadata": {"tags": "red, blue"}, "user": "ada"}, Attribution(("red", "blue"), "ada")),
        ({}, {"metadata": {"tags": ["red", "blue"]}}, Attribution(("red", "blue"))),
        ({"x-penstock-tags": "red,é"}, {"metadata": {"tags": "blue"}}, Attribution(("red", "é", "blue"))),
        ({}, {"user": "ada", "safety_identifier": "hash"}, Attribution(end_user="hash")),
        ({"x-penstock-user": "eve"}, {"user": "ada"}, Attribution(end_user="eve")),
        ({"session_id": SESSION}, {}, Attribution(session=SESSION)),
        ({"x-opencode-session": "s", "x-session-id": "t"}, {}, Attribution(session="s")),
        ({"x-penstock-session": "own", "session-id": "codex"}, {}, Attribution(session="own")),
        ({}, {"user": "\x00\u202e"}, Attribution(end_user="\ufffd\ufffd~")),
        ({}, {"user": 7}, None),
        ({}, {"metadata": {"project": "x"}}, None),
    ],
)
async def test_sources_of_a_chat_request(chat: Chat, headers: Any, fields: Any, expected: Attribution | None):
    encoded = {name: value.encode() for name, value in headers.items()}
    for _ in range(3):  # a repeated head is parsed once
        assert (await ask(chat.server.client, encoded, **fields)).status_code == 200
    for record in await records_of(chat.server):
        if expected is not None and expected.end_user.endswith("~"):
            assert record.attribution is not None
            assert record.attribution.end_user.startswith(expected.end_user)
        else:
            assert record.attribution == expected
    sent = [seen.body for seen in chat.double.requests]
    tags = fields.get("metadata", {}).get("tags")
    joined = {**fields, "metadata": {"tags": "red,blue"}} if isinstance(tags, list) else fields
    assert [{name: body.get(name) for name in fields} for body in sent] == [joined] * 3


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("x-penstock-tags", b"a,b\xff", "should be UTF-8"),
        ("x-penstock-tags", b"a," + b"b" * 65, "1 to 64 printable characters"),
        ("x-penstock-tags", "a\u202eb".encode(), "printable"),
        ("x-penstock-tags", b",".join(b"%d" % number for number in range(9)), "at most 8 tags"),
        ("x-penstock-user", b"u" * 129, "1 to 128 printable characters"),
        ("x-penstock-session", "s\u200b".encode(), "1 to 128 printable characters"),
    ],
)
async def test_a_malformed_header_of_ours_is_refused(chat: Chat, name: str, value: bytes, words: str):
    response = await ask(chat.server.client, {name: value})
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert (error["param"], error["code"]) == (name, "invalid_value")
    assert words in error["message"]
    job = await chat.server.client.post("/model/v1/generation", json={"model": VIDEO}, headers={name: value})
    assert words in refused(job, 400, "invalid_value")["message"]
    assert chat.double.requests == []


async def test_the_other_doors_of_chat(chat: Chat):
    client, tags = chat.server.client, {"x-penstock-tags": "red"}
    packed = {"user_id": f"user_ab_account_cd_session_{SESSION}"}
    messages = {"model": "plain", "max_tokens": 20, "messages": HELLO, "metadata": packed}
    responses = {"model": "plain", "input": "hi", "safety_identifier": "ada", "metadata": {"tags": "red"}}
    for path, body, headers in (
        ("/v1/messages", messages, {}),
        ("/v1/messages", {**messages, "metadata": {}}, {"X-Claude-Code-Session-Id": SESSION, **tags}),
        ("/v1/responses", responses, {"session-id": SESSION}),
        ("/v1/embeddings", {"model": "vectors", "input": "hi", "user": "ada"}, tags),
    ):
        response = await client.post(path, json=body, headers=headers)
        assert response.status_code == (502 if "vectors" in body.values() else 200), response.text
    assert [record.attribution for record in await records_of(chat.server)] == [
        Attribution((), "cd", SESSION),
        Attribution(("red",), "", SESSION),
        Attribution(("red",), "ada", SESSION),
        Attribution(("red",), "ada"),
    ]


async def test_the_official_clients(chat: Chat):
    openai = await chat.sign_in(default_headers={"x-penstock-tags": "red"})
    await openai.chat.completions.create(model="plain", messages=HELLO, user="ada", metadata={"tags": "blue"})
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    async with anthropic.AsyncAnthropic(base_url=chat.server.url, api_key=chat.key, http_client=http) as claude:
        await claude.messages.create(model="plain", max_tokens=20, messages=HELLO, metadata={"user_id": "eve"})
    assert [record.attribution for record in await records_of(chat.server)] == [
        Attribution(("red", "blue"), "ada"),
        Attribution((), "eve"),
    ]


async def test_jobs_batches_pipelines_and_facades(server: Server):
    tags = {"x-penstock-tags": "red", "x-penstock-session": "s"}
    made = await order(server.client, {}, {}, metadata={"tags": ["blue", "red"], "note": "n"})
    assert [job["tags"] for job in made["jobs"]] == [["blue", "red"]] * 2
    assert made["jobs"][0]["metadata"] == {"tags": "blue,red", "note": "n"}
    step = {"name": "draw", "model": VIDEO, "params": {"prompt": "a boat"}}
    response = await server.client.post("/api/v1/pipelines", json={"steps": [step]}, headers=tags)
    assert response.status_code == 202, response.text
    failing = {**step, "params": {"prompt": "a boat", "script": {"latency": 0.01, "ending": "failed"}}}
    run = (await server.client.post("/api/v1/pipelines", json={"steps": [failing]}, headers=tags)).json()
    path = f"/api/v1/pipelines/{run['id']}"
    assert (await server.client.get(path, params={"wait": 60})).json()["status"] == "failed"
    again = await server.client.post(f"{path}/retry", json={})
    assert again.status_code == 202, again.text
    wish = {"model": "sim_text_to_image", "prompt": "a boat", "user": "ada"}
    assert (await server.client.post("/v1/images/generations", json=wish, headers=tags)).status_code == 200
    query = {"input": {"prompt": "a boat"}}
    response = await server.client.post(f"/replicate/v1/models/penstock/{VIDEO}/predictions", json=query, headers=tags)
    assert response.status_code in (201, 202), response.text
    response = await server.client.post(f"/fal/queue/penstock/{VIDEO}", json={"prompt": "a boat"}, headers=tags)
    assert response.status_code == 200, response.text
    jobs = (await server.client.get("/api/v1/jobs")).json()["data"]
    found = {(tuple(job["tags"]), job["end_user"], job["session"]) for job in jobs}
    assert found == {(("blue", "red"), None, None), (("red",), None, "s"), (("red",), "ada", "s")}
    assert len(jobs) == 8


async def test_hostile_headers_harm_nobody(chat: Chat):
    client = chat.server.client
    huge = await client.post(CHAT, json={}, headers={"x-penstock-tags": "a" * (1 << 20)})
    assert huge.status_code in (400, 431)
    for text in ("'; DROP TABLE completions; --", "%_\\", "{{7*7}}", "<script>", "other", "none"):
        assert (await ask(client, {"x-penstock-tags": text}, user=text)).status_code == 200
        await chat.server.gateway.usage_writer.flush()
        for dimension in ("tag", "end_user"):
            [line] = (await usage(client, by=dimension, **{dimension: text}))["data"]
            assert (line[dimension], line[f"{dimension}_part"], line["requests"]) == (text, "value", 1)
    both = [("x-penstock-tags", "one"), ("x-penstock-tags", "two")]
    await client.post(CHAT, json={"model": "plain", "messages": HELLO}, headers=both)
    assert (await records_of(chat.server))[-1].attribution == Attribution(("one", "two"))


# -- reports


async def test_reports_of_an_account(chat: Chat):
    client, stranger = chat.server.client, await chat.server.sign_in("other")
    for tags, user in (("red", "ada"), ("red,=1+1", "eve"), ("", "ada"), ("", "")):
        assert (await ask(client, {"x-penstock-tags": tags} if tags else None, user=user)).status_code == 200
    await ask(stranger, {"x-penstock-tags": "red"}, user="ada")
    await chat.server.gateway.usage_writer.flush()
    told = await usage(client, by="tag")
    lines = [(line["tag"], line["tag_part"], line["requests"], line["cost"]) for line in told["data"]]
    once, twice = format_usd(COST), format_usd(2 * COST)
    assert lines == [("red", "value", 2, twice), ("=1+1", "value", 1, once), ("", "none", 2, twice)]
    assert (told["total"]["requests"], told["total"]["cost"]) == (4, format_usd(4 * COST))
    told = await usage(client, by="end_user", top="1")
    lines = [(line["end_user"], line["end_user_part"], line["requests"]) for line in told["data"]]
    assert lines == [("ada", "value", 2), ("other", "other", 1), ("", "none", 1)]
    response = await client.get("/api/v1/usage", params={"by": "tag", "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [(row["tag"], row["tag_part"]) for row in rows] == [("red", "value"), ("'=1+1", "value"), ("", "none")]
    admin = await administer(chat.server)
    found = (await admin.get("/admin/v1/usage", params={"by": "account,tag", "tag": "red"})).json()["data"]
    assert sorted((line["account"], line["requests"]) for line in found) == [("default", 2), ("other", 1)]


# -- fixed tags and budgets


async def test_fixed_tags_of_a_key_cannot_be_removed(chat: Chat):
    admin = await administer(chat.server)
    await make_account(admin)
    made = await make_key(admin, tags=["team-a", "team-a", "prod"])
    assert made["tags"] == ["team-a", "prod"]
    async with client_of(chat.server.url, made["key"]) as client:
        await ask(client, {"x-penstock-tags": "x"}, metadata={"tags": ",".join("abcdefghij")})
        turned = await call(admin, "POST", f"/keys/{made['public_id']}/rotate", {}, 201)
        assert turned["tags"] == ["team-a", "prod"]
    [record] = await records_of(chat.server, "mill")
    assert record.attribution is not None
    assert record.attribution.tags == ("team-a", "prod", "x", *"abcdefg")
    changed = await call(admin, "PATCH", f"/keys/{turned['public_id']}", {"tags": None})
    assert changed["tags"] == []
    await call(admin, "PATCH", f"/keys/{turned['public_id']}", {"tags": ["a,b"]}, 400)
    await call(admin, "PATCH", f"/keys/{turned['public_id']}", {"tags": [str(number) for number in range(9)]}, 400)


async def test_a_tag_budget_bounds_chat_and_jobs_of_all_keys(chat: Chat):
    admin, path = await administer(chat.server), "/accounts/default/tag-budgets"
    body = {"tag": "red", "period": "month", "cap": format_usd(2 * COST + 300_000_000), "time_zone": "Europe/Berlin"}
    told = await call(admin, "PUT", path, body)
    assert (told["of"], told["tag"], told["spent"]) == ("tag", "red", "0.00")
    second, stranger = await chat.server.sign_in(), await chat.server.sign_in("other")
    await chat.server.gateway.keyring.learn_changes()
    red = {"x-penstock-tags": "blue,red"}
    job = {"model": MODEL, "input": [{"params": {"script": {"ending": "never"}}}]}
    assert (await second.post("/model/v1/generation", json=job, headers=red)).status_code == 202
    response = await second.post("/model/v1/generation", json=job, headers=red)
    error = refused(response, 402, "insufficient_budget")
    assert "the tag `red`'s budget" in error["message"]
    assert (error["of"], error["tag"], error["held"]) == ("tag", "red", "0.30")
    assert error["resets_at"]
    assert [(await ask(second, red)).status_code for _ in range(4)][-1] == 402
    spoken = await second.post(
        "/v1/messages", json={"model": "plain", "max_tokens": 90, "messages": HELLO}, headers=red
    )
    assert spoken.status_code == 402
    assert "`red`" in spoken.json()["error"]["message"]
    assert (await ask(second)).status_code == (await ask(stranger, red)).status_code == 200
    feed = (await second.get("/api/v1/events")).json()["data"]
    assert {event["data"]["tag"] for event in feed if event["type"] == "budget.threshold"} == {"red"}
    [listed] = (await call(admin, "GET", path))["data"]
    assert [each for each in (await usage(second))["budgets"] if each["of"] == "tag"] == [listed]
    assert await chat.server.gateway.database.read(check) == []
    response = await admin.delete(f"/admin/v1{path}", params={"tag": "red", "period": "month"})
    assert response.status_code == 204
    response = await admin.delete(f"/admin/v1{path}", params={"tag": "red", "period": "month"})
    assert refused(await admin.delete(f"/admin/v1{path}", params={"tag": "red"}), 400, "invalid_params")
    assert "tag `red` of the account `default`" in refused(response, 404, "budget_not_found")["message"]
    actions = (await admin.get("/admin/v1/audit")).json()["data"][:2]
    assert [(each["action"], each["detail"]["tag"]) for each in actions] == [
        ("budget.removed", "red"),
        ("budget.set", "red"),
    ]


async def test_a_crowd_never_passes_the_budget_of_a_tag_on_two_gateways(start: Start):
    async with OpenAIDouble() as double:
        toml = (
            f'{SETTINGS}[vendors.upstream]\ntype = "openai_compatible"\napi_key = "{double.key}"\n'
            f'base_url = "{double.url}"\n[[models]]\nid = "plain"\nkind = "chat"\nvendor = "upstream"\n{PRICE}\n'
        )
        first, second = await start(toml), await start(toml)
        admin = await administer(first)
        cap = 1_000_000_000
        await call(admin, "PUT", "/accounts/default/tag-budgets", {"tag": "red", "period": "total", "cap": "1"})
        for server in (first, second):
            await server.gateway.keyring.learn_changes()
        clients = [first.client, second.client]
        answers = await asyncio.gather(*(ask(clients[n % 2], {"x-penstock-tags": "red"}) for n in range(200)))
        good = sum(answer.status_code == 200 for answer in answers)
        assert {answer.status_code for answer in answers} == {200, 402}
        assert good * COST <= cap
        for server in (first, second):
            await server.gateway.usage_writer.flush()
            await server.gateway.admission.give_back()
        [told] = (await call(admin, "GET", "/accounts/default/tag-budgets"))["data"]
        assert (told["spent"], told["held"]) == (format_usd(good * COST), "0.00")
        assert await first.gateway.database.read(check) == []
