"""Count the files of src/penstock whose code runs for one generation, one streamed chat request and one budget check.

python tools/docs/walks.py [--tree ../older-checkout] [--list]

A gateway runs in a process of its own, with a profile function that notes every function called while a walk is
recorded. Each walk is taken once before, so that imports, caches and leases are not part of it. Child processes are not
counted. A room is a package, or a file beside the packages. `--tree` counts another checkout, by the interpreter
of its own `.venv`.
"""

import argparse
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
IDLE_SECONDS = 8.0
SETTLE_SECONDS = 2.0
"""Usage is written in batches after the answer."""
START_SECONDS = 60.0
VIDEO = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "a boat", "script": {"latency": 0.2}}}]}
MESSAGES = [{"role": "user", "content": "Say something."}]
CHAT = {"model": "double", "messages": MESSAGES, "stream": True, "max_tokens": 50}
SETTINGS = """
[vendors.sim]
type = "sim"
[vendors.double]
type = "openai_compatible"
api_key = "sk-double"
base_url = "http://127.0.0.1:{port}/v1"
[[models]]
id = "sim_text_to_video"
vendor = "sim"
[[models]]
id = "double"
kind = "chat"
vendor = "double"
price = {{input_per_million = "1000", output_per_million = "1000"}}
"""
DATA_FILES = frozenset(
    (
        *("accounts", "budgets", "chat", "endpoints", "errors", "estimates", "events", "files", "identifiers"),
        *("job_errors", "jobs", "keys", "lookup", "money", "price_book", "prices", "usage", "webhooks"),
    )
)
"""Modules of pure data in checkouts that have no package `domain`, where they stand at the top."""
WATCH_FILES = frozenset(("logs", "metrics", "traces", "telemetry"))
"""Logs, metrics and traces in such checkouts."""


# -- inside the gateway's process


def record_inside(control: int, arguments: list[str]) -> None:
    """Run the command line under a profile function that `start` and `stop` on the control socket switch."""
    seen: set[CodeType] = set()
    recording = threading.Event()
    is_recording = recording.is_set

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and is_recording():
            seen.add(frame.f_code)

    def obey() -> None:
        with socket.socket(fileno=control) as line, line.makefile("rw") as lines:
            for command in lines:
                if command.strip() == "start":
                    seen.clear()
                    recording.set()
                    answer: list[tuple[str, str]] = []
                else:
                    recording.clear()
                    answer = [(code.co_filename, code.co_qualname) for code in list(seen) if code.co_flags & 1]
                lines.write(json.dumps(answer) + "\n")
                lines.flush()

    threading.Thread(target=obey, daemon=True).start()
    threading.setprofile(note)
    sys.setprofile(note)
    from penstock.cli.main import app  # noqa: PLC0415 - of the checkout whose interpreter runs this

    app(arguments)


# -- a chat vendor


