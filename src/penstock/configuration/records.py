"""Run-time settings as administrators see them, over HTTP and on the command line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from penstock.configuration.document import PLACEHOLDER, TABLES, Document, compare, is_secret, without_secrets
from penstock.domain.ids import timestamp
from penstock.settings.live_limits import LIVE_LIMITS, split_limit
from penstock.settings.tables import Settings
from penstock.store.queries.settings.version_rows import SettingsProcess, SettingsVersion


def describe_settings(
    settings: Settings, newest: SettingsVersion, processes: Iterable[SettingsProcess]
) -> dict[str, Any]:
    """Return all vendors, models and limits with their origin. `settings` are those in use."""
    shown = without_secrets(newest.document)
    listed = {part: [*_from_file(settings, part), *_from_document(settings, part, shown[part])] for part in TABLES}
    return {
        "object": "run_time_settings",
        "version": newest.version,
        **listed,
        "limits": list(_list_limits(settings, shown["limits"])),
        "lists_models": settings.lists_models,
        "processes": [
            {"name": each.name, "version": each.version, "problem": each.problem, "seen_at": timestamp(each.renewed_at)}
            for each in processes
        ],
    }


def _from_file(settings: Settings, part: str) -> Iterator[dict[str, Any]]:
    if part == "vendors":
        entries: dict[str, Mapping[str, Any]] = {name: _hide(table) for name, table in settings.vendors.items()}
    else:
        every = {entry.id: entry.model_dump(mode="json", exclude_unset=True) for entry in settings.models}
        entries = {name: {key: value for key, value in entry.items() if key != "id"} for name, entry in every.items()}
    for name, options in entries.items():
        if settings.is_from_file(part, name):
            yield _entry(name, "file", options, enabled=True, shadowed=False)


def _hide(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(PLACEHOLDER) if is_secret(name) else value for name, value in table.items()}


def _from_document(settings: Settings, part: str, entries: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, entry in entries.items():
        options = {key: value for key, value in entry.items() if key != "enabled"}
        shadowed = settings.is_from_file(part, name)
        yield _entry(name, "run_time", options, enabled=entry["enabled"], shadowed=shadowed)


def _list_limits(settings: Settings, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every limit that can be changed: the value in use, its origin, and the one given at run time."""
    for name in LIVE_LIMITS:
        place, key = split_limit(name)
        table: BaseModel = getattr(settings, place)
        shadowed = settings.is_from_file("limits", name)
        origin = "file" if shadowed else "run_time" if name in given else "default"
        field = type(table).model_fields[key]
        yield {
            "name": name,
            "origin": origin,
            "value": getattr(table, key),
            "default": field.default,
            "run_time": given.get(name),
            "shadowed": shadowed and name in given,
            "description": field.description or "",
        }


def _entry(name: str, origin: str, options: Mapping[str, Any], *, enabled: bool, shadowed: bool) -> dict[str, Any]:
    return {"name": name, "origin": origin, "enabled": enabled, "shadowed": shadowed, "options": dict(options)}


def describe_change(before: Document, made: SettingsVersion, *, dry_run: bool) -> dict[str, Any]:
    """Return a change with its differences."""
    return {
        "object": "settings_change",
        "version": made.version,
        "dry_run": dry_run,
        "changes": compare(before, made.document),
    }


def describe_version(version: SettingsVersion) -> dict[str, Any]:
    """Return a version without its document."""
    return {
        "object": "settings_version",
        "version": version.version,
        "created_at": timestamp(version.created_at),
        "actor": version.actor,
        "note": version.note,
        "restored": version.restored,
    }


def describe_whole_version(version: SettingsVersion, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a version with its document, secrets hidden, and what it changed."""
    return {**describe_version(version), **without_secrets(version.document), "changes": changes}


def export(version: SettingsVersion) -> dict[str, Any]:
    """Return a document to keep in a file: no secrets, and the version it is of."""
    return {"version": version.version, **without_secrets(version.document)}
