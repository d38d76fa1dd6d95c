"""Sign results before they are stored: a C2PA manifest inside, or a signed sidecar for a 3D model or a huge film.

A child process parses the file and drafts the manifest. The key stays here. What cannot be signed is kept unsigned.
"""

import asyncio
import base64
import hashlib
import logging
import os
import secrets
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from penstock import __version__
from penstock.catalog.file_input import with_file
from penstock.domain.files import MESH_TYPES
from penstock.domain.ids import timestamp
from penstock.domain.job_errors import JobError
from penstock.domain.jobs import Job, Provenance
from penstock.inspection.manifests import Draft, draft_manifest
from penstock.inspection.meshes.extras import mark_glb
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed
from penstock.observability import metrics
from penstock.storage.assets import Assets, Landed, measure_file
from penstock.vendor_api.generation import Kind, Output

if TYPE_CHECKING:  # slow to load; it is needed with the first result
    from penstock.provenance.credential import Credential

SIGNABLE: Final = frozenset(("video/mp4", "image/png", "image/jpeg", "image/webp"))
"""Content types that get a manifest of their own."""
SOURCE_TYPE: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
MAX_EMBEDDED_BYTES: Final = 256 * 10**6
"""Largest file that a manifest is written into: a child needs twice as much memory. Larger ones get a sidecar."""
MAX_ADDED_BYTES: Final = 64 * 1024 * 1024
"""Upper bound of what signing adds to a file: an earlier manifest may have pictures."""
MAX_CLAIM_BYTES: Final = 64 * 1024
CLAIM_HEAD: Final = b"\x84jSignature1"
"""The beginning of what COSE signs. The key signs nothing else that a child process sends."""
UNSIGNED: Final = "The result could not be signed and is kept without a manifest."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Signed:
    """A result as it is to be stored, how it is signed, and the sidecar that belongs to it."""

    landed: Landed
    provenance: Provenance | None = None
    sidecar: bytes | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Making:
    """The job that made a result, and what a signature says of it."""

    job_id: str
    account_id: str
    agent: str
    facts: Mapping[str, Any]


