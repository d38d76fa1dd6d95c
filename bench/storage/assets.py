"""Large files through the gateway: downloads by signed link, uploads, and results on their way home from the vendor.

python -m bench.storage.assets [--megabytes 100] [--rounds 3] [--at-once 1 8]

download  an output of a job, by its signed link
upload    pictures of 20 MB, the most that is taken, to POST /api/v1/files until the sum is reached: each is opened
          and decoded before it is believed, hashed, and stored
result    from the vendor's server into the store: fetched, hashed, opened as a GLB, and stored

`bare` is uvicorn with a framework's file response, and writes an upload to the disk as it comes; nginx does the same
where it is installed. Neither asks for a key, opens or hashes anything. The server under test has one core, clients
and vendor share the other. CPU and memory are those of the server's whole process tree; memory is by how much its peak
during the transfers is above what it held before.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bench.chat.peers import Missing, find_nginx, free_port, serving
from bench.harness import tables
from bench.harness.processes import cpu_seconds, memory_mb
from bench.jobs.jobs import OneServer
from bench.machines.fleet import pid_of

SIDE = 2560  # of a picture: 19.7 MB of noise
MB = 10**6
EDGE = b"5f1c0d9e7b3a48268d14c6e2a90b7f35"  # as long as clients make it: a short one takes longer to look for
SETTINGS = """
[server]
log_level = "warning"
[vendors.sim]
type = "sim"
base_url = "http://127.0.0.1:{port}"
[[models]]
id = "sim_image_to_model"
vendor = "sim"
"""
NGINX = """
{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx-error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; sendfile on; client_max_body_size 0; client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location /large.glb {{ root {files}; }}
    location /uploads/ {{ root {folder}; dav_methods PUT; create_full_put_path on; }}
  }}
}}
"""


# -- what is sent


def write_model(path: Path, size: int) -> None:
    """A GLB of this size: a small gem, and a chunk that readers pass over."""
    from penstock.simulator import samples  # noqa: PLC0415  only the vendor wants it

    gem = samples.make_model(7, 48, texture=False)
    filling = size - len(gem) - 8
    with path.open("wb") as file:
        file.write(gem[:8] + struct.pack("<I", size) + gem[12:] + struct.pack("<I4s", filling, b"FILL"))
        for start in range(0, filling, MB):
            file.write(os.urandom(min(MB, filling - start)))


def make_picture() -> tuple[bytes, bytes]:
    """A PNG of noise in two parts; between them belongs a chunk that makes it one of a kind."""
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
    lines = b"".join(b"\0" + os.urandom(3 * SIDE) for _ in range(SIDE))
    return b"\x89PNG\r\n\x1a\n" + head, _chunk(b"IDAT", zlib.compress(lines, 0)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def wrap(parts: tuple[bytes, bytes]) -> bytes:
    """A form with a picture that nobody has sent before."""
    head = b'--%b\r\ncontent-disposition: form-data; name="file"; filename="noise.png"\r\n\r\n' % EDGE
    comment = _chunk(b"tEXt", b"Comment\0" + os.urandom(16).hex().encode())
    return b"".join((head, parts[0], comment, parts[1], b"\r\n--%b--\r\n" % EDGE))


# -- the clients, in a process of their own


def fetch(port: int, path: str) -> int:
    """Download, and throw it away as it comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    response, buffer, size = connection.getresponse(), bytearray(MB), 0
    if response.status != 200:
        raise SystemExit(f"HTTP {response.status}: {response.read(500)!r}")
    while count := response.readinto(buffer):
        size += count
    connection.close()
    return size


