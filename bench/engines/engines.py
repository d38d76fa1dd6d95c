"""How fast the built-in engines are, what they hold in memory, and what the gateway's callers feel meanwhile.

python -m bench.engines.engines [model] [video] [chat] [mixed]

model: a picture of 1024 x 1024 without alpha, 10,000 faces, PBR; each in a fresh process, as the gateway runs it.
video: whole clips of 8 seconds, from the prompt to the MP4, each in a fresh process.
chat:  the same server of llama.cpp asked directly and through the gateway, turn by turn.
mixed: 20 jobs at once, half 3D and half video, while somebody keeps asking the API.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp
import cv2
import numpy as np

from bench.chat.chat import free_port
from bench.harness import tables
from bench.jobs.jobs import wait_ready
from penstock.settings.tables import load
from penstock_engines.llama.llama_server import LlamaOptions, LlamaServer

WEIGHTS = load(None, os.environ, {}).weights
CHILD = [sys.executable, "-P", "-m", "penstock_engines.studio.child"]
PROMPTS = (
    "A sailing boat on a calm sea at sunset, the camera slowly pans",
    "A fox walks through a snowy forest at night",
    "Neon city street in the rain, a red car drives by",
)
QUESTION = "Write a long story about a river, a dam and the people who live below it."


def draw_picture(path: Path) -> None:
    """A figure with a shadow before a wall: no alpha, so that the segmenter has to work."""
    side = 1024
    wall = np.linspace(205, 150, side)[:, None, None] * np.array([0.9, 1.0, 0.95])
    picture = np.broadcast_to(wall, (side, side, 3)).astype(np.uint8).copy()
    for centre, axes, colour in (
        ((512, 960), (300, 30), (90, 100, 95)),
        ((512, 660), (230, 290), (60, 90, 200)),
        ((512, 300), (200, 190), (80, 120, 225)),
        ((370, 150), (70, 80), (60, 90, 200)),
        ((654, 150), (70, 80), (60, 90, 200)),
        ((440, 280), (28, 36), (30, 30, 30)),
        ((584, 280), (28, 36), (30, 30, 30)),
        ((512, 360), (70, 45), (190, 210, 245)),
    ):
        cv2.ellipse(picture, centre, axes, 0, 0, 360, colour, -1, cv2.LINE_AA)
    cv2.imwrite(str(path), picture)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one errand took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    megabytes: float


def employ(errand: dict[str, Any]) -> Cost:
    """One errand in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        whole = {**errand, "folder": folder, "weights": str(WEIGHTS), "seconds": 600, "memory_mb": 8192}
        begun = time.perf_counter()
        child = subprocess.Popen(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018
        child.stdin.write(json.dumps(whole).encode() + b"\n")
        child.stdin.flush()
        last = json.loads(child.stdout.readlines()[-1])
        _, _, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        child.returncode = 0
        child.stdin.close()
        if last["status"] != "succeeded":
            raise SystemExit(f"the engine failed: {last}")
        made = (Path(folder) / last["outputs"][0]["name"]).stat().st_size
        return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, made / 1e6)


def bench_model() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        draw_picture(picture)
        wish = {"face_limit": 10_000, "texture": True, "pbr": True, "style": "inflate", "seed": 1}
        runs = [employ({"engine": "inflate", "inputs": {"file": str(picture)}, "wish": wish}) for _ in range(5)]
    seconds = sorted(run.seconds for run in runs)
    print(
        f"model  1024 x 1024, 10,000 faces, PBR   median {statistics.median(seconds):.2f} s, best {seconds[0]:.2f} s, "
        f"CPU {statistics.median(run.cpu_seconds for run in runs):.2f} s, "
        f"peak {max(run.peak_mb for run in runs):.0f} MB, {runs[0].megabytes:.2f} MB (aim 2.0 s, 400 MB)"
    )
    return {"runs": [asdict(run) for run in runs], "median_seconds": statistics.median(seconds)}


