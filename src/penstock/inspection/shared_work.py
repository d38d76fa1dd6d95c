"""Small files of one account that are opened by one process together: its start takes longer than opening them."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from penstock.fairness.fair_queue import FairQueue

W = TypeVar("W")
R = TypeVar("R")

MAX_SMALL_BYTES: Final = 1 << 18
"""The largest file that is opened together with others."""
MAX_FILES_TOGETHER: Final = 16


class Callers:
    """Those who wait for work that is done together. Once all of them have left, the work is stopped."""

    def __init__(self, waiting: Sequence["asyncio.Future[Any]"]) -> None:
        self.stop: Callable[[], None] | None = None
        """Stops the work; None while there is nothing to stop."""
        self._waiting = waiting
        for each in waiting:
            each.add_done_callback(self._look)

    @property
    def have_left(self) -> bool:
        """Return whether nobody waits any more."""
        return all(each.cancelled() for each in self._waiting)

    def _look(self, _done: "asyncio.Future[Any]") -> None:
        if self.stop is not None and self.have_left:
            self.stop()


class SharedWork(Generic[W, R]):
    """Does the work that an account has waiting in one go, once it is the account's turn.

    `function` returns a result for each piece of work. None means that it must be done by itself.
    """

    def __init__(
        self, queue: FairQueue, function: Callable[[Sequence[W], Callers], Awaitable[Sequence[R | None]]]
    ) -> None:
        self._queue = queue
        self._function = function
        self._waiting: dict[str, deque[tuple[W, asyncio.Future[R | None]]]] = {}
        self._carriers: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.Future[R | None]] = set()

    async def do(self, account_id: str, work: W) -> R | None:
        """Return the result, or None if the work must be done by itself."""
        done: asyncio.Future[R | None] = asyncio.get_running_loop().create_future()
        self._open.add(done)
        done.add_done_callback(self._open.discard)
        self._waiting.setdefault(account_id, deque()).append((work, done))
        if self._carriers[account_id] < self._queue.share:
            self._carriers[account_id] += 1
            task = asyncio.create_task(self._work_on(account_id), name="small files")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await done

    async def close(self) -> None:
        """Abandon all work."""
        for done in list(self._open):
            done.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _work_on(self, account_id: str) -> None:
        waiting = self._waiting[account_id]
        try:
            while waiting:
                async with self._queue.place(account_id):
                    await self._do_next(waiting)
        finally:  # at once: the next work must not rely on a task that has stopped
            self._carriers[account_id] -= 1
            if not self._carriers[account_id]:
                del self._carriers[account_id], self._waiting[account_id]

    async def _do_next(self, waiting: deque[tuple[W, "asyncio.Future[R | None]"]]) -> None:
        """Do the next work together. If that fails, all its callers get the error."""
        taken = [waiting.popleft() for _ in range(min(MAX_FILES_TOGETHER, len(waiting)))]
        taken = [each for each in taken if not each[1].done()]  # the others' callers have left
        if not taken:
            return
        callers = Callers([done for _, done in taken])
        results: Sequence[R | None] = ()
        try:
            results = await self._function([work for work, _ in taken], callers)
        except Exception as error:  # noqa: BLE001  raised to each caller
            for _, done in taken:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), result in zip(taken, results, strict=True):
            if not done.done():
                done.set_result(result)
