"""The studio: orders are made by child processes that can crash, hang, be stopped or outlive nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock_engines.studio.run import Limits
from penstock_engines.studio.studio import Studio

VIDEO = {
    "engine": "cinema",
    "wish": {"prompt": "a boat", "width": 320, "height": 180, "seconds": 4, "lossless": False, "people": True},
}
LONG = {"engine": "cinema", "wish": {**VIDEO["wish"], "width": 1920, "height": 1080, "seconds": 8}}
AMPLE = Limits(seconds=500, memory_mb=3072)


@pytest.fixture
def studio(tmp_path: Path, weights: Path) -> Iterator[Studio]:
    studio = Studio(tmp_path, weights, AMPLE)
    yield studio
    studio.close()


def say(studio: Studio, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    status, _, data = studio.answer(method, path, b"" if body is None else json.dumps(body).encode())
    return status, json.loads(data) if isinstance(data, bytes) else data


def order(studio: Studio, name: str, what: dict[str, Any] = VIDEO) -> None:
    assert say(studio, "PUT", f"/orders/{name}", what)[0] == 201


def watch(studio: Studio, name: str, seconds: float = 500) -> Iterator[dict[str, Any]]:
    """How the order stands, again and again until it is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        status, standing = say(studio, "GET", f"/orders/{name}")
        assert status == 200
        yield standing
        if standing["status"] != "running":
            return
        time.sleep(0.02)
    pytest.fail(f"the order {name} did not end")


def finish(studio: Studio, name: str) -> dict[str, Any]:
    return list(watch(studio, name))[-1]


