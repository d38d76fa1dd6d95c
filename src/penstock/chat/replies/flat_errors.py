"""Recognise an error that a vendor sends in the place of a chunk or reply, whatever shape it has."""

from collections.abc import Mapping
from typing import Any, Final, cast

from penstock.vendor_api.lenient_json import read_json, write_json

HOLDERS: Final = ("error", "errors", "detail", "details", "fault", "exception")
TEXTS: Final = ("message", "detail", "msg", "error_msg", "error_message", "status_msg", "reason", "title")
CODES: Final = ("code", "error_code", "status_code", "status", "statusCode")
MAX_CHARACTERS: Final = 2_000

_Told = Mapping[str, Any]


def find_error(found: _Told, event: bytes = b"") -> bytes | None:
    """Return the error that an object tells, as `{"error": {…}}`; None if it tells none.

    Beside choices only `error` counts: other fields of these names may be a vendor's notes.
    """
    if event == b"error" or found.get("error") or (not found.get("choices") and _is_error(found)):
        return write_error(found)
    for choice in _items(found.get("choices")):
        if choice.get("error") or choice.get("finish_reason") == "error":
            return write_error(choice)
    return None


def read_error(body: bytes) -> bytes | None:
    """Return the error that the body of a whole reply tells, alone or as a list of one; None if it tells none."""
    try:
        found = read_json(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and len(cast("list[Any]", found)) == 1:
        found = cast("list[Any]", found)[0]
    return find_error(cast("_Told", found)) if isinstance(found, dict) else None


def write_error(told: Any) -> bytes:
    """Write what a vendor told as `{"error": {…}}`."""
    inner = _unwrap(told)
    if not isinstance(inner, Mapping):
        return write_json({"error": {"message": _clean(inner)}})
    fields = cast("_Told", inner)
    code = next((fields[name] for name in CODES if isinstance(fields.get(name), int | str)), None)
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code[:9])
    message = next((fields[name] for name in TEXTS if fields.get(name)), "")
    error = {"message": _clean(message), "type": fields.get("type"), "code": code, "param": fields.get("param")}
    told = {name: _clean(value) for name, value in error.items() if isinstance(value, str)}
    kept = {name: fields[name] for name in ("metadata",) if isinstance(fields.get(name), Mapping)}
    return write_json({"error": told | ({"code": code} if isinstance(code, int) else {}) | kept})


def _is_error(found: _Told) -> bool:
    """Tell whether an object without choices is an error."""
    kinds = [str(found.get(name)).lower() for name in ("object", "type")]
    answer = found.get("base_resp")
    refused = isinstance(answer, Mapping) and cast("_Told", answer).get("status_code")
    return bool(
        any(found.get(name) for name in (*HOLDERS, "error_code", "error_msg", "error_message"))
        or any(kind.endswith("error") for kind in kinds)
        or found.get("status") == "error"
        or found.get("success") is False
        or isinstance(found.get("message"), str)
        or refused
    )


def _unwrap(said: Any) -> Any:
    """Return what is inside of the wrappings that vendors put around an error."""
    told: Any = said
    for _ in range(4):
        if isinstance(told, list) and told:
            told = cast("list[Any]", told)[0]
            continue
        if not isinstance(told, Mapping):
            break
        fields = cast("_Told", told)
        inner = next((fields[name] for name in (*HOLDERS, "base_resp") if fields.get(name)), None)
        if isinstance(inner, str) and any(fields.get(name) for name in CODES):
            return {**fields, "message": inner}
        if inner is None or isinstance(inner, bool):
            break
        told = inner
    return cast("Any", told)


def _clean(told: Any) -> str:
    """Return a text that can be encoded, of bounded length."""
    text = told if isinstance(told, str) else "" if told is None else write_json(told).decode()
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()


def _items(found: Any) -> list[_Told]:
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("_Told", item) for item in items if isinstance(item, dict)]
