"""Messages and Responses as programs in JavaScript see them: Anthropic's SDK and the Vercel AI SDK."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
import sdk_script
from conftest import Start
from doubles.scripted.vendor import DIALECTS
from scripted_gateway import scripted

HERE = Path(__file__).parent


@pytest.mark.parametrize("script", ["anthropic_sdk.mjs", "ai_sdk_doors.mjs"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_case_of_the_script(start: Start, dialect: str, script: str, subtests: pytest.Subtests) -> None:
    async with scripted(start, sdk_script.answer, dialect, sdk_script.MODEL) as gateway:
        environment = {**os.environ, "PENSTOCK_URL": gateway.url, "PENSTOCK_API_KEY": gateway.key}
        process = await asyncio.create_subprocess_exec(
            "node", script, cwd=HERE, env=environment, stdout=PIPE, stderr=PIPE
        )
        output, errors = await process.communicate()
    results = [json.loads(line) for line in output.splitlines()]
    assert results, errors.decode()
    for result in results:
        with subtests.test(result["case"]):
            assert result["problem"] is None, result["problem"]
    refused = {seen.refusal for seen in gateway.vendor.seen}
    assert refused <= {None, "Overloaded"}
    assert process.returncode == 0, errors.decode()
