"""Starts and ends the process of one model server, and receives its address."""

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from penstock_engines.child_environment import inherit_environment

COMMAND = (sys.executable, "-P", "-m")
PASSIVE = {"OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "false", "MALLOC_ARENA_MAX": "2"}
"""Threads that spin while they wait slow down each other and the gateway on a busy machine."""

MAX_LOG_LINES = 50
END_TIMEOUT_SECONDS = 2


class ChildProcess:
    """A process of this module that starts at once. `address` is None until it serves."""

    def __init__(self, module: str, order: Mapping[str, Any]) -> None:
        threads = {"OMP_NUM_THREADS": str(order["threads"])}
        self._process = subprocess.Popen(  # noqa: S603  our own module, by our own interpreter
            (*COMMAND, module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=inherit_environment(**PASSIVE, **threads),
            start_new_session=True,
        )
        self._order = json.dumps(order).encode() + b"\n"
        self._address: str | None = None
        self._log_lines: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self._listener = threading.Thread(target=self._listen, args=(_pipe(self._process.stderr),), daemon=True)
        self._listener.start()

    @property
    def address(self) -> str | None:
        """The address it serves on, or None."""
        return self._address if self._process.poll() is None else None

    @property
    def status(self) -> int | None:
        """Its exit code, negative for a signal, or None while it runs."""
        return self._process.poll()

    def wait_until_ready(self, seconds: float) -> str | None:
        """Return its address, or None if it ended or the time ran out."""
        alarm = threading.Timer(seconds, self._process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            with _pipe(self._process.stdout) as stdout:
                stdin = _pipe(self._process.stdin)
                stdin.write(self._order)  # through the pipe: others can see arguments and environment
                stdin.flush()
                line = stdout.readline()
        except (OSError, ValueError):  # it has ended, or was ended while we wrote
            line = b""
        finally:
            alarm.cancel()
        if line:
            self._address = f"{json.loads(line)['address']}/v1"
        else:
            self.end()
        return self.address

    def end(self) -> None:
        """End it and wait for it. May be called any number of times, from any thread."""
        with suppress(OSError):  # nobody reads what was not yet written
            _pipe(self._process.stdin).close()
        try:
            self._process.wait(END_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:  # it does not notice while it loads
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines that it logged."""
        return tuple(self._log_lines)

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            while line := stderr.readline(2000):
                self._log_lines.append(line.decode(errors="replace").rstrip())
        self._process.wait()  # reap it at once, so that no zombie is left


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101  all three are pipes
    return stream
