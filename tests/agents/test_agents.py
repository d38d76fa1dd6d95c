"""Claude Code and Codex finish a task through the gateway, whatever dialect the vendor speaks."""

from pathlib import Path

import agent_scripts
import pytest
from coding_agents import Run, Workplace
from conftest import Start
from doubles.scripted.turns import INPUT_TOKENS, OUTPUT_TOKENS
from doubles.scripted.vendor import DIALECTS, KEY, ScriptedVendor, sent_to
from scripted_gateway import UPSTREAM_MODEL, Scripted, scripted

from penstock.domain.usage import ChatOutcome

CODEX_MODELS = ("coder", "gpt-5.5", "gpt-6-sol")
"""Codex chooses its tools by the name: with namespaces, with a custom tool, or in the input with one for JavaScript.

With the last it wants no two calls at once.
"""
TASKS = {(dialect, "coder") for dialect in DIALECTS} | {("responses", model) for model in CODEX_MODELS}
"""Each dialect and each set of tools. `make test-long` joins each with each."""
CODEX_TASKS = [
    pytest.param(dialect, model, marks=() if (dialect, model) in TASKS else pytest.mark.long)
    for dialect in DIALECTS
    for model in CODEX_MODELS
]
AGENTS = {"claude_code": "anthropic", "codex": "responses"}
"""Each agent's own dialect, which passes unchanged to a vendor that speaks it."""
RESULTS_SO_FAR = [0, 1, 3, 4, 5]
"""Results in each request of the task: the second answer calls two tools at once."""


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace.make(tmp_path, agent_scripts.FILES)


def check_work(run: Run, workplace: Workplace, vendor: ScriptedVendor, *, is_parallel: bool = True) -> None:
    """The task is done, and the vendor saw every result once."""
    assert [seen.refusal for seen in vendor.seen if seen.refusal] == []
    check_files(run, workplace)
    asked = [seen.request for seen in vendor.seen if seen.request is not None and seen.request.tools]
    assert [len(request.results) for request in asked] == (RESULTS_SO_FAR if is_parallel else list(range(6)))
    assert all(agent_scripts.PROMPT in "\n".join(request.texts) for request in asked)


def check_files(run: Run, workplace: Workplace) -> None:
    """The agent ended well, and its files are as they should be."""
    assert run.status == 0, f"{run.output}\n{run.errors}"
    assert run.last_words == agent_scripts.LAST_WORDS
    assert (workplace.folder / "notes.txt").read_text() == agent_scripts.EDITED
    assert (workplace.folder / "lines.txt").read_text() == agent_scripts.COUNTED


async def check_gateway(gateway: Scripted, dialect: str) -> None:
    """The vendor was spoken to in its own dialect, by its own key. Each answer's record has its tokens and session."""
    asked = gateway.vendor.seen
    assert {seen.dialect for seen in asked} == {dialect}
    assert {seen.request.model for seen in asked if seen.request is not None} == {UPSTREAM_MODEL}
    assert gateway.key not in sent_to(gateway.vendor)
    assert all(KEY in " ".join(seen.headers.values()) for seen in asked)
    last = asked[-1].request
    assert last is not None
    if dialect != "chat":  # which has no seals
        kept = [seal.partition("/")[0] for seal in last.seals]
        assert kept == [f"SEAL+{number}" for number in range(1, len(asked))], "the reasoning of each turn came back"
    records = await gateway.usage_records(len(asked))
    assert {record.outcome for record in records} == {ChatOutcome.OK}
    counted = {(record.usage.prompt, record.usage.completion) for record in records}
    assert counted == {(INPUT_TOKENS, OUTPUT_TOKENS)}
    assert all(record.attribution is not None for record in records)
    [session] = {record.attribution.session for record in records if record.attribution is not None}
    assert len(session) == 36, "an agent names its session by a UUID"


# -- without the gateway: the double and the agents understand each other, as the tests through the gateway imply


@pytest.mark.long
async def test_claude_code_understands_the_double(workplace: Workplace) -> None:
    async with ScriptedVendor(agent_scripts.claude_code) as vendor:
        run = await workplace.claude_code(vendor.url, KEY, "coder", agent_scripts.PROMPT)
    check_work(run, workplace, vendor)


@pytest.mark.long
@pytest.mark.parametrize("model", CODEX_MODELS)
async def test_codex_understands_the_double(workplace: Workplace, model: str) -> None:
    async with ScriptedVendor(agent_scripts.codex) as vendor:
        run = await workplace.codex(vendor.url, KEY, model, agent_scripts.PROMPT)
    check_work(run, workplace, vendor, is_parallel=model != "gpt-6-sol")


# -- through the gateway


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_claude_code_finishes_its_task(workplace: Workplace, start: Start, dialect: str) -> None:
    async with scripted(start, agent_scripts.claude_code, dialect, "coder") as gateway:
        run = await workplace.claude_code(gateway.url, gateway.key, "coder", agent_scripts.PROMPT)
        check_work(run, workplace, gateway.vendor)
        await check_gateway(gateway, dialect)
    first = gateway.vendor.seen[0].request
    assert first is not None
    assert "Claude" in first.system
    assert {"Read", "Edit", "Bash", "Write"} <= first.tools.keys()


@pytest.mark.parametrize(("dialect", "model"), CODEX_TASKS)
async def test_codex_finishes_its_task(workplace: Workplace, start: Start, dialect: str, model: str) -> None:
    async with scripted(start, agent_scripts.codex, dialect, model) as gateway:
        run = await workplace.codex(gateway.url, gateway.key, model, agent_scripts.PROMPT)
        check_work(run, workplace, gateway.vendor, is_parallel=model != "gpt-6-sol")
        await check_gateway(gateway, dialect)
    first = gateway.vendor.seen[0].request
    assert first is not None
    assert "Codex" in first.system


# -- trouble


@pytest.mark.parametrize(
    ("agent", "dialect", "trouble"),
    [
        ("claude_code", "chat", "overloaded"),
        ("claude_code", "anthropic", "cut"),
        ("codex", "chat", "cut"),
        ("codex", "responses", "overloaded"),
        pytest.param("claude_code", "chat", "cut", marks=pytest.mark.long),
        pytest.param("claude_code", "anthropic", "overloaded", marks=pytest.mark.long),
        pytest.param("codex", "chat", "overloaded", marks=pytest.mark.long),
        pytest.param("codex", "responses", "cut", marks=pytest.mark.long),
    ],
)
async def test_an_agent_tries_again(workplace: Workplace, start: Start, agent: str, dialect: str, trouble: str) -> None:
    script = agent_scripts.stumble(getattr(agent_scripts, agent), trouble)
    async with scripted(start, script, dialect, "coder") as gateway:
        run = await getattr(workplace, agent)(gateway.url, gateway.key, "coder", agent_scripts.PROMPT)
    check_files(run, workplace)
    asked = [seen.request for seen in gateway.vendor.seen if seen.request is not None and seen.request.tools]
    assert [len(request.results) for request in asked] == [0, *RESULTS_SO_FAR]
