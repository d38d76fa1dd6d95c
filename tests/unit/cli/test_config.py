"""The run-time settings on the command line."""

import json
import shutil
from pathlib import Path

import pytest
from shell import Shell, forget_settings
from typer.testing import CliRunner

from penstock.cli.main import app


@pytest.fixture
def shell(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    forget_settings(monkeypatch)
    shutil.copy(empty_store, tmp_path)
    return Shell(tmp_path)


def test_an_export_comes_back_with_its_secrets(shell: Shell):
    assert shell.json('config set vendors.mine \'{"type": "sim"}\'')["version"] == 1
    typed = CliRunner().invoke(
        app, ["config", "set", "vendors.mine.api_key", "-", "--data", str(shell.data)], input="sk-secret-1\n"
    )
    assert typed.exit_code == 0
    assert "sk-secret-1" not in typed.output
    shell("config set vendors.mine.max_concurrent 7 --note busy")
    exported = shell("config export").stdout
    assert json.loads(exported)["vendors"]["mine"] == {
        "enabled": True,
        "type": "sim",
        "api_key": {"$secret": "kept"},
        "max_concurrent": 7,
    }
    file = shell.data / "export.json"
    file.write_text(exported)
    assert shell.json(f"config diff {file}")["changes"] == []
    shell("config unset vendors.mine.max_concurrent")
    assert "vendors.mine.max_concurrent" in shell(f"config diff {file}").stdout
    assert shell.json(f"config import {file} --base-version 4")["version"] == 5
    assert "changed meanwhile" in shell(f"config import {file} --base-version 4", code=1).stderr
    assert shell("config export").stdout.replace('"version": 5', '"version": 3') == exported
    assert b"sk-secret-1" not in (shell.data / "penstock.db").read_bytes()


def test_history_and_rollback(shell: Shell):
    shell('config set vendors.mine \'{"type": "sim"}\' --note first')
    shell("config unset vendors.mine")
    assert shell.json("config rollback 1")["version"] == 3
    history = shell.json("config history")
    assert [(each["version"], each["restored"], each["note"]) for each in history] == [
        (3, 1, ""),
        (2, None, ""),
        (1, None, "first"),
    ]
    assert "first" in shell("config history").stdout
    assert "mine" in shell("config export --version 1").stdout
    assert "no version 9" in shell("config rollback 9", code=1).stderr


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("config set vendors.mine.api_kee 1", 1, "type"),
        ("config set prices.x 1", 2, "vendors.NAME"),
        ("config set vendors.mine.api_key env:HOME", 1, "only the file may do"),
        ("config unset vendors.mine", 1, "There is no"),
        ("config import /nothing", 2, "No such file"),
    ],
)
def test_wrong_changes_are_explained(shell: Shell, line: str, code: int, words: str):
    assert words in shell(line, code=code).stderr
    assert json.loads(shell("config export").stdout)["version"] == 0
