"""The proxies that bench/chat/chat.py measures, each installed at its first use into bench/.cache, in a fixed version.

A peer is a context manager: started on loopback and on one core, it yields the door at which it is asked. One that
cannot be installed or started raises `Missing` with the reason in a line.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache"
LITELLM, TENSORZERO, PORTKEY = "1.106.2", "2026.6.0", "1.15.2"
PORTKEY_PARTS = ("@hono/node-server@1.13.5", "@hono/node-ws@1.2.0", "hono@4.9.7")  # its own lock's: newer break streams
KEY = "sk-bench-caller"
START_SECONDS = 120
Found = TypeVar("Found")


class Missing(Exception):
    """A peer that is not measured, and why."""


@dataclass(frozen=True)
class Door:
    """Where and how a started peer is asked."""

    port: int
    pid: int | None = None
    path: str = "/v1/chat/completions"
    key: str = KEY
    model: str = "bench"
    headers: tuple[str, ...] = ()
    begun: float = field(default_factory=time.perf_counter)


@dataclass(frozen=True)
class Peer:
    """A proxy that can be measured."""

    label: str
    does: str  # with each request, beside passing it on
    start: Callable[[Path, int, int], AbstractContextManager[Door]]
    version: Callable[[], str]
    install: Callable[[], None] = lambda: None


# -- processes


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "it said nothing"


def run(command: Sequence[str | Path], **more: str) -> str:
    """What a command prints."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | more)
    except subprocess.CalledProcessError as error:
        raise Missing(f"{Path(command[0]).name}: {last_line(error.stderr or error.stdout)}") from error
    except FileNotFoundError as error:
        raise Missing(f"{Path(command[0]).name} is not installed on this machine") from error
    return done.stdout or done.stderr


def wait_for(look: Callable[[], Found | None], process: "subprocess.Popen[bytes]", log: Path) -> Found:
    """What `look` finds at last, if the process lives that long."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Missing(f"it ended: {last_line(log.read_text(errors='replace'))}")
        found = look()
        if found is not None:
            return found
        time.sleep(0.005)
    raise Missing(f"it did not start within {START_SECONDS} s")


def listens(port: int) -> bool | None:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return None


@contextlib.contextmanager
def started(command: Sequence[str | Path], core: int, log: Path, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process on one core, without the settings that stand in the caller's environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(log.parent), "LANG": "C.UTF-8", **more}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509  single-threaded here
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def serving(command: Sequence[str | Path], port: int, core: int, log: Path, **more: str) -> Iterator[Door]:
    """The same, once it listens on its port."""
    begun = time.perf_counter()
    with started(command, core, log, **more) as process:
        wait_for(partial(listens, port), process, log)
        yield Door(port, process.pid, begun=begun)


# -- installation


def installed(name: str, version: str, install: Callable[[Path], None]) -> None:
    """Once for each version; what a broken installation left is thrown away."""
    folder = CACHE / name
    mark = folder / ".installed"
    if mark.exists() and mark.read_text() == version:
        return
    print(f"installing {name} {version} into {folder.relative_to(HERE.parents[1])}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    install(folder)
    mark.write_text(version)


def install_python(*wanted: str) -> Callable[[Path], None]:
    """A virtual environment of the peer's own, made by uv where it is at hand."""

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "venv", "--clear", folder])
        python, uv = folder / "bin" / "python", Path(sys.executable).with_name("uv")
        if uv.exists():
            run([uv, "pip", "install", "--quiet", "--python", python, *wanted])
        else:
            run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])

    return install


def install_node(*wanted: str) -> Callable[[Path], None]:
    def install(folder: Path) -> None:
        quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        run(["npm", "install", *quiet, "--prefix", folder, *wanted])

    return install


# -- Penstock

LIMITS = (
    *("--budget", "1000000", "--budget-period", "month"),
    *("--requests-per-minute", "10000000", "--tokens-per-minute", "1000000000"),
)
PENSTOCK_CONFIG = """
[vendors.up]
type = "openai_compatible"
api_key = "sk-bench"
base_url = "http://127.0.0.1:{upstream}/v1"
[[models]]
id = "bench"
kind = "chat"
vendor = "up"
price = {{input_per_million = "0.15", output_per_million = "0.60"}}
"""
PENSTOCK_PROGRAM = str(Path(sys.executable).with_name("penstock"))


