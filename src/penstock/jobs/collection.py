"""Download a finished job's outputs, open them, check them against the request, and only then keep them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from penstock.catalog.model import Expectation
from penstock.domain.files import MESH_TYPES, ImageFacts, MeshFacts
from penstock.domain.ids import new_id
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.domain.jobs import Asset, Job
from penstock.inspection.images_and_video import inspect_picture, inspect_video
from penstock.inspection.input_media import inspect_sound
from penstock.inspection.models import inspect_model
from penstock.inspection.texts import inspect_text
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed, WorkInterrupted
from penstock.jobs.files.signing import Making, ResultSigner, Signed
from penstock.storage.assets import Assets, Landed
from penstock.storage.backend import StorageUnavailable
from penstock.upstream.exchange import TROUBLE, Exchange
from penstock.vendor_api.generation import Done, GenerationVendor, KeptReply, Kind, Output, Role

KEPT: Final = "kept"
"""The field of an operation with a result that came with the vendor's reply."""
PREVIEW_TIMEOUT_SECONDS: Final = 60.0
"""Seconds that a preview may take: the paid result waits no longer for it."""
STORE_RETRY_SECONDS: Final = (1, 2, 4, 8)
"""Pauses between attempts to store an output. After the last attempt it is dropped, and downloaded again later."""
RATIO_TOLERANCE: Final = 0.06
"""Tolerance for a picture's ratio: vendors round its sides to multiples of 16 or more."""
CONTENT_TYPES: Final = {
    **MESH_TYPES,
    "mp4": "video/mp4",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "aac": "audio/aac",
    "m4a": "audio/mp4",
    "weba": "audio/webm",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
}
EXTENSIONS: Final = {content_type: extension for extension, content_type in CONTENT_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Collected:
    """Assets of a job, and warnings where they differ from the request."""

    outputs: tuple[Asset, ...]
    warnings: tuple[str, ...]


def kept_result(operation: Mapping[str, Any]) -> Done | None:
    """Return the result that came with the vendor's reply to the order; None for an order to poll."""
    if KEPT not in operation:
        return None
    kept = operation[KEPT]
    outputs = [Output(Kind(one["kind"]), Role(one["role"]), KeptReply(one["key"])) for one in kept["outputs"]]
    expected = None if kept["expected"] is None else Expectation(**kept["expected"])
    return Done(tuple(outputs), tuple(kept["warnings"]), kept["seed"], expected)


def keep_result(result: Done, outputs: list[dict[str, str]]) -> dict[str, Any]:
    """Return the operation of an order whose result is stored already, for `kept_result`."""
    usual = asdict(Expectation())
    expected = None
    if result.expected is not None:
        expected = {name: value for name, value in asdict(result.expected).items() if value != usual[name]}
    return {KEPT: {"outputs": outputs, "warnings": result.warnings, "seed": result.seed, "expected": expected}}


class Collection:
    """Makes assets of outputs. Nothing else does."""

    def __init__(self, exchange: Exchange, assets: Assets, process_pool: ProcessPool, signer: ResultSigner) -> None:
        self._exchange = exchange
        self._assets = assets
        self._process_pool = process_pool
        self._signer = signer

    async def collect(
        self, job: Job, vendor: GenerationVendor, outputs: tuple[Output, ...], expected: Expectation, seed: int | None
    ) -> Collected:
        """Check, sign and store all outputs. It may be repeated after a crash. `seed` is the vendor's own."""
        collected: list[Asset] = []
        warnings: list[str] = []
        making = self._signer.describe(job, seed)
        for output in outputs:
            number = sum(past.kind == output.kind and past.role == output.role for past in collected)
            timeout = None if output.role is Role.PRIMARY else PREVIEW_TIMEOUT_SECONDS
            try:
                async with asyncio.timeout(timeout):
                    asset, remarks = await self._collect_one(job, vendor, output, number, expected, making)
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

    async def keep_reply(
        self, job: Job, vendor: GenerationVendor, outputs: tuple[Output, ...], reference: str
    ) -> list[dict[str, str]]:
        """Store the outputs that came with a vendor's reply, as they are. Return where they lie, for `kept_outputs`."""
        kept: list[dict[str, str]] = []
        for number, output in enumerate(outputs):
            async with self._exchange.download(job.vendor, vendor, output.download) as chunks:
                key = await self._assets.keep_reply(job.id, f"{reference}-{number}", chunks)
            kept.append({"kind": output.kind.value, "role": output.role.value, "key": key})
        return kept

    async def drop_reply(self, outputs: tuple[Output, ...]) -> None:
        """Delete the stored reply of a delivered job; what is left is removed with the job."""
        for output in outputs:
            if isinstance(output.download, KeptReply):
                with suppress(StorageUnavailable):
                    await self._assets.remove_reply(output.download.key)

    async def _collect_one(
        self, job: Job, vendor: GenerationVendor, output: Output, number: int, expected: Expectation, making: Making
    ) -> tuple[Asset, tuple[str, ...]]:
        async with self._open(job, vendor, output) as chunks, self._assets.land(chunks) as landed:
            facts, extension = await self._inspect(job.account_id, output, landed, expected)
            remarks: tuple[str, ...] = facts.pop("warnings", ())
            async with self._signer.sign(making, output, CONTENT_TYPES[extension], landed) as signed:
                asset = _asset(output, number, signed, facts, extension)
                await self._keep(job.id, asset, signed)
        return asset, (*remarks, *signed.warnings)

    @asynccontextmanager
    async def _open(self, job: Job, vendor: GenerationVendor, output: Output) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the bytes of an output: from our own storage if it came with the vendor's reply."""
        if isinstance(output.download, KeptReply):
            yield await self._assets.open_reply(output.download.key)
            return
        async with self._exchange.download(job.vendor, vendor, output.download) as chunks:
            yield chunks

    async def _keep(self, job_id: str, asset: Asset, signed: Signed) -> None:
        """Store a downloaded output and its sidecar, with retries: its URL may work only once."""
        for pause in (*STORE_RETRY_SECONDS, None):
            try:
                if signed.sidecar is not None:
                    await self._assets.keep_sidecar(job_id, asset, signed.sidecar)
                return await self._assets.keep(job_id, asset, signed.landed)
            except StorageUnavailable:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        return None

    async def _inspect(
        self, account_id: str, output: Output, landed: Landed, expected: Expectation
    ) -> tuple[dict[str, Any], str]:
        """Open the output. Return its facts and its file extension."""
        path, size = landed.path, landed.bytes
        try:
            match output.kind:
                case Kind.MODEL:
                    order = (expected.face_limit, expected.formats)
                    model = await self._process_pool.insist(account_id, inspect_model, path, *order, size=size)
                    _check_parts(model.mesh, expected)
                    return _fields(model), model.extension
                case Kind.VIDEO:
                    wanted = (expected.width, expected.height, expected.seconds)
                    video = await self._process_pool.insist(account_id, inspect_video, path, *wanted, size=size)
                    return _fields(video), "mp4"
                case Kind.IMAGE:
                    picture = await self._process_pool.insist(account_id, inspect_picture, path, size=size)
                    remarks = _compare_picture(picture, expected) if output.role is Role.PRIMARY else ()
                    facts = {"width": picture.width, "height": picture.height, "warnings": remarks}
                    return facts, picture.content_type.split("/")[1]
                case Kind.AUDIO:
                    sound = await self._process_pool.insist(account_id, inspect_sound, path, size=size)
                    return {"duration_seconds": sound.duration_seconds}, EXTENSIONS[sound.content_type]
                case Kind.TEXT:
                    return {}, (await self._process_pool.insist(account_id, inspect_text, path, size=size)).extension
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


def _check_parts(mesh: MeshFacts, expected: Expectation) -> None:
    """Raise `BadOutput` if the model certainly lacks a part that was asked for."""
    if "skeleton" in expected.parts and mesh.joints == 0:
        raise BadOutput("The model has no skeleton, which was asked for.")
    if "clip" in expected.parts and mesh.joints is not None and not mesh.clips:
        raise BadOutput("The model has no animation, which was asked for.")


def _compare_picture(found: ImageFacts, expected: Expectation) -> tuple[str, ...]:
    """Return a warning for each difference from the request; a picture that differs is still worth having."""
    remarks: list[str] = []
    size = f"{found.width} x {found.height}"
    if expected.width and expected.height and (found.width, found.height) != (expected.width, expected.height):
        remarks.append(f"The picture is {size}; {expected.width} x {expected.height} was asked for.")
    elif expected.ratio and abs(found.width / (found.height * expected.ratio) - 1) > RATIO_TOLERANCE:
        remarks.append(f"The picture is {size}, which is not the ratio that was asked for.")
    made = found.content_type.removeprefix("image/")
    if expected.picture_type and made != expected.picture_type:
        remarks.append(f"The picture is {made}; {expected.picture_type} was asked for.")
    return tuple(remarks)


def _fields(facts: object) -> dict[str, Any]:
    """Return the facts that an asset shows. Its other fields stay None."""
    names = ("width", "height", "duration_seconds", "fps", "faces", "vertices", "mesh", "warnings")
    return {name: getattr(facts, name) for name in names if hasattr(facts, name)}


def _asset(output: Output, number: int, signed: Signed, facts: Mapping[str, Any], extension: str) -> Asset:
    stem = "preview" if output.role is Role.PREVIEW else output.kind.value
    return Asset(
        id=new_id("asset"),
        kind=output.kind.value,
        role=output.role.value,
        filename=f"{stem}{number or ''}.{extension}",
        content_type=CONTENT_TYPES[extension],
        bytes=signed.landed.bytes,
        sha256=signed.landed.sha256,
        provenance=signed.provenance,
        **facts,
    )
