"""Reads and drafts C2PA manifests of untrusted files; blocking, for the process pool.

A draft is complete but for its signature: the private key stays in the gateway, which signs `to_sign` and writes the
signature over the marker.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportAttributeAccessIssue=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# c2pa declares only some of its types, and makes its kinds of errors at run time.

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Annotated, Any, Final, cast

import msgspec

from penstock.domain.files import Count
from penstock.inspection.boxes import refuse_flood

LIBRARIES: Final = {"draft_manifest": ("c2pa",), "read_manifest": ("c2pa",)}
CHUNK: Final = 1 << 20
FILLING: Final = (0, 96, 160)
"""Lengths of a filler text, one per try. A JPEG's long manifest is cut into segments, which may cut the marker.

Each try writes over all of the last one.
"""
REMOTE: Final = "Remote: "
"""The beginning of the error for a file whose manifest is elsewhere."""
QUICK: Final = {"verify": {"verify_after_reading": False, "remote_manifest_fetch": False}}
DRAFTING: Final = {
    "verify": {"verify_after_sign": False, "verify_trust": False, "remote_manifest_fetch": False, "ocsp_fetch": False},
    "builder": {"thumbnail": {"enabled": False}, "bmff_hash_exclude_free_and_skip_boxes": False},
}
STORE: Final = b"jumdc2pa\x00\x11\x00\x10\x80\x00\x00\xaa\x00\x38\x9b\x71"
"""The beginning of every manifest store. A broken file without it has never been signed."""
MAX_PROBLEMS, MAX_PARENTS, MAX_TEXT, MAX_FACTS = 20, 10, 300, 20_000

_PARENT: Final = {"title": "vendor", "relationship": "parentOf", "label": "vendor", "instance_id": "vendor"}
"""The ingredient that a vendor's file with a manifest of its own becomes."""

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


@dataclass(frozen=True, slots=True)
class Draft:
    """A file with an unsigned manifest: what to sign in Base64, and the offset of the signature."""

    to_sign: str
    offset: Count
    chunk: tuple[Count, Count] | None = None
    """Start and end of a PNG's chunk. Its checksum follows it."""


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """One thing wrong with a manifest, by its C2PA code."""

    code: Text
    message: Text


@dataclass(frozen=True, slots=True)
class Signature:
    """The certificate behind a manifest, as its file names it."""

    name: Text
    organization: Text
    serial: Text
    algorithm: Text
    time: Text | None = None


@dataclass(frozen=True, slots=True)
class ParentManifest:
    """An earlier manifest that the file carries as an ingredient."""

    title: Text
    relationship: Text
    signature: Signature | None
    generator: Text


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """The contents of a file's manifest. It is as it was signed if there are no problems."""

    is_trusted: bool
    signature: Signature | None
    generator: Text
    is_ai: bool
    generation: dict[str, Any] | None
    """Our own assertion, if it has one."""
    problems: list[ManifestProblem] = field(default_factory=list[ManifestProblem])
    parents: list[ParentManifest] = field(default_factory=list[ParentManifest])
    is_inside: bool = True
    """Whether the file carries a manifest. If not, the problems say why nothing more is known."""
    by_own: bool = False
    """Whether the signer's certificate comes from one of our own anchors."""


def draft_manifest(
    source: IO[bytes],
    target: IO[bytes],
    content_type: str,
    definition: dict[str, Any],
    certificates: str,
    algorithm: str,
    marker: str,
) -> Draft:
    """Write the file with a manifest to `target`, with `marker` (hexadecimal) in place of the signature.

    A manifest that the file has already becomes the parent of the new one.
    """
    mark = bytes.fromhex(marker)
    refuse_flood(source)
    drafting = _Drafting(source, target, content_type, definition, certificates, algorithm, mark)
    parent = _PARENT if _has_manifest(source, content_type) else None
    for length in FILLING:
        to_sign = drafting.write(parent, length)
        offset = _find(target, mark)
        if offset is not None:
            chunk = _find_chunk(target, offset) if content_type == "image/png" else None
            return Draft(base64.b64encode(to_sign).decode(), offset, chunk)
    raise ValueError("the marker is not in the file")


