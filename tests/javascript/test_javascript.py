"""The chat endpoint as programs in JavaScript see it: the official SDK and the Vercel AI SDK, on real sockets."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, Start
from openai_double import OpenAIDouble

HERE = Path(__file__).parent
SCRIPTS = ("openai_sdk.mjs", "openai_failures.mjs", "ai_sdk.mjs")
# Each is named as the behaviour of the upstream that answers it.
MODELS = """
    plain echo tools parallel-tools refusal length filter json image reasoning logprobs
    vllm ollama llamacpp no-usage crlf no-space fragments comments fields bom no-done malformed
    cut clean-cut error-first error-mid drop not-json empty hang think:60
    status:400 status:500 status:503 retry-after:7 401 quota context html-502 llamacpp-loading
""".split()  # noqa: SIM905  forty lines of one word each would say less


@pytest.fixture
async def double() -> AsyncGenerator[OpenAIDouble]:
    async with OpenAIDouble() as found:
        yield found


@pytest.fixture
async def chat(double: OpenAIDouble, start: Start) -> Server:
    """A gateway in front of the double: a model for each of its behaviours, and one with a slash in its name."""
    vendor = f'type = "openai_compatible"\napi_key = "{double.key}"\nbase_url = "{double.url}"\n'
    entries = [f'[[models]]\nid = "{model}"\nkind = "chat"\nvendor = "double"\n' for model in MODELS]
    entries.append('[[models]]\nid = "team/plain"\nkind = "chat"\nvendor = "double"\nmodel = "plain"\n')
    entries.append('[[models]]\nid = "silent:30"\nkind = "chat"\nvendor = "impatient"\n')
    impatient = f"[vendors.impatient]\n{vendor}first_byte_seconds = 1\ntotal_seconds = 1\n"
    return await start("\n".join([f"[vendors.double]\n{vendor}", impatient, *entries]))


@asynccontextmanager
async def running(server: Server, script: str, *cases: str) -> AsyncGenerator[Process]:
    """A script at work on all of its cases, or on those named."""
    environment = {
        **os.environ,
        "PENSTOCK_BASE_URL": f"{server.url}/llm",
        "PENSTOCK_API_KEY": await server.new_key(),
        "PENSTOCK_NARROW_API_KEY": await server.new_key(models=frozenset({"plain"})),
    }
    process = await asyncio.create_subprocess_exec(
        "node", script, *cases, cwd=HERE, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def finish(process: Process) -> list[dict[str, Any]]:
    """What became of each case; a script that broke down itself fails the test."""
    output, errors = await process.communicate()
    results = [json.loads(line) for line in output.splitlines()]
    failed = any(result["problem"] for result in results)
    assert results, errors.decode()
    assert process.returncode == (1 if failed else 0), errors.decode()
    assert failed or not errors, errors.decode()
    return results


@pytest.mark.parametrize("script", SCRIPTS)
async def test_every_case_of_the_script(chat: Server, script: str, subtests: pytest.Subtests) -> None:
    async with running(chat, script) as process:
        results = await finish(process)
    for result in results:
        with subtests.test(result["case"]):
            assert result["problem"] is None, result["problem"]


async def test_a_retry_that_succeeds(chat: Server, double: OpenAIDouble) -> None:
    double.queue.append("retry-after:1")
    async with running(chat, "openai_failures.mjs", "a retry that succeeds") as process:
        assert await finish(process) == [{"case": "a retry that succeeds", "problem": None}]
    assert len(double.requests) == 2


@pytest.mark.parametrize(
    ("script", "case"),
    [
        ("openai_failures.mjs", "abort of a stream"),
        ("openai_failures.mjs", "a loop left early"),
        ("openai_failures.mjs", "abort before the first byte"),
        ("ai_sdk.mjs", "abort of a stream"),
    ],
)
async def test_a_client_that_leaves_ends_the_work_upstream(
    chat: Server, double: OpenAIDouble, script: str, case: str
) -> None:
    async with running(chat, script, case) as process:
        assert process.stdin is not None
        await double.until(lambda seen: seen.requests, seconds=20)
        process.stdin.write(b"leave\n")
        await double.until(lambda seen: seen.gone)
        assert process.returncode is None, "it was the abort, not the end of the program"
        process.stdin.write(b"end\n")
        assert await finish(process) == [{"case": case, "problem": None}]
    assert double.open == 0
    assert len(double.requests) == 1
