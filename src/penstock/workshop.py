"""Does heavy, native or risky work in a few child processes, so that a crash, a hang or a bomb in it ends there."""

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar, TypeVarTuple, cast

from anyio import BrokenWorkerProcess, CancelScope, CapacityLimiter, move_on_after, to_process

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

MEMORY_BYTES = 2 * 1024**3
NICENESS = 5  # whoever waits for the gateway's answer goes first, then this, then what engines generate
AT_ONCE = cast("CapacityLimiter", nullcontext())
"""Takes the child just made ready without a turn of the event loop, in which another could take it."""


class WorkFailed(Exception):
    """The work crashed, took too long or needed too much memory, and was ended together with its process."""


class Workshop:
    """At most `workers` children at a time, each kept for later work; each piece of work may take `seconds`.

    A child imports the program's main module under another name, so that must start nothing when imported.
    """

    def __init__(self, workers: int = 2, seconds: float = 60) -> None:
        self._places = CapacityLimiter(workers)
        self._seconds = seconds
        self._working: dict[asyncio.Task[Any], CancelScope] = {}

    async def do(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        """What the function returns or raises; it, its arguments and its outcome must pickle."""
        scope = CancelScope()
        # In a task of its own: anyio loses track of a child if its caller is cancelled while the child starts.
        working = asyncio.create_task(self._employ(scope, function, args))
        self._working[working] = scope
        working.add_done_callback(self._leave)
        try:
            await asyncio.wait([working])
        finally:
            scope.cancel()
        return working.result()

    async def insist(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        """The same, and once more if it failed: a child may die of something else than its work."""
        try:
            return await self.do(function, *args)
        except WorkFailed:
            return await self.do(function, *args)

    async def close(self) -> None:
        """End the work, and see children started that are about to: the event loop's end would lose them, running."""
        for scope in self._working.values():
            scope.cancel()
        if self._working:
            await asyncio.wait(self._working)

    def _leave(self, done: asyncio.Task[Any]) -> None:
        del self._working[done]
        if not done.cancelled():
            done.exception()  # its caller may be gone; asyncio would log it as forgotten

    async def _employ(self, scope: CancelScope, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        name = getattr(function, "__name__", "the work")
        async with self._places:
            try:
                await to_process.run_sync(_settle, limiter=AT_ONCE)  # starts a child if none is idle
                with scope, move_on_after(self._seconds):
                    return await to_process.run_sync(
                        _work, self._seconds, function, args, cancellable=True, limiter=AT_ONCE
                    )
            except BrokenWorkerProcess as error:
                raise WorkFailed(f"The process doing {name} crashed.") from error
            except MemoryError as error:
                raise WorkFailed(f"{name} needed more than {MEMORY_BYTES // 1024**2} MB of memory.") from error
            raise WorkFailed(f"{name} took longer than {self._seconds:g} seconds and was stopped.")


# -- inside the child


def _work(seconds: float, function: Callable[..., T], args: tuple[Any, ...]) -> T:
    with _silence(), _alarm(seconds + 1):
        return function(*args)


@functools.cache  # once in each child
def _settle() -> None:
    """Step back behind the gateway, and ignore what a terminal or service manager sends to the whole group."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(NICENESS)
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not on every platform

        with suppress(ValueError, OSError):  # a lower limit is set already, or the platform knows none
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@contextmanager
def _silence() -> Generator[None, None, None]:
    """Keep native code off the descriptors 1 and 2: results travel over the one, and nobody reads the other."""
    result, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(result, 1)
        os.close(result)
        os.close(null)


@contextmanager
def _alarm(seconds: float) -> Generator[None, None, None]:
    """End this process by itself where its parent was killed and cannot: an idle child sees that, a busy one not."""
    if sys.platform == "win32":
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
