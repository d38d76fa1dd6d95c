"""The models that this gateway serves, with their routes to vendors and their prices."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import unknown_name
from penstock.domain.chat import Ask, Dialect
from penstock.domain.jobs import Attempt
from penstock.domain.prices import (
    Price,
    PriceSchedule,
    Term,
    TokenPrice,
    combine,
    dearest,
    dearest_tokens,
    highest,
    token_ceiling,
)
from penstock.errors import InvalidRequest, ModelNotAllowed, ModelNotFound
from penstock.offers.route import Route, rank_routes
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.chat import AboutModel, ChatVendor
from penstock.vendor_api.generation import GenerationVendor

TextKind: TypeAlias = Literal["chat", "embedding", "speech", "transcription"]
"""The kinds of models that have an endpoint of their own and answer at once."""
TEXT_PATHS: Final[Mapping[TextKind, str]] = {
    "chat": "/llm/chat/completions",
    "embedding": "/llm/embeddings",
    "speech": "/llm/audio/speech",
    "transcription": "/llm/audio/transcriptions",
}
TEXT_KINDS: Final[Mapping[Dialect, TextKind]] = {
    Dialect.EMBEDDINGS: "embedding",
    Dialect.SPEECH: "speech",
    Dialect.TRANSCRIPTIONS: "transcription",
}
"""By dialect of a request: the kind of model that serves it. All other dialects are for chat."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The possible cost of a job: each vendor's formula as plain data, and the highest result of all."""

    formulas: Mapping[str, Mapping[str, Any] | None]
    ceiling: int | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that callers may name."""

    model: GenerationModel
    routes: Sequence[Route]
    prices: Mapping[str, PriceSchedule[Price]]
    """By vendor that may run it."""
    reads_objects: bool = False
    terms: Mapping[str, Sequence[Term[Price]]] = field(default_factory=dict[str, Sequence[Term[Price]]])
    """By vendor: the prices in `prices` with their origins, without the bounds of the params."""

    @property
    def id(self) -> str:
        """The name that callers use."""
        return self.model.id

    @property
    def kind(self) -> str:
        """The kind of output."""
        return self.model.kind

    @property
    def title(self) -> str:
        """The name shown to people."""
        return self.model.title

    def price_of(self, vendor: str, now: float) -> Price | None:
        """Return a vendor's price; None if it is unknown."""
        schedule = self.prices.get(vendor)
        return None if schedule is None else schedule.at(now)

    def price_at(self, now: float) -> Price | None:
        """Return the price shown to callers: each part at the dearest vendor's; None if one is unknown."""
        return dearest([schedule.at(now) for schedule in self.prices.values()])

    def ceiling(self, params: Mapping[str, Any], now: float) -> int | None:
        """Return the highest cost of a job at any vendor; None if one vendor's price is unknown."""
        return self.quote(params, now).ceiling

    def is_priced(self, now: float) -> bool:
        """Return whether every vendor's price is known."""
        return all(schedule.at(now) is not None for schedule in self.prices.values())

    def quote(self, params: Mapping[str, Any], now: float) -> Quote:
        """Return the possible cost of a job with these params, at the prices of `now`."""
        asked = {vendor: self._fit(schedule.at(now), params) for vendor, schedule in self.prices.items()}
        ceiling = highest(asked.values(), params)
        warnings: tuple[str, ...] = ()
        if not any(asked.values()):
            warnings = (f"The price of `{self.id}` is not known: its cost is not counted.",)
        elif ceiling is None:
            warnings = (f"The price of `{self.id}` is not known beforehand: its cost may not be counted.",)
        formulas = {vendor: None if price is None else price.formula() for vendor, price in asked.items()}
        return Quote(formulas, ceiling, warnings)

    def _fit(self, price: Price | None, params: Mapping[str, Any]) -> Price | None:
        """Return the price with the bound of these params, if the model knows one beyond its schema."""
        most_faces = self.model.most_faces
        return price if price is None or most_faces is None else price.bounded(faces=most_faces(params))

    def choose(self) -> Route:
        """Return a route of the lowest order, by weight."""
        return rank_routes(self.routes)[0]

    def choose_other(self, tried: Collection[tuple[str, str]]) -> Route | None:
        """Return a route that was not tried yet, of the lowest order and by weight; None if all were tried."""
        ranked = rank_routes(self.routes, lambda route: (route.vendor, route.model) not in tried)
        return ranked[0] if ranked else None


