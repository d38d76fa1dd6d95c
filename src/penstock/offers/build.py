"""Builds the offers from the settings: vendors, models and prices. All problems are reported together."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeGuard

from pydantic import ValidationError

from penstock.catalog import known_models
from penstock.catalog.declared import KINDS, declare, schema_of_bindings
from penstock.catalog.model import GenerationModel, Recipe
from penstock.catalog.schema_params import ANYTHING, FILE
from penstock.clocks import CLOCKS, Clocks
from penstock.domain.prices import DURATIONS, FACES, P, Price, PriceRow, PriceSchedule, Term, TokenPrice, make_schedule
from penstock.offers.offer import ChatOffer, Offer, Offers, TextKind, credential_id
from penstock.offers.route import Route
from penstock.safe_fetch.vendor_address import vendor_networks
from penstock.settings.prices import PriceList, Sold, misfit
from penstock.settings.problems import Problem, SettingsError, explain, nearest
from penstock.settings.tables import ModelEntry, Settings
from penstock.settings.values import BUILT_IN
from penstock.upstream.redaction import Redactor, find_hosts
from penstock.upstream.schema_discovery import find_schema
from penstock.vendor_api.audio import Speaker, Transcriber
from penstock.vendor_api.chat import ChatOptions, ChatVendor
from penstock.vendor_api.embeddings import Embedder
from penstock.vendor_api.generation import GenerationVendor, ServedModel, VendorFolders
from penstock.vendors import Vendor, load_vendor, vendor_names

log = logging.getLogger(__name__)

VENDORS_OWN: Final = "vendor"
NOT_INSTALLED: Final = "they are not installed"
INSTALL_ENGINES: Final = "Install a Penstock that has them, or route its models to another vendor."
USES: Final[Mapping[TextKind, type]] = {"embedding": Embedder, "speech": Speaker, "transcription": Transcriber}
"""Kinds of models that chat vendors may run besides those of chat, with the methods that it takes."""
Terms: TypeAlias = tuple[Term[Price], ...]
OF_DECLARED: Final = ("params", "file", "output", "preview", "workflow", "bind")


def build_offers(
    settings: Settings, former: Offers | None, clocks: Clocks = CLOCKS, rows: Sequence[PriceRow] = ()
) -> Offers:
    """Build vendors and models from the settings; keep each vendor whose options have not changed.

    Prices of `rows` count where the settings declare none.
    """
    old: dict[str, Vendor] = {**former.vendors, **former.chat_vendors} if former else {}
    every, problems = _build_vendors(settings, old, clocks)
    problems += _find_absent_routes(settings)
    vendors = {name: vendor for name, vendor in every.items() if _is_generation(vendor)}
    chat_vendors = {name: vendor for name, vendor in every.items() if is_chat(vendor)}
    own = {served.model.id: served.model for vendor in vendors.values() for served in vendor.models}
    known = own | known_models()
    entries, book = _list_entries(settings, every), PriceList(settings.prices, settings.source, rows)
    by_model: dict[str, Offer] = {}
    chat: dict[str, ChatOffer] = {}
    for index, entry in enumerate(entries):
        try:
            if kind := _find_text_kind(entry, chat_vendors, known):
                chat[entry.id] = _build_chat_offer(entry, kind, index, every, settings, book)
            elif offer := _Builder(entry, index, every, known, settings, book).build():
                by_model[entry.id] = offer
        except SettingsError as error:
            problems += error.problems
    sold = {entry.id: _sold(entry, chat_vendors, known) for entry in entries}
    problems += book.find_problems(sold, {*settings.vendors, *BUILT_IN})
    if problems:
        raise SettingsError(problems)
    kept_vendors = {} if former is None else dict(former.vendors)
    kept_models = {} if former is None else dict(former.known)
    return Offers(
        by_model,
        kept_vendors | vendors,
        kept_models | {offer.model.id: offer.model for offer in by_model.values()} | known,
        _make_redactor(settings, every, former),
        {**(former.by_credential if former else {}), **_by_credential(vendors)},
        chat,
        chat_vendors,
    )


def _make_redactor(settings: Settings, vendors: Mapping[str, Vendor], former: Offers | None) -> Redactor:
    """Return a redactor for these settings and all former ones, as late answers may show former secrets."""
    usual = [vendor.options.base_url for vendor in vendors.values()]
    written = [settings.vendors, settings.database_url, str(settings.assets_url), list(settings.secrets)]
    known = Redactor() if former is None else former.redactor
    return known.joined(settings.secrets, find_hosts([usual, written]))


def schemas_wanted(settings: Settings) -> list[tuple[str, str]]:
    """Return vendor and upstream model of every model declared with the vendor's own params."""
    return [(entry.routes[0].vendor, entry.routes[0].model) for entry in settings.models if entry.params == VENDORS_OWN]


