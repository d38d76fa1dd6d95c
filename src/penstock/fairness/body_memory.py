"""Bounds on the memory of request bodies in flight, per process and per account, with a short wait for room."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from penstock.errors import ConcurrencyLimited, Overloaded, PenstockError
from penstock.fairness.fair_share import Bounds, FairShare

SMALL_BODY_BYTES: Final = 1 << 16
"""Bodies up to this size are not counted: the number of connections bounds them."""
LITTLE_BYTES: Final = 1 << 20
"""An account that holds no more than this may use the reserve."""
RESERVE_PART: Final = 8
"""The reserve is the total divided by this."""
WAIT_SECONDS: Final = 5.0
"""Seconds that a request waits for room before it is refused."""
MAX_WAITING_EACH: Final = 32
MAX_WAITING: Final = 1_024
MIB: Final = 1 << 20


def make_bounds(total_mb: int, each_mb: int, largest_mb: int) -> Bounds:
    """Return the bounds in bytes, such that one body of the largest size always fits."""
    each = max(each_mb, largest_mb) * MIB
    total = max(total_mb * MIB, each)
    reserve = min(total // RESERVE_PART, total - largest_mb * MIB)
    return Bounds(total, each, reserve, LITTLE_BYTES)


class Hold:
    """Memory taken by one request, which is returned once."""

    __slots__ = ("_account", "_bytes", "_memory")

    def __init__(self, memory: "BodyMemory", account: str, size: int) -> None:
        self._memory = memory
        self._account = account
        self._bytes = size

    def shrink(self, size: int) -> None:
        """Keep only this many bytes, and return the rest."""
        if size < self._bytes:
            spare, self._bytes = self._bytes - size, size
            self._memory.give_back(self._account, spare)

    def release(self) -> None:
        """Return all bytes that are left."""
        self.shrink(0)


class BodyMemory:
    """The memory of request bodies in one process."""

    def __init__(self, bounds: Callable[[], Bounds], wait_seconds: float = WAIT_SECONDS) -> None:
        self._bounds = bounds
        self._wait_seconds = wait_seconds
        self._share = FairShare()
        self._lines: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        """Waiting requests by account. The accounts are served in turn."""
        self._waiting = 0

    @property
    def held(self) -> int:
        """The bytes that all accounts hold now."""
        return self._share.total

    @property
    def waiting(self) -> int:
        """The number of requests that wait for room."""
        return self._waiting

    async def take(self, account: str, size: int) -> Hold:
        """Take memory for a body, after a short wait if need be. Raise the error for the caller if there is no room."""
        if account in self._lines or not self._share.try_take(account, size, self._bounds()):
            await self._wait(account, size)
        return Hold(self, account, size)

    def give_back(self, account: str, size: int) -> None:
        """Return memory, and grant it to waiting requests."""
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
        """Stop waiting. The next request of the account may be smaller and fit."""
        self._waiting -= 1
        line = self._lines.get(account)
        if line is not None and entry in line:
            line.remove(entry)
            if not line:
                del self._lines[account]
            self._let_in()

    def _let_in(self) -> None:
        """Grant the first request of each account if it fits. The account served last comes last."""
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
                f"The bodies of this account's requests in progress have {self._share.held_by(account)} bytes. "
                f"This request has {size} more, and at most {bounds.each} are allowed.",
                suggestion="Send fewer large requests at once, or retry when one of them is answered.",
                retry_after=self._wait_seconds,
            )
        return Overloaded(
            "Too many large request bodies are in progress.",
            suggestion="Retry soon.",
            retry_after=self._wait_seconds,
        )


def _is_granted(future: "asyncio.Future[None]") -> bool:
    return future.done() and not future.cancelled()
