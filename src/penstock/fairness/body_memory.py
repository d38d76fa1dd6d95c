"""Bounds the memory of request bodies in flight, per process and per account; who finds no room waits shortly."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from penstock.errors import ConcurrencyLimited, Overloaded, PenstockError
from penstock.fairness.fair_share import Bounds, FairShare

SMALL_BODY_BYTES: Final = 1 << 16
"""A body up to this size is not counted: the number of connections bounds these."""
LITTLE_BYTES: Final = 1 << 20
"""An account that holds no more than this may use the reserve."""
RESERVE_PART: Final = 8
"""One part of so many of the whole is the reserve."""
WAIT_SECONDS: Final = 5.0
"""Seconds that a request waits for room before it is refused."""
MAX_WAITING_EACH: Final = 32
MAX_WAITING: Final = 1_024
MIB: Final = 1 << 20


def make_bounds(total_mb: int, each_mb: int, largest_mb: int) -> Bounds:
    """Return the bounds in bytes; one body of the largest size always fits."""
    each = max(each_mb, largest_mb) * MIB
    total = max(total_mb * MIB, each)
    reserve = min(total // RESERVE_PART, total - largest_mb * MIB)
    return Bounds(total, each, reserve, LITTLE_BYTES)


class Hold:
    """Memory that one request has taken; given back once."""

    __slots__ = ("_account", "_bytes", "_memory")

    def __init__(self, memory: "BodyMemory", account: str, size: int) -> None:
        self._memory = memory
        self._account = account
        self._bytes = size

    def shrink(self, size: int) -> None:
        """Keep only this many bytes of it."""
        if size < self._bytes:
            spare, self._bytes = self._bytes - size, size
            self._memory.give_back(self._account, spare)

    def release(self) -> None:
        """Give back all that is left of it."""
        self.shrink(0)


class BodyMemory:
    """One per process."""

    def __init__(self, bounds: Callable[[], Bounds], wait_seconds: float = WAIT_SECONDS) -> None:
        self._bounds = bounds
        self._wait_seconds = wait_seconds
        self._share = FairShare()
        self._lines: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        """Waiting requests, by account; the accounts are served in turn."""
        self._waiting = 0

    @property
    def held(self) -> int:
        """Bytes that are taken now, by all accounts."""
        return self._share.total

    @property
    def waiting(self) -> int:
        """The number of requests that wait for room."""
        return self._waiting

    async def take(self, account: str, size: int) -> Hold:
        """Take memory for a body, if need be after a short wait in line; or raise what the caller is to be sent."""
        if account in self._lines or not self._share.try_take(account, size, self._bounds()):
            await self._wait(account, size)
        return Hold(self, account, size)

    def give_back(self, account: str, size: int) -> None:
        """Return memory, and let in who has waited for it."""
        self._share.give_back(account, size)
        if self._lines:
            self._let_in()

    async def _wait(self, account: str, size: int) -> None:
        line = self._lines.get(account, ())
        if len(line) >= MAX_WAITING_EACH or self._waiting >= MAX_WAITING:
            raise self._refusal(account, size)
        future = asyncio.get_running_loop().create_future()
        entry = (size, future)
        self._lines.setdefault(account, deque()).append(entry)
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await future
        except TimeoutError:
            if not _is_granted(future):
                raise self._refusal(account, size) from None
        except asyncio.CancelledError:
            if _is_granted(future):
                self.give_back(account, size)
            raise
        finally:
            self._leave(account, entry)

    def _leave(self, account: str, entry: tuple[int, asyncio.Future[None]]) -> None:
        """Stop waiting; whoever stood behind may fit where this one did not."""
        self._waiting -= 1
        line = self._lines.get(account)
        if line is not None and entry in line:
            line.remove(entry)
            if not line:
                del self._lines[account]
            self._let_in()

    def _let_in(self) -> None:
        """Grant what fits: of each account the first in its line, the account that was served last comes last."""
        bounds, is_moving = self._bounds(), True
        while is_moving:
            is_moving = False
            for account in list(self._lines):
                line = self._lines[account]
                size, future = line[0]
                if not future.done() and not self._share.try_take(account, size, bounds):
                    continue
                is_moving = True
                line.popleft()
                del self._lines[account]
                if line:
                    self._lines[account] = line
                if not future.done():
                    future.set_result(None)

    def _refusal(self, account: str, size: int) -> PenstockError:
        bounds = self._bounds()
        if not self._share.has_room_for(account, size, bounds):
            return ConcurrencyLimited(
                f"Requests of this account that are under way hold {self._share.held_by(account)} bytes of bodies, "
                f"and may hold {bounds.each}; this one has {size}.",
                suggestion="Send fewer large requests at once, or try again when one of them is answered.",
                retry_after=self._wait_seconds,
            )
        return Overloaded(
            "Too many large request bodies are under way.",
            suggestion="Try again soon.",
            retry_after=self._wait_seconds,
        )


def _is_granted(future: "asyncio.Future[None]") -> bool:
    return future.done() and not future.cancelled()