class ChatVendor(BaseHTTPRequestHandler):
    """Answer every request with a short stream in OpenAI's dialect."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Send a few chunks, the usage and the end."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "double"}
        for word in ("One", " two", " three"):
            self._send(head | {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]})
        self._send(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        self._send(head | {"choices": [], "usage": usage})
        self._write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, chunk: dict[str, Any]) -> None:
        self._write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


# -- the gateway and its callers


class Code(NamedTuple):
    """A function that ran: its file below src/penstock, and its name."""

    file: str
    name: str


class Gateway:
    """A running gateway of some checkout, and the line by which its recording is switched."""

    def __init__(self, tree: Path, port: int, line: socket.socket) -> None:
        self.source = f"{tree / 'src' / 'penstock'}/"
        self.port = port
        self._lines = line.makefile("rw")

    def record(self, walk: Callable[[], Any]) -> set[Code]:
        """Return the functions of src/penstock that run from the walk's begin until its writes are done."""
        self._order("start")
        walk()
        time.sleep(SETTLE_SECONDS)
        ran = self._order("stop")
        return {Code(file.removeprefix(self.source), name) for file, name in ran if file.startswith(self.source)}

    def _order(self, command: str) -> list[tuple[str, str]]:
        self._lines.write(f"{command}\n")
        self._lines.flush()
        return json.loads(self._lines.readline())

    def call(self, method: str, path: str, key: str = "", body: Any = None) -> tuple[int, bytes]:
        """Send one request on a connection of its own and read the whole answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        with contextlib.closing(connection):
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def serving(tree: Path, places: list[str]) -> Iterator[Gateway]:
    """Start a gateway of the checkout and wait until it is ready."""
    port = free_port()
    ours, theirs = socket.socketpair()
    inside = [tree / ".venv/bin/python", __file__, "--inside", str(theirs.fileno())]
    command = [*inside, "--", "serve", "--port", str(port)]
    process = subprocess.Popen(  # noqa: S603 - this very file
        [*command, *places], pass_fds=[theirs.fileno()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    gateway = Gateway(tree, port, ours)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                if gateway.call("GET", "/readyz")[0] == 200:
                    break
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"The gateway of {tree} does not start.")
            time.sleep(0.1)
        yield gateway
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def create_key(tree: Path, places: list[str], *options: str) -> str:
    command = [tree / ".venv/bin/penstock", "key", "create", "--json", *options, *places]
    made = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - the checkout's own command
    return json.loads(made.stdout)["key"]


# -- the walks


def generate(gateway: Gateway, key: str) -> None:
    """Order a video, wait for it and download it."""
    status, answer = gateway.call("POST", "/model/v1/generation", key, VIDEO)
    expect(status == 202, answer)
    status, answer = gateway.call("GET", f"/api/v1/jobs/{json.loads(answer)['id']}?wait=60", key)
    job = json.loads(answer)
    expect(job["status"] == "succeeded", answer)
    status, answer = gateway.call("GET", "/" + job["outputs"][0]["url"].split("/", 3)[3])
    expect(status == 200, answer)


def chat(gateway: Gateway, key: str, status: int = 200) -> None:
    """Send a streamed chat request and read its answer."""
    found, answer = gateway.call("POST", "/llm/chat/completions", key, CHAT)
    expect(found == status and (status != 200 or b"[DONE]" in answer), answer)


def expect(good: bool, answer: bytes) -> None:  # noqa: FBT001 - a condition
    if not good:
        sys.exit(f"A walk went wrong: {answer[:500]!r}")


def take_walks(tree: Path) -> dict[str, tuple[set[Code], set[Code]]]:
    """Return for each walk the functions that ran, and those among them that run without it."""
    with tempfile.TemporaryDirectory() as folder, ThreadingHTTPServer(("127.0.0.1", 0), ChatVendor) as vendor:
        threading.Thread(target=vendor.serve_forever, daemon=True).start()
        config = Path(folder) / "penstock.toml"
        config.write_text(SETTINGS.format(port=vendor.server_port))
        places = ["--data", str(Path(folder) / "data"), "--config", str(config)]
        plain = create_key(tree, places)
        fresh = [create_key(tree, places, "--budget", "1", "--budget-period", "day") for _ in range(2)]
        poor = [create_key(tree, places, "--budget", "0.0001", "--budget-period", "day") for _ in range(2)]
        with serving(tree, places) as gateway:
            generate(gateway, plain)
            for key, status in ((plain, 200), (plain, 200), (fresh[0], 200), (poor[0], 402)):
                chat(gateway, key, status)
            time.sleep(SETTLE_SECONDS)
            idle = gateway.record(lambda: time.sleep(IDLE_SECONDS))
            generation = gateway.record(lambda: generate(gateway, plain))
            streamed = gateway.record(lambda: chat(gateway, plain))
            gateway.record(lambda: chat(gateway, plain))
            allowed = gateway.record(lambda: chat(gateway, fresh[1]))
            refused = gateway.record(lambda: chat(gateway, poor[1], 402))
        vendor.shutdown()
    return {
        "generation, POST to asset": (generation, idle),
        "streamed chat request": (streamed, idle),
        "chat refused by a budget": (refused, idle),
        "added to chat by a budget": (allowed | refused, idle | streamed),
    }


# -- the table


def sort_files(ran: set[Code], without: set[Code]) -> dict[str, list[str]]:
    """Sort the files by kind; a file all of whose functions run without the walk too is not the walk's own."""
    own = {code.file for code in ran - without}
    kinds: dict[str, list[str]] = {"own": [], "data": [], "logs": [], "shared": []}
    for file in sorted({code.file for code in ran}):
        first, _, rest = file.partition("/")
        stem = first.removesuffix(".py")
        if file not in own:
            kinds["shared"].append(file)
        elif first in ("domain", "errors.py") or (not rest and stem in DATA_FILES):
            kinds["data"].append(file)
        elif first == "observability" or (not rest and stem in WATCH_FILES):
            kinds["logs"].append(file)
        else:
            kinds["own"].append(file)
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to count, with a .venv")
    parser.add_argument("--list", action="store_true", help="name the files as well")
    options = parser.parse_args()
    print("| walk | rooms | files of its own | domain and errors | logs, metrics, traces | also run without it |")
    print("|---|---|---|---|---|---|")
    listed: list[str] = []
    for name, (ran, without) in take_walks(options.tree.resolve()).items():
        kinds = sort_files(ran, without)
        rooms = {file.partition("/")[0] for kind in ("own", "data", "logs") for file in kinds[kind]}
        print(f"| {name} | {len(rooms)} | {' | '.join(str(len(files)) for files in kinds.values())} |")
        listed += [f"\n{name}", *(f"  {kind}: {' '.join(files)}" for kind, files in kinds.items())]
    if options.list:
        print("\n".join(listed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        record_inside(int(sys.argv[2]), sys.argv[4:])
    else:
        main()
