"""A model server in its own process: started on first use, replaced when it dies, ended when idle for long."""

import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from penstock_engines.serving.child_process import ChildProcess


class ServerFailed(ConnectionRefusedError):
    """The server is not available. The message says what to do and may be shown to callers."""


class ServerPlan(Protocol):
    """The facts about one kind of server: its process, its limits of time and its error messages."""

    @property
    def name(self) -> str:
        """Return its name in messages, such as "chat server"."""
        ...

    @property
    def module(self) -> str:
        """Return the module that runs in the process."""
        ...

    @property
    def unload_seconds(self) -> float:
        """Return the idle timeout."""
        ...

    @property
    def start_seconds(self) -> float:
        """Return the timeout of a start."""
        ...

    def check(self) -> None:
        """Raise `ServerFailed` for a problem that can be found before a start."""
        ...

    def order(self, key: str) -> Mapping[str, Any]:
        """Return the first line that the process reads. Requests are sent with this key."""
        ...

    def explain(self, child: ChildProcess, took: float) -> str:
        """Return a message about a start that failed after so many seconds."""
        ...


class OnDemandServer:
    """One server for any number of threads. Callers use it between `enter` and `leave`."""

    def __init__(self, plan: ServerPlan) -> None:
        self.key = secrets.token_urlsafe(32)
        self._plan = plan
        self._child: ChildProcess | None = None
        self._start: Future[str] | None = None
        self._closed = False
        self._busy = 0
        self._patience = plan.unload_seconds
        self._idle_since = 0.0
        self._change = threading.Condition()

    def address(self) -> str | None:
        """Return its address, such as `http://127.0.0.1:PORT/v1`, or None if it must be started."""
        child = self._child
        return child and child.address

    def start(self) -> str:
        """Start it, wait, and return its address. Concurrent callers share one start and its outcome."""
        with self._change:
            address = self.address()
            if address is not None:
                return address
            start, first = self._start, self._start is None
            if start is None:
                start = self._start = Future[str]()
        if first:
            self._launch(start)
        return start.result()

    def enter(self) -> None:
        """Count one more user."""
        with self._change:
            self._busy += 1

    def leave(self) -> None:
        """Count one user less. When the last one leaves, the idle timeout begins."""
        with self._change:
            self._busy -= 1
            self._idle_since = time.monotonic()
            if self._patience == 0:
                self._change.notify_all()

    def retire(self) -> None:
        """Accept no new users, and end it when the last one leaves."""
        with self._change:
            self._patience = 0.0
            self._change.notify_all()

    def close(self) -> None:
        """End it now, for good."""
        with self._change:
            self._closed = True
            child, self._child = self._child, None
            self._change.notify_all()
        if child is not None:
            child.end()

    def _launch(self, start: Future[str]) -> None:
        try:
            address = self._bring_up()
        except BaseException as error:  # noqa: BLE001  waiting callers get whatever it was
            outcome = error
        else:
            outcome = address
        with self._change:
            self._start = None
        if isinstance(outcome, str):
            start.set_result(outcome)
        else:
            start.set_exception(outcome)

    def _bring_up(self) -> str:
        plan = self._plan
        plan.check()
        with self._change:
            if self._closed:
                raise ServerFailed(f"the built-in {plan.name} was closed")
            child = self._child = ChildProcess(plan.module, plan.order(self.key))
            self._change.notify_all()  # wake the watcher of the previous process
        began = time.monotonic()
        address = child.wait_until_ready(plan.start_seconds)
        if self._closed:
            raise ServerFailed(f"the built-in {plan.name} was closed while it started")
        if address is None:
            raise ServerFailed(plan.explain(child, time.monotonic() - began))
        self._idle_since = time.monotonic()
        threading.Thread(target=self._unload_when_idle, args=(child,), daemon=True).start()
        return address

    def _unload_when_idle(self, child: ChildProcess) -> None:
        with self._change:
            while self._child is child:
                left = self._idle_since + self._patience - time.monotonic()
                if self._busy or left > 0:
                    self._change.wait(self._plan.unload_seconds if self._busy else left)
                else:
                    self._child = None
        child.end()