def is_chat(vendor: Vendor) -> TypeGuard[ChatVendor]:
    """Return whether a vendor runs chat models; all others run generations."""
    return isinstance(vendor.options, ChatOptions)


def _is_generation(vendor: Vendor) -> TypeGuard[GenerationVendor]:
    return not is_chat(vendor)


def _build_vendors(
    settings: Settings, former: Mapping[str, Vendor], clocks: Clocks
) -> tuple[dict[str, Vendor], list[Problem]]:
    """Build a vendor for every table, or keep the former one if its options have not changed."""
    tables = {**settings.vendors, **_built_in(settings)}
    vendors: dict[str, Vendor] = {}
    problems: list[Problem] = []
    for name, table in tables.items():
        if table["type"] not in vendor_names():
            problems.append(_unknown_type(table["type"], settings.source.locate(("vendors", name, "type"))))
            continue
        kind = load_vendor(table["type"])
        try:
            options = kind.options_type.model_validate(table)
        except ValidationError as error:
            problems += explain(error, f"vendors.{name}", settings.source, kind.options_type).problems
            continue
        if settings.is_added(name):
            private = settings.run_time.vendor_addresses == "private"
            options.confine(vendor_networks(settings.fetch.allow_networks, private=private))
        is_unchanged = name in former and former[name].options == options
        folders = VendorFolders(settings.data / "vendors" / name, settings.weights, clocks)
        vendors[name] = former[name] if is_unchanged else kind(options, folders)
    return vendors, problems


def _unknown_type(kind: str, where: str) -> Problem:
    if kind in _built_in_types():
        return Problem(where, f"vendor type `{kind}` belongs to the built-in engines: {NOT_INSTALLED}", INSTALL_ENGINES)
    return Problem(where, f"there is no vendor type `{kind}`", nearest(kind, vendor_names()))


def _find_absent_routes(settings: Settings) -> list[Problem]:
    """Return a problem for each model with a route to a built-in vendor that is not installed."""
    absent = {name for name, table in BUILT_IN.items() if table["type"] not in vendor_names()} - settings.vendors.keys()
    return [
        Problem(
            settings.source.locate(("models", index, "id")),
            f"vendor `{route.vendor}` belongs to the built-in engines: {NOT_INSTALLED}",
            INSTALL_ENGINES,
        )
        for index, entry in enumerate(settings.models)
        for route in entry.routes
        if route.vendor in absent
    ]


def _built_in(settings: Settings) -> dict[str, dict[str, str]]:
    """Return a table for each installed built-in vendor that the settings do not name."""
    absent = (name for name in BUILT_IN if name not in settings.vendors)
    return {name: dict(BUILT_IN[name]) for name in absent if BUILT_IN[name]["type"] in vendor_names()}


def _built_in_types() -> set[str]:
    return {table["type"] for table in BUILT_IN.values()}


def _by_credential(vendors: Mapping[str, GenerationVendor]) -> dict[tuple[str, str], GenerationVendor]:
    return {(name, credential_id(vendor)): vendor for name, vendor in vendors.items()}


def _list_entries(settings: Settings, vendors: Mapping[str, Vendor]) -> Sequence[ModelEntry]:
    """Return the models of the settings, and those of the vendors where the file lists none."""
    if settings.lists_models:
        return settings.models
    taken = {entry.id for entry in settings.models} | settings.hidden_models
    return [*settings.models, *(entry for entry in _default_entries(vendors) if entry.id not in taken)]


def _default_entries(vendors: Mapping[str, Vendor]) -> list[ModelEntry]:
    """Return an entry for every model of every vendor, for settings without `[[models]]`; the first vendor wins."""
    entries: dict[str, ModelEntry] = {}
    for name, vendor in vendors.items():
        for model in _list_models(vendor):
            entries.setdefault(model, ModelEntry.model_validate({"id": model, "vendor": name}))
    return list(entries.values())


def _list_models(vendor: Vendor) -> Sequence[str]:
    if is_chat(vendor):
        return (*vendor.models, *(model for kind in USES for model in _models_for(vendor, kind)))
    return [served.model.id for served in _served(vendor)]


