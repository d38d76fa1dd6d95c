"""Vendors' own schemas of declared models' params: fetched at the start, and stored for when a vendor is away."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.catalog.declared import read_schema
from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import GenerationVendor

DISCOVERY_TIMEOUT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 30.0
REFRESH_SECONDS: Final = 86_400.0
"""Time between two fetches of a known schema."""

log = logging.getLogger(__name__)


class SchemaRefresher:
    """Fetches unknown schemas at once, and refreshes known ones from time to time."""

    def __init__(self, knows_all: Callable[[], bool], ask: Callable[[], Awaitable[None]]) -> None:
        self._knows_all = knows_all
        self._ask = ask
        self._task: asyncio.Task[None] | None = None

    async def begin(self, *, is_wanted: bool) -> None:
        """Start or restart; refresh in the background only if a model is declared with its vendor's params."""
        await self.stop()
        wait = 0.0  # known schemas are refreshed in the background
        if not self._knows_all():
            await self._ask()
            wait = self._next_wait()
        if is_wanted:
            self._task = asyncio.create_task(self._refresh(wait), name="schemas")

    async def stop(self) -> None:
        """Cancel the background refresh."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _next_wait(self) -> float:
        return REFRESH_SECONDS if self._knows_all() else RETRY_SECONDS

    async def _refresh(self, wait: float) -> None:
        while True:
            await asyncio.sleep(wait)
            await self._ask()
            wait = self._next_wait()


def find_schema(data: Path, vendor: str, model: str) -> Mapping[str, Any] | None:
    """Return the stored schema of a model's params; None if there is none."""
    try:
        return msgspec.json.decode(_path(data, vendor, model).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return None


async def learn_schemas(
    exchange: Exchange, vendors: Mapping[str, GenerationVendor], wanted: Iterable[tuple[str, str]], data: Path
) -> bool:
    """Fetch and store the schemas of these models; return whether any has changed."""
    asked = [_learn(exchange, name, vendors[name], model, data) for name, model in wanted if name in vendors]
    return any(await asyncio.gather(*asked))


async def _learn(exchange: Exchange, name: str, vendor: GenerationVendor, model: str, data: Path) -> bool:
    fields = {"vendor": name, "model": model}
    try:
        async with asyncio.timeout(DISCOVERY_TIMEOUT_SECONDS):
            found = await exchange.drive(name, vendor, "describe", vendor.describe(model))
    except (*TROUBLE, TimeoutError):
        log.warning("vendor could not be asked for a model's params; retried later", extra={"fields": fields})
        return False
    if found is None:
        log.error("vendor does not describe the params of a model; the model is not offered", extra={"fields": fields})
        return False
    if found == find_schema(data, name, model):
        return False
    try:
        read_schema(found)  # a useless schema must not replace a good one
        await asyncio.to_thread(_store, _path(data, name, model), found)
    except (ValueError, OSError) as error:
        fields |= {"error": str(error)}
        log.error("schema is unusable or cannot be stored; the former one stays", extra={"fields": fields})  # noqa: TRY400
        return False
    return True


def _path(data: Path, vendor: str, model: str) -> Path:
    return data / "vendors" / vendor / "schemas" / f"{hashlib.sha256(model.encode()).hexdigest()[:16]}.json"


def _store(path: Path, schema: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")  # another server may write this file at the same moment
    draft.write_bytes(msgspec.json.encode(schema))
    draft.replace(path)
