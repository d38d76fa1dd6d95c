"""The prices of the store in every process: polled, so that a change applies within two seconds without a restart."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from penstock.domain.prices import PriceRow
from penstock.errors import StoreUnavailable
from penstock.store.database import Connection, Database
from penstock.store.queries.billing import price_rows

WATCH_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class PriceWatch:
    """Follows the prices of the store. While it is away, the latest prices apply."""

    def __init__(self, database: Database, use: Callable[[], None]) -> None:
        self.rows: Sequence[PriceRow] = ()
        """Prices that are or will be in force, or were."""
        self.version = 0
        self._database = database
        self._use = use
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow changes by any process."""
        self._watching = asyncio.create_task(self._watch(), name="prices")

    async def stop(self) -> None:
        """Stop following."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def learn(self) -> None:
        """Read the prices if they have changed, and have them used."""
        if await self._database.read(price_rows.read_version) == self.version:
            return
        version, self.rows = await self._database.read(_read)
        self._use()
        self.version = version

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self.learn()
            except StoreUnavailable:
                continue
            except Exception:
                log.exception("following changes of prices failed; retrying")


def _read(connection: Connection) -> tuple[int, list[PriceRow]]:
    version = price_rows.read_version(connection)  # first: a change meanwhile is read again
    return version, [row for row in price_rows.read(connection) if not row.is_void()]
