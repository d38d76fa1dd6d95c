"""Versions of the run-time settings, the sealed secrets that they refer to, and the version that each process uses."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, insert, select

from penstock.store import locks, sql
from penstock.store.database import RUNG
from penstock.store.tables import settings_processes, settings_secrets, settings_versions

TOPIC: Final = "settings"
"""The topic of new versions."""
MAX_VERSIONS: Final = 1_000
"""Versions kept; older ones are removed, with the secrets that no other version refers to."""
_NEWEST: Final = "SELECT coalesce(max(version), 0) FROM settings_versions"


@dataclass(frozen=True, slots=True)
class SettingsVersion:
    """One version of the run-time settings. `document` refers to secrets by id."""

    version: int = 0
    created_at: float = 0.0
    actor: str = ""
    note: str = ""
    restored: int | None = None
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class SettingsProcess:
    """A process, and the version that it uses. `problem` says why that is not the newest."""

    process: str
    name: str
    version: int
    problem: str | None
    renewed_at: float


def hold(connection: Connection) -> None:
    """Hold the lock of all changes to run-time settings until the transaction ends."""
    locks.hold(connection, "settings")


def newest(connection: Connection) -> int:
    """Return the newest version, or 0."""
    return int(sql.run(connection, _NEWEST)[0][0])


def get(connection: Connection, version: int) -> SettingsVersion | None:
    """Return a version. Version 0 is always there, and empty."""
    if version == 0:
        return SettingsVersion()
    query = select(settings_versions).where(settings_versions.c.version == version)
    found = connection.execute(query).mappings().one_or_none()
    return None if found is None else _version(dict(found))


def page(connection: Connection, before: int | None, limit: int) -> list[SettingsVersion]:
    """Return versions, newest first, older than this one."""
    query = select(settings_versions).order_by(settings_versions.c.version.desc()).limit(limit)
    if before is not None:
        query = query.where(settings_versions.c.version < before)
    return [_version(dict(row)) for row in connection.execute(query).mappings()]


def add(connection: Connection, version: SettingsVersion) -> None:
    """Store a version and wake the processes that use it."""
    values = {
        "version": version.version,
        "created_at": version.created_at,
        "actor": version.actor,
        "note": version.note,
        "restored": version.restored,
        "document": msgspec.json.encode(version.document),
    }
    connection.execute(insert(settings_versions), values)
    connection.info[RUNG].add(TOPIC)


def add_secrets(connection: Connection, sealed: Mapping[str, bytes], now: float) -> None:
    """Store sealed secrets by id."""
    rows = [{"id": name, "sealed": value, "created_at": now} for name, value in sealed.items()]
    if rows:
        connection.execute(insert(settings_secrets), rows)


def secrets_of(connection: Connection, ids: Collection[str]) -> dict[str, bytes]:
    """Return sealed secrets by id."""
    query = select(settings_secrets.c.id, settings_secrets.c.sealed).where(settings_secrets.c.id.in_(ids))
    return {row.id: row.sealed for row in connection.execute(query)} if ids else {}


def remove_oldest(connection: Connection, find_secrets: Any) -> None:
    """Remove versions beyond the bound, and secrets that none of the others refers to.

    Other versions are read, one by one, only if the newest does not have all secrets of those removed.
    """
    latest, column = newest(connection), settings_versions.c.version
    surplus = column <= latest - MAX_VERSIONS
    unused: set[str] = set()
    for document in connection.execute(select(settings_versions.c.document).where(surplus)).scalars():
        unused |= find_secrets(msgspec.json.decode(document))
    connection.execute(delete(settings_versions).where(surplus))
    for version in range(latest, max(0, latest - MAX_VERSIONS), -1):
        if not unused:
            return
        kept = get(connection, version)
        unused -= find_secrets({} if kept is None else kept.document)
    connection.execute(delete(settings_secrets).where(settings_secrets.c.id.in_(unused)))


# -- processes


def report(connection: Connection, process: SettingsProcess, expired_before: float) -> None:
    """Store the version that a process uses. Processes that stopped reporting are removed."""
    table = settings_processes
    connection.execute(
        delete(table).where((table.c.process == process.process) | (table.c.renewed_at < expired_before))
    )
    values = {name: getattr(process, name) for name in ("process", "name", "version", "problem", "renewed_at")}
    connection.execute(insert(table), values)


def leave(connection: Connection, process: str) -> None:
    """Remove a process that ends."""
    connection.execute(delete(settings_processes).where(settings_processes.c.process == process))


def processes(connection: Connection, since: float) -> list[SettingsProcess]:
    """Return the processes that reported since then, by name."""
    table = settings_processes
    query = select(table).where(table.c.renewed_at >= since).order_by(table.c.name, table.c.process)
    return [SettingsProcess(**row) for row in connection.execute(query).mappings()]


def _version(fields: dict[Any, Any]) -> SettingsVersion:
    fields["document"] = msgspec.json.decode(fields["document"])
    return SettingsVersion(**fields)
