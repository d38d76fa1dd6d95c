"""Threads that work for the event loop, with less overhead for each task than an executor."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Task(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]"


class ThreadPool:
    """Runs tasks in order on the next free thread. Results return to the event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work_on, name=f"{name}-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Queue a task and return its future. A task cancelled before its turn is not run."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._tasks.put(_Task(work, loop, done))
        return done

    def close(self) -> None:
        """Wait until all queued tasks are done, then end the threads."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _work_on(self) -> None:
        while (task := self._tasks.get()) is not None:
            if not task.done.cancelled():
                _work(task)
            task = None  # its references must not live until the next one comes


def _work(task: _Task) -> None:
    result, failure = None, None
    try:
        result = task.work()
    except BaseException as error:  # noqa: BLE001  raised to the caller
        failure = error
    with suppress(RuntimeError):  # the loop has ended, and with it the caller
        task.loop.call_soon_threadsafe(_resolve, task.done, result, failure)


def _resolve(done: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(result)
    else:
        done.set_exception(failure)