def bench_video() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, width, height, aim in (("720p", 1280, 720, 24), ("1080p", 1920, 1080, 12)):
        for prompt in PROMPTS:
            wish = {"prompt": prompt, "width": width, "height": height, "seconds": 8, "lossless": False, "people": True}
            cost = employ({"engine": "cinema", "inputs": {}, "wish": wish})
            print(
                f"video  {name:5} {192 / cost.seconds:5.1f} frames/s (aim {aim}), {cost.seconds:5.2f} s, "
                f"CPU {cost.cpu_seconds / 192 * 1000:.0f} ms per frame, "
                f"peak {cost.peak_mb:.0f} MB, {cost.megabytes:.2f} MB   {prompt}"
            )
            runs = found.setdefault(name, {"aim": aim, "runs": []})["runs"]
            runs.append({"prompt": prompt, "frames_per_second": 192 / cost.seconds, **asdict(cost)})
    return found


# -- a gateway


@contextlib.asynccontextmanager
async def gateway(toml: str = "") -> AsyncGenerator[tuple[str, str]]:
    """A gateway in a process of its own: its address and a key."""
    penstock, port = Path(sys.executable).with_name("penstock"), free_port()
    with tempfile.TemporaryDirectory() as data:
        (Path(data) / "config.toml").write_text(toml)
        made = await asyncio.to_thread(subprocess.check_output, [penstock, "key", "create", "--json", "--data", data])
        with (Path(data) / "log").open("wb") as log:
            server = subprocess.Popen([penstock, "serve", "--data", data, "--port", str(port)], stdout=log, stderr=log)
            try:
                await wait_ready(f"http://127.0.0.1:{port}", server)
                yield f"http://127.0.0.1:{port}", json.loads(made)["key"]
            finally:
                server.terminate()
                server.wait(60)


