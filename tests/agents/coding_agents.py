"""Claude Code and Codex, run headless in a scratch folder with nothing of the machine's own configuration."""

import asyncio
import json
import os
import platform
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
PACKAGES = Path(__file__).parent / "node_modules"
MACHINES = {"x86_64": ("x64", "x86_64"), "aarch64": ("arm64", "aarch64"), "arm64": ("arm64", "aarch64")}
PATIENCE_SECONDS = 300
"""A run takes seconds; a busy machine may take much longer."""
NOWHERE = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
"""Whatever an agent asks of the internet fails at once."""
QUIET_CLAUDE_CODE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "IS_SANDBOX": "1",  # else it refuses to run as root without asking for permissions
}
CODEX_SETTINGS = """
model = "{model}"
model_provider = "gateway"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "GATEWAY_API_KEY"
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What an agent left behind."""

    status: int
    output: str
    errors: str
    events: list[dict[str, Any]] = field(default_factory=list)
    """What it printed, one object a line."""

    @property
    def last_words(self) -> str:
        """The agent's final message."""
        for event in reversed(self.events):
            if event["type"] == "result":
                return event["result"]
            if event["type"] == "item.completed" and event["item"]["type"] == "agent_message":
                return event["item"]["text"]
        raise AssertionError(f"It said nothing: {self.output} {self.errors}")


@dataclass(frozen=True, slots=True)
class Workplace:
    """A scratch folder with a home beside it."""

    folder: Path
    home: Path

    @classmethod
    def make(cls, parent: Path, files: Mapping[str, str]) -> "Workplace":
        """Create the folders and put the files there."""
        made = cls(parent / "work", parent / "home")
        for folder in (made.folder, made.home):
            folder.mkdir()
        for name, text in files.items():
            (made.folder / name).write_text(text)
        return made

    async def claude_code(self, url: str, key: str, model: str, prompt: str, servers: Json | None = None) -> Run:
        """Let Claude Code do something; `url` is where `/v1/messages` is, `servers` are those of MCP."""
        settings = {
            "CLAUDE_CONFIG_DIR": str(self.home / "claude"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": key,
        }
        command = (str(claude_code_program()), "-p", prompt, "--model", model, "--dangerously-skip-permissions")
        form = ("--output-format", "stream-json", "--verbose")
        tools = ("--strict-mcp-config", "--mcp-config", json.dumps({"mcpServers": servers})) if servers else ()
        return await self._run(*command, *form, *tools, settings={**QUIET_CLAUDE_CODE, **settings})

    async def codex(self, url: str, key: str, model: str, prompt: str, servers: str = "") -> Run:
        """Let Codex do something; `url` is where `/v1/responses` is, `servers` are settings of those of MCP."""
        (self.home / "codex").mkdir()
        (self.home / "codex" / "config.toml").write_text(CODEX_SETTINGS.format(url=url, model=model) + servers)
        command = (str(codex_program()), "exec", "--json", "--skip-git-repo-check")
        settings = {"CODEX_HOME": str(self.home / "codex"), "GATEWAY_API_KEY": key}
        return await self._run(*command, "--dangerously-bypass-approvals-and-sandbox", prompt, settings=settings)

    async def _run(self, *command: str, settings: Mapping[str, str]) -> Run:
        basics = {"PATH": os.environ["PATH"], "HOME": str(self.home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        environment = {**basics, **NOWHERE, **settings}
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        events = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
        assert process.returncode is not None
        return Run(process.returncode, output.decode(), errors.decode(), events)


def claude_code_program() -> Path:
    """The program inside the package of this platform: its installer, which would place it, is not run."""
    return _installed(PACKAGES / "@anthropic-ai" / f"claude-code-linux-{_machine()[0]}" / "claude")


def codex_program() -> Path:
    """The program inside the package of this platform."""
    short, long = _machine()
    return _installed(PACKAGES / "@openai" / f"codex-linux-{short}" / "vendor" / f"{long}-unknown-linux-musl/bin/codex")


def _machine() -> tuple[str, str]:
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        pytest.skip("the coding agents are tried on Linux only")
    return MACHINES[platform.machine()]


def _installed(program: Path) -> Path:
    if not program.is_file():
        pytest.skip(f"{program.name} is not here: run `make setup-dev`")
    return program