def _models_for(vendor: ChatVendor, kind: TextKind) -> Sequence[str]:
    """Return the vendor's own models of a kind other than chat."""
    match kind:
        case "embedding":
            return vendor.embedding_models if isinstance(vendor, Embedder) else ()
        case "speech":
            return vendor.speech_models if isinstance(vendor, Speaker) else ()
        case "transcription":
            return vendor.transcription_models if isinstance(vendor, Transcriber) else ()
        case "chat":
            return vendor.models


def _served(vendor: Vendor | None) -> Sequence[ServedModel]:
    return vendor.models if vendor is not None and _is_generation(vendor) else ()


def _find_text_kind(
    entry: ModelEntry, chat_vendors: Mapping[str, ChatVendor], known: Mapping[str, GenerationModel]
) -> TextKind | None:
    """Return the kind of a chat or embedding model, by its `kind` or else by its vendors; None for all others."""
    if entry.kind is not None:
        return next((kind for kind in ("chat", *USES) if kind == entry.kind), None)
    if entry.id in known or any(route.vendor not in chat_vendors for route in entry.routes):
        return None
    for kind in USES:
        if any(route.model in _models_for(chat_vendors[route.vendor], kind) for route in entry.routes):
            return kind
    return "chat"


def _named(entry: ModelEntry) -> set[str]:
    return {route.vendor for route in entry.routes}


def _routes(entry: ModelEntry) -> list[Route]:
    return [Route(route.vendor, route.model, route.weight, route.order) for route in entry.routes]


def _sold(entry: ModelEntry, chat_vendors: Mapping[str, ChatVendor], known: Mapping[str, GenerationModel]) -> Sold:
    model = known.get(entry.id)
    text_kind = _find_text_kind(entry, chat_vendors, known)
    kind = text_kind or (entry.kind or "" if model is None else model.kind)
    return Sold(entry.id, kind, {route.vendor for route in entry.routes})


def _build_chat_offer(
    entry: ModelEntry, kind: TextKind, index: int, vendors: Mapping[str, Vendor], settings: Settings, book: PriceList
) -> ChatOffer:
    where = settings.source.locate(("models", index, "id"))
    for route in entry.routes:
        vendor = vendors.get(route.vendor)
        if vendor is not None and not _runs(vendor, kind):
            what = f"vendor `{route.vendor}` does not run {kind} models"
            raise SettingsError([Problem(where, what, "Route it to a vendor such as `openai_compatible`.")])
    own = _own_price(entry, index, kind, settings, TokenPrice)
    able = {name: vendor for name, vendor in vendors.items() if is_chat(vendor) and name in _named(entry)}
    sold = Sold(entry.id, kind)
    terms = {name: book.terms(sold, name, own, vendor.price, TokenPrice) for name, vendor in able.items()}
    prices = {name: make_schedule(each, None) for name, each in terms.items()}
    known = [able[route.vendor].about.get(route.model) for route in entry.routes if route.vendor in able]
    return ChatOffer(entry.id, _routes(entry), prices, next(filter(None, known), None), kind, terms)


def _runs(vendor: Vendor, kind: TextKind) -> bool:
    """Return whether a vendor runs models of this kind. One that lists only models for other uses does not chat."""
    if not is_chat(vendor):
        return False
    if kind != "chat":
        return isinstance(vendor, USES[kind])
    return bool(vendor.models) or not any(_models_for(vendor, use) for use in USES)


def _own_price(entry: ModelEntry, index: int, kind: str, settings: Settings, form: type[P]) -> P | None:
    """Return the price in the model's own table, if any."""
    if entry.price is not None and (wrong := misfit(entry.price, kind)):
        raise SettingsError([Problem(settings.source.locate(("models", index, "price")), *wrong)])
    return entry.price if isinstance(entry.price, form) else None


