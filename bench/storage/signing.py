"""CPU and time of a result on its way home, with and without a signature.

python -m bench.storage.signing [--results 40]

Each result is opened, checked and, where it says so, signed, by the child processes that do so in the gateway. CPU is
that of this process and of all its children. `more` is what the file grows by.
"""

import argparse
import asyncio
import io
import os
import random
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from PIL import Image

from bench.harness import tables
from penstock.domain.jobs import Job
from penstock.inspection.images_and_video import inspect_picture, inspect_video
from penstock.inspection.models import inspect_model
from penstock.inspection.worker_pool import ProcessPool
from penstock.jobs.signing import ResultSigner
from penstock.provenance.credential import make_own, read_credential
from penstock.simulator import samples
from penstock.storage.assets import Assets, Landed, measure_file
from penstock.storage.backend import open_storage
from penstock.storage.scratch import ScratchFolder
from penstock.vendor_api.generation import KeptReply, Kind, Output, Role

MB = 10**6


def noise(side: int, kind: str) -> bytes:
    """A picture that is hard to compress."""
    target = io.BytesIO()
    Image.frombytes("RGB", (side, side), random.Random(1).randbytes(side * side * 3)).save(target, kind)  # noqa: S311
    return target.getvalue()


def film(megabytes: int) -> bytes:
    """A film that is padded to its size, as what it shows does not matter to a signature."""
    data = samples.make_video(640, 360, 4, seed=1)
    size = megabytes * MB - len(data)
    return data + size.to_bytes(4) + b"free" + random.Random(2).randbytes(size - 8)  # noqa: S311


def cases() -> dict[str, tuple[Kind, str, bytes, Callable[..., Any], tuple[Any, ...]]]:
    picture = (Kind.IMAGE, inspect_picture, ())
    made = {
        "PNG 1 MB": ("image/png", noise(578, "PNG"), *picture),
        "JPEG 1 MB": ("image/jpeg", noise(1150, "JPEG"), *picture),
        "MP4 5 MB": ("video/mp4", film(5), Kind.VIDEO, inspect_video, (None, None, None)),
        "GLB 1 MB": ("model/gltf-binary", samples.make_model(1, 10_000, texture=True), Kind.MODEL, inspect_model, (None,)),
    }
    return {name: (kind, mime, data, work, args) for name, (mime, data, kind, work, args) in made.items()}


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


async def measure(results: int, once: Callable[[ProcessPool], Awaitable[int]]) -> tuple[float, float, int]:
    """Return milliseconds of CPU and of time per result, and the bytes of the last; the start of a child is left out."""
    figures: list[tuple[float, float]] = []
    size = 0
    for count in (1, results + 1):
        before, begun = cpu(), time.perf_counter()
        pool = ProcessPool(3, seconds=120, cpu_seconds=120, threads=True)
        for _ in range(count):
            size = await once(pool)
        await pool.close()  # whose children's CPU counts only now
        figures.append((cpu() - before, time.perf_counter() - begun))
    (cpu_one, time_one), (cpu_all, time_all) = figures
    return (cpu_all - cpu_one) / results * 1000, (time_all - time_one) / results * 1000, size


async def run(results: int) -> None:
    now = time.time()
    credential = read_credential(*make_own(now), now, is_own=True)
    job = Job(
        id="job_bench", account_id="acct", key_id="key", request_id="req", model="m", vendor="v", upstream_model="m",
        params={"prompt": "a"}, seed=1, created_at=now, start_by=now, run_seconds=1.0, retention=None,
    )
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        assets = Assets(open_storage(Path(folder, "assets").as_uri()), ScratchFolder(Path(folder, "landing")))
        for name, (kind, mime, data, work, args) in cases().items():
            path = Path(folder, "result")
            path.write_bytes(data)
            landed: Landed = measure_file(path)
            output = Output(kind, Role.PRIMARY, KeptReply(""))

            async def plain(pool: ProcessPool) -> int:
                await pool.do("acct", work, landed.path, *args)
                return landed.bytes

            async def signed(pool: ProcessPool) -> int:
                await pool.do("acct", work, landed.path, *args)
                signer = ResultSigner(pool, assets, lambda: credential, time.time)
                async with signer.sign(signer.describe(job, None), output, mime, landed) as result:
                    assert result.provenance, result.warnings  # noqa: S101
                    return result.landed.bytes

            (cpu_plain, time_plain, _), (cpu_signed, time_signed, size) = [
                await measure(results, once) for once in (plain, signed)
            ]
            rows.append(
                {
                    "result": name,
                    "CPU ms unsigned": round(cpu_plain, 1),
                    "CPU ms signed": round(cpu_signed, 1),
                    "ms longer": round(time_signed - time_plain, 1),
                    "bytes more": size - landed.bytes,
                }
            )
    tables.show("Signing of results", rows)
    tables.save("signing", {"rows": rows})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=40)
    asyncio.run(run(parser.parse_args().results))
