"""The master key on the command line."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from shell import Shell, forget_settings
from sqlalchemy import create_engine

from penstock.sealing import data_keys
from penstock.sealing.master_keys import MasterKeys


@pytest.fixture
def shell(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    forget_settings(monkeypatch)
    shutil.copy(empty_store, tmp_path)
    return Shell(tmp_path)


def seal(folder: Path) -> bytes:
    engine = create_engine(f"sqlite:///{folder / 'penstock.db'}")
    with engine.begin() as connection:
        sealed = data_keys.ensure_sealer(connection, MasterKeys(folder), 1.0).seal("test", "row", b"secret")
    engine.dispose()
    return sealed


def test_without_secrets_there_is_nothing_to_rotate(shell: Shell):
    assert shell.json("secrets status") == {"data_keys": 0, "sealed_by": [], "known": []}
    assert "nothing" in shell("secrets status").stdout
    assert "no key to rotate" in shell("secrets rotate").stdout
    assert shell.json("secrets rotate") == {"sealed_again": 0}
    assert not (shell.data / "master-key").exists()


def test_the_key_is_rotated(shell: Shell):
    seal(shell.data)
    before = shell.json("secrets status")
    file = shell.data / "master-key"
    text = file.read_text()
    assert before["known"] == [{"id": before["sealed_by"][0], "origin": str(file)}]
    after = shell.json("secrets rotate")
    assert after["sealed_again"] == 1
    assert after["sealed_by"] != before["sealed_by"][0]
    assert shell.json("secrets status")["sealed_by"] == [after["sealed_by"]]
    assert file.read_text() != text
    assert text.strip() not in shell("secrets status").stdout
    assert "sealed by the master key" in shell("secrets rotate").stdout


def test_a_lost_key_is_reported(shell: Shell):
    seal(shell.data)
    (shell.data / "master-key").unlink()
    shell.configure(f'[sealing]\nmaster_key = "{"5a7f" * 16}"\n')
    assert "not random" in shell("secrets rotate", code=2).stderr
    shell.configure(f'[sealing]\nmaster_key = "{bytes(range(32)).hex()}"\n')
    assert "sealed by the master key" in shell("secrets rotate", code=1).stderr
    database = sqlite3.connect(shell.data / "penstock.db")
    assert database.execute("SELECT count(*) FROM data_keys").fetchone() == (1,)
    database.close()
