"""`[[prices]]`: the prices in the settings, their validation, and the one that applies."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationInfo, field_validator

from penstock.domain.prices import P, Price, PriceOrigin, PriceRow, Term, TokenPrice
from penstock.settings.problems import Problem, Source, nearest, reject

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2}))?"
)


OF_REQUESTS = frozenset({"per_request", "per_million_characters", "per_minute"})
"""Parts of a price that only models with an endpoint of their own have."""
TEXT_NAMES = {
    "chat": "a chat model",
    "embedding": "an embedding model",
    "speech": "a speech model",
    "transcription": "a transcription model",
}
FITTING = {"per_million_characters": "speech", "per_minute": "transcription"}
"""By part of a price: the only kind of model that it fits."""


def _price_kind(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "<chat>" if isinstance(value, TokenPrice) else "<media>"
    names = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else ()
    of_chat = any(name.endswith("_per_million") or name in OF_REQUESTS for name in names)
    return "<chat>" if of_chat else "<media>"


def parse_moment(value: Any) -> float:
    """Return seconds since the epoch from a date (midnight in UTC) or a time with its offset, as text or TOML type."""
    try:
        if isinstance(value, str) and _RFC_3339.fullmatch(value):
            value = (
                datetime.fromisoformat(value.upper()) if len(value) > len("2026-03-01") else date.fromisoformat(value)
            )
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time(), UTC)
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):  # no such day or hour
        pass
    raise ValueError('a moment is a date such as "2026-03-01", or a time and its offset such as "2026-03-01T09:00:00Z"')


AnyPrice = Annotated[
    Annotated[Price, Tag("<media>")] | Annotated[TokenPrice, Tag("<chat>")], Discriminator(_price_kind)
]
Moment = Annotated[float, BeforeValidator(parse_moment)]


class PriceEntry(BaseModel):
    """One entry of `[[prices]]`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    model: str = Field(strict=True, description="the id of a model")
    vendor: str | None = Field(default=None, strict=True, description="the vendor whose price it is; default: any")
    since: Moment | None = Field(default=None, alias="from", description="when it begins; default: it always was")
    until: Moment | None = Field(default=None, description="when it ends; default: never")
    price: AnyPrice = Field(description="what a job or a million tokens cost")

    @field_validator("until")
    @classmethod
    def follow(cls, value: float | None, info: ValidationInfo) -> float | None:
        """Require an end after the start."""
        since = info.data.get("since")
        if value is not None and since is not None and value <= since:
            raise reject("is not after `from`", "Correct one of them; a price ends right before `until`.")
        return value


@dataclass(frozen=True, slots=True)
class Sold:
    """A model with a price: its id, its kind and its vendors."""

    id: str
    kind: str
    vendors: Collection[str] = ()


def _or(usual: float, moment: float | None) -> float:
    return usual if moment is None else moment


@dataclass(frozen=True, slots=True)
class PriceList:
    """All entries of `[[prices]]`, and the rows of the store, which count where the settings declare no price."""

    entries: Sequence[PriceEntry]
    source: Source
    rows: Sequence[PriceRow] = ()

    def terms(self, model: Sold, vendor: str, own: P | None, usual: P | None, form: type[P]) -> tuple[Term[P], ...]:
        """Return the terms of a vendor's price for a model: the settings', those of rows, and the vendor's `usual`."""
        found = [
            Term(entry.price, _or(-math.inf, entry.since), _or(math.inf, entry.until), entry.vendor is not None)
            for entry in self.entries
            if entry.model == model.id and entry.vendor in (None, vendor) and isinstance(entry.price, form)
        ]
        found += [
            Term(row.price, row.since, _or(math.inf, row.until), of_vendor=True, origin=PriceOrigin.ROW, row=row.id)
            for row in self.rows
            if (row.model, row.vendor) == (model.id, vendor)
            and isinstance(row.price, form)
            and misfit(row.price, model.kind) is None
        ]
        found += [] if own is None else [Term(own, origin=PriceOrigin.MODEL)]
        found += [] if usual is None else [Term(usual, origin=PriceOrigin.VENDOR)]
        return tuple(found)

    def find_problems(self, models: Mapping[str, Sold], vendors: Collection[str]) -> Iterator[Problem]:
        """Yield the problems of the entries, given the served models and the vendors."""
        seen = set[tuple[str, str | None, float | None]]()
        for index, entry in enumerate(self.entries):
            sold, scope = models.get(entry.model), (entry.model, entry.vendor, entry.since)
            if sold is None:
                yield self._problem(index, "model", f"there is no model `{entry.model}`", nearest(entry.model, models))
            elif wrong := misfit(entry.price, sold.kind):
                yield self._problem(index, "price", *wrong)
            if entry.vendor is not None and entry.vendor not in vendors:
                what = f"there is no vendor `{entry.vendor}`"
                yield self._problem(index, "vendor", what, nearest(entry.vendor, vendors))
            elif sold is not None and entry.vendor is not None and entry.vendor not in sold.vendors:
                what = f"vendor `{entry.vendor}` does not run `{entry.model}` here"
                yield self._problem(index, "vendor", what, f"It is run by {', '.join(sorted(sold.vendors))}.")
            if scope in seen:
                what = "another entry has the same `model`, `vendor` and `from`"
                yield self._problem(index, "from", what, "Remove one of them, or have it begin at another time.")
            seen.add(scope)

    def _problem(self, index: int, name: str, what: str, remedy: str) -> Problem:
        return Problem(self.source.locate(("prices", index, name)), what, remedy)


def misfit(price: Price | TokenPrice, kind: str) -> tuple[str, str] | None:
    """Return why a price does not fit a model of this kind, and what to do; None if it fits."""
    if kind in TEXT_NAMES:
        wanted = ", ".join(name for name in TokenPrice.model_fields if FITTING.get(name, kind) == kind)
        if not isinstance(price, TokenPrice):
            return f"is not the price of {TEXT_NAMES[kind]}", f"Use {wanted}."
        for name, fitting in FITTING.items():
            if getattr(price, name) and kind != fitting:
                return f"`{name}` is for models of kind {fitting}, and this one is of kind {kind}", f"Use {wanted}."
        return None
    if isinstance(price, TokenPrice):
        wanted = ", ".join(name for name in Price.model_fields if name.startswith("per_"))
        return "is not the price of a media model", f"Use {wanted}."
    for name, makes in (("per_image", "image"), ("per_image_if", "image"), ("per_thousand_faces", "3d")):
        if getattr(price, name) and kind != makes:
            return (
                f"`{name}` is for models of kind {makes}, and this one is of kind {kind}",
                "Use per_job or per_second.",
            )
    return None
