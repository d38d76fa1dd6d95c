"""The walls around a process that opens hostile files, tried from inside, by what this kernel offers."""

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import workloads as works
from walls import try_walls

from penstock.inspection.images_and_video import inspect_image, inspect_video
from penstock.inspection.models import inspect_model
from penstock.inspection.worker_pool import ProcessPool, WorkFailed
from penstock.simulator.samples import make_model, make_preview, make_video
from penstock_sandbox import sandbox

OFFERED = sandbox.survey()
needs_landlock = pytest.mark.skipif(not OFFERED.landlock, reason="this kernel has no Landlock, as `doctor` reports")
needs_seccomp = pytest.mark.skipif(not OFFERED.seccomp, reason="this kernel has no seccomp, as `doctor` reports")
SECRETS = {
    "PENSTOCK_ADMIN_KEY": "psk_admin",
    "PENSTOCK_DATABASE_URL": "postgresql://name:password@host/database",
    "DATABASE_URL": "postgresql://name:password@host/database",
    "AWS_SECRET_ACCESS_KEY": "aws",
    "OPENAI_API_KEY": "sk-1",
    "MINE_KEY": "any name at all",
}


@pytest.fixture(params=[False, True], ids=["one-thread", "threads"])
async def process_pool(request) -> AsyncGenerator[ProcessPool]:
    process_pool = ProcessPool(1, threads=request.param)
    yield process_pool
    await process_pool.close()


@pytest.fixture(scope="module", params=[False, True], ids=["one-thread", "threads"])
def tried(request, tmp_path_factory) -> dict[str, str]:
    """What became of each attempt to get out; the file is one like the store's, readable for this user."""
    path = tmp_path_factory.mktemp("store") / "penstock.db"
    path.write_bytes(b"secret")

    async def attempt() -> dict[str, str]:
        process_pool = ProcessPool(1, threads=request.param)
        try:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                return await process_pool.do("a", try_walls, None, listener.getsockname()[1], str(path))
        finally:
            await process_pool.close()

    found = asyncio.run(attempt())
    assert path.read_bytes() == b"secret"
    return found


