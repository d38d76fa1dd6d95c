"""Opens hostile files in confined child processes, so that a crash, a hang or a bomb in one ends there."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, TypeVar, get_type_hints

import msgspec

from penstock.domain.job_errors import BadOutput, FileUnreadable, JobError
from penstock.fairness.fair_queue import FairQueue
from penstock.inspection.shared_work import MAX_SMALL_BYTES, Callers, SharedWork
from penstock.inspection.worker_child import MAX_ANSWER_BYTES, STOP, ChildReply, Errand

T = TypeVar("T")
Given = bytes | Path | None
_Given = tuple[Given, Path | None]
"""The file that the work reads, and the file that it writes."""

MEMORY_BYTES: Final = 2 * 1024**3
NICENESS: Final = 5  # whoever waits for the gateway's answer goes first, then this, then what engines generate
GRACE_SECONDS: Final = 60.0
"""Seconds that a child may take beyond the limit that it enforces itself: it may have to start and import."""
END_SECONDS: Final = 2.0
PASSED_ON: Final = ("PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that an interpreter in an unusual place may not start without."""
ERRORS: Final[Mapping[str, type[JobError]]] = {"BadOutput": BadOutput, "FileUnreadable": FileUnreadable}

log = logging.getLogger(__name__)


class WorkFailed(Exception):
    """The work crashed and was ended together with its process."""


class WorkInterrupted(WorkFailed):
    """The machine ended the work, for example for lack of memory. The file is not to blame: try again later."""


class LimitReached(WorkFailed):
    """The work exceeded its time or memory limit. A retry would exceed it again."""


