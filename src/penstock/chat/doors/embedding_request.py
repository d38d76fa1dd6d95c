"""Reads a request for embeddings, and reports exactly what is wrong with it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from penstock.chat.request import (
    integer,
    missing_field,
    out_of_bounds,
    parse_field,
    read_model,
    split_fields,
    wrong_type,
)
from penstock.domain.chat import CHARACTERS_PER_TOKEN, Ask, Dialect
from penstock.errors import InvalidRequest

MAX_TEXTS: Final = 2048
"""Texts of one request, as OpenAI has it."""
MAX_DIMENSIONS: Final = 1 << 16
FORMATS: Final = ("float", "base64")
INPUT: Final = "a string, an array of strings, an array of integers or an array of arrays of integers"
_check_dimensions = integer(1, MAX_DIMENSIONS)


def read_embedding_request(body: bytes) -> Ask:
    """Return the request in this body; an error names the field, the problem and what is allowed."""
    fields = split_fields(body)
    model = read_model(fields)
    if "input" not in fields:
        raise missing_field("input")
    tokens = _count_tokens(parse_field("input", fields["input"]))
    _check_format(fields)
    if "dimensions" in fields:
        fields["dimensions"] = _check_dimensions("dimensions", fields["dimensions"])
    if "stream" in fields and parse_field("stream", fields["stream"]) is not False:
        message = "Unsupported parameter: 'stream' is not supported with embeddings."
        raise InvalidRequest(message, param="stream", code="unsupported_parameter")
    return Ask(
        model=model, fields=fields, dialect=Dialect.EMBEDDINGS, max_tokens=0, size=len(body), prompt=max(1, tokens)
    )


def _check_format(fields: Mapping[str, msgspec.Raw]) -> None:
    if "encoding_format" not in fields:
        return
    wanted = parse_field("encoding_format", fields["encoding_format"])
    if wanted not in FORMATS:
        allowed = " and ".join(f"'{name}'" for name in FORMATS)
        message = f"Invalid value: '{str(wanted)[:80]}'. Supported values are: {allowed}."
        raise InvalidRequest(message, param="encoding_format", code="invalid_value")


def _count_tokens(given: Any) -> int:
    """Check the input, and return its number of tokens: estimated by length for texts."""
    if isinstance(given, str):
        return _count_text("input", given)
    if not isinstance(given, list):
        raise wrong_type("input", INPUT, given)
    items = cast("list[Any]", given)
    if not items:
        raise _empty("input", "array")
    if isinstance(items[0], int) and not isinstance(items[0], bool):
        return _count_numbers("input", items)
    if not isinstance(items[0], str | list):
        raise wrong_type("input[0]", "a string, an integer or an array of integers", items[0])
    if len(items) > MAX_TEXTS:
        raise InvalidRequest(
            f"Invalid 'input': array too long. Expected an array with maximum length {MAX_TEXTS}, "
            f"but got an array with length {len(items)} instead.",
            param="input",
            code="array_above_max_length",
        )
    count: Callable[[str, Any], int] = _count_text if isinstance(items[0], str) else _count_numbers
    return sum(count(f"input[{index}]", item) for index, item in enumerate(items))


def _count_text(place: str, text: Any) -> int:
    if not isinstance(text, str):
        raise wrong_type(place, "a string", text)
    if not text:
        raise _empty(place, "string")
    return len(text.encode()) // CHARACTERS_PER_TOKEN + 1


def _count_numbers(place: str, tokens: Any) -> int:
    if not isinstance(tokens, list):
        raise wrong_type(place, "an array of integers", tokens)
    numbers = cast("Sequence[Any]", tokens)
    if not numbers:
        raise _empty(place, "array")
    for index, number in enumerate(numbers):
        if type(number) is not int:
            raise wrong_type(f"{place}[{index}]", "an integer", number)
        if number < 0:
            raise out_of_bounds(f"{place}[{index}]", "integer", "below", 0, number)
    return len(numbers)


def _empty(place: str, kind: str) -> InvalidRequest:
    code = {"array": "empty_array", "string": "empty_string"}[kind]
    message = f"Invalid '{place}': empty {kind}. Expected at least one {'item' if kind == 'array' else 'character'}."
    return InvalidRequest(message, param=place, code=code)
