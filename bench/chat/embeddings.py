"""What the built-in embedding model does through the gateway: texts per second, and memory.

python -m bench.chat.embeddings [--texts 1000] [--size 100] [--at-once 1] [--words 20] [--weights DIR]

Sends so many texts of so many words to a gateway of its own, `--size` in one request and `--at-once` requests at a
time. The start of the model is not counted. Memory is that of the gateway's process and of the model's child process,
at rest and at the most during the run.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.chat.peers import free_port

MODEL = "minilm-l6"
CHILD = b"penstock_engines.minilm.embedding_child"
TEXT = """
water gate river turbine power pipe valve lake dam stone bridge morning engineer pressure flow concrete steel valley
village machine light winter summer mountain forest road engine wheel paper letter story music garden
"""
START_SECONDS = 60
LOOK_SECONDS = 0.05


def memory_of(process: int) -> float:
    """Return the resident memory of one process in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def find_child(parent: int) -> int | None:
    """Return the process of the model that a gateway has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            parent_id = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it ended meanwhile
            continue
        if CHILD in line and parent_id == parent:
            return int(folder.name)
    return None


@asynccontextmanager
async def serving(weights: str | None) -> AsyncIterator[tuple[httpx.AsyncClient, int]]:
    """Run a gateway with nothing but the built-in models; yield a client with a key, and the gateway's process id."""
    with tempfile.TemporaryDirectory() as folder:
        port, penstock = free_port(), str(Path(sys.executable).with_name("penstock"))
        environ = os.environ | ({"PENSTOCK_WEIGHTS": weights} if weights else {})
        command = (penstock, "serve", "--data", folder, "--port", str(port))
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=600, trust_env=False) as client:
                key = Path(folder) / "first-key"
                await until_ready(client, key)
                client.headers["authorization"] = f"Bearer {key.read_text().strip()}"
                yield client, process.pid
        finally:
            process.terminate()
            process.wait()


async def until_ready(client: httpx.AsyncClient, key: Path) -> None:
    async with asyncio.timeout(START_SECONDS):
        while not (key.exists() and await is_ready(client)):  # noqa: ASYNC110, ASYNC240  the gateway tells nobody
            await asyncio.sleep(LOOK_SECONDS)


async def is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).is_success
    except httpx.TransportError:
        return False


def make_texts(count: int, words: int) -> list[str]:
    vocabulary = TEXT.split()
    chance = random.Random(1)  # noqa: S311  the same texts in every run
    return [" ".join(chance.choices(vocabulary, k=words)) for _ in range(count)]


async def embed(client: httpx.AsyncClient, batches: Iterator[list[str]]) -> tuple[int, list[float]]:
    """Send batches one after the other; return the number of tokens, and the seconds of each request."""
    tokens, seconds = 0, list[float]()
    for batch in batches:
        began = time.perf_counter()
        body = {"model": MODEL, "input": batch, "encoding_format": "base64"}
        response = await client.post("/llm/embeddings", json=body)
        response.raise_for_status()
        seconds.append(time.perf_counter() - began)
        tokens += response.json()["usage"]["prompt_tokens"]
    return tokens, seconds


async def watch(processes: dict[str, int], most: dict[str, float]) -> None:
    """Note the largest memory of each process until canceled."""
    while True:
        for name, process in processes.items():
            most[name] = max(most.get(name, 0.0), memory_of(process))
        await asyncio.sleep(LOOK_SECONDS)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    texts = make_texts(options.texts, options.words)
    async with serving(options.weights) as (client, gateway):
        await embed(client, iter([["warm up"]]))
        child = find_child(gateway)
        if child is None:
            sys.exit("The model does not run.")
        processes = {"gateway": gateway, "model": child}
        rest = {name: memory_of(process) for name, process in processes.items()}
        most = dict(rest)
        watching = asyncio.create_task(watch(processes, most))
        batches = split(texts, options.size)
        began = time.perf_counter()
        done = await asyncio.gather(*(embed(client, batches) for _ in range(options.at_once)))
        seconds = time.perf_counter() - began
        watching.cancel()
    tokens = sum(count for count, _ in done)
    waits = sorted(wait for _, each in done for wait in each)
    return {
        "texts": len(texts),
        "texts_per_request": options.size,
        "requests_at_once": options.at_once,
        "seconds": round(seconds, 2),
        "texts_per_second": round(len(texts) / seconds, 1),
        "tokens_per_second": round(tokens / seconds),
        "median_request_seconds": round(waits[len(waits) // 2], 3),
        "memory_at_rest_mb": {name: round(value) for name, value in rest.items()},
        "memory_at_most_mb": {name: round(value) for name, value in most.items()},
    }


def split(texts: list[str], size: int) -> Iterator[list[str]]:
    """Yield the texts of each request; several senders may share it."""
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--size", type=int, default=100, help="texts of one request")
    parser.add_argument("--at-once", type=int, default=1, help="requests at a time")
    parser.add_argument("--words", type=int, default=20, help="words of one text")
    parser.add_argument("--weights", help="the folder of the weights; default: the usual one")
    print(json.dumps(asyncio.run(measure(parser.parse_args())), indent=2))


if __name__ == "__main__":
    main()
