"""A gateway before a scripted vendor, which speaks any of the four dialects."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from conftest import Server, Start
from doubles.scripted.turns import Script
from doubles.scripted.vendor import ScriptedVendor

from penstock.domain.usage import Completion
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import completion_rows

UPSTREAM_MODEL = "upstream-model"


@dataclass(frozen=True, slots=True)
class Scripted:
    """A gateway, the vendor behind it, and a key."""

    server: Server
    vendor: ScriptedVendor
    dialect: str
    """The vendor's."""
    key: str

    @property
    def url(self) -> str:
        return self.server.url

    async def usage_records(self, count: int) -> list[Completion]:
        """The account's usage records, once there are so many."""
        database = self.server.gateway.database
        account_id = await database.write(key_rows.account_id, "default", time.time())
        while True:
            found = await database.read(completion_rows.of_account, account_id, 1000)
            if len(found) >= count:
                return found
            await asyncio.sleep(0.02)


@asynccontextmanager
async def scripted(start: Start, script: Script, dialect: str, model: str, more: str = "") -> AsyncGenerator[Scripted]:
    """Serve one model, by a vendor with this script and dialect; `more` are further settings of the model."""
    async with ScriptedVendor(script) as vendor:
        entry = f'[[models]]\nid = "{model}"\nkind = "chat"\nvendor = "scripted"\nmodel = "{UPSTREAM_MODEL}"\n{more}\n'
        server = await start(vendor.settings(dialect) + entry)
        yield Scripted(server, vendor, dialect, await server.new_key())
