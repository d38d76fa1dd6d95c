"""Versions of the run-time settings in the store: read, changed, restored. Each change is in the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.configuration.document import Document, compare, find_secrets
from penstock.configuration.draft import SettingsDraft, open_all, seal_all
from penstock.domain.accounts import Action, AuditEntry
from penstock.errors import SettingNotFound, SettingsConflict
from penstock.sealing.sealer import Sealer
from penstock.store.database import Connection
from penstock.store.queries.accounts import audit_rows
from penstock.store.queries.settings import version_rows
from penstock.store.queries.settings.version_rows import SettingsVersion

MAX_DIFFERENCES = 100
"""Differences in one entry of the audit log. The versions themselves have all."""


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """A version with its sealed secrets by id."""

    version: SettingsVersion
    sealed: Mapping[str, bytes]

    def open(self, sealer: Sealer | None) -> dict[str, str]:
        """Return the secrets by id."""
        return open_all(sealer, self.version.document, self.sealed)


def read(connection: Connection, version: int | None = None) -> StoredSettings:
    """Return a version, by default the newest."""
    wanted = version_rows.newest(connection) if version is None else version
    found = version_rows.get(connection, wanted)
    if found is None:
        raise SettingNotFound(f"There is no version {wanted} of the settings.", param="version")
    return StoredSettings(found, version_rows.secrets_of(connection, find_secrets(found.document)))


def commit(
    connection: Connection,
    actor: str,
    base: int,
    draft: SettingsDraft,
    sealer: Sealer | None,
    now: float,
    *,
    note: str = "",
    restored: int | None = None,
) -> SettingsVersion:
    """Store a draft as the next version. Raise `SettingsConflict` if `base` is not the newest any more."""
    version_rows.hold(connection)
    before = read(connection).version
    check_base(before.version, base)
    if draft.new and sealer is not None:
        version_rows.add_secrets(connection, seal_all(sealer, draft), now)
    made = SettingsVersion(base + 1, now, str(actor), note, restored, draft.document)
    version_rows.add(connection, made)
    version_rows.remove_oldest(connection, find_secrets)
    differences = compare(before.document, draft.document)
    detail: dict[str, Any] = {"changes": differences[:MAX_DIFFERENCES]}
    if len(differences) > MAX_DIFFERENCES:
        detail["more"] = len(differences) - MAX_DIFFERENCES
    detail |= {"note": note} if note else {}
    detail |= {} if restored is None else {"restored": restored}
    action = Action.SETTINGS_CHANGED if restored is None else Action.SETTINGS_RESTORED
    entry = AuditEntry(
        created_at=now, actor=actor, action=action, subject=str(made.version), account_id="", detail=detail
    )
    audit_rows.append(connection, entry)
    return made


def check_base(newest: int, base: int) -> None:
    """Raise if another change came first."""
    if newest != base:
        raise SettingsConflict(
            f"The settings were changed meanwhile: the newest version is {newest}, and your change is of {base}.",
            param="base_version",
            suggestion=f"Read version {newest}, and repeat the change with `base_version` {newest}.",
        )


def differences_of(connection: Connection, version: int) -> list[dict[str, Any]]:
    """Return what a version changed of the one before it."""
    after = read(connection, version).version
    before = version_rows.get(connection, max(0, version - 1))
    return compare(_document(before), after.document)


def _document(version: SettingsVersion | None) -> Document:
    return {} if version is None else version.document
