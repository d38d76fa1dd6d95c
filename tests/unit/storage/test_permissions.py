"""What a server keeps is closed to other users of its machine, also in a folder that was there before."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.storage.permissions import find_open, look, private_umask, tighten

NOBODY = 65534
IS_ROOT = os.geteuid() == 0


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder as an older version left it: open to everybody."""
    folder = tmp_path / "data"
    for name in ("assets/job", "journal", "landing"):
        (folder / name).mkdir(parents=True)
    for name in ("penstock.db", "penstock.db-wal", "penstock.db-shm", "config.toml", "assets/job/video.mp4"):
        (folder / name).write_bytes(b"secret")
        (folder / name).chmod(0o644)
    for name in (".", "assets", "journal", "landing"):
        (folder / name).chmod(0o755)
    return folder


def test_everything_is_closed_and_nothing_is_left_to_tell(data: Path):
    assert {place.path.name for place in find_open(data)} >= {"data", "penstock.db", "penstock.db-wal", "assets"}
    assert tighten(data) == []
    assert find_open(data) == []
    assert mode_of(data) == 0o700
    assert {mode_of(path) for path in data.iterdir()} == {0o600, 0o700}


def test_a_store_and_assets_elsewhere_are_closed_too(data: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "bulk" / "files").mkdir(parents=True)
    store = elsewhere / "mine.db"
    for name in ("mine.db", "mine.db-wal"):
        (elsewhere / name).write_bytes(b"secret")
        (elsewhere / name).chmod(0o664)
    for folder in (elsewhere, elsewhere / "bulk", elsewhere / "bulk" / "files"):
        folder.chmod(0o755)
    assert tighten(data, store, elsewhere / "bulk") == []
    assert [mode_of(store), mode_of(elsewhere / "mine.db-wal")] == [0o600] * 2
    assert [mode_of(elsewhere / "bulk"), mode_of(elsewhere / "bulk" / "files")] == [0o700] * 2
    assert mode_of(elsewhere) == 0o755, "a folder that is not ours alone stays as it is"


def test_a_folder_that_is_given_to_a_group_stays_with_it(data: Path):
    data.chmod(0o2775)
    (data / "penstock.db").chmod(0o664)
    assert tighten(data) == []
    assert (mode_of(data), mode_of(data / "penstock.db")) == (0o2770, 0o660)
    with private_umask(data):
        (data / "new").touch(0o666)
    assert mode_of(data / "new") == 0o660


def test_no_link_is_followed(data: Path, tmp_path: Path):
    target = tmp_path / "target"
    target.write_bytes(b"another's")
    target.chmod(0o644)
    (data / "penstock.db").unlink()
    (data / "penstock.db").symlink_to(target)
    (data / "config.toml").unlink()
    (data / "config.toml").hardlink_to(target)
    data.chmod(0o1755)  # of everyone, so that what is in it counts
    assert [(place.path.name, place.obstacle) for place in tighten(data) if place.obstacle] == [
        ("config.toml", "it has other names (hard links)")
    ]
    assert mode_of(target) == 0o644


def test_a_folder_of_everyone_is_not_closed_to_them(data: Path, monkeypatch: pytest.MonkeyPatch):
    data.chmod(0o1777)
    tighten(data)
    assert (mode_of(data), mode_of(data / "penstock.db")) == (0o1777, 0o600)
    data.chmod(0o755)
    monkeypatch.setenv("HOME", str(data))
    tighten(data)
    assert mode_of(data) == 0o755


def test_what_is_made_meanwhile_is_closed_and_the_mask_is_given_back(tmp_path: Path):
    before = os.umask(0o022)
    try:
        with private_umask(tmp_path):
            (tmp_path / "file").touch(0o666)
            (tmp_path / "folder").mkdir()
        assert (mode_of(tmp_path / "file"), mode_of(tmp_path / "folder")) == (0o600, 0o700)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_what_is_not_there_is_no_trouble(tmp_path: Path):
    assert tighten(tmp_path / "none", tmp_path / "none" / "x.db", tmp_path / "neither") == []
    assert look(tmp_path / "none") is None


AS_NOBODY = """
import os, sys
from pathlib import Path
from penstock.storage.permissions import tighten
os.setegid({nobody}); os.seteuid({nobody})
for place in tighten(Path(sys.argv[1])):
    print(place.path.name, place.octal, place.obstacle)
"""


@pytest.mark.skipif(not IS_ROOT, reason="needs root, to be somebody else for a moment")
def test_what_belongs_to_somebody_else_is_told_and_not_an_error(data: Path):
    for folder in (*data.parents, data)[:3]:
        folder.chmod(folder.stat().st_mode | 0o055)
    script = AS_NOBODY.format(nobody=NOBODY)
    done = subprocess.run([sys.executable, "-c", script, data], capture_output=True, text=True, check=True)  # noqa: S603
    assert "penstock.db 0644 it belongs to the user 0" in done.stdout
    assert mode_of(data / "penstock.db") == 0o644
