"""A few threads that work for the event loop: as an executor's, with a fraction of the ado for each piece of work."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Piece(NamedTuple):
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]"


class ThreadPool:
    """What is to be done is done in turn, by whoever is free; its outcome comes back to the event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work_on, name=f"{name}-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Have this done; cancelled before its turn, it is not."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._pieces.put(_Piece(work, loop, done))
        return done

    def close(self) -> None:
        """Wait until everything is done that was to be."""
        for _ in self._threads:
            self._pieces.put(None)
        for thread in self._threads:
            thread.join()

    def _work_on(self) -> None:
        while (piece := self._pieces.get()) is not None:
            if not piece.done.cancelled():
                _work(piece)
            piece = None  # what it holds must not live until the next one comes


def _work(piece: _Piece) -> None:
    result, failure = None, None
    try:
        result = piece.work()
    except BaseException as error:  # noqa: BLE001  it is whoever waits that is told
        failure = error
    with suppress(RuntimeError):  # the loop has ended: nobody waits
        piece.loop.call_soon_threadsafe(_tell, piece.done, result, failure)


def _tell(done: "asyncio.Future[Any]", result: Any, failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(result)
    else:
        done.set_exception(failure)
