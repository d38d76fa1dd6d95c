"""Tells the other processes, after the commit, what there is news of: a few words for many commits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final
from uuid import uuid4

from sqlalchemy import Connection

from penstock.errors import StoreUnavailable
from penstock.store import sql

CHANNEL: Final = "penstock"
GATHER_SECONDS: Final = 0.003
MOST_BYTES: Final = 7_500
"""PostgreSQL takes a little less than 8,000."""
MOST_TOPICS: Final = 20_000
"""More than these are not kept while the server is away: whoever listens catches up from the event log."""
# Nothing is lost if the server loses it, so that nobody waits for its disk.
_NOTIFY: Final = f"SELECT set_config('synchronous_commit', 'off', true), pg_notify('{CHANNEL}', ?)"

log = logging.getLogger(__name__)


class Notifier:
    """NOTIFY outside of the transactions that make the news: within them each would wait for all others."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        self.sender = uuid4().hex[:12]
        self._send = send
        self._topics: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def tell(self, topics: Iterable[str]) -> None:
        """Send these soon, with whatever else there is by then."""
        if len(self._topics) < MOST_TOPICS:
            self._topics.update(topics)
        if self._topics and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all(), name="herald")

    async def stop(self) -> None:
        """Send what is left."""
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        try:
            while self._topics:
                await asyncio.sleep(GATHER_SECONDS)
                topics, self._topics = self._topics, set()
                try:
                    await self._send(self._pack(topics))
                except StoreUnavailable:
                    log.warning("other processes were not told of news; they find it by themselves")
        finally:
            self._sending = None

    def _pack(self, topics: Iterable[str]) -> list[str]:
        """As few messages as fit."""
        packed, told, length = list[str](), [self.sender], len(self.sender)
        for topic in topics:
            if length + len(topic) + 1 > MOST_BYTES:
                packed.append(" ".join(told))
                told, length = [self.sender], len(self.sender)
            told.append(topic)
            length += len(topic) + 1
        return [*packed, " ".join(told)]


def notify(connection: Connection, messages: Iterable[str]) -> None:
    """Say these to all who listen."""
    for said in messages:
        sql.run(connection, _NOTIFY, said)
