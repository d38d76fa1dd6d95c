"""The pool's child process: imports what the work needs, and forks a confined process for each file.

Small files of one account may share a process. The child never touches a file's bytes itself. The forked process has
the open files, a pipe for its answers, and nothing else. Messages come as lines of JSON over the socket at descriptor
0. Answers go back as a line with a length, then a line of JSON for each errand.
"""

import functools
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec

from penstock.domain.job_errors import JobError
from penstock_sandbox import sandbox

MAX_ANSWER_BYTES = 1 << 16
MAX_MESSAGE_CHARACTERS = 500
END_SECONDS = 1.0
"""Seconds that a process may take to end after its answer."""
STOP = b"stop\n"
MAX_FILES = 64
"""Files that may come with one message: two for each errand."""


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work. `function` is `module:name`; the `files` that were sent with it are its first arguments.

    The first file is read. A second one is written, up to `file_bytes`.
    """

    function: str
    args: tuple[Any, ...]
    seconds: float
    cpu_seconds: int
    memory_bytes: int
    threads: bool
    file_bytes: int = 0
    files: int = 0


class Raised(msgspec.Struct, frozen=True):
    """The error that the work raised: its class and message."""

    kind: str
    message: str


class ChildReply(msgspec.Struct, frozen=True):
    """The work's result, or the error that it raised."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    raised: Raised | None = None


def main() -> None:
    """Do one errand after the other until the gateway closes the socket or dies."""
    for name in (signal.SIGINT, signal.SIGTERM):  # sent to everyone at once; the gateway decides
        signal.signal(name, signal.SIG_IGN)
    os.nice(int(sys.argv[1]))
    with suppress(ImportError):  # not on every platform
        importlib.import_module("resource")  # so that no forked process has to
    offered = sandbox.survey_forked()
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    while True:
        line, files, is_wanted = _receive(control)
        errands = msgspec.json.decode(line, type=list[Errand])
        status, answer = _do(errands, files, control, offered) if is_wanted else ("stopped", b"")
        for file in files:
            os.close(file)
        control.sendall(b"%s %d\n%s" % (status.encode(), len(answer), answer))


def _receive(control: socket.socket) -> tuple[bytes, list[int], bool]:
    """Return the next errands, the files that came with them, and whether they are still wanted."""
    data, files = b"", list[int]()
    while not data.endswith(b"\n"):
        piece, sent, _, _ = socket.recv_fds(control, 1 << 16, MAX_FILES)
        if not piece:
            os._exit(0)
        data, files = (data + piece).removeprefix(STOP), sent or files  # a stop that came too late
    line, _, rest = data.partition(b"\n")
    return line, files, not rest


def _do(
    errands: Sequence[Errand], files: list[int], control: socket.socket, offered: sandbox.Confinement
) -> tuple[str, bytes]:
    try:
        work = [(errand, _find(errand.function)) for errand in errands]
        answers, answer = os.pipe()
        child = os.fork()
        if child == 0:
            for descriptor in (control.fileno(), answers):
                os.close(descriptor)
            _work(work, files, answer, offered)
        os.close(answer)
        try:
            return _supervise(child, answers, control, errands[0].seconds, MAX_ANSWER_BYTES * len(errands))
        finally:
            os.close(answers)
    except (ImportError, AttributeError, OSError) as error:
        return "unable", repr(error).encode()[:MAX_ANSWER_BYTES]


@functools.cache
def _find(name: str) -> Callable[..., Any]:
    """Import the function and what its module says that it will import, so that no forked process has to."""
    module = importlib.import_module(name.partition(":")[0])
    function = getattr(module, name.partition(":")[2])
    for library in getattr(module, "LIBRARIES", {}).get(function.__name__, ()):
        with suppress(ImportError):  # its next version may have no such module
            importlib.import_module(library)
    gc.collect()
    gc.freeze()  # the memory that forked processes share stays shared
    return function


def _supervise(child: int, answers: int, control: socket.socket, seconds: float, most_bytes: int) -> tuple[str, bytes]:
    """Wait for the answers and the end of the forked process, and end it if it takes too long or is not wanted."""
    answer, reason, deadline = b"", "", time.monotonic() + seconds
    while not reason:
        ready, _, _ = select.select([answers, control], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            reason = "time"
        elif control in ready:
            if not control.recv(1 << 16):  # the gateway is gone
                os.kill(child, signal.SIGKILL)
                os._exit(0)
            reason = "stopped"
        elif piece := os.read(answers, 1 << 16):
            answer += piece
            reason = "crashed" if len(answer) > most_bytes else ""
        else:
            break
    ending = _await_end(child, 0.0 if reason else END_SECONDS)
    if reason:
        return reason, b""
    if ending == 0 and answer:
        return "done", answer
    return {-signal.SIGXCPU: "cpu", -signal.SIGKILL: "killed"}.get(ending, "crashed"), str(ending).encode()


def _await_end(child: int, seconds: float) -> int:
    """Return its exit code, or the negative number of the signal that ended it; ours if it does not end in time."""
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 1
        time.sleep(0.0005)


# -- in the forked process


def _work(
    work: Sequence[tuple[Errand, Callable[..., Any]]], files: list[int], answer: int, offered: sandbox.Confinement
) -> NoReturn:
    try:
        first = work[0][0]
        sandbox.end_with_parent()
        limits = sandbox.Limits(
            cpu_seconds=first.cpu_seconds,
            memory_bytes=first.memory_bytes,
            file_bytes=max(errand.file_bytes for errand, _ in work),
        )
        sandbox.limit(limits, threads=first.threads)
        sandbox.confine(offered, readable=READABLE, threads=first.threads)
        left = iter(files)
        for errand, function in work:
            own = list(islice(left, errand.files))
            data = msgspec.json.encode(_answer(errand, function, own)) + b"\n"
            while data:
                data = data[os.write(answer, data) :]
        os._exit(0)
    finally:
        os._exit(1)


def _answer(errand: Errand, function: Callable[..., Any], files: list[int]) -> ChildReply:
    try:
        opened: list[BinaryIO] = [
            os.fdopen(file, mode, closefd=False) for file, mode in zip(files, ("rb", "w+b"), strict=False)
        ]
        result = function(*opened, *errand.args)
        for file in opened[1:]:
            file.flush()
        return ChildReply(value=msgspec.Raw(msgspec.json.encode(result)))
    except JobError as error:
        return ChildReply(raised=Raised(type(error).__name__, error.message[:MAX_MESSAGE_CHARACTERS]))
    except MemoryError:
        return ChildReply(raised=Raised("MemoryError", ""))
    except Exception as error:  # noqa: BLE001  whatever it is, the work failed by it
        with suppress(Exception):
            return ChildReply(raised=Raised(type(error).__name__, str(error)[:MAX_MESSAGE_CHARACTERS]))
        return ChildReply(raised=Raised(type(error).__name__, ""))


READABLE = sandbox.library_folders(str(Path(__file__).parents[1]))

if __name__ == "__main__":
    main()
