"""What an account used, over HTTP: the sums are those of its jobs and chat requests, and only its own."""

import asyncio
import csv
import io
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from chat_steps import HELLO
from conftest import MODEL, VIDEO, Server, Start
from openai_double import KEY, OpenAIDouble
from plain import NO_TLS
from steps import FAILS, order, refused
from store.sample_completions import make_completion

from penstock.billing.usage_report import NAMES
from penstock.domain.api_keys import Scope
from penstock.domain.budgets import Budget, Period
from penstock.domain.money import parse_usd
from penstock.domain.usage import Completion
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import budget_rows, completion_rows, usage_rows
from penstock.web.openapi.usage_schemas import UsageStatement

GROUPS = ("day", "month", "model", "key", "vendor", "kind")
COUNTS = (
    *("requests", "jobs", "failed", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("total_tokens", "estimated", "unpriced", "cache_write_tokens"),
)
SETTINGS = """
[vendors.sim]
type = "sim"
[[models]]
id = "sim_text_to_video"
vendor = "sim"
price = {per_job = "0.40"}
[[models]]
id = "sim_image_to_model"
vendor = "sim"
[[models]]
id = "plain"
kind = "chat"
vendor = "upstream"
price = {input_per_million = "0.15", cached_input_per_million = "0.075", output_per_million = "0.60"}
[[models]]
id = "no-usage"
kind = "chat"
vendor = "upstream"
[[models]]
id = "status:500"
kind = "chat"
vendor = "upstream"
"""


async def usage(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    """A statement, in the shape that the reference tells."""
    response = await client.get("/api/v1/usage", params=query)
    assert response.status_code == 200, response.text
    told = response.json()
    UsageStatement.model_validate(told)
    assert set(told) == {"object", "from", "to", "by", "currency", "data", "total", "budgets", "storage"}
    return told


def today() -> str:
    return datetime.now(UTC).date().isoformat()


async def write(server: Server, *records: Completion) -> None:
    """Count records as if they had been served."""
    await server.gateway.database.write(usage_rows.add, usage_rows.of_completions(records))


async def account_of(server: Server, name: str = "default") -> str:
    return await server.gateway.database.write(key_rows.account_id, name, time.time())


# -- chat and jobs


@asynccontextmanager
async def serving(start: Start) -> AsyncGenerator[Server]:
    async with OpenAIDouble() as double:
        vendor = f'[vendors.upstream]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n'
        yield await start(SETTINGS + vendor)


async def work(
    client: httpx.AsyncClient, *, chats: Sequence[str], scripts: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    for model in chats:
        await client.post("/llm/chat/completions", json={"model": model, "messages": HELLO})
    for model, script in scripts:
        job = await order(client, script, model=model)
        await client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 30})


async def records_of(server: Server, count: int) -> list[dict[str, Any]]:
    """Every job and chat request of the account as one line of a statement would tell it alone."""
    found: list[Completion] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            await asyncio.sleep(0.02)
            found = await server.gateway.database.read(completion_rows.of_account, await account_of(server))
    assert len(found) == count
    jobs = (await server.client.get("/api/v1/jobs", params={"limit": 100})).json()["data"]
    return [*map(_of_completion, found), *map(_of_job, jobs)]


def _of_completion(record: Completion) -> dict[str, Any]:
    counts = record.usage
    return {
        "day": datetime.fromtimestamp(record.created_at, UTC).date().isoformat(),
        "model": record.model,
        "key": record.key_id,
        "vendor": record.vendor,
        "kind": "chat",
        "requests": 1,
        "failed": int(record.outcome in ("failed", "cut")),
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "cached_tokens": counts.cached,
        "cache_write_tokens": counts.cache_writes,
        "reasoning_tokens": counts.reasoning,
        "total_tokens": counts.prompt + counts.completion,
        "estimated": int(counts.estimated),
        "unpriced": int(record.cost is None),
        "cost": record.cost or 0,
    }


def _of_job(job: dict[str, Any]) -> dict[str, Any]:
    final = job["cost"]["final"]
    return {
        "day": job["created_at"][:10],
        "model": job["model"],
        "vendor": job["vendor"],
        "kind": "job",
        "jobs": 1,
        "failed": int(job["status"] != "succeeded"),
        "unpriced": int(final is None),
        "cost": 0 if final is None else parse_usd(final),
    }


def brute_force(records: Sequence[dict[str, Any]], groups: Sequence[str]) -> dict[tuple[str, ...], dict[str, int]]:
    sums: dict[tuple[str, ...], dict[str, int]] = {}
    for record in records:
        about = record | {"month": record["day"][:7]}
        line = sums.setdefault(tuple(about[group] for group in groups), dict.fromkeys((*COUNTS, "cost"), 0))
        for name in line:
            line[name] += record.get(name, 0)
    return sums


def exact(line: dict[str, Any]) -> dict[str, int]:
    return {name: line[name] for name in COUNTS} | {"cost": parse_usd(line["cost"])}


async def test_the_sums_are_those_of_the_jobs_and_chat_requests(start: Start):
    async with serving(start) as server:
        second = await server.sign_in()
        scripts = [(VIDEO, {}), (VIDEO, FAILS), (MODEL, {})]
        await work(server.client, chats=["plain", "plain", "status:500"], scripts=scripts)
        await work(second, chats=["plain", "no-usage"], scripts=[(VIDEO, {})])
        stranger = await server.sign_in("other")
        await work(stranger, chats=["plain"], scripts=[(VIDEO, {})])
        records = await records_of(server, 5)
        assert sum(record["cost"] for record in records) > 800_000_000
        for groups in (*((group,) for group in GROUPS if group != "key"), ("kind", "model"), ("vendor", "month")):
            told = await usage(server.client, by=",".join(groups))
            lines = {tuple(line[group] for group in groups): exact(line) for line in told["data"]}
            assert lines == brute_force(records, groups)
            assert list(lines) == sorted(lines)
            assert told["by"] == list(groups)
            assert exact(told["total"]) == brute_force(records, ())[()]
        assert (await usage(stranger))["total"]["jobs"] == 1
        keys = (await usage(server.client, by="key", kind="chat"))["data"]
        of_chat = [record for record in records if record["kind"] == "chat"]
        assert {(line["key"],): exact(line) for line in keys} == brute_force(of_chat, ("key",))
        assert {line["key_name"] for line in keys} == {"test"}
        assert [line["jobs"] for line in (await usage(second, by="key", kind="job"))["data"]] in ([3, 1], [1, 3])


# -- what is asked


async def test_days_groups_and_filters(server: Server):
    account_id = await account_of(server)
    now = time.time()
    days = [(datetime.now(UTC) - timedelta(days=back)).date().isoformat() for back in range(400)]
    await write(
        server,
        *(make_completion(account_id=account_id, created_at=now - back * 86_400, cost=10**9) for back in range(400)),
        make_completion(account_id=account_id, model="other", key_id="gone", vendor="elsewhere", cost=5 * 10**8),
        make_completion(account_id="acct_of_another", created_at=now),
    )
    told = await usage(server.client)
    assert (told["from"], told["to"], told["by"], told["currency"]) == (days[29], days[0], ["day"], "USD")
    assert [line["day"] for line in told["data"]] == days[29::-1]
    assert told["total"]["cost"] == "30.00"
    some = await usage(server.client, **{"from": days[7], "to": days[5], "by": "model,key"})
    assert [(line["model"], line["key"], line["key_name"], line["cost"]) for line in some["data"]] == [
        ("writer", "key", "", "3.00")
    ]
    everything = {"from": "2020-01-01", "by": "vendor"}
    assert (await usage(server.client, **everything))["total"]["cost"] == "400.50"
    for name, value in (("model", "other"), ("key", "gone"), ("vendor", "elsewhere")):
        found = await usage(server.client, **everything, **{name: value})
        assert [(line["vendor"], line["cost"]) for line in found["data"]] == [("elsewhere", "0.50")]
    assert (await usage(server.client, **everything, kind="job"))["data"] == []
    assert (await usage(server.client, **everything, model="nothing"))["total"]["cost"] == "0.00"
    months = await usage(server.client, **{"from": days[399], "by": "month"})
    assert [line["month"] for line in months["data"]] == sorted({day[:7] for day in days})


async def test_what_cannot_be_asked(server: Server):
    for query, param in (
        ({"from": "2026-13-01"}, "from"),
        ({"to": "tomorrow"}, "to"),
        ({"from": "2026-02-01", "to": "2026-01-01"}, "from"),
        ({"by": "day,color"}, "by"),
        ({"by": "account"}, "by"),
        ({"kind": "video"}, "kind"),
        ({"format": "pdf"}, "format"),
    ):
        error = refused(await server.client.get("/api/v1/usage", params=query), 400, "invalid_params")
        assert error["param"] == param
    for name in ("account", "limit"):
        error = refused(await server.client.get("/api/v1/usage", params={name: "x"}), 400, "unknown_param")
        assert error["param"] == name
        assert "Known: by, end_user, format, from, key, kind, model, session, tag, to, top, vendor" in error["message"]


async def test_more_lines_than_anyone_reads_are_refused(server: Server):
    account_id = await account_of(server)
    now = time.time()
    await write(
        server,
        *(
            make_completion(account_id=account_id, model=f"m{n}", created_at=now - n % 2 * 86_400)
            for n in range(10_001)
        ),
    )
    error = refused(await server.client.get("/api/v1/usage", params={"by": "model"}), 400, "invalid_params")
    assert error["param"] == "by"
    assert "fewer days" in error["suggestion"]
    assert len((await usage(server.client, by="model", **{"from": today()}))["data"]) == 5001


# -- as a table


async def test_csv_by_parameter_and_by_header(server: Server):
    key = (await server.new_key()).split("_")[1]
    account_id = await account_of(server)
    await write(
        server,
        make_completion(account_id=account_id, key_id=key, model='=HYPERLINK("http://x")', created_at=time.time()),
        make_completion(account_id=account_id, key_id=key, model="a,b", created_at=time.time()),
    )
    asked = {"by": "model,key", "from": today()}
    told = await usage(server.client, **asked)
    responses = [
        await server.client.get("/api/v1/usage", params={**asked, "format": "csv"}),
        await server.client.get("/api/v1/usage", params=asked, headers={"accept": "text/csv"}),
    ]
    for response in responses:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/csv; charset=utf-8"
        name = f'attachment; filename="usage_{today()}_{told["to"]}.csv"'
        assert response.headers["content-disposition"] == name
        rows = list(csv.DictReader(io.StringIO(response.text, newline="")))
        assert rows[0]["model"] == "'" + told["data"][0]["model"] == """'=HYPERLINK("http://x")"""
        rows[0]["model"] = rows[0]["model"][1:]
        assert rows == [{name: str(value) for name, value in line.items()} for line in told["data"]]
    both = {"accept": "application/json, text/csv;q=0.5"}
    assert (await server.client.get("/api/v1/usage", headers=both)).json()["object"] == "usage"
    error = await server.client.get("/api/v1/usage", params={"by": "x"}, headers={"accept": "text/csv"})
    refused(error, 400, "invalid_params")


# -- who may ask


async def test_a_key_needs_the_scope_read(server: Server):
    refused(
        await (await server.sign_in(scopes=frozenset((Scope.CHAT,)))).get("/api/v1/usage"), 403, "scope_not_allowed"
    )
    for scope in (Scope.READ, Scope.GENERATE):
        await usage(await server.sign_in(scopes=frozenset((scope,))))


async def test_the_usage_of_a_revoked_key_stays(server: Server):
    key = (await server.new_key()).split("_")[1]
    await write(server, make_completion(account_id=await account_of(server), key_id=key, created_at=time.time()))
    await server.gateway.database.write(key_rows.revoke, key, time.time())
    (line,) = (await usage(server.client, by="key"))["data"]
    assert (line["key"], line["key_name"], line["requests"]) == (key, "test", 1)


# -- budgets


async def test_budgets_of_the_key_and_its_account_are_told(start: Start):
    server = await start(SETTINGS.partition('[[models]]\nid = "plain"')[0])
    key = await server.new_key()
    async with httpx.AsyncClient(
        base_url=server.url, headers={"authorization": f"Bearer {key}"}, trust_env=False, verify=NO_TLS, timeout=60
    ) as client:
        public_id, account_id = key.split("_")[1], await account_of(server)
        for owner, period, cap in (
            (account_id, Period.MONTH, 10 * 10**9),
            (public_id, Period.TOTAL, 10**9),
            ("acct_of_another", Period.TOTAL, 1),
        ):
            budget = Budget(owner=owner, period=period, cap=cap)
            await server.gateway.database.write(budget_rows.put, budget, account_id, time.time())
        await work(client, chats=(), scripts=[(VIDEO, {})])
        found = {budget["of"]: budget for budget in (await usage(client))["budgets"]}
        assert set(found) == {"account", "key"}
        told = ("period", "cap", "spent", "held", "left", "time_zone")
        assert [found["key"][name] for name in told] == ["total", "1.00", "0.40", "0.00", "0.60", "UTC"]
        assert [found["account"][name] for name in told] == ["month", "10.00", "0.40", "0.00", "9.60", "UTC"]
        assert found["key"]["resets_at"] is None
        assert [each["of"] for each in (await usage(server.client))["budgets"]] == ["account"]


async def test_the_reference_tells_every_parameter(server: Server):
    document = (await server.client.get("/openapi.json")).json()
    operation = document["paths"]["/api/v1/usage"]["get"]
    assert tuple(parameter["name"] for parameter in operation["parameters"]) == NAMES
    assert set(operation["responses"]["200"]["content"]) == {"application/json", "text/csv"}