def send(port: int, method: str, path: str, key: str, body: bytes) -> int:
    """Upload."""
    headers = {"content-type": f"multipart/form-data; boundary={EDGE.decode()}", "authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    said = response.read()
    if response.status not in (201, 204):
        raise SystemExit(f"HTTP {response.status}: {said[:500]!r}")
    connection.close()
    return len(body)


def act_as_client(words: dict[str, Any]) -> None:
    """Every transfer, so many at once; in the end bytes and seconds."""
    works: list[Callable[[], int]]
    port, path, count = words["port"], words["path"], words["count"]
    if words["kind"] == "download":
        works = [lambda: fetch(port, path)] * count
    else:
        picture = make_picture()
        bodies = [wrap(picture) for _ in range(count)]
        works = [
            lambda number=number: send(port, words["method"], path.format(number), words["key"], bodies[number])
            for number in range(count)
        ]
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.perf_counter()
    with ThreadPoolExecutor(words["at_once"]) as pool:
        sizes = list(pool.map(lambda work: work(), works))
    print(json.dumps({"bytes": sum(sizes), "seconds": time.perf_counter() - begun}))


# -- the vendor and the bare server, in processes of their own


def act_as_vendor(port: int, model: str) -> None:
    """Every order is done at once, and its result is the large file."""

    async def submit(_request: web.Request) -> web.Response:
        return web.json_response({"id": "sim-1"}, status=201)

    async def poll(_request: web.Request) -> web.Response:
        outputs = [{"kind": "model", "role": "primary", "path": "/large"}]
        unknown = dict.fromkeys(("queue_position", "seed", "progress", "eta_seconds"))
        return web.json_response({"id": "sim-1", "status": "succeeded", "outputs": outputs, **unknown})

    async def download(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(model)

    app = web.Application()
    app.router.add_post("/orders", submit)
    app.router.add_get("/orders/{name}", poll)
    app.router.add_get("/large", download)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=lambda *_: None)


def act_as_bare(port: int, model: str, folder: str) -> None:
    """What a framework has for files, and nothing else."""
    import uvicorn  # noqa: PLC0415
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import FileResponse, Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def download(_request: Request) -> Response:
        return FileResponse(model)

    async def upload(request: Request) -> Response:
        with (Path(folder) / request.path_params["name"]).open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
        return Response(status_code=201)

    routes = [Route("/large.glb", download), Route("/uploads/{name}", upload, methods=["PUT"])]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning", access_log=False)


# -- servers under test


@dataclass(frozen=True, slots=True)
class Server:
    """Something that gives and takes files."""

    pid: int
    port: int
    download: str
    upload: tuple[str, str]
    key: str = "none"


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started in this block runs on this core only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def own_role(*words: Any) -> list[str]:
    return [sys.executable, "-m", "bench.storage.assets", "--role", *map(str, words)]


@asynccontextmanager
async def bare(folder: Path, model: Path, core: int) -> AsyncGenerator[Server]:
    port = free_port()
    (uploads := folder / "bare").mkdir()
    with serving(own_role("bare", port, model, uploads), port, core, folder / "bare.log") as door:
        yield Server(door.pid or 0, port, "/large.glb", ("PUT", "/uploads/{}"))


@asynccontextmanager
async def nginx(folder: Path, model: Path, core: int) -> AsyncGenerator[Server]:
    port, own = free_port(), folder / "nginx"
    own.mkdir()
    (config := own / "nginx.conf").write_text(
        NGINX.format(user="user root;" if os.geteuid() == 0 else "", folder=own, files=model.parent, port=port)
    )
    command = [find_nginx(), "-e", own / "start.log", "-c", config, "-p", own]
    with serving(command, port, core, own / "nginx.log") as door:
        yield Server(door.pid or 0, port, "/large.glb", ("PUT", "/uploads/{}"))


class Gateway:
    """The gateway with a vendor whose results are large."""

    def __init__(self, machines: OneServer, key: str) -> None:
        self.machine = machines.gateways[0]
        self.key = key

    async def fetch_result(self) -> str:
        """One job from its order to its end; the signed link of what it made."""
        headers = {"authorization": f"Bearer {self.key}"}
        body = {"model": "sim_image_to_model", "input": [{"params": {"texture": False}}]}
        async with aiohttp.ClientSession(self.machine.url, headers=headers) as session:
            async with session.post("/model/v1/generation", json=body) as response:
                name = (await response.json())["id"]
            while True:
                async with session.get(f"/api/v1/jobs/{name}?wait=60") as response:
                    record = await response.json()
                if record["done"]:
                    break
        if record["status"] != "succeeded":
            raise SystemExit(json.dumps(record["error"]))
        return record["outputs"][0]["url"].removeprefix(self.machine.url)


@asynccontextmanager
async def gateway(folder: Path, model: Path, core: int, far: int) -> AsyncGenerator[Gateway]:
    port, own = free_port(), folder / "gateway"
    own.mkdir()
    with serving(own_role("vendor", port, model), port, far, folder / "vendor.log"):
        machines = OneServer(own, SETTINGS.format(port=port))
        try:
            with on_core(core):
                await machines.gateways[0].start()
            _, said = await machines.command("key", "create", "--json")
            yield Gateway(machines, json.loads(said)["key"])
        finally:
            await machines.end()


# -- the measurement


@contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """What a process tree holds, from before the block to its end."""
    seen, done = [memory_mb(pid)], threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            with contextlib.suppress(OSError):  # a child may just have ended
                seen.append(memory_mb(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def transfer(server: Server, kind: str, megabytes: int, at_once: int, far: int) -> dict[str, float]:
    """Some transfers at once, each of all megabytes, by clients of their own."""
    method, path = ("GET", server.download) if kind == "download" else server.upload
    count = at_once if kind == "download" else max(at_once, round(at_once * megabytes / 20))
    words = {"kind": kind, "port": server.port, "path": path, "method": method, "key": server.key}
    with on_core(far):
        client = subprocess.Popen(
            own_role("client", json.dumps(words | {"count": count, "at_once": at_once})),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    said: Any = client.stdout
    said.readline()
    cpu = cpu_seconds(server.pid)
    with watched(server.pid) as memory:
        output, _ = client.communicate(b"\n")
    if client.returncode:
        raise SystemExit("a client failed")
    cpu, found = cpu_seconds(server.pid) - cpu, json.loads(output)
    return _figures(found["bytes"], found["seconds"], cpu, memory)


def _figures(size: int, seconds: float, cpu: float, memory: list[float]) -> dict[str, float]:
    return {
        "MB/s": size / MB / seconds,
        "CPU ms per 100 MB": cpu * 1e3 * 100 * MB / size,
        "grown MB": max(memory) - memory[0],
    }


async def bring_home(running: Gateway, size: int) -> dict[str, float]:
    """One result from the vendor."""
    pid = pid_of(running.machine)
    cpu, begun = cpu_seconds(pid), time.perf_counter()
    with watched(pid) as memory:
        await running.fetch_result()
    return _figures(size, time.perf_counter() - begun, cpu_seconds(pid) - cpu, memory)


async def measure(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    cores = sorted(os.sched_getaffinity(0))
    near, far, size = cores[0], cores[-1], options.megabytes * MB
    write_model(model := folder / "large.glb", size)
    taken: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(gateway(folder, model, near, far))
        link = await running.fetch_result()
        pid = pid_of(running.machine)
        servers = {"gateway": Server(pid, running.machine.port, link, ("POST", "/api/v1/files"), running.key)}
        servers["bare"] = await stack.enter_async_context(bare(folder, model, near))
        try:
            servers["nginx"] = await stack.enter_async_context(nginx(folder, model, near))
        except Missing as reason:
            print(f"nginx is skipped: {reason}", file=sys.stderr)
        for server in servers.values():
            await asyncio.to_thread(
                transfer, server, "upload", 20, 1, far
            )  # children for pictures are there from now on
        for _ in range(options.rounds):
            taken.setdefault(("result", "gateway", 1), []).append(await bring_home(running, size))
            for kind in ("download", "upload"):
                for at_once in options.at_once:
                    for name, server in servers.items():
                        figures = await asyncio.to_thread(transfer, server, kind, options.megabytes, at_once, far)
                        taken.setdefault((kind, name, at_once), []).append(figures)
    return [_middle(*place, runs) for place, runs in sorted(taken.items())]


def _middle(kind: str, name: str, at_once: int, runs: list[dict[str, float]]) -> dict[str, Any]:
    """Medians; of memory the most, as whatever was grown once is there already the next time."""
    found = {figure: tables.quantile([run[figure] for run in runs], 0.5) for figure in runs[0]}
    found["grown MB"] = max(run["grown MB"] for run in runs)
    return {"what": kind, "server": name, "at once": at_once, **found}


def tell(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(options, Path(folder)))
    tables.show(f"files of {options.megabytes} MB", rows)
    tables.save("assets", {"megabytes": options.megabytes, "rows": rows})
    panels: dict[str, dict[str, float]] = {}
    for row in rows:
        home = row["what"] == "result"
        name = "gateway, from the vendor" if home else f"{row['server']}, {row['at once']} at once"
        panels.setdefault("upload" if home else row["what"], {})[name] = row["MB/s"]
    tables.draw(
        "bars",
        "assets",
        panels,
        title=f"Files of {options.megabytes} MB",
        subtitle="MB/s, more is better. The gateway checks the link or key, opens and hashes what comes in; "
        "bare and nginx do nothing of that.",
        highlight="gateway",
        unit="MB/s",
        log=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.role:
        case ["client", words]:
            act_as_client(json.loads(words))
        case ["vendor", port, model]:
            act_as_vendor(int(port), model)
        case ["bare", port, model, folder]:
            act_as_bare(int(port), model, folder)
        case _:
            tell(options)


if __name__ == "__main__":
    main()