@dataclass(frozen=True, slots=True)
class _Builder:
    """Builds the offer of one media model."""

    entry: ModelEntry
    index: int
    vendors: Mapping[str, Vendor]
    known: Mapping[str, GenerationModel]
    settings: Settings
    book: PriceList

    def build(self) -> Offer | None:
        """Return the offer; None while the vendor's own params of a declared model are unknown."""
        model = self.known.get(self.entry.id)
        kind = (self.entry.kind or "") if model is None else model.kind
        price = _own_price(self.entry, self.index, kind, self.settings, Price)
        return self._declared(price) if model is None else self._known(model, price)

    def _known(self, model: GenerationModel, price: Price | None) -> Offer:
        """Build the offer of a model from the catalogue or from a vendor's file."""
        entry = self.entry
        if name := next((name for name in OF_DECLARED if getattr(entry, name) is not None), None):
            raise self._problem(name, f"`{entry.id}` is known already and takes no `{name}`", "Leave it out.")
        routes, terms, reads_objects = list[Route](), dict[str, Terms](), True
        for route in entry.routes:
            vendor = self.vendors.get(route.vendor)
            if vendor is None:
                continue  # its table is wrong, which is reported already
            served = next((served for served in _served(vendor) if served.model.id == entry.id), None)
            if served is None or not _is_generation(vendor):
                what = f"vendor `{route.vendor}` cannot run `{entry.id}`"
                raise self._problem("id", what, "Route it to a vendor that can: see `penstock models show`.")
            name = served.name or route.model if route.model == entry.id else route.model
            routes.append(Route(route.vendor, name, route.weight, route.order))
            terms[route.vendor] = self._terms(model, route.vendor, price, served.price)
            reads_objects = reads_objects and vendor.reads_objects
        return Offer(model, routes, _make_schedules(terms, model), reads_objects, terms)

    def _declared(self, price: Price | None) -> Offer | None:
        """Build the offer of a model that only the settings declare."""
        entry = self.entry
        if any(route.vendor not in self.vendors for route in entry.routes):
            return None  # its table is wrong, which is reported already
        if not all(_declares(self.vendors[route.vendor]) for route in entry.routes):
            raise self._problem("id", f"there is no model `{entry.id}`", nearest(entry.id, self.known))
        if entry.kind not in KINDS:
            what = f"`{entry.id}` is declared here, and its `kind` is not one that is checked and kept"
            raise self._problem("id", what, f"Give it one of the kinds {', '.join(KINDS)}.")
        schema = self._schema(entry.routes[0].vendor, entry.routes[0].model)
        if schema is None:
            return None
        file = FILE if entry.file is None and FILE in (entry.bind or ()) else entry.file
        recipe = Recipe(entry.kind, file, entry.output, entry.preview, entry.workflow, entry.bind)
        try:
            model = declare(entry.id, entry.title, schema, recipe)
            terms = {route.vendor: self._terms(model, route.vendor, price, None) for route in entry.routes}
            return Offer(model, _routes(entry), _make_schedules(terms, model), terms=terms)
        except ValueError as error:
            if entry.params == VENDORS_OWN:  # the vendor's mistake: all other models are served
                fields = {"model": entry.id}
                log.error("vendor's schema is unusable; the model is not offered", extra={"fields": fields})  # noqa: TRY400
                return None
            remedy = 'Correct it, or write `params = "vendor"` to take the vendor\'s own.'
            raise self._problem("params", f"is not a JSON Schema of params: {error}", remedy) from None

    def _terms(self, model: GenerationModel, vendor: str, own: Price | None, usual: Price | None) -> Terms:
        return self.book.terms(Sold(model.id, model.kind), vendor, own, usual, Price)

    def _schema(self, vendor: str, model: str) -> Mapping[str, Any] | None:
        if self.entry.params is None:
            return schema_of_bindings(self.entry.workflow, self.entry.bind) if self.entry.bind else ANYTHING
        if self.entry.params == VENDORS_OWN:
            return find_schema(self.settings.data, vendor, model)
        return self.entry.params

    def _problem(self, name: str, what: str, remedy: str) -> SettingsError:
        return SettingsError([Problem(self.settings.source.locate(("models", self.index, name)), what, remedy)])


def _declares(vendor: Vendor) -> bool:
    return _is_generation(vendor) and vendor.declares


def _make_schedules(terms: Mapping[str, Terms], model: GenerationModel) -> dict[str, PriceSchedule[Price]]:
    """Return each vendor's price over time, with the bounds of the model's params."""
    schedules = {vendor: make_schedule(each, None) for vendor, each in terms.items()}
    return {
        vendor: replace(schedule, prices=tuple(each and _bound(each, model) for each in schedule.prices))
        for vendor, schedule in schedules.items()
    }


def _bound(price: Price, model: GenerationModel) -> Price:
    """Bound the price by the schema's maximum, which is read only if the price depends on it."""
    seconds = model.largest(DURATIONS) if price.is_by_length else None
    faces = model.largest(FACES) if price.per_thousand_faces else None
    return price.bounded(seconds=seconds, faces=faces)