class ProcessPool:
    """At most `places` files are opened at a time, by children that are kept; accounts take turns.

    Each file gets `seconds` of time and `cpu_seconds` of computing. Only with `threads` may several cores compute.
    Small files of one account that wait at the same time share a process and its limits. If that fails, each of them
    gets a process of its own.
    """

    def __init__(self, places: int = 2, *, seconds: float = 60, cpu_seconds: int = 20, threads: bool = False) -> None:
        self.queue = FairQueue(places)
        self.seconds, self.cpu_seconds, self.threads = seconds, cpu_seconds, threads
        self._idle: list[_Child] = []
        self._pieces: dict[asyncio.Task[Any], _Piece] = {}
        self._shared = SharedWork(self.queue, self._do_together)

    async def do(
        self,
        account_id: str,
        function: Callable[..., T],
        source: Given = None,
        *args: Any,
        size: int | None = None,
    ) -> T:
        """Return or raise what the function does, once it is this account's turn.

        With a source, its first argument is that file, open. The others and the result must be JSON, the result of
        the type that the function declares. Errors that are not a job's own become `WorkFailed`. If the `size` of the
        source in bytes is given and small, it may be opened together with others.
        """
        return await self._do(account_id, function, (source, None), args, size)

    async def transform(
        self,
        account_id: str,
        function: Callable[..., T],
        source: Path,
        target: Path,
        max_bytes: int,
        *args: Any,
        size: int | None = None,
    ) -> T:
        """Like `do`, with the file `target` as second argument, to which the function writes up to `max_bytes`."""
        return await self._do(account_id, function, (source, target), args, size, max_bytes)

    async def _do(
        self,
        account_id: str,
        function: Callable[..., T],
        given: _Given,
        args: tuple[Any, ...],
        size: int | None,
        file_bytes: int = 0,
    ) -> T:
        errand = Errand(
            function=f"{function.__module__}:{function.__qualname__}",
            args=args,
            seconds=self.seconds,
            cpu_seconds=self.cpu_seconds,
            memory_bytes=MEMORY_BYTES,
            threads=self.threads,
            file_bytes=file_bytes,
            files=sum(each is not None for each in given),
        )
        if size is not None and size <= MAX_SMALL_BYTES:
            found = await self._shared.do(account_id, (errand, given))
            if found is not None:
                return _interpret(function, errand, *found)
        piece = _Piece()
        # In a task of its own: when a caller is cancelled, the child still ends its work, and is used again.
        working = asyncio.create_task(self._serve(account_id, errand, given, piece))
        self._pieces[working] = piece
        working.add_done_callback(self._forget)
        try:
            await asyncio.wait([working])
        finally:
            piece.abandon(working)
        return _interpret(function, errand, *working.result())

    async def insist(
        self,
        account_id: str,
        function: Callable[..., T],
        source: Given = None,
        *args: Any,
        size: int | None = None,
    ) -> T:
        """Like `do`, but try once more after a crash: a child may die of something else than its work."""
        try:
            return await self.do(account_id, function, source, *args, size=size)
        except LimitReached:
            raise
        except WorkFailed:
            return await self.do(account_id, function, source, *args)

    async def close(self) -> None:
        """Abandon all work and end all children."""
        await self._shared.close()
        for working, piece in self._pieces.items():
            piece.abandon(working)
        if self._pieces:
            await asyncio.wait(self._pieces)
        idle, self._idle = self._idle, []
        await asyncio.gather(*(asyncio.to_thread(child.end) for child in idle))

    def _forget(self, done: asyncio.Task[Any]) -> None:
        del self._pieces[done]
        if not done.cancelled():
            done.exception()  # its caller may be gone; asyncio would log it as forgotten

    async def _serve(self, account_id: str, errand: Errand, given: _Given, piece: "_Piece") -> tuple[str, bytes]:
        async with self.queue.place(account_id):
            piece.is_waiting = False
            files = await asyncio.to_thread(_open_all, [given])
            if piece.is_abandoned:
                _close_all(files)
                return "stopped", b""
            piece.child = child = self._take_child()
            return await self._employ(child, [errand], files)

    async def _do_together(
        self, work: Sequence[tuple[Errand, _Given]], callers: Callers
    ) -> Sequence[tuple[str, bytes] | None]:
        """Return the status and answer of each errand. None: something failed, so that each is to be done alone."""
        apart: list[tuple[str, bytes] | None] = [None] * len(work)
        try:
            files = await asyncio.to_thread(_open_all, [given for _, given in work])
        except OSError:
            return apart
        if callers.have_left:
            _close_all(files)
            return apart
        child = self._take_child()
        callers.stop = child.stop
        status, answer = await self._employ(child, [errand for errand, _ in work], files)
        callers.stop = None
        if len(work) == 1:
            return [(status, answer)]
        answers = answer.removesuffix(b"\n").split(b"\n") if status == "done" else []
        return [(status, each) for each in answers] if len(answers) == len(work) else apart

    def _take_child(self) -> "_Child":
        return self._idle.pop() if self._idle else _Child()

    async def _employ(
        self, child: "_Child", errands: Sequence[Errand], files: Sequence[IO[bytes]]
    ) -> tuple[str, bytes]:
        """Have a child do errands, and keep it for the next ones."""
        try:
            status, answer = await child.do(errands, files)
        finally:
            _close_all(files)
        if status == "gone":
            await asyncio.to_thread(child.end)
        else:
            self._idle.append(child)
        return status, answer


class _Piece:
    """One piece of work, which its caller may abandon in the queue or while a child is at it."""

    def __init__(self) -> None:
        self.is_waiting = True
        self.is_abandoned = False
        self.child: _Child | None = None

    def abandon(self, working: asyncio.Task[Any]) -> None:
        """Leave the queue, or stop the child; nothing if the work is done."""
        if working.done() or self.is_abandoned:
            return
        self.is_abandoned = True
        if self.is_waiting:
            working.cancel()
        elif self.child is not None:
            self.child.stop()


