"""Weights come whole or not at all: through the real pip and npm, interrupted, at the same time, and from a folder."""

import base64
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from weight_packages import CONTENT, make_weight, names_in, pack_tarball, pack_wheel, point_pip_at, registry, send

from penstock_engines.bundles import Form, pack_members
from penstock_engines.weights import MANIFEST, PullError, Step, Unreachable, Weight, is_present, missing, pull

LITTLE = make_weight()
WHOLE = {"little.gguf", ".little.gguf.verified"}
ARCHIVE = {"name": "little.zip", "registry": "npm", "package": "@studio/little"}
PACKED = make_weight(registry="npm", package="@studio/little", member="package/data.bin")


def make_bundle(form: Form, members: dict[str, bytes], store: Path) -> bytes:
    """The archive of a package in a folder, as it is pinned."""
    pattern = {"pictures": "package/art/*.webp", "words": "package/annotations/*/annotations.json"}[form]
    with tarfile.open(pack_tarball(store / "studio-little-1.2.3.tgz", dict(members))) as package:
        return pack_members(package, pattern, form)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "share" / "weights"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder that holds the wheel."""
    return pack_wheel(tmp_path / "store").parent


# -- the manifest


@pytest.mark.parametrize("weight", MANIFEST, ids=lambda weight: weight.name)
def test_every_file_of_the_manifest_is_pinned(weight: Weight):
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*\.(gguf|onnx|json|zip)", weight.name)
    assert re.fullmatch(r"[0-9a-f]{64}", weight.sha256)
    assert re.fullmatch(r"[0-9]+(\.[0-9]+)+", weight.version)
    assert weight.bytes > 0
    assert (weight.needed_by, weight.registry) in product(("chat", "3d", "video", "audio"), ("pypi", "npm"))
    assert not weight.member.startswith("/")
    assert all((weight.title, weight.package, weight.licence))


def test_the_manifest_names_no_file_twice():
    assert len({weight.name for weight in MANIFEST}) == len({weight.sha256 for weight in MANIFEST}) == len(MANIFEST) > 0


@pytest.mark.parametrize("weight", [weight for weight in MANIFEST if weight.parts], ids=lambda weight: weight.name)
def test_a_large_file_has_pinned_parts_an_upstream_address_and_must_be_asked_for(weight: Weight):
    assert sum(part.bytes for part in weight.parts) == weight.bytes
    assert all(re.fullmatch(r"[0-9a-f]{64}", part.sha256) for part in weight.parts)
    pieces = [weight.part(index) for index in range(len(weight.parts))]
    assert len({(piece.package, piece.member) for piece in pieces}) == len(pieces)
    assert weight.address.startswith("https://")
    assert weight.optional


# -- many small files in one


def test_pictures_of_a_package_become_one_archive_whatever_their_order(folder: Path, tmp_path: Path):
    pictures = {"package/art/b.webp": b"second", "package/art/a.webp": b"first", "package/readme.md": b"text"}
    whole = make_bundle("pictures", pictures, tmp_path / "one")
    weight = make_weight(whole, **ARCHIVE, member="package/art/*.webp", form="pictures")
    backwards = dict(reversed(pictures.items()))
    pack_tarball(tmp_path / "two" / "studio-little-1.2.3.tgz", backwards)
    assert pull(weight, folder, source=tmp_path / "two")
    with zipfile.ZipFile(folder / "little.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"a.webp": b"first", "b.webp": b"second"}


def test_words_of_a_package_are_boiled_down_to_a_table_per_language(folder: Path, tmp_path: Path):
    words = {"\U0001f982": {"default": ["Skorpion", "Tier"], "tts": ["Skorpion"]}, "\u00e9": {"tts": ["e"]}}
    document = json.dumps({"annotations": {"identity": {}, "annotations": words}}).encode()
    members = {
        "package/annotations/de/annotations.json": document,
        "package/annotations/xx/annotations.json": b'{"a":{}}',
    }
    whole = make_bundle("words", members, tmp_path / "one")
    weight = make_weight(whole, **ARCHIVE, member="package/annotations/*/annotations.json", form="words")
    assert pull(weight, folder, source=tmp_path / "one")
    with zipfile.ZipFile(folder / "little.zip") as archive:
        assert archive.namelist() == ["de.tsv"]
        assert archive.read("de.tsv").decode() == "\U0001f982\tSkorpion\tSkorpion\tTier"


def test_an_archive_whose_pictures_changed_is_refused(folder: Path, tmp_path: Path):
    whole = make_bundle("pictures", {"package/art/a.webp": b"first"}, tmp_path / "one")
    weight = make_weight(whole, **ARCHIVE, member="package/art/*.webp", form="pictures")
    for name, content in (("a.webp", b"other"), ("b.jpeg", b"first")):
        pack_tarball(tmp_path / name / "studio-little-1.2.3.tgz", {f"package/art/{name}": content})
        with pytest.raises(PullError, match=r"sha256|has no package/art"):
            pull(weight, folder, source=tmp_path / name)
    assert not (folder / "little.zip").exists()


# -- whether a file is here


def test_a_file_is_missing_until_it_is_here_with_its_size_and_bytes(folder: Path):
    assert missing(folder, [LITTLE]) == (LITTLE,)
    folder.mkdir(parents=True)
    for content in (b"", CONTENT[:-1], CONTENT[:-1] + b"?"):
        (folder / LITTLE.name).write_bytes(content)
        assert missing(folder, [LITTLE]) == (LITTLE,)
    (folder / LITTLE.name).write_bytes(CONTENT)
    assert missing(folder, [LITTLE]) == ()


def test_a_file_is_hashed_again_only_when_its_size_or_time_changed(folder: Path, store: Path):
    pull(LITTLE, folder, source=store)
    path = folder / LITTLE.name
    before = path.stat()
    path.write_bytes(CONTENT[:-1] + b"?")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert is_present(LITTLE, folder)  # nobody looked inside
    path.touch()
    assert not is_present(LITTLE, folder)
    path.write_bytes(CONTENT)
    assert is_present(LITTLE, folder)


@pytest.mark.parametrize("seal", [b"", b"\xff\xfe", b"half a se"])
def test_a_torn_seal_only_costs_another_hash(folder: Path, store: Path, seal: bytes):
    pull(LITTLE, folder, source=store)
    whole = (folder / ".little.gguf.verified").read_bytes()
    (folder / ".little.gguf.verified").write_bytes(seal)
    assert is_present(LITTLE, folder)
    assert (folder / ".little.gguf.verified").read_bytes() == whole


def test_a_new_pin_makes_the_old_file_missing(folder: Path, store: Path):
    pull(LITTLE, folder, source=store)
    assert missing(folder, [replace(LITTLE, sha256="0" * 64)])


# -- from a folder


@pytest.mark.parametrize("name", ["little.gguf", "penstock_test_weights-1.2.3-py3-none-any.whl"])
def test_the_file_or_its_wheel_is_taken_from_a_folder(tmp_path: Path, folder: Path, name: str):
    source = pack_wheel(tmp_path / "source").parent
    if name == LITTLE.name:
        (source / name).write_bytes(CONTENT)
        pack_wheel(source, {"inside/data.bin": b"not this one"})
    steps: list[tuple[Step, int]] = []
    assert pull(LITTLE, folder, source=source, tell=lambda step, done: steps.append((step, done)))
    assert (folder / LITTLE.name).read_bytes() == CONTENT
    assert names_in(folder) == WHOLE
    assert steps == [(Step.EXTRACTING, done) for done in (1 << 20, 2 << 20, len(CONTENT))]
    assert not pull(LITTLE, folder, source=tmp_path / "gone")


def test_a_tarball_is_taken_from_a_folder(tmp_path: Path, folder: Path):
    pack_tarball(tmp_path / "source" / "studio-little-1.2.3.tgz", {"package/data.bin": CONTENT})
    assert pull(PACKED, folder, source=tmp_path / "source")
    assert (folder / PACKED.name).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "name", ["", "penstock_test_weights-1.2.4-py3-none-any.whl", "penstock_test-1.2.3.whl", "a.whl"]
)
def test_a_folder_without_it_is_told(tmp_path: Path, folder: Path, name: str):
    source = tmp_path / "source"
    if name:
        pack_wheel(source).rename(source / name)
    with pytest.raises(PullError, match=r"neither little\.gguf nor the wheel of penstock-test-weights 1\.2\.3"):
        pull(LITTLE, folder, source=source)


# -- what is refused


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (CONTENT[:-1], "has 2499999 bytes instead of 2500000"),
        (CONTENT * 2, "has more than 2500000 bytes instead"),
        (CONTENT[:-1] + b"?", f"instead of {LITTLE.sha256}"),
    ],
    ids=["short", "long", "other"],
)
@pytest.mark.parametrize("kind", ["bare", "wheel"])
def test_other_bytes_than_the_pinned_are_refused_and_not_kept(tmp_path, folder, kind: str, content: bytes, told: str):
    source = pack_wheel(tmp_path / "source", {"inside/data.bin": content}).parent
    if kind == "bare":
        (source / LITTLE.name).write_bytes(content)
    with pytest.raises(PullError, match=told):
        pull(LITTLE, folder, source=source)
    assert names_in(folder) == set()


def test_only_the_one_member_is_read_whatever_else_a_package_holds(tmp_path: Path, folder: Path):
    odd = {"../../evil": b"1", "/tmp/evil": b"2", "inside/../../evil": b"3"}  # noqa: S108  it must not be made
    source = pack_wheel(tmp_path / "source", odd).parent
    with pytest.raises(PullError, match=r"has no inside/data\.bin in it"):
        pull(LITTLE, folder, source=source)
    pack_wheel(source, {**odd, "inside/data.bin": CONTENT})
    assert pull(LITTLE, folder, source=source)
    assert names_in(folder) == WHOLE
    assert not list(tmp_path.rglob("evil"))


def test_a_link_in_a_tarball_is_not_followed(tmp_path: Path, folder: Path):
    (tmp_path / "secret").write_bytes(CONTENT)
    pack_tarball(tmp_path / "source" / "studio-little-1.2.3.tgz", {"package/data.bin": str(tmp_path / "secret")})
    with pytest.raises(PullError, match=r"has no package/data\.bin"):
        pull(PACKED, folder, source=tmp_path / "source")


@pytest.mark.parametrize("weight", [LITTLE, PACKED], ids=["wheel", "tarball"])
def test_damaged_packages_are_refused(tmp_path: Path, folder: Path, weight: Weight):
    pack_wheel(tmp_path, {"inside/data.bin": CONTENT[:5000]})
    pack_tarball(tmp_path / "studio-little-1.2.3.tgz", {"package/data.bin": CONTENT[:5000]})
    small = replace(weight, bytes=5000, sha256=hashlib.sha256(CONTENT[:5000]).hexdigest())
    [path] = tmp_path.glob("*.whl" if weight is LITTLE else "*.tgz")
    sound, chance = path.read_bytes(), random.Random(1)  # noqa: S311  no secret
    refused = 0
    for _ in range(150):
        torn = bytearray(sound[: chance.choice((len(sound), chance.randrange(len(sound))))])
        for _ in range(chance.randrange(1, 4)):
            torn[chance.randrange(len(torn))] = chance.randrange(256)
        path.write_bytes(torn)
        try:
            if pull(small, folder, source=tmp_path):
                assert (folder / small.name).read_bytes() == CONTENT[:5000]
                (folder / small.name).unlink()
        except PullError:
            refused += 1
            assert names_in(folder) <= {".little.gguf.verified"}
    assert refused > 75


# -- through pip and npm


def test_a_wheel_comes_through_pip_and_its_settings(monkeypatch, folder: Path, store: Path):
    point_pip_at(monkeypatch, store)
    steps: list[Step] = []
    assert pull(LITTLE, folder, tell=lambda step, _: steps.append(step))
    assert (folder / LITTLE.name).read_bytes() == CONTENT
    assert names_in(folder) == WHOLE
    assert (steps[0], steps[-1]) == (Step.DOWNLOADING, Step.EXTRACTING)
    assert not pull(LITTLE, folder)


def test_what_pip_cannot_find_is_told_with_its_reason(monkeypatch, folder: Path, tmp_path: Path):
    point_pip_at(monkeypatch, tmp_path)
    with pytest.raises(PullError, match="No matching distribution found for penstock-test-weights") as caught:
        pull(LITTLE, folder)
    assert not isinstance(caught.value, Unreachable)
    assert names_in(folder) == set()


def test_an_index_that_does_not_answer_is_told_as_such(monkeypatch, folder: Path, tmp_path: Path):
    point_pip_at(monkeypatch, tmp_path)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(Unreachable, match="pypi does not answer"):
        pull(LITTLE, folder)


STAND_IN = """#!{python}
import shutil, sys
words, rest = {words!r}, sys.argv[1:]
assert rest[:len(words)] == words
shutil.copy({wheel!r}, rest[rest.index("--dest") + 1])
"""


@pytest.mark.parametrize(("program", "words"), [("pip", ["download"]), ("uv", ["tool", "run", "pip", "download"])])
def test_without_its_own_pip_the_paths_is_used(monkeypatch, tmp_path, folder: Path, store: Path, program: str, words):
    monkeypatch.setitem(sys.modules, "pip", None)
    stand_in = tmp_path / "programs" / program
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN.format(python=sys.executable, words=words, wheel=str(next(store.iterdir()))))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent))
    assert pull(LITTLE, folder)


def test_without_any_program_to_download_the_remedy_is_told(monkeypatch, tmp_path, folder):
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PullError, match="python -m ensurepip"):
        pull(LITTLE, folder)


def test_without_npm_a_tarball_comes_straight_from_its_registry(monkeypatch, folder: Path, tmp_path: Path):
    tarball = pack_tarball(tmp_path / "little.tgz", {"package/data.bin": CONTENT}).read_bytes()
    asked: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        send(request, tarball, "application/octet-stream")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with registry(answer) as url:
        monkeypatch.setenv("npm_config_registry", url)
        assert pull(PACKED, folder)
    assert asked == ["/@studio/little/-/little-1.2.3.tgz"]
    assert names_in(folder) == WHOLE
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1")
    with pytest.raises(Unreachable):
        pull(PACKED, tmp_path / "other")


def test_without_npm_and_a_registry_the_error_says_what_to_do(monkeypatch, folder: Path, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("npm_config_registry", raising=False)
    with pytest.raises(PullError, match="set npm_config_registry"):
        pull(PACKED, folder)


def test_a_tarball_comes_through_npm_and_its_settings(monkeypatch, folder: Path, tmp_path: Path):
    about = {"name": PACKED.package, "version": "1.2.3"}
    members = {"package/package.json": json.dumps(about).encode(), "package/data.bin": CONTENT}
    tarball = pack_tarball(tmp_path / "little.tgz", members).read_bytes()

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.path.endswith(".tgz"):
            send(request, tarball, "application/octet-stream")
            return
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}"
        version = about | {"dist": {"tarball": f"http://{request.headers['host']}/little.tgz", "integrity": integrity}}
        document = {"name": PACKED.package, "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}
        send(request, json.dumps(document).encode(), "application/json")

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with registry(answer) as url:
        monkeypatch.setenv("npm_config_registry", url)
        assert pull(PACKED, folder)
    assert (folder / PACKED.name).read_bytes() == CONTENT
    assert names_in(folder) == WHOLE


# -- interrupted, and at the same time


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from penstock_engines.weights import Step, Weight, pull

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
weight, folder, source, die_at = json.loads(sys.argv[1])
def tell(step, done):
    if done >= die_at > 0:
        os.kill(os.getpid(), signal.SIGKILL)
print(pull(Weight(**weight), Path(folder), source=source and Path(source), tell=tell))
"""


