"""The world of one seed: its clock, its dice, its processes, and the order in which they act."""

import asyncio
import heapq
import random
from asyncio import TimerHandle, events
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any, NamedTuple

from simulation.running.recorder import Recorder
from simulation.running.sources import EPOCH
from simulation.virtual_loop import VirtualLoop

__all__ = ["EPOCH", "Chance", "Step", "Violation", "World"]


class Violation(AssertionError):
    """A rule of the system was broken."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
        self.what = what


class Step(NamedTuple):
    """One fault or caller's step, as the trace shows it."""

    at: float
    name: str
    what: str


class Chance:
    """The dice of one place. Every throw has a name by which a replay can leave it out."""

    def __init__(self, world: "World", place: str) -> None:
        self._world = world
        self._place = place
        self._dice = random.Random(f"{world.seed}/{place}")
        self._thrown = 0
        self.random = self._dice.random
        self.uniform = self._dice.uniform
        self.choice = self._dice.choice
        self.randrange = self._dice.randrange

    def strikes(self, probability: float, what: str) -> bool:
        """Return whether a fault happens here and now, and write it into the trace."""
        self._thrown += 1
        if self._dice.random() >= probability or not self._world.has_faults:
            return False
        name = f"{self._place}#{self._thrown}"
        return self._world.allows(name, what)

    def draw(self, kinds: Sequence[tuple[str, float]]) -> str | None:
        """Return the fault that happens here and now, if any. Each kind has its probability."""
        self._thrown += 1
        thrown = self._dice.random()
        if not self._world.has_faults:
            return None
        for kind, probability in kinds:
            thrown -= probability
            if thrown < 0:
                return kind if self._world.allows(f"{self._place}#{self._thrown}", kind) else None
        return None


class World:
    """Runs all loops of a simulation in one thread, in an order that the seed chooses."""

    network: Any

    def __init__(self, seed: int, *, only: frozenset[str] | None = None) -> None:
        self.seed = seed
        self.now = 0.0
        self.only = only
        """Names of the faults and steps that may happen in a replay; None: all of them."""
        self.has_faults = True
        self.is_healed = False
        """True once all faults have ended, and everything must end well."""
        self.is_over = False
        self.is_calm = False
        """True at the end, when no fault has happened for a while."""
        self.has_skew = False
        """True if the wall clock of a process may be wrong."""
        self.had_jump = False
        """True once a clock was wrong by days: jobs may have expired early, and their requests with them."""
        self.prompt_since = EPOCH
        """The moment at which `is_calm` became true."""
        self.calm_since = EPOCH
        """The moment of the last fault."""
        self.runnable: list[VirtualLoop] = []
        self.graveyard: list[Any] = []
        """Dead processes. If they were collected as garbage, their `finally` blocks would run."""
        self.trace: list[Step] = []
        self.recorder = Recorder()
        self.counts: Counter[str] = Counter()
        self.problems: list[Violation] = []
        self._frozen: list[VirtualLoop] = []
        """Loops that have something to do, but stand still."""
        self._timers: list[tuple[float, int, VirtualLoop, TimerHandle]] = []
        self.numbers = count()
        self._chances: dict[str, Chance] = {}
        self._order = random.Random(f"{seed}/order")
        self.jitter = random.Random(f"{seed}/jitter").random
        self.outside = VirtualLoop(self, "outside")
        """The loop of callers, vendors and receivers, which never dies."""

    # -- dice

    def chance(self, place: str) -> Chance:
        """Return the dice of a place. Those of one place do not change what another one throws."""
        found = self._chances.get(place)
        if found is None:
            found = self._chances[place] = Chance(self, place)
        return found

    def allows(self, name: str, what: str) -> bool:
        """Write a fault into the trace, unless this replay leaves it out."""
        if self.only is not None and name not in self.only:
            return False
        self.counts[what] += 1
        self.note(what, name)
        return True

    # -- time and order

    def wall(self) -> float:
        """Return the true wall clock."""
        return EPOCH + self.now

    def add_timer(self, when: float, loop: VirtualLoop, handle: TimerHandle) -> None:
        """Keep a timer of a loop."""
        heapq.heappush(self._timers, (when, next(self.numbers), loop, handle))

    def spawn(self, coro: Coroutine[Any, Any, Any], name: str | None = None) -> "asyncio.Task[Any]":
        """Start a task outside of all processes."""
        return self.outside.create_task(coro, name=name)

    def later(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Call something outside of all processes after virtual seconds."""
        self.outside.call_later(seconds, callback, *args)

    def run(self, until: float, ended: Callable[[], bool] = lambda: False) -> None:
        """Run until a moment of virtual time, or until the condition holds."""
        while self.now < until and not ended():
            if self.problems:
                raise self.problems[0]
            if self.runnable:
                self._run_one()
            elif not self._pass_time(until):
                return
        if self.problems:
            raise self.problems[0]

    def _run_one(self) -> None:
        runnable = self.runnable
        place = self._order.randrange(len(runnable)) if len(runnable) > 1 else 0
        loop = runnable[place]
        runnable[place] = runnable[-1]
        runnable.pop()
        if loop.is_dead:
            loop.is_listed = False
            return
        if loop.frozen_until > self.now:
            self._frozen.append(loop)
            self.outside.call_at(loop.frozen_until, self._go_on, loop)
            return
        self.recorder.add(f"{self.now!r} {loop.name} {len(loop.ready)}")
        events._set_running_loop(loop)
        try:
            loop.run_turn()
        finally:
            events._set_running_loop(None)
        self.counts["turns"] += 1
        loop.is_listed = False
        if loop.ready and not loop.is_dead:
            loop.is_listed = True
            runnable.append(loop)

    def thaw(self, loop: VirtualLoop) -> None:
        """End the standstill of a loop now."""
        loop.frozen_until = min(loop.frozen_until, self.now)
        self._go_on(loop)

    def _go_on(self, loop: VirtualLoop) -> None:
        if loop not in self._frozen:
            return  # it was thawed earlier
        self._frozen.remove(loop)
        if loop.is_dead:
            loop.is_listed = False
        else:
            self.runnable.append(loop)

    def _pass_time(self, until: float) -> bool:
        """Jump to the next timer. Return False if there is none before the end."""
        timers = self._timers
        while timers:
            when, number, loop, handle = heapq.heappop(timers)
            if handle._cancelled or loop.is_dead:
                continue
            if when > until:
                heapq.heappush(timers, (when, number, loop, handle))
                break
            self.now = max(self.now, when)
            loop.add_ready(handle)
            while timers and timers[0][0] <= self.now:
                _, _, loop, handle = heapq.heappop(timers)
                if not handle._cancelled:
                    loop.add_ready(handle)
            return True
        self.now = until
        return False

    # -- what goes wrong

    def note(self, what: str, name: str = "") -> None:
        """Write something that happened into the trace."""
        self.trace.append(Step(self.now, name, what))
        self.recorder.add(f"{name}: {what}")

    def violate(self, rule: str, what: str) -> None:
        """Report a broken rule. The run ends with the first one."""
        self.problems.append(Violation(rule, what))

    def report_exception(self, loop: VirtualLoop, context: dict[str, Any]) -> None:
        """Report an exception that nobody retrieved."""
        error = context.get("exception")
        self.violate("no exception is lost", f"{loop.name}: {context.get('message')}: {error!r}")