class ResultSigner:
    """Signs results with the credential of the settings; with none, results stay as they are."""

    def __init__(
        self,
        pool: ProcessPool,
        assets: Assets,
        credential: "Callable[[], Credential | None]",
        clock: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._assets = assets
        self._credential = credential
        self._clock = clock

    def describe(self, job: Job, seed: int | None) -> Making:
        """Return what the signatures of a job's results say. Of the params, only their digest: they may be private."""
        parents = {parent.path: parent for parent in job.parents}
        inputs = [
            {"path": path, "sha256": file.sha256, "content_type": file.content_type}
            | ({"job_id": parents[path].job_id, "asset_id": parents[path].asset_id} if path in parents else {})
            for path, file in sorted(job.inputs.items())
        ]
        facts = {
            "job_id": job.id,
            "model": job.model,
            "vendor": job.vendor,
            "vendor_model": job.upstream_model,
            "created_at": timestamp(self._clock()),
            "seed": job.seed if seed is None else seed,
            "params_sha256": digest_params(job),
            "inputs": inputs,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return Making(job.id, job.account_id, f"{job.vendor}/{job.upstream_model}", known)

    @asynccontextmanager
    async def sign(self, making: Making, output: Output, content_type: str, landed: Landed) -> AsyncGenerator[Signed]:
        """Yield the signed version of a result, which is deleted at the end of the block unless it was moved."""
        credential = self._credential()
        is_model = output.kind is Kind.MODEL
        is_beside = is_model or landed.bytes > MAX_EMBEDDED_BYTES
        if credential is None or not (is_model or content_type in SIGNABLE):
            yield Signed(landed)
            return
        async with self._assets.beside(landed) as target:
            try:
                sign = self._sign_beside if is_beside else self._sign_inside
                signed = await sign(making, credential, content_type, landed, target)
            except (WorkFailed, JobError, ValueError, OSError) as error:
                metrics.RESULTS_SIGNED.labels("failed").inc()
                log.warning("a result could not be signed", extra={"fields": {"reason": repr(error)}})
                signed = Signed(landed, warnings=(UNSIGNED,))
            else:
                metrics.RESULTS_SIGNED.labels("signed").inc()
            yield signed

    async def _sign_inside(
        self, making: Making, credential: "Credential", content_type: str, landed: Landed, target: Path
    ) -> Signed:
        marker = secrets.token_bytes(credential.signature_bytes)
        draft: Draft = await self._insist(
            making.account_id,
            draft_manifest,
            landed.path,
            target,
            landed.bytes + MAX_ADDED_BYTES,
            content_type,
            define_manifest(making, content_type),
            credential.certificates,
            credential.algorithm,
            marker.hex(),
            size=landed.bytes,
        )
        to_sign = base64.b64decode(draft.to_sign, validate=True)
        if not to_sign.startswith(CLAIM_HEAD) or len(to_sign) > MAX_CLAIM_BYTES:
            raise ValueError("a child process sent something to sign that is no claim")
        return Signed(await asyncio.to_thread(_complete, target, draft, marker, credential, to_sign), "c2pa")

    async def _sign_beside(
        self, making: Making, credential: "Credential", content_type: str, landed: Landed, target: Path
    ) -> Signed:
        from penstock.provenance.sidecar import make_sidecar  # noqa: PLC0415 - see above

        if content_type == MESH_TYPES["glb"]:
            most = landed.bytes + MAX_ADDED_BYTES
            facts = dict(making.facts)
            await self._insist(making.account_id, mark_glb, landed.path, target, most, facts, size=landed.bytes)
            landed = await asyncio.to_thread(measure_file, target)
        return Signed(landed, "sidecar", make_sidecar(credential, landed.sha256, making.facts))

    async def _insist(self, *work: Any, size: int) -> Any:
        """Let a child process write the target, and once more if it crashes: it may die of something else."""
        try:
            return await self._pool.transform(*work, size=size)
        except LimitReached:
            raise
        except WorkFailed:
            return await self._pool.transform(*work)


def digest_params(job: Job) -> str:
    """Return the sha256 of the params as JSON with sorted keys. Each file in them is replaced by its own sha256."""
    params = dict(job.params)
    for path, file in job.inputs.items():
        params = with_file(params, path, {"sha256": file.sha256})
    return hashlib.sha256(msgspec.json.encode(params, order="sorted")).hexdigest()


def define_manifest(making: Making, content_type: str) -> dict[str, Any]:
    """Return the manifest that a result gets."""
    return {
        "claim_generator_info": [{"name": "Penstock", "version": __version__}],
        "title": making.job_id,
        "format": content_type,
        "assertions": [{"label": "penstock.generation", "data": dict(making.facts)}],
        "action": {
            "action": "c2pa.created",
            "when": making.facts["created_at"],
            "digitalSourceType": SOURCE_TYPE,
            "softwareAgent": {"name": making.agent},
        },
    }


def _complete(path: Path, draft: Draft, marker: bytes, credential: "Credential", to_sign: bytes) -> Landed:
    """Write the signature over the marker, and correct the checksum of a PNG's chunk around it."""
    file = os.open(path, os.O_RDWR)
    try:
        if os.pread(file, len(marker), draft.offset) != marker:
            raise ValueError("the signature has no place in the file")
        os.pwrite(file, credential.sign(to_sign), draft.offset)
        if draft.chunk is not None:
            start, end = draft.chunk
            if not start <= draft.offset < end <= start + MAX_ADDED_BYTES:
                raise ValueError("the signature is not in its chunk")
            os.pwrite(file, zlib.crc32(os.pread(file, end - start, start)).to_bytes(4), end)
    finally:
        os.close(file)
    return measure_file(path)
