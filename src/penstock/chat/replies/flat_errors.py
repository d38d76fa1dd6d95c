"""Recognises an error of any shape that a vendor sends instead of a chunk or reply."""

from collections.abc import Mapping
from typing import Any, Final, cast

from penstock.vendor_api.lenient_json import read_json, write_json

HOLDERS: Final = ("error", "errors", "detail", "details", "fault", "exception")
TEXTS: Final = ("message", "detail", "msg", "error_msg", "error_message", "status_msg", "reason", "title")
CODES: Final = ("code", "error_code", "status_code", "status", "statusCode")
MAX_CHARACTERS: Final = 2_000

_Fields = Mapping[str, Any]


def find_error(found: _Fields, event: bytes = b"") -> bytes | None:
    """Return the error in an object as `{"error": {…}}`; None if there is none.

    Beside choices only `error` counts, because the other fields may be a vendor's notes.
    """
    if event == b"error" or found.get("error") or (not found.get("choices") and _is_error(found)):
        return write_error(found)
    for choice in _items(found.get("choices")):
        if choice.get("error") or choice.get("finish_reason") == "error":
            return write_error(choice)
    return None


def read_error(body: bytes) -> bytes | None:
    """Return the error in the body of a whole reply, alone or in a list of one; None if there is none."""
    try:
        found = read_json(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and len(cast("list[Any]", found)) == 1:
        found = cast("list[Any]", found)[0]
    return find_error(cast("_Fields", found)) if isinstance(found, dict) else None


def write_error(value: Any) -> bytes:
    """Write a vendor's error as `{"error": {…}}`."""
    inner = _unwrap(value)
    if not isinstance(inner, Mapping):
        return write_json({"error": {"message": _clean(inner)}})
    fields = cast("_Fields", inner)
    code = next((fields[name] for name in CODES if isinstance(fields.get(name), int | str)), None)
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:9])
    message = next((fields[name] for name in TEXTS if fields.get(name)), "")
    error = {"message": _clean(message), "type": fields.get("type"), "code": code, "param": fields.get("param")}
    texts = {name: _clean(text) for name, text in error.items() if isinstance(text, str)}
    kept = {name: fields[name] for name in ("metadata",) if isinstance(fields.get(name), Mapping)}
    return write_json({"error": texts | ({"code": code} if isinstance(code, int) else {}) | kept})


def _is_error(found: _Fields) -> bool:
    """Return whether an object without choices is an error."""
    kinds = [str(found.get(name)).lower() for name in ("object", "type")]
    answer = found.get("base_resp")
    refused = isinstance(answer, Mapping) and cast("_Fields", answer).get("status_code")
    return bool(
        any(found.get(name) for name in (*HOLDERS, "error_code", "error_msg", "error_message"))
        or any(kind.endswith("error") for kind in kinds)
        or found.get("status") == "error"
        or found.get("success") is False
        or isinstance(found.get("message"), str)
        or refused
    )


def _unwrap(value: Any) -> Any:
    """Return the innermost error inside the objects that vendors wrap around it."""
    error: Any = value
    for _ in range(4):
        if isinstance(error, list) and error:
            error = cast("list[Any]", error)[0]
            continue
        if not isinstance(error, Mapping):
            break
        fields = cast("_Fields", error)
        inner = next((fields[name] for name in (*HOLDERS, "base_resp") if fields.get(name)), None)
        if isinstance(inner, str) and any(fields.get(name) for name in CODES):
            return {**fields, "message": inner}
        if inner is None or isinstance(inner, bool):
            break
        error = inner
    return cast("Any", error)


def _clean(value: Any) -> str:
    """Return the value as a text that can be encoded, of bounded length."""
    text = value if isinstance(value, str) else "" if value is None else write_json(value).decode()
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()


def _items(found: Any) -> list[_Fields]:
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("_Fields", item) for item in items if isinstance(item, dict)]
