"""Verify files: whether they are signed, by whom, and whether they are still as they were signed."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from cryptography import x509

from penstock.domain.job_errors import FileUnreadable
from penstock.inspection.manifests import ManifestFacts, ManifestProblem, Signature, read_manifest
from penstock.inspection.meshes.extras import read_glb_facts
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed, WorkInterrupted
from penstock.provenance.credential import OWN_NAME, comes_from, name_of
from penstock.provenance.sidecar import Sidecar, SidecarBroken, read_sidecar
from penstock.storage.assets import Landed, measure_file
from penstock.storage.backend import StorageUnavailable

GLB: Final = b"glTF"


class Verdict(StrEnum):
    """The origin of a file."""

    SIGNED_HERE = "signed_here"
    SIGNED_ELSEWHERE = "signed_elsewhere"
    UNSIGNED = "unsigned"
    TAMPERED = "tampered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Everything that a file says of its origin, and whether that is true."""

    verdict: Verdict
    is_trusted: bool = False
    """Whether it is as it was signed, by this server or by a signer from a root that the operator trusts."""
    signer: Signature | None = None
    generator: str | None = None
    made_by_ai: bool | None = None
    generation: Mapping[str, Any] | None = None
    problems: tuple[ManifestProblem, ...] = ()
    parents: tuple[Mapping[str, Any], ...] = ()


class Signer(Protocol):
    """The signer that counts as this server."""

    @property
    def anchors(self) -> str:
        """Return the certificates above its own as PEM."""
        ...

    @property
    def name(self) -> str:
        """Return its name."""
        ...


@dataclass(frozen=True, slots=True)
class AnySigner:
    """Any signer under some roots: what a check without a server knows."""

    anchors: str
    name: str = OWN_NAME


async def verify_alone(path: Path, sidecar: bytes | None, anchors: str) -> dict[str, Any]:
    """Return the report on a file without a server, by these roots."""
    pool = ProcessPool(1)
    try:
        landed = await asyncio.to_thread(measure_file, path)
        verifier = Verifier(pool, lambda: AnySigner(anchors), lambda: anchors, time.time)
        return report(await verifier.verify("", landed, sidecar), landed)
    finally:
        await pool.close()


def report(found: Verification, landed: Landed) -> dict[str, Any]:
    """Return the record of a verification."""
    return {
        "object": "verification",
        "verdict": found.verdict.value,
        "is_trusted": found.is_trusted,
        "sha256": landed.sha256,
        "bytes": landed.bytes,
        "signer": None if found.signer is None else asdict(found.signer),
        "generator": found.generator,
        "made_by_ai": found.made_by_ai,
        "generation": found.generation,
        "problems": [asdict(each) for each in found.problems],
        "parents": list(found.parents),
    }


class Verifier:
    """Reads signatures in child processes. It never asks the store: a report has only what is in the file."""

    def __init__(
        self,
        pool: ProcessPool,
        signer: Callable[[], Signer],
        trust: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._signer = signer
        self._trust = trust
        self._clock = clock

    async def verify(self, account_id: str, landed: Landed, sidecar: bytes | None) -> Verification:
        """Return what the file says. Raise `FileUnreadable` if it cannot be opened."""
        try:
            if sidecar is not None:
                return await asyncio.to_thread(self._judge_sidecar, landed, sidecar)
            if landed.head.startswith(GLB):
                return _judge_glb(await self._pool.insist(account_id, read_glb_facts, landed.path))
            own = self._signer()
            found = await self._pool.insist(account_id, read_manifest, landed.path, own.anchors, self._trust())
            return self._judge(found, own)
        except LimitReached as error:
            raise FileUnreadable("Opening the file takes more time or memory than allowed.") from error
        except WorkInterrupted as error:
            raise StorageUnavailable("The gateway could not open the file just now.", retry_after=1) from error
        except WorkFailed as error:
            raise FileUnreadable("The file could not be opened.") from error

    def _judge(self, found: ManifestFacts | None, own: Signer) -> Verification:
        if found is None or not found.is_inside:
            return Verification(verdict=Verdict.UNSIGNED, problems=tuple(found.problems) if found else ())
        is_own = found.by_own and found.signature is not None and found.signature.name == own.name
        verdict = Verdict.SIGNED_HERE if is_own else Verdict.SIGNED_ELSEWHERE
        return Verification(
            verdict=Verdict.TAMPERED if found.problems else verdict,
            is_trusted=found.is_trusted and not found.problems,
            signer=found.signature,
            generator=found.generator,
            made_by_ai=found.is_ai,
            generation=found.generation,
            problems=tuple(found.problems),
            parents=tuple(asdict(parent) for parent in found.parents),
        )

    def _judge_sidecar(self, landed: Landed, data: bytes) -> Verification:
        own = self._signer()
        try:
            sidecar = read_sidecar(data)
        except SidecarBroken as error:
            return Verification(verdict=Verdict.TAMPERED, problems=(ManifestProblem("sidecar.invalid", str(error)),))
        now = self._clock()
        is_own = comes_from(sidecar.chain, own.anchors, now) and name_of(sidecar.chain[0]) == own.name
        verdict = Verdict.SIGNED_HERE if is_own else Verdict.SIGNED_ELSEWHERE
        problems: tuple[ManifestProblem, ...] = ()
        if sidecar.sha256 != landed.sha256:
            verdict = Verdict.TAMPERED
            message = f"The sidecar is for a file with the sha256 {sidecar.sha256[:64]}; this one has {landed.sha256}."
            problems = (ManifestProblem("sidecar.hash.mismatch", message),)
        return Verification(
            verdict=verdict,
            is_trusted=not problems and (is_own or comes_from(sidecar.chain, self._trust(), now)),
            signer=_signature_of(sidecar),
            made_by_ai=True,
            generation=sidecar.generation,
            problems=problems,
        )


def _judge_glb(facts: Mapping[str, Any] | None) -> Verification:
    """Return the verdict on a GLB alone: it says nothing that could not be written by anybody."""
    if facts is None:
        return Verification(verdict=Verdict.UNSIGNED)
    message = "The model names the job that made it, but only its sidecar proves that. Send it as `sidecar`."
    return Verification(verdict=Verdict.UNSIGNED, problems=(ManifestProblem("sidecar.missing", message),))


def _signature_of(sidecar: Sidecar) -> Signature:
    leaf = sidecar.chain[0]
    organizations = leaf.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    organization = str(organizations[0].value) if organizations else ""
    return Signature(name_of(leaf)[:300], organization[:300], str(leaf.serial_number), sidecar.algorithm)
