"""The command line as tests type it: lines on one data folder, in this process or in one of their own."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app


def forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the surroundings say of Penstock."""
    for name in list(os.environ):
        if name.startswith("PENSTOCK_"):
            monkeypatch.delenv(name)


class Shell:
    """Runs commands on one data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def __call__(self, line: str, code: int = 0) -> Result:
        """Run a line in this process."""
        result = CliRunner().invoke(app, [*shlex.split(line), "--data", str(self.data)])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    def json(self, line: str) -> Any:
        return json.loads(self(f"{line} --json").stdout)

    def configure(self, text: str) -> None:
        self.data.mkdir(exist_ok=True)
        (self.data / "config.toml").write_text(text, "utf-8")

    def start(self, line: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start a line in a process of its own."""
        command = [sys.executable, "-m", "penstock", *shlex.split(line), "--data", str(self.data)]
        return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)  # noqa: S603
