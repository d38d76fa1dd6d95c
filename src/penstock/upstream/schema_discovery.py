"""Vendors' own descriptions of declared models' params: asked for at the start, and kept for when they cannot be."""

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

SECONDS: Final = 10.0
"""How long one description may take to come."""

RETRY_SECONDS: Final = 30.0
REFRESH_SECONDS: Final = 86_400.0
"""How often vendors are asked again."""

log = logging.getLogger(__name__)


class Learning:
    """Has vendors tell what is not known yet, at once, and looks again at what is, now and then."""

    def __init__(self, knows_all: Callable[[], bool], ask: Callable[[], Awaitable[None]]) -> None:
        self._knows_all = knows_all
        self._ask = ask
        self._task: asyncio.Task[None] | None = None

    async def begin(self, *, is_wanted: bool) -> None:
        """Begin, or begin anew with other settings; not where no model is declared with its vendor's params."""
        await self.stop()
        wait = 0.0  # what was known before is looked at again, but nobody waits for it
        if not self._knows_all():
            await self._ask()
            wait = self._next_look()
        if is_wanted:
            self._task = asyncio.create_task(self._go_on(wait), name="schemas")

    async def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _next_look(self) -> float:
        return REFRESH_SECONDS if self._knows_all() else RETRY_SECONDS

    async def _go_on(self, wait: float) -> None:
        while True:
            await asyncio.sleep(wait)
            await self._ask()
            wait = self._next_look()


def find_schema(data: Path, vendor: str, model: str) -> Mapping[str, Any] | None:
    """What was kept of a vendor's description of a model; None if nothing was."""
    try:
        return msgspec.json.decode(_place(data, vendor, model).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return None


async def learn_schemas(
    exchange: Exchange, vendors: Mapping[str, GenerationVendor], wanted: Iterable[tuple[str, str]], data: Path
) -> bool:
    """Ask vendors for the descriptions of these models and keep them; whether anything new was learned."""
    asked = [_learn(exchange, name, vendors[name], model, data) for name, model in wanted if name in vendors]
    return any(await asyncio.gather(*asked))


async def _learn(exchange: Exchange, name: str, vendor: GenerationVendor, model: str, data: Path) -> bool:
    fields = {"vendor": name, "model": model}
    try:
        async with asyncio.timeout(SECONDS):
            found = await exchange.drive(name, vendor, "describe", vendor.describe(model))
    except (*TROUBLE, TimeoutError):
        log.warning("the vendor could not be asked for a model's params", extra={"fields": fields})
        return False
    if found is None:
        log.error("the vendor does not describe the params of a model", extra={"fields": fields})
        return False
    if found == find_schema(data, name, model):
        return False
    try:
        read_schema(found)  # what is of no use does not take the place of what is
        await asyncio.to_thread(_keep, _place(data, name, model), found)
    except (ValueError, OSError) as error:
        fields |= {"error": str(error)}
        log.error("the vendor's description of a model cannot be used or kept", extra={"fields": fields})  # noqa: TRY400
        return False
    return True


def _place(data: Path, vendor: str, model: str) -> Path:
    return data / "vendors" / vendor / "schemas" / f"{hashlib.sha256(model.encode()).hexdigest()[:16]}.json"


def _keep(place: Path, schema: Mapping[str, Any]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_suffix(f".{os.getpid()}")  # another server may write the same at this moment
    draft.write_bytes(msgspec.json.encode(schema))
    draft.replace(place)
