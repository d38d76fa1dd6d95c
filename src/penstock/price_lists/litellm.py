"""LiteLLM's list, `model_prices_and_context_window.json`: an object by model, with costs per token as numbers."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from penstock.domain.prices import Price, TokenPrice
from penstock.price_lists.amounts import MILLION, MINUTE, ONE, BadAmount, make_price, make_token_price, to_nanos
from penstock.price_lists.exact_json import ExactObject, as_object
from penstock.price_lists.listed import ListedPrice, ListedPrices, ListedProblem

FORM: Final = "litellm"
SAMPLE: Final = "sample_spec"
"""The list's own explanation, which is no model."""
Parts = Mapping[str, tuple[str, Decimal]]
"""By cost in the list: part of our price, and the unit's number."""

TOKENS: Final[Parts] = {
    "input_cost_per_token": ("input_per_million", MILLION),
    "output_cost_per_token": ("output_per_million", MILLION),
    "cache_read_input_token_cost": ("cached_input_per_million", MILLION),
    "cache_creation_input_token_cost": ("cache_write_per_million", MILLION),
    "cache_creation_input_token_cost_above_1hr": ("cache_write_1h_per_million", MILLION),
    "output_cost_per_reasoning_token": ("reasoning_per_million", MILLION),
    "input_cost_per_request": ("per_request", ONE),
}
CHARACTERS: Final[Parts] = {"input_cost_per_character": ("per_million_characters", MILLION)}
SECONDS: Final[Parts] = {"input_cost_per_second": ("per_minute", MINUTE)}
PICTURES: Final[tuple[Parts, ...]] = (
    {"output_cost_per_image": ("per_image", ONE)},
    {"input_cost_per_image": ("per_image", ONE)},
)
FILMS: Final[tuple[Parts, ...]] = (
    {"output_cost_per_video_per_second": ("per_second", ONE)},
    {"output_cost_per_second": ("per_second", ONE)},
)
FORMS: Final[Mapping[str, tuple[Parts, ...]]] = {
    "chat": (TOKENS,),
    "completion": (TOKENS,),
    "responses": (TOKENS,),
    "embedding": (TOKENS,),
    "audio_speech": (CHARACTERS, TOKENS),
    "audio_transcription": (TOKENS, SECONDS),
    "image_generation": PICTURES,
    "image_edit": PICTURES,
    "video_generation": FILMS,
}
"""By mode of a model: the costs that make up its price; the first that is not empty counts."""
MEDIA: Final = frozenset({"image_generation", "image_edit", "video_generation"})


def is_litellm(document: ExactObject) -> bool:
    """Return whether a document has this form, by the provider that its entries name."""
    return any("litellm_provider" in entry for entry in map(as_object, document.values()) if entry is not None)


def read_litellm(document: ExactObject) -> ListedPrices:
    """Return the prices of the list. Entries without one are problems, or not mentioned if they cost nothing known."""
    prices, problems = list[ListedPrice](), list[ListedProblem]()
    for name, value in document.items():
        entry = as_object(value)
        if name == SAMPLE or entry is None or not isinstance(entry.get("litellm_provider"), str):
            continue
        provider, model = split_name(name, entry["litellm_provider"])
        try:
            price, left_out = _read_entry(entry, is_twice=name in document.twice)
        except BadAmount as error:
            problems.append(ListedProblem(entry=name, provider=provider, model=model, why=str(error)))
            continue
        prices.append(ListedPrice(entry=name, provider=provider, model=model, price=price, left_out=left_out))
    return ListedPrices(form=FORM, prices=prices, problems=problems)


def split_name(name: str, provider: str) -> tuple[str, str]:
    """Return provider and model: `groq/llama` of `groq` is `llama`, and `vertex_ai-video-models` is `vertex_ai`."""
    provider = "vertex_ai" if provider.startswith("vertex_ai") else provider
    return provider, name.removeprefix(f"{provider}/")


def _read_entry(entry: ExactObject, *, is_twice: bool) -> tuple[Price | TokenPrice, tuple[str, ...]]:
    if is_twice or entry.twice:
        raise BadAmount("the list gives it twice")
    mode = entry.get("mode")
    forms = FORMS.get(mode) if isinstance(mode, str) else None
    if forms is None:
        raise BadAmount(f"its mode `{str(mode)[:40]}` is not priced here")
    for form in forms:
        parts = {part: to_nanos(name, entry[name], unit) for name, (part, unit) in form.items() if name in entry}
        if any(parts.values()):
            price = make_price(parts) if mode in MEDIA else make_token_price(parts)
            return price, tuple(_find_others(entry, form))
    if any(_find_others(entry, {})):
        raise BadAmount("it is billed in a unit that has no place here")
    raise BadAmount("the list has no cost for it, or 0")


def _find_others(entry: ExactObject, form: Parts) -> Iterator[str]:
    """Yield the names of further costs, other than 0."""
    for name, value in entry.items():
        if "cost" in name and name not in form and _is_cost(value):
            yield name


def _is_cost(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan() or value != 0
    return isinstance(value, dict | list) and value not in ({}, [])
