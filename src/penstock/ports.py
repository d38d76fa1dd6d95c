"""Ports: the gateway's ways to the store, the disk, child processes and the network.

The composition root opens everything through them. A simulation gives it others.
"""

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.billing.journal_files import DiskJournals, JournalFiles
from penstock.inspection.worker_pool import ProcessPool
from penstock.safe_fetch.policy import Network
from penstock.storage.assets import Assets
from penstock.storage.backend import StorageUnavailable, open_storage
from penstock.storage.scratch import ScratchFolder
from penstock.store import connect
from penstock.store.database import Database
from penstock.upstream.exchange import open_http_client
from penstock_sandbox import sandbox

if TYPE_CHECKING:
    from penstock.safe_fetch.fetcher import SafeFetcher
    from penstock.upstream.http_client import HttpClient

log = logging.getLogger(__name__)


class OpenPool(Protocol):
    """Opens a pool of child processes."""

    def __call__(self, places: int, *, seconds: float, cpu_seconds: int, threads: bool = ...) -> ProcessPool:
        """Return a pool with so many children, each with these limits for a file."""
        ...


async def open_database(url: str) -> Database:
    """Open the store and upgrade it to this version's schema. A store that cannot be used is closed again."""
    database = connect.open_database(url)
    try:
        await asyncio.to_thread(connect.prepare, database.engine)
    except BaseException:
        await database.close()
        raise
    return database


async def open_assets(url: str, downloads: Path) -> Assets:
    """Open the asset storage with its folder of downloads, and remove the partial ones of dead processes."""
    storage = open_storage(url)
    scratch = await asyncio.to_thread(ScratchFolder, downloads)
    assets = Assets(storage, scratch)
    await asyncio.to_thread(assets.clear_scratch)
    with suppress(StorageUnavailable):  # logged; requests that need it wait, all others are served
        await assets.check()
    return assets


async def open_fetcher(allow_networks: Sequence[Network], seconds: float) -> "SafeFetcher":
    """Return the fetcher of callers' URLs, imported in a thread at its first use."""
    module: Any = await asyncio.to_thread(importlib.import_module, "penstock.safe_fetch.fetcher")
    return module.SafeFetcher(allow_networks, seconds=seconds)


async def survey_sandbox() -> None:
    """Log the sandbox features for file inspection that this machine lacks."""
    if missing := (await asyncio.to_thread(sandbox.survey)).missing:
        fields = {"missing": ", ".join(missing)}
        log.warning("files are inspected in an incomplete sandbox", extra={"fields": fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Functions that open what the gateway works with. The defaults are the real things."""

    open_database: Callable[[str], Awaitable[Database]] = open_database
    open_assets: Callable[[str, Path], Awaitable[Assets]] = open_assets
    open_pool: OpenPool = ProcessPool
    open_http_client: Callable[[Callable[[], Sequence[Network]]], Awaitable["HttpClient"]] = open_http_client
    open_fetcher: Callable[[Sequence[Network], float], Awaitable["SafeFetcher"]] = open_fetcher
    open_journals: Callable[[Path], JournalFiles] = DiskJournals
    survey: Callable[[], Awaitable[None]] = survey_sandbox
