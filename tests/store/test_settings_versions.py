"""Versions of the run-time settings in the store: the oldest go, with the secrets that no other has."""

from typing import Any

from penstock.configuration.document import find_secrets
from penstock.store.database import RUNG
from penstock.store.queries.settings import version_rows
from penstock.store.queries.settings.version_rows import MAX_VERSIONS, SettingsVersion

NOW = 1_800_000_000.0


def document(*secrets: str) -> dict[str, Any]:
    return {"vendors": {f"v{name}": {"type": "sim", "api_key": {"sealed": name}} for name in secrets}, "models": {}}


def test_the_oldest_version_goes_with_the_secrets_that_no_other_has(connection):
    connection.info[RUNG] = set()
    version_rows.add_secrets(connection, dict.fromkeys(("only", "middle", "newest"), b"sealed"), NOW)
    contents = {1: document("only", "middle", "newest"), 500: document("middle"), MAX_VERSIONS + 1: document("newest")}
    for number in range(1, MAX_VERSIONS + 2):
        version_rows.add(connection, SettingsVersion(number, NOW, "cli", document=contents.get(number, document())))
    version_rows.remove_oldest(connection, find_secrets)
    assert version_rows.get(connection, 1) is None
    assert version_rows.get(connection, 2) is not None
    assert set(version_rows.secrets_of(connection, ("only", "middle", "newest"))) == {"middle", "newest"}
    assert len(version_rows.page(connection, None, 2 * MAX_VERSIONS)) == MAX_VERSIONS
