"""CPU and time of a result on its way home, with and without a signature.

python -m bench.storage.signing [--results 40]

Each result is opened, checked and, where it says so, signed, by the child processes that do so in the gateway. CPU is
that of this process and of all its children. `more` is what the file grows by.
"""

import argparse
import asyncio
import io
import random
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from bench.harness import tables
from penstock.domain.jobs import Job
from penstock.inspection.images_and_video import inspect_picture, inspect_video
from penstock.inspection.models import inspect_model
from penstock.inspection.worker_pool import ProcessPool
from penstock.jobs.files.signing import ResultSigner
from penstock.provenance.credential import Credential, make_own, read_credential
from penstock.simulator import samples
from penstock.storage.assets import Assets, Landed, measure_file
from penstock.storage.backend import open_storage
from penstock.storage.scratch import ScratchFolder
from penstock.vendor_api.generation import KeptReply, Kind, Output, Role

MB = 10**6
JOB = Job(
    id="job_bench",
    account_id="acct",
    key_id="key",
    request_id="req",
    model="model",
    vendor="vendor",
    upstream_model="model",
    params={"prompt": "a boat"},
    seed=1,
    created_at=0,
    start_by=0,
    run_seconds=1,
    retention=None,
)


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


@dataclass(frozen=True)
class Case:
    """One kind of result, and how it is opened."""

    name: str
    kind: Kind
    content_type: str
    data: bytes
    work: Callable[..., Any]
    args: tuple[Any, ...] = ()


def make_cases() -> list[Case]:
    """Results of the sizes that are common."""
    model = samples.make_model(1, 10_000, texture=True)
    return [
        Case("PNG 1 MB", Kind.IMAGE, "image/png", noise(578, "PNG"), inspect_picture),
        Case("JPEG 1 MB", Kind.IMAGE, "image/jpeg", noise(1150, "JPEG"), inspect_picture),
        Case("MP4 5 MB", Kind.VIDEO, "video/mp4", film(5), inspect_video, (None, None, None)),
        Case("GLB", Kind.MODEL, "model/gltf-binary", model, inspect_model, (None,)),
    ]


@dataclass(frozen=True)
class Collector:
    """Opens one result, and signs it if it has a signer's credential."""

    case: Case
    landed: Landed
    assets: Assets
    credential: Credential | None

    async def __call__(self, pool: ProcessPool) -> int:
        """Return the bytes of the result."""
        await pool.do("acct", self.case.work, self.landed.path, *self.case.args)
        if self.credential is None:
            return self.landed.bytes
        signer = ResultSigner(pool, self.assets, lambda: self.credential, time.time)
        output = Output(self.case.kind, Role.PRIMARY, KeptReply(""))
        async with signer.sign(signer.describe(JOB, None), output, self.case.content_type, self.landed) as result:
            if result.provenance is None:
                raise RuntimeError(result.warnings)
            return result.landed.bytes


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


async def measure(results: int, collector: Collector) -> tuple[float, float, int]:
    """Return CPU and time per result in milliseconds, and its bytes. The start of a child is left out."""
    figures: list[tuple[float, float]] = []
    size = 0
    for count in (1, results + 1):
        before, begun = cpu(), time.perf_counter()
        pool = ProcessPool(3, seconds=120, cpu_seconds=120, threads=True)
        for _ in range(count):
            size = await collector(pool)
        await pool.close()  # whose children's CPU counts only now
        figures.append((cpu() - before, time.perf_counter() - begun))
    (cpu_one, time_one), (cpu_all, time_all) = figures
    return (cpu_all - cpu_one) / results * 1000, (time_all - time_one) / results * 1000, size


def run(results: int, folder: Path) -> None:
    """Measure each case and print the table."""
    credential = read_credential(*make_own(time.time()), time.time(), is_own=True)
    assets = Assets(open_storage((folder / "assets").as_uri()), ScratchFolder(folder / "landing"))
    rows: list[dict[str, Any]] = []
    for case in make_cases():
        path = folder / "result"
        path.write_bytes(case.data)
        landed = measure_file(path)
        plain = asyncio.run(measure(results, Collector(case, landed, assets, None)))
        signed = asyncio.run(measure(results, Collector(case, landed, assets, credential)))
        rows.append(
            {
                "result": case.name,
                "CPU ms unsigned": round(plain[0], 1),
                "CPU ms signed": round(signed[0], 1),
                "ms longer": round(signed[1] - plain[1], 1),
                "bytes more": signed[2] - plain[2],
            }
        )
    tables.show("Signing of results", rows)
    tables.save("signing", {"rows": rows})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=40)
    with tempfile.TemporaryDirectory() as place:
        run(parser.parse_args().results, Path(place))
