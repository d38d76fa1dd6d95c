"""Access to sealed secrets for a running process."""

import asyncio
from collections.abc import Callable

from penstock.sealing.data_keys import ensure_sealer, open_sealer
from penstock.sealing.master_keys import MasterKeys
from penstock.sealing.sealer import Sealer
from penstock.store.database import Database


class Vault:
    """Opens the store's data keys once. They stay the same when the master key is rotated."""

    def __init__(self, database: Database, masters: Callable[[], MasterKeys], clock: Callable[[], float]) -> None:
        self._database = database
        self._masters = masters
        self._clock = clock
        self._sealer: Sealer | None = None
        self._opening = asyncio.Lock()

    async def check(self) -> None:
        """Raise `SecretsUnavailable` at the start if the store has secrets that this process cannot open."""
        self._sealer = await self._database.read(open_sealer, self._masters())

    async def sealer(self) -> Sealer:
        """Return the sealer. The first call of a store makes its data key."""
        if self._sealer is None:
            async with self._opening:
                if self._sealer is None:
                    self._sealer = await self._database.write(ensure_sealer, self._masters(), self._clock())
        return self._sealer
