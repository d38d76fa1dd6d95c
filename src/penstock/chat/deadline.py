"""A time limit as `asyncio.timeout` sets it, for a fraction of its cost: every chat request needs one."""

import asyncio
from types import TracebackType


class Deadline:
    """`with Deadline(seconds):` raises TimeoutError inside a task that takes longer."""

    __slots__ = ("_before", "_expired", "_seconds", "_task", "_timer")

    _task: "asyncio.Task[object]"
    _timer: asyncio.TimerHandle

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  only a task can be given up
        self._task = task
        self._before = task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        # Who was cancelled by others at the same time stays cancelled.
        if self._expired and self._task.uncancel() <= self._before and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
