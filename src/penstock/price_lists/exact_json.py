"""JSON with exact numbers: decimals from their literal text, and objects that remember a key given twice."""

import json
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from penstock.price_lists.listed import PriceListUnreadable

LONGEST_NUMBER: Final = 100
"""Characters; longer numbers are not prices."""
NOT_A_NUMBER: Final = Decimal("NaN")


class ExactObject(dict[str, Any]):
    """A JSON object; `twice` has the keys that it was given more than once."""

    twice: frozenset[str] = frozenset()


def parse_exact(text: str) -> Any:
    """Return a JSON document. Numbers are `Decimal`; those that no price can be are NaN."""
    try:
        return json.loads(
            text,
            parse_float=_parse_number,
            parse_int=_parse_number,
            parse_constant=lambda _: NOT_A_NUMBER,
            object_pairs_hook=_make_object,
        )
    except RecursionError:
        raise PriceListUnreadable("The list is nested too deeply.") from None
    except ValueError as error:
        raise PriceListUnreadable(f"The list is not valid JSON: {str(error)[:200]}.") from None


def _parse_number(literal: str) -> Decimal:
    if len(literal) > LONGEST_NUMBER:
        return NOT_A_NUMBER
    try:
        return Decimal(literal)
    except InvalidOperation:  # an exponent beyond all bounds
        return NOT_A_NUMBER


def _make_object(pairs: list[tuple[str, Any]]) -> ExactObject:
    made = ExactObject(pairs)
    if len(made) < len(pairs):
        seen = set[str]()
        made.twice = frozenset(name for name, _ in pairs if name in seen or seen.add(name))
    return made


def as_object(value: Any) -> ExactObject | None:
    """Return an object of the document; None for anything else."""
    return value if isinstance(value, ExactObject) else None
