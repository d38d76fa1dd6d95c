"""A change of the run-time settings before it is stored, and the tables that it adds to the file's."""

import secrets as randomness
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.configuration.document import (
    KEPT,
    PARTS,
    Document,
    check_limit,
    find_secrets,
    invalid,
    is_secret,
    normalise,
    references,
    secret_id,
)
from penstock.errors import SecretsUnavailable, SettingFromFile
from penstock.sealing.sealer import Sealer
from penstock.settings.tables import Addition, Settings

PURPOSE = "run-time settings"


@dataclass(frozen=True, slots=True)
class SettingsDraft:
    """A document with ids in the place of secrets, and the secrets that are new in it."""

    document: dict[str, dict[str, Any]]
    new: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def make_draft(current: Document, wanted: Mapping[str, Any], settings: Settings) -> SettingsDraft:
    """Return the draft of a change. A placeholder, or a secret that is left out, keeps what is stored.

    Raise if an entry of the file would change, or if a stored secret would go to another place.
    """
    document, new = normalise(wanted), dict[str, str]()
    for part in PARTS:
        for name, entry in document[part].items():
            if settings.is_from_file(part, name) and entry != current.get(part, {}).get(name):
                raise SettingFromFile(f"`{part}.{name}` is set in the settings file: change it there.", param=part)
    for name, table in document["vendors"].items():
        former = current.get("vendors", {}).get(name, {})
        for option in [option for option in table if is_secret(option)]:
            table[option] = _read_secret(name, option, table, former, new)
    return SettingsDraft(document, new)


def _read_secret(
    vendor: str, option: str, table: Mapping[str, Any], former: Mapping[str, Any], new: dict[str, str]
) -> dict[str, str]:
    """Return the reference that takes the place of a secret or of its placeholder."""
    value, where = table[option], f"vendors.{vendor}.{option}"
    if isinstance(value, str):
        if not value.strip():
            raise invalid(where, "is empty. Give the secret, or leave the field out.")
        name = f"sec_{randomness.token_hex(12)}"
        new[name] = value
        return {"sealed": name}
    is_placeholder = isinstance(value, dict) and KEPT in cast("dict[str, Any]", value)
    kept = secret_id(former.get(option))
    if not is_placeholder and (kept is None or secret_id(value) != kept):
        raise invalid(where, 'should be a text, or {"$secret": "kept"} for the one that is stored.')
    if kept is None:
        raise invalid(where, "no secret is stored here yet. Give its value.")
    if _places(table) != _places(former):
        raise invalid(where, "enter the secret again, as the vendor's type or address changes.")
    return {"sealed": kept}


def _places(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide where a vendor's secret is sent."""
    return {
        name: value
        for name, value in table.items()
        if name in ("type", "base_url") or (isinstance(value, str) and "://" in value)
    }


def seal_all(sealer: Sealer, draft: SettingsDraft) -> dict[str, bytes]:
    """Return the new secrets of a draft, each sealed for its place."""
    places = {name: _row_id(vendor, option, name) for vendor, option, name in references(draft.document)}
    return {name: sealer.seal(PURPOSE, places[name], text.encode()) for name, text in draft.new.items()}


def open_all(sealer: Sealer | None, document: Document, sealed: Mapping[str, bytes]) -> dict[str, str]:
    """Return the secrets of a document by id. Those that are not in `sealed` are left out."""
    found: dict[str, str] = {}
    for vendor, option, name in references(document):
        if name in sealed:
            if sealer is None:
                raise SecretsUnavailable
            found[name] = sealer.open(PURPOSE, _row_id(vendor, option, name), sealed[name]).decode()
    return found


def _row_id(vendor: str, option: str, name: str) -> str:
    return f"{name} vendors.{vendor}.{option}"


def to_addition(document: Document, secrets: Mapping[str, str], settings: Settings) -> Addition:
    """Return the tables that a document adds to these settings of a file. The file's own names come first.

    Routes to a disabled vendor are left out, and so are models without any other route.
    """
    if missing := find_secrets(document) - secrets.keys():
        raise SecretsUnavailable(f"{len(missing)} secrets of the run-time settings are missing from the store.")
    vendors = {
        name: table for name, table in document.get("vendors", {}).items() if not settings.is_from_file("vendors", name)
    }
    off = {name for name, table in vendors.items() if not table["enabled"]}
    tables = {name: _to_table(table, secrets) for name, table in vendors.items() if name not in off}
    given = document.get("limits", {}).items()
    limits = {name: check_limit(name, value) for name, value in given if not settings.is_from_file("limits", name)}
    models: list[dict[str, Any]] = []
    hidden: set[str] = set()
    for name, entry in document.get("models", {}).items():
        if settings.is_from_file("models", name):
            continue
        table = _route(entry, off)
        if entry["enabled"] and table is not None:
            models.append({"id": name, **table})
        else:
            hidden.add(name)
    return Addition(tables, models, frozenset(hidden), frozenset(secrets.values()), limits)


def _to_table(entry: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    table = {name: value for name, value in entry.items() if name != "enabled"}
    return {
        name: secrets[reference] if is_secret(name) and (reference := secret_id(value)) is not None else value
        for name, value in table.items()
    }


def _route(entry: Mapping[str, Any], off: set[str]) -> dict[str, Any] | None:
    """Return a model's table without routes to these vendors; None if none is left."""
    table = {name: value for name, value in entry.items() if name != "enabled"}
    if isinstance(vendor := table.get("vendor"), str) and vendor in off:
        return None
    routes = table.get("routes")
    if not isinstance(routes, list):
        return table
    left = [route for route in cast("list[Any]", routes) if not _leads_to(route, off)]
    return {**table, "routes": left} if left or not routes else None


def _leads_to(route: Any, vendors: set[str]) -> bool:
    return isinstance(route, dict) and cast("dict[str, Any]", route).get("vendor") in vendors
