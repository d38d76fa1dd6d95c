"""Worlds in child processes: each one is forked for its seed and ends without running a dead world's `finally`."""

import gc
import logging
import os
import pickle
import selectors
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, Final, NoReturn

from simulation.scenario import Scenario
from simulation.world import Step, Violation

CPU_SECONDS: Final = 600.0
"""A world that computes for longer hangs: its callbacks never come to an end."""
TIDY_EVERY: Final = 10
"""Worlds between two clean-ups of a database's catalog."""
CRASHED: Final = "the simulation itself works"
"""The rule that is broken if anything but a rule of the gateway fails."""
CALLERS: Final = ("caller ", "chat caller ")
"""The names of steps that are no faults begin so."""
SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"


class Hung(SystemExit):
    """The world used up its time. It is a `SystemExit`, which asyncio does not catch."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One world to run."""

    seed: int
    store: str = SQLITE
    jobs: int = 60
    chat: int = 32
    """Chat requests of each account."""
    seconds: float = 40.0
    only: frozenset[str] | None = None
    pipelines: int = 0
    """Pipelines of each account."""


@dataclass(slots=True)
class Outcome:
    """The result of one world."""

    wish: Wish
    digest: str = ""
    rule: str | None = None
    """The broken rule; None if all held."""
    what: str = ""
    trace: list[Step] = field(default_factory=list[Step])
    counts: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    """The number of faults by kind."""
    virtual_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def names(self) -> list[str]:
        """The names of the faults and callers' steps that happened, in order."""
        return list(dict.fromkeys(step.name for step in self.trace if step.name))


def play(wish: Wish, database_url: str) -> Outcome:
    """Run one world in this process."""
    begun = process_time()
    outcome = Outcome(wish)
    options: dict[str, Any] = {} if wish.store == SQLITE else {"database_url": database_url}
    scenario = None
    try:
        sizes = {"jobs": wish.jobs, "chat": wish.chat, "chains": wish.pipelines, "seconds": wish.seconds}
        scenario = Scenario(wish.seed, only=wish.only, **sizes, **options)
        scenario.run()
    except Violation as violation:
        outcome.rule, outcome.what = violation.rule, violation.what
    except Exception as error:  # noqa: BLE001  reported with the seed
        outcome.rule, outcome.what = f"{CRASHED}: {type(error).__name__}", traceback.format_exc()
    except Hung:
        outcome.rule, outcome.what = f"{CRASHED}: it ends", traceback.format_exc(-8)
    if scenario is not None:
        world = scenario.world
        outcome.digest, outcome.counts, outcome.virtual_seconds = world.recorder.digest(), world.counts, world.now
        outcome.trace = world.trace if outcome.rule or wish.only is not None else []
        outcome.faults = _count_faults(world.trace)
    outcome.cpu_seconds = process_time() - begun
    return outcome


def _count_faults(trace: list[Step]) -> "Counter[str]":
    return Counter(step.what for step in trace if step.name and not step.name.startswith(CALLERS))


@dataclass
class _Child:
    pid: int
    database_url: str
    pipe: int
    wish: Wish
    received: bytearray = field(default_factory=bytearray)

    def result(self) -> Outcome:
        """Wait for its end. Return its outcome, or that it crashed."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        if not self.received:
            return Outcome(self.wish, rule=f"{CRASHED}: it crashed", what=f"exit status {status}")
        return pickle.loads(self.received)  # noqa: S301  from our own child


class Worlds:
    """Runs worlds, several at a time. Each has a database of its own, by its URL, which is empty for SQLite."""

    def __init__(self, database_urls: Sequence[str], tidy: Callable[[str], None] = lambda _url: None) -> None:
        self._free = list(database_urls)
        self._tidy = tidy
        self._children: dict[int, _Child] = {}
        self._forked = 0

    def run(self, wishes: Iterator[Wish]) -> Iterator[Outcome]:
        """Run all worlds. Yield each outcome when it is there."""
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    while self._free and (wish := next(wishes, None)) is not None:
                        child = self._fork(wish, self._free.pop())
                        self._children[child.pid] = child
                        selector.register(child.pipe, selectors.EVENT_READ, child)
                    if not self._children:
                        return
                    yield from self._collect(selector)
            finally:
                self._end_all()

    def run_one(self, wish: Wish) -> Outcome:
        """Run one world."""
        return next(self.run(iter([wish])))

    def _collect(self, selector: selectors.BaseSelector) -> Iterator[Outcome]:
        for key, _ in selector.select():
            child: _Child = key.data
            piece = os.read(child.pipe, 1 << 16)
            if piece:
                child.received += piece
                continue
            selector.unregister(child.pipe)
            del self._children[child.pid]
            self._free.append(child.database_url)
            yield child.result()

    def _fork(self, wish: Wish, database_url: str) -> _Child:
        self._forked += 1
        if database_url and self._forked % TIDY_EVERY == 0:
            self._tidy(database_url)
        reader, writer = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            os.close(reader)
            _serve(wish, database_url, writer)
        os.close(writer)
        return _Child(pid, database_url, reader, wish)

    def _end_all(self) -> None:
        for child in self._children.values():
            os.kill(child.pid, signal.SIGTERM)
            child.received.clear()
            child.result()
            self._free.append(child.database_url)
        self._children.clear()


def _serve(wish: Wish, database_url: str, pipe: int) -> NoReturn:
    """Run a world in this child, and end without the interpreter's clean-up."""
    try:
        gc.disable()
        gc.freeze()
        logging.disable(logging.CRITICAL)
        signal.signal(signal.SIGTERM, end_hung)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPROF, end_hung)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        outcome = play(wish, database_url)
        signal.setitimer(signal.ITIMER_PROF, 0)
        with os.fdopen(pipe, "wb") as file:
            pickle.dump(replace(outcome), file)
    finally:
        os._exit(0)


def end_hung(*_: object) -> None:
    """End the world of this process: the handler of its timer."""
    raise Hung
