"""Brings a finished job's outputs home: download, open, check against what was asked, and only then keep."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.catalog.model import Expectation
from penstock.domain.ids import new_id
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.domain.jobs import Asset, Job
from penstock.inspection.glb import inspect_model
from penstock.inspection.images_and_video import inspect_picture, inspect_video
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed
from penstock.storage.assets import Assets, Landed
from penstock.storage.backend import StorageUnavailable
from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import GenerationVendor, Kind, Output, Role

PREVIEW_SECONDS: Final = 60.0
"""How long a preview may take: the result that was paid for does not wait longer for it."""
HOLD_SECONDS: Final = (1, 2, 4, 8)
"""The pauses between attempts to store an output; after the last it is let go, and fetched again."""
CONTENT_TYPES: Final = {
    "glb": "model/gltf-binary",
    "mp4": "video/mp4",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """What a job will show, and what was not quite as asked."""

    outputs: tuple[Asset, ...]
    warnings: tuple[str, ...]


class Collection:
    """Outputs become assets here, and nowhere else."""

    def __init__(self, exchange: Exchange, assets: Assets, process_pool: ProcessPool) -> None:
        self._exchange = exchange
        self._assets = assets
        self._process_pool = process_pool

    async def collect(
        self, job: Job, vendor: GenerationVendor, outputs: tuple[Output, ...], expected: Expectation
    ) -> Collected:
        """All outputs, stored and checked. Doing it again after a crash gives the same."""
        collected: list[Asset] = []
        warnings: list[str] = []
        for output in outputs:
            number = sum(past.kind == output.kind and past.role == output.role for past in collected)
            patience = None if output.role is Role.PRIMARY else PREVIEW_SECONDS
            try:
                async with asyncio.timeout(patience):
                    asset, remarks = await self._collect_one(job, vendor, output, number, expected)
            except (BadOutput, TimeoutError, *TROUBLE):
                if output.role is Role.PRIMARY:
                    raise
                warnings.append("The vendor's preview could not be opened and was left out.")
            else:
                collected.append(asset)
                warnings += remarks
        if not any(asset.role == Role.PRIMARY for asset in collected):
            raise BadOutput("The vendor delivered a preview but no result.")
        return Collected(tuple(collected), tuple(warnings))

    async def _collect_one(
        self, job: Job, vendor: GenerationVendor, output: Output, number: int, expected: Expectation
    ) -> tuple[Asset, tuple[str, ...]]:
        async with (
            self._exchange.download(job.vendor, vendor, output.download) as chunks,
            self._assets.land(chunks) as landed,
        ):
            facts, extension = await self._inspect(job.account_id, output, landed, expected)
            remarks: tuple[str, ...] = facts.pop("warnings", ())
            asset = _asset(output, number, landed, facts, extension)
            await self._keep(job.id, asset, landed)
        return asset, remarks

    async def _keep(self, job_id: str, asset: Asset, landed: Landed) -> None:
        """Store what has come home. While the place does not answer, it is held: its address may work only once."""
        for pause in HOLD_SECONDS:
            try:
                return await self._assets.keep(job_id, asset, landed)
            except StorageUnavailable:
                await asyncio.sleep(pause)
        return await self._assets.keep(job_id, asset, landed)

    async def _inspect(
        self, account_id: str, output: Output, landed: Landed, expected: Expectation
    ) -> tuple[dict[str, Any], str]:
        """Open the output; return its facts and its file extension."""
        path = landed.path
        try:
            match output.kind:
                case Kind.MODEL:
                    model = await self._process_pool.insist(account_id, inspect_model, path, expected.face_limit)
                    return _fields(model), "glb"
                case Kind.VIDEO:
                    size = (expected.width, expected.height, expected.seconds)
                    return _fields(await self._process_pool.insist(account_id, inspect_video, path, *size)), "mp4"
                case Kind.IMAGE:
                    picture = await self._process_pool.insist(account_id, inspect_picture, path)
                    return {"width": picture.width, "height": picture.height}, picture.content_type.split("/")[1]
        except LimitReached as error:
            raise BadOutput("Opening the output takes more time or memory than allowed.") from error
        except WorkFailed as error:
            raise BadOutput("The output could not be opened.") from error
        except FileUnreadable as error:
            raise BadOutput(error.message) from error


def _fields(facts: object) -> dict[str, Any]:
    """Facts that an asset shows; its other fields stay None."""
    names = ("width", "height", "duration_seconds", "fps", "faces", "vertices", "warnings")
    return {name: getattr(facts, name) for name in names if hasattr(facts, name)}


def _asset(output: Output, number: int, landed: Landed, facts: Mapping[str, Any], extension: str) -> Asset:
    stem = "preview" if output.role is Role.PREVIEW else output.kind.value
    return Asset(
        id=new_id("asset"),
        kind=output.kind.value,
        role=output.role.value,
        filename=f"{stem}{number or ''}.{extension}",
        content_type=CONTENT_TYPES[extension],
        bytes=landed.bytes,
        sha256=landed.sha256,
        **facts,
    )
