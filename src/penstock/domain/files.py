"""Files: the accepted types and sizes, the facts of 3D models, and the record of a stored file."""

import io
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Final, Literal

import msgspec

FileKind = Literal["image", "video", "audio", "3d"]
"""The kinds of files that models take."""
MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_BYTES: dict[FileKind, int] = {
    "image": MAX_FILE_BYTES,
    "video": 200 * 1024 * 1024,
    "audio": 50 * 1024 * 1024,
    "3d": 150 * 1024 * 1024,
}
"""The largest file of each kind."""
MIN_SIDE, MAX_SIDE = 20, 6000
MAX_NAME_LENGTH, MAX_ENDING_LENGTH = 200, 10

PictureType = Literal["image/jpeg", "image/png", "image/webp"]
CONTENT_TYPES: dict[str, PictureType] = {"jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
"""The image kinds accepted, by sniffed name."""
ENDINGS = {
    "model/gltf-binary": "glb",
    "model/vnd.usdz+zip": "usdz",
    "application/vnd.autodesk.fbx": "fbx",
    "video/quicktime": "mov",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
}
"""Endings of file names that differ from the second part of the content type."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number that a confined process reports: the store and every JSON reader can hold it."""
Source = bytes | str | Path | IO[bytes]
"""A file to inspect: its bytes, its path, or an open file."""


MeshFormat = Literal["glb", "obj", "stl", "fbx", "usdz"]
MESH_TYPES: Final[dict[str, str]] = {
    "glb": "model/gltf-binary",
    "obj": "model/obj",
    "stl": "model/stl",
    "fbx": "application/vnd.autodesk.fbx",
    "usdz": "model/vnd.usdz+zip",
    "zip": "application/zip",
}
"""Content types by file extension. A `zip` holds an OBJ with its materials and textures."""
TYPE_NAMES: Final[dict[str, str]] = {
    "jpg": "image/jpeg",
    **CONTENT_TYPES,
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "m4a": "audio/mp4",
    **MESH_TYPES,
}
"""Content types by the names that a caller may declare as `type`."""


@dataclass(frozen=True, slots=True)
class Clip:
    """One animation of a model."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshFacts:
    """Facts of a 3D model beside its faces and vertices. None is unknown: the format hides it, or it is too large."""

    format: MeshFormat
    size: tuple[float, float, float] | None = None
    """Width, height and depth of the box around it, along x, y and z, in the pose in which it is stored."""
    unit: Literal["meter"] | None = None
    """The unit of `size`; None for formats without one."""
    has_uv: bool | None = None
    """Whether all of its surface has texture coordinates."""
    is_watertight: bool | None = None
    """Whether each edge is shared by exactly two faces."""
    quads: Count | None = None
    materials: Count | None = None
    textures: Count | None = None
    skins: Count | None = None
    joints: Count | None = None
    clips: tuple[Clip, ...] = ()


@dataclass(frozen=True, slots=True)
class InputFacts:
    """Type and measures of a caller's file; `width` and `height` are 0 for kinds that have none."""

    content_type: str
    width: Count = 0
    height: Count = 0
    duration_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Type and size of an image, as read from its bytes."""

    content_type: PictureType
    width: Count
    height: Count


@dataclass(frozen=True, slots=True)
class Origin:
    """The vendor's order that made a file, for vendors that continue their own work by its id."""

    vendor: str
    credential: str
    upstream_id: str
    model: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in our store. `token` is its public name, `sha256` identifies its content.

    `width` and `height` are 0 for kinds that have none.
    """

    token: str
    account_id: str
    sha256: str
    bytes: int
    content_type: str
    width: int
    height: int
    created_at: float
    expires_at: float | None
    job_id: str | None = None
    name: str | None = None
    """The name that the caller gave, without folders; None if it gave none."""
    kind: FileKind = "image"
    duration_seconds: float | None = None
    key: str | None = None
    """The storage key of an earlier job's output that is used as it lies there; None for a file of its own."""
    origin: Origin | None = None
    """The order that made it, if it is a job's output."""


def clean_name(given: str) -> str | None:
    """Return the file's own name out of a path, without control characters; None if nothing is left of it."""
    own = re.split(r"[/\\]", given.strip().rstrip("/\\"))[-1]
    name = "".join(sign for sign in own if sign.isprintable()).strip().strip(".")
    if len(name) > MAX_NAME_LENGTH:  # the ending says what it is
        stem, dot, ending = name.rpartition(".")
        kept = dot + ending if dot and len(ending) <= MAX_ENDING_LENGTH else ""
        name = (stem if kept else name)[: MAX_NAME_LENGTH - len(kept)] + kept
    return name or None


@contextmanager
def opened(source: Source) -> Generator[IO[bytes]]:
    """Open a source at its beginning; a file that was already open stays open."""
    if isinstance(source, bytes):
        yield io.BytesIO(source)
    elif isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield file
    else:
        source.seek(0)
        yield source


def ending_of(content_type: str) -> str:
    """Return the usual ending of a file's name, without the dot."""
    return ENDINGS.get(content_type) or content_type.partition("/")[2]


def asset_key(job_id: str, filename: str, sha256: str) -> str:
    """Return the key of an output by its content, so that storing it twice changes nothing."""
    return f"assets/{job_id}/{sha256[:16]}-{filename}"


def size_of(file: IO[bytes]) -> int:
    """Return the size of an open file in bytes, and rewind it."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


def sniff(head: bytes) -> str | None:
    """Return the image kind by the first bytes: jpeg, png, webp, or None."""
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    return None


STILLS: Final = frozenset({b"heic", b"heix", b"mif1", b"avif"})
"""Brands of HEIC and AVIF, the pictures of phones, which begin as films do. No reader of ours opens them."""


def sniff_kind(head: bytes) -> FileKind | None:
    """Return the kind of a file by its first bytes; None for text and the unknown, which may be a 3D model."""
    if sniff(head):
        return "image"
    if head[4:8] == b"ftyp":
        if head[8:12] in STILLS:
            return "image"
        return "audio" if head[8:11] in (b"M4A", b"M4B") else "video"
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return "video"
    if head.startswith((b"ID3", b"fLaC", b"OggS", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa")):
        return "audio"
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio"
    if head.startswith((b"glTF", b"Kaydara FBX Binary", b"PK\x03\x04", b"solid ")):
        return "3d"
    return None


def contradiction(file: StoredFile, declared: str | None) -> str | None:
    """Return the problem if the declared type differs from the content, or None."""
    if declared in (None, file.kind) or TYPE_NAMES.get(declared) == file.content_type:
        return None
    return f'`type` says "{declared}", but the bytes are {file.content_type}.'


@dataclass(frozen=True, slots=True)
class StoredAsset:
    """A job's stored output, with the facts that serving it needs."""

    id: str
    account_id: str
    job_id: str
    filename: str
    content_type: str
    bytes: int
    sha256: str
