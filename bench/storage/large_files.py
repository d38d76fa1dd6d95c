"""Large results from a vendor to a caller: the memory that the gateway and its children grow by.

python -m bench.storage.large_files [--megabytes 500] [--storage folder s3]

model   a GLB: a third is geometry, the rest a texture
film    an MP4 of pictures of noise, all of which are decoded

Each is ordered from a simulated vendor, downloaded by the gateway, checked, signed, stored, and downloaded by its
signed link. `gateway` is the growth of the server's own memory, `children` that of the processes that open files.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import struct
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bench.chat.peers import free_port, serving
from bench.harness import tables
from bench.harness.processes import own_memory_mb, tree
from bench.jobs.jobs import OneServer
from bench.machines.fleet import TESTS, pid_of

sys.path[:0] = [str(TESTS / "api" / "files")]

MB = 10**6
SECONDS, SIDES = 8, (1280, 720)
PAUSE_SECONDS = 0.01
"""Between two looks at the memory."""
SETTINGS = """
{assets}
[server]
log_level = "warning"
[vendors.sim]
type = "sim"
base_url = "http://127.0.0.1:{port}"
[[models]]
id = "sim_image_to_model"
vendor = "sim"
[[models]]
id = "sim_text_to_video"
vendor = "sim"
"""
ORDERS = {
    "model": {"model": "sim_image_to_model", "input": [{"params": {"texture": False}}]},
    "film": {"model": "sim_text_to_video", "input": [{"params": {"durationSeconds": SECONDS}}]},
}


# -- the files


def write_model(path: Path, size: int) -> None:
    """Write a GLB: triangles without indices, and a texture that takes the rest."""
    corners = size // 3 // 36 * 3
    texture = size - 2048 - 12 * corners
    texture -= texture % 4
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": 12 * corners + texture}],
        "bufferViews": [
            {"buffer": 0, "byteLength": 12 * corners},
            {"buffer": 0, "byteOffset": 12 * corners, "byteLength": texture},
        ],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": corners, "type": "VEC3"}],
        "images": [{"bufferView": 1, "mimeType": "image/png"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    total = 20 + len(text) + 8 + 12 * corners + texture
    points = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0) * 20_000
    with path.open("wb") as file:
        file.write(b"glTF" + struct.pack("<II", 2, total) + struct.pack("<I4s", len(text), b"JSON") + text)
        file.write(struct.pack("<I4s", 12 * corners + texture, b"BIN\0"))
        for start in range(0, 12 * corners, len(points)):
            file.write(points[: 12 * corners - start])
        for start in range(0, texture, MB):
            file.write(os.urandom(min(MB, texture - start)))


def write_film(path: Path, size: int) -> None:
    """Write an MP4 that repeats one picture of noise until it is that large."""
    import av  # noqa: PLC0415  only the bench's own process wants it
    from PIL import Image  # noqa: PLC0415  as above

    picture = io.BytesIO()
    Image.frombytes("RGB", SIDES, os.urandom(3 * SIDES[0] * SIDES[1])).save(picture, "JPEG", quality=95)
    data = picture.getvalue()
    frames = max(SECONDS, size // len(data))
    with av.open(str(path), "w", format="mp4") as container:
        stream: Any = container.add_stream("mjpeg", rate=frames // SECONDS)
        stream.width, stream.height, stream.pix_fmt = *SIDES, "yuvj420p"
        rate = frames // SECONDS
        for number in range(rate * SECONDS):
            packet = av.Packet(data)
            packet.stream, packet.pts, packet.dts, packet.duration = stream, number, number, 1
            packet.time_base, packet.is_keyframe = Fraction(1, rate), True
            container.mux(packet)


# -- the vendor, in a process of its own


def act_as_vendor(port: int, folder: str) -> None:
    """Serve a vendor whose orders are done at once. Their results are the large files, after a small one of each."""
    begun = set[str]()

    async def submit(request: web.Request) -> web.Response:
        kind = (await request.json())["result"]["kind"]
        return web.json_response({"id": f"sim-{kind}"}, status=201)

    async def poll(request: web.Request) -> web.Response:
        kind = request.match_info["name"].partition("-")[2]
        outputs = [{"kind": kind, "role": "primary", "path": f"/results/{kind}"}]
        unknown = dict.fromkeys(("queue_position", "seed", "progress", "eta_seconds"))
        return web.json_response({"id": f"sim-{kind}", "status": "succeeded", "outputs": outputs, **unknown})

    async def download(request: web.Request) -> web.FileResponse:
        kind = request.match_info["kind"]
        name = kind if kind in begun else f"small-{kind}"
        begun.add(kind)
        return web.FileResponse(Path(folder) / name)

    app = web.Application()
    app.router.add_post("/orders", submit)
    app.router.add_get("/orders/{name}", poll)
    app.router.add_get("/results/{kind}", download)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=lambda *_: None)


# -- the measurement


class Peaks:
    """The highest memory of a server and of its children, in MB, looked at all the time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.own = self.children = 0.0

    def look(self) -> None:
        """Take note of the present memory."""
        self.own = max(self.own, own_memory_mb(self._pid))
        self.children = max(self.children, sum(map(own_memory_mb, tree(self._pid)[1:])))


