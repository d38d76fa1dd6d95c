"""The places that need a price: every model at every vendor that may run it, with the price in force."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from penstock.domain.prices import CONDITIONAL, FIXED, Price, PriceOrigin, Term, TokenPrice, find_term
from penstock.offers.offer import ChatOffer, Offer, Offers

PROVIDERS: Final[Mapping[str, str]] = {
    "agents.lumalabs.ai": "luma_agents",
    "api.anthropic.com": "anthropic",
    "api.cerebras.ai": "cerebras",
    "api.cohere.ai": "cohere",
    "api.deepinfra.com": "deepinfra",
    "api.deepseek.com": "deepseek",
    "api.dev.runwayml.com": "runwayml",
    "api.fireworks.ai": "fireworks_ai",
    "api.groq.com": "groq",
    "api.klingai.com": "kling",
    "api.lumalabs.ai": "luma",
    "api.meshy.ai": "meshy",
    "api.mistral.ai": "mistral",
    "api.openai.com": "openai",
    "api.perplexity.ai": "perplexity",
    "api.replicate.com": "replicate",
    "api.together.xyz": "together_ai",
    "api.tripo3d.ai": "tripo",
    "api.x.ai": "xai",
    "generativelanguage.googleapis.com": "gemini",
    "openapi.tripo3d.ai": "tripo",
    "openrouter.ai": "openrouter",
    "queue.fal.run": "fal_ai",
}
"""By host of a vendor's `base_url`: the name of the provider in price lists."""
VERTEX_AI: Final = "aiplatform.googleapis.com"
"""Vertex AI has a host for each region."""
ORIGINS: Final = ("file", "row", "vendor")
AnyTerm = Term[Price] | Term[TokenPrice]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePlace:
    """One model at one vendor."""

    model: str
    kind: str
    vendor: str
    names: frozenset[str]
    """The vendor's own names of the model."""
    provider: str | None
    """The vendor's name in price lists; None if its host is not a known provider's."""
    is_remote: bool
    terms: Sequence[AnyTerm]

    def term_at(self, moment: float) -> AnyTerm | None:
        """Return the price in force with its origin; None if the price is not known."""
        terms: Any = self.terms
        return find_term(terms, moment)

    def is_free(self) -> bool:
        """Return whether the vendor itself says that it costs nothing, as those on your own machines do."""
        return any(term.origin is PriceOrigin.VENDOR and not any_amount(term.price) for term in self.terms)


def list_places(offers: Offers, providers: Mapping[str, str] | None = None) -> list[PricePlace]:
    """Return all places; `providers` names the provider of vendors whose host does not."""
    every: list[Offer | ChatOffer] = [*offers.by_model.values(), *offers.chat.values()]
    vendors: Mapping[str, Any] = {**offers.vendors, **offers.chat_vendors}
    named = providers or {}
    return [
        PricePlace(
            model=offer.id,
            kind=offer.kind,
            vendor=vendor,
            names=frozenset(route.model for route in offer.routes if route.vendor == vendor),
            provider=named.get(vendor) or find_provider(vendors[vendor].options.base_url),
            is_remote=bool(vendors[vendor].options.base_url),
            terms=terms,
        )
        for offer in every
        for vendor, terms in offer.terms.items()
    ]


def find_provider(base_url: str) -> str | None:
    """Return the provider at this address, as price lists name it."""
    host = urlsplit(base_url).hostname or ""
    return "vertex_ai" if host.endswith(VERTEX_AI) else PROVIDERS.get(host)


def name_origin(origin: PriceOrigin) -> str:
    """Return an origin in the words of reports: one of `ORIGINS`."""
    return "file" if origin.is_file else "row" if origin is PriceOrigin.ROW else "vendor"


# -- parts of prices


def list_parts(price: Price | TokenPrice) -> dict[str, int]:
    """Return the amounts of a price by part, in 10⁻⁹ USD, with the defaults that apply."""
    if isinstance(price, Price):
        fixed = {name: getattr(price, name) for name in FIXED}
        return fixed | {
            f"{part}.{name}": amount for part in CONDITIONAL for name, amount in getattr(price, part).items()
        }
    return {
        "input_per_million": price.input_per_million,
        "cached_input_per_million": price.cached,
        "cache_write_per_million": price.cache_write,
        "cache_write_1h_per_million": price.cache_write_1h,
        "output_per_million": price.output_per_million,
        "reasoning_per_million": price.reasoning,
        "per_request": price.per_request,
        "per_million_characters": price.per_million_characters,
        "per_minute": price.per_minute,
    }


def any_amount(price: Price | TokenPrice) -> bool:
    """Return whether a price is more than nothing."""
    return any(list_parts(price).values())


@dataclass(frozen=True, slots=True)
class PartChange:
    """The change of one part of a price."""

    name: str
    old: int | None
    new: int | None

    @property
    def percent(self) -> float | None:
        """Return the change in per cent; None from nothing or from an unknown price."""
        return None if not self.old else round(100 * ((self.new or 0) - self.old) / self.old, 1)


def compare_prices(old: Price | TokenPrice | None, new: Price | TokenPrice | None) -> list[PartChange]:
    """Return the parts that differ, and of a price without a former one all that are not 0."""
    before = {} if old is None else list_parts(old)
    after = {} if new is None else list_parts(new)
    written = {name for price in (old, new) if price is not None for name in price.model_dump(exclude_none=True)}
    changes = (PartChange(name, before.get(name), after.get(name)) for name in {**before, **after})
    return [each for each in changes if (each.old or 0) != (each.new or 0) and each.name.partition(".")[0] in written]


def is_same(old: Price | TokenPrice | None, new: Price | TokenPrice) -> bool:
    """Return whether two prices are of one kind and cost the same."""
    return old is not None and type(old) is type(new) and not compare_prices(old, new)


def count_unpriced(offers: Offers, now: float) -> int:
    """Return the number of models whose price at some vendor is not known."""
    every: list[Offer | ChatOffer] = [*offers.by_model.values(), *offers.chat.values()]
    return sum(not offer.is_priced(now) for offer in every)
