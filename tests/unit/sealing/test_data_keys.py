"""Data keys on both databases: made once, opened by their master key only, rotated whatever is killed in between."""

import stat
from pathlib import Path

import pytest
from sqlalchemy import Connection

from penstock.errors import SecretsUnavailable
from penstock.sealing import data_keys
from penstock.sealing.master_keys import FILE, NEXT_FILE, MasterKeys
from penstock.store.queries.settings import data_key_rows

FIRST, SECOND = "11" * 16 + "a0" * 16, "22" * 16 + "b0" * 16
NOW = 1_000_000.0


def of_settings(folder: Path, key: str | None, previous: str | None = None) -> MasterKeys:
    return MasterKeys.of(folder, key, previous)


def seal(connection: Connection, masters: MasterKeys) -> bytes:
    return data_keys.ensure_sealer(connection, masters, NOW).seal("test", "row", b"secret")


def opened(connection: Connection, masters: MasterKeys, sealed: bytes) -> bytes:
    sealer = data_keys.open_sealer(connection, masters)
    assert sealer is not None
    return sealer.open("test", "row", sealed)


def test_nothing_is_made_before_it_is_needed(connection: Connection, tmp_path: Path):
    assert data_keys.open_sealer(connection, of_settings(tmp_path, None)) is None
    assert data_keys.rotate(connection, of_settings(tmp_path, None)) is None
    assert list(tmp_path.iterdir()) == []


def test_processes_with_one_master_key_open_each_others_secrets(connection: Connection, tmp_path: Path):
    sealed = seal(connection, of_settings(tmp_path / "a", FIRST))
    assert opened(connection, of_settings(tmp_path / "b", FIRST), sealed) == b"secret"
    assert seal(connection, of_settings(tmp_path / "b", FIRST)) != sealed
    assert len(data_key_rows.list_all(connection)) == 1
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("key", [SECOND, None])
def test_a_wrong_or_absent_master_key_is_a_clear_error(connection: Connection, tmp_path: Path, key: str | None):
    masters = of_settings(tmp_path, FIRST)
    assert masters.set_key is not None
    seal(connection, masters)
    with pytest.raises(SecretsUnavailable) as raised:
        data_keys.open_sealer(connection, of_settings(tmp_path, key))
    assert masters.set_key.id in raised.value.message
    assert FIRST not in raised.value.message
    assert "sealing.master_key" in (raised.value.suggestion or "")


def test_a_shared_store_needs_a_key_in_the_settings(postgres_trial: Connection, tmp_path: Path):
    with pytest.raises(SecretsUnavailable) as raised:
        seal(postgres_trial, of_settings(tmp_path, None))
    assert "openssl rand -hex 32" in (raised.value.suggestion or "")
    assert list(tmp_path.iterdir()) == []
    postgres_trial.rollback()


def test_the_file_is_private_and_made_once(tmp_path: Path):
    folder = tmp_path / "data"
    masters = of_settings(folder, None)
    made = masters.make_file()
    assert masters.make_file() == made
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "abc", "zz" * 32, "ä"])
def test_a_damaged_file_is_a_clear_error(tmp_path: Path, text: str):
    (tmp_path / FILE).write_text(text, "utf-8")
    with pytest.raises(SecretsUnavailable) as raised:
        of_settings(tmp_path, None).read_all()
    assert str(tmp_path / FILE) in raised.value.message


def test_a_key_of_the_settings_replaces_the_one_before(connection: Connection, tmp_path: Path):
    sealed = seal(connection, of_settings(tmp_path, FIRST))
    both = of_settings(tmp_path, SECOND, FIRST)
    assert opened(connection, both, sealed) == b"secret"
    done = data_keys.rotate(connection, both)
    assert done is not None
    assert done[1] == 1
    assert opened(connection, of_settings(tmp_path, SECOND), sealed) == b"secret"
    with pytest.raises(SecretsUnavailable):
        data_keys.open_sealer(connection, of_settings(tmp_path, FIRST))
    again = data_keys.rotate(connection, both)
    assert again is not None
    assert again[1] == 0


def make_file_store(connection: Connection, folder: Path) -> tuple[MasterKeys, bytes]:
    """Seal by the file's key, on either database."""
    masters = of_settings(folder, None)
    key = masters.make_file()
    return masters, seal(connection, of_settings(folder, key.secret.hex()))


def test_a_rotation_survives_a_kill_at_every_step(connection: Connection, tmp_path: Path):
    masters, sealed = make_file_store(connection, tmp_path)
    first = masters.read_file()
    masters.make_file(NEXT_FILE)  # killed here
    assert opened(connection, masters, sealed) == b"secret"
    with connection.begin_nested() as killed:
        data_keys.rotate(connection, masters)
        killed.rollback()  # and before the commit
    assert opened(connection, masters, sealed) == b"secret"
    done = data_keys.rotate(connection, masters)  # and after it, before the file is renamed
    assert done is not None
    assert masters.read_file() == first
    assert opened(connection, masters, sealed) == b"secret"
    again = data_keys.rotate(connection, masters)
    assert again == (done[0], 0)
    data_keys.finish_rotation(connection, masters)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    found = masters.read_file()
    assert found is not None
    assert (found.secret, found != first) == (done[0].secret, True)
    assert opened(connection, masters, sealed) == b"secret"
    data_keys.finish_rotation(connection, masters)  # nothing is left to do


def test_a_key_that_nothing_is_sealed_by_yet_never_takes_the_files_place(connection: Connection, tmp_path: Path):
    masters, sealed = make_file_store(connection, tmp_path)
    masters.make_file(NEXT_FILE)
    data_keys.finish_rotation(connection, masters)
    assert opened(connection, masters, sealed) == b"secret"
    assert (tmp_path / NEXT_FILE).exists()


def test_a_damaged_data_key_is_a_clear_error(connection: Connection, tmp_path: Path):
    masters = of_settings(tmp_path, FIRST)
    seal(connection, masters)
    [row] = data_key_rows.list_all(connection)
    data_key_rows.reseal(connection, row.id, row.master, row.sealed[:-1] + bytes([row.sealed[-1] ^ 1]))
    with pytest.raises(SecretsUnavailable, match="damaged"):
        data_keys.open_sealer(connection, masters)
