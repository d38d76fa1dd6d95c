"""A chat server in its own process: started on first use, replaced when it dies, ended when idle for long."""

import importlib.util
import re
import secrets
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock_engines.llama.child_process import ChildProcess
from penstock_engines.llama.profiles import find_profile
from penstock_engines.processors import count_processors

LOGGED_ERROR = re.compile(r"[\d.]+ E [^:]*: (.*)")
PATH = re.compile(r"[\w.~:-]*[/\\][^\s'\"]*")


class ServerFailed(ConnectionRefusedError):
    """The chat server is not available. The message says what to do and may be shown to callers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaOptions:
    """The weights, and the limits of threads, memory and time."""

    gguf: Path
    threads: int | None = None
    """None means one per processor."""
    context: int = 8192
    """Tokens of one conversation. Each slot has this many."""
    slots: int = 2
    """Number of parallel conversations."""
    memory_mb: int | None = None
    """Maximum allocation. The weights are mapped from their file and do not count."""
    repeat_penalty: float | None = None
    """Default for requests. None means that of the model's profile."""
    unload_seconds: float = 600
    start_seconds: float = 120


class LlamaServer:
    """One server for any number of threads. Callers use it between `enter` and `leave`."""

    def __init__(self, options: LlamaOptions) -> None:
        self.key = secrets.token_urlsafe(32)
        self._options = options
        self._child: ChildProcess | None = None
        self._start: Future[str] | None = None
        self._closed = False
        self._busy = 0
        self._patience = options.unload_seconds
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
        _check(self._options.gguf)
        with self._change:
            if self._closed:
                raise ServerFailed("the built-in chat server was closed")
            child = self._child = ChildProcess(self._order())
            self._change.notify_all()  # wake the watcher of the previous process
        began = time.monotonic()
        address = child.wait_until_ready(self._options.start_seconds)
        if address is None or self._closed:
            raise ServerFailed(self._explain(child, time.monotonic() - began))
        self._idle_since = time.monotonic()
        threading.Thread(target=self._unload_when_idle, args=(child,), daemon=True).start()
        return address

    def _order(self) -> dict[str, Any]:
        options, profile = self._options, find_profile(self._options.gguf.name)
        penalty = options.repeat_penalty
        return {
            "gguf": str(options.gguf.absolute()),
            "alias": options.gguf.stem,
            "key": self.key,
            "threads": options.threads or count_processors(),
            "context": options.context,
            "slots": options.slots,
            "memory_mb": options.memory_mb,
            "repeat_penalty": profile.repeat_penalty if penalty is None else penalty,
            "extra_buffers": profile.extra_buffers,
        }

    def _explain(self, child: ChildProcess, took: float) -> str:
        options = self._options
        name = options.gguf.name
        if self._closed:
            return "the built-in chat server was closed while it started"
        if took >= options.start_seconds:
            return (
                f"`{name}` was not loaded within {options.start_seconds:g} seconds; allow more, or use a smaller model"
            )
        cause = _find_cause(child.last_lines())
        if child.status is not None and child.status < 0:
            return f"the chat server crashed (signal {-child.status}) while it loaded `{name}`: {cause}"
        pull = find_profile(name).pull
        return f"`{name}` cannot be loaded; it may be damaged (`{pull}`) or need more memory: {cause}"

    def _unload_when_idle(self, child: ChildProcess) -> None:
        with self._change:
            while self._child is child:
                left = self._idle_since + self._patience - time.monotonic()
                if self._busy or left > 0:
                    self._change.wait(self._options.unload_seconds if self._busy else left)
                else:
                    self._child = None
        child.end()


def _check(gguf: Path) -> None:
    """Check options early, where the message is clearer than llama.cpp's."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ServerFailed("the built-in chat server is not installed; run `pip install 'penstock[local]'`")
    pull = find_profile(gguf.name).pull
    try:
        with gguf.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise ServerFailed(f"the weights `{gguf.name}` are missing; run `{pull}`") from None
    except OSError as error:
        raise ServerFailed(f"the weights `{gguf.name}` cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise ServerFailed(f"`{gguf.name}` is not a GGUF file; name another, or run `{pull}`")


def _find_cause(lines: tuple[str, ...]) -> str:
    """Return the first error it logged, else its last line, without this machine's paths."""
    errors = (match[1] for line in lines if (match := LOGGED_ERROR.match(line)))
    return PATH.sub("…", next(errors, lines[-1].strip() if lines else "it logged nothing"))
