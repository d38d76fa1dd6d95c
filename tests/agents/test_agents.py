"""Claude Code and Codex finish a task through the gateway, whatever dialect the vendor speaks."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import agent_scripts
import pytest
from coding_agents import Run, Workplace
from conftest import Server, Start
from doubles.scripted.turns import INPUT_TOKENS, OUTPUT_TOKENS, Script
from doubles.scripted.vendor import DIALECTS, KEY, ScriptedVendor, sent_to

from penstock.domain.usage import ChatOutcome, Completion
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import completion_rows

CODEX_MODELS = ("coder", "gpt-5.5", "gpt-6-sol")
"""Codex chooses its tools by the name: with namespaces, with a custom tool, or inside the input with one for JavaScript."""
RESULTS_SO_FAR = [0, 1, 3, 4, 5]
"""Results in each request of the task: the second answer calls two tools at once."""
Serve = Callable[[Script, str, str], AbstractAsyncContextManager[tuple[ScriptedVendor, Server]]]


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace.make(tmp_path, agent_scripts.FILES)


@pytest.fixture
def serve(start: Start) -> Serve:
    """Start a gateway whose one model is served by a scripted vendor in some dialect."""

    @asynccontextmanager
    async def begin(script: Script, dialect: str, model: str) -> AsyncGenerator[tuple[ScriptedVendor, Server]]:
        async with ScriptedVendor(script) as vendor:
            entry = f'[[models]]\nid = "{model}"\nkind = "chat"\nvendor = "scripted"\nmodel = "upstream-model"\n'
            yield vendor, await start(vendor.settings(dialect) + entry)

    return begin


def check_work(run: Run, workplace: Workplace, vendor: ScriptedVendor) -> None:
    """The task is done, and the vendor saw every result."""
    assert [seen.refusal for seen in vendor.seen if seen.refusal] == []
    assert run.status == 0, f"{run.output}\n{run.errors}"
    assert run.last_words == agent_scripts.LAST_WORDS
    assert (workplace.folder / "notes.txt").read_text() == agent_scripts.EDITED
    assert (workplace.folder / "lines.txt").read_text() == agent_scripts.COUNTED
    asked = [seen.request for seen in vendor.seen if seen.request is not None and seen.request.tools]
    assert [len(request.results) for request in asked] == RESULTS_SO_FAR
    assert all(agent_scripts.PROMPT in "\n".join(request.texts) for request in asked)


async def check_gateway(server: Server, vendor: ScriptedVendor, dialect: str, key: str) -> None:
    """The vendor was spoken to in its own dialect, by its own key, and every answer was recorded with its tokens."""
    assert {seen.dialect for seen in vendor.seen} == {dialect}
    assert {seen.request.model for seen in vendor.seen if seen.request is not None} == {"upstream-model"}
    assert key not in sent_to(vendor)
    assert all(KEY in " ".join(seen.headers.values()) for seen in vendor.seen)
    records = await usage_records(server, len(vendor.seen))
    assert {record.outcome for record in records} == {ChatOutcome.OK}
    counted = {(record.usage.prompt, record.usage.completion) for record in records}
    assert counted == {(INPUT_TOKENS, OUTPUT_TOKENS)}


async def usage_records(server: Server, count: int) -> list[Completion]:
    """The account's usage records, once there are so many."""
    database = server.gateway.database
    account_id = await database.write(key_rows.account_id, "default", time.time())
    while len(found := await database.read(completion_rows.of_account, account_id, 1000)) < count:  # noqa: ASYNC110  the store tells nobody
        await asyncio.sleep(0.02)
    return found


# -- without the gateway: the double and the agents understand each other


async def test_claude_code_understands_the_double(workplace: Workplace) -> None:
    async with ScriptedVendor(agent_scripts.claude_code) as vendor:
        run = await workplace.claude_code(vendor.url, KEY, "coder", agent_scripts.PROMPT)
    check_work(run, workplace, vendor)


@pytest.mark.parametrize("model", CODEX_MODELS)
async def test_codex_understands_the_double(workplace: Workplace, model: str) -> None:
    async with ScriptedVendor(agent_scripts.codex) as vendor:
        run = await workplace.codex(vendor.url, KEY, model, agent_scripts.PROMPT)
    check_work(run, workplace, vendor)


# -- through the gateway


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_claude_code_finishes_its_task(workplace: Workplace, serve: Serve, dialect: str) -> None:
    async with serve(agent_scripts.claude_code, dialect, "coder") as (vendor, server):
        key = await server.new_key()
        run = await workplace.claude_code(server.url, key, "coder", agent_scripts.PROMPT)
        check_work(run, workplace, vendor)
        await check_gateway(server, vendor, dialect, key)
    first = vendor.seen[0].request
    assert first is not None
    assert "Claude" in first.system
    assert {"Read", "Edit", "Bash", "Write"} <= first.tools.keys()


@pytest.mark.parametrize("model", CODEX_MODELS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_codex_finishes_its_task(workplace: Workplace, serve: Serve, dialect: str, model: str) -> None:
    async with serve(agent_scripts.codex, dialect, model) as (vendor, server):
        key = await server.new_key()
        run = await workplace.codex(server.url, key, model, agent_scripts.PROMPT)
        check_work(run, workplace, vendor)
        await check_gateway(server, vendor, dialect, key)
    first = vendor.seen[0].request
    assert first is not None
    assert "Codex" in first.system
