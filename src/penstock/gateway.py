"""What a running gateway is made of, put together from the settings, and put together anew on reload."""

import asyncio
import importlib
import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from penstock import logs, metrics
from penstock.assets import Assets
from penstock.catalog import known_models
from penstock.collection import Collection
from penstock.contract import GenerationVendor
from penstock.dispatch.local import LocalDispatch
from penstock.estimates import REMEMBERED, History
from penstock.exchange import Exchange
from penstock.inputs import Inputs
from penstock.intake import Intake, Rules
from penstock.keyring import Keyring
from penstock.money import Price
from penstock.offers import Offer, Offers, Route, credential_id
from penstock.runner import Runner
from penstock.setting_problems import Problem
from penstock.settings import ModelEntry, Settings, SettingsError, explain, nearest
from penstock.shift import Tools
from penstock.store import job_rows, key_rows, schema
from penstock.store.database import Database
from penstock.upkeep import Upkeep
from penstock.urls import check_url
from penstock.vendors import known_vendors
from penstock.workshop import Workshop

if TYPE_CHECKING:
    from penstock.fetch import SafeFetcher

DEFAULT_VENDOR = "sim"
"""Serves everything when the settings name no vendor, until there are built-in engines."""

FIXED = (
    "data",
    "database_url",
    "assets_url",
    "server.host",
    "server.port",
    "server.max_body_mb",
    "server.drain_seconds",
    "server.log_level",
    "server.log_format",
    "jobs.max_held",
)
"""What is read once, at the start."""

log = logging.getLogger(__name__)