@contextmanager
def watched(pid: int) -> Generator[Peaks]:
    """Watch the memory of a server while the block runs."""
    peaks, done = Peaks(pid), threading.Event()

    def watch() -> None:
        while not done.wait(PAUSE_SECONDS):
            with contextlib.suppress(OSError):  # a child may just have ended
                peaks.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


async def order(session: aiohttp.ClientSession, what: str) -> str:
    """Order a result and return its signed link."""
    async with session.post("/model/v1/generation", json=ORDERS[what]) as response:
        name = (await response.json())["id"]
    while True:
        async with session.get(f"/api/v1/jobs/{name}?wait=60") as response:
            record = await response.json()
        if record["done"]:
            break
    if record["status"] != "succeeded":
        raise SystemExit(json.dumps(record["error"]))
    return record["outputs"][0]["url"]


async def download(session: aiohttp.ClientSession, url: str) -> int:
    """Download a result and return its size."""
    size = 0
    async with session.get(url) as response:
        async for chunk in response.content.iter_chunked(1 << 18):
            size += len(chunk)
    return size


async def measure(machines: OneServer) -> list[dict[str, Any]]:
    """Let each file pass one server; return a row for each step."""
    machine, rows = machines.gateways[0], list[dict[str, Any]]()
    try:
        await machine.start()
        _, said = await machines.command("key", "create", "--json")
        headers = {"authorization": f"Bearer {json.loads(said)['key']}"}
        timeout = aiohttp.ClientTimeout(total=None)
        pid = pid_of(machine)
        async with aiohttp.ClientSession(machine.url, headers=headers, timeout=timeout) as session:
            for what in ORDERS:
                await order(session, what)  # what is loaded with the first result is not growth
            for what in ORDERS:
                before = own_memory_mb(pid)
                with watched(pid) as peaks:
                    link = await order(session, what)
                rows.append(_row(what, "from the vendor", before, peaks))
                before = own_memory_mb(pid)
                with watched(pid) as peaks:
                    size = await download(session, link.removeprefix(machine.url))
                rows.append(_row(what, "to the caller", before, peaks) | {"MB": size / MB})
    finally:
        await machines.end()
    return rows


def _row(what: str, step: str, before: float, peaks: Peaks) -> dict[str, Any]:
    grown = {"gateway MB": peaks.own - before, "gateway held MB": before, "children MB": peaks.children}
    return {"what": f"{what}, {step}", **grown}


def measure_all(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Measure each storage."""
    (results := folder / "results").mkdir()
    for prefix, size in (("", options.megabytes * MB), ("small-", 5 * MB)):
        write_model(results / f"{prefix}model", size)
        write_film(results / f"{prefix}video", size)
    return [row for storage in options.storage for row in _measure_storage(storage, folder, results)]


def _measure_storage(storage: str, folder: Path, results: Path) -> list[dict[str, Any]]:
    port, assets, environment = free_port(), "", dict[str, str]()
    with ExitStack() as stack:
        command = [sys.executable, "-m", "bench.storage.large_files", "--role", "vendor", str(port), str(results)]
        stack.enter_context(serving(command, port, 0, folder / "vendor.log"))
        if storage == "s3":
            from s3_server import BUCKET, S3Server  # noqa: PLC0415  its program may be missing

            (place := folder / "bucket").mkdir()
            server = S3Server(place, volume_megabytes=1024)
            stack.callback(server.stop)
            server.start()
            assets, environment = f'assets_url = "s3://{BUCKET}"', server.environment
        os.environ |= environment
        (own := folder / storage).mkdir()
        rows = asyncio.run(measure(OneServer(own, SETTINGS.format(port=port, assets=assets))))
        return [{"storage": storage, **row} for row in rows]


def main() -> None:
    """Print and save the table, or play a part in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--storage", nargs="+", choices=["folder", "s3"], default=["folder", "s3"])
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        act_as_vendor(int(options.role[1]), options.role[2])
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = measure_all(options, Path(folder))
    tables.show(f"results of {options.megabytes} MB", rows)
    tables.save("large_files", {"megabytes": options.megabytes, "rows": rows})


if __name__ == "__main__":
    main()
