"""The child's side of a model server: it reads its order, limits itself, and ends with the gateway."""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from penstock_sandbox import sandbox

ASIDE = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that a terminal or service manager sends to all processes. The gateway drains, then closes the pipe."""


def begin() -> tuple[dict[str, Any], Callable[[str], None]]:
    """Read the order, apply its limits, and return it with the function that reports the address."""
    for name in ASIDE:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of native code must not pass for the report
    order = json.loads(sys.stdin.buffer.readline())
    sandbox.keep_privileges()  # it needs its socket, and reads only text
    restrain(order["memory_mb"])

    def report_address(address: str) -> None:
        report.write(json.dumps({"address": address}) + "\n")
        report.close()

    return order, report_address


def wait_and_exit() -> NoReturn:
    """Wait until the gateway closes the pipe or dies, and end at once."""
    sys.stdin.buffer.read()
    os._exit(0)  # a clean shutdown would wait for replies that nobody reads


def restrain(memory_mb: int | None) -> None:
    """Lower this process's priority, disable core files of requests, and limit its memory."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  not on Windows

    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb is not None:
        # Not RLIMIT_AS, which counts mapped weights and address space that is only reserved.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb << 20, memory_mb << 20))