async def tell(session: aiohttp.ClientSession, url: str, key: str, number: int) -> tuple[float, float, int]:
    """One streamed answer: seconds to the first token, tokens per second after it, and how many."""
    body = {
        "model": "chat",
        "messages": [{"role": "user", "content": f"{QUESTION} ({number})"}],
        "stream": True,
        "max_tokens": 96,
        "temperature": 0,
        "seed": 1,
    }
    with contextlib.suppress(aiohttp.ClientError):  # a connection that idled may just be closed: make sure of one
        await (await session.get(f"{url}/models", headers={"authorization": f"Bearer {key}"})).read()
    begun, times = time.perf_counter(), list[float]()
    async with session.post(f"{url}/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}) as reply:
        if reply.status != 200:
            raise SystemExit(await reply.text())
        async for line in reply.content:
            if b'"content":"' in line.replace(b'"content": "', b'"content":"'):
                times.append(time.perf_counter())
    return times[0] - begun, (len(times) - 1) / (times[-1] - times[0]), len(times)


async def bench_chat(rounds: int = 8) -> dict[str, Any]:
    llama = LlamaServer(LlamaOptions(gguf=WEIGHTS / "smollm2-135m.gguf"))
    address = await asyncio.to_thread(llama.start)
    toml = (
        f'[vendors.far]\ntype = "openai_compatible"\nbase_url = "{address}"\napi_key = "{llama.key}"\n'
        '[[models]]\nid = "chat"\nvendor = "far"\nkind = "chat"\n'
    )
    found: dict[str, list[tuple[float, float, int]]] = {"direct": [], "gateway": []}
    try:
        async with gateway(toml) as (url, key), aiohttp.ClientSession() as session:
            ways = {"direct": (address, llama.key), "gateway": (f"{url}/llm", key)}
            for number in range(rounds):
                await tell(session, *ways["direct"], number)  # from now on the server has the question in its cache
                for name in ("direct", "gateway") if number % 2 else ("gateway", "direct"):
                    found[name].append(await tell(session, *ways[name], number))
    finally:
        llama.close()
    speed = {name: statistics.median(run[1] for run in runs) for name, runs in found.items()}
    first = {name: statistics.median(run[0] for run in runs) * 1000 for name, runs in found.items()}
    print(
        f"chat   direct {speed['direct']:.1f} tokens/s, gateway {speed['gateway']:.1f} "
        f"({speed['gateway'] / speed['direct']:.1%}, aim 97 %); first token {first['direct']:.1f} ms direct, "
        f"{first['gateway']:.1f} ms ({first['gateway'] - first['direct']:+.1f} ms, aim +2)"
    )
    return {"tokens_per_second": speed, "first_token_ms": first}


async def bench_mixed(jobs: int = 20) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        draw_picture(picture := Path(folder) / "picture.png")
        data = picture.read_bytes()
    async with gateway() as (url, key), aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as session:
        form = aiohttp.FormData()
        form.add_field("file", data, filename="picture.png")
        async with session.post(f"{url}/api/v1/files", data=form) as reply:
            token = (await reply.json())["file_token"]
        wishes = [
            ("vendora_image_to_model", {"file": {"file_token": token}, "face_limit": 10_000, "model_seed": number})
            if number % 2
            else ("vendorb_video_31", {"prompt": PROMPTS[number % 3], "durationSeconds": 4})
            for number in range(jobs)
        ]
        begun, names = time.perf_counter(), list[str]()
        for model, params in wishes:
            body = {"model": model, "input": [{"params": params}]}
            async with session.post(f"{url}/model/v1/generation", json=body) as reply:
                names.append((await reply.json())["id"])
        latencies: list[float] = []
        asking = asyncio.create_task(_ask_on(session, url, latencies))
        states = await asyncio.gather(*(_finish(session, url, name) for name in names))
        asking.cancel()
        seconds = time.perf_counter() - begun
    latencies.sort()
    last = latencies[math.ceil(len(latencies) * 0.99) - 1] * 1000
    print(
        f"mixed  {jobs} jobs in {seconds:.1f} s, {states.count('succeeded')} succeeded; {len(latencies)} requests "
        f"meanwhile: p50 {statistics.median(latencies) * 1000:.1f} ms, p99 {last:.1f} ms (aim 50), "
        f"max {latencies[-1] * 1000:.1f} ms"
    )
    asked = {"requests": len(latencies), "p50_ms": statistics.median(latencies) * 1000, "p99_ms": last}
    return {"jobs": jobs, "seconds": seconds, "succeeded": states.count("succeeded"), **asked}


async def _ask_on(session: aiohttp.ClientSession, url: str, latencies: list[float]) -> None:
    while True:
        for path in ("/api/v1/jobs?limit=5", "/api/v1/models", "/healthz"):
            begun = time.perf_counter()
            async with session.get(url + path) as reply:
                await reply.read()
            latencies.append(time.perf_counter() - begun)
        await asyncio.sleep(0.05)


async def _finish(session: aiohttp.ClientSession, url: str, name: str) -> str:
    while True:
        async with session.get(f"{url}/api/v1/jobs/{name}?wait=60") as reply:
            record = await reply.json()
        if record["done"]:
            return record["status"]


def draw(found: dict[str, Any]) -> None:
    """What can be told in bars."""
    panels: dict[str, dict[str, float]] = {}
    if "model" in found:
        panels["3D model: ms, each of five"] = {
            f"model {number}": run["seconds"] * 1e3 for number, run in enumerate(found["model"]["runs"], 1)
        }
    if "video" in found:
        panels["video: frames per second"] = {
            name: statistics.median(run["frames_per_second"] for run in said["runs"])
            for name, said in found["video"].items()
        }
    if "chat" in found:
        panels["chat: tokens per second"] = found["chat"]["tokens_per_second"]
    if panels:
        tables.draw("bars", "engines", panels, title="The built-in engines", highlight="gateway", log=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", default=["model", "video", "chat", "mixed"])
    wanted = parser.parse_args().what
    found: dict[str, Any] = {}
    if "model" in wanted:
        found["model"] = bench_model()
    if "video" in wanted:
        found["video"] = bench_video()
    if "chat" in wanted:
        found["chat"] = asyncio.run(bench_chat())
    if "mixed" in wanted:
        found["mixed"] = asyncio.run(bench_mixed())
    tables.save("engines", found)
    draw(found)


if __name__ == "__main__":
    main()