def _has_manifest(source: IO[bytes], content_type: str) -> bool:
    from c2pa import C2paError, Context, Reader  # noqa: PLC0415 - a quick start

    source.seek(0)
    try:
        Reader(content_type, source, context=Context.from_dict(QUICK)).close()
    except C2paError:  # none, or a broken one, which the new manifest replaces
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Drafting:
    """A manifest to be written."""

    source: IO[bytes]
    target: IO[bytes]
    content_type: str
    definition: dict[str, Any]
    certificates: str
    algorithm: str
    mark: bytes

    def write(self, parent: Mapping[str, str] | None, length: int) -> bytes:
        """Write the file with the manifest, and a filler of that length. Return the bytes to sign."""
        from c2pa import Builder, C2paSigningAlg, Context, Signer  # noqa: PLC0415 - a quick start

        asked: list[bytes] = []

        def keep(data: bytes) -> bytes:
            asked.append(data)
            return self.mark

        signer = Signer.from_callback(keep, C2paSigningAlg[self.algorithm], self.certificates)
        definition = dict(self.definition)
        action = definition.pop("action")
        if length:
            filler = {"label": "penstock.filler", "data": {"text": "-" * length}}
            definition["assertions"] = [*definition["assertions"], filler]
        builder = Builder(definition, context=Context.from_dict(DRAFTING))
        if parent is not None:
            self.source.seek(0)
            builder.add_ingredient(dict(parent), self.content_type, self.source)
            action |= {"action": "c2pa.opened", "parameters": {"ingredientIds": [parent["instance_id"]]}}
        builder.add_action(action)
        self.source.seek(0)
        self.target.seek(0)
        builder.sign(signer, self.content_type, self.source, self.target)
        self.target.flush()
        return asked[-1]


def _find(target: IO[bytes], mark: bytes) -> int | None:
    """Return the offset of the marker in the file."""
    target.seek(0)
    before, start = b"", 0
    while piece := target.read(CHUNK):
        place = (before + piece).find(mark)
        if place >= 0:
            return start + place
        start += len(before) + len(piece)
        before = (before + piece)[-len(mark) + 1 :]
        start -= len(before)
    return None


def _find_chunk(target: IO[bytes], offset: int) -> tuple[int, int]:
    """Return start and end of the PNG chunk around an offset: its type and its data."""
    place = 8
    while True:
        target.seek(place)
        length = int.from_bytes(target.read(4))
        if place + 8 <= offset < place + 8 + length:
            return place + 4, place + 8 + length
        if place > offset:
            raise ValueError("the marker is in no chunk")
        place += length + 12


# -- reading


def read_manifest(source: IO[bytes], own_anchors: str, other_anchors: str) -> ManifestFacts | None:
    """Return the facts of the file's manifest, None if it has none or is of a type that can have none.

    It is trusted if the signer's certificate comes from one of the anchors (PEM).
    """
    from c2pa import C2paError  # noqa: PLC0415 - a quick start

    refuse_flood(source)
    try:
        found = _read(source, own_anchors)
        by_own = is_trusted = _is_trusted(found)
        if other_anchors and not is_trusted:
            is_trusted = _is_trusted(_read(source, other_anchors))
    except (C2paError.ManifestNotFound, C2paError.NotSupported):
        return None
    except C2paError as error:
        return _explain(source, str(error))
    return _describe(found, by_own=by_own, is_trusted=is_trusted)