def children_of(parent: int) -> list[int]:
    """Living engines of a process, by asking the kernel."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            state, above = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            is_ours = b"penstock_engines.studio.child" in (entry / "cmdline").read_bytes()
            if int(above) == parent and state != "Z" and is_ours:
                found.append(int(entry.name))
    return found


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_child(parent: int, seconds: float = 60) -> int:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := children_of(parent):
            return found[0]
        time.sleep(0.01)
    pytest.fail("no engine was started")


def await_end(process: int, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while is_alive(process):
        assert time.monotonic() < until, f"process {process} goes on"
        time.sleep(0.01)


def test_an_order_tells_its_progress_and_gives_its_files(studio):
    order(studio, "job_1-1")
    told = [standing.get("progress") for standing in watch(studio, "job_1-1")]
    result = say(studio, "GET", "/orders/job_1-1")[1]
    assert result["status"] == "succeeded"
    assert told[:-1] == sorted(told[:-1])
    order(studio, "job_1-2", LONG)  # so long that nobody misses all of its progress
    assert any(0 < standing.get("progress", 0) < 1 for standing in watch(studio, "job_1-2"))
    say(studio, "POST", "/orders/job_1-2/cancel")
    assert [(made["kind"], made["role"]) for made in result["outputs"]] == [("video", "primary"), ("image", "preview")]
    for made in result["outputs"]:
        status, path = say(studio, "GET", f"/orders/job_1-1/outputs/{made['name']}")
        assert status == 200
        assert path.stat().st_size > 1000
    assert result["warnings"]


def test_the_same_order_again_is_the_same_order(studio):
    order(studio, "job_1-1")
    order(studio, "job_1-1")
    assert finish(studio, "job_1-1")["status"] == "succeeded"
    order(studio, "job_1-1")
    assert say(studio, "GET", "/orders/job_1-1")[1]["status"] == "succeeded"
    assert children_of(os.getpid()) == []


def test_inputs_are_handed_over_by_name_and_not_kept(studio, tmp_path):
    for name in ("file", "images.0", "images.12"):
        assert studio.answer("PUT", f"/orders/job_2-1/inputs/{name}", b"no picture at all")[0] == 200
    wish = {"face_limit": 500, "texture": True, "pbr": False, "style": "auto", "seed": 1}
    order(studio, "job_2-1", {"engine": "inflate", "wish": wish})
    result = finish(studio, "job_2-1")
    assert (result["status"], result["error"]["code"]) == ("failed", "unable")
    assert not (tmp_path / "orders" / "job_2-1" / "inputs").exists()


def test_cancel_ends_the_work_at_once(studio):
    order(studio, "job_3-1", LONG)
    child = await_child(os.getpid())
    assert say(studio, "POST", "/orders/job_3-1/cancel")[0] == 200
    await_end(child)
    assert say(studio, "GET", "/orders/job_3-1")[1] == {"status": "canceled"}


def test_a_crash_fails_that_order_and_nothing_else(studio):
    order(studio, "job_4-1", LONG)
    victim = await_child(os.getpid())
    order(studio, "job_5-1")
    os.kill(victim, signal.SIGSEGV)
    result = finish(studio, "job_4-1")
    assert (result["status"], result["error"]["code"]) == ("failed", "crashed")
    assert finish(studio, "job_5-1")["status"] == "succeeded"


def test_a_kill_reads_as_out_of_memory(studio):
    order(studio, "job_4-1", LONG)
    os.kill(await_child(os.getpid()), signal.SIGKILL)
    assert finish(studio, "job_4-1")["error"]["code"] == "out_of_memory"


@pytest.mark.parametrize(
    ("limits", "code"),
    [(Limits(seconds=0.3, memory_mb=3072), "too_slow"), (Limits(seconds=500, memory_mb=600), "out_of_memory")],
    ids=["time", "memory"],
)
def test_limits_hold(tmp_path, weights, limits, code):
    studio = Studio(tmp_path, weights, limits)
    order(studio, "job_6-1", LONG)
    result = finish(studio, "job_6-1")
    studio.close()
    assert result["status"] == "failed"
    assert result["error"]["code"] == code
    assert str(tmp_path) not in result["error"]["message"]


def test_what_a_close_interrupts_is_begun_again(tmp_path, weights):
    first = Studio(tmp_path, weights, AMPLE)
    order(first, "job_7-1")
    child = await_child(os.getpid())
    first.close()
    await_end(child)
    second = Studio(tmp_path, weights, AMPLE)
    assert finish(second, "job_7-1")["status"] == "succeeded"
    second.close()


PARENT = """
import sys, time, json
from pathlib import Path
from penstock_engines.studio.run import Limits
from penstock_engines.studio.studio import Studio
studio = Studio(Path(sys.argv[1]), Path(sys.argv[2]), Limits(500, 3072))
studio.answer("PUT", "/orders/job_8-1", sys.argv[3].encode())
time.sleep(600)
"""


def test_a_child_does_not_outlive_its_parent(tmp_path, weights):
    arguments = [sys.executable, "-c", PARENT, str(tmp_path), str(weights), json.dumps(LONG)]
    with subprocess.Popen(arguments) as parent:  # noqa: S603  our own program
        child = await_child(parent.pid)
        parent.kill()
    await_end(child)
    studio = Studio(tmp_path, weights, AMPLE)
    assert say(studio, "GET", "/orders/job_8-1")[1]["status"] == "running"  # begun again
    studio.close()


def test_orders_are_kept_apart_and_names_lead_nowhere_else(studio, tmp_path):
    for path in (
        "/orders/..",
        "/orders/../x",
        "/orders/%2e%2e",
        "/orders/none",
        "/orders/job_1-1/outputs/../order.json",
    ):
        assert say(studio, "GET", path)[0] == 404
    for name in ("..", "../order.json", "Mesh", "images.x", "images.0.1", ".", ""):
        assert say(studio, "PUT", f"/orders/job_1-1/inputs/{name}")[0] == 404
    assert say(studio, "PUT", "/orders/../escaped", VIDEO)[0] == 404
    assert not (tmp_path / "escaped").exists()
    order(studio, "job_9-1")
    assert say(studio, "GET", "/orders/job_9-1/outputs/order.json")[0] == 404
    say(studio, "POST", "/orders/job_9-1/cancel")


def test_an_order_of_an_unknown_engine_fails_by_itself(studio):
    order(studio, "job_10-1", {"engine": "telepathy", "wish": {}})
    assert finish(studio, "job_10-1")["error"]["code"] == "crashed"
