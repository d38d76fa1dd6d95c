"""OpenRouter's list, the answer of its `GET /api/v1/models`: costs per token as text, by OpenRouter's own names."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

from penstock.domain.prices import TokenPrice
from penstock.price_lists.amounts import MILLION, ONE, BadAmount, make_token_price, to_nanos
from penstock.price_lists.exact_json import LONGEST_NUMBER, ExactObject, as_object
from penstock.price_lists.listed import ListedPrice, ListedPrices, ListedProblem

FORM: Final = "openrouter"
PARTS: Final[Mapping[str, tuple[str, Decimal]]] = {
    "prompt": ("input_per_million", MILLION),
    "completion": ("output_per_million", MILLION),
    "request": ("per_request", ONE),
}
IF_NOT_ZERO: Final[Mapping[str, tuple[str, Decimal]]] = {
    "input_cache_read": ("cached_input_per_million", MILLION),
    "input_cache_write": ("cache_write_per_million", MILLION),
    "internal_reasoning": ("reasoning_per_million", MILLION),
}
"""Costs whose 0 means that there is no cost of their own."""


def is_openrouter(document: ExactObject) -> bool:
    """Return whether a document has this form, by the `pricing` of its entries."""
    return any("pricing" in entry for entry in _entries(document))


def read_openrouter(document: ExactObject) -> ListedPrices:
    """Return the prices of the list, which are those that OpenRouter charges."""
    prices, problems = list[ListedPrice](), list[ListedProblem]()
    named = [(entry["id"], entry) for entry in _entries(document) if isinstance(entry.get("id"), str)]
    number = Counter(name for name, _ in named)
    for name, entry in named:
        try:
            price, left_out = _read_pricing(entry, is_twice=number[name] > 1)
        except BadAmount as error:
            problems.append(ListedProblem(entry=name, provider=FORM, model=name, why=str(error)))
        else:
            prices.append(ListedPrice(entry=name, provider=FORM, model=name, price=price, left_out=left_out))
    return ListedPrices(form=FORM, prices=prices, problems=problems)


def _entries(document: ExactObject) -> list[ExactObject]:
    data = document.get("data")
    if not isinstance(data, list):
        return []
    return [entry for entry in map(as_object, cast("list[Any]", data)) if entry is not None]


def _read_pricing(entry: ExactObject, *, is_twice: bool) -> tuple[TokenPrice, tuple[str, ...]]:
    if is_twice or entry.twice:
        raise BadAmount("the list gives it twice")
    pricing = as_object(entry.get("pricing"))
    if pricing is None or pricing.twice or not pricing:
        raise BadAmount("its `pricing` is not usable")
    costs = {name: _read_number(name, value) for name, value in pricing.items() if not isinstance(value, dict | list)}
    parts = {part: to_nanos(name, costs[name], unit) for name, (part, unit) in PARTS.items() if name in costs}
    more = {part: to_nanos(name, costs[name], unit) for name, (part, unit) in IF_NOT_ZERO.items() if name in costs}
    if not parts.keys() >= {"input_per_million", "output_per_million"}:
        raise BadAmount("it has no cost of prompt or completion")
    taken = PARTS.keys() | IF_NOT_ZERO.keys()
    left_out = tuple(name for name in pricing if name not in taken and costs.get(name, ONE) != 0)
    return make_token_price(parts | {part: amount for part, amount in more.items() if amount}), left_out


def _read_number(name: str, value: Any) -> Decimal:
    if isinstance(value, str):
        try:
            value = Decimal(value if len(value) <= LONGEST_NUMBER else "NaN")
        except InvalidOperation:
            value = None
    if not isinstance(value, Decimal):
        raise BadAmount(f"`{name}` is not a number")
    return value
