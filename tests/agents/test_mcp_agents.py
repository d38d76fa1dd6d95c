"""Claude Code and Codex draw a picture with the tools of the gateway, which serves their model, too."""

import json
import shutil
import sys
from pathlib import Path

import agent_scripts
import mcp_scripts
import pytest
from coding_agents import Run, Workplace
from conftest import Start
from scripted_gateway import Scripted, scripted

PENSTOCK = shutil.which("penstock", path=str(Path(sys.executable).parent)) or "penstock"
SIMULATOR = f"""
[vendors.sim]
type = "sim"
[[models]]
id = "{mcp_scripts.IMAGE}"
vendor = "sim"
"""
WAIT = "required = true\nstartup_timeout_sec = 200\n"
"""Codex asks the model without the tools of a server that is still starting, unless it is required."""
claude_code = mcp_scripts.Painter("ReadMcpResourceTool", agent_scripts.bash)
codex = mcp_scripts.Painter("read_mcp_resource", agent_scripts.shell)


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace.make(tmp_path, {})


async def check_picture(run: Run, workplace: Workplace, gateway: Scripted) -> None:
    """The agent saved the picture of the one job."""
    assert [seen.refusal for seen in gateway.vendor.seen if seen.refusal] == []
    assert run.status == 0, f"{run.output}\n{run.errors}"
    assert run.last_words == mcp_scripts.LAST_WORDS
    (job,) = (await gateway.server.client.get("/api/v1/jobs")).json()["data"]
    made = await gateway.server.client.get(job["outputs"][0]["url"])
    assert (workplace.folder / "boat.png").read_bytes() == made.content


@pytest.mark.parametrize("transport", ["http", pytest.param("stdio", marks=pytest.mark.long)])
async def test_claude_code_draws(workplace: Workplace, start: Start, transport: str) -> None:
    async with scripted(start, claude_code, "anthropic", "coder", SIMULATOR) as gateway:
        environment = {"PENSTOCK_BASE_URL": gateway.url, "PENSTOCK_API_KEY": gateway.key}
        headers = {"Authorization": f"Bearer {gateway.key}"}
        over_http = {"type": "http", "url": f"{gateway.url}/mcp", "headers": headers}
        by_command = {"command": PENSTOCK, "args": ["mcp"], "env": environment}
        servers = {"penstock": over_http if transport == "http" else by_command}
        run = await workplace.claude_code(gateway.url, gateway.key, "coder", mcp_scripts.PROMPT, servers)
        await check_picture(run, workplace, gateway)


@pytest.mark.parametrize("transport", ["stdio", pytest.param("http", marks=pytest.mark.long)])
async def test_codex_draws(workplace: Workplace, start: Start, transport: str) -> None:
    async with scripted(start, codex, "responses", "coder", SIMULATOR) as gateway:
        over_http = f'url = "{gateway.url}/mcp"\nbearer_token_env_var = "GATEWAY_API_KEY"\n'
        environment = f'PENSTOCK_BASE_URL = "{gateway.url}", PENSTOCK_API_KEY = "{gateway.key}"'
        by_command = f'command = {json.dumps(PENSTOCK)}\nargs = ["mcp"]\nenv = {{{environment}}}\n'
        servers = f"[mcp_servers.penstock]\n{WAIT}" + (over_http if transport == "http" else by_command)
        run = await workplace.codex(gateway.url, gateway.key, "coder", mcp_scripts.PROMPT, servers)
        await check_picture(run, workplace, gateway)