def start(folder: Path, source: Path | None = None, die_at: int = 0, **options: Any) -> subprocess.Popen[str]:
    """A pull of the little weight in a process of its own, killed as soon as so many bytes are done."""
    told = json.dumps([asdict(LITTLE), str(folder), source and str(source), die_at])
    command = [sys.executable, "-c", PROGRAM, told]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # noqa: S603


@pytest.mark.parametrize("die_at", [1, 2_000_000, len(CONTENT)])
def test_a_pull_killed_while_writing_is_made_good_by_the_next(folder: Path, store: Path, die_at: int):
    with start(folder, store, die_at) as killed:
        killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert missing(folder, [LITTLE])
    assert any(name.startswith(".pull-") for name in names_in(folder))
    assert pull(LITTLE, folder, source=store)
    assert names_in(folder) == WHOLE


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_pull_ended_while_downloading_is_made_good_by_the_next(monkeypatch, folder: Path, store: Path, end):
    [wheel] = store.iterdir()
    half_sent, go_on = threading.Event(), threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        if not request.path.endswith(".whl"):
            send(request, f'<a href="/{wheel.name}">{wheel.name}</a>'.encode(), "text/html")
            return
        send(request, wheel.read_bytes()[:1_000_000], "application/zip", size=wheel.stat().st_size)
        half_sent.set()
        go_on.wait(60)
        request.close_connection = True

    point_pip_at(monkeypatch, store)
    alone = {name: text for name, text in os.environ.items() if name not in ("PIP_NO_INDEX", "PIP_FIND_LINKS")}
    with registry(answer) as url:
        alone |= {"PIP_INDEX_URL": f"{url}/simple", "PIP_RETRIES": "0", "no_proxy": "127.0.0.1"}
        with start(folder, env=alone, start_new_session=True) as ended:
            try:
                assert half_sent.wait(60)
                ended.send_signal(end)
                assert ended.wait(60) != 0
                assert bool(names_in(folder)) == (end == signal.SIGKILL)
                assert pull(LITTLE, folder)  # while the pip of the killed one still hangs
                assert names_in(folder) == WHOLE
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(ended.pid, signal.SIGKILL)
                go_on.set()


