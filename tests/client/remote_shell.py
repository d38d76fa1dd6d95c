"""The commands that speak to a server as tests type them: in this process, or on a terminal of their own."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from typing import Any

from typer.testing import CliRunner, Result

from penstock.cli.main import app

VIDEO = "sim_text_to_video"
QUICK = """'script={"latency": 0.05}'"""


class Shell:
    """Runs lines in this process, on a server and a key."""

    def __init__(self, url: str, key: str) -> None:
        self.environment = {"PENSTOCK_BASE_URL": url, "PENSTOCK_API_KEY": key}

    def __call__(self, line: str, code: int = 0, typed: str | None = None, **environment: str | None) -> Result:
        known = {**self.environment, **environment}
        result = CliRunner().invoke(app, shlex.split(line), input=typed, env=known)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        assert "\x1b" not in result.output
        return result

    def start(self, line: str, redirects: str = "", **pipes: Any) -> subprocess.Popen[bytes]:
        """Start a line in a process of its own; `redirects` are a shell's, such as `<&-`."""
        command = ["sh", "-c", f'exec "$@" {redirects}', "sh", sys.executable, "-m", "penstock", *shlex.split(line)]
        return subprocess.Popen(command, env={**os.environ, **self.environment}, **pipes)  # noqa: S603

    def json(self, line: str, code: int = 0) -> Any:
        return json.loads(self(f"{line} --json", code).stdout)


def on_terminal(shell: Shell, line: str, *steps: tuple[str, str]) -> tuple[str, int]:
    """What a terminal shows of a line, with what is typed when something has appeared; and the exit code."""
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs tests in the background ignores it
        environment = {**os.environ, **shell.environment, "TERM": "xterm", "COLUMNS": "120"}
        os.execve(sys.executable, [sys.executable, "-m", "penstock", *shlex.split(line)], environment)  # noqa: S606
    shown, seen, left, end = b"", 0, list(steps), time.monotonic() + 300
    try:
        while time.monotonic() < end:
            try:
                shown += os.read(terminal, 65536) if select.select([terminal], [], [], 0.1)[0] else b""
            except OSError:  # how Linux says that nobody writes any more
                break
            if left and (found := re.search(left[0][0].encode(), shown[seen:])):
                seen += found.end()
                os.write(terminal, left.pop(0)[1].encode())
        else:
            os.kill(process, signal.SIGKILL)
        return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    finally:
        os.close(terminal)
