"""What is on offer: vendors and models, put together from the settings; every problem is told at once."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from pydantic import ValidationError

from penstock.catalog import known_models
from penstock.contract import ChatOptions, ChatVendor, GenerationVendor, Home, Vendor
from penstock.money import Price, TokenPrice
from penstock.offers import ChatOffer, Offer, Offers, Route, credential_id
from penstock.setting_problems import Problem
from penstock.settings import BUILT_IN, ModelEntry, Settings, SettingsError, explain, nearest
from penstock.vendors import load_vendor, vendor_names


def build_offers(settings: Settings, former: Offers | None) -> Offers:
    """Vendors and models as the settings say; a vendor whose options have not changed stays the same."""
    old: dict[str, Vendor] = {**former.vendors, **former.chat_vendors} if former else {}
    every, problems = _build_vendors(settings, old)
    vendors = {name: vendor for name, vendor in every.items() if _is_generation(vendor)}
    chat_vendors = {name: vendor for name, vendor in every.items() if is_chat(vendor)}
    entries = settings.models or _default_entries(every)
    by_model: dict[str, Offer] = {}
    chat: dict[str, ChatOffer] = {}
    for index, entry in enumerate(entries):
        try:
            if _is_chat_entry(entry, chat_vendors):
                chat[entry.id] = _build_chat_offer(entry, index, every, settings)
            else:
                by_model[entry.id] = _build_offer(entry, index, every, settings)
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
        chat,
        chat_vendors,
    )


def is_chat(vendor: Vendor) -> TypeGuard[ChatVendor]:
    """Whether a vendor runs chat models; the others run generations."""
    return isinstance(vendor.options, ChatOptions)


def _is_generation(vendor: Vendor) -> TypeGuard[GenerationVendor]:
    return not is_chat(vendor)


def _build_vendors(settings: Settings, former: Mapping[str, Vendor]) -> tuple[dict[str, Vendor], list[Problem]]:
    """A vendor for every table; one whose options have not changed stays the same."""
    tables = {**settings.vendors, **{name: {"type": name} for name in BUILT_IN if name not in settings.vendors}}
    vendors: dict[str, Vendor] = {}
    problems: list[Problem] = []
    for name, table in tables.items():
        if table["type"] not in vendor_names():
            where = settings.source.locate(("vendors", name, "type"))
            hint = nearest(table["type"], vendor_names())
            problems.append(Problem(where, f"there is no vendor type `{table['type']}`", hint))
            continue
        kind = load_vendor(table["type"])
        try:
            options = kind.options_type.model_validate(table)
        except ValidationError as error:
            problems += explain(error, f"vendors.{name}", settings.source, kind.options_type).problems
            continue
        same = name in former and former[name].options == options
        home = Home(settings.data / "vendors" / name, settings.weights)
        vendors[name] = former[name] if same else kind(options, home)
    return vendors, problems


def _by_credential(vendors: Mapping[str, GenerationVendor]) -> dict[tuple[str, str], GenerationVendor]:
    return {(name, credential_id(vendor)): vendor for name, vendor in vendors.items()}


def _default_entries(vendors: Mapping[str, Vendor]) -> list[ModelEntry]:
    """Without `[[models]]`, every vendor serves what it can; of several, the first."""
    entries: dict[str, ModelEntry] = {}
    for name, vendor in vendors.items():
        for model in _list_able(vendor):
            entries.setdefault(model, ModelEntry.model_validate({"id": model, "vendor": name}))
    return list(entries.values())


def _list_able(vendor: Vendor) -> Sequence[str]:
    if is_chat(vendor):
        return vendor.models
    return [model for model in known_models() if _is_generation(vendor) and vendor.serves(model)]


def _is_chat_entry(entry: ModelEntry, chat_vendors: Mapping[str, ChatVendor]) -> bool:
    """By what the entry says, else by who runs it."""
    if entry.kind is not None:
        return entry.kind == "chat"
    return entry.id not in known_models() and all(route.vendor in chat_vendors for route in entry.routes)


def _routes(entry: ModelEntry) -> list[Route]:
    return [Route(route.vendor, route.model, route.weight, route.order) for route in entry.routes]


def _build_chat_offer(entry: ModelEntry, index: int, vendors: Mapping[str, Vendor], settings: Settings) -> ChatOffer:
    where = settings.source.locate(("models", index, "id"))
    for route in entry.routes:
        vendor = vendors.get(route.vendor)
        if vendor is not None and not is_chat(vendor):
            what = f"vendor `{route.vendor}` does not run chat models"
            raise SettingsError([Problem(where, what, "Route it to a vendor such as `openai_compatible`.")])
    if isinstance(entry.price, Price):
        raise SettingsError([_wrong_price(settings, index, "chat", "input_per_million, output_per_million")])
    return ChatOffer(entry.id, _routes(entry), entry.price or _token_price(entry, vendors))


def _token_price(entry: ModelEntry, vendors: Mapping[str, Vendor]) -> TokenPrice | None:
    """What the one vendor asks; of several it is not known which will answer."""
    able = [vendors[route.vendor] for route in entry.routes if route.vendor in vendors]
    prices = [vendor.price for vendor in able if is_chat(vendor)]
    return prices[0] if prices and all(price == prices[0] for price in prices) else None


def _wrong_price(settings: Settings, index: int, kind: str, wanted: str) -> Problem:
    where = settings.source.locate(("models", index, "price"))
    return Problem(where, f"is not the price of a {kind} model", f"Use {wanted}.")


def _build_offer(entry: ModelEntry, index: int, vendors: Mapping[str, Vendor], settings: Settings) -> Offer:
    where = settings.source.locate(("models", index, "id"))
    model = known_models().get(entry.id)
    if model is None:
        raise SettingsError([Problem(where, f"there is no model `{entry.id}`", nearest(entry.id, known_models()))])
    routes, able = _routes(entry), dict[str, GenerationVendor]()
    for route in routes:
        vendor = vendors.get(route.vendor)
        if vendor is None:
            continue
        if not _is_generation(vendor) or not vendor.serves(entry.id):
            what = f"vendor `{route.vendor}` cannot run `{entry.id}`"
            raise SettingsError([Problem(where, what, "Route it to a vendor that can: see `penstock models show`.")])
        able[route.vendor] = vendor
    if isinstance(entry.price, TokenPrice):
        raise SettingsError([_wrong_price(settings, index, "media", "per_job, per_second, per_job_if")])
    reads_objects = all(vendor.reads_objects for vendor in able.values())
    return Offer(model, routes, entry.price or _vendor_price(list(able.values())), reads_objects)


def _vendor_price(vendors: Sequence[GenerationVendor]) -> Price | None:
    """What the dearest asks: a ceiling that holds whichever is chosen."""
    known = [vendor.price for vendor in vendors if vendor.price is not None]
    if not known or len(known) < len(vendors):
        return None
    return max(known, key=lambda price: (price.per_job, price.per_second))