def open_database(settings: Settings) -> Database:
    """The store of these settings, at this version's schema."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    path.parent.mkdir(parents=True, exist_ok=True)
    database = Database(path)
    schema.upgrade(database.engine)
    return database


class Gateway:
    """Everything behind the web and the command line. `await Gateway.open(settings)`, then `close`."""

    database: Database
    assets: Assets
    inputs: Inputs
    intake: Intake
    keyring: Keyring
    dispatch: LocalDispatch
    upkeep: Upkeep

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.offers = build_offers(settings, None)
        self._rules = _make_rules(settings)
        self.history = History()
        self.clock = time.time
        self.draining = False
        self.streams = 0
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._fetcher: SafeFetcher | None = None

    @classmethod
    async def open(cls, settings: Settings) -> "Gateway":
        """Open the store, learn from its history, and take up every unfinished job."""
        gateway = cls(settings)
        _hide_secrets(settings)
        gateway.database = open_database(settings)
        gateway._resources.push_async_callback(gateway.database.close)
        await gateway._assemble()
        await gateway._remember()
        return gateway

    async def close(self) -> None:
        """Stop in the reverse order of `open`; unfinished jobs stay in the store as they are."""
        self.drain()
        await self._resources.aclose()

    def drain(self) -> None:
        """Let go of everyone who waits: streams end, `wait` answers with what is."""
        self.draining = True
        self.database.bell.ring_all()

    async def reload(self, settings: Settings) -> None:
        """Use new settings for all new work; what cannot change while running is named in the log."""
        offers = build_offers(settings, self.offers)
        for name in FIXED:
            wanted, used = attrgetter(name)(settings), attrgetter(name)(self.settings)
            if wanted != used:
                log.warning("a changed setting needs a restart", extra={"fields": {"setting": name}})
        _hide_secrets(settings)
        former = list(self.offers.by_credential.values())
        self.settings, self.offers, self._fetcher = settings, offers, None
        self._rules = _make_rules(settings)
        self.dispatch.reseat()
        await _close_all(vendor for vendor in former if vendor not in offers.by_credential.values())

    async def _assemble(self) -> None:
        secret = await self.database.write(key_rows.signing_secret)
        folder = Path(unquote(urlsplit(self.settings.assets_url).path))
        self.assets = Assets(folder, secret)
        self.keyring = Keyring(self.database, secret, self.clock)
        workshop = Workshop()
        self.inputs = Inputs(self.database, self.assets, workshop, self._open_fetcher, self.clock)
        self.upkeep = Upkeep(self.database, self.assets, self.inputs, self.clock)
        self.intake = Intake(
            self.database,
            self.inputs,
            lambda: self.offers,
            lambda: self._rules,
            self.history,
            self.upkeep.open_jobs,
            self.clock,
        )
        exchange = Exchange()
        self._resources.push_async_callback(self._close_vendors)
        self._resources.push_async_callback(exchange.close)
        tools = Tools(
            database=self.database,
            offers=lambda: self.offers,
            exchange=exchange,
            collection=Collection(exchange, self.assets, workshop),
            inputs=self.inputs,
            history=self.history,
            clock=self.clock,
        )
        await self.upkeep.start()
        self._resources.push_async_callback(self.upkeep.stop)
        metrics.watch_open_jobs(lambda: self.upkeep.open_jobs)
        self.dispatch = LocalDispatch(self.database, self._seats, self.settings.jobs.max_held, self.clock)
        await self.dispatch.start(Runner(tools).run)
        self._resources.push_async_callback(self.dispatch.stop)

    async def _close_vendors(self) -> None:
        await _close_all([*self.offers.by_credential.values(), *self.offers.vendors.values()])

    async def _remember(self) -> None:
        for model in await self.database.read(job_rows.models_with_history):
            self.history.add(model, await self.database.read(job_rows.recent_durations, model, REMEMBERED))

    async def _open_fetcher(self) -> "SafeFetcher":
        """The fetcher of the current settings; opened at its first use, as it would slow every start."""
        async with self._opening:
            if self._fetcher is not None:
                return self._fetcher
            module: Any = await asyncio.to_thread(importlib.import_module, "penstock.fetch")
            fetch = self.settings.fetch
            fetcher: SafeFetcher = module.SafeFetcher(fetch.allow_networks, seconds=fetch.seconds)
            self._fetcher = await self._resources.enter_async_context(fetcher)
            return fetcher

    def _seats(self, vendor: str) -> int:
        found = self.offers.vendors.get(vendor)
        return 1 if found is None else found.options.max_concurrent


async def _close_all(vendors: Iterable[GenerationVendor]) -> None:
    for vendor in vendors:
        if vendor.upstream is not None:
            await asyncio.to_thread(vendor.upstream.close)


def _make_rules(settings: Settings) -> Rules:
    jobs = settings.jobs
    return Rules(
        start_seconds=jobs.start_timeout,
        run_seconds=jobs.run_timeout,
        max_seconds=jobs.max_timeout,
        retention=jobs.retention,
        max_waiting=jobs.max_waiting,
        check_url=partial(check_url, allow_networks=settings.fetch.allow_networks),
    )


def _hide_secrets(settings: Settings) -> None:
    for secret in settings.secrets:
        logs.hide(secret)


# -- what is on offer


def build_offers(settings: Settings, former: Offers | None) -> Offers:
    """Vendors and models as the settings say; every problem is told at once."""
    vendors, problems = _build_vendors(settings, {} if former is None else former.vendors)
    entries = settings.models or _default_entries(vendors)
    by_model: dict[str, Offer] = {}
    for index, entry in enumerate(entries):
        try:
            by_model[entry.id] = _build_offer(entry, index, vendors, settings)
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(problems)
    kept_vendors = {} if former is None else dict(former.vendors)
    kept_models = {} if former is None else dict(former.known)
    return Offers(
        by_model,
        kept_vendors | vendors,
        kept_models | {offer.model.id: offer.model for offer in by_model.values()} | known_models(),
        settings.secrets | (former.secrets if former else frozenset[str]()),
        {**(former.by_credential if former else {}), **_by_credential(vendors)},
    )


def _build_vendors(
    settings: Settings, former: Mapping[str, GenerationVendor]
) -> tuple[dict[str, GenerationVendor], list[Problem]]:
    """A vendor for every table; one whose options have not changed stays the same."""
    tables = settings.vendors or {DEFAULT_VENDOR: {"type": DEFAULT_VENDOR}}
    vendors: dict[str, GenerationVendor] = {}
    problems: list[Problem] = []
    for name, table in tables.items():
        kind = known_vendors().get(table["type"])
        if kind is None:
            where = settings.source.locate(("vendors", name, "type"))
            hint = nearest(table["type"], known_vendors())
            problems.append(Problem(where, f"there is no vendor type `{table['type']}`", hint))
            continue
        try:
            options = kind.options_type.model_validate(table)
        except ValidationError as error:
            problems += explain(error, f"vendors.{name}", settings.source, kind.options_type).problems
            continue
        same = name in former and former[name].options == options
        vendors[name] = former[name] if same else kind(options, settings.data / "vendors" / name)
    return vendors, problems


def _by_credential(vendors: Mapping[str, GenerationVendor]) -> dict[tuple[str, str], GenerationVendor]:
    return {(name, credential_id(vendor)): vendor for name, vendor in vendors.items()}


def _default_entries(vendors: Mapping[str, GenerationVendor]) -> list[ModelEntry]:
    """Without `[[models]]`, every vendor serves what it can; of several, the first."""
    entries: dict[str, ModelEntry] = {}
    for name, vendor in vendors.items():
        for model in known_models():
            if vendor.serves(model):
                entries.setdefault(model, ModelEntry.model_validate({"id": model, "vendor": name}))
    return list(entries.values())


def _build_offer(entry: ModelEntry, index: int, vendors: Mapping[str, GenerationVendor], settings: Settings) -> Offer:
    where = settings.source.locate(("models", index, "id"))
    model = known_models().get(entry.id)
    if model is None:
        raise SettingsError([Problem(where, f"there is no model `{entry.id}`", nearest(entry.id, known_models()))])
    routes = [Route(route.vendor, route.model, route.weight, route.order) for route in entry.routes]
    for route in routes:
        vendor = vendors.get(route.vendor)
        if vendor is not None and not vendor.serves(entry.id):
            what = f"vendor `{route.vendor}` cannot run `{entry.id}`"
            raise SettingsError([Problem(where, what, "Route it to a vendor that can: see `penstock models show`.")])
    reads_objects = all(vendors[route.vendor].reads_objects for route in routes if route.vendor in vendors)
    return Offer(model, routes, entry.price or _vendor_price(routes, vendors), reads_objects)


def _vendor_price(routes: list[Route], vendors: Mapping[str, GenerationVendor]) -> Price | None:
    """What the dearest route asks: a ceiling that holds whichever is chosen."""
    prices = [vendors[route.vendor].price for route in routes if route.vendor in vendors]
    known = [price for price in prices if price is not None]
    if not known or len(known) < len(prices):
        return None
    return max(known, key=lambda price: (price.per_job, price.per_second))
