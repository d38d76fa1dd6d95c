"""Notifications to other processes after commits: a few messages for many commits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from sqlalchemy import Connection

from penstock.domain.ids import new_id
from penstock.errors import StoreUnavailable
from penstock.store import sql

CHANNEL: Final = "penstock"
GATHER_SECONDS: Final = 0.003
MAX_MESSAGE_BYTES: Final = 7_500
"""The size of a message: PostgreSQL allows a little less than 8,000."""
MAX_QUEUED_TOPICS: Final = 20_000
"""The number of topics kept while the server is away. Listeners catch up from the event log."""
# A lost message does no harm, so that the commit need not wait for the disk.
_NOTIFY: Final = f"SELECT set_config('synchronous_commit', 'off', true), pg_notify('{CHANNEL}', ?)"

log = logging.getLogger(__name__)


class Notifier:
    """Sends NOTIFY outside the transactions that it is about: inside them, each would wait for all others."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        self.sender = new_id("sender")
        self._send = send
        self._topics: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def queue(self, topics: Iterable[str]) -> None:
        """Send these topics soon, together with others that come by then."""
        if len(self._topics) < MAX_QUEUED_TOPICS:
            self._topics.update(topics)
        if self._topics and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all(), name="notifier")

    async def stop(self) -> None:
        """Send the remaining topics."""
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
                    log.warning("notification of other processes failed; they catch up from the event log")
        finally:
            self._sending = None

    def _pack(self, topics: Iterable[str]) -> list[str]:
        """Return as few messages as the topics fit into."""
        packed, message, length = list[str](), [self.sender], len(self.sender)
        for topic in topics:
            if length + len(topic) + 1 > MAX_MESSAGE_BYTES:
                packed.append(" ".join(message))
                message, length = [self.sender], len(self.sender)
            message.append(topic)
            length += len(topic) + 1
        return [*packed, " ".join(message)]


def notify(connection: Connection, messages: Iterable[str]) -> None:
    """Send messages to all listeners."""
    for message in messages:
        sql.run(connection, _NOTIFY, message)