@contextlib.contextmanager
def penstock_door(
    folder: Path, upstream: int, core: int, *, program: str, limits: Sequence[str], config: str = PENSTOCK_CONFIG
) -> Iterator[Door]:
    folder.mkdir(exist_ok=True)
    port, settings = free_port(), folder / "penstock.toml"
    settings.write_text(config.format(upstream=upstream))
    places = ["--data", str(folder / "data"), "--config", str(settings)]
    key = json.loads(run([program, "key", "create", "--json", *limits, *places]))["key"]
    command = [program, "serve", "--port", str(port), *places]
    with serving(command, port, core, folder / "penstock.log") as door:
        yield Door(port, door.pid, key=key, begun=door.begun)


@contextlib.contextmanager
def penstock(folder: Path, upstream: int, core: int) -> Iterator[tuple[int, int, str]]:
    """Its process, port and a key without limits."""
    with penstock_door(folder, upstream, core, program=PENSTOCK_PROGRAM, limits=()) as door:
        assert door.pid  # noqa: S101  for the reader of types
        yield door.pid, door.port, door.key


def make_penstock(label: str, does: str, *, program: str = PENSTOCK_PROGRAM, limits: Sequence[str] = LIMITS) -> Peer:
    start = partial(penstock_door, program=program, limits=limits)
    return Peer(label, does, start, lambda: last_line(run([program, "--version"])).removeprefix("penstock "))


# -- the yardsticks: no proxy at all, nginx, and two Python libraries


@contextlib.contextmanager
def direct(folder: Path, upstream: int, core: int) -> Iterator[Door]:  # noqa: ARG001
    yield Door(upstream)


NGINX_CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx-error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 1000000;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""


def find_nginx() -> str:
    found = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    if not found:
        raise Missing("nginx is not installed on this machine")
    return found


@contextlib.contextmanager
def nginx(folder: Path, upstream: int, core: int) -> Iterator[Door]:
    folder.mkdir()
    port, config = free_port(), folder / "nginx.conf"
    config.write_text(NGINX_CONFIG.format(folder=folder, port=port, upstream=upstream))
    command = [find_nginx(), "-e", folder / "start.log", "-c", config, "-p", folder]
    with serving(command, port, core, folder / "nginx.log") as door:
        yield door


@contextlib.contextmanager
def bare(folder: Path, upstream: int, core: int) -> Iterator[Door]:
    folder.mkdir()
    port = free_port()
    command = [sys.executable, HERE / "peer_bare.py", str(port), str(upstream)]
    with serving(command, port, core, folder / "bare.log") as door:
        yield door


def bare_version() -> str:
    asked = (
        "from importlib.metadata import version; print('uvicorn', version('uvicorn'), '+ aiohttp', version('aiohttp'))"
    )
    return run([sys.executable, "-c", asked]).strip()


# -- the gateways

LITELLM_CONFIG = """
model_list:
  - model_name: bench
    litellm_params:
      model: openai/bench
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: sk-bench
general_settings:
  master_key: {key}
litellm_settings:
  telemetry: false
  set_verbose: false
"""


@contextlib.contextmanager
def litellm(folder: Path, upstream: int, core: int, *, config: str = LITELLM_CONFIG) -> Iterator[Door]:
    """One worker, a key to check, no database; it fetches no prices from the net."""
    folder.mkdir()
    port, settings = free_port(), folder / "config.yaml"
    settings.write_text(config.format(upstream=upstream, key=KEY))
    command = [
        CACHE / "litellm" / "bin" / "litellm",
        *("--config", settings, "--host", "127.0.0.1", "--port", str(port)),
        *("--num_workers", "1", "--telemetry", "False"),
    ]
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}
    with serving(command, port, core, folder / "litellm.log", **quiet) as door:
        yield door


