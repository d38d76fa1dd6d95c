"""One order in the making: a supervised child process, limited in time and memory, that can be stopped at once."""

import json
import logging
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock_engines.child_environment import inherit_environment

log = logging.getLogger(__name__)

INPUTS: Final = "inputs"
"""The folder of an order's input files. Each is named after its param."""

REASONS: Final = {
    "crashed": "The built-in engine crashed.",
    "out_of_memory": "The built-in engine ran out of memory.",
    "too_slow": "The built-in engine took too long and was stopped.",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one order."""

    seconds: float
    memory_mb: int


class Run:
    """A run of one order. `ended` is called once with the result, from another thread, unless it was stopped."""

    def __init__(self, folder: Path, weights: Path, limits: Limits, ended: Callable[[dict[str, Any]], None]) -> None:
        self.progress = 0.0
        self._folder = folder
        self._weights = weights
        self._limits = limits
        self._ended = ended
        self._began_at = 0.0
        self._first_progress = 0.0
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        self._is_late = False
        self._last: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._work, name=f"order {folder.name}", daemon=True)

    def start(self) -> None:
        """Begin to make the order, and return at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the child now."""
        with self._lock:
            self._is_stopped = True
            if self._child is not None:
                self._child.kill()

    def join(self, seconds: float) -> None:
        """Wait until nothing works in the order's folder."""
        self._thread.join(seconds)

    def estimate_rest(self) -> float | None:
        """Return the remaining seconds by the speed since the first progress, which leaves out the start."""
        made = self.progress - self._first_progress
        if made < 0.05:
            return None
        return (time.monotonic() - self._began_at) * (1 - self.progress) / made

    # -- in the thread of the run

    def _work(self) -> None:
        made = self._folder / "made"
        try:
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            self._run_child(self._describe(made))
            result = self._find_result()
        except OSError as error:
            log.exception("an engine could not be started", extra={"fields": {"reason": error.strerror}})
            result = _fail("crashed")
        if not self._is_stopped:
            self._ended(result)

    def _describe(self, made: Path) -> bytes:
        order = json.loads((self._folder / "order.json").read_bytes())
        task = {
            **order,
            "inputs": {path.name: str(path) for path in sorted((self._folder / INPUTS).glob("*"))},
            "folder": str(made),
            "weights": str(self._weights),
            "seconds": self._limits.seconds,
            "memory_mb": self._limits.memory_mb,
        }
        return json.dumps(task).encode() + b"\n"

    def _run_child(self, task: bytes) -> None:
        """Start the child and read its output until it ends. It ends by itself when we close its input."""
        with self._lock:
            if self._is_stopped:
                return
            self._child = child = subprocess.Popen(
                [sys.executable, "-P", "-m", "penstock_engines.studio.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=inherit_environment(OPENBLAS_NUM_THREADS="1"),  # its buffers are large and not needed here
                start_new_session=True,  # Ctrl-C in the terminal goes to the gateway, which decides
            )
        late = threading.Timer(self._limits.seconds, self._end_late)
        late.start()
        try:
            self._exchange(child, task)
        except BrokenPipeError:
            log.warning("an engine ended before it received its order")  # the exit code says why
        finally:
            late.cancel()

    def _exchange(self, child: subprocess.Popen[bytes], task: bytes) -> None:
        with child:
            assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018  both are pipes
            try:
                child.stdin.write(task)
                child.stdin.flush()
                for line in child.stdout:
                    self._read_message(json.loads(line))
            except (BrokenPipeError, ValueError):
                child.kill()

    def _read_message(self, message: dict[str, Any]) -> None:
        if "progress" in message:
            if not self._began_at:
                self._began_at, self._first_progress = time.monotonic(), message["progress"]
            self.progress = max(self.progress, min(1.0, message["progress"]))
        else:
            self._last = message

    def _end_late(self) -> None:
        with self._lock:
            if self._child is not None and not self._is_stopped:
                self._is_late = True
                self._child.kill()

    def _find_result(self) -> dict[str, Any]:
        """Return the result that the child's last line and its exit code mean."""
        code = self._child.returncode if self._child is not None else 0
        if self._is_late or code == -signal.SIGALRM:
            return _fail("too_slow")
        if self._last:
            if detail := self._last.pop("detail", None):
                log.error("an engine failed", extra={"fields": {"order": self._folder.name, "detail": detail}})
            return self._last
        if not self._is_stopped:
            log.error(
                "an engine ended without a result", extra={"fields": {"order": self._folder.name, "exit_code": code}}
            )
        return _fail("out_of_memory" if code == -signal.SIGKILL else "crashed")


def _fail(code: str) -> dict[str, Any]:
    return {"status": "failed", "error": {"code": code, "message": REASONS[code]}}
