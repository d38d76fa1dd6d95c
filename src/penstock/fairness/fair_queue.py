"""A fixed number of places, given to accounts in turn, so that no account waits behind all work of another."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from penstock.errors import Overloaded, TooManyUploads

MAX_FILES_IN_PROGRESS: Final = 1000
"""The limit for all accounts together in one process."""
RETRY_SECONDS: Final = 2


class FairQueue:
    """Accounts take turns, and each account is served first come first served. No account holds all of several places.

    An account holds at most `share` places, if that is given. The queue itself has no limit. `UnderWayLimit` bounds
    the work that enters it.
    """

    def __init__(self, places: int, share: int | None = None) -> None:
        self._places = places
        self._share = max(1, places - 1) if share is None else share
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def share(self) -> int:
        """The number of places that one account may hold."""
        return self._share

    @property
    def held(self) -> int:
        """The number of places taken."""
        return self._held.total()

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a place."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(self, account_id: str) -> AsyncGenerator[None]:
        """Wait for this account's turn, and hold a place while the block lasts."""
        await self._take(account_id)
        try:
            yield
        finally:
            self._give_back(account_id)

    async def _take(self, account_id: str) -> None:
        if account_id not in self._waiting and self._may_take(account_id):
            self._held[account_id] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was granted as the caller left
                self._give_back(account_id)
            else:
                self._leave(account_id, turn)
            raise

    def _may_take(self, account_id: str) -> bool:
        return self.held < self._places and self._held[account_id] < self._share

    def _give_back(self, account_id: str) -> None:
        self._held[account_id] -= 1
        if not self._held[account_id]:
            del self._held[account_id]
        while (following := next(filter(self._may_take, self._waiting), None)) is not None:
            turn = self._waiting[following].popleft()
            if not turn.cancelled():  # otherwise its caller has left, and takes no place
                turn.set_result(None)
                self._held[following] += 1
                self._waiting.move_to_end(following)
            self._forget_empty(following)

    def _leave(self, account_id: str, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting.get(account_id, ()):
            self._waiting[account_id].remove(turn)
            self._forget_empty(account_id)

    def _forget_empty(self, account_id: str) -> None:
        if not self._waiting[account_id]:
            del self._waiting[account_id]


class UnderWayLimit:
    """Limits the files that accounts have in progress."""

    def __init__(self, most_of_all: int = MAX_FILES_IN_PROGRESS) -> None:
        self._most_of_all = most_of_all
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def one(self, account_id: str, most: int) -> Generator[None]:
        """Count one more file of this account while the block lasts. Raise if it exceeds a limit."""
        if self._under_way[account_id] >= most:
            message = f"This account already sends {most} files at once, the most allowed. Wait until one is done."
            raise TooManyUploads(message, retry_after=RETRY_SECONDS)
        if self._under_way.total() >= self._most_of_all:
            message = f"The server already receives {self._most_of_all} files at once, the most allowed. Retry later."
            raise Overloaded(message, retry_after=RETRY_SECONDS)
        self._under_way[account_id] += 1
        try:
            yield
        finally:
            self._under_way[account_id] -= 1
            if not self._under_way[account_id]:
                del self._under_way[account_id]