TENSORZERO_CONFIG = """
[gateway]
observability.enabled = false
disable_pseudonymous_usage_analytics = true
[models.bench]
routing = ["up"]
[models.bench.providers.up]
type = "openai"
model_name = "bench"
api_base = "http://127.0.0.1:{upstream}/v1/"
api_key_location = "env::BENCH_UPSTREAM_KEY"
"""


@contextlib.contextmanager
def tensorzero(folder: Path, upstream: int, core: int, *, config: str = TENSORZERO_CONFIG) -> Iterator[Door]:
    """Its HTTP gateway, which its Python package starts in a process and on a port of its own choice."""
    folder.mkdir()
    settings, log, begun = folder / "tensorzero.toml", folder / "tensorzero.log", time.perf_counter()
    settings.write_text(config.format(upstream=upstream))
    command = [CACHE / "tensorzero" / "bin" / "python", HERE / "peer_tensorzero.py", settings]
    with started(command, core, log, BENCH_UPSTREAM_KEY="sk-bench", RUST_LOG="error") as process:
        told = wait_for(lambda: re.search(r"^listening on (\d+) (\S+)$", log.read_text(), re.MULTILINE), process, log)
        path = told[2] + "/chat/completions"
        yield Door(int(told[1]), process.pid, path, model="tensorzero::model_name::bench", begun=begun)


PORTKEY_LOOPBACK = """
const { Server } = require("node:net");
const { listen } = Server.prototype;
Server.prototype.listen = function (...given) {
  const wish = typeof given[0] === "object" ? given[0] : { port: given[0] };
  return listen.call(this, { ...wish, host: "127.0.0.1" }, given.find((one) => typeof one === "function"));
};
"""


def keep_to_loopback(port: int) -> None:
    """Refuse a peer that others on the network could reach."""
    tables = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    listening = [row[1] for row in tables if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    if listening != [f"0100007F:{port:04X}"]:
        raise Missing("it listens on more than loopback")


@contextlib.contextmanager
def portkey(folder: Path, upstream: int, core: int) -> Iterator[Door]:
    """It would listen on every interface; what is loaded before it keeps it on loopback."""
    folder.mkdir()
    loopback = folder / "loopback.cjs"
    loopback.write_text(PORTKEY_LOOPBACK)
    port, package = free_port(), CACHE / "portkey" / "node_modules" / "@portkey-ai" / "gateway"
    command = [
        *("node", "--require", loopback),
        *(package / "build" / "start-server.js", f"--port={port}", "--headless"),
    ]
    headers = ("x-portkey-provider: openai", f"x-portkey-custom-host: http://127.0.0.1:{upstream}/v1")
    with serving(command, port, core, folder / "portkey.log", NODE_ENV="production") as door:
        keep_to_loopback(port)
        yield Door(port, door.pid, headers=headers, begun=door.begun)


# -- all of them

PEERS = {
    "penstock": make_penstock("penstock", "checks key, limits and budget, records usage"),
    "penstock-no-limits": make_penstock("penstock, no limits", "checks key, records usage", limits=()),
    "nginx": Peer("nginx", "nothing", nginx, lambda: last_line(run([find_nginx(), "-v"])).rpartition("/")[2]),
    "bare": Peer("bare proxy", "nothing", bare, bare_version),
    "tensorzero": Peer(
        "TensorZero",
        "no key, nothing recorded",
        tensorzero,
        lambda: TENSORZERO,
        lambda: installed("tensorzero", TENSORZERO, install_python(f"tensorzero=={TENSORZERO}", "openai")),
    ),
    "portkey": Peer(
        "Portkey",
        "no key, nothing recorded",
        portkey,
        lambda: PORTKEY,
        lambda: installed("portkey", PORTKEY, install_node(f"@portkey-ai/gateway@{PORTKEY}", *PORTKEY_PARTS)),
    ),
    "litellm": Peer(
        "LiteLLM",
        "checks key, nothing recorded",
        litellm,
        lambda: LITELLM,
        lambda: installed("litellm", LITELLM, install_python(f"litellm[proxy]=={LITELLM}")),
    ),
}
