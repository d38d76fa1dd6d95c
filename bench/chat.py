"""CPU per chat request through the gateway, beside a bare nginx proxy in the same run.

python bench/chat.py [--requests 4000] [--rounds 3] [--connections 16] [--kinds plain burst paced] [--beside PROGRAM]

plain: not streamed; burst: 64 chunks as fast as they can be written; paced: 64 chunks, one every 4 ms.
The upstream and the load share one core, the proxy under test has the other. The gateway runs with everything on:
key check, usage record, metrics and access log (into a file). `penstock` is a key without limits, `budget` one with a
budget and limits on requests and tokens per minute. `--beside` measures another version's `penstock` in the same run.
Figures are CPU time of the proxy's whole process tree.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from processes import cpu_seconds

HERE = Path(__file__).parent
CHUNKS = 64
PACE = 0.004  # seconds from chunk to chunk: as slow as models are, no proxy gets several at once
KINDS = ("plain", "burst", "paced")
HEAD = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench"}
QUESTION = "Say something of medium length about penstocks and the turbines that they feed. " * 4


# -- the upstream: as fast as Python allows, so that what is measured is the proxy


def render(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
    body = json.dumps({**HEAD, "choices": choices, "usage": usage}, separators=(",", ":")).encode()
    event = b"data: " + body + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


USAGE = {"prompt_tokens": 80, "completion_tokens": CHUNKS, "total_tokens": 80 + CHUNKS}
CHOICE = {"index": 0, "logprobs": None, "finish_reason": None}
EVENTS = [
    render([{**CHOICE, "delta": {"role": "assistant", "content": "", "refusal": None}}]),
    *(render([{**CHOICE, "delta": {"content": f" token{number}"}}]) for number in range(CHUNKS)),
    render([{**CHOICE, "delta": {}, "finish_reason": "stop"}]),
    render([], USAGE),
    b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
]
MESSAGE = {"role": "assistant", "content": " token" * CHUNKS, "refusal": None}
PLAIN = json.dumps(
    {
        **HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": MESSAGE, "logprobs": None, "finish_reason": "stop"}],
        "usage": USAGE,
    }
).encode()
PLAIN_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(PLAIN), PLAIN)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            if b'"stream":true' not in body:
                writer.write(PLAIN_REPLY)
                continue
            writer.write(STREAM_HEAD)
            for event in EVENTS:
                writer.write(event)
                await asyncio.sleep(PACE if b'"paced"' in body else 0)
    writer.close()


async def serve_upstream(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


# -- the load


def make_request(path: str, key: str, kind: str) -> bytes:
    body = {"model": "bench", "messages": [{"role": "user", "content": QUESTION}], "temperature": 0.7, "user": kind}
    if kind != "plain":
        body |= {"stream": True}
    raw = json.dumps(body, separators=(",", ":")).encode()
    headers = (
        f"POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"
        "accept: application/json\r\nuser-agent: OpenAI/Python 3.49.0\r\nx-stainless-lang: python\r\n"
        f"x-stainless-retry-count: 0\r\ncontent-length: {len(raw)}\r\n\r\n"
    )
    return headers.encode() + raw


async def ask_many(port: int, request: bytes, count: Iterator[int], *, stream: bool) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in count:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head  # noqa: S101  a bench of failures measures nothing
        if stream:
            body = await reader.readuntil(b"\r\n0\r\n\r\n")
            assert body.count(b"data: ") >= CHUNKS + 3, body  # noqa: S101
        else:
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    writer.close()


async def load(port: int, request: bytes, requests: int, connections: int, *, stream: bool) -> float:
    count, begun = iter(range(requests)), time.perf_counter()
    await asyncio.gather(*(ask_many(port, request, count, stream=stream) for _ in range(connections)))
    return time.perf_counter() - begun


# -- the proxies under test


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_listening(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(2_000):
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    raise SystemExit(f"nothing listens on port {port}")


@contextlib.contextmanager
def started(command: list[str], port: int, core: int, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509  single-threaded here
        )
    try:
        wait_listening(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


NGINX = """
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
LIMITS = (
    *("--budget", "1000000", "--budget-period", "month"),
    *("--requests-per-minute", "10000000", "--tokens-per-minute", "1000000000"),
)
PENSTOCK = """
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


@contextlib.contextmanager
def nginx(folder: Path, upstream: int, core: int) -> Iterator[tuple[int, int, str]]:
    folder.mkdir()
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    with started(["nginx", "-c", str(config), "-p", str(folder)], port, core, folder / "nginx.log") as process:
        yield process.pid, port, "none"


@contextlib.contextmanager
def penstock(
    folder: Path, upstream: int, core: int, *, program: str = "", limits: Sequence[str] = ()
) -> Iterator[tuple[int, int, str]]:
    folder.mkdir()
    port, data = free_port(), folder / "data"
    config = folder / "penstock.toml"
    config.write_text(PENSTOCK.format(upstream=upstream))
    program = program or str(Path(sys.executable).with_name("penstock"))
    places = ["--data", str(data), "--config", str(config)]
    made = subprocess.run([program, "key", "create", "--json", *limits, *places], check=True, capture_output=True)
    key = json.loads(made.stdout)["key"]
    command = [program, "serve", "--port", str(port), *places]
    with started(command, port, core, folder / "penstock.log") as process:
        yield process.pid, port, key


# -- the table


def measure(pid: int, port: int, key: str, options: argparse.Namespace, kind: str) -> dict[str, float]:
    stream = kind != "plain"
    requests = options.requests // 8 if stream else options.requests
    request = make_request("/v1/chat/completions", key, kind)
    asyncio.run(load(port, request, max(50, requests // 10), options.connections, stream=stream))
    before = cpu_seconds(pid)
    seconds = asyncio.run(load(port, request, requests, options.connections, stream=stream))
    return {"cpu_us": (cpu_seconds(pid) - before) / requests * 1e6, "per_second": requests / seconds}


def run(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    upstream = free_port()
    own = [sys.executable, str(HERE / "chat.py"), "--serve-upstream", str(upstream)]
    proxies: dict[str, Any] = {"penstock": penstock, "budget": partial(penstock, limits=LIMITS)}
    if options.beside:
        proxies["beside"] = partial(penstock, program=options.beside)
    if shutil.which("nginx"):
        proxies["nginx"] = nginx
    with contextlib.ExitStack() as stack:
        stack.enter_context(started(own, upstream, cores[-1], folder / "upstream.log"))
        ready = {name: stack.enter_context(make(folder / name, upstream, cores[0])) for name, make in proxies.items()}
        for _ in range(options.rounds):
            for kind in options.kinds:
                for name, (pid, port, key) in ready.items():
                    figures = measure(pid, port, key, options, kind)
                    found.setdefault(kind, {}).setdefault(name, []).append(figures)
    return {
        kind: {
            name: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
            for name, runs in by_name.items()
        }
        for kind, by_name in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4000, help="plain requests per round; streams: an eighth")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--beside", help="another version's `penstock`, to be measured in the same run")
    parser.add_argument("--serve-upstream", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_upstream:
        asyncio.run(serve_upstream(options.serve_upstream))
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = run(options, Path(folder))
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "chat.json").write_text(json.dumps(figures, indent=2))
    for kind, by_name in figures.items():
        base = by_name.get("nginx", {}).get("cpu_us")
        for name, row in by_name.items():
            ratio = f"{row['cpu_us'] / base:6.2f} x nginx" if base else "(no nginx here)"
            print(f"{kind:9} {name:9} {row['cpu_us']:8.0f} µs CPU per request {row['per_second']:8.0f}/s  {ratio}")


if __name__ == "__main__":
    main()
