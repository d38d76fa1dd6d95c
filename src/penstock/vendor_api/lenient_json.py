"""JSON of chat vendors, read and written even where strict parsers give up, so that no text is lost."""

import json
import math
from typing import Any, Final

import msgspec

MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark that some servers begin with."""
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LARGE_BYTES: Final = 256 << 10
_MAX_VALUES: Final = 100_000
"""Upper bound of values in a large text: parsing more would block the event loop."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def read_json(text: bytes) -> Any:
    r"""Parse JSON, also with a mark before it, bytes that are no UTF-8, control characters, `NaN` or `"\ud83d"`.

    Such bytes become U+FFFD. Numbers that JSON has not become null. Half a surrogate pair stays: the other half may be
    in the next event. Raise a `ValueError` or `RecursionError` for anything else.
    """
    if len(text) > _LARGE_BYTES and text.count(b",") + text.count(b"[") + text.count(b"{") > _MAX_VALUES:
        raise ValueError("JSON with too many values")
    try:
        return _decode(text)
    except UNREADABLE:
        pass
    decoded = text.removeprefix(MARK).decode("utf-8", "replace")
    try:
        return json.loads(decoded, parse_constant=_drop, parse_float=_read_float, strict=False)
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}") from None


def write_json(found: Any) -> bytes:
    """Write JSON in one line, half surrogate pairs included."""
    try:
        return _encode(found)
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":")).encode()


def write_plain(found: Any) -> bytes:
    """Write JSON that every parser reads: `?` stands for half a surrogate pair, so lengths stay."""
    try:
        return _encode(found)
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _drop(constant: str) -> None:
    """Read `NaN` and the infinities as null, as browsers' `JSON.stringify` does."""
    del constant


def _read_float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
