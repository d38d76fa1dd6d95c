"""The document of run-time settings: vendors and models, with references in the place of secrets."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from penstock.errors import Detail, InvalidRequest

Document = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""`vendors` and `models`, each by name. An entry is a table of the settings file, with `enabled`."""

PARTS: Final = ("vendors", "models")
SEALED: Final = "sealed"
"""The key of a reference to a stored secret: `{"sealed": "<id>"}`."""
KEPT: Final = "$secret"
"""The key of a placeholder: `{"$secret": "kept"}` keeps the secret that is stored."""
PLACEHOLDER: Final = {KEPT: "kept"}
SECRET_NAME: Final = re.compile(r"(^|_)key$|secret$|token$|password$|service_account$")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}")
MAX_ENTRIES: Final = 2_000


def empty() -> dict[str, dict[str, Any]]:
    """Return a document without any entry."""
    return {part: {} for part in PARTS}


def normalise(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a document as it is stored: every part there, and every entry with `enabled`. Raise for another shape."""
    if unknown := sorted(document.keys() - set(PARTS)):
        raise invalid(unknown[0], "is not a part of the run-time settings. Allowed are: vendors, models.")
    found = empty()
    for part in PARTS:
        entries = document.get(part, {})
        if not isinstance(entries, dict) or len(cast("dict[str, Any]", entries)) > MAX_ENTRIES:
            raise invalid(part, f"should be an object of at most {MAX_ENTRIES} entries by name.")
        for name, entry in cast("dict[str, Any]", entries).items():
            found[part][name] = check_entry(part, name, entry)
    return found


def check_entry(part: str, name: str, entry: Any) -> dict[str, Any]:
    """Return an entry with `enabled`. Raise for another shape."""
    where = f"{part}.{name[:200]}"
    if not NAME.fullmatch(name):
        raise invalid(where, "is not a name. Use letters, digits and . _ : / -, beginning with a letter or digit.")
    if not isinstance(entry, dict):
        raise invalid(where, "should be an object.")
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
    shown = {part: {name: dict(entry) for name, entry in document.get(part, {}).items()} for part in PARTS}
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
    """Yield the options of each entry: a nested value counts as one."""
    for part in PARTS:
        for name, entry in document.get(part, {}).items():
            for option, value in entry.items():
                yield (part, name, option), value


def invalid(where: str, message: str) -> InvalidRequest:
    """Return the error for one field."""
    detail = Detail(where, message)
    return InvalidRequest(f"{where}: {message}", param=where, details=[detail])
