"""The document of run-time settings: vendors, models and limits, with references in the place of secrets."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from penstock.errors import Detail, InvalidRequest
from penstock.settings.live_limits import LIVE_LIMITS, is_limit_value
from penstock.settings.problems import nearest

Document = Mapping[str, Mapping[str, Any]]
"""`vendors`, `models` and `limits`, each by name. A vendor or model is a table of the settings file, with `enabled`."""

PARTS: Final = ("vendors", "models", "limits")
TABLES: Final = ("vendors", "models")
"""Parts whose entries are tables. A limit is a value."""
SEALED: Final = "sealed"
"""The key of a reference to a stored secret: `{"sealed": "<id>"}`."""
KEPT: Final = "$secret"
"""The key of a placeholder: `{"$secret": "kept"}` keeps the secret that is stored."""
PLACEHOLDER: Final = {KEPT: "kept"}
SECRET_NAME: Final = re.compile(r"(^|_)key$|secret$|token$|password$|service_account$")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}")
UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
MAX_ENTRIES: Final = 2_000
MAX_DOCUMENT_BYTES: Final = 4 << 20
MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53
"""Integers beyond this are not the same number in every reader of JSON."""


def empty() -> dict[str, dict[str, Any]]:
    """Return a document without any entry."""
    return {part: {} for part in PARTS}


def normalise(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a document as it is stored: every part there, and every entry with `enabled`. Raise for another shape."""
    if unknown := sorted(document.keys() - set(PARTS)):
        raise invalid(unknown[0], f"is not a part of the run-time settings. Allowed are: {', '.join(PARTS)}.")
    found = empty()
    for part in PARTS:
        entries = document.get(part, {})
        if not isinstance(entries, dict) or len(cast("dict[str, Any]", entries)) > MAX_ENTRIES:
            raise invalid(part, f"should be an object of at most {MAX_ENTRIES} entries by name.")
        for name, entry in cast("dict[str, Any]", entries).items():
            found[part][name] = check_limit(name, entry) if part == "limits" else check_entry(part, name, entry)
    check_size(found)
    return found


def check_limit(name: str, value: Any) -> Any:
    """Return the value of a limit. Raise for one that cannot be changed at run time, and for another shape."""
    where = f"limits.{name[:200]}"
    if name not in LIVE_LIMITS:
        raise invalid(where, f"cannot be changed at run time. {nearest(name, LIVE_LIMITS)}")
    if not is_limit_value(value):
        raise invalid(where, 'should be a number, or a text such as "12h".')
    _check_value(where, value)
    return value


def check_size(document: Document) -> None:
    """Raise for a document that is too large to keep many versions of."""
    if (size := len(msgspec.json.encode(document))) > MAX_DOCUMENT_BYTES:
        message = f"The run-time settings have {size} bytes, allowed are {MAX_DOCUMENT_BYTES}. Remove entries."
        raise InvalidRequest(message, param="vendors")


def check_entry(part: str, name: str, entry: Any) -> dict[str, Any]:
    """Return an entry with `enabled`. Raise for another shape."""
    where = f"{part}.{name[:200]}"
    if not NAME.fullmatch(name):
        raise invalid(where, "is not a name. Use letters, digits and . _ : / -, beginning with a letter or digit.")
    if not isinstance(entry, dict):
        raise invalid(where, "should be an object.")
    check_values(where, entry)
    table = cast("dict[str, Any]", entry)
    if not isinstance(table.get("enabled", True), bool):
        raise invalid(f"{where}.enabled", "should be true or false.")
    if part == "models" and table.get("id", name) != name:
        raise invalid(f"{where}.id", f"should be `{name}`, or left out.")
    if part == "vendors":
        for key, value in table.items():
            if isinstance(value, str) and value.startswith(("env:", "file:")):
                raise invalid(
                    f"{where}.{key}", "names a variable or file, which only the file may do. Write the value."
                )
    return {"enabled": True, **{key: value for key, value in table.items() if key != "id" and value is not None}}


def check_values(where: str, value: Any, depth: int = 0) -> None:
    """Raise for values that the store or another reader of JSON would not return as they are."""
    if depth > MAX_DEPTH:
        raise invalid(where, f"is nested too deeply: at most {MAX_DEPTH} levels are allowed.")
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            _check_value(where, name)
            check_values(f"{where}.{name[:200]}", inner, depth + 1)
    elif isinstance(value, list):
        for at, inner in enumerate(cast("list[Any]", value)):
            check_values(f"{where}.{at}", inner, depth + 1)
    else:
        _check_value(where, value)


def _check_value(where: str, value: Any) -> None:
    match value:
        case int() if abs(value) > MAX_INTEGER:
            raise invalid(where, f"should be an integer of at most {MAX_INTEGER}.")
        case float() if not math.isfinite(value):
            raise invalid(where, "should be a finite number.")
        case str() if UNSTORABLE.search(value):
            raise invalid(where, "has a character that cannot be stored: NUL, or half of a surrogate pair.")
        case _:
            pass


def is_secret(name: str) -> bool:
    """Return whether an option of this name holds a secret."""
    return SECRET_NAME.search(name) is not None


def secret_id(value: Any) -> str | None:
    """Return the id that a reference names."""
    return cast("dict[str, Any]", value).get(SEALED) if isinstance(value, dict) else None


def find_secrets(document: Document) -> set[str]:
    """Return the ids of all secrets that a document refers to."""
    return {name for _, _, name in references(document)}


def references(document: Document) -> Iterator[tuple[str, str, str]]:
    """Yield vendor, option and id of each secret."""
    for vendor, table in document.get("vendors", {}).items():
        for option, value in table.items():
            if is_secret(option) and (name := secret_id(value)) is not None:
                yield vendor, option, name


def without_secrets(document: Document) -> dict[str, dict[str, Any]]:
    """Return a document to show: placeholders stand for secrets."""
    shown = {part: {name: dict(entry) for name, entry in document.get(part, {}).items()} for part in TABLES}
    shown["limits"] = dict(document.get("limits", {}))
    for vendor, option, _ in references(document):
        shown["vendors"][vendor][option] = dict(PLACEHOLDER)
    return shown


def compare(before: Document, after: Document) -> list[dict[str, Any]]:
    """Return the differences by path. A secret is shown as set or changed, never its value."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    found: list[dict[str, Any]] = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        change = "added" if path not in old else "removed" if path not in new else "changed"
        entry = {"path": ".".join(path), "change": change}
        shown = {"before": old.get(path), "after": new.get(path)}
        found.append(entry | {name: _show(path, value) for name, value in shown.items() if value is not None})
    return found


def _show(path: tuple[str, ...], value: Any) -> Any:
    return "(secret)" if path[0] == "vendors" and is_secret(path[-1]) else value


def _leaves(document: Document) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the options of each entry, and each limit: a nested value counts as one."""
    for name, value in document.get("limits", {}).items():
        yield ("limits", name), value
    for part in TABLES:
        for name, entry in document.get(part, {}).items():
            for option, value in entry.items():
                yield (part, name, option), value


def invalid(where: str, message: str) -> InvalidRequest:
    """Return the error for one field."""
    detail = Detail(where, message)
    return InvalidRequest(f"{where}: {message}", param=where, details=[detail])
