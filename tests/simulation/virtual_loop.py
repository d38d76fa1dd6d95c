"""An event loop on virtual time. One simulated process has one loop; the world runs its callbacks one by one."""

import asyncio
import contextvars
from asyncio import Future, Handle, Task, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulation.world import World

THREAD_SECONDS = 0.0005
"""Virtual duration of work that production gives to a thread."""


class DeadProcess(BaseException):
    """A killed process tried to act: nothing of it may run any more."""


class VirtualFuture(Future[Any]):
    """A future whose place in a set depends on its number, not on its address in memory."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._number = next(loop.world.numbers)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class VirtualTask(Task[Any]):
    """A task whose place in a set depends on its number: `asyncio.TaskGroup` cancels in the order of a set."""

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        loop: "VirtualLoop",
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> None:
        self._number = next(loop.world.numbers)
        super().__init__(coro, loop=loop, name=name or f"task {self._number}", context=context)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.AbstractEventLoop):
    """Keeps callbacks that are ready. Timers wait in the heap of the world, which all loops share."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.ready: deque[Handle] = deque()
        self.is_dead = False
        self.frozen_until = 0.0
        self.steps_left: int | None = None
        """The number of callbacks after which the process is killed; None: no kill is planned."""
        self.on_kill: Callable[[], None] | None = None
        self.is_listed = False
        """True while the world has this loop in its list of runnable ones."""

    # -- what asyncio and the code under test call

    def time(self) -> float:
        """Return the world's time: a monotonic clock never jumps, whatever the wall clock does."""
        return self.world.now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        """Run a callback in the next turn of this loop."""
        handle = Handle(callback, args, self, context)
        self.add_ready(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> TimerHandle:
        """Run a callback after virtual seconds."""
        return self.call_at(self.world.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> TimerHandle:
        """Run a callback at a moment of virtual time."""
        handle = TimerHandle(when, callback, args, self, context)
        self.world.add_timer(when, self, handle)
        return handle

    def create_future(self) -> "Future[Any]":
        """Return a future of this loop."""
        return VirtualFuture(self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> Any:
        """Start a task in this process. In a dead one, it never ends, as nothing of it runs."""
        if self.is_dead:
            coro.close()
            return self.create_future()
        return VirtualTask(coro, self, name, context)

    def run_in_executor(self, _executor: object, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run a thread's work inline, after a moment. There are no threads in the simulation."""
        done = self.create_future()
        self.call_later(self.world.jitter() * THREAD_SECONDS, _work, done, function, args)
        return done

    async def create_connection(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: Any = None, **_options: Any
    ) -> Any:
        """Connect to a server of the simulated network."""
        return await self.world.network.connect(self, protocol_factory, host, port)

    def get_task_factory(self) -> None:
        """Return None: tasks are asyncio's own."""

    def get_debug(self) -> bool:
        """Return False: asyncio's debug mode reads real clocks."""
        return False

    def is_running(self) -> bool:
        """Return whether the process lives."""
        return not self.is_dead

    def is_closed(self) -> bool:
        """Return whether the process is dead."""
        return self.is_dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception that nobody retrieved, as long as the process lives."""
        if not self.is_dead and not self.world.is_over:
            self.world.report_exception(self, context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Report like `call_exception_handler`."""
        self.call_exception_handler(context)

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        """Do nothing: a cancelled timer is skipped when its time comes."""

    # -- what the world calls

    def add_ready(self, handle: Handle) -> None:
        """Queue a callback."""
        if self.is_dead:
            return
        self.ready.append(handle)
        if not self.is_listed:
            self.is_listed = True
            self.world.runnable.append(self)

    def run_turn(self) -> None:
        """Run the callbacks that are ready now. A planned kill may end the turn between any two."""
        ready = self.ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self.steps_left is not None:
                self.steps_left -= 1
                if self.steps_left < 0 and self.on_kill is not None:
                    self.on_kill()
                    return
            handle._run()
            if self.is_dead:
                return


def _work(done: "Future[Any]", function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if done.cancelled():
        return
    try:
        result = function(*args)
    except DeadProcess:
        raise
    except BaseException as error:  # noqa: BLE001  raised to the caller
        if isinstance(error, StopIteration):
            error = RuntimeError(str(error))
        done.set_exception(error)
    else:
        done.set_result(result)