async def test_the_environment_holds_no_secret(process_pool, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    found = await process_pool.do("a", works.tell_environment)
    assert not {*found} & {*SECRETS, "HOME", "PATH"}
    assert not {*found.values()} & {*SECRETS.values()}


async def test_nothing_is_open_but_the_file_and_the_answer(process_pool, tmp_path):
    with (tmp_path / "ours").open("wb") as ours:
        os.set_inheritable(ours.fileno(), True)
        found = await process_pool.do("a", works.list_descriptors)
    assert len(found) == 5, found  # three that lead nowhere, theirs to /dev/null, and the answer's


@needs_seccomp
@pytest.mark.parametrize(
    "attempt", ["connect", "datagram", "local", "fork", "execute", "kill", "slow down", "memory file"]
)
def test_there_is_no_way_to_the_network_or_to_other_processes(tried, attempt):
    assert tried[attempt] == "PermissionError"


@needs_landlock
@pytest.mark.parametrize("attempt", ["read", "write", "make", "remove", "list", "passwords", "own environment"])
def test_there_is_no_way_to_files(tried, attempt):
    assert tried[attempt] == "PermissionError"


@pytest.mark.skipif(not OFFERED.seccomp, reason="this kernel has no seccomp, as `doctor` reports")
async def test_only_where_it_is_allowed_can_a_thread_start(process_pool):
    if process_pool.threads:
        assert await process_pool.do("a", works.start_thread) == "ran"
    else:
        with pytest.raises(WorkFailed, match="start new thread"):
            await process_pool.do("a", works.start_thread)


# -- without Landlock, nothing can be opened, and nothing has to be

STRICT = """
import os, sys
from dataclasses import replace
from importlib import import_module
from penstock.inspection import images_and_video as inspection
from penstock_sandbox import sandbox
from penstock.inspection.models import inspect_model

for libraries in inspection.LIBRARIES.values():
    for library in libraries:
        import_module(library)
files = [open(path, "rb") for path in sys.argv[1:]]
offered = replace(sandbox.survey(), landlock=0)
print(sandbox.confine(offered, readable=(), threads=True))
for file in files:
    match file.name.rpartition(".")[2]:
        case "png":
            print(inspection.inspect_image(file))
        case "mp4":
            print(inspection.inspect_video(file, None, None, None))
        case _:
            print(inspect_model(file, None))
try:
    open("/etc/passwd")
except PermissionError:
    print("closed", flush=True)
os._exit(0)
"""


@needs_seccomp
def test_a_kernel_without_landlock_opens_what_it_was_given_and_nothing_else(tmp_path):
    paths = [tmp_path / name for name in ("a.png", "a.mp4", "a.glb")]
    for path, data in zip(
        paths, (make_preview(1), make_video(64, 48, 1, 1), make_model(1, 48, texture=True)), strict=True
    ):
        path.write_bytes(data)
    answer = subprocess.run([sys.executable, "-c", STRICT, *paths], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (answer.returncode, answer.stderr) == (0, "")
    words = re.findall(r"^(?:\w+)", answer.stdout, re.MULTILINE)
    assert words == ["Confinement", "ImageFacts", "VideoFacts", "ModelFacts", "closed"]
    assert "landlock=0, seccomp=True" in answer.stdout


async def test_every_kind_is_opened_inside(tmp_path):
    process_pool, path = ProcessPool(1, threads=True), tmp_path / "file"
    try:
        assert (await process_pool.do("a", inspect_image, make_preview(1))).content_type == "image/png"
        path.write_bytes(make_video(64, 48, 1, 1))
        assert (await process_pool.do("a", inspect_video, path, None, None, None)).width == 64
        path.write_bytes(make_model(1, 48, texture=True))
        assert (await process_pool.do("a", inspect_model, path, None)).faces > 0
    finally:
        await process_pool.close()


# -- other machines

KILLING = """
import asyncio
from penstock_sandbox import sandbox
from penstock.inspection.worker_pool import ProcessPool

async def live():
    workshop = ProcessPool(1)
    print(await workshop.do("a", pow, None, 2, 3), sandbox.survey().missing)
    await workshop.close()

machine = sandbox._machine()
calls = (machine[2], sandbox.LANDLOCK_CREATE, sandbox.LANDLOCK_RESTRICT)
rules = [sandbox._Rule(number, sandbox.KILL) for number in calls]
sandbox._prctl(sandbox.PR_SET_NO_NEW_PRIVS, 1)
assert sandbox._filter(machine, sandbox._assemble(machine[1], rules, sandbox.ALLOW))
asyncio.run(live())
"""


@needs_seccomp
def test_under_a_filter_that_kills_who_asks_for_walls_files_are_still_opened():
    answer = subprocess.run([sys.executable, "-c", KILLING], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert answer.stdout == "8 ('Landlock', 'seccomp', 'no_new_privs')\n", answer.stderr


@pytest.mark.parametrize("system", [("darwin", "arm64"), ("linux", "riscv64"), ("linux", "i686"), ("win32", "AMD64")])
def test_elsewhere_the_walls_are_reported_as_missing(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system[0])
    monkeypatch.setattr("platform.machine", lambda: system[1])
    assert sandbox.look_around().missing == ("Landlock", "seccomp", "no_new_privs")
    assert sandbox.confine(OFFERED, readable=(), threads=False) == sandbox.NOTHING


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", HEADERS)
@pytest.mark.parametrize("table", ["COMPUTING", "OPENING", "DANGEROUS"])
def test_the_numbers_are_those_of_the_kernel_s_headers(machine, table):
    if not HEADERS[machine].exists():
        pytest.skip("this machine has no kernel headers")
    known = dict(re.findall(r"#define (?:__NR|__NR3264)_(\w+)\s+(\d+)", HEADERS[machine].read_text()))
    column, _, _ = sandbox.MACHINES[machine]
    ours: dict[str, Any] = {
        name: numbers[column] for name, numbers in getattr(sandbox, table).items() if column < len(numbers)
    }
    renamed = {"newfstatat": "fstatat"} if machine == "aarch64" else {}
    assert {name: number for name, number in ours.items() if known.get(renamed.get(name, name)) != str(number)} == {}


def test_a_filter_never_jumps_beyond_its_end_and_ends_with_a_decision():
    for column, architecture, _ in sandbox.MACHINES.values():
        rules = [sandbox._Rule(number, sandbox.ALLOW) for number in sandbox._numbers(sandbox.COMPUTING, column)]
        program = sandbox._assemble(architecture, [*rules, sandbox._Rule(1, 2, 3)], sandbox.REFUSE)
        assert program[1] == (0x15, 1, 0, architecture)
        assert program[2] == (0x06, 0, 0, sandbox.KILL)
        assert all(place + 1 + max(yes, no) < len(program) for place, (_, yes, no, _) in enumerate(program[:-1]))
        assert program[-1] == (0x06, 0, 0, sandbox.REFUSE)


# -- the engines' children

ENGINE = """
import os, sys
from pathlib import Path
from penstock_sandbox import sandbox
from penstock_engines.studio import child
from walls import try_walls

folder = Path(sys.argv[1])
inputs = {"file": str(folder / "picture")}
errand = {"weights": str(folder / "weights"), "inputs": inputs, "folder": str(folder / "made")}
child._confine(errand, sandbox.survey())
print((folder / "picture").read_text(), (folder / "weights" / "linked").read_text())
(folder / "made" / "model.glb").write_text("made")
print(*(f"{name}={what}" for name, what in try_walls(9, str(folder / "order.json")).items()), sep="\\n", flush=True)
os._exit(0)
"""


@needs_landlock
@needs_seccomp
def test_an_engine_s_child_reaches_its_order_and_nothing_else(tmp_path):
    for name in ("weights", "made", "elsewhere"):
        (tmp_path / name).mkdir()
    for name, text in (("picture", "pixels"), ("order.json", "{}"), ("elsewhere/large", "numbers")):
        (tmp_path / name).write_text(text)
    (tmp_path / "weights" / "linked").symlink_to(tmp_path / "elsewhere" / "large")
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "crash")}
    command = [sys.executable, "-c", ENGINE, tmp_path]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)  # noqa: S603 - ours
    assert answer.stderr == ""
    first, *rest = answer.stdout.splitlines()
    assert first == "pixels numbers"
    tried = dict(line.partition("=")[::2] for line in rest)
    closed = ("connect", "datagram", "local", "read", "write", "make", "remove", "passwords", "fork", "execute", "kill")
    assert {name: tried[name] for name in closed} == dict.fromkeys(closed, "PermissionError")
    assert (tmp_path / "made" / "model.glb").read_text() == "made"
