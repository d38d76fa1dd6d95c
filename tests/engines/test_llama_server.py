"""The built-in chat server's process: it starts once, comes back, and never outlives anyone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest
from plain import NO_TLS
from small_gguf import WHOLE, write_small

import penstock
from penstock_engines.llama.llama_server import LlamaOptions, LlamaServer, ServerFailed

MakeServer = Callable[..., LlamaServer]


@pytest.fixture(scope="module")
def small(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first layers of the real weights."""
    path = tmp_path_factory.mktemp("small") / WHOLE
    write_small(weights / WHOLE, path)
    return path


@pytest.fixture
def make(small: Path) -> Iterator[MakeServer]:
    """Small servers; all are closed in the end."""
    made: list[LlamaServer] = []

    def begin(**options: Any) -> LlamaServer:
        options = {"gguf": small, "context": 256, "slots": 1, "threads": 1} | options
        made.append(LlamaServer(LlamaOptions(**options)))
        return made[-1]

    yield begin
    for server in made:
        server.close()


def answers(server: LlamaServer) -> bool:
    """Whether it completes a chat, right now and where it says it is."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    headers = {"authorization": f"Bearer {server.key}"}
    url = f"{server.address()}/chat/completions"
    return httpx.post(url, json=body, headers=headers, trust_env=False, verify=NO_TLS, timeout=300).status_code == 200


def children(parent: int | None = None) -> set[int]:
    """The chat servers which that process, or this one, has started and which are not gone."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            parent_id = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it ended meanwhile
            continue
        if b"penstock_engines.llama.llama_child" in line and parent_id == (parent or os.getpid()):
            found.add(int(folder.name))
    return found


def is_there(process_id: int) -> bool:
    """Whether such a process exists, be it as a zombie."""
    return Path(f"/proc/{process_id}").exists()


def wait_for(happened: Callable[[], object], seconds: float = 300) -> None:
    """Return as soon as it happened."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def only_child(server: LlamaServer) -> int:
    server.start()
    (child,) = children()
    return child


def test_nothing_runs_before_the_start_nor_after_the_close(make: MakeServer):
    server = make()
    assert server.address() is None
    child = only_child(server)
    assert server.address() == server.start()
    server.close()
    assert server.address() is None
    assert not is_there(child)
    server.close()
    with pytest.raises(ServerFailed, match="closed"):
        server.start()


def test_all_who_come_at_once_share_one_start(make: MakeServer):
    server, together = make(), Barrier(6)

    def come() -> str:
        together.wait()
        return server.start()

    with ThreadPoolExecutor(6) as threads:
        addresses = {future.result() for future in [threads.submit(come) for _ in range(6)]}
    assert len(addresses) == 1
    assert len(children()) == 1


def test_one_that_was_killed_is_replaced(make: MakeServer):
    server = make()
    child = only_child(server)
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: server.address() is None)
    wait_for(lambda: not is_there(child))
    assert only_child(server) != child
    assert answers(server)


def test_a_signal_to_everyone_is_left_to_the_gateway(make: MakeServer):
    server = make()
    child = only_child(server)
    assert os.getpgid(child) != os.getpgid(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(child, number)
    assert answers(server)


def test_the_idle_one_is_unloaded_and_comes_back(make: MakeServer):
    server = make(unload_seconds=0.2)
    server.enter()
    child = only_child(server)
    server.leave()
    wait_for(lambda: server.address() is None)
    wait_for(lambda: not is_there(child))
    server.enter()
    assert only_child(server) != child
    server.leave()


def test_one_in_use_is_not_unloaded(make: MakeServer):
    busy, idle = make(unload_seconds=0.3), make(unload_seconds=0.3)
    busy.enter()
    busy.enter()
    busy.start()
    busy.leave()
    idle.start()
    wait_for(lambda: idle.address() is None)  # by then the other one's time would be over as well
    assert answers(busy)
    busy.leave()
    wait_for(lambda: busy.address() is None)


PARENT = """
import sys
from pathlib import Path
from penstock_engines.llama.llama_server import LlamaOptions, LlamaServer, ServerFailed
server = LlamaServer(LlamaOptions(gguf=Path(sys.argv[1]), context=256, slots=1, threads=1))
try:
    print(server.start(), flush=True)
except ServerFailed as failure:
    sys.exit(str(failure))
sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [subprocess.Popen[str].kill, lambda parent: parent.stdin.close()])
def test_it_does_not_outlive_a_gateway(weights: Path, ending: Callable[[subprocess.Popen[str]], None]):
    words = [sys.executable, "-c", PARENT, str(weights / "smollm2-135m.gguf")]
    with subprocess.Popen(  # noqa: S603  our own interpreter
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith("http://127.0.0.1:")
        (child,) = children(parent.pid)
        ending(parent)
        wait_for(partial(_is_over, child))


def _is_over(process_id: int) -> bool:
    """Gone, or only its entry is left, for whoever inherited it."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_the_key_is_shown_to_nobody(make: MakeServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "another-secret")
    server = make()
    child = only_child(server)
    seen = b"".join(Path(f"/proc/{child}/{name}").read_bytes() for name in ("cmdline", "environ"))
    assert b"penstock_engines.llama.llama_child" in seen
    assert b"OMP_WAIT_POLICY=passive" in seen
    assert server.key.encode() not in seen
    assert b"another-secret" not in seen
    assert server.key != make().key


def test_missing_weights_are_named(make: MakeServer, tmp_path: Path):
    with pytest.raises(ServerFailed, match=r"`gone\.gguf` are missing; run `penstock models pull`"):
        make(gguf=tmp_path / "gone.gguf").start()


@pytest.mark.parametrize("kept", [0, 100, 100_000, 20_000_000])
def test_what_is_no_whole_gguf_fails_soon_and_hurts_nobody(make: MakeServer, weights: Path, tmp_path: Path, kept: int):
    damaged = tmp_path / "damaged.gguf"
    with (weights / "smollm2-135m.gguf").open("rb") as file:
        damaged.write_bytes(file.read(kept))
    server = make(gguf=damaged, start_seconds=100)
    with pytest.raises(ServerFailed, match=r"`damaged\.gguf`") as failure:
        server.start()
    assert str(tmp_path) not in str(failure.value)
    assert "signal" not in str(failure.value)
    assert server.address() is None
    assert not children()


def test_too_little_memory_is_told_and_is_no_crash_of_ours(make: MakeServer, weights: Path):
    with pytest.raises(ServerFailed, match="memory"):
        make(gguf=weights / WHOLE, context=8192, slots=4, memory_mb=300).start()


def test_a_start_that_takes_too_long_is_given_up(make: MakeServer):
    with pytest.raises(ServerFailed, match=r"not loaded within 0\.01 seconds"):
        make(start_seconds=0.01).start()
    assert not children()


def test_closing_ends_a_start_under_way(make: MakeServer, weights: Path):
    server = make(gguf=weights / WHOLE, context=8192, slots=4)
    with ThreadPoolExecutor(1) as threads:
        start = threads.submit(server.start)
        wait_for(children)
        server.close()
        with pytest.raises(ServerFailed, match="closed"):
            start.result()
    assert not children()


def test_without_the_package_it_says_what_to_install(weights: Path):
    source = str(Path(penstock.__file__).parents[1])
    done = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-S", "-c", PARENT, str(weights / "smollm2-135m.gguf")],
        env={"PYTHONPATH": source},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install 'penstock[local]'" in done.stderr


# -- what suits the model


@pytest.mark.parametrize(
    ("name", "chosen", "penalty"),
    [("smollm2-135m", None, 1.1), ("qwen2.5-coder-1.5b", None, 1.0), ("qwen2.5-coder-1.5b", 1.3, 1.3)],
)
def test_the_repeat_penalty_suits_the_model_unless_it_is_chosen(make, small, tmp_path, name, chosen, penalty):
    gguf = tmp_path / f"{name}.gguf"
    gguf.symlink_to(small)  # its settings go by the name
    server = make(gguf=gguf, repeat_penalty=chosen)
    root = server.start().removesuffix("/v1")
    told = httpx.get(f"{root}/props", headers={"authorization": f"Bearer {server.key}"}, verify=NO_TLS).json()
    assert told["default_generation_settings"]["params"]["repeat_penalty"] == pytest.approx(penalty)


def test_without_its_weights_a_model_names_the_command_that_brings_them(make: MakeServer, tmp_path: Path):
    server = make(gguf=tmp_path / "qwen2.5-coder-1.5b.gguf")
    with pytest.raises(ServerFailed, match=r"run `penstock models pull qwen2\.5-coder-1\.5b`"):
        server.start()
