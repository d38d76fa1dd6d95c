"""Measure what an accepted job costs in the protocols of other services, beside the native endpoint in the same run.

python -m bench.jobs.facades [--rounds 40] [--portion 80] [--dialects native openai-json openai-form replicate fal mcp]

One server on SQLite accepts equal jobs, which stay in its queue. The dialects are asked in turn, in small portions,
over a few connections. Cost is the CPU time of the server's process. Each portion is compared with the portion of
`native` of its round, and of these ratios the median counts, with the quarter and the three-quarter mark beside it.
"""

import argparse
import asyncio
import itertools
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvloop

from bench.harness import tables
from bench.jobs.jobs import FileFleet, OneServer
from bench.machines.fleet import pid_of

MODEL: Final = "sim_text_to_video"
PROMPT: Final = "A paper boat drifts down a rainy street, take ########"
"""The marks are replaced by a number, since some dialects take an equal request for a repetition."""
SCRIPT: Final = {"latency": 3600}
CONNECTIONS: Final = 8
NUMBERS: Final = itertools.count()
SETTINGS: Final = """
[server]
log_format = "json"
log_level = "warning"
[jobs]
max_waiting = 1000000
max_waiting_total = 1000000
[vendors.sim]
type = "sim"
max_concurrent = 1
[[models]]
id = "sim_text_to_video"
vendor = "sim"
price = {per_job = "0.002"}
"""
FORM: Final = "multipart/form-data; boundary=bench"


def make_native() -> tuple[str, str, bytes]:
    """Return path, content type and body."""
    params = {"prompt": PROMPT, "durationSeconds": 4, "aspectRatio": "16:9", "resolution": "720p", "script": SCRIPT}
    return (
        "/model/v1/generation",
        "application/json",
        json.dumps({"model": MODEL, "input": [{"params": params}]}).encode(),
    )


def make_openai_json() -> tuple[str, str, bytes]:
    """Return path, content type and body."""
    body = {"model": MODEL, "prompt": PROMPT, "seconds": "4", "size": "1280x720", "script": SCRIPT}
    return "/v1/videos", "application/json", json.dumps(body).encode()


def make_openai_form() -> tuple[str, str, bytes]:
    """Return path, content type and body, as OpenAI's clients send it."""
    fields = {"model": MODEL, "prompt": PROMPT, "seconds": "4", "size": "1280x720", "script[latency]": "3600"}
    parts = [
        f'--bench\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()
    ]
    return "/v1/videos", FORM, "".join([*parts, "--bench--\r\n"]).encode()


def make_replicate() -> tuple[str, str, bytes]:
    """Return path, content type and body."""
    given = {"prompt": PROMPT, "duration": 4, "aspect_ratio": "16:9", "resolution": "720p", "script": SCRIPT}
    path = f"/replicate/v1/models/penstock/{MODEL}/predictions"
    return path, "application/json", json.dumps({"input": given}).encode()


def make_fal() -> tuple[str, str, bytes]:
    """Return path, content type and body."""
    given = {"prompt": PROMPT, "duration": 4, "aspect_ratio": "16:9", "resolution": "720p", "script": SCRIPT}
    return f"/fal/queue/penstock/{MODEL}", "application/json", json.dumps(given).encode()


def make_mcp() -> tuple[str, str, bytes]:
    """Return path, content type and body."""
    params = {"prompt": PROMPT, "duration": 4, "aspect_ratio": "16:9", "resolution": "720p", "script": SCRIPT}
    call = {"name": "generate_video", "arguments": {"model": MODEL, "params": params, "wait_seconds": 0}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return "/mcp", "application/json", json.dumps(message).encode()


DIALECTS: Final[Mapping[str, Callable[[], tuple[str, str, bytes]]]] = {
    "native": make_native,
    "openai-json": make_openai_json,
    "openai-form": make_openai_form,
    "replicate": make_replicate,
    "fal": make_fal,
    "mcp": make_mcp,
}


def make_request(dialect: str, key: str) -> bytes:
    """Return a request as it goes over the wire."""
    path, content_type, body = DIALECTS[dialect]()
    head = (
        f"POST {path} HTTP/1.1",
        "host: bench",
        f"authorization: Bearer {key}",
        *("accept: application/json, text/event-stream", f"content-type: {content_type}", "user-agent: bench"),
        f"content-length: {len(body)}",
    )
    return "\r\n".join((*head, "", "")).encode() + body


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process's threads, which are counted in nanoseconds, not in ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def send(port: int, request: bytes, number: int) -> None:
    """Send a request so many times, each after the answer to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(number):
        writer.write(request.replace(b"########", b"%08d" % next(NUMBERS)))
        head = await reader.readuntil(b"\r\n\r\n")
        answer = await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        if not head.startswith(b"HTTP/1.1 20") or b"job_" not in answer:
            raise SystemExit(f"{request.split(b' ')[1].decode()}: {head.decode()}{answer.decode()}")
    writer.close()


async def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the CPU milliseconds per job of each portion, by dialect."""
    found: dict[str, list[float]] = {name: [] for name in options.dialects}
    with TemporaryDirectory() as folder:
        machines = OneServer(Path(folder), SETTINGS)
        await machines.gateways[0].start()
        running = FileFleet(machines, None, 0)  # type: ignore[arg-type]  its vendor is inside of the server
        key, port, pid = await running.key(), running.gateway.port, pid_of(running.gateway)
        requests = {name: make_request(name, key) for name in options.dialects}
        each = max(1, options.portion // CONNECTIONS)
        for number in range(options.rounds + 1):
            for name, request in requests.items():
                before = _cpu_seconds(pid)
                await asyncio.gather(*(send(port, request, each) for _ in range(CONNECTIONS)))
                if number:  # the first round warms up
                    found[name].append((_cpu_seconds(pid) - before) * 1e3 / each / CONNECTIONS)
        await machines.end()
    return found


def describe(found: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Return a row for each dialect."""
    rows: list[dict[str, Any]] = []
    for name, costs in found.items():
        ratios = [cost / base for cost, base in zip(costs, found["native"], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        cost = f"{statistics.median(costs):.3f}"
        rows.append(
            {
                "dialect": name,
                "CPU ms per job": cost,
                "of native": f"{middle:.2f}",
                "half of all": f"{low:.2f} to {high:.2f}",
            }
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--portion", type=int, default=80, help="jobs of each dialect in a round")
    parser.add_argument("--dialects", nargs="+", choices=DIALECTS, default=list(DIALECTS))
    options = parser.parse_args()
    options.dialects = list(dict.fromkeys(["native", *options.dialects]))
    found = uvloop.run(measure(options))
    tables.show("An accepted job", describe(found))


if __name__ == "__main__":
    main()