def _explain(source: IO[bytes], error: str) -> ManifestFacts:
    """Return the facts of a file that cannot be read."""
    is_inside = _find(source, STORE) is not None
    problem = ManifestProblem("manifest.unreadable", _text(error))
    if not is_inside and error.startswith(REMOTE):
        problem = ManifestProblem(
            "manifest.inaccessible", "The file only names the URL of a manifest. It is not fetched."
        )
    elif not is_inside:
        problem = ManifestProblem("file.unreadable", _text(f"The file has no manifest and cannot be read: {error}"))
    return ManifestFacts(
        is_trusted=False,
        signature=None,
        generator="",
        is_ai=False,
        generation=None,
        problems=[problem],
        is_inside=is_inside,
    )


def _read(source: IO[bytes], anchors: str) -> Mapping[str, Any]:
    from c2pa import Context, Reader  # noqa: PLC0415 - a quick start

    settings = {"verify": {"remote_manifest_fetch": False, "ocsp_fetch": False}, "trust": {"trust_anchors": anchors}}
    source.seek(0)
    with Reader(source, context=Context.from_dict(settings)) as reader:
        return json.loads(reader.json())


def _results(found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the results of one kind about the active manifest; those of its parents do not count."""
    results = _dict(_dict(found.get("validation_results")).get("activeManifest"))
    return [_dict(each) for each in _list(results.get(name))]


def _is_trusted(found: Mapping[str, Any]) -> bool:
    return any(each.get("code") == "signingCredential.trusted" for each in _results(found, "success"))


def _describe(found: Mapping[str, Any], *, by_own: bool, is_trusted: bool) -> ManifestFacts:
    manifests = _dict(found.get("manifests"))
    active = _dict(manifests.get(str(found.get("active_manifest"))))
    problems = [
        ManifestProblem(_text(each.get("code")), _text(each.get("explanation")))
        for each in _results(found, "failure")
        if each.get("code") != "signingCredential.untrusted"
    ]
    generation = _assertion(active, "penstock.generation")
    is_small = generation is not None and len(json.dumps(generation)) <= MAX_FACTS
    return ManifestFacts(
        by_own=by_own,
        is_trusted=is_trusted,
        signature=_signature(active),
        generator=_generator(active),
        is_ai=_is_ai(active),
        generation=generation if is_small else None,
        problems=problems[:MAX_PROBLEMS],
        parents=[_parent(_dict(each), manifests) for each in _list(active.get("ingredients"))[:MAX_PARENTS]],
    )


def _parent(ingredient: Mapping[str, Any], manifests: Mapping[str, Any]) -> ParentManifest:
    manifest = _dict(manifests.get(str(ingredient.get("active_manifest"))))
    title, relationship = _text(ingredient.get("title")), _text(ingredient.get("relationship"))
    return ParentManifest(title, relationship, _signature(manifest), _generator(manifest))


def _assertion(manifest: Mapping[str, Any], label: str) -> dict[str, Any] | None:
    for each in _list(manifest.get("assertions")):
        if _dict(each).get("label") == label:
            return _dict(_dict(each).get("data"))
    return None


def _is_ai(manifest: Mapping[str, Any]) -> bool:
    """Return whether an action says that a trained model made it."""
    for label in ("c2pa.actions.v2", "c2pa.actions"):
        actions = _list((_assertion(manifest, label) or {}).get("actions"))
        if any("trainedAlgorithmicMedia" in str(_dict(each).get("digitalSourceType")) for each in actions):
            return True
    return False


def _signature(manifest: Mapping[str, Any]) -> Signature | None:
    found = _dict(manifest.get("signature_info"))
    if not found:
        return None
    time = found.get("time")
    return Signature(
        name=_text(found.get("common_name")),
        organization=_text(found.get("issuer")),
        serial=_text(found.get("cert_serial_number")),
        algorithm=_text(found.get("alg")),
        time=None if time is None else _text(time),
    )


def _generator(manifest: Mapping[str, Any]) -> str:
    return next((_text(_dict(each).get("name")) for each in _list(manifest.get("claim_generator_info"))), "")


def _text(value: Any) -> str:
    return "" if value is None else "".join(sign for sign in str(value) if sign.isprintable())[:MAX_TEXT]


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
