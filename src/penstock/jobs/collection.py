"""Download a finished job's outputs, open them, check them against the request, and only then keep them."""

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
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed, WorkInterrupted
from penstock.storage.assets import Assets, Landed
from penstock.storage.backend import StorageUnavailable
from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import GenerationVendor, Kind, Output, Role

PREVIEW_TIMEOUT_SECONDS: Final = 60.0
"""Seconds that a preview may take: the paid result waits no longer for it."""
STORE_RETRY_SECONDS: Final = (1, 2, 4, 8)
"""Pauses between attempts to store an output. After the last attempt it is dropped, and downloaded again later."""
CONTENT_TYPES: Final = {
    "glb": "model/gltf-binary",
    "mp4": "video/mp4",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """Assets of a job, and warnings where they differ from the request."""

    outputs: tuple[Asset, ...]
    warnings: tuple[str, ...]


class Collection:
    """Makes assets of outputs. Nothing else does."""

    def __init__(self, exchange: Exchange, assets: Assets, process_pool: ProcessPool) -> None:
        self._exchange = exchange
        self._assets = assets
        self._process_pool = process_pool

    async def collect(
        self, job: Job, vendor: GenerationVendor, outputs: tuple[Output, ...], expected: Expectation
    ) -> Collected:
        """Store and check all outputs. It may be repeated after a crash."""
        collected: list[Asset] = []
        warnings: list[str] = []
        for output in outputs:
            number = sum(past.kind == output.kind and past.role == output.role for past in collected)
            timeout = None if output.role is Role.PRIMARY else PREVIEW_TIMEOUT_SECONDS
            try:
                async with asyncio.timeout(timeout):
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
        """Store a downloaded output, with retries: its URL may work only once."""
        for pause in STORE_RETRY_SECONDS:
            try:
                return await self._assets.keep(job_id, asset, landed)
            except StorageUnavailable:
                await asyncio.sleep(pause)
        return await self._assets.keep(job_id, asset, landed)

    async def _inspect(
        self, account_id: str, output: Output, landed: Landed, expected: Expectation
    ) -> tuple[dict[str, Any], str]:
        """Open the output. Return its facts and its file extension."""
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
                case Kind.AUDIO | Kind.TEXT:
                    raise BadOutput("Outputs of this kind cannot be opened here.")
        except (WorkFailed, FileUnreadable) as error:
            raise _explain(error, output) from error


def _explain(error: WorkFailed | FileUnreadable, output: Output) -> BadOutput | StorageUnavailable:
    """Return what is wrong with the output; if nothing is, that the result has to wait. A preview never waits."""
    if isinstance(error, FileUnreadable):
        return BadOutput(error.message)
    if isinstance(error, WorkInterrupted) and output.role is Role.PRIMARY:
        return StorageUnavailable("The gateway could not open the output just now.", retry_after=1)
    if isinstance(error, LimitReached):
        return BadOutput("Opening the output takes more time or memory than allowed.")
    return BadOutput("The output could not be opened.")


def _fields(facts: object) -> dict[str, Any]:
    """Return the facts that an asset shows. Its other fields stay None."""
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