@dataclass(frozen=True, slots=True)
class ChatOffer:
    """A chat or embedding model that callers may name."""

    id: str
    routes: Sequence[Route]
    prices: Mapping[str, PriceSchedule[TokenPrice]]
    """By vendor that may answer."""
    about: AboutModel | None = None
    kind: TextKind = "chat"
    terms: Mapping[str, Sequence[Term[TokenPrice]]] = field(default_factory=dict[str, Sequence[Term[TokenPrice]]])
    """By vendor: the prices in `prices` with their origins."""
    ceilings: PriceSchedule[TokenPrice] = field(init=False)

    def __post_init__(self) -> None:
        """Compute the ceilings once, as every request needs them."""
        object.__setattr__(self, "ceilings", combine(list(self.prices.values()), token_ceiling))

    @property
    def title(self) -> str:
        """The name shown to people."""
        return self.about.title if self.about else self.id

    @property
    def description(self) -> str | None:
        """A sentence about the model, if its vendor has one."""
        return self.about.description if self.about else None

    def price_of(self, vendor: str, now: float) -> TokenPrice | None:
        """Return a vendor's price per token; None if it is unknown."""
        schedule = self.prices.get(vendor)
        return None if schedule is None else schedule.at(now)

    def price_for(self, ask: Ask, vendor: str, now: float) -> TokenPrice | None:
        """Return a vendor's price of one request, with its sound in `per_request`; None if it is unknown."""
        price = self.price_of(vendor, now)
        return price and price.of_sound(ask.characters, ask.seconds)

    def ceiling_price(self, now: float) -> TokenPrice | None:
        """Return the price that no vendor exceeds; None if one vendor's price is unknown."""
        return self.ceilings.at(now)

    def is_priced(self, now: float) -> bool:
        """Return whether every vendor's price is known."""
        return self.ceilings.at(now) is not None

    def price_at(self, now: float) -> TokenPrice | None:
        """Return the price shown to callers: each part at the dearest vendor's; None if one is unknown."""
        return dearest_tokens([schedule.at(now) for schedule in self.prices.values()])


@dataclass(frozen=True, slots=True)
class Offers:
    """All offers at one time; a reload replaces the whole object.

    `vendors`, `known` and `by_credential` keep entries that a reload removed, because jobs under way need them.
    """

    by_model: Mapping[str, Offer]
    vendors: Mapping[str, GenerationVendor]
    known: Mapping[str, GenerationModel]
    redactor: Redactor = field(default_factory=Redactor)
    by_credential: Mapping[tuple[str, str], GenerationVendor] = field(
        default_factory=dict[tuple[str, str], GenerationVendor]
    )
    chat: Mapping[str, ChatOffer] = field(default_factory=dict[str, ChatOffer])
    chat_vendors: Mapping[str, ChatVendor] = field(default_factory=dict[str, ChatVendor])

    def vendor_of(self, attempt: Attempt) -> GenerationVendor:
        """Return the vendor with the credential that placed an order, or else its current one."""
        return self.by_credential.get((attempt.vendor, attempt.credential)) or self.vendors[attempt.vendor]

    def most_results(self, offer: Offer) -> int | None:
        """Return how many results one job of a model makes at most, whichever route it takes; None: as `n` allows."""
        every = (self.vendors[route.vendor].most_results(route.model) for route in offer.routes)
        return min((most for most in every if most is not None), default=None)

    def get(self, model: str, allows: Callable[[str], bool] | None = None) -> Offer:
        """Return the offer of this id; raise an error that names the nearest one the caller may use."""
        offer = self.by_model.get(model)
        if offer is None:
            raise ModelNotFound(
                unknown_name("model", model, filter(allows, self.by_model)),
                param="model",
                suggestion="GET /api/v1/models lists what is served here.",
            )
        return offer

    def get_chat(self, model: str, kind: TextKind | None = None) -> ChatOffer:
        """Return the chat or embedding model of this id; raise an error in the wording that chat clients know.

        A model of another kind than the one asked for is refused with the path that serves it.
        """
        offer = self.chat.get(model)
        if offer is None:
            raise ModelNotFound(
                f"The model `{model[:100]}` does not exist or you do not have access to it.",
                param="model",
                suggestion="GET /llm/models lists what is served here.",
            )
        if kind is not None and offer.kind != kind:
            raise _refuse_kind(offer)
        return offer


def _refuse_kind(offer: ChatOffer) -> InvalidRequest:
    article = "an" if offer.kind == "embedding" else "a"
    message = f"`{offer.id}` is {article} {offer.kind} model, which this endpoint does not serve"
    return InvalidRequest(f"{message}: use POST {TEXT_PATHS[offer.kind]}.", param="model", code="unsupported_value")


def refuse_unpriced(model: str) -> ModelNotAllowed:
    """Return the error for a key with a budget: without a price, its budget could not be enforced."""
    return ModelNotAllowed(
        f"The price of `{model}` is not known, so it cannot be used on a budget.",
        param="model",
        suggestion="Have its price set, or use a model whose price is known.",
    )


def credential_id(vendor: GenerationVendor) -> str:
    """Return a short hash of a vendor's credential, which is stored with each attempt of a job."""
    return hashlib.sha256(vendor.options.credential.encode()).hexdigest()[:12]
