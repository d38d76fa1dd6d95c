"""A real Temporal server of the tests' own, which they may stop and start again."""

import ctypes
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from ports import free_port

PROGRAM: Final = Path(sys.executable).with_name("temporal")
START_SECONDS: Final = 300.0
PR_SET_PDEATHSIG: Final = 1


def _die_with_tests() -> None:
    """In the child: tests that are killed leave no server behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class TemporalServer:
    """One server. It forgets everything when it is stopped."""

    def __init__(self) -> None:
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Returns once it answers; one that finds its ports taken is started again."""
        give_up_at = time.monotonic() + START_SECONDS
        question = [PROGRAM, "operator", "namespace", "describe", "default", "--address", self.address]
        while True:
            if self._process is None or self._process.poll() is not None:
                self._process = self._spawn()
            if not subprocess.run(question, check=False, capture_output=True).returncode:  # noqa: S603
                return
            assert time.monotonic() < give_up_at
            time.sleep(0.05)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        words = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(self._port)]
        return subprocess.Popen(  # noqa: S603
            [PROGRAM, *words, "--http-port", str(free_port()), "--log-level", "never"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_die_with_tests,  # noqa: PLW1509  nothing else is done in the child
        )

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None