def test_pulls_at_the_same_time_bring_it_once(folder: Path, store: Path):
    started = [start(folder, store) for _ in range(4)]
    told = sorted(one.communicate()[0].strip() for one in started)
    assert told == ["False", "False", "False", "True"]
    assert names_in(folder) == WHOLE


def test_the_second_pull_waits_for_the_first_and_says_so(folder: Path, store: Path):
    under_way, waits = threading.Event(), threading.Event()
    told: list[Step] = []

    def tell_first(_step: Step, _done: int) -> None:
        under_way.set()
        assert waits.wait(60)

    def tell_second(step: Step, _done: int) -> None:
        told.append(step)
        waits.set()

    with ThreadPoolExecutor() as pool:
        first = pool.submit(pull, LITTLE, folder, source=store, tell=tell_first)
        assert under_way.wait(60)
        second = pool.submit(pull, LITTLE, folder, source=store, tell=tell_second)
        assert (first.result(60), second.result(60)) == (True, False)
    assert told == [Step.WAITING]


# -- the disk


def test_a_full_disk_is_told_and_nothing_is_left(folder: Path, store: Path):
    little = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
    with start(folder, store, preexec_fn=little) as process:
        told = process.communicate()[1]
    assert "share/weights has no room: " in told
    assert names_in(folder) == set()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, store: Path):
    (tmp_path / "file").touch()
    with pytest.raises(PullError, match=r"file.*: Not a directory\. .* set PENSTOCK_WEIGHTS"):
        pull(LITTLE, tmp_path / "file" / "weights", source=store)


def test_a_folder_that_may_only_be_read_is_told_but_good_if_all_is_there(folder: Path, store: Path):
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    if not os.access(folder, os.W_OK):  # root may write anywhere
        with pytest.raises(PullError, match=r"Permission denied\. .* set PENSTOCK_WEIGHTS"):
            pull(LITTLE, folder, source=store)
    folder.chmod(0o700)
    (folder / LITTLE.name).write_bytes(CONTENT)
    folder.chmod(0o500)
    assert not pull(LITTLE, folder)
    assert missing(folder, [LITTLE]) == ()
