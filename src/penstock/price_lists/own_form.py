"""Our own form of a price list: `[[prices]]` as in the settings, in TOML or JSON, with `provider` and `source`."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from penstock.domain.ids import timestamp
from penstock.domain.prices import Price
from penstock.price_lists.listed import ListedPrice, ListedPrices, PriceListUnreadable
from penstock.settings.prices import PriceEntry
from penstock.settings.problems import Source, explain

FORM: Final = "penstock"
MAX_PROBLEMS: Final = 10
"""Problems of a list that are reported."""


class ListEntry(PriceEntry):
    """One price: as in the settings, or with the provider's name in place of a vendor's."""

    provider: str | None = Field(default=None, strict=True, max_length=200, description="a provider, such as openai")
    source: str = Field(default="", strict=True, max_length=500, description="where the price was found, and when")
    unit: Literal["USD", "credit"] = Field(default="USD", description="credit: the amounts are the vendor's credits")

    @model_validator(mode="after")
    def check_unit(self) -> Self:
        """Refuse credits for tokens: no vendor bills them so."""
        if self.unit == "credit" and not isinstance(self.price, Price):
            raise ValueError("a price by tokens, characters or minutes is in USD")
        return self


class UnknownEntry(BaseModel):
    """A model whose price is not known."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    model: str = Field(strict=True)
    provider: str = Field(strict=True)
    why: str = Field(strict=True)


class OwnList(BaseModel):
    """The whole list."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    prices: tuple[ListEntry, ...] = ()
    unknown: tuple[UnknownEntry, ...] = ()


def read_toml(text: str) -> ListedPrices:
    """Return the prices of a list in TOML."""
    try:
        return read_own(tomllib.loads(text, parse_float=str))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise PriceListUnreadable(f"The list is neither JSON nor valid TOML: {str(error)[:200]}.") from None


def read_json(text: str) -> ListedPrices:
    """Return the prices of a list in JSON."""
    try:
        document = json.loads(text, parse_float=str, parse_constant=str, object_pairs_hook=_refuse_twice)
    except (RecursionError, ValueError) as error:
        raise PriceListUnreadable(f"The list is not valid JSON: {str(error)[:200]}.") from None
    return read_own(document)


def read_own(document: Mapping[str, Any]) -> ListedPrices:
    """Return the prices of a document in our own form."""
    try:
        found = OwnList.model_validate(document)
    except ValidationError as error:
        problems = explain(error, "", Source(), OwnList).problems
        shown = " ".join(str(problem).replace("\n   ", "") for problem in problems[:MAX_PROBLEMS])
        raise PriceListUnreadable(f"The list is not as it should be. {shown}") from None
    return ListedPrices(
        form=FORM,
        prices=[_make_listed(entry) for entry in found.prices],
        unknown={(entry.provider, entry.model): entry.why for entry in found.unknown},
    )


def _make_listed(entry: ListEntry) -> ListedPrice:
    begin = "" if entry.since is None else f" from {(timestamp(entry.since) or '')[:10]}"
    return ListedPrice(
        entry=f"{entry.provider or entry.vendor or 'any vendor'}/{entry.model}{begin}",
        model=entry.model,
        provider=entry.provider,
        vendor=entry.vendor,
        price=entry.price,
        since=entry.since,
        until=entry.until,
        source=entry.source,
        in_credits=entry.unit == "credit",
    )


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has a key twice")
    return made
