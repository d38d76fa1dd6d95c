"""Walls around a process that opens hostile files, tried from inside."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any


def try_walls(port: int, path: str) -> dict[str, str]:
    """Try what a taken over process would; return an error's name for each, or what was reached."""

    def attempt(work: Callable[[], Any]) -> str:
        try:
            return f"reached {work()!r}"
        except BaseException as error:  # noqa: BLE001  each is a wall
            return type(error).__name__

    beside = Path(path).parent / "beside"
    return {
        "secret": os.environ.get("PENSTOCK_FUZZ_SECRET", ""),
        "connect": attempt(lambda: socket.create_connection(("127.0.0.1", port), 1)),
        "datagram": attempt(lambda: socket.socket(type=socket.SOCK_DGRAM)),
        "local": attempt(lambda: socket.socket(socket.AF_UNIX)),
        "read": attempt(lambda: Path(path).read_bytes()),
        "write": attempt(lambda: Path(path).write_bytes(b"escaped")),
        "make": attempt(lambda: beside.write_bytes(b"escaped")),
        "remove": attempt(lambda: Path(path).unlink()),
        "list": attempt(lambda: os.listdir(beside.parent)),  # noqa: PTH208  it opens the folder at once
        "passwords": attempt(lambda: Path("/etc/passwd").read_bytes()),
        "own environment": attempt(lambda: Path("/proc/self/environ").read_bytes()),
        "fork": attempt(os.fork),
        "execute": attempt(lambda: os.execv("/bin/true", ["true"])),  # noqa: S606  a wall
        "kill": attempt(lambda: os.kill(os.getppid(), 9)),
        "slow down": attempt(lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)),
        "memory file": attempt(lambda: os.memfd_create("x")),
    }