class _Child:
    """One child process, started with its first errand."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    async def do(self, errands: Sequence[Errand], files: Sequence[IO[bytes]]) -> tuple[str, bytes]:
        """Return how the errands ended, `gone` if the child itself did, and the answers, each in a line."""
        self._is_stopped = False
        try:
            if self._socket is None:
                await asyncio.to_thread(self._start)
            if self._socket is None or self._is_stopped:
                return "stopped", b""
            line = msgspec.json.encode(errands) + b"\n"
            sent = socket.send_fds(self._socket, [line], [file.fileno() for file in files])
            async with asyncio.timeout(errands[0].seconds + GRACE_SECONDS):
                if sent < len(line):
                    await asyncio.get_running_loop().sock_sendall(self._socket, line[sent:])
                return await self._receive(self._socket)
        except (OSError, ValueError) as error:  # OSError: also a timeout
            log.warning("a file inspection process died", extra={"fields": {"reason": repr(error)}})
            return "gone", b""

    def stop(self) -> None:
        """Have the child end its work at once."""
        self._is_stopped = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.send(STOP)

    def end(self) -> None:
        """End the process and wait until it is gone."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    async def _receive(self, connection: socket.socket) -> tuple[str, bytes]:
        data, loop = b"", asyncio.get_running_loop()
        while True:
            piece = await loop.sock_recv(connection, MAX_ANSWER_BYTES)
            if not piece:
                raise ConnectionError("it closed its socket")
            data += piece
            head, line_end, answer = data.partition(b"\n")
            if line_end:
                status, length = head.split()
                if len(answer) >= int(length):
                    return status.decode(), answer

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003  its only parameter
        try:
            self._process = subprocess.Popen(  # noqa: S603  our own module, by our own interpreter
                [sys.executable, "-P", "-m", "penstock.inspection.worker_child", str(NICENESS)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_environment(),
                start_new_session=True,  # a Ctrl-C in the terminal is for the gateway, which decides
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours


def _environment() -> dict[str, str]:
    """Return the environment of a child's interpreter, without keys, passwords and addresses."""
    folders = [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100  "" is the current folder
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    settings = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**kept, **settings, "PYTHONPATH": os.pathsep.join(folders)}


def _open_all(given: Sequence[_Given]) -> list[IO[bytes]]:
    """Return the files to give to a child: it needs no path, and no right to open one."""
    files: list[IO[bytes]] = []
    try:
        for source, target in given:
            if source is not None:
                files.append(_open(source))
            if target is not None:
                files.append(target.open("r+b", buffering=0))
    except BaseException:
        _close_all(files)
        raise
    return files


def _close_all(files: Sequence[IO[bytes]]) -> None:
    for file in files:
        file.close()


def _open(source: bytes | Path) -> IO[bytes]:
    if isinstance(source, Path):
        return source.open("rb", buffering=0)
    file: IO[bytes] = (
        os.fdopen(os.memfd_create("file"), "w+b") if sys.platform == "linux" else tempfile.TemporaryFile()  # noqa: SIM115  closed by who asked for it
    )
    file.write(source)
    file.seek(0)  # which writes the rest, too
    return file


def _interpret(function: Callable[..., T], errand: Errand, status: str, answer: bytes) -> T:
    """Return the result, validated against the declared type, as a child is not trusted."""
    name = errand.function.partition(":")[2]
    match status:
        case "done":
            return _read_answer(function, name, answer)
        case "cpu":
            raise LimitReached(f"{name} took more than {errand.cpu_seconds} seconds of computing time")
        case "time":
            raise LimitReached(f"{name} took longer than {errand.seconds:g} seconds")
        case "killed" | "gone":
            raise WorkInterrupted(f"The process doing {name} was ended by the machine ({status}).")
        case "unable":
            log.error(
                "inspecting a file failed because of an error in the gateway",
                extra={"fields": {"reason": answer.decode(errors="replace")}},
            )
            raise WorkInterrupted(f"The process doing {name} could not begin.")
        case _:
            pass
    raise WorkFailed(f"The process doing {name} crashed ({status}).")


def _read_answer(function: Callable[..., T], name: str, answer: bytes) -> T:
    try:
        found = msgspec.json.decode(answer, type=ChildReply)
        if found.raised is None:
            return msgspec.json.decode(found.value, type=_declared(function))
    except msgspec.MsgspecError as error:
        raise WorkFailed(f"{name} gave an answer that is none") from error
    if found.raised.kind == "MemoryError":
        raise LimitReached(f"{name} needed more than {MEMORY_BYTES >> 20} MB of memory")
    if found.raised.kind in ERRORS:
        raise ERRORS[found.raised.kind](found.raised.message)
    raise WorkFailed(f"{name} raised {found.raised.kind}: {found.raised.message}")


@cache
def _declared(function: Callable[..., Any]) -> Any:
    """Return the type of the function's result. Reading it takes longer than decoding an answer."""
    try:
        return get_type_hints(function).get("return", Any)
    except TypeError:  # built-in functions declare nothing
        return Any
