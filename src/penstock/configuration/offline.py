"""Changes of the run-time settings on the store itself, beside running servers."""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.clocks import CLOCKS
from penstock.configuration import versions
from penstock.configuration.document import Document
from penstock.configuration.draft import SettingsDraft, make_draft, to_addition
from penstock.configuration.validation import check_settings, to_request_error
from penstock.configuration.versions import StoredSettings
from penstock.domain.accounts import Actor
from penstock.sealing.data_keys import ensure_sealer, open_sealer
from penstock.sealing.master_keys import MasterKeys
from penstock.settings.problems import SettingsError
from penstock.settings.tables import Settings
from penstock.store.database import Connection
from penstock.store.queries.settings import version_rows
from penstock.store.queries.settings.version_rows import SettingsVersion


def extend(connection: Connection, settings: Settings, masters: MasterKeys) -> Settings:
    """Return these settings of a file with the newest run-time settings added."""
    stored = versions.read(connection)
    if not stored.version.version:
        return settings
    secrets = stored.open(open_sealer(connection, masters) if stored.sealed else None)
    return settings.extend(to_addition(stored.version.document, secrets, settings))


def change(
    connection: Connection,
    settings: Settings,
    masters: MasterKeys,
    amend: Callable[[Document], Mapping[str, Any]],
    base: int | None,
    now: float,
    *,
    note: str = "",
    dry_run: bool = False,
) -> tuple[Document, SettingsVersion]:
    """Check and store a change. Return the document before, and the new version."""
    version_rows.hold(connection)
    stored = versions.read(connection)
    newest = stored.version.version
    versions.check_base(newest, newest if base is None else base)
    draft = make_draft(stored.version.document, amend(stored.version.document), settings)
    _check(connection, settings, masters, draft, stored)
    if dry_run:
        return stored.version.document, SettingsVersion(newest, document=draft.document)
    sealer = ensure_sealer(connection, masters, now) if draft.new else None
    made = versions.commit(connection, Actor.CLI, newest, draft, sealer, now, note=note)
    return stored.version.document, made


def restore(
    connection: Connection,
    settings: Settings,
    masters: MasterKeys,
    version: int,
    base: int | None,
    now: float,
    *,
    note: str = "",
) -> tuple[Document, SettingsVersion]:
    """Make an earlier version the newest again, with its secrets."""
    version_rows.hold(connection)
    before, stored = versions.read(connection).version, versions.read(connection, version)
    versions.check_base(before.version, before.version if base is None else base)
    draft = SettingsDraft({part: dict(entries) for part, entries in stored.version.document.items()})
    _check(connection, settings, masters, draft, stored)
    made = versions.commit(connection, Actor.CLI, before.version, draft, None, now, note=note, restored=version)
    return before.document, made


def _check(
    connection: Connection, settings: Settings, masters: MasterKeys, draft: SettingsDraft, stored: StoredSettings
) -> None:
    sealer = open_sealer(connection, masters) if stored.sealed else None
    addition = to_addition(draft.document, {**stored.open(sealer), **draft.new}, settings)
    try:
        check_settings(settings, addition, None, CLOCKS)
    except SettingsError as error:
        raise to_request_error(error) from None
