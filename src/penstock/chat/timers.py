"""Timers of a chat request: a deadline until the vendor answers, and an idle timer while it streams."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final

MIN_PAUSE_SECONDS: Final = 0.01


class Deadline:
    """A cheap `asyncio.timeout`: `with Deadline(seconds):` raises TimeoutError in a task that takes longer."""

    __slots__ = ("_before", "_expired", "_seconds", "_task", "_timer")

    _task: "asyncio.Task[object]"
    _timer: asyncio.TimerHandle

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  only a task can be cancelled
        self._task = task
        self._before = task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        # A task that others cancelled as well stays cancelled.
        if self._expired and self._task.uncancel() <= self._before and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()


class IdleTimer:
    """Send heartbeats while the vendor is idle, and abort after the idle timeout or the total timeout.

    A single timer checks from time to time, because a timer for every read would cost more than the read.
    """

    __slots__ = (
        "_abort",
        "_handle",
        "_heartbeat",
        "_heartbeat_seconds",
        "_idle_seconds",
        "_loop",
        "_until",
        "expiry",
        "now",
        "sent_at",
        "waiting_since",
    )

    def __init__(
        self,
        abort: Callable[[], None],
        heartbeat: Callable[[], None],
        *,
        idle_seconds: float,
        total_seconds: float,
        heartbeat_seconds: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._abort = abort
        self._heartbeat = heartbeat
        self._idle_seconds = idle_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self.now = self._loop.time
        now = self.now()
        self._until = now + total_seconds
        self.sent_at = now
        """Time at which something was last sent to the caller."""
        self.waiting_since: float | None = None
        """Start of the current wait for the vendor; None while the caller is the slower side."""
        self.expiry = ""
        """Reason of the abort; empty until then."""
        self._handle = self._loop.call_at(min(self._until, now + idle_seconds, now + heartbeat_seconds), self._check)

    def begin_wait(self) -> None:
        """Start waiting for the vendor."""
        self.waiting_since = self._loop.time()

    def record_output(self) -> None:
        """Restart both clocks: the vendor sent something, and the caller gets it."""
        self.waiting_since = self.sent_at = self._loop.time()

    def stop(self) -> None:
        """Cancel the timer."""
        self._handle.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        since = now if self.waiting_since is None else self.waiting_since
        if now >= self._until:
            self.expiry = "its total timeout expired"
        elif now >= since + self._idle_seconds:
            self.expiry = "it sent nothing for longer than the idle timeout"
        if self.expiry:
            self._abort()
            return
        if now >= self.sent_at + self._heartbeat_seconds:
            self.sent_at = now
            if self.waiting_since is not None:  # otherwise the caller is the slow side
                self._heartbeat()
        due = min(self._until, since + self._idle_seconds, self.sent_at + self._heartbeat_seconds)
        self._handle = self._loop.call_at(max(due, now + MIN_PAUSE_SECONDS), self._check)
