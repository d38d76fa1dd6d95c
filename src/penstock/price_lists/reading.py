"""Reading of price lists in any form, and the list that comes with Penstock."""

from functools import cache
from importlib import resources
from typing import Final

from penstock.price_lists.exact_json import as_object, parse_exact
from penstock.price_lists.listed import ListedPrices, PriceListUnreadable
from penstock.price_lists.litellm import is_litellm, read_litellm
from penstock.price_lists.openrouter import is_openrouter, read_openrouter
from penstock.price_lists.own_form import read_json, read_toml

MAX_LIST_BYTES: Final = 16 << 20
"""LiteLLM's list has 2 MB."""
MAX_TOML_BYTES: Final = 1 << 20
"""TOML is slower to read."""
SHIPPED: Final = "shipped"
"""The name of the list that comes with Penstock."""


def read_list(raw: bytes) -> ListedPrices:
    """Return the prices of a list, by its content in one of the three forms. This can take seconds: use a thread."""
    _check_size(len(raw), MAX_LIST_BYTES)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PriceListUnreadable("The list is not UTF-8 text.") from None
    if not text.lstrip().startswith("{"):
        _check_size(len(raw), MAX_TOML_BYTES)
        return read_toml(text)
    document = as_object(parse_exact(text))
    if document is not None and "prices" in document:
        return read_json(text)
    if document is not None and is_openrouter(document):
        return read_openrouter(document)
    if document is not None and is_litellm(document):
        return read_litellm(document)
    raise PriceListUnreadable(
        "The list has none of the forms that are known: LiteLLM's model_prices_and_context_window.json, "
        "OpenRouter's /api/v1/models, or `prices` as in the settings."
    )


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise PriceListUnreadable(f"The list is larger than {most >> 20} MiB, the most that is read.")


@cache
def shipped_list() -> ListedPrices:
    """Return the dated list that comes with Penstock."""
    return read_toml(resources.files("penstock.price_lists").joinpath("shipped.toml").read_text(encoding="utf-8"))
