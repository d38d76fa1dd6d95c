"""Request bodies of `/admin/v1/prices`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from penstock.catalog.params import Integer, Line, Params, Text
from penstock.domain.money import parse_usd
from penstock.domain.prices import Price, TokenPrice
from penstock.settings.prices import AnyPrice, parse_moment

MAX_ENTRIES: Final = 1000
"""Prices written at once."""
MAX_MAPPED: Final = 1000
_FORM: Final[TypeAdapter[Price | TokenPrice]] = TypeAdapter(AnyPrice)


def _read_moment(value: Any) -> float:
    try:
        return parse_moment(value)
    except ValueError as error:
        raise PydanticCustomError("moment", "{reason}", {"reason": str(error).capitalize()}) from None


def _read_price(value: Any) -> Price | TokenPrice:
    try:
        return _FORM.validate_python(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in found["loc"] if str(part)[0] != "<")
        reason = found["msg"].removeprefix("Value error, ")
        raise PydanticCustomError("price", "{reason}", {"reason": f"`{field}`: {reason}"[:300]}) from None


def _read_usd(value: Any) -> int:
    try:
        return parse_usd(value)
    except ValueError as error:
        raise PydanticCustomError("usd", "{reason}", {"reason": str(error).capitalize()}) from None


Moment = Annotated[float, BeforeValidator(_read_moment, json_schema_input_type=str)]
CreditPrice = Annotated[int, BeforeValidator(_read_usd, json_schema_input_type=str)]
AnyPriceBody = Annotated[Any, BeforeValidator(_read_price, json_schema_input_type=dict[str, Any])]


class PricePreviewBody(Params):
    """A list to compare with the prices here: its place, or its text."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False, "example": {"from": "shipped"}})

    place: Line | None = Field(
        default=None,
        alias="from",
        max_length=2000,
        description="`shipped`, or the URL of a list in LiteLLM's, OpenRouter's or our own form",
    )
    text: Text | None = Field(default=None, description="the text of a list, in place of `from`")
    effective: Moment | None = Field(default=None, description="when the prices begin, unless the list says later")
    providers: Mapping[Text, Text] | None = Field(
        default=None, max_length=MAX_MAPPED, description="by vendor: the provider whose entries are its prices"
    )
    entries: Mapping[Text, Text] | None = Field(
        default=None, max_length=MAX_MAPPED, description="by `vendor/model`: the entry of the list"
    )
    credits: Mapping[Text, CreditPrice] | None = Field(
        default=None, max_length=MAX_MAPPED, description="by vendor or provider: USD for one of its credits"
    )


class PriceWish(Params):
    """A price that is to be in force at a vendor."""

    model: Line = Field(max_length=300, description="the id of the model here")
    vendor: Line = Field(max_length=300, description="the name of the vendor here")
    since: Moment | None = Field(default=None, alias="from", description="when it begins; default: now")
    until: Moment | None = Field(default=None, description="when it ends; default: never")
    price: AnyPriceBody = Field(description="the price, as the settings write it")
    source: Line = Field(default="", max_length=500, description="where the price was found")


class PricesBody(Params):
    """Prices to write, as a preview proposed them."""

    model_config = ConfigDict(
        json_schema_extra={
            "additionalProperties": False,
            "example": {
                "version": 0,
                "prices": [{"model": "vendorb_video_31", "vendor": "veo", "price": {"per_second": "0.40"}}],
            },
        }
    )

    version: Integer = Field(ge=0, description="the `version` of the prices that you saw")
    prices: Annotated[list[PriceWish], Field(min_length=1, max_length=MAX_ENTRIES)]

    nested: ClassVar = {"prices": PriceWish}
