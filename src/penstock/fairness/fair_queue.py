"""A fixed number of places, given to accounts in turn, so that nobody waits behind all work of another account."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from penstock.errors import Overloaded, TooManyUploads

MAX_UNDER_WAY: Final = 1000
"""Files that all accounts together may have under way in one process."""
RETRY_SECONDS: Final = 2


class FairQueue:
    """Accounts take turns, each first come first served. Where there are several places, no account holds all.

    It is as long as its callers let it be: see `Allowance`.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._share = max(1, places - 1)
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

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
        """Wait for this account's turn, and hold a place meanwhile."""
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
            if turn.done() and not turn.cancelled():  # the place came at the moment in which the caller left
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
            self._held[following] += 1
            self._waiting.move_to_end(following)
            self._forget_empty(following)
            turn.set_result(None)

    def _leave(self, account_id: str, turn: asyncio.Future[None]) -> None:
        self._waiting[account_id].remove(turn)
        self._forget_empty(account_id)

    def _forget_empty(self, account_id: str) -> None:
        if not self._waiting[account_id]:
            del self._waiting[account_id]


class UnderWayLimit:
    """Counts what each account has under way, and refuses what is too much."""

    def __init__(self, most_of_all: int = MAX_UNDER_WAY) -> None:
        self._most_of_all = most_of_all
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def one(self, account_id: str, most: int) -> Generator[None]:
        """Count one more of this account while the block lasts."""
        if self._under_way[account_id] >= most:
            message = f"This account sends {most} files at once, which is the most allowed; wait until one is done."
            raise TooManyUploads(message, retry_after=RETRY_SECONDS)
        if self._under_way.total() >= self._most_of_all:
            message = f"The server takes {self._most_of_all} files at once, which is the most it can; try again later."
            raise Overloaded(message, retry_after=RETRY_SECONDS)
        self._under_way[account_id] += 1
        try:
            yield
        finally:
            self._under_way[account_id] -= 1
            if not self._under_way[account_id]:
                del self._under_way[account_id]
