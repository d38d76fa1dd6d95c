"""The gateway's tools as the official client of MCP for TypeScript sees them, over HTTP and over `penstock mcp`."""

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from conftest import Server

HERE = Path(__file__).parent
PENSTOCK = shutil.which("penstock", path=str(Path(sys.executable).parent)) or "penstock"


@pytest.mark.parametrize("command", ["", PENSTOCK], ids=["http", "stdio"])
async def test_every_case_of_the_script(server: Server, subtests: pytest.Subtests, command: str) -> None:
    environment = {
        **os.environ,
        "PENSTOCK_URL": server.url,
        "PENSTOCK_API_KEY": await server.new_key(),
        "PENSTOCK_COMMAND": command,
    }
    process = await asyncio.create_subprocess_exec(
        "node", "mcp_client.mjs", cwd=HERE, env=environment, stdout=PIPE, stderr=PIPE
    )
    output, errors = await process.communicate()
    results = [json.loads(line) for line in output.splitlines()]
    assert len(results) == 10, errors.decode()
    for result in results:
        with subtests.test(result["case"]):
            assert result["problem"] is None, result["problem"]
